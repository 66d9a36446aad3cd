"""Blind round 16: thirty errors that somebody who implements TCP might make and ship."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake, smallest_shift
from bentpipe_reference.tcp.output import TIMESTAMP_HZ
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.subject import SoonWrapping
from bentpipe_reference.tcp.wire import Flags, Segment, parse_packet
from bentpipe_reference.tcp.wire.refusal import reset_for
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _FIN, _RST = int(Flags.ACK), int(Flags.FIN), int(Flags.RST)

# -- handshake and options ------------------------------------------------------------------------


class ScalesUnasked(Handshake):
    """Having offered a scale, shifts its windows though the SYN-ACK has none."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`Handshake`."""
        super().take_options(syn)
        if syn.flags & _ACK and syn.window_scale is None and self._config.window_scale:
            self.receive_shift = smallest_shift(self._config.receive_buffer)


class CountsFromTheLatestSyn(Handshake):
    """A SYN that comes again starts the handshake, and its count of SYN-ACKs, anew."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`Handshake`."""
        if repeated:
            self.attempts = 0
        super().sent(now, repeated=repeated)


class RefusedAtIss(Connection):
    """In SYN-SENT, SND.UNA =< SEG.ACK =< SND.NXT is enough for a RST."""

    def _receive_in_syn_sent(self, segment: Segment, now: float) -> None:
        if segment.flags & _RST and segment.flags & _ACK and segment.ack == self.sender.iss & MASK:
            self._end("the peer refused the connection", now)
            return
        super()._receive_in_syn_sent(segment, now)


class NoFinInHandshake(Connection):
    """The segment that completes the handshake is looked at for data, and not for a FIN."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        if self.state is State.SYN_RECEIVED:
            segment = replace(segment, flags=segment.flags & ~_FIN)
        super().receive(segment, now)


class NumbersOfTuple(SoonWrapping):
    """The ISS is a keyed hash of the addresses and ports, to which no clock is added."""

    def draw(self, syn: Segment | None) -> int:
        """See :class:`SoonWrapping`."""
        if syn is None:
            return super().draw(syn)
        ends = (syn.source, syn.destination, syn.sport, syn.dport)
        return random.Random(repr(ends)).getrandbits(32)


# -- receiver -------------------------------------------------------------------------------------


class FinBehindTrimmed(Receiver):
    """Trims known octets off the front, and adds the old length to the new number for the FIN's."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Receiver`."""
        if fin and self.fin_seq is None and payload and seq < self.buffer.rcv_nxt:
            self.fin_seq = self.buffer.rcv_nxt + len(payload)
        super().on_text(seq, payload, fin, now)


class ReportsUpToExpected(Receiver):
    """The D-SACK block of an old segment ends at the next expected octet."""

    def on_old_text(self, seq: int, octets: int) -> None:
        """See :class:`Receiver`."""
        super().on_old_text(seq, octets)
        if self._duplicate is not None:
            self._duplicate = self._duplicate[0], max(self._duplicate[1], self.buffer.rcv_nxt)


class ReordersWhenGrown(Reassembly):
    """A block comes to the front when it grows, and not when a duplicate arrives for it."""

    def insert(self, seq: int, payload: bytes) -> None:
        """See :class:`Reassembly`."""
        known = seq > self.rcv_nxt and self.covered(seq, seq + len(payload))
        blocks = self.blocks
        super().insert(seq, payload)
        if known:
            self.blocks = blocks


class PutsOffAcknowledgment(Receiver):
    """Each segment starts the timer of the delayed acknowledgment again."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None and not self.ack_now:
            self.ack_deadline = now + self.delayed_ack_interval()


class OpensAtOnce(Receiver):
    """A closed window opens by whatever has become free."""

    def update_edge(self) -> None:
        """See :class:`Receiver`."""
        if self.edge <= self.rcv_nxt:
            self.edge += max(0, self._gain())
        super().update_edge()


class LastAckIsBare(Connection):
    """Last.ACK.sent is kept where bare acknowledgments are made, and not where data is sent."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        kept = None if receiver is None else receiver._last_ack_sent  # noqa: SLF001
        super()._put(seq, flags, now, payload)
        if receiver is not None and kept is not None and payload:
            receiver._last_ack_sent = kept  # noqa: SLF001


