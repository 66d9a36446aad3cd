"""Mutants that misread the receiver's window (SNR-WIN)."""

from __future__ import annotations

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.mutants import mutant, mutant_setting
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment


@mutant("snr-offered-window-ignored", breaks="SNR-WIN-001", hk99=True)
class IgnoresTheOfferedWindow(Sender):
    """Only the congestion window limits the sender."""

    def send_window(self) -> int:
        return self.cwnd


@mutant("snr-scales-without-negotiation", breaks="SNR-WIN-001")
class AlwaysScales(Handshake):
    """Windows are scaled although the option was not negotiated."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        self.send_shift = 7


@mutant("snr-window-not-scaled", breaks="SNR-WIN-002")
class NeverScales(Handshake):
    """Windows are read unscaled although the option was negotiated."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        self.send_shift = 0


@mutant("snr-no-window-probes", breaks="SNR-WIN-003")
class NeverProbes(SackNewRenoRfcSender):
    """A zero window is not probed."""

    def plan_probe(self, now: float) -> None:
        """Plan nothing."""


@mutant("snr-no-probes-half-closed", breaks="SNR-WIN-003", hk99=True)
class NeverProbesHalfClosed(Connection):
    """A zero window is not probed once the peer has closed."""

    def next_deadline(self) -> float | None:
        if self.receiver is not None and self.receiver.fin_received:
            self.sender.persist_deadline = None
        return super().next_deadline()

    def advance(self, now: float) -> None:
        """Advance without the probes."""
        self.next_deadline()
        super().advance(now)


@mutant("snr-no-probes-for-a-fin", breaks="SNR-WIN-003")
class NeverProbesForAFin(SackNewRenoRfcSender):
    """A zero window that keeps nothing but the FIN back is not probed."""

    def plan_probe(self, now: float) -> None:
        end = self.data_end
        if end is None or end > self.snd_nxt:
            super().plan_probe(now)


@mutant("snr-first-probe-at-once", breaks="SNR-WIN-004")
class ProbesAtOnce(SackNewRenoRfcSender):
    """The first probe follows after 100 ms."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return 0.1 if probes == 0 else super().zero_window_probe_interval(probes)


@mutant("snr-first-probe-late", breaks="SNR-WIN-004")
class ProbesLate(SackNewRenoRfcSender):
    """The first probe follows after half a minute."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return max(30.0, super().zero_window_probe_interval(probes))


@mutant("snr-arrivals-put-probes-off", breaks="SNR-WIN-004")
class PutsProbesOff(SackNewRenoRfcSender):
    """Every acknowledgment that finds the window closed starts the timer of its probes anew."""

    def on_ack(self, ack: Ack, now: float) -> None:
        super().on_ack(ack, now)
        if self.persist_deadline is not None:
            self.persist_deadline = now + self.zero_window_probe_interval(self.probes)


@mutant("snr-probes-without-back-off", breaks="SNR-WIN-005")
class ProbesSteadily(SackNewRenoRfcSender):
    """Probes leave at equal intervals."""

    def zero_window_probe_interval(self, probes: int) -> float:
        return super().zero_window_probe_interval(0 * probes)


PROBES_ENOUGH = 4


@mutant("snr-gives-up-probing", breaks="SNR-WIN-006", hk99=True)
class GivesUpProbing(Sender):
    """The connection is given up although its probes are acknowledged."""

    def has_given_up(self, now: float) -> bool:
        due = self.persist_deadline is not None and now >= self.persist_deadline
        return super().has_given_up(now) or (due and self.probes > PROBES_ENOUGH)


@mutant("snr-opened-window-waits-for-the-probe", breaks="SNR-WIN-007")
class WaitsForItsProbe(SackNewRenoRfcSender):
    """A window update sends nothing; the next probe does."""

    def on_ack(self, ack: Ack, now: float) -> None:
        if self.persist_deadline is not None and ack.number == self.snd_una:
            self.update_window(ack)
        else:
            super().on_ack(ack, now)


@mutant("snr-resets-on-a-shrinking-window", breaks="SNR-WIN-008")
class ResetsOnShrinking(Connection):
    """A right edge that moves left resets the connection."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        sender, before = self.sender, self.sender.right_edge
        accepted = super()._take_ack(segment, seq, now)
        if sender.right_edge < min(before, sender.snd_max):
            self.abort("the peer took back its window", now)
        return accepted


@mutant("snr-window-never-shrinks", breaks="SNR-WIN-012")
class NeverShrinks(SackNewRenoRfcSender):
    """The highest right edge ever offered stays in force."""

    def update_window(self, ack: Ack) -> bool:
        edge = self.right_edge
        moved = super().update_window(ack)
        self.snd_wnd = max(self.snd_wnd, edge - ack.number)
        return moved


@mutant("snr-unscaled-window-never-shrinks", breaks="SNR-WIN-009")
class NeverShrinksUnscaled(NeverShrinks):
    """The same on a connection whose window is not scaled."""


@mutant("snr-silly-segments", breaks="SNR-WIN-010", hk99=True)
class FillsSmallOpenings(Sender):
    """Any opening of the window is filled at once."""

    def sendable(self, seq: int, usable: int) -> int:
        octets = super().sendable(seq, usable)
        end = self.sending_end
        left = self.smss if end is None else end - seq
        return octets or max(0, min(left, usable, self.smss))


@mutant("snr-half-a-window-despite-nagle", breaks="SNR-WIN-011", hk99=True)
class HalfAWindowDespiteNagle(Sender):
    """Half of the largest window is sent at once, whatever is outstanding."""

    def sendable(self, seq: int, usable: int) -> int:
        end = self.sending_end
        left = min(usable, self.smss, self.smss if end is None else end - seq)
        return super().sendable(seq, usable) or (left if 2 * left >= self.max_snd_wnd else 0)


@mutant("snr-no-nagle-in-a-recovery", breaks="SNR-WIN-011")
class NoNagleInARecovery(SackNewRenoRfcSender):
    """Small segments leave at once while a loss is repaired."""

    def sendable(self, seq: int, usable: int) -> int:
        octets, end = super().sendable(seq, usable), self.data_end
        if octets or not self.in_recovery or end is None or seq < self.snd_max:
            return octets
        return max(0, min(usable, self.smss, end - seq))


@mutant("snr-small-window-waited-out", breaks="SNR-WIN-013", hk99=True)
class WaitsOutSmallWindows(Sender):
    """Only a window of zero is probed; one too small to use is waited out."""

    def check_probe(self, now: float) -> None:
        if self.snd_wnd > 0:
            self.persist_deadline = None
        else:
            super().check_probe(now)


mutant_setting(
    "snr-small-segments-at-once",
    "Small segments are sent while others are outstanding.",
    breaks="SNR-WIN-011",
    hk99=True,
    nagle=False,
)
