"""Round 14: written from the RFCs on 2026-11-23."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.refusal import reset_for
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK

_FIN, _SYN, _RST, _PSH, _ACK = (
    int(flag) for flag in (Flags.FIN, Flags.SYN, Flags.RST, Flags.PSH, Flags.ACK)
)

# Opening, closing and resets


class ResetBehindFin(Connection):
    """The number that a RST has to have does not count the peer's FIN."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        receiver = self.receiver
        if receiver is not None and receiver.fin_received and segment.flags & _RST:
            segment = replace(segment, seq=segment.seq + 1 & MASK)
        super().receive(segment, now)


class DeafToSynAck(Connection):
    """A SYN-ACK that comes again has done its work."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        again = segment.flags & _SYN and segment.flags & _ACK
        if not (again and self.state is State.ESTABLISHED):
            super()._receive_unacceptable(segment, seq, receiver, now)


def short_reset(segment: Segment) -> Segment | None:
    """Beside data SYN and FIN are not counted."""
    reset = reset_for(segment)
    if reset is not None and not segment.flags & _ACK:
        reset.ack = segment.seq + (len(segment.payload) or segment.sequence_length) & MASK
    return reset


def resets_short(setup: Setup) -> Setup:
    """The answer to a segment for no connection is replaced."""
    return replace(setup, parts=replace(setup.parts, refuse=short_reset))


class AckOfIss(Connection):
    """In SYN-RECEIVED an ACK of the ISS itself will do."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if self.state is State.SYN_RECEIVED and segment.ack == self.sender.iss & MASK:
            segment = replace(segment, ack=segment.ack + 1 & MASK)
        return super()._take_ack(segment, seq, now)


class NoFinYet(Connection):
    """The segment that establishes the connection cannot close it."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        opens = self.state is State.SYN_RECEIVED
        taken = super()._take_ack(segment, seq, now)
        if opens:
            segment.flags &= ~_FIN
        return taken


class OwnTimerOnly(Handshake):
    """A SYN-ACK repeated because the SYN came again does not count as repeated."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`Handshake`."""
        super().sent(now, repeated=repeated)
        if repeated:
            self.attempts -= 1


class SilentToFin(Connection):
    """A FIN without data that comes again is dropped."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        bare = segment.flags & _FIN and not segment.flags & (_SYN | _RST) and not segment.payload
        closed = self.state in (State.CLOSE_WAIT, State.LAST_ACK, State.CLOSING)
        if not (bare and closed and seq + 1 == receiver.rcv_nxt):
            super()._receive_unacceptable(segment, seq, receiver, now)


class FinIsPush(Connection):
    """The segment with the FIN carries no PSH."""

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Connection`."""
        super().put(seq, payload, fin, now)
        if fin:
            self._outbox[-1].flags &= ~_PSH


class ClosingForgets(Connection):
    """A FIN that crosses ours stops the retransmission timer."""

    def _take_text(self, segment: Segment, seq: int, receiver: Receiver, now: float) -> None:
        before = self.state
        super()._take_text(segment, seq, receiver, now)
        if before is State.FIN_WAIT_1 and self.state is State.CLOSING:
            self.sender.rto_deadline = None


class NotYetSent(Connection):
    """Whatever is above SND.NXT, which a timeout moves back, has not been sent."""

    def _refuses_ack(self, number: int, now: float) -> bool:
        if number > self.sender.snd_nxt:
            if self.receiver is not None:
                self.receiver.ack_now = True
            return True
        return super()._refuses_ack(number, now)


# The receiver


class NothingNew(Reassembly):
    """Data that is held already changes nothing, not even the order of the blocks."""

    def insert(self, seq: int, payload: bytes) -> None:
        """See :class:`Reassembly`."""
        if seq > self.rcv_nxt and self._held.covers(seq, seq + len(payload)):
            return
        super().insert(seq, payload)


class WholeSegment(Receiver):
    """D-SACK reports the whole of a segment of which a part is a duplicate."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        expected, end = self.buffer.rcv_nxt, seq + len(payload)
        super()._take(seq, payload, now)
        if self.config.dsack and seq < expected < end:
            self._duplicate = seq, end


class WaitsAgain(Receiver):
    """Each segment starts the timer of the delayed ACK again."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


class FinAtTheEdge(Receiver):
    """A segment is cut to the window before its FIN gets its number."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Receiver`."""
        super().on_text(seq, payload[: max(0, self.edge - seq)], fin, now)


