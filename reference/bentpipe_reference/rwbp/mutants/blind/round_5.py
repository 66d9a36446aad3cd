"""Round 5 of blind faults of RWBP/1: thirty that a vendor's implementation might ship."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from heapq import heappush
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import Range
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.config import LARGEST_WINDOW
from bentpipe_reference.rwbp.connection import HEADER_OCTETS, RwbpConnection
from bentpipe_reference.rwbp.credit import COUNTS, EPOCHS, Credit, CreditFrame
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import EXPERIMENT, KIND, counting_option
from bentpipe_reference.rwbp.outstanding import Outgoing, Outstanding
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.scheduler import DeficitRoundRobin, Entry, Round, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Put
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, parse_packet
from bentpipe_reference.tcp.wire.options import END, NOP, parse_options

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))

_CHALLENGE_INTERVAL = 1.0
"""Seconds between two answers of :class:`ThrottledChallenges`."""


def _part(kind: type[Any]) -> Callable[[Setup], Setup]:
    """Put a subclass in the place of the part that it derives from."""
    return lambda setup: setup.with_part(kind)


# -- segments (section 5) ---------------------------------------------------------------------


def parse_beyond_end(packet: bytes) -> Segment:
    """Read a packet, its options beyond an option 0 included (section 5.1, RWBP-WF-001)."""
    intact = parse_packet(packet)
    body_at = (packet[0] & 15) * 4
    data_at = (packet[body_at + 12] >> 4) * 4
    options = bytearray(packet[body_at + 20 : body_at + data_at])
    at = 0
    while at < len(options):
        if options[at] in (END, NOP):
            options[at] = NOP
            at += 1
        else:
            at += max(2, options[at + 1]) if at + 1 < len(options) else 1
    segment = Segment(
        intact.source, intact.destination, intact.sport, intact.dport, intact.seq, intact.ack,
        intact.flags, intact.window, intact.urgent, intact.payload,
    )  # fmt: skip
    parse_options(bytes(options), segment)
    return segment


def _options_beyond_end(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=parse_beyond_end))


class FinWithinSmss(RwbpSender):
    """Counts the FIN among the octets that SMSS bounds (RWBP-WF-008)."""

    def _cut(self) -> Outgoing:
        """See :class:`RwbpSender`; a full segment leaves its FIN for another one."""
        segment = super()._cut()
        if segment.fin and len(segment.payload) >= self.smss:
            segment.fin = False
            segment.end -= 1
            self.snd_nxt = self.snd_max = segment.end
        return segment


# -- negotiation (section 4) ------------------------------------------------------------------


class ShortExperiment(RwbpHandshake):
    """Compares 16 bits of the ExID only, as RFC 6994 permits to others (RWBP-NG-003)."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`RwbpHandshake`; whatever begins with R and W is the option."""
        own = EXPERIMENT.to_bytes(4, "big")
        unknown = tuple(
            (kind, own + data[4:] if kind == KIND and data[:2] == own[:2] else data)
            for kind, data in syn.unknown
        )
        super().take_options(replace(syn, unknown=unknown))


class ScaledAnswerRefused(RwbpHandshake):
    """Takes an answer with Window Scale or Timestamps for one without RWBP (section 4.2)."""

    def may_agree(self, syn: Segment) -> bool:
        """See :class:`RwbpHandshake`; an answer that breaks RWBP-NG-004 does not agree."""
        odd = syn.window_scale is not None or syn.timestamps is not None
        return super().may_agree(syn) and not (syn.flags & _ACK and odd)


class RepeatedSynCounts(RwbpConnection):
    """Takes unit, interval and MSS from the latest SYN and not from the first (section 4.2)."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        """See :class:`RwbpConnection`; the caller's SYN again is read anew."""
        again = self.state is State.SYN_RECEIVED and seq == receiver.irs
        option = counting_option(segment) if again and segment.sack_permitted else None
        if option is not None and isinstance(receiver, RwbpReceiver):
            self.handshake.take_options(segment)
            receiver.interval = option.interval
        super()._receive_unacceptable(segment, seq, receiver, now)


# -- windows (section 6) ----------------------------------------------------------------------


