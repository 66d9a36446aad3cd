"""Round 4: written from the text of RWBP/1, without the exam, on 2026-11-29."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from heapq import heappush

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import Range
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import COUNTS, EPOCHS, Credit, CreditFrame
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import KIND, VERSION
from bentpipe_reference.rwbp.outstanding import START, Outgoing, Outstanding
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.scheduler import Entry, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack, Put
from bentpipe_reference.tcp.wire.options import SACK
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

_SYN, _FIN, _RST = (int(flag) for flag in (Flags.SYN, Flags.FIN, Flags.RST))
_NOT_PURE = _SYN | _FIN | _RST
_VERSION_AT = 4
"""Of the octet with version and reserved bits, in the data of an RWBP option."""


def _with(*parts: type) -> Callable[[Setup], Setup]:
    """Replace the parts that these classes derive from."""

    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- negotiation and format -----------------------------------------------------------------------


class _ReservedBitsVoid(RwbpHandshake):
    """RWBP-NG-003: version and reserved bits are compared as one octet, so that an option whose
    reserved bits are not zero is taken for void (sections 2 and 4.1)."""

    def take_options(self, syn: Segment) -> None:
        known = tuple(
            (kind, data)
            for kind, data in syn.unknown
            if kind != KIND or len(data) <= _VERSION_AT or data[_VERSION_AT] == VERSION << 4
        )
        super().take_options(replace(syn, unknown=known))


class _CrossedScale(RwbpHandshake):
    """RWBP-NG-004: after crossing SYNs the SYN-ACK is the own SYN with ACK flag, and has its Window
    Scale option beside that of RWBP."""

    _own_scale: int | None = None

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if not answering:
            self._own_scale = syn.window_scale
        elif self._own_scale is not None:
            syn.window_scale = self._own_scale


class _UnitNoBound(RwbpHandshake):
    """RWBP-WF-006: SMSS is found from the MSS options alone; a unit of the peer that is smaller
    does not bound it (section 5.2)."""

    def smss(self) -> int:
        return Handshake.smss(self)


class _SackOptionsJoined(RwbpConnection):
    """RWBP-WF-005: the blocks of all SACK options of a segment are put together, where only the
    first option counts."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.sack_blocks:
            for kind, data in segment.unknown:
                if kind == SACK and len(data) % 8 == 0:
                    numbers = [
                        int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)
                    ]
                    further = zip(numbers[::2], numbers[1::2], strict=True)
                    segment.sack_blocks = (*segment.sack_blocks, *further)
        super().receive(segment, now)


class _HighestByValue(RwbpReceiver):
    """RWBP-AK-006, RWBP-WF-002: the highest of the other runs is found by comparing 32-bit values,
    so that behind a wrap of the numbers a run before it is listed second."""

    def first_blocks(self, runs: tuple[Range, ...]) -> tuple[Range, ...]:
        newest = tuple(
            run for run in runs if self.last is not None and run[0] <= self.last < run[1]
        )
        others = [run for run in runs if run not in newest]
        highest = sorted(others, key=lambda run: run[0] & MASK)[-1:]
        return (*newest, *highest)


# -- windows and probes ---------------------------------------------------------------------------


