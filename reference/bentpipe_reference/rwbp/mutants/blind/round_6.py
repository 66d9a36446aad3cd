"""Thirty faults that an implementation of RWBP/1 might ship."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import Range
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.connection import HEADER_OCTETS, RwbpConnection
from bentpipe_reference.rwbp.credit import COUNTS, Credit, CreditFrame
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import KIND
from bentpipe_reference.rwbp.outstanding import Outgoing, Outstanding
from bentpipe_reference.rwbp.receiver import BLOCKS, REMINDER_INTERVAL, RwbpReceiver
from bentpipe_reference.rwbp.rtt import RwbpEstimator
from bentpipe_reference.rwbp.scheduler import Entry, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack, Put
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))

# -- negotiation and handshake ---------------------------------------------------------------------


class WholeVersionOctet(RwbpHandshake):
    """Compares the octet of version and reserved bits as a whole (RWBP-NG-003)."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`Handshake`; what has reserved bits set is taken for another version."""
        syn.unknown = tuple(
            (kind, data)
            for kind, data in syn.unknown
            if not (kind == KIND and len(data) == 8 and data[4] & 15)
        )
        super().take_options(syn)


class UnitIsMss(RwbpHandshake):
    """Takes the peer's MSS option for its unit and looks at one of them only (RWBP-WN-001)."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`Handshake`."""
        super().take_options(syn)
        if self.peer is not None and syn.mss is not None:
            self.peer = replace(self.peer, unit=max(48, syn.mss))


class ScaleGivenUp(RwbpHandshake):
    """A caller whose offer is not agreed to has given up its scale already (RWBP-NG-005)."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`Handshake`."""
        super().take_options(syn)
        if self._offers and self.peer is None and syn.flags & _ACK:
            self._scaling = False
            self.send_shift = self.receive_shift = 0


class TimerKeepsItsPace(RwbpHandshake):
    """The SYN-ACK that a repeated SYN asks for does not restart the timer (RWBP-CX-002)."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`Handshake`."""
        deadline = self.deadline
        super().sent(now, repeated=repeated)
        if repeated and deadline is not None:
            self.deadline = deadline


class CountsExpiriesOnly(RwbpHandshake):
    """Karn's rule looks at expired timers, not at how often a SYN-ACK was sent (RWBP-TM-001)."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`Handshake`."""
        if repeated:
            self.deadline = now + self._estimator.rto
        else:
            super().sent(now, repeated=repeated)


# -- windows ---------------------------------------------------------------------------------------


class FirstOrLastInside(RwbpReceiver):
    """Tests the first and the last number of a segment, as RFC 9293 does (RWBP-WN-004)."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        """See :class:`Receiver`."""
        if not super().is_acceptable(seq, length):
            return False
        return length == 0 or seq >= self.rcv_nxt or seq + length <= self.edge


class UpdatesClosedWindowsOnly(RwbpReceiver):
    """Two units are told of when the window is zero, not below one unit (RWBP-WN-007)."""

    def window_update_due(self) -> bool:
        """See :class:`Receiver`."""
        window = self.edge - self.rcv_nxt
        gain = self.units() * self.unit - window
        return 2 * gain >= self.config.receive_buffer or (window <= 0 and gain >= 2 * self.unit)


class RoomForFinToo(RwbpSender):
    """The last data waits until its FIN lies below the edge as well (RWBP-WF-008)."""

    def _needed(self) -> int | None:
        """END of the next segment with the FIN that rides on it, None if nothing waits."""
        end, last = self.next_end(), self.data_end
        if end is None:
            return None
        return end + (self.fin_queued and last is not None and self.snd_nxt < last == end)

    def next_may_be_sent(self) -> bool:
        """See :class:`RwbpSender`."""
        needed = self._needed()
        return needed is not None and needed <= self.edge

    def window_is_closed(self) -> bool:
        """See :class:`RwbpSender`."""
        needed = self._needed()
        return not self.segments.count and needed is not None and needed > self.edge


class AnswerEndsBackOff(RwbpSender):
    """An answered probe is the first one again: the interval does not double (RWBP-WN-008)."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`Sender`."""
        self.probes = 0
        super().on_ack(ack, now)