class BlocksBesideData(Handshake):
    """Room for SACK blocks is what the header has, whatever data goes with it."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        """See :class:`Handshake`."""
        return super().sack_room(0)


# -- windows of the peer --------------------------------------------------------------------------


class NotesChangedWindows(SackNewRenoRfcSender):
    """SND.WL1 and SND.WL2 are kept only where the window differs from the one known."""

    def update_window(self, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        noted, known = (self.snd_wl1, self.snd_wl2), ack.window == self.snd_wnd
        moved = super().update_window(ack)
        if known:
            self.snd_wl1, self.snd_wl2 = noted
        return moved


class RemembersProbes(SackNewRenoRfcSender):
    """The probes of a window that closes again go on where the back-off of the last ones was."""

    _most = 0

    def zero_window_probe_interval(self, probes: int) -> float:
        """See :class:`SackNewRenoRfcSender`."""
        self._most = max(self._most, probes)
        return super().zero_window_probe_interval(self._most)


class UnsignedRoom(SackNewRenoRfcSender):
    """The room beyond what was sent is an unsigned number, also when the window has shrunk."""

    def new_segment(self) -> tuple[int, int] | None:
        """See :class:`SackNewRenoRfcSender`."""
        room = self.right_edge - self.snd_max & MASK
        octets = self.sendable(self.snd_max, min(room, self.smss))
        return (self.snd_max, self.snd_max + octets) if octets else None


# -- congestion control and recovery --------------------------------------------------------------


class HalvesLimitedTransmit(SackNewRenoRfcSender):
    """Half of what is outstanding, what limited transmit has just sent included."""

    def window_to_halve(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return self.flight_size


class CountsIdleDuplicates(SackNewRenoRfcSender):
    """Without SACK, duplicates count though nothing is outstanding; they only do nothing then."""

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        if self.sack_ok or self.flight_size:
            return super().is_duplicate_ack(ack, newly_held)
        return ack.number == self.snd_una and ack.bare and ack.window == self.last_window

    def on_duplicate_ack(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        if self.flight_size:
            super().on_duplicate_ack(now)


class AddsBackAlways(SackNewRenoRfcSender):
    """A partial acknowledgment of less than a segment gives a segment back as well."""

    def cwnd_after_partial_ack(self, acked: int) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return max(self.cwnd - acked + self.smss, self.smss)


class RecoversToNext(SackNewRenoRfcSender):
    """A timeout sets recover from SND.NXT, which the timeout before may have set back."""

    def on_timeout_in_recovery(self) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        self.recover = self.snd_nxt - 1


class RescuesOnce(SackNewRenoRfcSender):
    """That the rescue retransmission has been made is not forgotten with the episode."""

    _made = False

    def rescue_segment(self) -> tuple[int, int] | None:
        """See :class:`SackNewRenoRfcSender`."""
        return None if self._made else super().rescue_segment()

    def send_chosen(self, chosen: tuple[int, int], now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().send_chosen(chosen, now)
        self._made = self._made or self.rescued


class ReadsThreeBlocks(SackNewRenoRfcSender):
    """Has room for three SACK blocks, as many as fit beside timestamps."""

    def take_sack(self, ack: Ack) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return super().take_sack(replace(ack, blocks=ack.blocks[:3]))


# -- the retransmission timer ---------------------------------------------------------------------


class SmoothsFirst(RttEstimator):
    """RTTVAR is computed from the SRTT that the measurement has already moved."""

    def sample(self, rtt: float) -> None:
        """See :class:`RttEstimator`."""
        if self.srtt is None:
            super().sample(rtt)
            return
        self.srtt += self.ALPHA * (rtt - self.srtt)
        self.rttvar += self.BETA * (abs(self.srtt - rtt) - self.rttvar)
        self.rto = self.bounded(self.srtt + max(self.granularity, self.K * self.rttvar))


class RestartsForWindow(SackNewRenoRfcSender):
    """A window update counts as progress and restarts the timer."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        una, edge = self.snd_una, self.right_edge
        super().on_ack(ack, now)
        if ack.number == una == self.snd_una and edge != self.right_edge and self.rto_deadline:
            self.restart_rto(now)


