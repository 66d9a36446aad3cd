"""What every packet does in every state of a connection (STP/1 section 9).

The rows are those of ``spec/bentpipe_spec/stp/states.toml``, word for word; a test compares
them. Those of the state idle are in :mod:`~bentpipe_reference.stp.idle`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Packet,
    Poll,
    Sd,
    Sdp,
    Stat,
    Ustat,
)
from bentpipe_reference.stp.states import Cells, Row, State, Table, always
from bentpipe_reference.stp.variables import Variables

_P = TypeVar("_P", bound=Packet)
_Row = Row[Callable[[Variables, _P], bool], Callable[[Variables, _P, float], None]]


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
    """The state table with the functions of ``guards`` and ``actions``, for all states but idle."""
    g, a = guards, actions
    tables = (_outgoing(g, a), _incoming(g, a), _ready(g, a), _release(g, a))
    return Machine(g, a, dict(zip(_STATES, tables, strict=True)))


_STATES = _OUTGOING, _INCOMING, _READY, _RELEASE = (
    State.OUTGOING,
    State.INCOMING,
    State.READY,
    State.OUTGOING_RELEASE,
)


def _cell(kind: type[_P], *rows: _Row[_P]) -> Cells:
    return {kind.type: rows}


def _discarded(a: Actions, state: State) -> Cells:
    """Cells that discard every packet, to be overridden."""
    kinds = (Begin, Bgak, Bgrej, End, Endak, Sd, Sdp, Poll, Stat, Ustat)
    return {kind.type: (Row("", "discard", state, always, a.discard),) for kind in kinds}


def _version(g: Guards, a: Actions, state: State) -> _Row[Begin]:
    return Row(
        "version other than 1", "send BGREJ, reason 4", state, g.is_other_version, a.refuse_version
    )


def _outgoing(g: Guards, a: Actions) -> Cells:
    discard = Row("", "discard", _OUTGOING, always, a.discard)
    return _discarded(a, _OUTGOING) | {
        **_cell(
            Begin,
            _version(g, a, _OUTGOING),
            Row("", "send BGAK with C", _OUTGOING, always, a.answer_crossing_begin),
        ),
        **_cell(
            Bgak,
            Row("own CSN as recipient, C flag", "learn the peer's numbers, send BGAK", _READY,
                g.is_for_us_and_asks, a.open_and_confirm),
            Row("own CSN as recipient", "learn the peer's numbers", _READY, g.is_for_us, a.open),
            Row("", "send END with A and R", _OUTGOING, always, a.answer_stray_bgak),
        ),
        **_cell(
            Bgrej,
            Row("own CSN as recipient", "report failure", State.IDLE, g.is_for_us, a.be_refused),
            discard,
        ),
        **_cell(
            End,
            Row("valid (section 5.6), no R flag", "send ENDAK, report failure", State.IDLE,
                g.is_valid_end, a.be_aborted),
            discard,
        ),
    }  # fmt: skip


def _incoming(g: Guards, a: Actions) -> Cells:
    discard = Row("", "discard", _INCOMING, always, a.discard)
    return _discarded(a, _INCOMING) | {
        **_cell(
            Begin,
            _version(g, a, _INCOMING),
            Row("peer's CSN", "send BGAK with C", _INCOMING, g.is_of_peer, a.ask_again),
            Row("", "treat as in state idle, but ask in any case; what is pending stays",
                _INCOMING, always, a.let_another_wait, again=True),
        ),
        **_cell(
            Bgak,
            Row("both CSNs right", "hand over what is held; send BGAK if C flag", _READY,
                g.has_both_csns, a.be_confirmed),
            discard,
        ),
        **_cell(
            End,
            Row("valid (section 5.6), R flag", "forget the connection", State.IDLE,
                g.is_valid_reflected_end, a.forget),
            Row("valid (section 5.6)", "send ENDAK, forget the connection", State.IDLE,
                g.is_valid_end, a.acknowledge_and_forget),
            discard,
        ),
        **_cell(Sd, Row("", "hold if numbered below ISS + 4", _INCOMING, always, a.hold)),
        **_cell(
            Sdp,
            Row("", "hold if numbered below ISS + 4; send BGAK with C", _INCOMING, always,
                a.hold_and_ask_again),
        ),
        **_cell(Poll, Row("", "send BGAK with C", _INCOMING, always, a.ask_again)),
    }  # fmt: skip


def _ready(g: Guards, a: Actions) -> Cells:
    discard = Row("", "discard", _READY, always, a.discard)
    return _discarded(a, _READY) | {
        **_cell(
            Begin,
            _version(g, a, _READY),
            Row("peer's CSN", "send BGAK", _READY, g.is_of_peer, a.answer_begin_again),
            Row("", "send a challenge", _READY, always, a.challenge),
        ),
        **_cell(
            Bgak,
            Row("both CSNs right, C flag", "send BGAK", _READY,
                g.has_both_csns_and_asks, a.confirm),
            Row("own CSN as recipient, newer CSN of the sender",
                "send END with A, reason 2, to it; report failure", State.IDLE,
                g.is_other_incarnation, a.disown_other_incarnation),
            discard,
        ),
        **_cell(
            End,
            Row("valid (section 5.6), R flag", "report failure", State.IDLE,
                g.is_valid_reflected_end, a.be_disowned),
            Row("R flag, only the tag known", "send a challenge", _READY, g.is_hint, a.challenge),
            Row("valid, A flag", "send ENDAK, report failure", State.IDLE,
                g.is_valid_abort, a.be_aborted),
            Row("valid, own FIN below N(R), peer's FIN delivered", "send ENDAK, report success",
                State.IDLE, g.is_valid_completing_end, a.be_released),
            Row("valid", "send ENDAK, report failure", State.IDLE, g.is_valid_end, a.be_aborted),
            discard,
        ),
        **_cell(Sd, Row("", "section 6.2", _READY, always, a.take_sd)),
        **_cell(Sdp, Row("", "sections 6.2 and 6.3", _READY, always, a.take_sdp)),
        **_cell(Poll, Row("", "section 6.3", _READY, always, a.answer_poll)),
        **_cell(Stat, Row("", "section 6.4", _READY, always, a.take_stat)),
        **_cell(Ustat, Row("", "section 6.5", _READY, always, a.take_ustat)),
    }  # fmt: skip


def _release(g: Guards, a: Actions) -> Cells:
    discard = Row("", "discard", _RELEASE, always, a.discard)
    return _discarded(a, _RELEASE) | {
        **_cell(
            Begin,
            _version(g, a, _RELEASE),
            Row("newer CSN than the peer's", "treat as in state idle", None,
                g.is_newer_begin, a.forget, again=True),
            discard,
        ),
        **_cell(
            End,
            Row("valid (section 5.6), R flag", "nothing more is to be done", State.IDLE,
                g.is_valid_reflected_end, a.forget),
            Row("valid (section 5.6)", "send ENDAK", State.IDLE,
                g.is_valid_end, a.acknowledge_and_forget),
            discard,
        ),
        **_cell(
            Endak,
            Row("own CSN as recipient", "nothing more is to be done", State.IDLE,
                g.is_for_us, a.forget),
            discard,
        ),
        **_cell(
            Bgak,
            Row("own CSN as recipient, peer's CSN not known", "send END with A to it", _RELEASE,
                g.reveals_the_peer, a.end_again_to_the_peer),
            discard,
        ),
    }  # fmt: skip