class ClosedToAcks(Connection):
    """While the window is closed nothing of a segment with data is looked at."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if receiver.edge <= receiver.rcv_nxt and segment.payload:
            segment = replace(segment, flags=segment.flags & ~_ACK)
        super()._receive_unacceptable(segment, seq, receiver, now)


class BlocksBesideData(Handshake):
    """The header has forty octets for options, whatever follows it."""

    def sack_room(self, payload: int) -> int:
        """See :class:`Handshake`."""
        return super().sack_room(0)


class FourBlocks(Handshake):
    """A pure ACK has room for four blocks."""

    def sack_room(self, payload: int) -> int:
        """See :class:`Handshake`."""
        return super().sack_room(payload) if payload else 4


class BlocksInsteadOfTime(Connection):
    """Where four blocks are to be sent, the timestamps have to go."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        super()._put(seq, flags, now, payload)
        if len(self._outbox[-1].sack_blocks) > 3:
            self._outbox[-1].timestamps = None


class RisingBlocks(Receiver):
    """A block ends at a higher number than it begins."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        """See :class:`Receiver`."""
        blocks = super().sack_blocks_to_send(most)
        return tuple((left, right) for left, right in blocks if left & MASK < right & MASK)


class OldestAfterDuplicate(Receiver):
    """Behind a D-SACK the blocks follow with the oldest first."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        """See :class:`Receiver`."""
        if not self.sack_ok or self._duplicate is None:
            return super().sack_blocks_to_send(most)
        return (self._duplicate, *reversed(self.buffer.blocks))[:most]


# Timestamps and window scaling


class RecallsAck(Receiver):
    """Last.ACK.sent can be set back."""

    @property
    def last_ack_sent(self) -> int:
        """Last.ACK.sent."""
        return self._last_ack_sent

    @last_ack_sent.setter
    def last_ack_sent(self, number: int) -> None:
        self._last_ack_sent = number


class PureAcksOnly(Connection):
    """Only a segment without data is an ACK that counts for Last.ACK.sent."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = cast("RecallsAck | None", self.receiver)
        before = 0 if receiver is None else receiver.last_ack_sent
        super()._put(seq, flags, now, payload)
        if receiver is not None and payload:
            receiver.last_ack_sent = before


class LargerTime(Receiver):
    """TS.Recent takes a TSval that is larger as an unsigned number."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        """See :class:`Receiver`."""
        if self.ts_recent is None or tsval >= self.ts_recent:
            super().note_timestamp(tsval, seq, now)


class FirstTime(Connection):
    """A segment keeps the TSval of its first transmission."""

    _stamps: dict[int, int] | None = None

    def put(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Connection`."""
        super().put(seq, payload, fin, now)
        segment = self._outbox[-1]
        if self._stamps is None:
            self._stamps = {}
        if segment.timestamps is not None:
            tsval, tsecr = segment.timestamps
            segment.timestamps = self._stamps.setdefault(seq, tsval), tsecr


class ScalesAnyTime(Connection):
    """A Window Scale option counts wherever it comes."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        scale = segment.window_scale
        if scale is not None and not segment.flags & _SYN and self.receiver is not None:
            self.handshake.send_shift = min(scale, 14)
        super().receive(segment, now)


class TimeAnyTime(Connection):
    """The first segment with timestamps turns them on."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        receiver = self.receiver
        if receiver is not None and not segment.flags & _SYN and segment.timestamps is not None:
            if not self.handshake.timestamps_ok:
                self.handshake.timestamps_ok = True
                receiver.echo_timestamp(segment.timestamps[0], now)
        super().receive(segment, now)