class CountsForLife(SackNewRenoRfcSender):
    """Timeouts are counted over the whole connection, acknowledged or not."""

    _timeouts = 0

    def on_timeout(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        self._timeouts += 1
        super().on_timeout(now)

    def has_given_up(self, now: float) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        due = self.rto_deadline is not None and now >= self.rto_deadline
        return super().has_given_up(now) or (
            due and self._timeouts >= self.config.max_retransmissions
        )


class MeasuresAcrossWrap(Connection):
    """The round trip is the difference of two timestamps, also when the clock wraps in between."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if segment.timestamps is not None and ack.ts_ecr_age is not None:
            ack.ts_ecr_age = (self._timestamp(now) - segment.timestamps[1]) / TIMESTAMP_HZ
        return ack


# -- closing, resets, malformed input -------------------------------------------------------------


class ClosingEndsAtOnce(Connection):
    """The acknowledgment of the FIN ends CLOSING as it ends LAST-ACK."""

    def _happen(self, happening: Happening, now: float) -> None:
        closing = self.state is State.CLOSING
        super()._happen(happening, now)
        if closing and self.state is State.TIME_WAIT:
            super()._happen(Happening.QUIET_TIME_OVER, now)


class LingersFromFirstFin(Connection):
    """A FIN that comes again is acknowledged, and TIME-WAIT ends as if it had not come."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        until = self.time_wait_until
        super()._receive_unacceptable(segment, seq, receiver, now)
        if self.state is State.TIME_WAIT:
            self.time_wait_until = until


class ExactOnlyWhenOpen(Connection):
    """Only ESTABLISHED asks a RST for the exact number; the other states take any in the window."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.flags & _RST and self.state is not State.ESTABLISHED:
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if receiver.rcv_nxt <= seq < receiver.edge:
                self._end("the peer reset the connection", now)
                return
        super()._receive_synchronized(segment, receiver, now)


def reset_before_fin(segment: Segment) -> Segment | None:
    """A RST that acknowledges the data of a segment, and its SYN, but not its FIN."""
    return reset_for(replace(segment, flags=segment.flags & ~_FIN))


def parse_unsummed(packet: bytes) -> Segment:
    """A checksum of zero means that there is none, as in UDP."""
    at = (packet[0] & 15) * 4 if packet else 0
    total = int.from_bytes(packet[2:4], "big")
    if at + 20 <= total <= len(packet) and packet[at + 16 : at + 18] == b"\0\0":
        pseudo = packet[12:20] + bytes((0, 6)) + (total - at).to_bytes(2, "big")
        field = internet_checksum(pseudo + packet[at:total])
        packet = packet[: at + 16] + field.to_bytes(2, "big") + packet[at + 18 :]
    return parse_packet(packet)


def _part(part: type[object]) -> Callable[[Setup], Setup]:
    return lambda setup: setup.with_part(part)


def _refuse(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, refuse=reset_before_fin))


def _parse(setup: Setup) -> Setup:
    return replace(setup, parts=replace(setup.parts, parse=parse_unsummed))


FAULTS = [
    Fault(
        "tcp-b16-scales-unasked",
        "shifts the windows it offers though the SYN-ACK to its SYN has no Window Scale",
        "RFC 7323 section 2.2; RFC 9293 section 3.8.6 (SHLD-14)",
        _part(ScalesUnasked), profile="rfc",
    ),
    Fault(
        "tcp-b16-syn-again-anew",
        "forgets, when the SYN comes again, that SYN-ACKs were lost: a full first window follows",
        "RFC 5681 section 3.1; RFC 6298 sections 3 and 5.7",
        _part(CountsFromTheLatestSyn), profile="rfc",
    ),
    Fault(
        "tcp-b16-refused-at-iss",
        "gives up its SYN for a RST that acknowledges the ISS itself and not the SYN",
        "RFC 9293 section 3.10.7.3 (first, second); RFC 9293 section 3.5.3",
        _part(RefusedAtIss), profile="rfc",
    ),
    Fault(
        "tcp-b16-fin-in-handshake",
        "ignores a FIN in the segment that completes the handshake",
        "RFC 9293 section 3.10.7.4 (fifth, SYN-RECEIVED; eighth)",
        _part(NoFinInHandshake), profile="rfc",
    ),
    Fault(
        "tcp-b16-iss-of-tuple",
        "begins every connection between the same two sockets with the same sequence number",
        "RFC 9293 section 3.4.1 (MUST-8, SHLD-1)",
        _part(NumbersOfTuple), profile="rfc",
    ),
    Fault(
        "tcp-b16-fin-behind-trimmed",
        "expects the FIN too far on when its segment begins with octets that came before",
        "RFC 9293 section 3.10.7.4 (seventh, eighth)",
        _part(FinBehindTrimmed), profile="rfc",
    ),
    Fault(
        "tcp-b16-dsack-to-expected",
        "reports everything from an old segment's first octet on as duplicate",
        "RFC 2883 section 4",
        _part(ReportsUpToExpected), profile="rfc",
    ),
    Fault(
        "tcp-b16-duplicate-keeps-order",
        "does not put the block of a duplicate of held data first",
        "RFC 2018 section 4",
        _part(ReordersWhenGrown), profile="hk99",
    ),
    Fault(
        "tcp-b16-puts-off-ack",
        "starts the timer of the delayed acknowledgment again with each small segment",
        "RFC 9293 section 3.8.6.3 (MUST-40); RFC 5681 section 4.2",
        _part(PutsOffAcknowledgment), profile="rfc",
    ),
    Fault(
        "tcp-b16-opens-at-once",
        "opens a closed window by less than a segment",
        "RFC 9293 section 3.8.6.2.2 (MUST-39)",
        _part(OpensAtOnce), profile="rfc",
    ),
    Fault(
        "tcp-b16-last-ack-bare",
        "does not move Last.ACK.sent with acknowledgments that go with data, so that TSecr lags",
        "RFC 7323 section 4.3",
        _part(LastAckIsBare), profile="rfc",
    ),
    Fault(
        "tcp-b16-blocks-beside-data",
        "puts SACK blocks beside a full segment, which then exceeds the peer's MSS",
        "RFC 9293 section 3.7.1 (MUST-16); RFC 6691 section 2",
        _part(BlocksBesideData), profile="rfc",
    ),
    Fault(
        "tcp-b16-notes-changed-windows",
        "records which segment told the window only when it changed it, and then heeds an older",
        "RFC 9293 section 3.10.7.4 (fifth, SND.WL1 and SND.WL2)",
        _part(NotesChangedWindows), profile="rfc",
    ),
    Fault(
        "tcp-b16-remembers-probes",
        "goes on with the back-off of earlier probes when the window closes again",
        "RFC 9293 section 3.8.6.1 (SHLD-29)",
        _part(RemembersProbes), profile="rfc",
    ),
    Fault(
        "tcp-b16-unsigned-room",
        "sends new data beyond a window that has shrunk, on duplicates with SACK",
        "RFC 9293 section 3.8.6 (SHLD-15); RFC 3042 section 2",
        _part(UnsignedRoom), profile="rfc",
    ),
    Fault(
        "tcp-b16-halves-limited-transmit",
        "counts what limited transmit sent when it halves what is outstanding",
        "RFC 5681 section 3.2 (step 2)",
        _part(HalvesLimitedTransmit), profile="rfc",
    ),
    Fault(
        "tcp-b16-idle-duplicates",
        "counts duplicate acknowledgments while nothing is outstanding",
        "RFC 5681 section 2 (duplicate acknowledgment, a); RFC 5681 section 3.2",
        _part(CountsIdleDuplicates), profile="rfc",
    ),
    Fault(
        "tcp-b16-adds-back-always",
        "adds a segment back to the window for a partial acknowledgment of less than one",
        "RFC 6582 section 3.2 (step 3, partial acknowledgments)",
        _part(AddsBackAlways), profile="rfc",
    ),
    Fault(
        "tcp-b16-recovers-to-next",
        "forgets with the second timeout in a row what was sent before the first",
        "RFC 6582 section 3.2 (step 4)",
        _part(RecoversToNext), profile="rfc",
    ),
    Fault(
        "tcp-b16-rescues-once",
        "makes the rescue retransmission in its first recovery only",
        "RFC 6675 section 4 (NextSeg rule 4); RFC 6675 section 5 (step C)",
        _part(RescuesOnce), profile="rfc",
    ),
    Fault(
        "tcp-b16-three-blocks",
        "ignores the fourth SACK block and retransmits what it reports",
        "RFC 2018 section 5; RFC 6675 section 4 (NextSeg)",
        _part(ReadsThreeBlocks), profile="rfc",
    ),
    Fault(
        "tcp-b16-smooths-first",
        "updates SRTT before RTTVAR, so that the timeout is too short after a change",
        "RFC 6298 section 2 (rule 2.3)",
        _part(SmoothsFirst), profile="rfc",
    ),
    Fault(
        "tcp-b16-restarts-for-window",
        "restarts the retransmission timer for each window update",
        "RFC 6298 section 5 (rule 5.3); RFC 9293 section 3.8.1",
        _part(RestartsForWindow), profile="rfc",
    ),
    Fault(
        "tcp-b16-counts-for-life",
        "gives the connection up after twelve timeouts in all, each of which was repaired",
        "RFC 9293 section 3.8.3 (MUST-20, SHLD-11)",
        _part(CountsForLife), profile="rfc",
    ),
    Fault(
        "tcp-b16-measures-across-wrap",
        "takes a wrong round trip, and an endless timeout, when its timestamp clock wraps",
        "RFC 7323 section 4; RFC 6298 section 2 (rule 2.3)",
        _part(MeasuresAcrossWrap), profile="rfc",
    ),
    Fault(
        "tcp-b16-closing-ends-at-once",
        "does not linger after a simultaneous close",
        "RFC 9293 section 3.6 (MUST-13); RFC 9293 section 3.10.7.4 (fifth, CLOSING)",
        _part(ClosingEndsAtOnce), profile="rfc",
    ),
    Fault(
        "tcp-b16-lingers-from-first",
        "does not restart TIME-WAIT for a FIN that comes again",
        "RFC 9293 section 3.10.7.4 (eighth, TIME-WAIT)",
        _part(LingersFromFirstFin), profile="rfc",
    ),
    Fault(
        "tcp-b16-exact-when-open",
        "is reset by a RST anywhere in the window once a side has closed",
        "RFC 9293 section 3.10.7.4 (second); RFC 5961 section 3.2",
        _part(ExactOnlyWhenOpen), profile="rfc",
    ),
    Fault(
        "tcp-b16-reset-before-fin",
        "does not count the FIN in the number that its RST acknowledges",
        "RFC 9293 section 3.10.7.1; RFC 9293 section 3.5.2 (group 1)",
        _refuse, profile="rfc",
    ),
    Fault(
        "tcp-b16-unsummed",
        "takes a segment whose checksum field is zero for one without a checksum",
        "RFC 9293 section 3.1 (MUST-3)",
        _parse, profile="rfc",
    ),
]  # fmt: skip
