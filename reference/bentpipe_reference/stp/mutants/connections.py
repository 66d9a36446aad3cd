"""Mutants of connections: calling, being called, identity, release (STP-CC)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.csn import CsnGenerator
from bentpipe_reference.stp.mutants.hosts import with_parts
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    End,
    Flags,
    Packet,
    Poll,
    Reason,
    Sd,
    Sdp,
)
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_MASK
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.without import WithoutConnection

_HALF = 1 << 31


# Calling


class TakesEarlyCredit(Sender):
    """Grants itself eight early SDs."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.vt_ms = self.iss + 8


class ChangesItsBegin(Connection):
    """Repeats its BEGIN with half the credit."""

    def _repeat_begin(self, now: float) -> None:
        if self._begin is not None and self._transmissions:
            self._begin = replace(self._begin, n_mr=self.config.credit // 2)
        super()._repeat_begin(now)


class CallsWithoutBackoff(Connection):
    """Repeats its BEGIN every second."""

    def timer_cc(self, transmissions: int) -> float:
        return super().timer_cc(0 if self.state is State.OUTGOING else transmissions)


class CallsTooOften(Connection):
    """Sends its BEGIN six times."""

    def max_cc(self) -> int:
        return super().max_cc() + (self.state is State.OUTGOING)


class CallsOn(Connection):
    """Goes on repeating its BEGIN when it has been answered."""

    def open(self, bgak: Bgak, now: float) -> None:
        timer = self._timer_cc
        super().open(bgak, now)
        self._timer_cc = timer

    def advance(self, now: float) -> None:
        if self.state is State.READY and now >= self._timer_cc:
            self._repeat_begin(now)
        super().advance(now)

    def next_deadline(self) -> float:
        ready = self.state is State.READY
        return min(super().next_deadline(), self._timer_cc if ready else math.inf)


class DoesNotMakeSure(Connection):
    """Takes its confirmation for heard."""

    def must_be_heard(self, bgak: Bgak) -> bool:
        return False


# Being called


class HandsOverEarly(Connection):
    """Delivers the data of a stranger's BEGIN at once."""

    def take_call(self, begin: Begin, octets: int, now: float, *, confirmed: bool) -> None:
        super().take_call(begin, octets, now, confirmed=confirmed)
        for number, (data, fin) in self._early.items():
            self._receive_sd(number, data, fin, now)


class TrustsAddresses(WithoutConnection):
    """Accepts any CSN of an address it knows."""

    def may_accept(self, begin: Begin, peer: tuple[Any, ...], now: float) -> bool:
        far = replace(begin, csn=begin.csn + _HALF & CSN_MASK)
        return any(self._listener.is_known(peer, item, now) for item in (begin, far))


class AsksEverybody(WithoutConnection):
    """Knows nobody."""

    def may_accept(self, begin: Begin, peer: tuple[Any, ...], now: float) -> bool:
        return False


class KeepsPendingCall(Connection):
    """Lets another call from the same port wait until the pending one is forgotten."""

    def receive(self, packet: Packet, octets: int, now: float) -> bool:
        pending = self.state is State.INCOMING
        if pending and isinstance(packet, Begin) and packet.csn != self.peer_csn:
            return False
        return super().receive(packet, octets, now)


class AnswersBeginOnce(Connection):
    """Does not answer a repeated BEGIN on an open connection."""

    def answer_begin_again(self, begin: Begin, now: float) -> None: ...


class StartsAgain(Connection):
    """Takes a repeated BEGIN for a new beginning and acknowledges nothing."""

    def answer_begin_again(self, begin: Begin, now: float) -> None:
        self.put(self._bgak(0, begin.csn, begin.iss + self.config.credit, begin.iss))


class RefusesNobody(WithoutConnection):
    """Leaves BEGINs to a port where nobody listens without an answer."""

    def refuse_port(self, begin: Begin, peer: tuple[Any, ...], now: float) -> None: ...


class BlamesResources(WithoutConnection):
    """Refuses another version for want of resources."""

    def refuse_version(self, begin: Begin, peer: tuple[Any, ...], now: float) -> None:
        self.refuse(begin, peer, Reason.RESOURCES, now)


class GivesLittleCredit(Connection):
    """Permits two SDs in its BGAKs."""

    def bgak(self, flags: int) -> Bgak:
        right = super().bgak(flags)
        assert self.receiver is not None
        return replace(right, n_mr=self.receiver.iss + 2 & PACKET_MASK)


# Which connection


class IgnoresTags(Connection):
    """Takes every tag for right."""

    def tag_is_right(self, tag: int) -> bool:
        return True


class ConfirmsNewNumber(Connection):
    """Confirms the number of the peer's next incarnation."""

    def disown_other_incarnation(self, bgak: Bgak, now: float) -> None:
        self.put(replace(self.bgak(0), peer_csn=bgak.csn))


class CountsDown(CsnGenerator):
    """Each CSN is older than the one before."""

    def step(self) -> int:
        return -super().step()


class LeavesQuestions(Connection):
    """Does not answer a BGAK with C flag once the connection is open."""

    def confirm(self, bgak: Bgak, now: float) -> None: ...


class IgnoresOtherCalls(Connection):
    """Discards the BEGIN of another connection."""

    def challenge(self, packet: Begin | End, now: float) -> None:
        if not isinstance(packet, Begin):
            super().challenge(packet, now)


class ChallengesAlways(Connection):
    """Sends a challenge for every BEGIN of another connection."""

    def challenge(self, packet: Begin | End, now: float) -> None:
        if isinstance(packet, Begin):
            self.put(self.bgak(Flags.C))
        else:
            super().challenge(packet, now)


class YieldsToCallers(Connection):
    """Ends a connection when somebody else calls from its port."""

    def challenge(self, packet: Begin | End, now: float) -> None:
        if isinstance(packet, Begin):
            self.send_end(self.end(Flags.A, Reason.NO_CONNECTION), now)
            self.fail("the peer calls again", Reason.NO_CONNECTION, now)
        else:
            super().challenge(packet, now)


# No connection


class LeavesPollsAlone(WithoutConnection):
    """Does not tell a peer that polls that its connection is gone."""

    def answer_unknown(self, packet: Bgak | Sd | Sdp | Poll, peer: Any, now: float) -> None:
        if not isinstance(packet, Poll):
            super().answer_unknown(packet, peer, now)


class NamesNoCsns(WithoutConnection):
    """Answers a stray BGAK without its CSNs."""

    def end_for(self, packet: Bgak | Sd | Sdp | Poll) -> End:
        end = super().end_for(packet)
        return replace(end, csn=0, tag=0) if isinstance(packet, Bgak) else end


class BelievesHints(Connection):
    """Ends a connection for an END that names the tag only."""

    def is_valid_reflected_end(self, end: End) -> bool:
        return super().is_valid_reflected_end(end) or self.is_hint(end)


class IgnoresHints(Connection):
    """Discards an END that names the tag only."""

    def is_hint(self, end: End) -> bool:
        return False


def _of(identifier: str, breaks: str, title: str, **parts: Any) -> Mutant:
    return Mutant(f"stp-{identifier}", f"STP-CC-{breaks}", title, with_parts(**parts), "stp1")


def _in(identifier: str, breaks: str, title: str, connection: type[Connection]) -> Mutant:
    return _of(identifier, breaks, title, connection_class=connection)


def _without(identifier: str, breaks: str, title: str, part: type[WithoutConnection]) -> Mutant:
    return _of(identifier, breaks, title, without_class=part)


MUTANTS = (
    _in("ignores-tags", "001", "takes packets with a wrong tag", IgnoresTags),
    _of("takes-early-credit", "002", "sends eight SDs before the BGAK",
        sender_class=TakesEarlyCredit, initial_window=10),
    _in("hands-over-early", "003", "delivers a stranger's data before the confirmation",
        HandsOverEarly),
    _without("trusts-addresses", "003", "accepts any CSN of an address it knows",
             TrustsAddresses),
    _in("confirms-new-number", "007", "confirms the number of another incarnation",
        ConfirmsNewNumber),
    _of("counts-down", "010", "chooses an older CSN for each connection", csn_class=CountsDown),
    _of("begins-at-a-thousand", "011", "begins every stream with the same number", iss=1000),
    _in("keeps-pending-call", "012", "discards another BEGIN while one is pending",
        KeepsPendingCall),
    _without("asks-everybody", "013", "asks known callers for confirmation", AsksEverybody),
    _in("changes-its-begin", "014", "repeats its BEGIN with another credit", ChangesItsBegin),
    _in("answers-begin-once", "015", "does not answer a repeated BEGIN", AnswersBeginOnce),
    _in("starts-again", "015", "acknowledges nothing after a repeated BEGIN", StartsAgain),
    _in("calls-without-backoff", "016", "repeats its BEGIN every second", CallsWithoutBackoff),
    _in("calls-too-often", "016", "sends its BEGIN six times", CallsTooOften),
    _in("calls-on", "016", "repeats a BEGIN that has been answered", CallsOn),
    _in("leaves-questions", "017", "does not answer a BGAK that asks", LeavesQuestions),
    _in("ignores-other-calls", "018", "discards the BEGIN of another connection",
        IgnoresOtherCalls),
    _in("challenges-always", "018", "challenges every BEGIN", ChallengesAlways),
    _in("yields-to-callers", "018", "ends a connection for the BEGIN of another",
        YieldsToCallers),
    _without("refuses-nobody", "019", "does not answer where nobody listens", RefusesNobody),
    _without("blames-resources", "019", "refuses another version with reason 5",
             BlamesResources),
    _without("leaves-polls-alone", "020", "discards POLLs without a connection",
             LeavesPollsAlone),
    _without("names-no-csns", "020", "answers a stray BGAK without its CSNs", NamesNoCsns),
    _in("believes-hints", "021", "ends a connection for the tag alone", BelievesHints),
    _in("ignores-hints", "021", "does not challenge an END that names the tag", IgnoresHints),
    _in("gives-little-credit", "029", "permits two SDs in its BGAK", GivesLittleCredit),
    _in("does-not-make-sure", "030", "does not poll after its confirmation", DoesNotMakeSure),
)  # fmt: skip
