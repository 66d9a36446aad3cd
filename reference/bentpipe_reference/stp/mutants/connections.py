"""Mutants of connections: calling, being called, identity (STP-CC)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.csn import CsnGenerator
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Arrival, Idle, Unanswered
from bentpipe_reference.stp.mutants import add, mutant, overriding, returning
from bentpipe_reference.stp.packets import Begin, Bgak, End, Flags, Poll, Reason
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import PACKET_MASK, TAG_MASK
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Variables

mutant("stp-ignores-tags", "STP-CC-001", "takes packets with a wrong tag")(
    returning(Guards, Guards.tag_is_right, True)
)


@mutant("stp-takes-early-credit", breaks="STP-CC-002", initial_window=10)
class TakesEarlyCredit(Sender):
    """Sends eight SDs before the BGAK."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.vt_ms = self.iss + 8

    def restart(self, iss: int) -> None:
        super().restart(iss)
        self.vt_ms = iss + 8


mutant("stp-counts-down", "STP-CC-010", "chooses an older CSN for each connection")(
    overriding(CsnGenerator, CsnGenerator.step, lambda self: -CsnGenerator.step(self))
)


mutant("stp-begins-below-the-half", "STP-CC-011", "draws ISSs of 23 bits")(
    overriding(CsnGenerator, CsnGenerator.iss, lambda self: self._random.getrandbits(23))
)
add("stp-begins-at-a-thousand", "STP-CC-011", "begins every stream with the same number", iss=1000)


@mutant("stp-acknowledges-no-begin", breaks="STP-CC-012")
class AcknowledgesNoBegin(Actions):
    """Sends its BGAK as if the BEGIN had carried nothing."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        return replace(super().bgak(v, now), n_r=v.incoming.iss & PACKET_MASK)


@mutant("stp-acknowledges-too-much", breaks="STP-CC-012")
class AcknowledgesTooMuch(Actions):
    """Sends its BGAK as if one more SD had arrived."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        bgak = super().bgak(v, now)
        return replace(bgak, n_r=bgak.n_r + 1 & PACKET_MASK)


@mutant("stp-opens-late", breaks="STP-CC-012")
class OpensLate(Actions):
    """Answers only the second BEGIN."""

    def take_call(self, v: Variables, begin: Begin, now: float) -> None:
        super().take_call(v, begin, now)
        v.outbox.clear()


@mutant("stp-changes-its-begin", breaks="STP-CC-014")
class ChangesItsBegin(Actions):
    """Repeats its BEGIN with another credit."""

    def repeat_begin(self, v: Variables, now: float) -> None:
        if v.begin is not None and v.transmissions:
            v.begin = replace(v.begin, n_mr=v.config.credit // 2)
        super().repeat_begin(v, now)


mutant("stp-answers-begin-once", "STP-CC-015", "does not answer a repeated BEGIN")(
    returning(Actions, Actions.answer_begin_again, None)
)


@mutant("stp-starts-again", breaks="STP-CC-015")
class StartsAgain(Actions):
    """Acknowledges nothing after a repeated BEGIN."""

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        self.put(v, replace(self.bgak(v, now), n_r=begin.iss))


@mutant("stp-announces-with-its-bgak", breaks="STP-CC-015")
class AnnouncesWithItsBgak(Actions):
    """Gives more credit in a repeated BGAK."""

    def answer_begin_again(self, v: Variables, begin: Begin, now: float) -> None:
        bgak = self.bgak(v, now)
        self.put(v, replace(bgak, n_mr=bgak.n_mr + 8 & PACKET_MASK))


@mutant("stp-calls-without-backoff", breaks="STP-CC-016")
class CallsWithoutBackoff(Actions):
    """Repeats its BEGIN every second."""

    def wait_cc(self, v: Variables, transmissions: int) -> float:
        return super().wait_cc(v, 0 if v.state is State.OUTGOING else transmissions)


@mutant("stp-calls-too-often", breaks="STP-CC-016")
class CallsTooOften(Actions):
    """Sends its BEGIN six times."""

    def max_cc(self, v: Variables) -> int:
        return super().max_cc(v) + (v.state is State.OUTGOING)


@mutant("stp-calls-on", breaks="STP-CC-016")
class CallsOn(Connection):
    """Repeats a BEGIN that has been answered."""

    def advance(self, now: float) -> None:
        if self.state is State.READY and now >= self.timer_cc:
            self.machine.actions.repeat_begin(self, now)
        super().advance(now)

    def next_deadline(self) -> float:
        ready = self.state is State.READY
        return min(super().next_deadline(), self.timer_cc if ready else math.inf)


mutant("stp-refuses-nobody", "STP-CC-019", "does not answer where nobody listens")(
    returning(Idle, Idle.refuse_port, None)
)


@mutant("stp-blames-resources", breaks="STP-CC-019")
class BlamesResources(Idle):
    """Refuses another version with reason 5."""

    def refuse_version(self, arrival: Arrival, begin: Begin) -> None:
        self._refuse(arrival, begin, Reason.RESOURCES)


@mutant("stp-leaves-polls-alone", breaks="STP-CC-020")
class LeavesPollsAlone(Idle):
    """Discards POLLs without a connection."""

    def answer_unknown(self, arrival: Arrival, packet: Unanswered) -> None:
        if not isinstance(packet, Poll):
            super().answer_unknown(arrival, packet)


@mutant("stp-names-no-csns", breaks="STP-CC-020")
class NamesNoCsns(Idle):
    """Answers a stray BGAK without its CSNs."""

    def end_for(self, packet: Unanswered) -> End:
        end = super().end_for(packet)
        return replace(end, csn=0, tag=0) if isinstance(packet, Bgak) else end


@mutant("stp-names-only-tags", breaks="STP-CC-020")
class NamesOnlyTags(Idle):
    """Answers a stray POLL with its tag in the place of its CSN."""

    def end_for(self, packet: Unanswered) -> End:
        end = super().end_for(packet)
        return replace(end, peer_csn=packet.tag) if isinstance(packet, Poll) else end


@mutant("stp-believes-tags", breaks="STP-CC-021")
class BelievesTags(Guards):
    """Ends a connection for an END with R flag that names only the tag."""

    def is_valid(self, v: Variables, end: End) -> bool:
        hint = end.flags & Flags.R and end.csn == 0 and end.peer_csn == v.csn & TAG_MASK
        return bool(hint) or super().is_valid(v, end)


@mutant("stp-wants-both-csns", breaks="STP-CC-021")
class WantsBothCsns(Guards):
    """Discards an END with R flag whose sender names no CSN of its own."""

    def is_valid(self, v: Variables, end: End) -> bool:
        return super().is_valid(v, end) and not (end.flags & Flags.R and end.csn == 0)


@mutant("stp-gives-little-credit", breaks="STP-CC-029")
class GivesLittleCredit(Actions):
    """Permits two SDs in its BGAK."""

    def bgak(self, v: Variables, now: float) -> Bgak:
        return replace(super().bgak(v, now), n_mr=v.incoming.iss + 2 & PACKET_MASK)
