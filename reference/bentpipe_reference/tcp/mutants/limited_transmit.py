"""Mutants that transmit wrongly on the first two duplicates (SNR-LT)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.mutants import with_sender
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack


class NoLimitedTransmit(SackNewRenoRfcSender):
    """Stays silent on the first two duplicates."""

    def limited_transmit(self, now: float) -> None:
        pass


class TwoSegmentsEach(SackNewRenoRfcSender):
    """Sends two segments on each of the first two duplicates."""

    def limited_transmit(self, now: float) -> None:
        for _ in range(2):
            self.transmit(self.snd_max, self.snd_max + self.smss, now)


class IgnoresTheOfferedWindow(SackNewRenoRfcSender):
    """Sends on the first two duplicates whatever the receiver offers."""

    def limited_transmit(self, now: float) -> None:
        self.transmit(self.snd_max, self.snd_max + self.smss, now)


class SendsOnBareRepetitions(SackNewRenoRfcSender):
    """With SACK, sends new data on a repetition that reports nothing."""

    def on_ack(self, ack: Ack, now: float) -> None:
        bare = self.sack_ok and ack.number == self.snd_una and not ack.blocks
        super().on_ack(ack, now)
        if bare and self.flight_size:
            self.transmit(self.snd_max, self.snd_max + self.smss, now)


MUTANTS = (
    Mutant(
        "snr-no-limited-transmit",
        "SNR-LT-001",
        "The first two duplicates send nothing.",
        with_sender(NoLimitedTransmit),
    ),
    Mutant(
        "snr-limited-transmit-of-two-segments-each",
        "SNR-LT-002",
        "The first two duplicates send two segments each.",
        with_sender(TwoSegmentsEach),
    ),
    Mutant(
        "snr-limited-transmit-in-hk99",
        "SNR-LT-002",
        "Limited transmit is on, which the paper does not know.",
        lambda config: replace(config, limited_transmit=True),
        "hk99",
    ),
    Mutant(
        "snr-limited-transmit-beyond-the-window",
        "SNR-LT-003",
        "Limited transmit ignores the receiver's window.",
        with_sender(IgnoresTheOfferedWindow),
    ),
    Mutant(
        "snr-limited-transmit-on-bare-repetitions",
        "SNR-LT-004",
        "With SACK, repetitions that report nothing send new data.",
        with_sender(SendsOnBareRepetitions),
    ),
)