# -- receiving -------------------------------------------------------------------------------------


class LastTakenSegment(RwbpReceiver):
    """RCV.LAST is that of the last segment that was taken, not that arrived (RWBP-AK-006)."""

    def on_refused(self, seq: int) -> None:
        """See :class:`RwbpReceiver`."""


class RotationByPlace(RwbpReceiver):
    """The rotation remembers a place in the list of runs and not a number (RWBP-AK-006)."""

    _place = 0

    def sack_blocks_to_send(self, most: int = BLOCKS) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        runs = self.buffer.runs
        if not runs:
            return ()
        listed = list(self.first_blocks(runs))
        others = [run for run in runs if run not in listed]
        room = min(most - len(listed), len(others))
        if room > 0:
            start = self._place % len(others)
            listed += (others[start:] + others[:start])[:room]
            self._place = (start + room) % len(others)
        return tuple(listed[:most])


class RareChallenges(RwbpConnection):
    """Answers a SYN at most once a second, as a reminder (RWBP-AK-003)."""

    _challenged = -math.inf

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        opened = self.agreed and self.state not in (State.SYN_SENT, State.SYN_RECEIVED)
        if opened and segment.flags & _SYN and not segment.flags & _RST:
            if now - self._challenged < REMINDER_INTERVAL:
                return
            self._challenged = now
        super().receive(segment, now)


class ClosedWindowDropsAll(RwbpConnection):
    """Does not look at the acknowledgment of data that finds no window (RWBP-SEC-003)."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        """See :class:`Connection`."""
        closed = receiver.edge == receiver.rcv_nxt
        if self.agreed and closed and segment.payload and not segment.flags & _SYN:
            segment = replace(segment, flags=segment.flags & ~_ACK)
        super()._receive_unacceptable(segment, seq, receiver, now)


class LargestWindowBack(RwbpConnection):
    """Bounds old acknowledgments by the largest window, as RFC 5961 does (RWBP-EC-015)."""

    _largest = 0

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        """See :class:`Connection`."""
        self._largest = segment.window
        return super()._take_syn(segment, now)

    def _refuses_ack(self, number: int, now: float) -> bool:
        """See :class:`Connection`."""
        receiver = self.receiver
        if isinstance(receiver, RwbpReceiver) and number < self.sender.snd_una - self._largest:
            receiver.remind(now)
            return True
        return super()._refuses_ack(number, now)

    def _offered_window(self, segment: Segment) -> int:
        """See :class:`Connection`."""
        window = super()._offered_window(segment)
        self._largest = max(self._largest, window)
        return window


# -- error control ---------------------------------------------------------------------------------


class NumbersWithin(Outstanding):
    """Finds segments all of whose numbers, a FIN's too, lie in a range."""

    def within(self, left: int, right: int) -> list[Outgoing]:
        """See :class:`Outstanding`."""
        return [segment for segment in super().within(left, right) if segment.end <= right]


class FinWithinBlock(RwbpSender):
    """Data with FIN has arrived only when a block covers the FIN's number (RWBP-EC-010)."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        super().__init__(config, put, iss, estimator, edge)
        self.segments = NumbersWithin()


class FinJoinsLate(RwbpSender):
    """The last data takes a FIN with it when it is sent again after a close (RWBP-EC-011)."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        """See :class:`RwbpSender`."""
        fin = segment.fin
        again = segment.first <= self.transmissions
        if again and segment.payload and self.fin_queued and segment.end < self.edge:
            segment.fin = fin or segment.end == self.data_end
        super()._transmit_segment(segment, now)
        segment.fin = fin


class InOrderOfLoss(Outstanding):
    """Lists what awaits retransmission as it was asked for."""

    _asked = 0

    def ask_for(self, segment: Outgoing, copies: int) -> None:
        """See :class:`Outstanding`."""
        segment.copies = copies
        self._asked += 1
        self._due.append((self._asked, segment))


class FirstLostFirst(RwbpSender):
    """Sends losses again by their last transmissions, not lowest first (RWBP-EC-004)."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        super().__init__(config, put, iss, estimator, edge)
        self.segments = InOrderOfLoss()