class SignedProduct(RwbpConnection):
    """Multiplies window field and unit in 32 bits with a sign (section 6.1, RWBP-WN-002)."""

    def _offered_window(self, segment: Segment) -> int:
        """See :class:`RwbpConnection`; 2^31 and more become negative."""
        peer = self.handshake.peer
        if peer is None or segment.flags & _SYN:
            return super()._offered_window(segment)
        product = segment.window * peer.unit
        if product >= 1 << 31:
            product -= 1 << 32
        return min(product, LARGEST_WINDOW)


class UpdateByGrowth(RwbpReceiver):
    """Asks how the window has grown since the last field, not how the edge has (RWBP-WN-007)."""

    _told = 0
    """The window that was advertised last, octets."""

    def syn_window(self) -> int:
        """See :class:`RwbpReceiver`; the first one is that of the SYN."""
        self._told = super().syn_window()
        return self._told

    def window_field(self) -> int:
        """See :class:`RwbpReceiver`."""
        field = super().window_field()
        self._told = field * self.unit
        return field

    def window_update_due(self) -> bool:
        """See :class:`RwbpReceiver`; what has arrived and been read since counts for nothing."""
        told = self._told
        gain = self.units() * self.unit - told
        return 2 * gain >= self._size or (told < self.unit and gain >= 2 * self.unit)


class LoneFinNotProbed(RwbpSender):
    """Probes a closed window for data only, not when a FIN alone waits (RWBP-WN-008)."""

    def window_is_closed(self) -> bool:
        """See :class:`RwbpSender`."""
        data_end = self.data_end
        return super().window_is_closed() and (data_end is None or data_end > self.snd_nxt)


class ThirdSegmentWindowLost(RwbpConnection):
    """Does not read the window of the segment that opens the connection (RWBP-WN-002)."""

    def _established(self, segment: Segment, now: float) -> None:
        """See :class:`RwbpConnection`; the edge stays that of the SYN until the next one."""
        if self.agreed and not segment.flags & _SYN:
            segment = replace(segment, window=0)
        super()._established(segment, now)


# -- receiving (section 7) --------------------------------------------------------------------


class OverlapIsOrderly(RwbpReceiver):
    """Takes for orderly what overlaps and goes on behind RCV.NXT without a gap (RWBP-AK-003)."""

    def is_orderly(self, seq: int, end: int) -> bool:
        """See :class:`RwbpReceiver`; that some of it is a repetition does not matter."""
        if super().is_orderly(seq, end):
            return True
        goes_on = seq < self.top < end and self.top == self.buffer.rcv_nxt
        return goes_on and end <= self.edge and self.fin_seq is None


class RotationRestarts(RwbpReceiver):
    """Sets RCV.ROT to RCV.NXT whenever RCV.NXT rises, not only above it (RWBP-AK-006)."""

    _began_at = -1
    """RCV.NXT when the rotation was begun."""

    def rotated(self, others: list[Range]) -> list[Range]:
        """See :class:`RwbpReceiver`."""
        if self.rcv_nxt != self._began_at:
            self._began_at = self.rotation = self.rcv_nxt
        return super().rotated(others)


class ThrottledChallenges(RwbpConnection):
    """Answers SYNs and RSTs in the window once a second only (RWBP-AK-003, RWBP-CX-005)."""

    _challenged = -math.inf

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        """See :class:`RwbpConnection`; RFC 5961 section 7 is taken to stand above RWBP."""
        due = receiver.ack_now
        super()._receive_synchronized(segment, receiver, now)
        if due or not receiver.ack_now or not segment.flags & (_SYN | _RST) or not self.agreed:
            return
        if now - self._challenged < _CHALLENGE_INTERVAL:
            receiver.ack_now = False
        else:
            self._challenged = now


class FinBelowHeldData(RwbpReceiver):
    """Takes a FIN whose number is below octets that have arrived (section 7.1, step 2)."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`RwbpReceiver`; RCV.NXT stands where RCV.TOP should."""
        super().on_text(seq, payload, fin, now)
        number = seq + len(payload)
        if fin and self.fin_seq is None and self.buffer.rcv_nxt <= number < self.edge:
            self.fin_seq = number
            if number == self.buffer.rcv_nxt:
                self.fin_received = True


