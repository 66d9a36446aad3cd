"""Faults of RWBP/1 that an implementer might ship, seventh round."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappush
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import Range
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import COUNTS, Credit, CreditFrame
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import counting_option
from bentpipe_reference.rwbp.outstanding import Outgoing, Outstanding
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.rtt import RwbpEstimator
from bentpipe_reference.rwbp.scheduler import DeficitRoundRobin, Entry, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack, Put
from bentpipe_reference.tcp.states import SENDS_DATA, State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))
_ECE, _CWR = int(Flags.ECE), int(Flags.CWR)


# -- negotiation ------------------------------------------------------------------------------


class UnitForMissingMss(RwbpHandshake):
    """Where the peer names no MSS, its unit bounds the segments."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`RwbpHandshake`."""
        super().take_options(syn)
        if syn.mss is None and self.peer is not None:
            self._peer_mss = self.peer.unit


class LatestOfferCounts(RwbpConnection):
    """After crossing SYNs the peer's SYN-ACK is read once more."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        option = counting_option(segment)
        if self.state is State.SYN_RECEIVED and self.agreed and option is not None:
            self.handshake.peer = option
            assert isinstance(self.receiver, RwbpReceiver)
            self.receiver.interval = option.interval
        return super()._take_ack(segment, seq, now)


class ReducesForEce(RwbpConnection):
    """ECN that the SYN offered stays on after agreement, as far as answering ECE goes."""

    _offered = False
    _reduces = False

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        self._offered = segment.flags & (_ECE | _CWR) == _ECE | _CWR
        return super()._take_syn(segment, now)

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`RwbpConnection`."""
        if self._offered and segment.flags & (_ECE | _SYN) == _ECE:
            self._reduces = True
        super().receive(segment, now)

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        if payload and self._reduces and self.agreed:
            self._outbox[-1].flags |= _CWR
            self._reduces = False


# -- round-trip times and the timer -----------------------------------------------------------


class OwnRepetitionsOnly(RwbpHandshake):
    """A SYN-ACK that the caller's second SYN asked for does not count as repeated."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`RwbpHandshake`."""
        super().sent(now, repeated=repeated)
        self.attempts -= repeated


class MeanBeforeVariance(RwbpEstimator):
    """SRTT is updated before RTTVAR."""

    def sample(self, rtt: float) -> None:
        """See :class:`RwbpEstimator`."""
        known = self.srtt is not None
        variance = self.rttvar if known else 0.0
        super().sample(rtt)
        if known:
            assert self.srtt is not None
            self.rttvar = variance + self.BETA * (abs(self.srtt - rtt) - variance)
            self.rto = self.bounded(self.srtt + max(self.granularity, self.K * self.rttvar))


class FirstTimeoutCounts(RwbpSender):
    """TX.TIMEOUT is set at the first of several timeouts in a row only."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        earlier, repeated = self.at_timeout, self.backoff > 0
        super().on_timeout(now)
        if repeated:
            self.at_timeout = earlier


class WaitingBacksOff(RwbpSender):
    """An expiry while a segment awaits retransmission raises BACKOFF, too."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        if self.segments.due() is not None:
            self.backoff += 1
        super().on_timeout(now)


# -- windows ----------------------------------------------------------------------------------


class DeafThirdSegment(RwbpConnection):
    """What completes the handshake opens the connection; its window is not looked at."""

    def _established(self, segment: Segment, now: float) -> None:
        sender = self.sender
        edge = sender.edge if isinstance(sender, RwbpSender) else None
        super()._established(segment, now)
        if edge is not None and not segment.flags & _SYN and isinstance(sender, RwbpSender):
            sender.edge = edge
            sender.check_probe(now)


