"""Mutants of polling (STP-PL)."""

from __future__ import annotations

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.mutants import add, mutant, overriding
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.polling import Need, Polling
from bentpipe_reference.stp.sender import Sender

mutant("stp-polls-once-per-round-trip", "STP-PL-001", "polls once in a round trip")(
    overriding(Polling, Polling.poll_interval, lambda self: 3 * Polling.poll_interval(self))
)
mutant("stp-polls-too-often", "STP-PL-002", "polls ten times in a round trip")(
    overriding(Polling, Polling.poll_interval, lambda self: 0.3 * Polling.poll_interval(self))
)


@mutant("stp-never-asks-after-the-fin", breaks="STP-PL-004", title="sends its FIN without a POLL")
@mutant("stp-never-asks-after-a-burst", breaks="STP-PL-003")
class NeverAsksAfterNew(Outgoing):
    """Lets a burst end without a POLL."""

    def asks_after_new(self) -> bool:
        return False

    def asks_after_burst(self) -> bool:
        return False


add(
    "stp-never-piggybacks", "STP-PL-005", "sends every POLL as a packet of its own", piggyback=False
)


@mutant("stp-skips-poll-numbers", breaks="STP-PL-006")
class SkipsPollNumbers(Sender):
    """Counts POLLs by two."""

    def take_poll(self) -> int:
        self.vt_ps += 1
        return super().take_poll()


mutant("stp-never-backs-off", "STP-PL-007", "polls a silent peer at the same interval")(
    overriding(Polling, Polling.backed_off, lambda self: self.silence_time())
)


@mutant("stp-backs-off-by-four", breaks="STP-PL-007")
class QuadruplesInterval(Polling):
    """Multiplies the time between POLLs by four."""

    def backed_off(self) -> float:
        return min(self.silence_time() * 4.0**self.silences, 60.0)


@mutant("stp-never-gives-up", breaks="STP-PL-008")
class NeverGivesUp(Polling):
    """Polls a silent peer for five minutes."""

    no_response_s = 300.0


@mutant("stp-gives-up-soon", breaks="STP-PL-008")
class GivesUpSoon(Polling):
    """Gives a silent peer up after 20 s."""

    no_response_s = 20.0


@mutant("stp-proves-to-nobody", breaks="STP-PL-008")
class ProvesToNobody(Actions):
    """Asks a silent listener for five minutes."""

    proof_patience_s = 300.0


@mutant("stp-polls-when-idle", breaks="STP-PL-010")
class PollsWhenIdle(Polling):
    """Polls every second with nothing to ask for."""

    def require(self, need: Need, now: float) -> None:
        super().require(Need.IDLE if need is Need.NONE else need, now)

    keep_alive_s = 1.0