# -- sending (sections 8.2 and 8.3) -----------------------------------------------------------


class OldByWindow(RwbpConnection):
    """Discards acknowledgments older than the peer's largest window, not 2^30 (RWBP-EC-015)."""

    _widest = 0
    """MAX.SND.WND of RFC 5961 section 5.2, octets."""

    def _refuses_ack(self, number: int, now: float) -> bool:
        """See :class:`RwbpConnection`."""
        sender, receiver = self.sender, self.receiver
        if isinstance(sender, RwbpSender) and isinstance(receiver, RwbpReceiver):
            self._widest = max(self._widest, sender.edge - sender.snd_una)
            if number < sender.snd_una - self._widest:
                receiver.remind(now)
                return True
        return super()._refuses_ack(number, now)


class WholeSegments(Outstanding):
    """Wants a block to cover the number of a FIN that rides on data (section 8.3, step 2)."""

    def within(self, left: int, right: int) -> list[Outgoing]:
        """See :class:`Outstanding`; no receiver reports such a segment."""
        return [segment for segment in super().within(left, right) if segment.end <= right]


class FinOutsideBlocks(RwbpSender):
    """Sends a last segment again that a block has reported without its FIN (RWBP-EC-010)."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        """See :class:`RwbpSender`."""
        super().__init__(config, put, iss, estimator, edge)
        self.segments = WholeSegments()


class OrderOfLosses(Outstanding):
    """Lets segments that await retransmission leave as they were asked for (RWBP-EC-004)."""

    _asked = 0

    def ask_for(self, segment: Outgoing, copies: int) -> None:
        """See :class:`Outstanding`; a list to which is appended, instead of a sorted one."""
        segment.copies = copies
        self._asked += 1
        heappush(self._due, (self._asked, segment))


class RepairsInOrderOfLosses(RwbpSender):
    """Retransmits what was sent longest ago first, not what is lowest (RWBP-EC-004)."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        """See :class:`RwbpSender`."""
        super().__init__(config, put, iss, estimator, edge)
        self.segments = OrderOfLosses()


class RepairGainsFin(RwbpSender):
    """Sends the last data again with a FIN that was a segment of its own (RWBP-EC-011)."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        """See :class:`RwbpSender`; the flag is found from where the stream ends."""
        last = bool(segment.payload) and not segment.fin and segment.end == self.data_end
        if not (last and self.fin_queued and self.snd_nxt > segment.end):
            super()._transmit_segment(segment, now)
            return
        put = self.put
        self.put = lambda seq, payload, _, at: put(seq, payload, True, at)
        super()._transmit_segment(segment, now)
        self.put = put


# -- the timer, and false losses (sections 8.4 and 8.5) ---------------------------------------


class MeasuresUnlessBackedOff(RwbpSender):
    """Asks whether BACKOFF is 0 where TX.TIMEOUT should be compared (RWBP-TM-002)."""

    def may_measure(self, highest: Outgoing) -> bool:
        """See :class:`RwbpSender`; what a timeout has delayed is measured after progress."""
        return highest.first == highest.latest and self.backoff == 0


class OnlyTheLowestWaits(RwbpSender):
    """Has a timeout although a segment above the lowest awaits retransmission (RWBP-TM-005)."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        lowest = self.segments.lowest()
        if lowest is not None and not lowest.copies:
            self.counters.timeouts += 1
            self.silent_timeouts += 1
            self.backoff += 1
            self.at_timeout = self.transmissions
            self.segments.ask_for(lowest, self.timeout_copies())
        self.restart_rto(now)


class TimeoutMakesSuspect(RwbpSender):
    """Takes for lost what a timeout sends again, so that its loss can be false (RWBP-FF-002)."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`; SUSPECT and REPAIRED do not stay as they are."""
        lowest, timeouts = self.segments.lowest(), self.counters.timeouts
        super().on_timeout(now)
        if lowest is not None and self.counters.timeouts > timeouts:
            lowest.suspect = True
            lowest.repaired = None


