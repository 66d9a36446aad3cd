"""Round 3: written from the text of RWBP/1, without the exam, on 2026-11-29."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.ranges import Range
from bentpipe_reference.rwbp.connection import HEADER_OCTETS, RwbpConnection
from bentpipe_reference.rwbp.credit import COUNTS, LIFE, Credit, CreditFrame
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.option import counting_option
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.receiver import BLOCKS, RwbpReceiver
from bentpipe_reference.rwbp.scheduler import Entry, Round, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.handshake import DEFAULT_MSS
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.codec import parse_packet
from bentpipe_reference.tcp.wire.options import END, NOP, parse_options
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap

_ACK, _SYN, _FIN, _RST = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.FIN, Flags.RST))

_TCP_OCTETS = 20
_OFFSET_AT = 12
"""Of the data offset in a TCP header."""


# -- negotiation and options ----------------------------------------------------------------------


class ZeroIsNoMss(RwbpHandshake):
    """RWBP-WF-006: an MSS option of 0 is taken for an absent one, so that segments have up to 536
    octets of data, though such an option counts as 48 (section 4.3)."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        self._peer_mss = self._peer_mss if syn.mss else DEFAULT_MSS


class RepeatedSynCounts(RwbpConnection):
    """RWBP-AK-001, RWBP-WN-002: when the caller repeats its SYN with another RWBP option, N and
    UNIT.PEER become those of the repetition, which has to change nothing (section 4.2)."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        called_again = self.state is State.SYN_RECEIVED and seq == receiver.irs
        if called_again and isinstance(receiver, RwbpReceiver) and not segment.flags & _ACK:
            option = counting_option(segment)
            if option is not None:
                self.handshake.peer = option
                receiver.interval = option.interval
        super()._receive_unacceptable(segment, seq, receiver, now)


class CrossingStartsAfresh(RwbpConnection):
    """RWBP-CX-002: after crossing SYNs the SYN-ACK counts as a first transmission: its timer begins
    at 1 s again, and the handshake yields a sample, so that RTO is not 3 s."""

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        if segment.flags & _SYN and not segment.flags & (_ACK | _RST):
            self.handshake.attempts = 0
            self.sender.estimator.rto = self.sender.estimator.initial
        super()._receive_in_syn_sent(segment, now)


def reads_past_end(packet: bytes) -> Segment:
    """RWBP-WF-001, RWBP-NG-003: option 0 is skipped like option 1, so that octets behind the end of
    the list are options, or make the segment malformed."""
    segment = parse_packet(packet)
    header = (packet[0] & 15) * 4
    raw = bytearray(packet[header + _TCP_OCTETS : header + (packet[header + _OFFSET_AT] >> 4) * 4])
    at = 0
    while at < len(raw):
        if raw[at] == END:
            raw[at] = NOP
        at += 1 if raw[at] == NOP else max(raw[at + 1] if at + 1 < len(raw) else 0, 2)
    bare = Segment(
        segment.source, segment.destination, segment.sport, segment.dport, segment.seq,
        segment.ack, segment.flags, segment.window, segment.urgent, segment.payload,
    )  # fmt: skip
    parse_options(bytes(raw), bare)
    return bare


# -- windows in units -----------------------------------------------------------------------------


class RepeatedAnswerInUnits(RwbpConnection):
    """RWBP-WN-011, RWBP-WN-001: RWBP has been agreed when a SYN-ACK is repeated, and the window
    field of a repetition counts units; that of the first one counts octets."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if isinstance(self.receiver, RwbpReceiver) and self.handshake.attempts > 1:
            self._outbox[-1].window = self.receiver.units()


class FinAtEdge(RwbpReceiver):
    """RWBP-WN-004: a FIN takes no room, so that one whose number is RCV.EDGE, behind data that ends
    there, is taken."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        number = seq + len(payload)
        at_edge = fin and self.fin_seq is None and number == self.edge
        super().on_text(seq, payload, fin, now)
        if at_edge and self.top <= number:
            self.fin_seq = number
            self.fin_received = number == self.buffer.rcv_nxt

    def units(self) -> int:
        return max(0, super().units())


class ClosedWindowIsDeaf(RwbpConnection):
    """RWBP-CX-001, RWBP-EC-010: while RCV.EDGE is RCV.NXT a segment with data at RCV.NXT is
    acknowledged, but its own acknowledgment does not count (section 5.4)."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        with_data = segment.payload or segment.flags & _FIN
        if isinstance(receiver, RwbpReceiver) and with_data and not segment.flags & _SYN:
            segment = replace(segment, flags=segment.flags & ~_ACK)
        super()._receive_unacceptable(segment, seq, receiver, now)


