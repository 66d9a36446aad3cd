"""The states of a connection and what every packet does in each (STP/1 section 9).

The rows are those of ``spec/bentpipe_spec/stp/states.toml``, word for word; a test compares
them. Each row names the methods that decide and act: of
:class:`~bentpipe_reference.stp.without.WithoutConnection` in the state idle, of
:class:`~bentpipe_reference.stp.connection.Connection` in the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from bentpipe_reference.stp.packets import Type


class State(IntEnum):
    """The states of section 4, with SSCOP's numbers."""

    IDLE = 1
    OUTGOING = 2
    INCOMING = 3
    OUTGOING_RELEASE = 4
    READY = 10

    @property
    def title(self) -> str:
        """The name in the state table."""
        return _TITLES[self]


_TITLES = {
    State.IDLE: "idle",
    State.OUTGOING: "outgoing connection pending",
    State.INCOMING: "incoming connection pending",
    State.READY: "data transfer ready",
    State.OUTGOING_RELEASE: "outgoing disconnection pending",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a cell.

    Attributes:
        when: the condition in the table's words; empty when it always holds.
        do: what happens, in the table's words.
        next: the state afterwards; None where the state idle decides.
        guard: name of the method that tells whether the condition holds, empty for always.
        action: name of the method that acts.
        again: the packet is handled as in the state idle; the connection is forgotten, or stays
            beside the new one.
    """

    when: str
    do: str
    next: State | None
    guard: str
    action: str
    again: bool = False


Cells = dict[Type, tuple[Row, ...]]

_IDLE, _OUTGOING, _INCOMING, _READY, _RELEASE = (
    State.IDLE,
    State.OUTGOING,
    State.INCOMING,
    State.READY,
    State.OUTGOING_RELEASE,
)


def _version(state: State) -> Row:
    return Row(
        "version other than 1", "send BGREJ, reason 4", state, "is_other_version", "refuse_version"
    )


def _always(state: State, do: str, action: str) -> tuple[Row, ...]:
    return (Row("", do, state, "", action),)


def _discard(state: State) -> tuple[Row, ...]:
    return _always(state, "discard", "discard")


_REFUSE = _always(_IDLE, "send END with A and R", "answer_unknown")

IDLE_CELLS: Cells = {
    Type.BEGIN: (
        _version(_IDLE),
        Row("nobody listens", "send BGREJ, reason 3", _IDLE, "nobody_listens", "refuse_port"),
        Row("no resources", "send BGREJ, reason 5", _IDLE, "lacks_room", "refuse_call"),
        Row("peer known and CSN newer", "take the data, send BGAK", _READY, "may_accept", "accept"),
        Row("", "hold the data, send BGAK with C", _INCOMING, "", "ask"),
    ),
    Type.BGAK: _REFUSE,
    Type.BGREJ: _discard(_IDLE),
    Type.END: (
        Row("R flag", "discard", _IDLE, "is_reflected", "discard"),
        Row("", "send ENDAK", _IDLE, "", "acknowledge_end"),
    ),
    Type.ENDAK: _discard(_IDLE),
    Type.SD: _REFUSE,
    Type.SDP: _REFUSE,
    Type.POLL: _REFUSE,
    Type.STAT: _discard(_IDLE),
    Type.USTAT: _discard(_IDLE),
}

_OUTGOING_CELLS: Cells = {
    Type.BEGIN: (
        _version(_OUTGOING),
        Row("", "send BGAK with C", _OUTGOING, "", "answer_crossing_begin"),
    ),
    Type.BGAK: (
        Row("own CSN as recipient, C flag", "learn the peer's numbers, send BGAK", _READY,
            "is_for_us_and_asks", "open_and_confirm"),
        Row("own CSN as recipient", "learn the peer's numbers", _READY, "is_for_us", "open"),
        Row("", "send END with A and R", _OUTGOING, "", "answer_stray_bgak"),
    ),
    Type.BGREJ: (
        Row("own CSN as recipient", "report failure", _IDLE, "is_for_us", "be_refused"),
        *_discard(_OUTGOING),
    ),
    Type.END: (
        Row("valid (section 5.6), no R flag", "send ENDAK, report failure", _IDLE,
            "is_valid_end", "be_aborted"),
        *_discard(_OUTGOING),
    ),
    **{kind: _discard(_OUTGOING) for kind in (
        Type.ENDAK, Type.SD, Type.SDP, Type.POLL, Type.STAT, Type.USTAT)},
}  # fmt: skip

_INCOMING_CELLS: Cells = {
    Type.BEGIN: (
        _version(_INCOMING),
        Row("peer's CSN", "send BGAK with C", _INCOMING, "is_of_peer", "ask_again"),
        Row("", "treat as in state idle, but ask in any case; what is pending stays", _INCOMING,
            "", "let_another_wait", again=True),
    ),
    Type.BGAK: (
        Row("both CSNs right", "hand over what is held; send BGAK if C flag", _READY,
            "has_both_csns", "be_confirmed"),
        *_discard(_INCOMING),
    ),
    Type.BGREJ: _discard(_INCOMING),
    Type.END: (
        Row("valid (section 5.6), R flag", "forget the connection", _IDLE,
            "is_valid_reflected_end", "forget"),
        Row("valid (section 5.6)", "send ENDAK, forget the connection", _IDLE,
            "is_valid_end", "acknowledge_and_forget"),
        *_discard(_INCOMING),
    ),
    Type.SD: _always(_INCOMING, "hold if numbered below ISS + 4", "hold"),
    Type.SDP: _always(
        _INCOMING, "hold if numbered below ISS + 4; send BGAK with C", "hold_and_ask_again"),
    Type.POLL: _always(_INCOMING, "send BGAK with C", "ask_again"),
    **{kind: _discard(_INCOMING) for kind in (Type.ENDAK, Type.STAT, Type.USTAT)},
}  # fmt: skip

_READY_CELLS: Cells = {
    Type.BEGIN: (
        _version(_READY),
        Row("peer's CSN", "send BGAK", _READY, "is_of_peer", "answer_begin_again"),
        Row("", "send a challenge", _READY, "", "challenge"),
    ),
    Type.BGAK: (
        Row("both CSNs right, C flag", "send BGAK", _READY, "has_both_csns_and_asks", "confirm"),
        Row("own CSN as recipient, newer CSN of the sender",
            "send END with A, reason 2, to it; report failure", _IDLE,
            "is_other_incarnation", "disown_other_incarnation"),
        *_discard(_READY),
    ),
    Type.BGREJ: _discard(_READY),
    Type.END: (
        Row("valid (section 5.6), R flag", "report failure", _IDLE,
            "is_valid_reflected_end", "be_disowned"),
        Row("R flag, only the tag known", "send a challenge", _READY, "is_hint", "challenge"),
        Row("valid, A flag", "send ENDAK, report failure", _IDLE, "is_valid_abort", "be_aborted"),
        Row("valid, own FIN below N(R), peer's FIN delivered", "send ENDAK, report success", _IDLE,
            "is_valid_completing_end", "be_released"),
        Row("valid", "send ENDAK, report failure", _IDLE, "is_valid_end", "be_aborted"),
        *_discard(_READY),
    ),
    Type.ENDAK: _discard(_READY),
    Type.SD: _always(_READY, "section 6.2", "take_sd"),
    Type.SDP: _always(_READY, "sections 6.2 and 6.3", "take_sdp"),
    Type.POLL: _always(_READY, "section 6.3", "answer_poll"),
    Type.STAT: _always(_READY, "section 6.4", "take_stat"),
    Type.USTAT: _always(_READY, "section 6.5", "take_ustat"),
}  # fmt: skip

_RELEASE_CELLS: Cells = {
    Type.BEGIN: (
        _version(_RELEASE),
        Row("newer CSN than the peer's", "treat as in state idle", None,
            "is_newer_begin", "forget", again=True),
        *_discard(_RELEASE),
    ),
    Type.END: (
        Row("valid (section 5.6), R flag", "nothing more is to be done", _IDLE,
            "is_valid_reflected_end", "forget"),
        Row("valid (section 5.6)", "send ENDAK", _IDLE, "is_valid_end", "acknowledge_and_forget"),
        *_discard(_RELEASE),
    ),
    Type.ENDAK: (
        Row("own CSN as recipient", "nothing more is to be done", _IDLE, "is_for_us", "forget"),
        *_discard(_RELEASE),
    ),
    Type.BGAK: (
        Row("own CSN as recipient, peer's CSN not known", "send END with A to it", _RELEASE,
            "tells_the_peer", "end_again_to_the_peer"),
        *_discard(_RELEASE),
    ),
    **{kind: _discard(_RELEASE) for kind in (
        Type.BGREJ, Type.SD, Type.SDP, Type.POLL, Type.STAT, Type.USTAT)},
}  # fmt: skip

CELLS: dict[State, Cells] = {
    _IDLE: IDLE_CELLS,
    _OUTGOING: _OUTGOING_CELLS,
    _INCOMING: _INCOMING_CELLS,
    _READY: _READY_CELLS,
    _RELEASE: _RELEASE_CELLS,
}
"""The whole table."""

TAGGED = frozenset({Type.SD, Type.SDP, Type.POLL, Type.STAT, Type.USTAT})
"""The packets whose tag is checked in states 3, 10 and 4 (section 4)."""
