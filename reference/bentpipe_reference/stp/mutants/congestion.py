"""Mutants of congestion control and pacing (STP-CG)."""

from __future__ import annotations

from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.mutants import mutant
from bentpipe_reference.stp.pacing import Pacer


@mutant("stp-large-initial-window", breaks="STP-CG-001")
class LargeInitialWindow(Congestion):
    """Begins with sixteen SMSS."""

    def initial_window(self) -> int:
        return 16 * self.smss


@mutant("stp-no-window", breaks="STP-CG-002")
class NoWindow(Congestion):
    """Sends whatever the credit permits."""

    def room(self, flight: int, size: int) -> bool:
        return True


@mutant("stp-grows-threefold", breaks="STP-CG-003")
class GrowsThreefold(Congestion):
    """Grows by three times what has arrived."""

    def slow_start_growth(self, octets: int) -> float:
        return 3 * octets


@mutant("stp-grows-by-sixteen", breaks="STP-CG-004")
class GrowsBySixteen(Congestion):
    """Grows by sixteen SMSS for each window in congestion avoidance."""

    def avoidance_growth(self) -> float:
        return 16 * self.smss


@mutant("stp-never-reduces", breaks="STP-CG-005")
class NeverReduces(Congestion):
    """Keeps its window through losses."""

    def reduced(self, flight: int) -> float:
        return max(self.cwnd, 2 * self.smss)


@mutant("stp-keeps-flight-at-a-loss", breaks="STP-CG-005")
class HalvesAllInFlight(Congestion):
    """Takes what was in flight for its window."""

    def reduced(self, flight: int) -> float:
        return max(flight, 2 * self.smss)


@mutant("stp-waits-for-room", breaks="STP-CG-006")
class WaitsForRoom(Congestion):
    """Lets the first retransmission wait for the window."""

    def on_loss(self, flight: int, serial: int) -> None:
        super().on_loss(flight, serial)
        self.first_retransmission = False


@mutant("stp-sleeps-through-silence", breaks="STP-CG-007")
class SleepsThroughSilence(Congestion):
    """Keeps its window through silences."""

    def on_second_silence(self, flight: int, serial: int) -> None:
        pass


@mutant("stp-halves-at-silence", breaks="STP-CG-007")
class HalvesAtSilence(Congestion):
    """Halves its window after two silences."""

    def loss_window(self) -> int:
        return int(self.ssthresh)


@mutant("stp-ignores-the-rate", breaks="STP-CG-009", setting="max-rate")
class IgnoresTheRate(Pacer):
    """Knows no maximum rate."""

    def rate_gap(self, octets: int) -> float:
        return 0.0


@mutant("stp-doubles-the-rate", breaks="STP-CG-009", setting="max-rate")
class DoublesTheRate(Pacer):
    """Sends at twice its maximum rate."""

    def rate_gap(self, octets: int) -> float:
        return super().rate_gap(octets) / 2


@mutant("stp-grows-unused", breaks="STP-CG-010")
class GrowsUnused(Congestion):
    """Lets a window grow of which little is used."""

    def uses_window(self, flight: int) -> bool:
        return True


@mutant("stp-sends-in-bursts", breaks="STP-CG-008")
class SendsInBursts(Pacer):
    """Sends whatever the window permits at once."""

    def window_gap(self, octets: int) -> float:
        return 0.0