class _HeldOctetsTakeRoom(RwbpReceiver):
    """RWBP-WN-003: what is held behind a hole is taken out of the window field like unread octets,
    though the field counts from RCV.NXT (section 6.1)."""

    def units(self) -> int:
        held = sum(right - left for left, right in self.buffer.runs)
        return max(0, min(super().units(), (self._size - self.buffer.unread - held) // self.unit))


class _NoUpdateAtOpening(RwbpConnection):
    """RWBP-WN-007: whether an update is due is asked when the user reads only, so that the called
    endpoint keeps the edge of its SYN-ACK when the connection opens (section 6.3)."""

    def _established(self, segment: Segment, now: float) -> None:
        super()._established(segment, now)
        if isinstance(self.receiver, RwbpReceiver) and not segment.flags & _SYN:
            self.receiver.ack_now = False


class _ProbesEmptyWindowOnly(RwbpSender):
    """RWBP-WN-008: the window counts as closed if no octet fits; with room for a part of the next
    segment there are no probes."""

    def window_is_closed(self) -> bool:
        return super().window_is_closed() and self.edge <= self.snd_nxt


class _AnswerRestartsProbes(RwbpSender):
    """RWBP-WN-008: an answer to a probe sets PROBES to 0 though the window stays closed, so that
    the intervals do not grow any more."""

    def on_ack(self, ack: Ack, now: float) -> None:
        super().on_ack(ack, now)
        self.probes = 0


class _DataWaitsForFin(RwbpSender):
    """RWBP-WN-006, RWBP-WF-008: the last data, whose user has closed, waits until its FIN fits into
    the window, too."""

    def _whole_end(self) -> int | None:
        """END of the next segment with the FIN that rides on it."""
        end = self.next_end()
        rides = self.fin_queued and end is not None and self.snd_nxt < end == self.data_end
        return end + 1 if rides and end is not None else end

    def next_may_be_sent(self) -> bool:
        end = self._whole_end()
        return end is not None and end <= self.edge

    def window_is_closed(self) -> bool:
        end = self._whole_end()
        return not self.segments.count and end is not None and end > self.edge


class _NoProbesAfterFin(RwbpConnection):
    """RWBP-CX-004, RWBP-WN-008: once the peer's FIN has arrived no probe is sent, though data waits
    for the window."""

    def advance(self, now: float) -> None:
        if self.agreed and self.peer_has_closed:
            self.sender.persist_deadline = None
        super().advance(now)


# -- acknowledgments ------------------------------------------------------------------------------


class _TailTimerAnew(RwbpReceiver):
    """RWBP-AK-002: each orderly segment starts the acknowledgment timer anew, which is to be left
    alone while it runs."""

    def on_counted(self, *, orderly: bool, now: float) -> None:
        super().on_counted(orderly=orderly, now=now)
        if orderly and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class _DataLeavesTimer(RwbpConnection):
    """RWBP-AK-002, RWBP-AK-004: data that acknowledges sets UNACKED to 0 but does not stop the
    acknowledgment timer, which later sends an acknowledgment that nothing calls for."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        before = None if receiver is None else receiver.ack_deadline
        super()._put(seq, flags, now, payload)
        if payload and isinstance(receiver, RwbpReceiver) and not receiver.ack_now:
            receiver.ack_deadline = before


class _DuplicatesRationed(RwbpConnection):
    """RWBP-AK-003: unacceptable segments with data are answered once a second, as only reminders
    may be."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        due = receiver.ack_now
        super()._receive_unacceptable(segment, seq, receiver, now)
        if isinstance(receiver, RwbpReceiver) and segment.payload and not due and receiver.ack_now:
            receiver.ack_now = False
            receiver.remind(now)


class _RepeatAcknowledges(RwbpConnection):
    """RWBP-AK-008: a retransmission of data counts as a complete acknowledgment and takes the place
    of one that is due."""

    def is_complete(self, receiver: RwbpReceiver) -> bool:
        return not receiver.buffer.runs


class _EarlyFinForgotten(RwbpReceiver):
    """RWBP-EC-008: of a segment behind a hole the data is kept and reported, but its FIN is not;
    the peer, whose segment has arrived, never sends it again."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        early = fin and seq > self.buffer.rcv_nxt
        super().on_text(seq, payload, fin and not early, now)
        if early:
            self.last = seq
            self.ack_now = True


# -- error control and timers ---------------------------------------------------------------------


class _OneUntrueBlock(RwbpSender):
    """RWBP-EC-013: one block that is not true makes the sender ignore the others of the segment,
    too."""

    def arrivals(self, ack: Ack) -> list[Outgoing]:
        if not all(self.accept_sack_block(left, right, ack) for left, right in ack.blocks):
            ack = replace(ack, blocks=())
        return super().arrivals(ack)


class _OldAckIgnored(RwbpSender):
    """RWBP-EC-015: an acknowledgment whose number is below SND.UNA is taken for an old duplicate:
    neither its blocks nor its window count."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number < self.snd_una:
            self.silent_timeouts = 0
            return
        super().on_ack(ack, now)


class _ByTransmission(Outstanding):
    """Lets first be repeated what was transmitted longest ago."""

    def ask_for(self, segment: Outgoing, copies: int) -> None:
        segment.copies = copies
        heappush(self._due, (segment.latest, segment))


class _OldestTransmissionFirst(RwbpSender):
    """RWBP-EC-004: segments that await retransmission leave in the order of their last
    transmissions, not the lowest first."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        super().__init__(config, put, iss, estimator, edge)
        self.segments = _ByTransmission()


class _RepeatGainsFin(RwbpSender):
    """RWBP-EC-011: when the user has closed meanwhile, a retransmission of the last data has the
    FIN flag, which its first transmission had not."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        fin = segment.fin
        repeated = segment.first <= self.transmissions
        if repeated and self.fin_queued and segment.payload and segment.end == self.data_end:
            segment.fin = True
        super()._transmit_segment(segment, now)
        segment.fin = fin


class _TimerAnewWhenSending(RwbpSender):
    """RWBP-TM-003: each transmission starts the retransmission timer anew, also while it runs
    (section 8.2, step 3)."""

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        self.rto_deadline = None
        super()._transmit_segment(segment, now)


class _BackoffUntilSample(RwbpSender):
    """RWBP-TM-004: BACKOFF stays until an acknowledgment yields a sample, as by Karn's algorithm;
    the arrival of a retransmission does not end it."""

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        backoff, measured = self.backoff, self.may_measure(max(arrived, key=START))
        super().on_arrivals(arrived, now)
        if not measured:
            self.backoff = backoff
            self.restart_rto(now)


class _OneFalseLossEach(RwbpSender):
    """RWBP-FF-003: several false losses that one acknowledgment shows raise FALSE by one together,
    so that K stays 1 after the third (section 8.5)."""

    _false_at = -math.inf

    def was_false(self, segment: Outgoing, now: float) -> bool:
        if not super().was_false(segment, now) or now == self._false_at:
            return False
        self._false_at = now
        return True


# -- scheduling, buffers, queue and credit --------------------------------------------------------


class _UpToLowest(Outstanding):
    """Counts what has arrived behind the lowest segment that has not."""

    def remove(self, arrived: list[Outgoing]) -> None:
        super().remove(arrived)
        lowest = self.lowest()
        self.octets = 0 if lowest is None else self._segments[-1].end - lowest.start


class _RoomWhenCumulative(RwbpSender):
    """RWBP-FC-008: octets that blocks have reported are room in the send buffer only when the
    acknowledgment number has passed them."""

    def __init__(
        self, config: EndpointConfig, put: Put, iss: int, estimator: RttEstimator, edge: int
    ) -> None:
        super().__init__(config, put, iss, estimator, edge)
        self.segments = _UpToLowest()


class _FirstReadyFirst(RoundRobin):
    """RWBP-SC-001: the ring is a list of the connections that can send, in the order in which they
    became able to, not in which they were opened."""

    def wake(self, entry: Entry) -> bool:
        if entry.queued or entry.removed:
            return False
        self._queue(entry)
        return True


def _is_pure(packet: Segment) -> bool:
    """Whether it is a pure acknowledgment."""
    return not packet.payload and not packet.flags & _NOT_PURE


def _ends(packet: Segment) -> tuple[int, int, int]:
    """Whose connection a packet belongs to."""
    return packet.destination, packet.dport, packet.sport


class _PlaceKept(IpQueue):
    """RWBP-SC-005, RWBP-LC-008: an acknowledgment that replaces another one takes its place in the
    queue, before data that entered earlier, and is not the last (section 9.2)."""

    def put(self, packet: Segment) -> None:
        if not self.has_room() and _is_pure(packet):
            ends, waiting = _ends(packet), self._packets
            alike = [each for each in waiting if _is_pure(each) and _ends(each) == ends]
            if alike:
                left = [each for each in waiting if not any(each is one for one in alike[1:])]
                self._packets = deque(packet if each is alike[0] else each for each in left)
                return
        super().put(packet)


class _HealsWhenExhausted(Credit):
    """RWBP-LC-006: after a second without a packet PASSED becomes the frame's count of arrived ones
    only if no credit is left; else what was lost on the way to the gateway stays lost."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        epoch, passed = self.epoch, self.passed
        super().on_frame(frame, now)
        if epoch == self.epoch and COUNTS.before(passed, self.limit):
            self.passed = passed


class _EpochFromZero(Credit):
    """RWBP-LC-004: when the epoch changes PASSED becomes 0, whatever the frame's count of arrived
    packets is."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        changes = self.epoch is not None and EPOCHS.before(self.epoch, frame.epoch)
        super().on_frame(frame, now)
        if changes:
            self.passed = 0


# -- opening and closing --------------------------------------------------------------------------


class _ResetNeedsWindow(RwbpConnection):
    """RWBP-CX-005: while the own window is closed no number lies within it, and a RST is discarded
    even with SEG.SEQ equal to RCV.NXT."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        reset = isinstance(receiver, RwbpReceiver) and segment.flags & _RST
        if receiver is not None and reset and receiver.edge <= receiver.rcv_nxt:
            return
        super().receive(segment, now)


class _AnswerKeepsTimer(RwbpHandshake):
    """RWBP-CX-002: the SYN-ACK that answers a repeated SYN does not restart its timer, so that
    another one may follow at once (section 5.4)."""

    def sent(self, now: float, *, repeated: bool) -> None:
        deadline = self.deadline
        super().sent(now, repeated=repeated)
        if repeated and deadline is not None:
            self.deadline = deadline


FAULTS = (
    Fault(
        "rwbp-b4-reserved-bits-void",
        "An RWBP option with reserved bits that are not zero is taken for void.",
        "RWBP-NG-003; RWBP-NG-006",
        _with(_ReservedBitsVoid),
    ),
    Fault(
        "rwbp-b4-crossed-scale",
        "After crossing SYNs the SYN-ACK with RWBP option has a Window Scale option, too.",
        "RWBP-NG-004",
        _with(_CrossedScale),
    ),
    Fault(
        "rwbp-b4-unit-no-bound",
        "Segments are larger than the peer's unit if its MSS option is.",
        "RWBP-WF-006",
        _with(_UnitNoBound),
    ),
    Fault(
        "rwbp-b4-sack-options-joined",
        "The blocks of a second SACK option in a segment count.",
        "RWBP-WF-005",
        _with(_SackOptionsJoined),
    ),
    Fault(
        "rwbp-b4-highest-by-value",
        "The highest run is found by 32-bit values, and is another one behind a wrap.",
        "RWBP-AK-006; RWBP-WF-002",
        _with(_HighestByValue),
    ),
    Fault(
        "rwbp-b4-held-octets-take-room",
        "The window field falls by what is held behind a hole.",
        "RWBP-WN-003",
        _with(_HeldOctetsTakeRoom),
    ),
    Fault(
        "rwbp-b4-no-update-at-opening",
        "The called endpoint sends no window update when the connection opens.",
        "RWBP-WN-007",
        _with(_NoUpdateAtOpening),
    ),
    Fault(
        "rwbp-b4-probes-empty-window-only",
        "There are no probes while the window has room for a part of the next segment.",
        "RWBP-WN-008",
        _with(_ProbesEmptyWindowOnly),
    ),
    Fault(
        "rwbp-b4-answer-restarts-probes",
        "An answered probe ends the doubling of the probe interval.",
        "RWBP-WN-008",
        _with(_AnswerRestartsProbes),
    ),
    Fault(
        "rwbp-b4-data-waits-for-fin",
        "The last data waits until the window has room for its FIN, too.",
        "RWBP-WN-006; RWBP-WF-008",
        _with(_DataWaitsForFin),
    ),
    Fault(
        "rwbp-b4-no-probes-after-fin",
        "Once the peer's FIN has arrived a closed window is not probed.",
        "RWBP-CX-004; RWBP-WN-008",
        _with(_NoProbesAfterFin),
    ),
    Fault(
        "rwbp-b4-tail-timer-anew",
        "Each orderly segment starts the acknowledgment timer anew.",
        "RWBP-AK-002",
        _with(_TailTimerAnew),
    ),
    Fault(
        "rwbp-b4-data-leaves-timer",
        "Data that acknowledges does not stop the acknowledgment timer.",
        "RWBP-AK-002; RWBP-AK-004",
        _with(_DataLeavesTimer),
    ),
    Fault(
        "rwbp-b4-duplicates-rationed",
        "Unacceptable segments with data are acknowledged once a second only.",
        "RWBP-AK-003",
        _with(_DuplicatesRationed),
    ),
    Fault(
        "rwbp-b4-repeat-acknowledges",
        "A retransmission replaces an acknowledgment that is due.",
        "RWBP-AK-008",
        _with(_RepeatAcknowledges),
    ),
    Fault(
        "rwbp-b4-early-fin-forgotten",
        "A FIN behind a hole is forgotten, though its data is kept and reported.",
        "RWBP-EC-008; RWBP-CX-003",
        _with(_EarlyFinForgotten),
    ),
    Fault(
        "rwbp-b4-one-untrue-block",
        "A block that is not true makes the others of its segment void.",
        "RWBP-EC-013",
        _with(_OneUntrueBlock),
    ),
    Fault(
        "rwbp-b4-old-ack-ignored",
        "Blocks and window of an acknowledgment below SND.UNA do not count.",
        "RWBP-EC-015; RWBP-WN-002",
        _with(_OldAckIgnored),
    ),
    Fault(
        "rwbp-b4-oldest-transmission-first",
        "Retransmissions leave in the order of the last transmissions, not lowest first.",
        "RWBP-EC-004",
        _with(_OldestTransmissionFirst),
    ),
    Fault(
        "rwbp-b4-repeat-gains-fin",
        "A retransmission of the last data gains a FIN when the user has closed since.",
        "RWBP-EC-011",
        _with(_RepeatGainsFin),
    ),
    Fault(
        "rwbp-b4-timer-anew-when-sending",
        "Each transmission starts the retransmission timer anew.",
        "RWBP-TM-003",
        _with(_TimerAnewWhenSending),
    ),
    Fault(
        "rwbp-b4-backoff-until-sample",
        "The arrival of a retransmission does not set BACKOFF to zero.",
        "RWBP-TM-004",
        _with(_BackoffUntilSample),
    ),
    Fault(
        "rwbp-b4-one-false-loss-each",
        "An acknowledgment that shows several false losses counts for one.",
        "RWBP-FF-003",
        _with(_OneFalseLossEach),
    ),
    Fault(
        "rwbp-b4-room-when-cumulative",
        "Octets that blocks have reported still take room in the send buffer.",
        "RWBP-FC-008",
        _with(_RoomWhenCumulative),
    ),
    Fault(
        "rwbp-b4-first-ready-first",
        "Connections are served in the order in which they became able to send.",
        "RWBP-SC-001",
        _with(_FirstReadyFirst),
    ),
    Fault(
        "rwbp-b4-place-kept",
        "An acknowledgment that replaces another in a full IP queue leaves in its place.",
        "RWBP-SC-005; RWBP-LC-008; RWBP-FF-001",
        _with(_PlaceKept),
    ),
    Fault(
        "rwbp-b4-heals-when-exhausted",
        "PASSED is set right after an idle second only if no credit is left.",
        "RWBP-LC-006",
        _with(_HealsWhenExhausted),
    ),
    Fault(
        "rwbp-b4-epoch-from-zero",
        "A new epoch begins with PASSED 0 and not with what has arrived in it.",
        "RWBP-LC-004",
        _with(_EpochFromZero),
    ),
    Fault(
        "rwbp-b4-reset-needs-window",
        "A RST with SEG.SEQ equal to RCV.NXT is discarded while the window is closed.",
        "RWBP-CX-005",
        _with(_ResetNeedsWindow),
    ),
    Fault(
        "rwbp-b4-answer-keeps-timer",
        "The SYN-ACK that answers a repeated SYN does not restart its timer.",
        "RWBP-CX-002",
        _with(_AnswerKeepsTimer),
    ),
)
