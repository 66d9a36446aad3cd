"""Mutants that misread the receiver's window (SNR-WIN)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.mutants import with_sender
from bentpipe_reference.tcp.recovery import SackNewRenoHk99Sender, SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment


class IgnoresTheOfferedWindow(SackNewRenoRfcSender):
    """Only the congestion window counts."""

    def send_window(self) -> int:
        return self.cwnd


class IgnoresTheOfferedWindowHk99(SackNewRenoHk99Sender):
    """Only the congestion window counts."""

    def send_window(self) -> int:
        return self.cwnd


class AlwaysScales(Handshake):
    """Shifts the peer's windows by 7, negotiated or not."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        self.send_shift = 7


class AlwaysScaling(Endpoint):
    """An endpoint with that handshake."""

    handshake_class = AlwaysScales


class NeverScales(Handshake):
    """Negotiates window scaling but reads the peer's windows unscaled."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        self.send_shift = 0


class NeverScaling(Endpoint):
    """An endpoint with that handshake."""

    handshake_class = NeverScales


class NeverProbes(SackNewRenoRfcSender):
    """Waits for a window update, come what may."""

    def plan_probe(self, now: float) -> None:
        """Plan nothing."""


class ProbesAtOnce(SackNewRenoRfcSender):
    """The first probe after a tenth of a second."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return 0.1 if probes == 0 else super().zero_window_probe_interval(probes)


class ProbesLate(SackNewRenoRfcSender):
    """The first probe after half a minute."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return max(30.0, super().zero_window_probe_interval(probes))


class ProbesSteadily(SackNewRenoRfcSender):
    """Probes at equal intervals."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(0 * probes)


PROBES_ENOUGH = 4


class GivesUpProbing(SackNewRenoRfcSender):
    """Gives the connection up after a few probes, answered or not."""

    def has_given_up(self, now: float) -> bool:
        due = self.persist_deadline is not None and now >= self.persist_deadline
        return super().has_given_up(now) or (due and self.probes > PROBES_ENOUGH)


class GivesUpProbingHk99(SackNewRenoHk99Sender):
    """Gives the connection up after a few probes, answered or not."""

    def has_given_up(self, now: float) -> bool:
        due = self.persist_deadline is not None and now >= self.persist_deadline
        return super().has_given_up(now) or (due and self.probes > PROBES_ENOUGH)


class WaitsForItsProbe(SackNewRenoRfcSender):
    """Notes that the window has opened, but sends only when the next probe is due."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if self.persist_deadline is not None and ack.number == self.snd_una:
            self.update_window(ack)
        else:
            super().on_ack(ack, now)


class ResetsOnShrinking(Endpoint):
    """Takes a right edge that moves left for an attack."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender, before = self.sender, self.sender.right_edge
        accepted = super()._take_ack(segment, seq, now)
        if sender.right_edge < min(before, sender.snd_max):
            self.abort("the peer took back its window", now)
        return accepted


class NeverShrinks(SackNewRenoRfcSender):
    """Keeps to the highest right edge it has seen."""

    def update_window(self, ack: Ack) -> bool:
        edge = self.right_edge
        moved = super().update_window(ack)
        self.snd_wnd = max(self.snd_wnd, edge - ack.number)
        return moved


class FillsSmallOpenings(SackNewRenoRfcSender):
    """Sends into any opening of the window at once."""

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        end = self.sending_end
        left = self.smss if end is None else end - seq
        return octets or max(0, min(left, usable, self.smss))


class FillsSmallOpeningsHk99(SackNewRenoHk99Sender):
    """Sends into any opening of the window at once."""

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        end = self.sending_end
        left = self.smss if end is None else end - seq
        return octets or max(0, min(left, usable, self.smss))


MUTANTS = (
    Mutant(
        "snr-offered-window-ignored",
        "SNR-WIN-001",
        "Only the congestion window limits the sender.",
        with_sender(IgnoresTheOfferedWindow),
    ),
    Mutant(
        "snr-offered-window-ignored-hk99",
        "SNR-WIN-001",
        "Only the congestion window limits the sender.",
        with_sender(IgnoresTheOfferedWindowHk99),
        "hk99",
    ),
    Mutant(
        "snr-scales-without-negotiation",
        "SNR-WIN-001",
        "Windows are scaled although the option was not negotiated.",
        lambda config: replace(config, endpoint_class=AlwaysScaling),
    ),
    Mutant(
        "snr-window-not-scaled",
        "SNR-WIN-002",
        "Windows are read unscaled although the option was negotiated.",
        lambda config: replace(config, endpoint_class=NeverScaling),
    ),
    Mutant(
        "snr-no-window-probes",
        "SNR-WIN-003",
        "A zero window is not probed.",
        with_sender(NeverProbes),
    ),
    Mutant(
        "snr-first-probe-at-once",
        "SNR-WIN-004",
        "The first probe follows after 100 ms.",
        with_sender(ProbesAtOnce),
    ),
    Mutant(
        "snr-first-probe-late",
        "SNR-WIN-004",
        "The first probe follows after half a minute.",
        with_sender(ProbesLate),
    ),
    Mutant(
        "snr-probes-without-back-off",
        "SNR-WIN-005",
        "Probes leave at equal intervals.",
        with_sender(ProbesSteadily),
    ),
    Mutant(
        "snr-gives-up-probing",
        "SNR-WIN-006",
        "The connection is given up although its probes are acknowledged.",
        with_sender(GivesUpProbing),
    ),
    Mutant(
        "snr-gives-up-probing-hk99",
        "SNR-WIN-006",
        "The connection is given up although its probes are acknowledged.",
        with_sender(GivesUpProbingHk99),
        "hk99",
    ),
    Mutant(
        "snr-opened-window-waits-for-the-probe",
        "SNR-WIN-007",
        "A window update sends nothing; the next probe does.",
        with_sender(WaitsForItsProbe),
    ),
    Mutant(
        "snr-resets-on-a-shrinking-window",
        "SNR-WIN-008",
        "A right edge that moves left resets the connection.",
        lambda config: replace(config, endpoint_class=ResetsOnShrinking),
    ),
    Mutant(
        "snr-window-never-shrinks",
        "SNR-WIN-009",
        "The highest right edge ever offered stays in force.",
        with_sender(NeverShrinks),
    ),
    Mutant(
        "snr-silly-segments",
        "SNR-WIN-010",
        "Any opening of the window is filled at once.",
        with_sender(FillsSmallOpenings),
    ),
    Mutant(
        "snr-silly-segments-hk99",
        "SNR-WIN-010",
        "Any opening of the window is filled at once.",
        with_sender(FillsSmallOpeningsHk99),
        "hk99",
    ),
)
