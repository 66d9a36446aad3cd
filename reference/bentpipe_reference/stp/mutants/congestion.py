"""Mutants of congestion control and pacing (STP-CG)."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.mutants.hosts import with_parts
from bentpipe_reference.stp.pacing import Pacer


class LargeInitialWindow(Congestion):
    """Begins with sixteen SMSS."""

    def initial_window(self) -> int:
        return 16 * self.smss


class NoWindow(Congestion):
    """Knows the peer's credit only."""

    def room(self, flight: int, size: int) -> bool:
        return True


class GrowsThreefold(Congestion):
    """Grows by three times what has arrived."""

    def slow_start_growth(self, octets: int) -> float:
        return 3 * octets


class GrowsBySixteen(Congestion):
    """Grows by sixteen SMSS for each window in congestion avoidance."""

    def avoidance_growth(self) -> float:
        return 16 * self.smss


class NeverReduces(Congestion):
    """Keeps its window through losses."""

    def reduced(self, flight: int) -> float:
        return max(self.cwnd, 2 * self.smss)


class HalvesAllInFlight(Congestion):
    """Halves twice what may be in flight, not the window."""

    def reduced(self, flight: int) -> float:
        return max(flight, 2 * self.smss)


class WaitsForRoom(Congestion):
    """Lets every retransmission wait for the window."""

    def on_loss(self, flight: int, serial: int) -> None:
        super().on_loss(flight, serial)
        self.first_retransmission = False


class SleepsThroughSilence(Congestion):
    """Keeps its window through silences."""

    def on_second_silence(self, flight: int, serial: int) -> None:
        pass


class GrowsUnused(Congestion):
    """Grows by whatever arrives, however little of the window was used."""

    def uses_window(self, flight: int) -> bool:
        return True


class HalvesAtSilence(Congestion):
    """Takes two silences for a loss."""

    def loss_window(self) -> int:
        return int(self.ssthresh)


class SendsInBursts(Pacer):
    """Sends whatever the window permits at once."""

    def window_gap(self, octets: int) -> float:
        return 0.0


class IgnoresTheRate(Pacer):
    """Spreads SDs by the window alone."""

    def rate_gap(self, octets: int) -> float:
        return 0.0


class DoublesTheRate(Pacer):
    """Takes the maximum rate for twice what it is."""

    def rate_gap(self, octets: int) -> float:
        return super().rate_gap(octets) / 2


MUTANTS = (
    Mutant("stp-large-initial-window", "STP-CG-001", "begins with sixteen SMSS",
           with_parts(congestion_class=LargeInitialWindow), "stp1"),
    Mutant("stp-no-window", "STP-CG-002", "sends whatever the credit permits",
           with_parts(congestion_class=NoWindow), "stp1"),
    Mutant("stp-grows-threefold", "STP-CG-003", "grows by three times what has arrived",
           with_parts(congestion_class=GrowsThreefold), "stp1"),
    Mutant("stp-grows-by-sixteen", "STP-CG-004",
           "grows by sixteen SMSS for each window in congestion avoidance",
           with_parts(congestion_class=GrowsBySixteen), "stp1"),
    Mutant("stp-never-reduces", "STP-CG-005", "keeps its window through losses",
           with_parts(congestion_class=NeverReduces), "stp1"),
    Mutant("stp-keeps-flight-at-a-loss", "STP-CG-005", "takes what was in flight for its window",
           with_parts(congestion_class=HalvesAllInFlight), "stp1"),
    Mutant("stp-waits-for-room", "STP-CG-006", "lets the first retransmission wait for the window",
           with_parts(congestion_class=WaitsForRoom), "stp1"),
    Mutant("stp-sleeps-through-silence", "STP-CG-007", "keeps its window through silences",
           with_parts(congestion_class=SleepsThroughSilence), "stp1"),
    Mutant("stp-halves-at-silence", "STP-CG-007", "halves its window after two silences",
           with_parts(congestion_class=HalvesAtSilence), "stp1"),
    Mutant("stp-ignores-the-rate", "STP-CG-009", "knows no maximum rate",
           with_parts(pacer_class=IgnoresTheRate), "stp1", "max-rate"),
    Mutant("stp-doubles-the-rate", "STP-CG-009", "sends at twice its maximum rate",
           with_parts(pacer_class=DoublesTheRate), "stp1", "max-rate"),
    Mutant("stp-grows-unused", "STP-CG-010", "lets a window grow of which little is used",
           with_parts(congestion_class=GrowsUnused), "stp1"),
    Mutant("stp-sends-in-bursts", "STP-CG-008", "sends whatever the window permits at once",
           with_parts(pacer_class=SendsInBursts), "stp1"),
)  # fmt: skip