# -- probes ---------------------------------------------------------------------------------------


class AnswerEndsBackOff(RwbpSender):
    """RWBP-WN-008: whatever acknowledgment arrives while the window stays closed, such as the
    answer of a probe, brings PROBES back to 0 and starts the probe timer anew."""

    def on_ack(self, ack: Ack, now: float) -> None:
        super().on_ack(ack, now)
        if self.probes and self.window_is_closed():
            self.probes = 0
            self.persist_deadline = None
            self.plan_probe(now)


class ProbeWithoutBlocks(RwbpConnection):
    """RWBP-AK-005: a probe is made of a header only, and has no blocks though runs are held; it
    still counts as a complete acknowledgment."""

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        super().put(seq, payload, fin, now)
        if self.agreed and not payload and not fin:
            self._outbox[-1].sack_blocks = ()


# -- acknowledgments ------------------------------------------------------------------------------


class CountsOnAfterUpdate(RwbpReceiver):
    """RWBP-AK-004, RWBP-AK-001: see :class:`UpdateIsNoAcknowledgment`."""

    updating = False

    def note_ack_sent(self, *, complete: bool = True) -> None:
        if complete and self.updating:
            self.updating = self.ack_now = False
            return
        super().note_ack_sent(complete=complete)


class UpdateIsNoAcknowledgment(RwbpConnection):
    """RWBP-AK-004, RWBP-AK-001: a window update leaves UNACKED and the acknowledgment timer as they
    are, so that what it has acknowledged is acknowledged once more."""

    def read(self, octets: int | None = None) -> bytes:
        receiver = self.receiver
        called_for = receiver is not None and receiver.ack_now
        data = super().read(octets)
        if isinstance(receiver, CountsOnAfterUpdate) and receiver.ack_now and not called_for:
            receiver.updating = True
        return data


class BareFinIsNoArrival(RwbpReceiver):
    """RWBP-AK-006: a FIN without data does not become RCV.LAST, so that the first block is still
    the run of the segment before it, and not the highest."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        last = self.last
        super().on_text(seq, payload, fin, now)
        if not payload:
            self.last = last


class RotatesWhenCrowded(RwbpReceiver):
    """RWBP-AK-006: RCV.ROT moves only when there are more runs than blocks, so that after three or
    four runs a fifth one finds it where it was."""

    def sack_blocks_to_send(self, most: int = BLOCKS) -> tuple[Range, ...]:
        rotation = self.rotation
        blocks = super().sack_blocks_to_send(most)
        if len(self.buffer.runs) <= most:
            self.rotation = rotation
        return blocks


class AnyAcknowledgmentReminds(RwbpConnection):
    """RWBP-AK-003: a reminder is left out when any pure acknowledgment was sent less than 1 s
    before, and not only when that was a reminder, too."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        if isinstance(self.receiver, RwbpReceiver) and not payload and flags == _ACK:
            self.receiver._reminded = now


# -- what acknowledgments say, and losses ---------------------------------------------------------


class ClipsBlocks(RwbpSender):
    """RWBP-EC-013: a block that begins at or below SND.UNA or SEG.ACK and ends above it is cut
    there and counts, as in many a scoreboard of TCP."""

    def arrivals(self, ack: Ack) -> list[Outgoing]:
        found = super().arrivals(ack)
        bound = max(self.snd_una, ack.number)
        for left, right in ack.blocks:
            if left <= bound < right <= self.snd_max:
                found += self._within(bound, right)
        return found