class MeasuresTheLastBeforeTimeout(RwbpSender):
    """Measures what was sent right before a timeout: at TX.TIMEOUT, not above (RWBP-TM-002)."""

    def may_measure(self, highest: Outgoing) -> bool:
        """See :class:`RwbpSender`."""
        return highest.first == highest.latest and highest.first >= self.at_timeout


class SmoothsFirst(RwbpEstimator):
    """Updates SRTT before RTTVAR, which then sees a smaller deviation (RWBP-TM-001)."""

    def sample(self, rtt: float) -> None:
        """See :class:`RttEstimator`."""
        if self.srtt is None:
            super().sample(rtt)
            return
        variation = self.rttvar
        super().sample(rtt)
        self.rttvar = variation + self.BETA * (abs(self.srtt - rtt) - variation)
        self.rto = self.bounded(self.srtt + max(self.granularity, self.K * self.rttvar))


class RisesWithThreshold(RwbpSender):
    """Compares F3 with the F1 of before when K has just been raised (RWBP-EC-002)."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """See :class:`RwbpSender`."""
        threshold, before = self.threshold, self.loss_bound()
        super().on_arrivals(arrived, now)
        if self.threshold != threshold and self.loss_bound() > before:
            self.take_for_lost(now)


class RepairedByLastCopy(RwbpSender):
    """Measures a repair from the last copy, not from the first since the loss (RWBP-FF-002)."""

    def use_turn(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        due = self.segments.due()
        super().use_turn(now)
        if due is not None and due.suspect:
            due.repaired = now


class CutWhereWritten(RwbpSender):
    """Fixes the boundaries of segments when the user writes.

    Attributes:
        cuts: numbers at which writes ended, lowest first.
    """

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        super().__init__(config, put, iss, estimator, edge)
        self.cuts: deque[int] = deque()

    def next_end(self) -> int | None:
        """See :class:`RwbpSender`."""
        end = super().next_end()
        while self.cuts and self.cuts[0] <= self.snd_nxt:
            self.cuts.popleft()
        return end if end is None or not self.cuts else min(end, self.cuts[0])


class WritesAreSegments(RwbpConnection):
    """What the user writes in pieces leaves in pieces, however long it waits (RWBP-WF-007)."""

    def write(self, data: bytes, now: float) -> int:
        """See :class:`Connection`."""
        taken = super().write(data, now)
        sender = self.sender
        if isinstance(sender, CutWhereWritten) and taken and sender.data_end is not None:
            sender.cuts.append(sender.data_end)
            self._output(now)
        return taken


# -- scheduling and credit -------------------------------------------------------------------------


class JoinsAtTheTail(RoundRobin):
    """A connection that can send again queues behind all others that can (RWBP-SC-001)."""

    def __init__(self) -> None:
        super().__init__()
        self._active: deque[Entry] = deque()

    def wake(self, entry: Entry) -> bool:
        """See :class:`RoundRobin`."""
        if entry.queued or entry.removed or not entry.flow.can_send():
            return False
        self._queue(entry)
        return True

    def _queue(self, entry: Entry) -> None:
        """See :class:`RoundRobin`."""
        if entry.flow.can_send():
            entry.queued = True
            self._active.append(entry)

    def _next(self) -> Entry | None:
        """See :class:`RoundRobin`."""
        while self._active:
            entry = self._active.popleft()
            entry.queued = False
            if not entry.removed and entry.flow.can_send():
                return entry
        return None


class OneAcknowledgmentPerService(IpQueue):
    """Replaces acknowledgments to the same host and from the same own port (RWBP-SC-005)."""

    def _supersede(self, packet: Segment) -> None:
        """See :class:`IpQueue`."""
        ends, not_pure = (packet.destination, packet.sport), _SYN | _FIN | _RST
        kept = [
            other
            for other in self._packets
            if other.payload or other.flags & not_pure or (other.destination, other.sport) != ends
        ]
        self._packets = deque(kept)


class DeficitOfData(RwbpConnection):
    """Takes octets of data, not of IP packets, from DEFICIT (RWBP-SC-003)."""

    def next_octets(self) -> int:
        """See :class:`RwbpConnection`."""
        return super().next_octets() - HEADER_OCTETS


class TokenBucket(IpQueue):
    """Shapes with a bucket that holds two packets of an Ethernet (RWBP-LC-011)."""

    DEPTH_OCTETS = 3000

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        free = self._free_at
        packet = super().next_to_leave(now)
        if packet is not None and self._rate is not None:
            began = max(free, now - 8 * self.DEPTH_OCTETS / self._rate)
            self._free_at = began + 8 * packet.packet_octets / self._rate
        return packet


class EpochZeroAtFirst(Credit):
    """EPOCH is 0 before any frame, so that half of all first epochs are older (RWBP-LC-004)."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0


