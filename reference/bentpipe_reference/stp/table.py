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

_IDLE, _OUTGOING, _READY, _RELEASE = (
    State.IDLE, State.OUTGOING, State.READY, State.OUTGOING_RELEASE,
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
    # For mypy a class is not hashable whose instances might not be.
    table = _table(type(guards), type(actions))  # type: ignore[arg-type]
    return Machine(guards, actions, table)


@cache
def _table(g: type[Guards], a: type[Actions]) -> Table:
    """Made once for these classes, as every endpoint of a campaign asks for it."""
    return {
        state: _cells(state, rows(g, a), g, a)
        for state, rows in (
            (_OUTGOING, _outgoing), (_READY, _ready), (_RELEASE, _release)
        )
    }  # fmt: skip


def _cells(state: State, rows: Iterable[Row], g: type[Guards], a: type[Actions]) -> Cells:
    """The cells of a state: any version but 2 is refused, and what no row takes is discarded."""
    version = row(packets.Begin, "version other than 2", "send BGREJ, reason 4", state,
                  a.refuse_version, g.is_other_version)  # fmt: skip
    found = cells((version, *rows))
    for kind, cell in found.items():
        if not cell or cell[-1].when:
            cell.append(Row(kind, "", "discard", state, a.discard))
    return found


def _outgoing(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "", "send BGREJ, reason 3", _OUTGOING, a.refuse_call),
        row(packets.Bgak, "CSN of the recipient not own", "send END with A and R", _OUTGOING,
            a.answer_stray_bgak, g.is_for_another),
        row(packets.Bgak, "N(R) below ISS or above VT(S)", "discard", _OUTGOING, a.discard,
            g.is_impossible),
        row(packets.Bgak, "",
            "learn the peer's numbers and cookie; poll if SDs are unacknowledged", _READY, a.open),
        row(packets.Bgrej, "CSN of the recipient not own", "discard", _OUTGOING, a.discard,
            g.is_for_another),
        row(packets.Bgrej, "reason 6, with a cookie, not the sixth", "call anew", _OUTGOING,
            a.call_anew, g.gives_cookie),
        row(packets.Bgrej, "", "report failure", _IDLE, a.be_refused),
        row(packets.End, "not valid", "discard", _OUTGOING, a.discard, g.is_not_valid),
        row(packets.End, "R flag", "report failure", _IDLE, a.be_disowned, g.is_reflected),
        row(packets.End, "", "send ENDAK, report failure", _IDLE, a.be_aborted),
    )  # fmt: skip


def _ready(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "peer's CSN, and the peer called", "send BGAK with a cookie", _READY,
            a.answer_begin_again, g.is_repeated),
        row(packets.Begin, "would open in state 1",
            "report failure unless complete; as in state 1", _READY, a.give_way, g.would_open,
            again=True),
        row(packets.Begin, "", "as in state 1", _READY, a.stay, again=True),
        row(packets.End, "not valid", "discard", _READY, a.discard, g.is_not_valid),
        row(packets.End, "R flag", "report failure unless complete", _IDLE, a.be_disowned,
            g.is_reflected),
        row(packets.End, "A flag", "send ENDAK, report failure unless complete", _IDLE,
            a.be_aborted, g.is_abort),
        row(packets.End, "N(R) above own FIN, peer's FIN delivered", "send ENDAK, report success",
            _IDLE, a.be_released, g.completes),
        row(packets.End, "", "send ENDAK, report failure", _IDLE, a.be_aborted),
        row(packets.Sd, "", "section 6.2", _READY, a.take_sd),
        row(packets.Sdp, "N(PS) 0, or CSN not the peer's", "discard", _READY, a.discard,
            g.is_bad_poll),
        row(packets.Sdp, "", "sections 6.2 and 6.3", _READY, a.take_sdp),
        row(packets.Poll, "N(PS) 0, or CSN not the peer's", "discard", _READY, a.discard,
            g.is_bad_poll),
        row(packets.Poll, "", "section 6.3", _READY, a.answer_poll),
        row(packets.Stat, "invalid (STP-DT-023) or old (STP-DT-007)", "discard", _READY,
            a.discard_report, g.is_bad_report),
        row(packets.Stat, "", "section 6.4", _READY, a.take_stat),
        row(packets.Ustat, "invalid (STP-DT-023)", "discard", _READY, a.discard_report,
            g.is_bad_report),
        row(packets.Ustat, "", "section 6.4", _READY, a.take_ustat),
    )  # fmt: skip


def _release(g: type[Guards], a: type[Actions]) -> Iterable[Row]:
    return (
        row(packets.Begin, "peer's CSN", "discard", _RELEASE, a.discard, g.is_of_peer),
        row(packets.Begin, "would open in state 1", "as in state 1", _READY, a.give_way,
            g.would_open, again=True),
        row(packets.Begin, "", "as in state 1", _RELEASE, a.stay, again=True),
        row(packets.End, "not valid", "discard", _RELEASE, a.discard, g.is_not_valid),
        row(packets.End, "R flag", "nothing more", _IDLE, a.discard, g.is_reflected),
        row(packets.End, "", "send ENDAK", _IDLE, a.acknowledge),
        row(packets.Endak, "own CSN as recipient", "nothing more", _IDLE, a.discard, g.is_for_us),
    )  # fmt: skip
