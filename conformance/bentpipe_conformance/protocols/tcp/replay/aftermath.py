"""What a sender had in the network after a timeout, counted from the timeout on.

A timeout declares lost all that was outstanding; from then on the sender's window is small and
known, so that what it sends shows how the window grows. The account of one timeout ends with the
next one, or as soon as an acknowledgment shows that the timeout may have been spurious: a sender
that notices may take its earlier window back (RFC 5682, RFC 4015).
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import RangeSet

from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.events import DUPLICATE_THRESHOLD, Ack, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.order import count_before, latest_first
from bentpipe_conformance.protocols.tcp.replay.recovery import ROUND_TRIP_SHARE
from bentpipe_conformance.protocols.tcp.replay.round_trips import minimum_rtt
from bentpipe_conformance.protocols.tcp.replay.timeouts import Expiry
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment


@dataclass(frozen=True, slots=True)
class Step:
    """A segment sent after a timeout.

    Attributes:
        sent: the segment.
        pipe: octets in the network after it: sent since the timeout, not reported delivered.
        least: the same without what left before the segment delivered last, which a sender that
            judges by time takes for lost (RFC 8985 section 6.2).
        delivered: octets reported delivered since the timeout, generously counted.
        acks: acknowledgments of new data since the timeout.
        spurious: a block has reported what left before the timeout and has not left again: F-RTO
            takes the timeout for spurious then (RFC 5682 section 3).
    """

    sent: Sent
    pipe: int
    least: int
    delivered: int
    acks: int
    spurious: bool


@dataclass(frozen=True, slots=True)
class Reaction:
    """An acknowledgment of new data after a timeout and what was in the network afterwards.

    Attributes:
        ack: the acknowledgment.
        pipe: as in :class:`Step`, once everything it clocked out had left.
        reach: octets from the acknowledgment to the next to be sent. A sender without SetPipe
            counts them all, held or not (RFC 5681 section 2, FlightSize).
        acks: acknowledgments of new data since the timeout, this one included.
        growth: octets by which they let slow start open the window: what each acknowledges, a
            segment at most (RFC 5681 section 3.1). SMSS is at least as large as any segment sent.
        disturbed: duplicates, or the loss of a repair, may have begun a fast recovery since.
        spurious: as in :class:`Step`.
        repeated: whatever it leaves missing has left again since the timeout.
    """

    ack: Ack
    pipe: int
    reach: int
    acks: int
    growth: int
    disturbed: bool
    spurious: bool
    repeated: bool


@dataclass(slots=True, eq=False)
class Aftermath:
    """The account of one timeout.

    Attributes:
        expiry: the timeout.
        recover: highest offset sent before it.
        lowered: more than timeouts of its segment retransmitted something while that was
            outstanding. Then less than what is outstanding may have been in use, and half of that
            is allowed (HK99, RFC 5681 equation 4).
        steps: what was sent afterwards.
        reactions: acknowledgments of new data afterwards.
    """

    expiry: Expiry
    recover: int
    lowered: bool
    steps: list[Step] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)


class _Account:
    def __init__(self, flow: Flow, expiry: Expiry, lowered: bool) -> None:
        sent = expiry.sent
        self.aftermath = Aftermath(expiry, sent.max, lowered)
        self._segment, self._shown = largest_segment(flow), flow.segment
        self._una = sent.una
        self._since = RangeSet(((sent.start, sent.end),))
        self._log = [sent]
        self._left = {sent.start: sent.time}
        self._rtt = minimum_rtt(flow)
        self._late = RangeSet(((sent.start, sent.end),))
        self._held = RangeSet(sent.sacked)
        self._delivered = self._acks = self._growth = self._duplicates = 0
        self._open: Ack | None = None
        self._spurious = self._disturbed = False

    def _pipe(self, sent: RangeSet) -> int:
        held = sum(sent.overlap(max(a, self._una), b) for a, b in self._held.snapshot())
        return sent.above(self._una) - held - self._duplicates * self._segment

    def _deliver(self) -> None:
        """Forget what left before the segment delivered last."""
        done = [
            at for at, item in enumerate(self._log)
            if item.end <= self._una or self._held.covers(item.start, item.end)
        ]  # fmt: skip
        if done:
            self._log = self._log[done[-1] + 1 :]
            self._late = RangeSet(tuple((item.start, item.end) for item in self._log))

    def _reach(self) -> int:
        done = RangeSet(self._since.snapshot())
        for block in self._held.snapshot():
            done.add(*block)
        following = done.first_gap(self._una, self.aftermath.recover)
        return (self.aftermath.recover if following is None else following[0]) - self._una

    def sent(self, item: Sent) -> None:
        before = self._left.get(item.start, math.inf)
        if item.time - before >= ROUND_TRIP_SHARE * self._rtt:
            self._disturbed = True  # a repair was lost, too (RFC 5681 section 4.3)
        self._left[item.start] = item.time
        self._log.append(item)
        for ranges in (self._since, self._late):
            ranges.add(item.start, item.end)
        pipe, least = self._pipe(self._since), self._pipe(self._late)
        step = Step(item, pipe, least, self._delivered, self._acks, self._spurious)
        self.aftermath.steps.append(step)

    def silent(self, item: Sent) -> bool:
        """Whether the segment follows a silence longer than pacing makes."""
        return item.since_arrival > self.aftermath.expiry.longest_rtt

    def settle(self) -> None:
        """Everything the last acknowledgment clocked out has left."""
        if self._open is not None:
            what = self._pipe(self._since), self._reach(), self._acks, self._growth
            again = self._since.covers(self._una, max(self._una, self.aftermath.recover))
            doubts = self._disturbed, self._spurious, again
            self.aftermath.reactions.append(Reaction(self._open, *what, *doubts))
            self._open = None

    def acknowledged(self, ack: Ack) -> bool:
        """Take an acknowledgment; False when the account has to end."""
        self.settle()
        if ack.rejected and self._una < ack.ack <= ack.max:
            # Behind a closed window some process the acknowledgment of what they drop (RFC 9293
            # section 3.10.7.4).
            return False
        if not ack.acceptable:
            return True
        if ack.dsack is not None or self._answers_earlier_copy(ack):
            return False
        repaired = self._una >= self.aftermath.recover
        if repaired and (ack.duplicate or ack.blocks):
            return False
        if ack.duplicates >= DUPLICATE_THRESHOLD and ack.duplicate:
            self._disturbed = True
            if not ack.newly_sacked:
                return False  # a fast recovery may begin, and its window is inflated
        missing = self._since.gaps(self._una, max(ack.ack, self._una))
        if not all(self._held.covers(*gap) for gap in missing):
            return False
        news = ack.advance + ack.newly_sacked
        # RFC 5681 section 3.1: up to a segment for each acknowledgment, however little it covers.
        self._delivered += max(news, self._segment) if news else 0
        for block in ack.blocks:
            fresh = self._held.gaps(*block)
            originals = (right - left > self._since.overlap(left, right) for left, right in fresh)
            self._spurious = self._spurious or any(originals)
            self._held.add(*block)
        if ack.advance:
            self._una = ack.ack
            self._held.remove_below(ack.ack)
            self._duplicates = 0
            self._acks += 1
            self._growth += min(ack.advance, self._shown)
            self._open = ack
        elif ack.duplicate and not ack.newly_sacked:
            # Without blocks a duplicate reports one more segment received.
            self._duplicates += 1
            self._delivered += self._segment
        self._deliver()
        return True

    def _answers_earlier_copy(self, ack: Ack) -> bool:
        """Whether the echoed timestamp is older than the retransmission (RFC 3522)."""
        echoed, stamped = ack.tcp.tsecr, self.aftermath.expiry.sent.tcp.tsval
        if not ack.advance or echoed is None or stamped is None:
            return False
        return older(echoed, stamped)


def _within_a_repair(
    flow: Flow, sent: Sent, timeouts: Container[Sent], known: Mapping[Sent, bool]
) -> bool:
    """Whether anything but timeouts of a segment retransmitted while it was outstanding.

    Of earlier timeouts that is ``known``.
    """
    for item in latest_first(flow.sent, count_before(flow.sent, sent.packet.number)):
        if item.start == sent.start and item in known and not item.new:
            return known[item]  # what is before the timeout before
        if item.retransmission and not (item.start == sent.start and item in timeouts):
            return True
        if item.new and item.start <= sent.start:
            return False
    return False


def read_aftermaths(flow: Flow, expiries: Sequence[Expiry], at_once: bool) -> tuple[Aftermath, ...]:
    """The accounts of all certain timeouts of a flow, in order.

    ``at_once`` says that no pacing delays what an acknowledgment permits.
    """
    timeouts = {item.sent: item for item in expiries if item.certain}
    found: list[Aftermath] = []
    account: _Account | None = None
    known: dict[Sent, bool] = {}
    for event in flow.until_reset:
        if isinstance(event, Sent):
            if event in timeouts:
                if account is not None:
                    account.settle()
                lowered = known[event] = _within_a_repair(flow, event, timeouts, known)
                account = _Account(flow, timeouts[event], lowered)
                found.append(account.aftermath)
            elif account is not None and event.timed and (at_once or account.silent(event)):
                account.settle()
                account = None
            elif account is not None:
                account.sent(event)
        elif isinstance(event, Ack) and account is not None and not account.acknowledged(event):
            account = None
    if account is not None:
        account.settle()
    return tuple(found)