class TakesTextOfRefused(RwbpConnection):
    """RWBP-EC-015: of a segment whose SEG.ACK is above SND.NXT or too old only the acknowledgment
    is discarded; its data and FIN are taken."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        opening = self.state is State.SYN_RECEIVED
        accepted = super()._take_ack(segment, seq, now)
        return accepted or (self.agreed and not opening)


class ThirdNumberBelow(RwbpSender):
    """RWBP-FF-003: with K = 3 a segment is lost when one that was first sent three transmissions
    later has arrived: H is F1 - 2 instead of F3."""

    def loss_bound(self) -> int:
        return self.highest_first[0] - (0 if self.threshold == 1 else 2)


class FirstRepairForEver(RwbpSender):
    """RWBP-FF-003: a segment that is taken for lost again keeps REPAIRED, so that its second loss
    is never found false by when it arrives."""

    def take_for_lost(self, now: float) -> None:  # noqa: ARG002
        for segment in self.segments.sent_before(self.loss_bound()):
            segment.suspect = True
            self.segments.ask_for(segment, 1)


# -- timers ---------------------------------------------------------------------------------------


class FirstTimeoutOfRow(RwbpSender):
    """RWBP-TM-002: TX.TIMEOUT is set by the first of several timeouts without progress only, so
    that a segment that was first sent between two of them is measured."""

    def on_timeout(self, now: float) -> None:
        at_timeout = self.at_timeout
        super().on_timeout(now)
        if self.backoff > 1:
            self.at_timeout = at_timeout


class BoundsAfterBackOff(RwbpSender):
    """RWBP-TM-001: BACKOFF doubles SRTT + 4 RTTVAR, and the lower bound of 1 s is applied to the
    product, so that on a short path the first timeouts in a row are all of 1 s."""

    def timeout_interval(self) -> float:
        estimator = self.estimator
        if estimator.srtt is None:
            return super().timeout_interval()
        bare = estimator.srtt + max(estimator.granularity, estimator.K * estimator.rttvar)
        return estimator.bounded(bare * 2.0**self.backoff)


# -- opening, closing and resets ------------------------------------------------------------------


class FullLastSegment(RwbpSender):
    """RWBP-WF-008: FIN counts as an octet of its segment, so that a last one with SMSS octets has
    no room for it, and it leaves alone though the window permits both."""

    def _cut(self) -> Outgoing:
        closed, end = self.fin_queued, self.next_end()
        full = end == self.data_end and end is not None and end - self.snd_nxt == self.smss
        self.fin_queued = closed and not full
        segment = super()._cut()
        self.fin_queued = closed
        return segment


class ChallengesAtEdge(RwbpReceiver):
    """RWBP-CX-005: RWBP-WN-013 is applied to resets, too: a RST whose SEG.SEQ is RCV.EDGE, which
    is not within the window, is answered and not discarded."""

    def is_stray_reset(self, seq: int) -> bool:
        return super().is_stray_reset(seq) and unwrap(seq, self.rcv_nxt) != self.edge


class SynReturnsToListen(RwbpConnection):
    """RWBP-SEC-003: a SYN in the window in SYN-RECEIVED ends the connection without a word, as RFC
    9293 permits after a passive open and section 5.4 does not."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver, flags = self.receiver, segment.flags
        if self.state is State.SYN_RECEIVED and isinstance(receiver, RwbpReceiver):
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if flags & _SYN and not flags & _RST and receiver.rcv_nxt <= seq < receiver.edge:
                self._end("a SYN in the window", now)
                return
        super().receive(segment, now)


class AbortForgetsFin(RwbpConnection):
    """RWBP-CX-006: the RST of an abort has the number that follows the data, which after the own
    FIN is one below SND.NXT."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        end = self.sender.data_end
        if self.agreed and flags & _RST and end is not None and seq > end:
            seq = end
        super()._put(seq, flags, now, payload)


# -- the gateway ----------------------------------------------------------------------------------


class WaitsWithoutReturn(Credit):
    """RWBP-LC-006: see :class:`TellsWhatWaits`."""

    wanted = False

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        epoch, passed = self.epoch, self.passed
        super().on_frame(frame, now)
        if self.wanted and epoch is not None and self.epoch == epoch:
            self.passed = passed


class TellsWhatWaits(IpQueue):
    """RWBP-LC-006: credit is returned after 1 s in which there was nothing to pass; while a packet
    waits for it, the count of arrived packets is not taken, so that lost places stay lost."""

    def next_to_leave(self, now: float) -> Segment | None:
        packet = super().next_to_leave(now)
        if isinstance(self._credit, WaitsWithoutReturn):
            held = packet is None and bool(self._packets)
            self._credit.wanted = held and not self._waits_for_link
        return packet


class SilenceForgetsAccount(Credit):
    """RWBP-LC-003, RWBP-LC-004: the first frame after a second without one is taken like the very
    first, whatever its epoch: LIMIT may fall, and what was passed last is not counted."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        if now - self._heard > LIFE:
            self.epoch = None
        super().on_frame(frame, now)


class ResetsForFree(IpQueue):
    """RWBP-LC-007: a RST needs credit to leave, but is not counted in PASSED."""

    def next_to_leave(self, now: float) -> Segment | None:
        packet = super().next_to_leave(now)
        if packet is not None and packet.flags & _RST and self._credit is not None:
            self._credit.passed = self._credit.passed - 1 & COUNTS.mask
        return packet


