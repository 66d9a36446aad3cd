"""Mutants that transmit wrongly on the first two duplicates (SNR-LT)."""

from __future__ import annotations

from bentpipe_reference.tcp.mutants import mutant, mutant_setting
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack


@mutant("snr-no-limited-transmit", breaks="SNR-LT-001")
class NoLimitedTransmit(SackNewRenoRfcSender):
    """The first two duplicates send nothing."""

    def limited_transmit(self, now: float) -> None:
        pass


@mutant("snr-limited-transmit-of-two-segments-each", breaks="SNR-LT-002")
class TwoSegmentsEach(SackNewRenoRfcSender):
    """The first two duplicates send two segments each."""

    def limited_transmit(self, now: float) -> None:
        for _ in range(2):
            self.transmit(self.snd_max, self.snd_max + self.smss, now)


mutant_setting(
    "snr-limited-transmit-in-hk99",
    "Limited transmit is on, which the paper does not know.",
    breaks="SNR-LT-002",
    profile="hk99",
    limited_transmit=True,
)


@mutant("snr-limited-transmit-beyond-the-window", breaks="SNR-LT-003")
class IgnoresTheOfferedWindow(SackNewRenoRfcSender):
    """Limited transmit ignores the receiver's window."""

    def limited_transmit(self, now: float) -> None:
        self.transmit(self.snd_max, self.snd_max + self.smss, now)


@mutant("snr-limited-transmit-on-bare-repetitions", breaks="SNR-LT-004")
class SendsOnBareRepetitions(SackNewRenoRfcSender):
    """With SACK, repetitions that report nothing send new data."""

    def on_ack(self, ack: Ack, now: float) -> None:
        bare = self.sack_ok and ack.number == self.snd_una and not ack.blocks
        super().on_ack(ack, now)
        if bare and self.flight_size:
            self.transmit(self.snd_max, self.snd_max + self.smss, now)
