"""Mutants of acknowledgment processing (SNR-ACK)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.mutants import mutant
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import unwrap


@mutant("snr-old-acknowledgments-counted", breaks="SNR-ACK-001")
class CountsOldAcknowledgments(SackNewRenoRfcSender):
    """Counts old acknowledgments as duplicates."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number < self.snd_una:
            self.dupacks += 1
            self.on_duplicate_ack(now)
        super().on_ack(ack, now)


@mutant("snr-old-windows-believed", breaks="SNR-ACK-001")
class BelievesOldWindows(SackNewRenoRfcSender):
    """Takes the window of an old acknowledgment."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number < self.snd_una:
            self.snd_wnd = ack.window
            self.output(now)
        super().on_ack(ack, now)


@mutant("snr-old-windows-kept", breaks="SNR-ACK-001", hk99=True)
class KeepsOldWindows(Sender):
    """Takes the window of an old acknowledgment, and uses it when its next timer expires."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number < self.snd_una and ack.seq >= self.snd_wl1:
            self.snd_wnd = ack.window
        super().on_ack(ack, now)


@mutant("snr-unsent-data-acknowledged", breaks="SNR-ACK-002")
class BelievesAcknowledgmentsOfUnsentData(Connection):
    """Takes an acknowledgment of data never sent for one of all that was sent."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if unwrap(segment.ack, sender.snd_una) > sender.snd_max:
            segment.ack = sender.snd_max & 0xFFFFFFFF
        return super()._take_ack(segment, seq, now)


@mutant("snr-unsent-data-unanswered", breaks="SNR-ACK-003")
class SilentOnUnsentData(Connection):
    """Drops an acknowledgment of data never sent without a word."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if unwrap(segment.ack, sender.snd_una) > sender.snd_max:
            return False
        return super()._take_ack(segment, seq, now)


@mutant("snr-growth-per-acknowledgment", breaks="SNR-ACK-004")
class GrowsPerAcknowledgment(SackNewRenoRfcSender):
    """Opens the window by a segment per acknowledgment, however little it covers."""

    def slow_start_increase(self, acked: int) -> int:
        return self.smss


@mutant("snr-threefold-growth", breaks="SNR-ACK-005")
class GrowsThreefold(SackNewRenoRfcSender):
    """Opens the window by three times what a stretch acknowledgment covers."""

    def slow_start_increase(self, acked: int) -> int:
        return 3 * acked if acked >= 3 * self.smss else super().slow_start_increase(acked)


@mutant("snr-one-segment-per-stretch", breaks="SNR-ACK-006")
class ReleasesOnePerStretch(SackNewRenoRfcSender):
    """Sends one segment on a stretch acknowledgment."""

    stretched = False

    def on_new_ack(self, ack: Ack, now: float) -> None:
        self.stretched = ack.number - self.snd_una >= 3 * self.smss
        super().on_new_ack(ack, now)
        self.stretched = False

    def output(self, now: float) -> None:
        if self.stretched:
            self.send_next(now)
        else:
            super().output(now)


@mutant("snr-repeats-per-duplicate", breaks="SNR-ACK-007", hk99=True)
class RepeatsPerDuplicate(Sender):
    """Repeats the missing segment on every duplicate during recovery."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        self.retransmit(self.snd_una, now)


@mutant("snr-flood-of-new-data", breaks="SNR-ACK-007", hk99=True)
class FloodsWithNewData(Sender):
    """Sends six segments of new data on every duplicate during recovery."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        for _ in range(6):
            usable = min(self.snd_wnd - self.flight_size, self.smss)
            if octets := self.sendable(self.snd_max, usable):
                self.transmit(self.snd_max, self.snd_max + octets, now)


@mutant("snr-unacceptable-segment-heeded", breaks="SNR-ACK-008")
class HeedsUnacceptableSegments(Connection):
    """Takes the acknowledgment of a segment outside the receive window."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        super()._receive_unacceptable(segment, seq, receiver, now)
        self._take_ack(segment, receiver.rcv_nxt, now)


@mutant("snr-text-of-a-false-acknowledgment", breaks="SNR-SEG-004")
class TakesTextWithFalseAcknowledgments(Connection):
    """The data of a segment that acknowledges unsent data is accepted."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        return super()._take_ack(segment, seq, now) or self.state is State.ESTABLISHED


@mutant("snr-acknowledged-data-goes-again", breaks="SNR-ACK-009")
class FreesOneSegmentAfterTimeout(SackNewRenoRfcSender):
    """After a timeout an acknowledgment counts for one segment, however much it covers."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if self.snd_nxt < self.snd_max and not self.probes:
            ack = replace(ack, number=min(ack.number, self.snd_una + self.smss))
        super().on_ack(ack, now)


@mutant("snr-drops-data-with-an-old-acknowledgment", breaks="SNR-SEG-005")
class DropsDataWithOldAcknowledgments(Connection):
    """A segment that acknowledges less than SND.UNA is dropped with its data."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        una = self.sender.snd_una
        old = self.state is not State.SYN_RECEIVED and unwrap(segment.ack, una) < una
        return not old and super()._take_ack(segment, seq, now)


@mutant("snr-closed-window-keeps-acknowledgments-out", breaks="SNR-ACK-010")
class DropsRefusedAcknowledgments(Connection):
    """The acknowledgment of a segment that a closed window refuses is not processed."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        if not segment.flags & Flags.SYN:
            segment = replace(segment, flags=segment.flags & ~Flags.ACK)
        super()._receive_unacceptable(segment, seq, receiver, now)


@mutant("snr-acknowledges-from-the-left-edge", breaks="SNR-SEG-006")
class AcknowledgesFromTheLeftEdge(Connection):
    """Acknowledgments carry the number of the oldest octet outstanding."""

    def transmit(self, now: float) -> list[Segment]:
        receiver = self.receiver
        if receiver is not None and receiver.ack_now and self.state is not State.CLOSED:
            self._put(self.sender.snd_una, Flags.ACK, now)
        return super().transmit(now)
