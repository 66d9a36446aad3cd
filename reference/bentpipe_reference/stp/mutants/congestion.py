"""Mutants of congestion control and pacing (STP-CG)."""

from __future__ import annotations

import math

from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.mutants import mutant, overriding, returning
from bentpipe_reference.stp.pacing import Pacer

mutant("stp-large-initial-window", "STP-CG-001", "begins with sixteen SMSS")(
    overriding(Congestion, Congestion.initial_window, lambda self: 16 * self.smss)
)
mutant("stp-no-window", "STP-CG-002", "sends whatever the credit permits")(
    returning(Congestion, Congestion.room, True)
)


@mutant("stp-flies-a-third-more", breaks="STP-CG-002")
class FliesAThirdMore(Congestion):
    """Lets four thirds of its window fly."""

    def room(self, flight: int, size: int) -> bool:
        return 3 * (flight + size) <= 4 * self.cwnd


@mutant("stp-grows-threefold", breaks="STP-CG-003")
class GrowsThreefold(Congestion):
    """Grows by three times what has arrived."""

    def slow_start_growth(self, octets: int) -> float:
        return 3 * octets


mutant(
    "stp-grows-by-sixteen",
    "STP-CG-004",
    "grows by sixteen SMSS for each window in congestion avoidance",
)(overriding(Congestion, Congestion.avoidance_growth, lambda self: 16 * self.smss))


mutant("stp-never-reduces", "STP-CG-005", "keeps its window through losses")(
    overriding(Congestion, Congestion.reduced, lambda self: max(self.cwnd, 2 * self.smss))
)
mutant("stp-reduces-by-a-tenth", "STP-CG-005", "reduces its window by a tenth")(
    overriding(Congestion, Congestion.reduced, lambda self: max(0.9 * self.cwnd, 2 * self.smss))
)


@mutant("stp-waits-for-room", breaks="STP-CG-006")
class WaitsForRoom(Congestion):
    """Lets the first retransmission wait for the window."""

    def on_loss(self, serial: int) -> None:
        super().on_loss(serial)
        self.first_retransmission = False


mutant("stp-sleeps-through-silence", "STP-CG-007", "keeps its window through silences")(
    returning(Congestion, Congestion.on_second_silence, None)
)
mutant("stp-halves-at-silence", "STP-CG-007", "halves its window after two silences")(
    overriding(Congestion, Congestion.loss_window, lambda self: int(self.ssthresh))
)
mutant("stp-ignores-the-rate", "STP-CG-009", "knows no maximum rate", setting="max-rate")(
    returning(Pacer, Pacer.limit, math.inf)
)
mutant("stp-doubles-the-rate", "STP-CG-009", "sends at twice its maximum rate", setting="max-rate")(
    overriding(Pacer, Pacer.limit, lambda self: 2 * Pacer.limit(self))
)
mutant("stp-grows-unused", "STP-CG-010", "lets a window grow of which little is used")(
    returning(Congestion, Congestion.is_used, True)
)
mutant("stp-sends-in-bursts", "STP-CG-008", "sends whatever the window permits at once")(
    returning(Pacer, Pacer.window_rate, math.inf)
)


class TellsLosses(Congestion):
    """Notes whether a loss was the reason of the last reduction."""

    lost = False

    def on_loss(self, serial: int) -> None:
        super().on_loss(serial)
        self.lost = True

    def on_second_silence(self, serial: int) -> None:
        super().on_second_silence(serial)
        self.lost = False


@mutant("stp-is-fast-until-a-loss", breaks="STP-CG-008", also=(TellsLosses,))
class IsFastUntilALoss(Pacer):
    """Sends with the gain of slow start until a loss, although its window has reached ssthresh."""

    def gain(self) -> float:
        lost = isinstance(self._congestion, TellsLosses) and self._congestion.lost
        return super().gain() if lost else 2.0


@mutant("stp-grows-with-a-third-in-flight", breaks="STP-CG-010")
class GrowsWithAThirdInFlight(Congestion):
    """Lets a window grow of which a third is used."""

    def is_used(self, flight: int) -> bool:
        return 3 * flight >= self.cwnd


@mutant("stp-remembers-its-threshold", breaks="STP-CG-004")
class RemembersItsThreshold(Congestion):
    """Leaves ssthresh as it was after two silences."""

    def on_second_silence(self, serial: int) -> None:
        threshold = self.ssthresh
        super().on_second_silence(serial)
        self.ssthresh = threshold