class MeasuresAll(SackNewRenoRfcSender):
    """Every ACK with an echoed timestamp is a measurement."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        if ack.number == self.snd_una and self.flight_size and ack.ts_ecr_age is not None:
            self.estimator.sample(ack.ts_ecr_age)
        super().on_ack(ack, now)


# The sender's window and its timers


class PresentWindow(SackNewRenoRfcSender):
    """Silly windows are judged by the present window, not by the largest one."""

    def update_window(self, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        moved = super().update_window(ack)
        self.max_snd_wnd = self.snd_wnd
        return moved


class ProbesRarely(SackNewRenoRfcSender):
    """The back-off of window probes goes on where it was when the window closed before."""

    _reached = 0

    def zero_window_probe_interval(self, probes: int) -> float:
        """See :class:`SackNewRenoRfcSender`."""
        self._reached = max(self._reached, probes)
        return super().zero_window_probe_interval(self._reached)


class FirstWl1(SackNewRenoRfcSender):
    """SND.WL1 stays what the handshake made it."""

    def update_window(self, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        before = self.snd_wl1
        moved = super().update_window(ack)
        self.snd_wl1 = before
        return moved


class FinRidesAlong(SackNewRenoRfcSender):
    """The FIN rides on the last data, though the window ends with that."""

    def sendable(self, seq: int, usable: int) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        octets = super().sendable(seq, usable)
        if octets and self.fin_queued and seq + octets == self.data_end:
            return octets + 1
        return octets


class NagleBySize(SackNewRenoRfcSender):
    """Small segments are held once a whole one is outstanding."""

    def sendable(self, seq: int, usable: int) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        limit, end = self.segment_limit(seq), self.sending_end
        small = end is not None and end - seq < limit and self.flight_size < self.smss
        if small and self.config.nagle and seq >= self.snd_max and end is not None:
            return end - seq if 0 < end - seq <= usable else 0
        return super().sendable(seq, usable)


class RisingReports(SackNewRenoRfcSender):
    """A block whose right edge is the smaller number is wrong."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        return super().accept_sack_block(left, right, ack) and left & MASK < right & MASK


class RawBackOff(RttEstimator):
    """The back-off doubles what was measured, before its lower bound."""

    _raw: float | None = None

    def sample(self, rtt: float) -> None:
        """See :class:`RttEstimator`."""
        super().sample(rtt)
        assert self.srtt is not None
        self._raw = self.srtt + max(self.granularity, self.K * self.rttvar)

    def back_off(self) -> None:
        """See :class:`RttEstimator`."""
        if self._raw is None:
            super().back_off()
        else:
            self._raw *= 2
            self.rto = self.bounded(self._raw)


