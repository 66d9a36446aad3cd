"""Mutants of acknowledgment processing (SNR-ACK)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery.sack_newreno_hk99 import SackNewRenoHk99Sender
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment
from bentpipe_reference.tcp.wire.sequence import unwrap

_Configure = Callable[[EndpointConfig], EndpointConfig]


def _sending(sender: type[SackNewRenoRfcSender] | type[SackNewRenoHk99Sender]) -> _Configure:
    return lambda config: replace(config, sender_class=sender)


def _ending(endpoint: type[Endpoint]) -> _Configure:
    return lambda config: replace(config, endpoint_class=endpoint)


class CountsOldAcknowledgments(SackNewRenoRfcSender):
    """Counts old acknowledgments as duplicates."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number < self.snd_una:
            self.dupacks += 1
            self.on_duplicate_ack(now)
        super().on_ack(ack, now)


class BelievesOldWindows(SackNewRenoRfcSender):
    """Takes the window of an old acknowledgment."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if ack.number < self.snd_una:
            self.snd_wnd = ack.window
            self.output(now)
        super().on_ack(ack, now)


class GrowsPerAcknowledgment(SackNewRenoRfcSender):
    """Opens the window by a segment per acknowledgment, however little it covers."""

    def slow_start_increase(self, acked: int) -> int:
        return self.smss


class GrowsThreefold(SackNewRenoRfcSender):
    """Opens the window by three times what a stretch acknowledgment covers."""

    def slow_start_increase(self, acked: int) -> int:
        return 3 * acked if acked >= 3 * self.smss else super().slow_start_increase(acked)


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


class RepeatsPerDuplicateRfc(SackNewRenoRfcSender):
    """Repeats the missing segment on every duplicate during recovery."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        self.retransmit(self.snd_una, now)


class RepeatsPerDuplicateHk99(SackNewRenoHk99Sender):
    """Repeats the missing segment on every duplicate during recovery."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        self.retransmit(self.snd_una, now)


class BelievesAcknowledgmentsOfUnsentData(Endpoint):
    """Takes an acknowledgment of data never sent for one of all that was sent."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if unwrap(segment.ack, sender.snd_una) > sender.snd_max:
            segment.ack = sender.snd_max & 0xFFFFFFFF
        return super()._take_ack(segment, seq, now)


class SilentOnUnsentData(Endpoint):
    """Drops an acknowledgment of data never sent without a word."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender = self.sender
        if unwrap(segment.ack, sender.snd_una) > sender.snd_max:
            return False
        return super()._take_ack(segment, seq, now)


class HeedsUnacceptableSegments(Endpoint):
    """Takes the acknowledgment of a segment outside the receive window."""

    def _receive_unacceptable(
        self, segment: Segment, seq: int, receiver: Receiver, now: float
    ) -> None:
        super()._receive_unacceptable(segment, seq, receiver, now)
        self._take_ack(segment, receiver.rcv_nxt, now)


def _of_sender(name: str, breaks: int, sender: type[SackNewRenoRfcSender]) -> Mutant:
    return Mutant(f"snr-{name}", f"SNR-ACK-{breaks:03}", sender.__doc__ or name, _sending(sender))


def _of_endpoint(name: str, breaks: int, endpoint: type[Endpoint]) -> Mutant:
    title = endpoint.__doc__ or name
    return Mutant(f"snr-{name}", f"SNR-ACK-{breaks:03}", title, _ending(endpoint))


MUTANTS = (
    _of_sender("old-acknowledgments-counted", 1, CountsOldAcknowledgments),
    _of_sender("old-windows-believed", 1, BelievesOldWindows),
    _of_endpoint("unsent-data-acknowledged", 2, BelievesAcknowledgmentsOfUnsentData),
    _of_endpoint("unsent-data-unanswered", 3, SilentOnUnsentData),
    _of_sender("growth-per-acknowledgment", 4, GrowsPerAcknowledgment),
    _of_sender("threefold-growth", 5, GrowsThreefold),
    _of_sender("one-segment-per-stretch", 6, ReleasesOnePerStretch),
    _of_sender("repeats-per-duplicate", 7, RepeatsPerDuplicateRfc),
    Mutant(
        "snr-repeats-per-duplicate-hk99",
        "SNR-ACK-007",
        RepeatsPerDuplicateHk99.__doc__ or "",
        _sending(RepeatsPerDuplicateHk99),
        "hk99",
    ),
    _of_endpoint("unacceptable-segment-heeded", 8, HeedsUnacceptableSegments),
)
