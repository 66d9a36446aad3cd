"""What every packet does in every state of a connection (STP/1 section 9).

The rows are those of ``spec/bentpipe_spec/stp/states.toml``, word for word; a test compares
them. Those of the state idle are in :mod:`~bentpipe_reference.stp.idle`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from bentpipe_reference.stp import packets
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.states import Cells, Row, State, Table, cells, row

_IDLE, _OUTGOING, _INCOMING, _READY, _RELEASE = (
    State.IDLE, State.OUTGOING, State.INCOMING, State.READY, State.OUTGOING_RELEASE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """What all connections of an endpoint share.

    Attributes:
        guards: the conditions.
        actions: what is done.
        table: which of them apply in which state to which packet.
    """

    guards: Guards
    actions: Actions
    table: Table


def make_machine(guards: Guards, actions: Actions) -> Machine:
    """The state table with the methods of ``guards`` and ``actions``, for all states but idle."""
    # mypy takes the class's __hash__ for that of its instances.
    table = _table(type(guards), type(actions))  # type: ignore[arg-type]
    return Machine(guards, actions, table)


@cache
def _table(g: type[Guards], a: type[Actions]) -> Table:
    return {
        state: _cells(state, rows(g, a), g, a)
        for state, rows in (
            (_OUTGOING, _outgoing), (_INCOMING, _incoming), (_READY, _ready), (_RELEASE, _release)
        )
    }  # fmt: skip


def _cells(state: State, rows: Iterable[Row], g: type[Guards], a: type[Actions]) -> Cells:
    """The cells of a state: any version but 1 is refused, and what no row takes is discarded."""
    version = row(packets.Begin, "version other than 1", "send BGREJ, reason 4", state,
                  a.refuse_version, g.is_other_version)  # fmt: skip
    found = cells((version, *rows))
    for kind, cell in found.items():
        if not cell or cell[-1].when:
            cell.append(Row(kind, "", "discard", state, a.discard))
    return found


def _outgoing(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "", "send BGAK with C", _OUTGOING, a.answer_crossing_begin),
        row(packets.Bgak, "own CSN as recipient, C flag", "learn the peer's numbers, send BGAK",
            _READY, a.open_and_confirm, g.is_for_us_and_asks),
        row(packets.Bgak, "own CSN as recipient", "learn the peer's numbers", _READY, a.open,
            g.is_for_us),
        row(packets.Bgak, "", "send END with A and R", _OUTGOING, a.answer_stray_bgak),
        row(packets.Bgrej, "own CSN as recipient", "report failure", _IDLE, a.be_refused,
            g.is_for_us),
        row(packets.End, "valid (section 5.6), no R flag", "send ENDAK, report failure", _IDLE,
            a.be_aborted, g.is_valid_end),
    )  # fmt: skip


def _incoming(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "peer's CSN", "send BGAK with C", _INCOMING, a.ask_again, g.is_of_peer),
        row(packets.Begin, "", "treat as in state idle, but ask in any case; what is pending stays",
            _INCOMING, a.let_another_wait, again=True),
        row(packets.Bgak, "both CSNs right", "hand over what is held; send BGAK if C flag", _READY,
            a.be_confirmed, g.has_both_csns),
        row(packets.End, "valid (section 5.6), R flag", "forget the connection", _IDLE, a.forget,
            g.is_valid_reflected_end),
        row(packets.End, "valid (section 5.6)", "send ENDAK, forget the connection", _IDLE,
            a.acknowledge_and_forget, g.is_valid_end),
        row(packets.Sd, "", "hold if numbered below ISS + 4", _INCOMING, a.hold),
        row(packets.Sdp, "", "hold if numbered below ISS + 4; send BGAK with C", _INCOMING,
            a.hold_and_ask_again),
        row(packets.Poll, "", "send BGAK with C", _INCOMING, a.ask_again),
    )  # fmt: skip


def _ready(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "peer's CSN", "send BGAK", _READY, a.answer_begin_again, g.is_of_peer),
        row(packets.Begin, "", "send a challenge", _READY, a.challenge),
        row(packets.Bgak, "both CSNs right, C flag", "send BGAK", _READY, a.confirm,
            g.has_both_csns_and_asks),
        row(packets.Bgak, "own CSN as recipient, newer CSN of the sender",
            "send END with A, reason 2, to it; report failure", _IDLE, a.disown_other_incarnation,
            g.is_other_incarnation),
        row(packets.End, "valid (section 5.6), R flag", "report failure", _IDLE, a.be_disowned,
            g.is_valid_reflected_end),
        row(packets.End, "R flag, only the tag known", "send a challenge", _READY, a.challenge,
            g.is_hint),
        row(packets.End, "valid, A flag", "send ENDAK, report failure", _IDLE, a.be_aborted,
            g.is_valid_abort),
        row(packets.End, "valid, own FIN below N(R), peer's FIN delivered",
            "send ENDAK, report success", _IDLE, a.be_released, g.is_valid_completing_end),
        row(packets.End, "valid", "send ENDAK, report failure", _IDLE, a.be_aborted,
            g.is_valid_end),
        row(packets.Sd, "", "section 6.2", _READY, a.take_sd),
        row(packets.Sdp, "", "sections 6.2 and 6.3", _READY, a.take_sdp),
        row(packets.Poll, "", "section 6.3", _READY, a.answer_poll),
        row(packets.Stat, "", "section 6.4", _READY, a.take_stat),
        row(packets.Ustat, "", "section 6.5", _READY, a.take_ustat),
    )  # fmt: skip


def _release(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "newer CSN than the peer's", "treat as in state idle", None, a.forget,
            g.is_newer_begin, again=True),
        row(packets.End, "valid (section 5.6), R flag", "nothing more is to be done", _IDLE,
            a.forget, g.is_valid_reflected_end),
        row(packets.End, "valid (section 5.6)", "send ENDAK", _IDLE, a.acknowledge_and_forget,
            g.is_valid_end),
        row(packets.Endak, "own CSN as recipient", "nothing more is to be done", _IDLE, a.forget,
            g.is_for_us),
        row(packets.Bgak, "own CSN as recipient, peer's CSN not known", "send END with A to it",
            _RELEASE, a.end_again_to_the_peer, g.reveals_the_peer),
    )  # fmt: skip
