"""Mutants of polling (STP-PL)."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.mutants.hosts import with_parts
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.polling import Need, Polling
from bentpipe_reference.stp.sender import Sender


class PollsOncePerRoundTrip(Polling):
    """Waits a whole round-trip time between POLLs."""

    def poll_interval(self) -> float:
        return 3 * super().poll_interval()


class PollsTenTimesPerRoundTrip(Polling):
    """Waits a tenth of the round-trip time only."""

    def poll_interval(self) -> float:
        return 0.3 * super().poll_interval()


class NeverAsksAfterNew(Outgoing):
    """Leaves POLLs to the timer alone."""

    def asks_after_new(self) -> bool:
        return False

    def asks_after_burst(self) -> bool:
        return False


class SkipsPollNumbers(Sender):
    """Counts POLLs by two."""

    def take_poll(self) -> int:
        self.vt_ps += 1
        return super().take_poll()


class NeverBacksOff(Polling):
    """Polls a silent peer at the same interval for ever."""

    def backed_off(self) -> float:
        return self.silence_time()


class QuadruplesInterval(Polling):
    """Backs off by a factor of four."""

    def backed_off(self) -> float:
        return min(self.silence_time() * 4.0**self.silences, 60.0)


class NeverGivesUp(Polling):
    """Polls a silent peer for five minutes."""

    def no_response_time(self) -> float:
        return 300.0


class GivesUpSoon(Polling):
    """Gives a silent peer up after twenty seconds."""

    def no_response_time(self) -> float:
        return 20.0


class PollsWhenIdle(Polling):
    """Goes on polling when there is nothing to ask for."""

    def require(self, need: Need, now: float) -> None:
        super().require(Need.IDLE if need is Need.NONE else need, now)

    def keep_alive_interval(self) -> float:
        return 1.0


class ProvesToNobody(Connection):
    """Asks a listener that has fallen silent for five minutes."""

    def proof_patience(self) -> float:
        return 300.0


MUTANTS = (
    Mutant("stp-polls-once-per-round-trip", "STP-PL-001", "polls once in a round trip",
           with_parts(polling_class=PollsOncePerRoundTrip), "stp1"),
    Mutant("stp-polls-too-often", "STP-PL-002", "polls ten times in a round trip",
           with_parts(polling_class=PollsTenTimesPerRoundTrip), "stp1"),
    Mutant("stp-never-asks-after-a-burst", "STP-PL-003", "lets a burst end without a POLL",
           with_parts(outgoing_class=NeverAsksAfterNew), "stp1"),
    Mutant("stp-never-asks-after-the-fin", "STP-PL-004", "sends its FIN without a POLL",
           with_parts(outgoing_class=NeverAsksAfterNew), "stp1"),
    Mutant("stp-never-piggybacks", "STP-PL-005", "sends every POLL as a packet of its own",
           with_parts(piggyback=False), "stp1"),
    Mutant("stp-skips-poll-numbers", "STP-PL-006", "counts POLLs by two",
           with_parts(sender_class=SkipsPollNumbers), "stp1"),
    Mutant("stp-never-backs-off", "STP-PL-007", "polls a silent peer at the same interval",
           with_parts(polling_class=NeverBacksOff), "stp1"),
    Mutant("stp-backs-off-by-four", "STP-PL-007", "multiplies the time between POLLs by four",
           with_parts(polling_class=QuadruplesInterval), "stp1"),
    Mutant("stp-never-gives-up", "STP-PL-008", "polls a silent peer for five minutes",
           with_parts(polling_class=NeverGivesUp), "stp1"),
    Mutant("stp-gives-up-soon", "STP-PL-008", "gives a silent peer up after 20 s",
           with_parts(polling_class=GivesUpSoon), "stp1"),
    Mutant("stp-proves-to-nobody", "STP-PL-008", "asks a silent listener for five minutes",
           with_parts(connection_class=ProvesToNobody), "stp1"),
    Mutant("stp-polls-when-idle", "STP-PL-010", "polls every second with nothing to ask for",
           with_parts(polling_class=PollsWhenIdle), "stp1"),
)  # fmt: skip