# -- the scheduler and the IP queue ---------------------------------------------------------------


class RestartsAtDeletion(RoundRobin):
    """RWBP-SC-001: when the connection that was served last is deleted, its place is lost, and the
    next turn is that of the first in the ring that can send."""

    def remove(self, entry: Entry) -> None:
        super().remove(entry)
        if entry.place != self._last:
            return
        rounds = self._round, self._next_round
        waiting = [each for item in rounds for each in item.served]
        waiting += [each for item in rounds for _, each in item.woken]
        self._round, self._next_round, self._last = Round(), Round(), -1
        for each in waiting:
            each.queued = False
            self.wake(each)


class DeficitOfData(RwbpConnection):
    """RWBP-SC-003: DEFICIT pays for octets of data and not of IP packets, so that a connection with
    small segments sends more octets than its share."""

    def next_octets(self) -> int:
        return super().next_octets() - (HEADER_OCTETS if self.agreed else 0)


_PEER_AND_SERVICE = attrgetter("destination", "sport")


class ForgetsPeersPort(IpQueue):
    """RWBP-SC-005: in a full queue an acknowledgment replaces those of all connections of the peer
    to the same service, so that theirs are lost."""

    def _supersede(self, packet: Segment) -> None:
        ends = _PEER_AND_SERVICE(packet)
        others = [each for each in self._packets if _PEER_AND_SERVICE(each) == ends]
        for other in others:
            super()._supersede(replace(packet, dport=other.dport))


class MakesUpForIdleness(IpQueue):
    """RWBP-LC-011: a packet may leave by as much too early as the link stood idle before, up to
    50 ms, so that a burst follows each pause."""

    idle_s = 0.05

    def next_to_leave(self, now: float) -> Segment | None:
        free_at = self._free_at
        packet = super().next_to_leave(now)
        if packet is not None and self._rate is not None:
            begins = max(free_at, now - self.idle_s)
            self._free_at = begins + 8 * packet.packet_octets / self._rate
        return packet


# -- the round ------------------------------------------------------------------------------------


def _with(*parts: type[Any]) -> Any:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


def _reading(parse: Callable[[bytes], Segment]) -> Any:
    def configure(setup: Setup) -> Setup:
        return replace(setup, parts=replace(setup.parts, parse=parse))

    return configure


