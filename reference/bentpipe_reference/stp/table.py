"""What every packet does in every state of a connection (STP/1 section 9).

The rows are those of ``spec/bentpipe_spec/stp/states.toml``, word for word; a test compares
them. Those of the state idle are in :mod:`~bentpipe_reference.stp.idle`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

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
    Type,
    Ustat,
)
from bentpipe_reference.stp.states import Cells, Row, State, Table, always
from bentpipe_reference.stp.variables import Variables

_P = TypeVar("_P", bound=Packet)
_Rows = tuple[tuple[Type, Row[Any, Any]], ...]


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
    rows = {
        _OUTGOING: _outgoing(guards, actions),
        _INCOMING: _incoming(guards, actions),
        _READY: _ready(guards, actions),
        _RELEASE: _release(guards, actions),
    }
    table = {state: _cells(state, found, guards, actions) for state, found in rows.items()}
    return Machine(guards, actions, table)


_IDLE, _OUTGOING, _INCOMING, _READY, _RELEASE = (
    State.IDLE, State.OUTGOING, State.INCOMING, State.READY, State.OUTGOING_RELEASE,
)  # fmt: skip


def _cells(state: State, rows: _Rows, g: Guards, a: Actions) -> Cells:
    """The cells of a state: any version but 1 is refused, and what no row takes is discarded."""
    version = _row(
        Begin, "version other than 1", "send BGREJ, reason 4", state,
        g.is_other_version, a.refuse_version,
    )  # fmt: skip
    found: dict[Type, list[Row[Any, Any]]] = {kind: [] for kind in Type}
    for kind, row in (version, *rows):
        found[kind].append(row)
    for cell in found.values():
        if not cell or cell[-1].when:
            cell.append(Row("", "discard", state, always, a.discard))
    return {kind: tuple(cell) for kind, cell in found.items()}


def _row(
    kind: type[_P], when: str, do: str, after: State | None,
    guard: Callable[[Variables, _P], bool], action: Callable[[Variables, _P, float], None],
    *, again: bool = False,
) -> tuple[Type, Row[Any, Any]]:  # fmt: skip
    """A row whose guard and action take packets of the type whose cell it stands in."""
    return kind.type, Row(when, do, after, guard, action, again)


def _outgoing(g: Guards, a: Actions) -> _Rows:
    return (
        _row(Begin, "", "send BGAK with C", _OUTGOING, always, a.answer_crossing_begin),
        _row(Bgak, "own CSN as recipient, C flag", "learn the peer's numbers, send BGAK", _READY,
             g.is_for_us_and_asks, a.open_and_confirm),
        _row(Bgak, "own CSN as recipient", "learn the peer's numbers", _READY,
             g.is_for_us, a.open),
        _row(Bgak, "", "send END with A and R", _OUTGOING, always, a.answer_stray_bgak),
        _row(Bgrej, "own CSN as recipient", "report failure", _IDLE, g.is_for_us, a.be_refused),
        _row(End, "valid (section 5.6), no R flag", "send ENDAK, report failure", _IDLE,
             g.is_valid_end, a.be_aborted),
    )  # fmt: skip


def _incoming(g: Guards, a: Actions) -> _Rows:
    return (
        _row(Begin, "peer's CSN", "send BGAK with C", _INCOMING, g.is_of_peer, a.ask_again),
        _row(Begin, "", "treat as in state idle, but ask in any case; what is pending stays",
             _INCOMING, always, a.let_another_wait, again=True),
        _row(Bgak, "both CSNs right", "hand over what is held; send BGAK if C flag", _READY,
             g.has_both_csns, a.be_confirmed),
        _row(End, "valid (section 5.6), R flag", "forget the connection", _IDLE,
             g.is_valid_reflected_end, a.forget),
        _row(End, "valid (section 5.6)", "send ENDAK, forget the connection", _IDLE,
             g.is_valid_end, a.acknowledge_and_forget),
        _row(Sd, "", "hold if numbered below ISS + 4", _INCOMING, always, a.hold),
        _row(Sdp, "", "hold if numbered below ISS + 4; send BGAK with C", _INCOMING,
             always, a.hold_and_ask_again),
        _row(Poll, "", "send BGAK with C", _INCOMING, always, a.ask_again),
    )  # fmt: skip


def _ready(g: Guards, a: Actions) -> _Rows:
    return (
        _row(Begin, "peer's CSN", "send BGAK", _READY, g.is_of_peer, a.answer_begin_again),
        _row(Begin, "", "send a challenge", _READY, always, a.challenge),
        _row(Bgak, "both CSNs right, C flag", "send BGAK", _READY,
             g.has_both_csns_and_asks, a.confirm),
        _row(Bgak, "own CSN as recipient, newer CSN of the sender",
             "send END with A, reason 2, to it; report failure", _IDLE,
             g.is_other_incarnation, a.disown_other_incarnation),
        _row(End, "valid (section 5.6), R flag", "report failure", _IDLE,
             g.is_valid_reflected_end, a.be_disowned),
        _row(End, "R flag, only the tag known", "send a challenge", _READY,
             g.is_hint, a.challenge),
        _row(End, "valid, A flag", "send ENDAK, report failure", _IDLE,
             g.is_valid_abort, a.be_aborted),
        _row(End, "valid, own FIN below N(R), peer's FIN delivered", "send ENDAK, report success",
             _IDLE, g.is_valid_completing_end, a.be_released),
        _row(End, "valid", "send ENDAK, report failure", _IDLE, g.is_valid_end, a.be_aborted),
        _row(Sd, "", "section 6.2", _READY, always, a.take_sd),
        _row(Sdp, "", "sections 6.2 and 6.3", _READY, always, a.take_sdp),
        _row(Poll, "", "section 6.3", _READY, always, a.answer_poll),
        _row(Stat, "", "section 6.4", _READY, always, a.take_stat),
        _row(Ustat, "", "section 6.5", _READY, always, a.take_ustat),
    )  # fmt: skip


def _release(g: Guards, a: Actions) -> _Rows:
    return (
        _row(Begin, "newer CSN than the peer's", "treat as in state idle", None,
             g.is_newer_begin, a.forget, again=True),
        _row(End, "valid (section 5.6), R flag", "nothing more is to be done", _IDLE,
             g.is_valid_reflected_end, a.forget),
        _row(End, "valid (section 5.6)", "send ENDAK", _IDLE,
             g.is_valid_end, a.acknowledge_and_forget),
        _row(Endak, "own CSN as recipient", "nothing more is to be done", _IDLE,
             g.is_for_us, a.forget),
        _row(Bgak, "own CSN as recipient, peer's CSN not known", "send END with A to it", _RELEASE,
             g.reveals_the_peer, a.end_again_to_the_peer),
    )  # fmt: skip