class OneFalseLossPerAck(RwbpSender):
    """Counts acknowledgments that tell of false losses, not the losses (RWBP-FF-003)."""

    _counted = False

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """See :class:`RwbpSender`."""
        self._counted = False
        super().on_arrivals(arrived, now)

    def on_false_loss(self) -> None:
        """See :class:`RwbpSender`; the second one of an acknowledgment is not counted."""
        if not self._counted:
            self._counted = True
            super().on_false_loss()


# -- scheduling (section 9.2) -----------------------------------------------------------------


class RemovalRestartsRing(RoundRobin):
    """Starts again from the first when the one served last is deleted (RWBP-SC-001)."""

    def remove(self, entry: Entry) -> None:
        """See :class:`RoundRobin`; the pointer into the ring dies with what it points to."""
        super().remove(entry)
        if entry.place != self._last:
            return
        self._last = -1
        following, self._next_round = self._next_round, Round()
        for other in (*following.served, *(each for _, each in following.woken)):
            heappush(self._round.woken, (other.place, other))


class DeficitOfData(DeficitRoundRobin):
    """Takes octets of data from DEFICIT and not those of IP packets (RWBP-SC-003)."""

    def take(self, now: float) -> Segment | None:
        """See :class:`DeficitRoundRobin`; headers cost nothing."""
        while (entry := self._current()) is not None:
            flow = entry.flow
            octets = flow.next_octets() - HEADER_OCTETS
            if octets > entry.deficit:
                self._turn = None
                self._queue(entry)
                continue
            entry.deficit -= octets
            segment = flow.serve(now)
            if not flow.can_send():
                self._end_idle(entry)
            return segment
        return None


def _deficit_of_data(setup: Setup) -> Setup:
    return setup.configured(scheduler="drr").with_part(DeficitOfData)


def _is_pure(packet: Segment) -> bool:
    return not packet.payload and not packet.flags & (_SYN | _FIN | _RST)


class ReplacedInPlace(IpQueue):
    """Lets an acknowledgment leave in the place of the one that it replaces (RWBP-SC-005)."""

    def put(self, packet: Segment) -> None:
        """See :class:`IpQueue`; it overtakes what has entered the queue before it."""
        packets = self._packets
        if self.has_room() or not _is_pure(packet):
            super().put(packet)
            return
        ends = packet.destination, packet.dport, packet.sport
        same = [
            at
            for at, other in enumerate(packets)
            if _is_pure(other) and (other.destination, other.dport, other.sport) == ends
        ]
        if not same:
            super().put(packet)
            return
        for at in reversed(same[1:]):
            del packets[at]
        packets[same[0]] = packet


class PlainOutsideRing(RwbpConnection):
    """Lets the segments of plain TCP enter the IP queue without a turn (section 4.3)."""

    def transmit_unscheduled(self, now: float) -> list[Segment]:
        """See :class:`RwbpConnection`; the scheduler serves RWBP only."""
        return super().transmit_unscheduled(now) if self.agreed else self.transmit(now)


# -- the gateway's credit (section 9.4) -------------------------------------------------------


class OnlyNewCreditLives(Credit):
    """Lets credit grow stale unless a frame raises the limit (RWBP-LC-005)."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`; a frame that repeats the limit is no sign of life."""
        before, heard = (self.epoch, self.limit), self._heard
        super().on_frame(frame, now)
        if (self.epoch, self.limit) == before:
            self._heard = heard


class LimitOutlivesEpoch(Credit):
    """Keeps the higher limit when a newer epoch begins, too (RWBP-LC-004)."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`; the limit never retreats at all."""
        held = self.limit
        begins = self.epoch is not None and EPOCHS.before(self.epoch, frame.epoch)
        super().on_frame(frame, now)
        if begins and COUNTS.before(self.limit, held):
            self.limit = held


class ReplacedStayCounted(IpQueue):
    """Counts a packet when it enters the queue, though it may be replaced (RWBP-LC-007)."""

    def _supersede(self, packet: Segment) -> None:
        """See :class:`IpQueue`; the credit of what is removed is not given back."""
        before = len(self)
        super()._supersede(packet)
        if self._credit is not None:
            self._credit.passed = self._credit.passed + before - len(self) & COUNTS.mask