FAULTS = (
    Fault(
        "rwbp-b3-zero-mss",
        "An MSS option of 0 counts as an absent one, and segments have up to 536 octets.",
        "RWBP-WF-006",
        _with(ZeroIsNoMss),
    ),
    Fault(
        "rwbp-b3-repeated-syn-counts",
        "A repeated SYN with another RWBP option changes N and UNIT.PEER.",
        "RWBP-AK-001; RWBP-WN-002",
        _with(RepeatedSynCounts),
    ),
    Fault(
        "rwbp-b3-crossing-afresh",
        "After crossing SYNs the SYN-ACK is no repetition: its timer begins at 1 s, and is measured.",
        "RWBP-CX-002; RWBP-TM-001",
        _with(CrossingStartsAfresh),
    ),
    Fault(
        "rwbp-b3-past-end-of-list",
        "Octets behind option 0 are read as options.",
        "RWBP-WF-001; RWBP-NG-003",
        _reading(reads_past_end),
    ),
    Fault(
        "rwbp-b3-repeated-answer-in-units",
        "The window field of a repeated SYN-ACK counts units.",
        "RWBP-WN-011; RWBP-WN-001",
        _with(RepeatedAnswerInUnits),
    ),
    Fault(
        "rwbp-b3-fin-at-edge",
        "A FIN behind data that ends at the edge is taken.",
        "RWBP-WN-004",
        _with(FinAtEdge),
    ),
    Fault(
        "rwbp-b3-closed-window-deaf",
        "Behind a closed window the acknowledgment that stands in a segment with data is lost.",
        "RWBP-CX-001; RWBP-EC-010",
        _with(ClosedWindowIsDeaf),
    ),
    Fault(
        "rwbp-b3-answer-ends-back-off",
        "The interval of probes does not double as long as they are answered.",
        "RWBP-WN-008",
        _with(AnswerEndsBackOff),
    ),
    Fault(
        "rwbp-b3-probe-without-blocks",
        "A probe has no SACK blocks though runs are held.",
        "RWBP-AK-005",
        _with(ProbeWithoutBlocks),
    ),
    Fault(
        "rwbp-b3-update-no-acknowledgment",
        "A window update does not stop the acknowledgment timer nor the count of segments.",
        "RWBP-AK-004; RWBP-AK-001",
        _with(CountsOnAfterUpdate, UpdateIsNoAcknowledgment),
    ),
    Fault(
        "rwbp-b3-bare-fin-no-arrival",
        "After a FIN without data the first block is that of the segment before.",
        "RWBP-AK-006",
        _with(BareFinIsNoArrival),
    ),
    Fault(
        "rwbp-b3-rotates-when-crowded",
        "The rotation of the blocks stands still while all runs fit.",
        "RWBP-AK-006",
        _with(RotatesWhenCrowded),
    ),
    Fault(
        "rwbp-b3-any-acknowledgment-reminds",
        "A reminder is left out within a second of any pure acknowledgment.",
        "RWBP-AK-003",
        _with(AnyAcknowledgmentReminds),
    ),
    Fault(
        "rwbp-b3-clips-blocks",
        "A block across SND.UNA counts for what lies above it.",
        "RWBP-EC-013",
        _with(ClipsBlocks),
    ),
    Fault(
        "rwbp-b3-text-of-refused",
        "The data of a segment that acknowledges what was not sent is taken.",
        "RWBP-EC-015",
        _with(TakesTextOfRefused),
    ),
    Fault(
        "rwbp-b3-third-number-below",
        "After three false losses H is F1 - 2, and one arrival may be enough for a loss.",
        "RWBP-FF-003; RWBP-EC-002",
        _with(ThirdNumberBelow),
    ),
    Fault(
        "rwbp-b3-first-repair-for-ever",
        "A second loss of a segment is judged by the time of its first repair.",
        "RWBP-FF-003",
        _with(FirstRepairForEver),
    ),
    Fault(
        "rwbp-b3-first-timeout-of-row",
        "Of several timeouts in a row only the first keeps what was sent before it from a sample.",
        "RWBP-TM-002",
        _with(FirstTimeoutOfRow),
    ),
    Fault(
        "rwbp-b3-bounds-after-back-off",
        "The lower bound of 1 s is applied after the doubling and not before it.",
        "RWBP-TM-001; RWBP-TM-006",
        _with(BoundsAfterBackOff),
    ),
    Fault(
        "rwbp-b3-full-last-segment",
        "A last segment of SMSS octets does not carry the FIN.",
        "RWBP-WF-008",
        _with(FullLastSegment),
    ),
    Fault(
        "rwbp-b3-challenges-at-edge",
        "A RST whose number is the edge is answered.",
        "RWBP-CX-005",
        _with(ChallengesAtEdge),
    ),
    Fault(
        "rwbp-b3-syn-returns-to-listen",
        "A SYN in the window in SYN-RECEIVED makes the endpoint forget the connection.",
        "RWBP-SEC-003",
        _with(SynReturnsToListen),
    ),
    Fault(
        "rwbp-b3-abort-forgets-fin",
        "The RST of an abort after the own FIN has the number of the FIN.",
        "RWBP-CX-006",
        _with(AbortForgetsFin),
    ),
    Fault(
        "rwbp-b3-no-return-while-waiting",
        "Credit of packets that were lost does not return while a packet waits for credit.",
        "RWBP-LC-006",
        _with(WaitsWithoutReturn, TellsWhatWaits),
    ),
    Fault(
        "rwbp-b3-silence-forgets-account",
        "The first frame after a second of silence is taken like the first of all.",
        "RWBP-LC-003; RWBP-LC-004",
        _with(SilenceForgetsAccount),
    ),
    Fault(
        "rwbp-b3-resets-for-free",
        "A RST that is passed to the gateway is not counted.",
        "RWBP-LC-007; RWBP-LC-002",
        _with(ResetsForFree),
    ),
    Fault(
        "rwbp-b3-restarts-at-deletion",
        "The ring starts again from the first when the connection served last is deleted.",
        "RWBP-SC-001",
        _with(RestartsAtDeletion),
    ),
    Fault(
        "rwbp-b3-deficit-of-data",
        "Deficit round robin counts octets of data.",
        "RWBP-SC-003",
        _with(DeficitOfData),
        setting="drr",
    ),
    Fault(
        "rwbp-b3-forgets-peers-port",
        "In a full queue an acknowledgment replaces those of other connections to the same port.",
        "RWBP-SC-005",
        _with(ForgetsPeersPort),
    ),
    Fault(
        "rwbp-b3-makes-up-for-idleness",
        "Packets leave faster than at the link rate after a pause.",
        "RWBP-LC-011",
        _with(MakesUpForIdleness),
    ),
)
