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
from bentpipe_reference.stp.packets import Begin, Bgak, End, Flags, Packet, Poll, Reason
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import CSN_HALF, CSN_MASK, PACKET_MASK
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


@mutant("stp-hands-over-early", breaks="STP-CC-003")
class HandsOverEarly(Actions):
    """Delivers a stranger's data before the confirmation."""

    def take_call(
        self, v: Variables, begin: Begin, octets: int, now: float, *, confirmed: bool
    ) -> None:
        super().take_call(v, begin, octets, now, confirmed=confirmed)
        for number, (data, fin) in v.early.items():
            self.receive_sd(v, number, data, fin, now)


@mutant("stp-trusts-addresses", breaks="STP-CC-003")
class TrustsAddresses(Idle):
    """Accepts any CSN of an address it knows."""

    def may_accept(self, arrival: Arrival, begin: Begin) -> bool:
        far = replace(begin, csn=begin.csn + CSN_HALF & CSN_MASK)
        return super().may_accept(arrival, begin) or super().may_accept(arrival, far)


@mutant("stp-confirms-new-number", breaks="STP-CC-007")
class ConfirmsNewNumber(Actions):
    """Confirms the number of another incarnation."""

    def disown_other_incarnation(self, v: Variables, bgak: Bgak, now: float) -> None:
        self.put(v, replace(self.bgak(v, 0), peer_csn=bgak.csn))


mutant("stp-counts-down", "STP-CC-010", "chooses an older CSN for each connection")(
    overriding(CsnGenerator, CsnGenerator.step, lambda self: -CsnGenerator.step(self))
)


add("stp-begins-at-a-thousand", "STP-CC-011", "begins every stream with the same number", iss=1000)


@mutant("stp-keeps-pending-call", breaks="STP-CC-012")
class KeepsPendingCall(Connection):
    """Discards another BEGIN while one is pending."""

    def receive(self, packet: Packet, octets: int, now: float) -> bool:
        pending = self.state is State.INCOMING
        if pending and isinstance(packet, Begin) and packet.csn != self.peer_csn:
            return False
        return super().receive(packet, octets, now)


mutant("stp-asks-everybody", "STP-CC-013", "asks known callers for confirmation")(
    returning(Idle, Idle.may_accept, False)
)


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
        self.put(v, self.bgak_of(v, 0, begin.csn, begin.iss + v.config.credit, begin.iss))


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


class _KeepsTimer(Actions):
    def open(self, v: Variables, bgak: Bgak, now: float) -> None:
        timer = v.timer_cc
        super().open(v, bgak, now)
        v.timer_cc = timer


@mutant("stp-calls-on", breaks="STP-CC-016", also=(_KeepsTimer,))
class CallsOn(Connection):
    """Repeats a BEGIN that has been answered."""

    def advance(self, now: float) -> None:
        if self.state is State.READY and now >= self.timer_cc:
            self.machine.actions.repeat_begin(self, now)
        super().advance(now)

    def next_deadline(self) -> float:
        ready = self.state is State.READY
        return min(super().next_deadline(), self.timer_cc if ready else math.inf)


mutant("stp-leaves-questions", "STP-CC-017", "does not answer a BGAK that asks")(
    returning(Actions, Actions.confirm, None)
)


@mutant("stp-ignores-other-calls", breaks="STP-CC-018")
class IgnoresOtherCalls(Actions):
    """Discards the BEGIN of another connection."""

    def challenge(self, v: Variables, packet: Begin | End, now: float) -> None:
        if not isinstance(packet, Begin):
            super().challenge(v, packet, now)


@mutant("stp-challenges-always", breaks="STP-CC-018")
class ChallengesAlways(Actions):
    """Challenges every BEGIN."""

    def challenge(self, v: Variables, packet: Begin | End, now: float) -> None:
        if isinstance(packet, Begin):
            self.put(v, self.bgak(v, Flags.C))
        else:
            super().challenge(v, packet, now)


@mutant("stp-yields-to-callers", breaks="STP-CC-018")
class YieldsToCallers(Actions):
    """Ends a connection for the BEGIN of another."""

    def challenge(self, v: Variables, packet: Begin | End, now: float) -> None:
        if isinstance(packet, Begin):
            self.send_end(v, self.end(v, Flags.A, Reason.NO_CONNECTION), now)
            self.fail(v, "the peer calls again", Reason.NO_CONNECTION, now)
        else:
            super().challenge(v, packet, now)


mutant("stp-refuses-nobody", "STP-CC-019", "does not answer where nobody listens")(
    returning(Idle, Idle.refuse_port, None)
)


@mutant("stp-blames-resources", breaks="STP-CC-019")
class BlamesResources(Idle):
    """Refuses another version with reason 5."""

    def refuse_version(self, arrival: Arrival, begin: Begin) -> None:
        self.refuse(arrival, begin, Reason.RESOURCES)


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


@mutant("stp-believes-hints", breaks="STP-CC-021")
class BelievesHints(Guards):
    """Ends a connection for the tag alone."""

    def is_valid_reflected_end(self, v: Variables, end: End) -> bool:
        return super().is_valid_reflected_end(v, end) or self.is_hint(v, end)


mutant("stp-ignores-hints", "STP-CC-021", "does not challenge an END that names the tag")(
    returning(Guards, Guards.is_hint, False)
)


@mutant("stp-gives-little-credit", breaks="STP-CC-029")
class GivesLittleCredit(Actions):
    """Permits two SDs in its BGAK."""

    def bgak(self, v: Variables, flags: int) -> Bgak:
        right = super().bgak(v, flags)
        assert v.receiver is not None
        return replace(right, n_mr=v.receiver.iss + 2 & PACKET_MASK)


mutant("stp-does-not-make-sure", "STP-CC-030", "does not poll after its confirmation")(
    returning(Guards, Guards.must_be_heard, False)
)