class RunsTakeRoom(RwbpReceiver):
    """What is held behind a hole is taken off the room a second time."""

    def units(self) -> int:
        """See :class:`RwbpReceiver`."""
        held = sum(end - start for start, end in self.buffer.runs)
        room = self._size - self.buffer.unread - self.fin_received - held
        return max(0, min(room // self.unit, self._most_units))


class UpdateOfShutWindow(RwbpReceiver):
    """The two units call for an update only if the window is quite closed."""

    def window_update_due(self) -> bool:
        """See :class:`RwbpReceiver`."""
        window = self.edge - self.buffer.rcv_nxt - self.fin_received
        gain = self.units() * self.unit - window
        return 2 * gain >= self._size or (window == 0 and gain >= 2 * self.unit)


class ProbesWithoutBlocks(RwbpConnection):
    """Probes have no SACK option."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        if self.agreed and flags == _ACK and not payload and seq == self.sender.snd_nxt - 1:
            self._outbox[-1].sack_blocks = ()


class FinHoldsData(RwbpSender):
    """The last data waits until there is room for it and its FIN."""

    def next_may_be_sent(self) -> bool:
        """See :class:`RwbpSender`."""
        end = self.next_end()
        if end is None:
            return False
        return end + (self.fin_queued and end == self.data_end) <= self.edge

    def window_is_closed(self) -> bool:
        """See :class:`RwbpSender`."""
        waits = not self.segments.count and self.next_end() is not None
        return waits and not self.next_may_be_sent()


# -- receiving --------------------------------------------------------------------------------


class TopBeyondEdge(RwbpReceiver):
    """RCV.TOP counts what has been cut off, too."""

    def _hold(self, seq: int, payload: bytes) -> None:
        super()._hold(seq, payload)
        self.top = max(self.top, seq + len(payload))


class RefusedIsNotLast(RwbpReceiver):
    """A segment with data that is not acceptable leaves RCV.LAST as it was."""

    def on_refused(self, seq: int) -> None:
        """See :class:`RwbpReceiver`."""


class HighestOnTheWire(RwbpReceiver):
    """The highest run is the one with the largest sequence number field."""

    def first_blocks(self, runs: tuple[Range, ...]) -> tuple[Range, ...]:
        """See :class:`RwbpReceiver`."""
        last = self.last
        newest = [run for run in runs if last is not None and run[0] <= last < run[1]]
        others = [run for run in runs if run not in newest]
        return *newest, *sorted(others, key=lambda run: run[0] & MASK)[-1:]


class FinIsNoData(RwbpConnection):
    """A bare FIN that comes again is answered like what tells nothing: once a second."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        super()._receive_unacceptable(segment, seq, receiver, now)
        bare = segment.flags & (_FIN | _SYN | _RST) == _FIN and not segment.payload
        if bare and isinstance(receiver, RwbpReceiver):
            receiver.ack_now = False
            receiver.remind(now)


class PromptKeepsCount(RwbpReceiver):
    """UNACKED goes on after an acknowledgment that a segment out of order has called for."""

    _prompt = False

    def on_counted(self, *, orderly: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        self._prompt = not orderly
        super().on_counted(orderly=orderly, now=now)

    def note_ack_sent(self, *, complete: bool = True) -> None:
        """See :class:`RwbpReceiver`."""
        counted = self.unacked if self._prompt else 0
        super().note_ack_sent(complete=complete)
        if complete:
            self.unacked, self._prompt = counted, False


class FinAtEdge(RwbpReceiver):
    """A FIN whose number is RCV.EDGE is taken."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`RwbpReceiver`."""
        super().on_text(seq, payload, fin, now)
        number = seq + len(payload)
        if fin and self.fin_seq is None and self.top <= number == self.edge:
            self.fin_seq = number
            self.fin_received = number == self.buffer.rcv_nxt


# -- loss recovery ----------------------------------------------------------------------------


class FinNeedsBlock(RwbpSender):
    """A segment with data and FIN is in no block, for none covers its last number."""

    def _within(self, left: int, right: int) -> list[Outgoing]:
        return [segment for segment in super()._within(left, right) if not segment.fin]


class LongestUnsent(RwbpSender):
    """A timeout repeats the segment whose last transmission is the earliest."""

    def on_timeout(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        segments = self.segments
        if segments.due() is None and segments.count:
            self.silent_timeouts += 1
            self.backoff += 1
            self.at_timeout = self.transmissions
            outstanding = segments.below(self.snd_nxt)
            segments.ask_for(min(outstanding, key=lambda each: each.latest), self.timeout_copies())
        self.restart_rto(now)


class RepairedLast(RwbpSender):
    """REPAIRED is when a segment taken for lost was last transmitted."""

    def use_turn(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        due = self.segments.due()
        super().use_turn(now)
        if due is not None and due.suspect:
            due.repaired = now


class FormerRightEdges(RwbpSender):
    """F2 and F3 are what F1 was before; what arrives below the right edge is left out."""

    def note_firsts(self, firsts: Iterable[int]) -> None:
        """See :class:`RwbpSender`."""
        for first in sorted(firsts):
            if first > self.highest_first[0]:
                self.highest_first = [first, *self.highest_first[:2]]


class _OldestDue(Outstanding):
    """What awaits retransmission is sorted by its last transmission."""

    def ask_for(self, segment: Outgoing, copies: int) -> None:
        """See :class:`Outstanding`."""
        segment.copies = copies
        heappush(self._due, (segment.latest, segment))


class RepairsOldestFirst(RwbpSender):
    """Losses are repeated in the order in which they were last transmitted."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        super().__init__(config, put, iss, estimator, edge)
        self.segments = _OldestDue()


class BlocksWhileOpen(RwbpConnection):
    """SACK blocks count no more once a FIN has been sent."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if self.state not in (State.ESTABLISHED, State.CLOSE_WAIT):
            ack.blocks = ()
        return ack


# -- scheduler, IP queue and link -------------------------------------------------------------


class FirstComeFirstServed(RoundRobin):
    """Turns go in the order in which connections became able to send."""

    def __init__(self) -> None:
        super().__init__()
        self._ready: deque[Entry] = deque()

    def wake(self, entry: Entry) -> bool:
        """See :class:`RoundRobin`."""
        if entry.queued or entry.removed:
            return False
        self._queue(entry)
        return True

    def _queue(self, entry: Entry) -> None:
        entry.queued = True
        self._ready.append(entry)

    def _next(self) -> Entry | None:
        while self._ready:
            entry = self._ready.popleft()
            entry.queued = False
            if not entry.removed and entry.flow.can_send():
                return entry
        return None


class SavedDeficit(DeficitRoundRobin):
    """DEFICIT is kept when a connection cannot send any more."""

    def _end_idle(self, entry: Entry) -> None:  # noqa: ARG002
        self._turn = None


def _pure_ends(packet: Segment) -> tuple[int, int, int] | None:
    """Whose pure acknowledgment it is, None if it is none."""
    if packet.payload or packet.flags & (_SYN | _FIN | _RST):
        return None
    return packet.destination, packet.dport, packet.sport


class TakesItsPlace(IpQueue):
    """In a full queue an acknowledgment takes the place of the one it replaces."""

    def put(self, packet: Segment) -> None:
        """See :class:`IpQueue`."""
        ends = _pure_ends(packet)
        places = [at for at, each in enumerate(self._packets) if _pure_ends(each) == ends]
        if self.has_room() or ends is None or not places:
            super().put(packet)
            return
        self._packets[places[0]] = packet
        for at in reversed(places[1:]):
            del self._packets[at]


class EmptyIsFree(IpQueue):
    """A queue that has run empty takes the link for free."""

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        packet = super().next_to_leave(now)
        if packet is not None and not self._packets:
            self._free_at = now
        return packet


class PassedNeverFalls(Credit):
    """Within an epoch PASSED becomes the frame's count only if that is higher."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        epoch, passed = self.epoch, self.passed
        super().on_frame(frame, now)
        if frame.epoch == epoch and COUNTS.before(self.passed, passed):
            self.passed = passed


# -- odd segments -----------------------------------------------------------------------------


class SynAcknowledges(RwbpConnection):
    """The acknowledgment of a SYN in the window is processed before the SYN is answered."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        opened = self.state in SENDS_DATA
        super()._receive_synchronized(segment, receiver, now)
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        numbered = segment.flags & (_SYN | _ACK | _RST) == _SYN | _ACK
        if opened and numbered and receiver.is_acceptable(seq, segment.sequence_length):
            self._take_ack(segment, seq, now)


def _with(part: type) -> dict[str, Any]:
    """The argument that puts a part in place."""

    def configure(setup: Setup) -> Setup:
        return setup.with_part(part)

    return {"configure": configure}


FAULTS = [
    Fault(
        "rwbp-b7-unit-for-missing-mss",
        "sends segments of the peer's unit where its SYN has no MSS option, not of 536 octets",
        "RWBP-WF-006", **_with(UnitForMissingMss),
    ),
    Fault(
        "rwbp-b7-latest-offer-counts",
        "after crossing SYNs takes interval and unit from the SYN-ACK instead of the SYN",
        "RWBP-AK-001; RWBP-NG-012", **_with(LatestOfferCounts),
    ),
    Fault(
        "rwbp-b7-reduces-for-ece",
        "sets CWR after a segment with ECE if the SYN had offered ECN beside RWBP",
        "RWBP-NG-010", **_with(ReducesForEce),
    ),
    Fault(
        "rwbp-b7-own-repetitions-only",
        "measures the handshake although its SYN-ACK was repeated for the caller's second SYN",
        "RWBP-TM-001", **_with(OwnRepetitionsOnly),
    ),
    Fault(
        "rwbp-b7-mean-before-variance",
        "updates SRTT before RTTVAR, which so takes the deviation from the new mean",
        "RWBP-TM-001", **_with(MeanBeforeVariance),
    ),
    Fault(
        "rwbp-b7-first-timeout-counts",
        "of timeouts in a row only the first sets TX.TIMEOUT: what leaves between is measured",
        "RWBP-TM-002", **_with(FirstTimeoutCounts),
    ),
    Fault(
        "rwbp-b7-waiting-backs-off",
        "raises BACKOFF when the timer expires while a segment awaits retransmission",
        "RWBP-TM-005", **_with(WaitingBacksOff),
    ),
    Fault(
        "rwbp-b7-deaf-third-segment",
        "does not take the window of the segment that completes the handshake",
        "RWBP-WN-002", **_with(DeafThirdSegment),
    ),
    Fault(
        "rwbp-b7-runs-take-room",
        "takes the octets of runs off the window field as if they lay below RCV.NXT",
        "RWBP-WN-003", **_with(RunsTakeRoom),
    ),
    Fault(
        "rwbp-b7-update-of-shut-window",
        "sends no update for two units while a part of a unit is left of the window",
        "RWBP-WN-007", **_with(UpdateOfShutWindow),
    ),
    Fault(
        "rwbp-b7-probes-without-blocks",
        "sends probes without SACK blocks though it holds runs",
        "RWBP-AK-005; RWBP-WN-009", **_with(ProbesWithoutBlocks),
    ),
    Fault(
        "rwbp-b7-fin-holds-data",
        "lets the last data wait if the window has room for it but not for its FIN",
        "RWBP-WF-008; RWBP-FC-003", **_with(FinHoldsData),
    ),
    Fault(
        "rwbp-b7-top-beyond-edge",
        "raises RCV.TOP over octets that it cut off, so that what continues is not orderly",
        "RWBP-AK-004", **_with(TopBeyondEdge),
    ),
    Fault(
        "rwbp-b7-refused-is-not-last",
        "lists the run of the last acceptable segment first though a refused one came after it",
        "RWBP-AK-006", **_with(RefusedIsNotLast),
    ),
    Fault(
        "rwbp-b7-highest-on-the-wire",
        "takes for the highest run the one with the largest field, also where numbers wrap",
        "RWBP-AK-006; RWBP-WF-002", **_with(HighestOnTheWire),
    ),
    Fault(
        "rwbp-b7-fin-is-no-data",
        "leaves out the acknowledgment of a repeated bare FIN within 1 s of another one's",
        "RWBP-AK-003; RWBP-CX-003", **_with(FinIsNoData),
    ),
    Fault(
        "rwbp-b7-prompt-keeps-count",
        "does not reset UNACKED with an acknowledgment for a segment that is not orderly",
        "RWBP-AK-001; RWBP-AK-004", **_with(PromptKeepsCount),
    ),
    Fault(
        "rwbp-b7-fin-at-edge",
        "takes a FIN whose number is RCV.EDGE",
        "RWBP-WN-004", **_with(FinAtEdge),
    ),
    Fault(
        "rwbp-b7-fin-needs-block",
        "does not take a segment with data and FIN for arrived when a block covers its data",
        "RWBP-EC-010; RWBP-EC-002", **_with(FinNeedsBlock),
    ),
    Fault(
        "rwbp-b7-longest-unsent",
        "repeats after a timeout the segment that was transmitted longest ago, not the lowest",
        "RWBP-EC-007", **_with(LongestUnsent),
    ),
    Fault(
        "rwbp-b7-repaired-last",
        "moves REPAIRED with every copy, so that a late arrival after a timeout looks false",
        "RWBP-FF-002; RWBP-EC-002", **_with(RepairedLast),
    ),
    Fault(
        "rwbp-b7-former-right-edges",
        "keeps as F2 and F3 former values of F1 only, without arrivals below the right edge",
        "RWBP-FF-003; RWBP-EC-002", **_with(FormerRightEdges),
    ),
    Fault(
        "rwbp-b7-repairs-oldest-first",
        "repeats what is lost in the order of last transmission, not the lowest first",
        "RWBP-EC-004", **_with(RepairsOldestFirst),
    ),
    Fault(
        "rwbp-b7-blocks-while-open",
        "does not look at SACK blocks in FIN-WAIT-1, CLOSING and LAST-ACK",
        "RWBP-CX-004; RWBP-EC-002", **_with(BlocksWhileOpen),
    ),
    Fault(
        "rwbp-b7-first-come-first-served",
        "serves connections in the order in which they became able to send, not in the ring's",
        "RWBP-SC-001", **_with(FirstComeFirstServed),
    ),
    Fault(
        "rwbp-b7-saved-deficit",
        "keeps the DEFICIT of a connection that cannot send any more",
        "RWBP-SC-003", setting="drr", **_with(SavedDeficit),
    ),
    Fault(
        "rwbp-b7-takes-its-place",
        "lets an acknowledgment in a full queue leave in the place of the one it replaces",
        "RWBP-SC-005; RWBP-LC-008", **_with(TakesItsPlace),
    ),
    Fault(
        "rwbp-b7-empty-is-free",
        "forgets that the last packet still occupies the link when the IP queue is empty",
        "RWBP-LC-011", **_with(EmptyIsFree),
    ),
    Fault(
        "rwbp-b7-passed-never-falls",
        "does not lower PASSED to a frame's count after 1 s without a packet",
        "RWBP-LC-006", **_with(PassedNeverFalls),
    ),
    Fault(
        "rwbp-b7-syn-acknowledges",
        "processes the acknowledgment number and window of a SYN in the window",
        "RWBP-CX-001", **_with(SynAcknowledges),
    ),
]  # fmt: skip