class DuplicatesRestart(SackNewRenoRfcSender):
    """A duplicate ACK restarts the retransmission timer."""

    def on_duplicate_ack(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().on_duplicate_ack(now)
        if self.rto_deadline is not None:
            self.restart_rto(now)


# Congestion control and recovery


class CountsOn(SackNewRenoRfcSender):
    """An ACK of new data with SACK blocks does not end the count of duplicates."""

    def on_new_ack(self, ack: Ack, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        before = self.dupacks
        super().on_new_ack(ack, now)
        if ack.blocks and not self.in_recovery:
            self.dupacks = before


class FlightBefore(SackNewRenoRfcSender):
    """A full ACK sets the window by what was outstanding before it."""

    _acked = 0

    def on_ack_in_recovery(self, acked: int, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        self._acked = acked
        super().on_ack_in_recovery(acked, now)

    def exit_window(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        if self.sack_ok:
            return super().exit_window()
        return min(self.ssthresh, max(self.flight_size + self._acked, self.smss) + self.smss)


class AddsBackAlways(SackNewRenoRfcSender):
    """The smallest partial ACK gives a whole segment back."""

    def cwnd_after_partial_ack(self, acked: int) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return max(self.cwnd - acked + self.smss, self.smss)


class RestartsHigh(SackNewRenoRfcSender):
    """The restart window is the initial window."""

    def restart_window(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return self.initial_window()


class OwnMss(SackNewRenoRfcSender):
    """The initial window counts in the MSS that this end announces."""

    def initial_window(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        octets = self.config.initial_segments * self.config.mss
        return min(octets, max(2 * self.config.mss, self.config.initial_segments * 1460))


class RepeatsHeld(SackNewRenoRfcSender):
    """A retransmission is as long as a segment can be, whatever is held behind the gap."""

    def repeat_end(self, seq: int) -> int | None:
        """See :class:`SackNewRenoRfcSender`."""
        return None


class AllHeldIsRoom(SackNewRenoRfcSender):
    """After a timeout all that SACK reports makes room, what is above SND.NXT, too."""

    def send_window(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        if not self.repairs_timeout():
            return super().send_window()
        return min(self.cwnd + self.scoreboard.overlap(self.snd_una, self.snd_max), self.snd_wnd)


def with_parts(*parts: type[Any]) -> Callable[[Setup], Setup]:
    """A change of the setup."""

    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


FAULTS = (
    Fault(
        "snr-b14-reset-behind-fin",
        "after the peer's FIN a RST at RCV.NXT is only challenged, and one at the FIN resets",
        "RFC 5961 section 3.2", with_parts(ResetBehindFin),
    ),
    Fault(
        "snr-b14-deaf-to-syn-ack",
        "does not acknowledge a SYN-ACK that is repeated because its ACK was lost",
        "RFC 9293 section 3.10.7.4", with_parts(DeafToSynAck),
    ),
    Fault(
        "snr-b14-short-reset",
        "the RST that answers a SYN or FIN with data to a closed port acknowledges the data only",
        "RFC 9293 section 3.10.7.1", resets_short,
    ),
    Fault(
        "snr-b14-ack-of-iss",
        "in SYN-RECEIVED takes an ACK of its ISS, one below its SYN, for one that establishes",
        "RFC 9293 section 3.10.7.4", with_parts(AckOfIss),
    ),
    Fault(
        "snr-b14-no-fin-yet",
        "loses the FIN of the segment by which a connection becomes ESTABLISHED",
        "RFC 9293 section 3.10.7.4", with_parts(NoFinYet),
    ),
    Fault(
        "snr-b14-own-timer-only",
        "starts with the whole initial window if its SYN-ACK was repeated for a repeated SYN",
        "RFC 5681 section 3.1", with_parts(OwnTimerOnly),
    ),
    Fault(
        "snr-b14-silent-to-fin",
        "does not acknowledge a FIN without data that is retransmitted",
        "RFC 9293 section 3.10.7.4", with_parts(SilentToFin),
    ),
    Fault(
        "snr-b14-fin-is-push",
        "the last data has no PSH if the FIN is in its segment",
        "RFC 9293 section 3.9.1.2", with_parts(FinIsPush),
    ),
    Fault(
        "snr-b14-closing-forgets",
        "a FIN of the peer that crosses its own stops the retransmission of that",
        "RFC 6298 section 5; RFC 9293 section 3.8.1", with_parts(ClosingForgets),
    ),
    Fault(
        "snr-b14-not-yet-sent",
        "after a timeout refuses ACKs of what was sent before it and not yet again",
        "RFC 9293 section 3.10.7.4", with_parts(NotYetSent),
    ),
    Fault(
        "snr-b14-nothing-new",
        "the first SACK block after a duplicate above the gap is not the one that holds it",
        "RFC 2018 section 4; RFC 2883 section 4", with_parts(NothingNew),
    ),
    Fault(
        "snr-b14-whole-segment",
        "D-SACK reports a segment of which only the first part is a duplicate as a whole",
        "RFC 2883 section 4.2", with_parts(WholeSegment),
    ),
    Fault(
        "snr-b14-waits-again",
        "each small segment starts the timer of the delayed ACK again",
        "RFC 5681 section 4.2; RFC 9293 section 3.8.6.3", with_parts(WaitsAgain),
    ),
    Fault(
        "snr-b14-fin-at-the-edge",
        "takes the FIN of a segment that goes beyond the window for the number at the window's end",
        "RFC 9293 section 3.10.7.4", with_parts(FinAtTheEdge),
    ),
    Fault(
        "snr-b14-closed-to-acks",
        "while its window is closed ignores the ACK of a segment with data",
        "RFC 9293 section 3.10.7.4", with_parts(ClosedToAcks),
    ),
    Fault(
        "snr-b14-blocks-beside-data",
        "SACK blocks beside whole segments of data make them larger than the peer's MSS allows",
        "RFC 6691 section 2; RFC 9293 section 3.7.1", with_parts(BlocksBesideData),
    ),
    Fault(
        "snr-b14-blocks-instead-of-time",
        "an ACK with a fourth SACK block has no timestamps",
        "RFC 7323 section 3.2", with_parts(FourBlocks, BlocksInsteadOfTime),
    ),
    Fault(
        "snr-b14-rising-blocks",
        "does not report a block of held data that spans the wrap of the numbers",
        "RFC 2018 section 4; RFC 9293 section 3.4", with_parts(RisingBlocks),
    ),
    Fault(
        "snr-b14-oldest-after-duplicate",
        "the block around a D-SACK does not follow it when several blocks are held",
        "RFC 2883 section 4", with_parts(OldestAfterDuplicate),
    ),
    Fault(
        "snr-b14-pure-acks-only",
        "Last.ACK.sent is not set by ACKs that data carries, so that old timestamps are echoed",
        "RFC 7323 section 4.3", with_parts(RecallsAck, PureAcksOnly),
    ),
    Fault(
        "snr-b14-larger-time",
        "when the peer's timestamps wrap, the one echoed stays the last before the wrap",
        "RFC 7323 section 4.3", with_parts(LargerTime),
    ),
    Fault(
        "snr-b14-first-time",
        "a retransmission carries the TSval of the first transmission",
        "RFC 7323 section 3.2", with_parts(FirstTime),
    ),
    Fault(
        "snr-b14-scales-any-time",
        "a Window Scale option in a segment without SYN changes the scale",
        "RFC 7323 section 2.2", with_parts(ScalesAnyTime),
    ),
    Fault(
        "snr-b14-time-any-time",
        "a segment with timestamps turns them on though the SYNs have not negotiated them",
        "RFC 7323 section 3.2", with_parts(TimeAnyTime),
    ),
    Fault(
        "snr-b14-measures-all",
        "takes duplicate ACKs for measurements of the round-trip time",
        "RFC 7323 section 4.1", with_parts(MeasuresAll),
    ),
    Fault(
        "snr-b14-present-window",
        "sends a silly segment when it is half of the present window, not of the largest one",
        "RFC 9293 section 3.8.6.2.1", with_parts(PresentWindow),
    ),
    Fault(
        "snr-b14-probes-rarely",
        "a window that closes for the second time is first probed after the last interval before",
        "RFC 9293 section 3.8.6.1", with_parts(ProbesRarely),
    ),
    Fault(
        "snr-b14-first-wl1",
        "does not advance SND.WL1, so that an older segment that comes late sets the window back",
        "RFC 9293 section 3.10.7.4", with_parts(FirstWl1),
    ),
    Fault(
        "snr-b14-fin-rides-along",
        "sends the FIN with the last data though the window ends just before it",
        "RFC 9293 section 3.8.6", with_parts(FinRidesAlong),
    ),
    Fault(
        "snr-b14-nagle-by-size",
        "Nagle's rule holds small segments only when SMSS octets or more are outstanding",
        "RFC 9293 section 3.7.4", with_parts(NagleBySize),
    ),
    Fault(
        "snr-b14-rising-reports",
        "ignores a SACK block that spans the wrap of its numbers, and repeats what it reports",
        "RFC 2018 section 5; RFC 9293 section 3.4", with_parts(RisingReports),
    ),
    Fault(
        "snr-b14-raw-back-off",
        "the back-off doubles the timeout as it was before it was raised to one second",
        "RFC 6298 section 5.5", with_parts(RawBackOff),
    ),
    Fault(
        "snr-b14-duplicates-restart",
        "each duplicate ACK restarts the retransmission timer",
        "RFC 6298 section 5.3", with_parts(DuplicatesRestart),
    ),
    Fault(
        "snr-b14-counts-on",
        "an ACK of new data with SACK blocks does not reset the count of duplicate ACKs",
        "RFC 6675 section 5", with_parts(CountsOn),
    ),
    Fault(
        "snr-b14-flight-before",
        "a full ACK sets cwnd by the flight size before it, so that a burst follows",
        "RFC 6582 section 3.2", with_parts(FlightBefore), setting="no-sack",
    ),
    Fault(
        "snr-b14-adds-back-always",
        "adds a segment back to cwnd for a partial ACK of less than one",
        "RFC 6582 section 3.2", with_parts(AddsBackAlways), setting="no-sack",
    ),
    Fault(
        "snr-b14-restarts-high",
        "after an idle period cwnd becomes the initial window even if it was smaller",
        "RFC 5681 section 4.1", with_parts(RestartsHigh),
    ),
    Fault(
        "snr-b14-own-mss",
        "the initial window is ten of the segments that it can receive, not of those it sends",
        "RFC 6928 section 2", with_parts(OwnMss),
    ),
    Fault(
        "snr-b14-repeats-held",
        "the retransmission of a gap smaller than a segment goes on into data that SACK reports",
        "RFC 2018 section 5", with_parts(RepeatsHeld),
    ),
    Fault(
        "snr-b14-all-held-is-room",
        "after a timeout what SACK reports above SND.NXT makes room for a burst",
        "RFC 5681 section 3.1", with_parts(AllHeldIsRoom),
    ),
)  # fmt: skip
