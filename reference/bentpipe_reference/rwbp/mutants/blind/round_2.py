"""Round 2: written from the text of RWBP/1, without the exam, on 2026-11-23."""

from __future__ import annotations

from collections import deque
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.stream import WriteBuffer
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import Credit, CreditFrame
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import EXPERIMENT, KIND
from bentpipe_reference.rwbp.outstanding import Outgoing, Outstanding
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.scheduler import Entry, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

_SYN, _FIN, _RST = (int(flag) for flag in (Flags.SYN, Flags.FIN, Flags.RST))
_EXPERIMENT = EXPERIMENT.to_bytes(4, "big")


# -- negotiation and fallback ---------------------------------------------------------------------


class LeavesOptionOut(RwbpHandshake):
    """RWBP-NG-001: after two unanswered SYNs the option is suspected of being filtered, so that
    the third SYN of a call and those after it have no RWBP option, which the SYN shows."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if not answering and self.attempts >= 2:
            syn.unknown = tuple(each for each in syn.unknown if each[0] != KIND)


class VoidOptionSwitchesOff(RwbpHandshake):
    """RWBP-NG-006: any RWBP option, a void one too, switches scale and timestamps off, so that the
    plain TCP connection after a SYN-ACK with a void option has neither, though both were agreed."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if any(kind == KIND and data[:4] == _EXPERIMENT for kind, data in syn.unknown):
            self.timestamps_ok = self._scaling = False
            self.send_shift = self.receive_shift = 0


# -- windows in units -----------------------------------------------------------------------------


class UnboundedProduct(RwbpConnection):
    """RWBP-WN-002: the window in octets is the bare product; see :class:`SerialEdge`."""

    def _offered_window(self, segment: Segment) -> int:
        peer = self.handshake.peer
        if peer is None or segment.flags & _SYN:
            return super()._offered_window(segment)
        return segment.window * peer.unit


class SerialEdge(RwbpSender):
    """RWBP-WN-002: the product is not taken for 2^30 and the edges are compared in 32 bits, so
    that a window of 2^31 octets and more looks like a lower edge and the sender stops at the old
    one."""

    def update_window(self, ack: Ack) -> bool:
        ahead = ack.number + ack.window - self.edge & MASK
        if not 0 < ahead < 1 << 31:
            return False
        self.edge += ahead
        return True