class ReturnsWhenSpent(Credit):
    """Takes the count of arrived packets only when no credit is left (RWBP-LC-006)."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        epoch, passed = self.epoch, self.passed
        super().on_frame(frame, now)
        if self.epoch == epoch and 0 < self.limit - passed & COUNTS.mask < COUNTS.half:
            self.passed = passed


class PurgedQueue(IpQueue):
    """Gives up the packets of connections that are gone (RWBP-LC-008)."""

    def has_room(self) -> bool:
        """See :class:`IpQueue`."""
        self._purge()
        return super().has_room()

    def put(self, packet: Segment) -> None:
        """See :class:`IpQueue`."""
        self._purge()
        super().put(packet)

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        self._purge()
        return super().next_to_leave(now)

    def _purge(self) -> None:
        """Remove what has been withdrawn, and has no source therefore."""
        if not all(packet.source for packet in self._packets):
            self._packets = deque(packet for packet in self._packets if packet.source)


class WithdrawsPackets(RwbpConnection):
    """Withdraws all but its RST from the IP queue when it is forgotten (RWBP-LC-008)."""

    _sent: deque[Segment] | None = None

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        """See :class:`Connection`."""
        super()._put(seq, flags, now, payload)
        if self._sent is None:
            self._sent = deque(maxlen=64)
        self._sent.append(self._outbox[-1])

    def _happen(self, happening: Happening, now: float) -> None:
        """See :class:`Connection`."""
        super()._happen(happening, now)
        if self.state is State.CLOSED and self.agreed and self._sent is not None:
            for segment in self._sent:
                if not segment.flags & _RST:
                    segment.source = 0
            self._sent.clear()


# -- closing ---------------------------------------------------------------------------------------


class NoUpdatesAfterClose(RwbpConnection):
    """Asks for window updates while it is ESTABLISHED, not after its own FIN (RWBP-CX-004)."""

    def read(self, octets: int | None = None) -> bytes:
        """See :class:`Connection`."""
        receiver = self.receiver
        due = receiver is not None and receiver.ack_now
        data = super().read(octets)
        if receiver is not None and self.agreed and self.state is not State.ESTABLISHED:
            receiver.ack_now = due
        return data


FAULTS = (
    Fault(
        "rwbp-b6-reserved-bits-void",
        "an RWBP option whose reserved bits are set counts as void",
        "RWBP-NG-003; RWBP-NG-006", lambda setup: setup.with_part(WholeVersionOctet),
    ),
    Fault(
        "rwbp-b6-unit-from-mss",
        "the peer's unit is read from its MSS option instead of its RWBP option",
        "RWBP-WN-001; RWBP-WN-002; RWBP-WF-006", lambda setup: setup.with_part(UnitIsMss),
    ),
    Fault(
        "rwbp-b6-fallback-without-scale",
        "a caller whose SYN-ACK does not agree goes on as plain TCP without its window scale",
        "RWBP-NG-005; RWBP-NG-008", lambda setup: setup.with_part(ScaleGivenUp),
    ),
    Fault(
        "rwbp-b6-syn-ack-timer-goes-on",
        "a SYN-ACK that a repeated SYN calls for does not restart the timer of the SYN-ACK",
        "RWBP-CX-002; RWBP-SEC-003", lambda setup: setup.with_part(TimerKeepsItsPace),
    ),
    Fault(
        "rwbp-b6-samples-repeated-syn-ack",
        "the handshake is measured although the SYN-ACK was sent twice, if no timer called for it",
        "RWBP-TM-001; RWBP-TM-002", lambda setup: setup.with_part(CountsExpiriesOnly),
    ),
    Fault(
        "rwbp-b6-refuses-what-spans-the-window",
        "a segment that begins below RCV.NXT and ends above RCV.EDGE is refused as a whole",
        "RWBP-WN-004; RWBP-SEC-003", lambda setup: setup.with_part(FirstOrLastInside),
    ),
    Fault(
        "rwbp-b6-updates-only-when-shut",
        "two units that become free are told at once only if the window was zero",
        "RWBP-WN-007", lambda setup: setup.with_part(UpdatesClosedWindowsOnly),
    ),
    Fault(
        "rwbp-b6-last-data-waits-for-fin",
        "the last data is not sent before there is room for the FIN that rides on it",
        "RWBP-WF-008; RWBP-WN-006; RWBP-FC-003", lambda setup: setup.with_part(RoomForFinToo),
    ),
    Fault(
        "rwbp-b6-answered-probes-keep-pace",
        "the answer to a probe sets PROBES to zero, so that the interval does not double",
        "RWBP-WN-008", lambda setup: setup.with_part(AnswerEndsBackOff),
    ),
    Fault(
        "rwbp-b6-refused-is-not-last",
        "a segment with data that is refused leaves RCV.LAST as it was",
        "RWBP-AK-006", lambda setup: setup.with_part(LastTakenSegment),
    ),
    Fault(
        "rwbp-b6-rotation-by-place",
        "the rotation of the blocks counts places in the list of runs, which changes under it",
        "RWBP-AK-006; RWBP-AK-005", lambda setup: setup.with_part(RotationByPlace),
    ),
    Fault(
        "rwbp-b6-one-challenge-a-second",
        "of several SYNs within a second on an open connection only the first is acknowledged",
        "RWBP-AK-003; RWBP-SEC-003", lambda setup: setup.with_part(RareChallenges),
    ),
    Fault(
        "rwbp-b6-shut-window-hears-nothing",
        "the acknowledgment in a segment with data is ignored while the own window is closed",
        "RWBP-SEC-003; RWBP-WN-002", lambda setup: setup.with_part(ClosedWindowDropsAll),
    ),
    Fault(
        "rwbp-b6-old-by-largest-window",
        "an acknowledgment older than the largest window of the peer is discarded",
        "RWBP-EC-015; RWBP-AK-004", lambda setup: setup.with_part(LargestWindowBack),
    ),
    Fault(
        "rwbp-b6-block-has-to-cover-fin",
        "a segment with data and FIN is never taken for arrived by a block that ends with its data",
        "RWBP-EC-010; RWBP-EC-002; RWBP-EC-003", lambda setup: setup.with_part(FinWithinBlock),
    ),
    Fault(
        "rwbp-b6-fin-joins-retransmission",
        "the last data carries FIN when it is sent again after the user has closed",
        "RWBP-EC-011; RWBP-CX-003", lambda setup: setup.with_part(FinJoinsLate),
    ),
    Fault(
        "rwbp-b6-longest-lost-first",
        "of several lost segments the one transmitted longest ago is sent first, not the lowest",
        "RWBP-EC-004", lambda setup: setup.with_part(FirstLostFirst),
    ),
    Fault(
        "rwbp-b6-measures-at-timeout",
        "the last segment that was sent before a timeout is still measured",
        "RWBP-TM-002; RWBP-TM-001",
        lambda setup: setup.with_part(MeasuresTheLastBeforeTimeout),
    ),
    Fault(
        "rwbp-b6-srtt-before-rttvar",
        "SRTT is updated before RTTVAR is computed from it",
        "RWBP-TM-001", lambda setup: setup.with_part(SmoothsFirst),
    ),
    Fault(
        "rwbp-b6-edge-rises-with-threshold",
        "the acknowledgment that raises K takes for lost by F3 what was not by F1",
        "RWBP-EC-002; RWBP-EC-012; RWBP-FF-003", lambda setup: setup.with_part(RisesWithThreshold),
    ),
    Fault(
        "rwbp-b6-repaired-by-last-copy",
        "whether a loss was false is judged by the last copy, those of a timeout included",
        "RWBP-FF-002; RWBP-EC-002", lambda setup: setup.with_part(RepairedByLastCopy),
    ),
    Fault(
        "rwbp-b6-writes-are-segments",
        "octets that the user has written separately are not joined in a segment",
        "RWBP-WF-007",
        lambda setup: setup.with_part(CutWhereWritten).with_part(WritesAreSegments),
    ),
    Fault(
        "rwbp-b6-ring-of-active-ones",
        "a connection that can send anew joins the ring behind the others and not in its place",
        "RWBP-SC-001", lambda setup: setup.with_part(JoinsAtTheTail),
    ),
    Fault(
        "rwbp-b6-replaces-a-neighbours-ack",
        "in a full IP queue an acknowledgment replaces those of the peer's other connections, too",
        "RWBP-SC-005; RWBP-AK-003; RWBP-LC-008",
        lambda setup: setup.with_part(OneAcknowledgmentPerService),
    ),
    Fault(
        "rwbp-b6-deficit-without-headers",
        "deficit round robin counts octets of data instead of octets of IP packets",
        "RWBP-SC-003", lambda setup: setup.with_part(DeficitOfData), setting="drr",
    ),
    Fault(
        "rwbp-b6-bucket-on-the-link",
        "after a pause two packets leave at once before the link rate is kept",
        "RWBP-LC-011", lambda setup: setup.with_part(TokenBucket),
    ),
    Fault(
        "rwbp-b6-epoch-zero-before-any",
        "the first frame of a gateway is compared with epoch 0 and may be too old",
        "RWBP-LC-004; RWBP-LC-008", lambda setup: setup.with_part(EpochZeroAtFirst),
    ),
    Fault(
        "rwbp-b6-return-of-spent-credit-only",
        "what was lost before the gateway gives its credit back only when none is left",
        "RWBP-LC-006", lambda setup: setup.with_part(ReturnsWhenSpent),
    ),
    Fault(
        "rwbp-b6-purges-the-queue",
        "packets of a connection that has ended are removed from the IP queue",
        "RWBP-LC-008; RWBP-LC-007",
        lambda setup: setup.with_part(PurgedQueue).with_part(WithdrawsPackets),
    ),
    Fault(
        "rwbp-b6-no-updates-after-close",
        "after its own FIN an endpoint sends no window updates",
        "RWBP-CX-004; RWBP-WN-007", lambda setup: setup.with_part(NoUpdatesAfterClose),
    ),
)  # fmt: skip
