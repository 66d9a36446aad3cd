"""Thirty faults of a TCP stack, written by one who knows the specification and not the exam."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake, smallest_shift
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.subject import SoonWrapping
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, parse_packet
from bentpipe_reference.tcp.wire.sequence import MASK

_ACK, _SYN, _RST, _PSH = (int(flag) for flag in (Flags.ACK, Flags.SYN, Flags.RST, Flags.PSH))


def _part(*parts: type[Any]) -> Callable[[Setup], Setup]:
    """Put subclasses in place of the parts that they derive from."""

    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- segments and options ---------------------------------------------------------------------


def parse_lenient(packet: bytes) -> Segment:
    """Read a packet; a checksum field of zero means that there is none, as in UDP."""
    try:
        return parse_packet(packet)
    except WireError:
        at = (packet[0] & 15) * 4 if packet else 0
        total = int.from_bytes(packet[2:4])
        if not at + 20 <= total <= len(packet) or any(packet[at + 16 : at + 18]):
            raise
    body = packet[at:total]
    addresses = int.from_bytes(packet[12:16]) + int.from_bytes(packet[16:20])
    field = checksum_field(ones_complement_residue(body) + addresses + packet[9] + len(body))
    return parse_packet(packet[: at + 16] + field.to_bytes(2) + packet[at + 18 :])


def zero_checksum(setup: Setup) -> Setup:
    """Read packets with :func:`parse_lenient`."""
    return replace(setup, parts=replace(setup.parts, parse=parse_lenient))


class BlocksBesideAnything(Handshake):
    """Takes the room of the header for all that bounds a SACK option."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        """See :class:`Handshake`."""
        return super().sack_room(0)


class RepeatsOffer(Handshake):
    """Adds an acknowledgment to its own SYN when one crosses it, and leaves the options in."""

    _asked = False

    def offer(self, syn: Segment, *, answering: bool) -> None:
        """See :class:`Handshake`."""
        self._asked = self._asked or not answering
        super().offer(syn, answering=answering and not self._asked)
        if self._asked and self._config.window_scale:
            syn.window_scale = smallest_shift(self._config.receive_buffer)

    def offers_timestamps(self, *, answering: bool) -> bool:
        """See :class:`Handshake`."""
        return super().offers_timestamps(answering=answering and not self._asked)


# -- timestamps -------------------------------------------------------------------------------


class EchoesByRfc1323(Receiver):
    """Records a timestamp when Last.ACK.sent lies among the numbers of the segment."""

    arriving = 0

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        """See :class:`Receiver`."""
        if self._last_ack_sent < seq + self.arriving:
            super().note_timestamp(tsval, seq, now)


class TellsLength(Connection):
    """Tells :class:`EchoesByRfc1323` how long a segment is."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        """See :class:`Connection`."""
        if isinstance(receiver, EchoesByRfc1323):
            receiver.arriving = segment.sequence_length
        super()._receive_synchronized(segment, receiver, now)


class ForgetsTimestampSoon(Receiver):
    """Takes the 24 days' number of seconds for one of milliseconds: 35 minutes."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        """See :class:`Receiver`."""
        return super().is_stale_timestamp(tsval, now) and now - self._ts_recent_time < 2073.6


class PlainTimeWait(Connection):
    """Keeps little more than the numbers in TIME-WAIT, and not that there are timestamps."""

    _lingers = False

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        self._lingers = self.state is State.TIME_WAIT
        super().receive(segment, now)

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        """See :class:`Connection`."""
        super()._put(seq, flags, now, payload)
        if self._lingers:
            self._outbox[-1].timestamps = None


# -- timers -----------------------------------------------------------------------------------


class KarnAfterTimeout(SackNewRenoRfcSender):
    """Knows of retransmissions by the timer only when it measures."""

    def forget_measurement(self) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        if not self.in_recovery:
            super().forget_measurement()