# -- opening and resetting (sections 5.4 and 10) ----------------------------------------------


class ResetAtEdge(RwbpReceiver):
    """Takes RCV.EDGE for a number within the window when a RST has it (RWBP-CX-005)."""

    def is_stray_reset(self, seq: int) -> bool:
        """See :class:`RwbpReceiver`; RWBP-WN-013 is applied to RSTs."""
        return super().is_stray_reset(seq) and super().is_stray_reset(seq - 1)


class TimerIgnoresRepetition(RwbpHandshake):
    """Does not restart the timer when a repeated SYN is answered (section 5.4, RWBP-CX-002)."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`RwbpHandshake`."""
        deadline = self.deadline
        super().sent(now, repeated=repeated)
        if repeated and deadline is not None:
            self.deadline = deadline


FAULTS: tuple[Fault, ...] = (
    Fault(
        "rwbp-b5-options-beyond-end",
        "It goes on reading the option list behind an option 0, which it takes for padding.",
        "RWBP-WF-001; RWBP-NG-003",
        _options_beyond_end,
    ),
    Fault(
        "rwbp-b5-fin-within-smss",
        "It sends the FIN in a segment of its own when the last data fills SMSS.",
        "RWBP-WF-008",
        _part(FinWithinSmss),
    ),
    Fault(
        "rwbp-b5-exid-of-sixteen-bits",
        "It recognizes the RWBP option by the first 16 bits of the ExID.",
        "RWBP-NG-003; RWBP-NG-006",
        _part(ShortExperiment),
    ),
    Fault(
        "rwbp-b5-scaled-answer-refused",
        "As caller it goes on as plain TCP if a SYN-ACK with RWBP has a scale or timestamps.",
        "RWBP-NG-009; RWBP-WN-001",
        _part(ScaledAnswerRefused),
    ),
    Fault(
        "rwbp-b5-repeated-syn-counts",
        "It uses the interval, unit and MSS of the caller's repeated SYN, not those of the first.",
        "RWBP-NG-003; RWBP-AK-001; RWBP-WF-006",
        _part(RepeatedSynCounts),
    ),
    Fault(
        "rwbp-b5-signed-product",
        "It computes window field times unit in signed 32 bits, so that large windows vanish.",
        "RWBP-WN-002; RWBP-FC-003",
        _part(SignedProduct),
    ),
    Fault(
        "rwbp-b5-update-by-growth",
        "It sends a window update if the window, not the edge, has grown since the last field.",
        "RWBP-WN-007",
        _part(UpdateByGrowth),
    ),
    Fault(
        "rwbp-b5-lone-fin-not-probed",
        "It does not probe a closed window when nothing but the FIN waits.",
        "RWBP-WN-008",
        _part(LoneFinNotProbed),
    ),
    Fault(
        "rwbp-b5-third-segment-window-lost",
        "It ignores the window of the segment that acknowledges its SYN-ACK.",
        "RWBP-WN-002; RWBP-FC-003",
        _part(ThirdSegmentWindowLost),
    ),
    Fault(
        "rwbp-b5-overlap-is-orderly",
        "It delays the acknowledgment of a segment that repeats octets and brings the next ones.",
        "RWBP-AK-003",
        _part(OverlapIsOrderly),
    ),
    Fault(
        "rwbp-b5-rotation-restarts",
        "It starts the rotation of SACK blocks from the lowest run whenever RCV.NXT rises.",
        "RWBP-AK-006",
        _part(RotationRestarts),
    ),
    Fault(
        "rwbp-b5-throttled-challenges",
        "It answers SYNs and RSTs on an open connection at most once a second.",
        "RWBP-AK-003; RWBP-CX-005",
        _part(ThrottledChallenges),
    ),
    Fault(
        "rwbp-b5-fin-below-held-data",
        "It takes a FIN whose number is below octets that it has reported.",
        "RWBP-EC-008; RWBP-EC-009; RWBP-CX-001",
        _part(FinBelowHeldData),
    ),
    Fault(
        "rwbp-b5-old-by-window",
        "It discards a segment whose acknowledgment is older than the largest window it was given.",
        "RWBP-EC-015",
        _part(OldByWindow),
    ),
    Fault(
        "rwbp-b5-fin-outside-blocks",
        "It does not count a segment with data and FIN as arrived when a block names its data.",
        "RWBP-EC-010; RWBP-EC-012",
        _part(FinOutsideBlocks),
    ),
    Fault(
        "rwbp-b5-repairs-in-order-of-losses",
        "It retransmits lost segments in the order of their last transmission, not lowest first.",
        "RWBP-EC-004",
        _part(RepairsInOrderOfLosses),
    ),
    Fault(
        "rwbp-b5-repair-gains-fin",
        "It sets FIN in a retransmission of the last data once a separate FIN has been sent.",
        "RWBP-EC-011",
        _part(RepairGainsFin),
    ),
    Fault(
        "rwbp-b5-measures-unless-backed-off",
        "It measures segments sent before a timeout as soon as BACKOFF is 0 again.",
        "RWBP-TM-002; RWBP-TM-001",
        _part(MeasuresUnlessBackedOff),
    ),
    Fault(
        "rwbp-b5-only-the-lowest-waits",
        "It has a timeout while a segment other than the lowest still awaits retransmission.",
        "RWBP-TM-005; RWBP-EC-007",
        _part(OnlyTheLowestWaits),
    ),
    Fault(
        "rwbp-b5-timeout-makes-suspect",
        "It counts a false loss when a segment arrives shortly after a timeout has repeated it.",
        "RWBP-FF-002; RWBP-EC-002",
        _part(TimeoutMakesSuspect),
    ),
    Fault(
        "rwbp-b5-one-false-loss-per-ack",
        "It counts several false losses that one acknowledgment shows as one.",
        "RWBP-FF-003",
        _part(OneFalseLossPerAck),
    ),
    Fault(
        "rwbp-b5-removal-restarts-ring",
        "When the connection served last is deleted, the first of the ring has the next turn.",
        "RWBP-SC-001",
        _part(RemovalRestartsRing),
    ),
    Fault(
        "rwbp-b5-deficit-of-data",
        "Its deficit round robin counts octets of data instead of those of IP packets.",
        "RWBP-SC-003",
        _deficit_of_data,
        setting="drr",
    ),
    Fault(
        "rwbp-b5-replaced-in-place",
        "In a full IP queue an acknowledgment takes the place of the older one and not the last.",
        "RWBP-SC-005; RWBP-LC-008",
        _part(ReplacedInPlace),
    ),
    Fault(
        "rwbp-b5-plain-outside-ring",
        "It puts the segments of plain TCP into the IP queue past scheduler and room.",
        "RWBP-FC-005; RWBP-SC-001; RWBP-FC-004",
        _part(PlainOutsideRing),
    ),
    Fault(
        "rwbp-b5-only-new-credit-lives",
        "It takes credit for stale though frames go on to arrive, if they repeat the limit.",
        "RWBP-LC-005; RWBP-LC-008",
        _part(OnlyNewCreditLives),
    ),
    Fault(
        "rwbp-b5-limit-outlives-epoch",
        "It keeps the limit of the old epoch if that of the new one is lower.",
        "RWBP-LC-004; RWBP-LC-002; RWBP-FC-006",
        _part(LimitOutlivesEpoch),
    ),
    Fault(
        "rwbp-b5-replaced-stay-counted",
        "It counts acknowledgments as passed that were replaced in the IP queue.",
        "RWBP-LC-007; RWBP-LC-008",
        _part(ReplacedStayCounted),
    ),
    Fault(
        "rwbp-b5-reset-at-edge",
        "It answers a RST whose number is RCV.EDGE with an acknowledgment.",
        "RWBP-CX-005; RWBP-AK-004",
        _part(ResetAtEdge),
    ),
    Fault(
        "rwbp-b5-timer-ignores-repetition",
        "Its SYN-ACK in answer to a repeated SYN does not restart the timer of the SYN-ACK.",
        "RWBP-CX-002",
        _part(TimerIgnoresRepetition),
    ),
)
