"""Mutants of polling (STP-PL)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bentpipe_reference.stp.mutants import add, mutant, overriding
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Stat, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.sender import Sender, SentSd
from bentpipe_reference.stp.sequence import unwrap_poll

mutant("stp-polls-once-per-round-trip", "STP-PL-001", "polls once in a round trip")(
    overriding(Polling, Polling.poll_interval, lambda self: 3 * Polling.poll_interval(self))
)
mutant("stp-polls-too-often", "STP-PL-002", "polls ten times in a round trip")(
    overriding(Polling, Polling.poll_interval, lambda self: 0.3 * Polling.poll_interval(self))
)


@mutant("stp-never-asks-after-a-burst", breaks="STP-PL-003")
class NeverAsksAfterABurst(Polling):
    """Stops for window, credit or lack of data without a POLL."""

    def poll_at(self, *, stopped: bool) -> float:
        return super().poll_at(stopped=False)


@mutant("stp-never-asks-after-the-fin", breaks="STP-PL-004")
class NeverAsksAfterTheFin(Outgoing):
    """Sends its FIN without a POLL, unless one is due."""

    def asks_with(self, entry: SentSd, now: float) -> bool:
        return super().asks_with(replace(entry, fin=0), now)


@mutant("stp-asks-with-every-last-sd", breaks="STP-PL-002")
class AsksWithEveryLastSd(Outgoing):
    """Polls whenever it has nothing more to send."""

    def asks_with(self, entry: SentSd, now: float) -> bool:
        return not self.sender.has_new or super().asks_with(entry, now)


add(
    "stp-never-piggybacks", "STP-PL-005", "sends every POLL as a packet of its own", piggyback=False
)


@mutant("stp-skips-poll-numbers", breaks="STP-PL-006")
class SkipsPollNumbers(Sender):
    """Counts POLLs by two."""

    def take_poll(self) -> int:
        self.vt_ps += 1
        return super().take_poll()


@mutant("stp-polls-for-another", breaks="STP-PL-006")
class PollsForAnother(Outgoing):
    """Names another CSN in every fourth POLL."""

    def take_poll(self, now: float) -> tuple[int, int, int]:
        n_ps, timestamp, csn = super().take_poll(now)
        return n_ps, timestamp, csn ^ (n_ps % 4 == 0) << 16


@mutant("stp-never-backs-off", breaks="STP-PL-007")
class NeverBacksOff(Polling):
    """Polls a silent peer at the same interval."""

    back_off = 1.0


@mutant("stp-backs-off-by-four", breaks="STP-PL-007")
class BacksOffByFour(Polling):
    """Multiplies the silence time by four."""

    back_off = 4.0


@mutant("stp-backs-off-to-a-minute", breaks="STP-PL-007")
class BacksOffToAMinute(Polling):
    """Doubles the silence time up to a minute."""

    most_silence_s = 60.0


@mutant("stp-never-gives-up", breaks="STP-PL-008")
class NeverGivesUp(Polling):
    """Polls a silent peer for five minutes."""

    no_response_s = 300.0


@mutant("stp-gives-up-soon", breaks="STP-PL-008")
class GivesUpSoon(Polling):
    """Gives a silent peer up after 20 s."""

    no_response_s = 20.0


@mutant("stp-gives-up-a-closed-window", breaks="STP-PL-008")
class GivesUpAClosedWindow(Polling):
    """Gives a peer up that answers, but gives no credit for a minute."""

    def reported(self, now: float, *, opens: bool) -> None:
        since = self._unanswered_since
        super().reported(now, opens=opens)
        if not opens:
            self._unanswered_since = since


@mutant("stp-polls-when-idle", breaks="STP-PL-010")
class PollsWhenIdle(Polling):
    """Polls every five seconds with nothing to ask for."""

    @property
    def keep_alive_at(self) -> float:
        return self._heard_at + 5.0


@mutant("stp-never-keeps-alive", breaks="STP-PL-010")
class NeverKeepsAlive(Polling):
    """Never polls when idle."""

    @property
    def keep_alive_at(self) -> float:
        return math.inf


@mutant("stp-smooths-by-a-quarter", breaks="STP-PL-009")
class SmoothsByAQuarter(Outgoing):
    """Smooths the round-trip time with a gain of a quarter."""

    def open(self, now: float) -> None:
        super().open(now)
        self.rtt.ALPHA = 1 / 4


@mutant("stp-measures-by-discarded-stats", breaks="STP-PL-009")
class MeasuresByDiscardedStats(Outgoing):
    """Takes measurements from STATs that newer ones have overtaken."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._left: dict[int, float] = {}

    def take_poll(self, now: float) -> tuple[int, int, int]:
        taken = super().take_poll(now)
        self._left[self.sender.vt_ps] = now
        return taken

    def discard(self, packet: Stat | Ustat, now: float) -> None:
        asked = packet.n_ps if isinstance(packet, Stat) else 0
        number = unwrap_poll(asked, self.sender.vt_ps) if asked else 0
        if 0 < number < self.sender.vt_pa and number in self._left:
            self.rtt.sample(now - self._left[number])
        super().discard(packet, now)


@mutant("stp-forgets-the-deviation", breaks="STP-PL-007")
class ForgetsTheDeviation(Polling):
    """Leaves the deviation of the round-trip time out of the silence time."""

    def silence_time(self) -> float:
        srtt = self._rtt.srtt
        return self._initial if srtt is None else max(srtt + self.poll_interval(), 0.2)


@mutant("stp-counts-reports-to-be-discarded", breaks="STP-PL-008")
class CountsReportsToBeDiscarded(Outgoing):
    """Keeps a peer that sends nothing but reports to be discarded."""

    def discard(self, packet: Stat | Ustat, now: float) -> None:
        super().discard(packet, now)
        self.polling._unanswered_since = math.inf


@mutant("stp-has-no-longest-interval", breaks="STP-PL-001")
class HasNoLongestInterval(Polling):
    """Polls three times in a round trip, however long that is."""

    def poll_interval(self) -> float:
        srtt = self._rtt.srtt
        return self._initial if srtt is None else max(srtt / 3, 0.02)


@mutant("stp-hears-anything-in-silence", breaks="STP-CG-007")
class HearsAnythingInSilence(Polling):
    """Counts expiries of Timer_SILENCE from the last packet of any type."""

    def heard(self, now: float) -> None:
        super().heard(now)
        self.silences = 0