class ClipsAcknowledgment(Connection):
    """Takes SND.NXT, which a timeout pulls back, for all that can be acknowledged."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        """See :class:`Connection`."""
        if not self.sender.probes:
            number = min(number, self.sender.snd_nxt)
        return super()._ack_part(segment, number, seq, now)


class ProbesForData(SackNewRenoRfcSender):
    """Starts the persist timer for octets that wait, and a FIN is none."""

    def check_probe(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        end = self.data_end
        if end is None or end > self.snd_nxt:
            super().check_probe(now)
        else:
            self.persist_deadline = None


class PutsOffAcknowledgment(Receiver):
    """Sets the timer of a delayed acknowledgment with every segment."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        """See :class:`Receiver`."""
        self.ack_deadline = None
        super()._take(seq, payload, now)


# -- receiving --------------------------------------------------------------------------------


class LosesTail(Reassembly):
    """Trims a segment to where held data begins, also when it reaches beyond that data."""

    def insert(self, seq: int, payload: bytes) -> None:
        """See :class:`Reassembly`."""
        start, end = max(seq, self.rcv_nxt), seq + len(payload)
        stop = min((left for left, _ in self.blocks if start < left < end), default=end)
        super().insert(seq, payload[: stop - seq])


class KeepsPlaces(Reassembly):
    """Puts a new block first, but leaves one that grows where it is."""

    def insert(self, seq: int, payload: bytes) -> None:
        """See :class:`Reassembly`."""
        before, expected = self.blocks, self.rcv_nxt
        super().insert(seq, payload)
        if seq <= expected:
            return
        grown, *others = self.blocks
        places = [at for at, (left, _) in enumerate(before) if grown[0] <= left < grown[1]]
        if places:
            others.insert(places[0], grown)
            self.blocks = others


class ReportsWholeSegment(Receiver):
    """Reports a segment of which a part is a duplicate from its first octet to its last."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        """See :class:`Receiver`."""
        expected, end = self.buffer.rcv_nxt, seq + len(payload)
        super()._take(seq, payload, now)
        if self.config.dsack and seq < expected < end:
            self._duplicate = seq, end


class CountsHeldData(Receiver):
    """Deducts what is held above a gap from the window that it offers."""

    def window_field(self) -> int:
        """See :class:`Receiver`."""
        field = super().window_field()
        held = sum(right - left for left, right in self.buffer.blocks)
        if held:
            room = max(0, min(self.edge - self.rcv_nxt, self.free_room() - held))
            field = min(field, room >> self.window_shift)
            self.edge = self.rcv_nxt + (field << self.window_shift)
        return field


class RefusesLastOctet(Receiver):
    """Takes the last number of the window for the first one behind it."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Receiver`."""
        fits = payload[: max(0, self.edge - 1 - seq)]
        if len(fits) < len(payload):
            self.ack_now = True
            fin = False
        super().on_text(seq, fits, fin, now)


# -- sending ----------------------------------------------------------------------------------