class HeldTakesWindow(RwbpReceiver):
    """RWBP-WN-003: what is held behind a hole is taken off the window as well, so that the field
    of acknowledgments with blocks is lower than section 6.1 says."""

    def units(self) -> int:
        held = sum(right - left for left, right in self.buffer.runs)
        room = self._size - self.buffer.unread - self.fin_received - held
        return max(0, min(self._most_units, room // self.unit))


class WantsRoomForWholeSegment(RwbpSender):
    """RWBP-FC-003: there must be room for SMSS octets, whatever the next segment has, so that a
    short segment or a FIN that fits below the edge waits, and is probed for."""

    def next_may_be_sent(self) -> bool:
        return self.next_end() is not None and self.snd_nxt + self.smss <= self.edge

    def window_is_closed(self) -> bool:
        if self.segments.count or self.next_end() is None:
            return False
        return self.snd_nxt + self.smss > self.edge


class FinTakesNoRoom(RwbpSender):
    """RWBP-WF-008, RWBP-WN-005: the FIN rides on the last data even where this fills the window to
    the octet, so that its number is not below the edge."""

    def _cut(self) -> Outgoing:
        self.edge += 1
        try:
            return super()._cut()
        finally:
            self.edge -= 1


# -- when acknowledgments are sent ----------------------------------------------------------------


class CountsFullSegments(RwbpReceiver):
    """RWBP-AK-001: N full-sized segments' worth of octets is waited for, as TCP does for two, so
    that the N-th segment is not acknowledged at once if some of them are shorter than others."""

    _largest = 1
    _octets = 0
    _arriving = 0

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        self._arriving = len(payload)
        self._largest = max(self._largest, len(payload))
        super().on_text(seq, payload, fin, now)

    def on_counted(self, *, orderly: bool, now: float) -> None:
        if not orderly:
            super().on_counted(orderly=False, now=now)
            return
        self._octets += self._arriving
        self.unacked = 1
        if self._octets >= self.interval * self._largest:
            self.ack_now = True
        elif self.ack_deadline is None:
            self.ack_deadline = now + self.delayed_ack_interval()

    def note_ack_sent(self, *, complete: bool = True) -> None:
        super().note_ack_sent(complete=complete)
        if complete:
            self._octets = 0


class RepetitionAcknowledges(RwbpConnection):
    """RWBP-AK-008: a retransmission counts as a complete acknowledgment, too, so that one leaving
    between a segment of the peer and the end of the 0.1 s takes the place of the pure one."""

    def is_complete(self, receiver: RwbpReceiver) -> bool:
        return not receiver.buffer.runs


class DuplicatesOncePerSecond(RwbpConnection):
    """RWBP-AK-003: the limit of reminders covers all unacceptable segments, so that the second of
    two duplicates of data within a second is not acknowledged."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        with_data = (segment.payload or segment.flags & _FIN) and not segment.flags & (_SYN | _RST)
        if with_data and isinstance(receiver, RwbpReceiver) and not due:
            receiver.ack_now = False
            receiver.remind(now)


class CapsInterval(RwbpReceiver):
    """RWBP-AK-004: intervals above 32 count as 32, so that a peer that asks for one acknowledgment
    for 64 segments gets two, the first after 32."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.interval = min(self.interval, 32)


# -- blocks ---------------------------------------------------------------------------------------


class RotationRestarts(RwbpReceiver):
    """RWBP-AK-006: RCV.ROT becomes RCV.NXT whenever this rises, and not only when it rises above
    it, so that with five runs and more the third block is the lowest again after each advance."""

    _known = 0

    def rotated(self, others: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if self.rcv_nxt > self._known:
            self._known = self.rotation = self.rcv_nxt
        return super().rotated(others)


class FinInBlock(RwbpReceiver):
    """RWBP-AK-007: a FIN that waits behind a hole is held like an octet, so that the block of the
    data before it covers its number."""

    def sack_blocks_to_send(self, most: int = 4) -> tuple[tuple[int, int], ...]:
        blocks = super().sack_blocks_to_send(most)
        return tuple((left, right + (right == self.fin_seq)) for left, right in blocks)


class TopDoesNotWrap(RwbpReceiver):
    """RWBP-WF-002: RCV.TOP is the larger of two 32-bit numbers, so that once the peer's numbers
    have wrapped nothing is orderly and each segment is acknowledged at once."""

    def _hold(self, seq: int, payload: bytes) -> None:
        top = self.top
        super()._hold(seq, payload)
        if self.top & MASK < top & MASK:
            self.top = top


# -- recovery -------------------------------------------------------------------------------------


class Line(Outstanding):
    """What awaits retransmission stands in line instead of in the order of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._line: deque[Outgoing] = deque()

    def ask_for(self, segment: Outgoing, copies: int) -> None:
        segment.copies = copies
        self._line.append(segment)

    def due(self) -> Outgoing | None:
        line = self._line
        while line and (line[0].arrived or not line[0].copies):
            line.popleft()
        return line[0] if line else None


class RepairsInLine(RwbpSender):
    """RWBP-EC-004: retransmissions leave in the order in which the losses are found, which is that
    of the last transmissions, so that a segment lost twice leaves behind a higher one lost once."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.segments = Line()


class TimedOutIsTimersBusiness(RwbpSender):
    """RWBP-EC-002: a segment that a timeout has repeated is left to the timer, so that the loss of
    both copies is not repaired when the arrival of a later segment shows it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._timed_out: set[int] = set()

    def on_timeout(self, now: float) -> None:
        lowest, timeouts = self.segments.lowest(), self.counters.timeouts
        super().on_timeout(now)
        if lowest is not None and self.counters.timeouts > timeouts:
            self._timed_out.add(lowest.start)

    def take_for_lost(self, now: float) -> None:  # noqa: ARG002
        for segment in self.segments.sent_before(self.loss_bound()):
            if segment.start not in self._timed_out:
                segment.suspect = True
                segment.repaired = None
                self.segments.ask_for(segment, 1)


class ClosingReadsNumberOnly(RwbpConnection):
    """RWBP-CX-004: in CLOSING and LAST-ACK only the acknowledgment number is looked at, so that
    blocks show no loss there and what is lost before the FIN waits for the timer."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if self.state in (State.CLOSING, State.LAST_ACK):
            return Ack(ack.number, ack.window, ack.seq, (), ack.ts_ecr_age, ack.bare)
        return ack


# -- the timer ------------------------------------------------------------------------------------


class OneCopyOfFin(RwbpSender):
    """RWBP-EC-007: a FIN in a segment of its own has a path of its own, on which a timeout sends
    it once and not twice."""

    def timeout_copies(self) -> int:
        lowest = self.segments.lowest()
        bare = lowest is not None and not lowest.payload
        return 1 if bare else super().timeout_copies()


class AnyAckRestarts(RwbpSender):
    """RWBP-TM-003: every acknowledgment restarts the timer, also one that reports nothing new, so
    that data of the peer puts the timeout off for as long as it comes."""

    def on_ack(self, ack: Ack, now: float) -> None:
        super().on_ack(ack, now)
        if self.segments.count:
            self.restart_rto(now)


class NothingPredicted(RwbpConnection):
    """Every segment is looked at, for :class:`AnyAckRestarts`."""

    def _is_predicted(self, segment: Segment) -> bool:  # noqa: ARG002
        return False


class BacksOffWhileHeldUp(RwbpSender):
    """RWBP-TM-005: the timer backs off although the copies of the last timeout have not left yet,
    so that after seconds without credit the next timeout comes many RTO late."""

    def on_timeout(self, now: float) -> None:
        if self.segments.due() is not None:
            self.backoff += 1
        super().on_timeout(now)


# -- closed windows, and the send buffer ----------------------------------------------------------


class ProbesOnlyZero(RwbpSender):
    """RWBP-WN-008: only a window of nothing is probed, so that where a window is left that is
    smaller than the next segment and the update is lost, the sender stays silent for ever."""

    def window_is_closed(self) -> bool:
        return self.edge <= self.snd_nxt and super().window_is_closed()


class BufferEndsAtFirstHole(RwbpSender):
    """RWBP-FC-008: the send buffer is a ring that begins at SND.UNA, so that what has arrived above
    a hole takes room, and a sender whose window is open stops one send buffer above the hole."""

    @property
    def buffered(self) -> int:
        end = self.data_end
        sent = self.snd_nxt - self.snd_una
        return sent + (0 if end is None else max(0, end - self.snd_nxt))

    def next_end(self) -> int | None:
        end = super().next_end()
        if end is None or isinstance(self.source, WriteBuffer):
            return end
        sent = self.snd_nxt - self.snd_una
        full = end - self.snd_nxt >= self.smss
        return None if full and sent and sent + self.smss > self.config.send_buffer else end


# -- scheduler, queue and credit ------------------------------------------------------------------


class RingOfActivation(RoundRobin):
    """RWBP-SC-001: connections stand in the ring in the order in which they became able to send,
    not in that in which they were opened, which shows when several wait for room or credit."""

    def __init__(self) -> None:
        super().__init__()
        self._active: deque[Entry] = deque()

    def wake(self, entry: Entry) -> bool:
        if entry.queued or entry.removed:
            return False
        self._queue(entry)
        return True

    def _queue(self, entry: Entry) -> None:
        entry.queued = True
        self._active.append(entry)

    def _next(self) -> Entry | None:
        while self._active:
            entry = self._active.popleft()
            entry.queued = False
            if not entry.removed and entry.flow.can_send():
                return entry
        return None


class ReplacesInPlace(IpQueue):
    """RWBP-LC-008, RWBP-SC-005: in a full queue a newer acknowledgment is written over the older
    one, where this stands, so that it leaves before data that entered the queue earlier."""

    def put(self, packet: Segment) -> None:
        ends = packet.destination, packet.dport, packet.sport
        if not self.has_room() and self._is_pure(packet):
            for at, other in enumerate(self._packets):
                if self._is_pure(other) and ends == (other.destination, other.dport, other.sport):
                    self._packets[at] = packet
                    return
        super().put(packet)

    @staticmethod
    def _is_pure(packet: Segment) -> bool:
        return not packet.payload and not packet.flags & (_SYN | _FIN | _RST)


class OldEpochIsSignOfLife(Credit):
    """RWBP-LC-005, RWBP-LC-004: a frame of an older epoch changes no count but shows that the
    gateway lives, so that packets leave although no frame that counts has come for a second."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        super().on_frame(frame, now)
        self._heard = now


# -- order that is not kept -----------------------------------------------------------------------


class TimeoutForgetsDisorder(RwbpSender):
    """RWBP-FF-003: a timeout sets the whole of the loss detection back, K and FALSE with it, so
    that after one a single later arrival makes segments count as lost again."""

    def on_timeout(self, now: float) -> None:
        timeouts = self.counters.timeouts
        super().on_timeout(now)
        if self.counters.timeouts > timeouts:
            self.threshold = 1
            self.false_losses = 0


def _with(*parts: type[Any]) -> Any:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


FAULTS = (
    Fault(
        "rwbp-b2-option-left-out",
        "From the third SYN of a call on there is no RWBP option, in case it is what gets lost.",
        "RWBP-NG-001",
        _with(LeavesOptionOut),
    ),
    Fault(
        "rwbp-b2-void-option-switches-off",
        "A void RWBP option switches window scale and timestamps off on a plain TCP connection.",
        "RWBP-NG-006",
        _with(VoidOptionSwitchesOff),
    ),
    Fault(
        "rwbp-b2-product-beyond-half",
        "Windows of 2^31 octets and more, not taken for 2^30, look like an edge that retreats.",
        "RWBP-WN-002",
        _with(UnboundedProduct, SerialEdge),
    ),
    Fault(
        "rwbp-b2-held-takes-window",
        "The window field is lower by what is held behind a hole.",
        "RWBP-WN-003",
        _with(HeldTakesWindow),
    ),
    Fault(
        "rwbp-b2-room-for-whole-segment",
        "A short segment waits until the window has room for one of SMSS.",
        "RWBP-FC-003; RWBP-WN-008",
        _with(WantsRoomForWholeSegment),
    ),
    Fault(
        "rwbp-b2-fin-takes-no-room",
        "The FIN rides on data that fills the window to the octet.",
        "RWBP-WF-008; RWBP-WN-005",
        _with(FinTakesNoRoom),
    ),
    Fault(
        "rwbp-b2-counts-full-segments",
        "Octets worth N full segments, not N segments, call for an acknowledgment.",
        "RWBP-AK-001",
        _with(CountsFullSegments),
    ),
    Fault(
        "rwbp-b2-repetition-acknowledges",
        "A retransmission takes the place of an acknowledgment that is due.",
        "RWBP-AK-008; RWBP-AK-002",
        _with(RepetitionAcknowledges),
    ),
    Fault(
        "rwbp-b2-duplicates-once-per-second",
        "Of duplicates of data that arrive within a second only the first is acknowledged.",
        "RWBP-AK-003",
        _with(DuplicatesOncePerSecond),
    ),
    Fault(
        "rwbp-b2-interval-capped",
        "An interval above 32 counts as 32.",
        "RWBP-AK-004; RWBP-AK-001",
        _with(CapsInterval),
    ),
    Fault(
        "rwbp-b2-rotation-restarts",
        "The rotation of the blocks begins anew whenever RCV.NXT rises.",
        "RWBP-AK-006",
        _with(RotationRestarts),
    ),
    Fault(
        "rwbp-b2-fin-in-block",
        "A block covers the number of a FIN that is held.",
        "RWBP-AK-007",
        _with(FinInBlock),
    ),
    Fault(
        "rwbp-b2-top-does-not-wrap",
        "RCV.TOP does not pass 2^32, and what arrives from there on is never orderly.",
        "RWBP-WF-002; RWBP-AK-004",
        _with(TopDoesNotWrap),
    ),
    Fault(
        "rwbp-b2-repairs-in-line",
        "Retransmissions leave in the order of the last transmissions, not lowest first.",
        "RWBP-EC-004",
        _with(RepairsInLine),
    ),
    Fault(
        "rwbp-b2-timed-out-left-to-timer",
        "A segment once repeated by a timeout is never taken for lost any more.",
        "RWBP-EC-002",
        _with(TimedOutIsTimersBusiness),
    ),
    Fault(
        "rwbp-b2-closing-ignores-blocks",
        "SACK blocks are not read in CLOSING and LAST-ACK.",
        "RWBP-CX-004; RWBP-EC-002",
        _with(ClosingReadsNumberOnly),
    ),
    Fault(
        "rwbp-b2-one-copy-of-fin",
        "A timeout sends one copy of a FIN without data.",
        "RWBP-EC-007; RWBP-CX-003",
        _with(OneCopyOfFin),
    ),
    Fault(
        "rwbp-b2-any-ack-restarts",
        "Every acknowledgment restarts the retransmission timer.",
        "RWBP-TM-003",
        _with(AnyAckRestarts, NothingPredicted),
    ),
    Fault(
        "rwbp-b2-backs-off-while-held-up",
        "The timer backs off while a segment still waits to be retransmitted.",
        "RWBP-TM-005",
        _with(BacksOffWhileHeldUp),
    ),
    Fault(
        "rwbp-b2-probes-only-zero",
        "A window that is open but too small for the next segment is not probed.",
        "RWBP-WN-008",
        _with(ProbesOnlyZero),
    ),
    Fault(
        "rwbp-b2-buffer-ends-at-hole",
        "What has arrived above a hole takes room in the send buffer.",
        "RWBP-FC-008",
        _with(BufferEndsAtFirstHole),
    ),
    Fault(
        "rwbp-b2-ring-of-activation",
        "Turns come in the order in which connections became able to send.",
        "RWBP-SC-001",
        _with(RingOfActivation),
    ),
    Fault(
        "rwbp-b2-replaces-in-place",
        "In a full queue an acknowledgment takes the place, not only the turn, of the older one.",
        "RWBP-LC-008; RWBP-SC-005",
        _with(ReplacesInPlace),
    ),
    Fault(
        "rwbp-b2-old-epoch-keeps-credit",
        "A frame of an older epoch keeps the credit from growing stale.",
        "RWBP-LC-005; RWBP-LC-004",
        _with(OldEpochIsSignOfLife),
    ),
    Fault(
        "rwbp-b2-timeout-forgets-disorder",
        "A timeout brings the threshold of losses back to one.",
        "RWBP-FF-003",
        _with(TimeoutForgetsDisorder),
    ),
)