class NotesChangedWindows(SackNewRenoRfcSender):
    """Records which segment told of the window only when it told of another one."""

    def update_window(self, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        window, noted = self.snd_wnd, (self.snd_wl1, self.snd_wl2)
        moved = super().update_window(ack)
        if ack.window == window:
            self.snd_wl1, self.snd_wl2 = noted
        return moved


class StoredHeader(Connection):
    """Repeats a segment as it is stored, with the acknowledgment and the window of its time."""

    _stored: Mapping[int, tuple[int, int]] = MappingProxyType({})

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Connection`."""
        super().put(seq, payload, fin, now)
        sent = self._outbox[-1]
        stored = {at: kept for at, kept in self._stored.items() if at >= self.sender.snd_una}
        sent.ack, sent.window = stored.setdefault(seq, (sent.ack, sent.window))
        self._stored = stored


class PushesShortSegments(Connection):
    """Takes a short segment for the sign that the queue is empty."""

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Connection`."""
        super().put(seq, payload, fin, now)
        if len(payload) >= self.sender.smss and not fin:
            self._outbox[-1].flags &= ~_PSH


# -- recovery and congestion control ----------------------------------------------------------


class LostByRfc3517(SackNewRenoRfcSender):
    """Calls an octet lost by the older RFC: three full segments' octets are held above it."""

    def loss_edge(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, runs * self.smss - 1)
        return self.snd_una if edge is None else edge


class RescuesAgain(SackNewRenoRfcSender):
    """Permits one rescue retransmission for each partial acknowledgment."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().on_partial_ack(acked, now)
        self.rescued = False


class DeflatesWithSack(SackNewRenoRfcSender):
    """Deflates the window at a partial acknowledgment although it was never inflated."""

    def on_partial_ack(self, acked: int, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().on_partial_ack(acked, now)
        if self.sack_ok:
            self.cwnd = self.cwnd_after_partial_ack(acked)


class BlocksOfDuplicatesOnly(SackNewRenoRfcSender):
    """Looks for SACK blocks in what acknowledges nothing new."""

    def take_sack(self, ack: Ack) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return 0 if ack.number > self.snd_una else super().take_sack(ack)


class IdleSinceAnything(SackNewRenoRfcSender):
    """Takes the time since a segment last came or went for the time of idleness."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        if self.last_send is not None:
            self.last_send = now
        super().on_ack(ack, now)


class BeginsAt64k(SackNewRenoRfcSender):
    """Begins with the largest window that there is without scaling."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().establish(smss, window, seq, sack_ok=sack_ok)
        self.ssthresh = 0xFFFF


# -- opening, closing, resets -----------------------------------------------------------------


class EstablishesInOrder(Connection):
    """Lets only a segment at the next expected number complete the handshake."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        """See :class:`Connection`."""
        receiver = self.receiver
        early = receiver is not None and seq > receiver.rcv_nxt
        if self.state is State.SYN_RECEIVED and early:
            return False
        return super()._take_ack(segment, seq, now)


class ClosingWithoutTimer(Connection):
    """Stops the retransmission timer when the FINs have crossed."""

    def _happen(self, happening: Happening, now: float) -> None:
        """See :class:`Connection`."""
        before = self.state
        super()._happen(happening, now)
        if self.state is State.CLOSING and before is not State.CLOSING:
            self.sender.rto_deadline = None


class DeafInFinWait1(Connection):
    """Takes text in ESTABLISHED and FIN-WAIT-2 only."""

    def _take_text(self, segment: Segment, seq: int, receiver: Receiver, now: float) -> None:
        """See :class:`Connection`."""
        if self.state is State.FIN_WAIT_1 and segment.payload:
            receiver.ack_now = True
            return
        super()._take_text(segment, seq, receiver, now)


class ResetBeforeFin(Connection):
    """Compares the number of a RST with the next octet, the peer's FIN not counted."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        receiver = self.receiver
        if receiver is not None and receiver.fin_received and segment.flags & _RST:
            ahead = segment.seq - receiver.rcv_nxt & MASK
            if not ahead and self.state is not State.CLOSED:
                receiver.ack_now = True
                return
        super().receive(segment, now)


class AbortsAtUna(Connection):
    """Sends the RST of an abort from the oldest octet that is not acknowledged."""

    def abort(self, reason: str, now: float) -> None:
        """See :class:`Connection`."""
        if self.state not in (State.CLOSED, State.SYN_SENT, State.TIME_WAIT):
            self._put(self.sender.snd_una, _RST | _ACK, now)
        self._end(reason, now)


class HashedNumbers(SoonWrapping):
    """Hashes addresses, ports and a secret, and adds no clock to it."""

    def __init__(self, numbers: random.Random) -> None:
        """See :class:`SoonWrapping`."""
        super().__init__(numbers)
        self._secret = numbers.randbytes(16)

    def draw(self, syn: Segment | None) -> int:
        """See :class:`SoonWrapping`."""
        if syn is None:
            return super().draw(syn)
        ends = f"{syn.source} {syn.sport} {syn.destination} {syn.dport}"
        return int.from_bytes(hashlib.sha256(self._secret + ends.encode()).digest()[:4])


FAULTS = [
    Fault(
        "tcp-b15-zero-checksum-unverified",
        "accepts a segment with a checksum field of zero without verifying it",
        "RFC 9293 section 3.1", zero_checksum,
    ),
    Fault(
        "tcp-b15-blocks-beside-full-segment",
        "adds SACK blocks to a full-sized data segment, which then exceeds the peer's MSS",
        "RFC 9293 section 3.7.1; RFC 6691 section 2", _part(BlocksBesideAnything),
    ),
    Fault(
        "tcp-b15-crossed-syn-repeats-offer",
        "answers a SYN that crosses its own with all it offered, though that SYN offers nothing",
        "RFC 7323 section 2.2; RFC 7323 section 3.2; RFC 2018 section 2", _part(RepeatsOffer),
    ),
    Fault(
        "tcp-b15-echo-by-rfc1323",
        "records no timestamp of a segment that does not hold Last.ACK.sent, as one without data",
        "RFC 7323 section 4.3", _part(EchoesByRfc1323, TellsLength),
    ),
    Fault(
        "tcp-b15-paws-forgets-in-minutes",
        "no longer trusts TS.Recent after 35 idle minutes and accepts older timestamps then",
        "RFC 7323 section 5.5; RFC 7323 section 5.3", _part(ForgetsTimestampSoon),
    ),
    Fault(
        "tcp-b15-time-wait-without-timestamps",
        "answers what arrives in TIME-WAIT without the Timestamps option that was negotiated",
        "RFC 7323 section 3.2", _part(PlainTimeWait),
    ),
    Fault(
        "tcp-b15-karn-only-after-timeout",
        "measures the round trip over fast retransmissions, and forgets it only at a timeout",
        "RFC 6298 section 3", _part(KarnAfterTimeout),
    ),
    Fault(
        "tcp-b15-ack-clipped-to-snd-nxt",
        "after a timeout takes no more for acknowledged than what it has sent since",
        "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", _part(ClipsAcknowledgment),
    ),
    Fault(
        "tcp-b15-closed-window-keeps-fin",
        "sends no probe when only a FIN waits for a closed window to open",
        "RFC 9293 section 3.8.6.1; RFC 9293 section 3.6", _part(ProbesForData),
    ),
    Fault(
        "tcp-b15-delayed-ack-put-off",
        "starts the timer of the delayed acknowledgment anew with every small segment",
        "RFC 9293 section 3.8.6.3; RFC 5681 section 4.2", _part(PutsOffAcknowledgment),
    ),
    Fault(
        "tcp-b15-tail-behind-held-lost",
        "of a segment that spans a held block keeps only what lies before the block",
        "RFC 9293 section 3.10.7.4; RFC 2018 section 4", _part(LosesTail),
    ),
    Fault(
        "tcp-b15-grown-block-keeps-place",
        "does not report a SACK block first when an arriving segment has merely enlarged it",
        "RFC 2018 section 4", _part(KeepsPlaces),
    ),
    Fault(
        "tcp-b15-dsack-whole-segment",
        "reports new octets as duplicates when those before them in the segment are some",
        "RFC 2883 section 4", _part(ReportsWholeSegment),
    ),
    Fault(
        "tcp-b15-held-data-shrinks-window",
        "takes window back by as much as it holds above a gap",
        "RFC 9293 section 3.8.6; RFC 7323 section 2.4", _part(CountsHeldData),
    ),
    Fault(
        "tcp-b15-last-octet-of-window-refused",
        "does not accept the last octet of the window that it offers",
        "RFC 9293 section 3.10.7.4; RFC 9293 section 3.4", _part(RefusesLastOctet),
    ),
    Fault(
        "tcp-b15-wl1-only-when-window-changes",
        "sets SND.WL1 and SND.WL2 only when the window changes, so that older ones are taken",
        "RFC 9293 section 3.10.7.4", _part(NotesChangedWindows),
    ),
    Fault(
        "tcp-b15-retransmits-stored-header",
        "retransmits with the acknowledgment number and the window of the first transmission",
        "RFC 9293 section 3.4; RFC 9293 section 3.1; RFC 9293 section 3.10.7.4",
        _part(StoredHeader),
    ),
    Fault(
        "tcp-b15-no-push-on-full-segment",
        "leaves PSH out of the last segment queued when that is full-sized",
        "RFC 9293 section 3.9.1.2", _part(PushesShortSegments),
    ),
    Fault(
        "tcp-b15-lost-by-rfc3517",
        "takes data for lost only when three full segments, not more than two, are held above it",
        "RFC 6675 section 4; RFC 6675 section 5", _part(LostByRfc3517),
    ),
    Fault(
        "tcp-b15-rescue-per-partial-ack",
        "makes a rescue retransmission after each partial acknowledgment instead of once",
        "RFC 6675 section 4", _part(RescuesAgain),
    ),
    Fault(
        "tcp-b15-sack-partial-ack-deflates",
        "deflates the congestion window at partial acknowledgments of a recovery with SACK",
        "RFC 6675 section 5; RFC 5681 section 4.3", _part(DeflatesWithSack),
    ),
    Fault(
        "tcp-b15-blocks-of-new-ack-ignored",
        "does not record the SACK blocks of an acknowledgment that advances SND.UNA",
        "RFC 6675 section 5; RFC 2018 section 5", _part(BlocksOfDuplicatesOnly),
    ),
    Fault(
        "tcp-b15-idle-ends-with-request",
        "measures idleness from the last arrival too, so that a request revives the old window",
        "RFC 5681 section 4.1", _part(IdleSinceAnything),
    ),
    Fault(
        "tcp-b15-ssthresh-begins-at-64k",
        "ends the first slow start at 65535 octets although larger windows are offered",
        "RFC 5681 section 3.1", _part(BeginsAt64k),
    ),
    Fault(
        "tcp-b15-handshake-only-in-order",
        "does not complete a handshake by a segment that arrives above a gap",
        "RFC 9293 section 3.10.7.4", _part(EstablishesInOrder),
    ),
    Fault(
        "tcp-b15-closing-stops-timer",
        "stops the retransmission timer of its FIN when the peer's FIN crosses it",
        "RFC 9293 section 3.6; RFC 9293 section 3.8.1; RFC 6298 section 5",
        _part(ClosingWithoutTimer),
    ),
    Fault(
        "tcp-b15-fin-wait-1-drops-text",
        "drops data that arrives while its own FIN is not acknowledged",
        "RFC 9293 section 3.10.7.4; RFC 9293 section 3.6", _part(DeafInFinWait1),
    ),
    Fault(
        "tcp-b15-reset-behind-fin-challenged",
        "challenges a RST at the next expected number after the peer's FIN",
        "RFC 9293 section 3.10.7.4; RFC 9293 section 3.5.3", _part(ResetBeforeFin),
    ),
    Fault(
        "tcp-b15-abort-at-una",
        "aborts with a RST at SND.UNA, which the peer has passed when data is outstanding",
        "RFC 9293 section 3.10.5", _part(AbortsAtUna),
    ),
    Fault(
        "tcp-b15-iss-without-clock",
        "accepts each connection from the same address and port with the same initial number",
        "RFC 9293 section 3.4.1; RFC 6528 section 3", _part(HashedNumbers),
    ),
]  # fmt: skip
