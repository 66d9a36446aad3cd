"""A known caller, whose address the listener cannot trust yet (STP-SEC-001, STP-CC-032)."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.packets import Bgak, End, Flags, Reason, Type
from bentpipe_reference.stp.transfer import StpPath, pattern

NEARBY = LinkProfile("nearby", "", "", Direction(None, 0.01, 50), Direction(None, 0.01, 50))
"""Where the caller's first POLL is answered before the second, so that few octets are received."""

REPLY = pattern(0, 20_000)
ISS = 5000
C = int(Flags.C)


def reads_and_closes(connection: Connection, received: bytearray) -> None:
    received += connection.read()
    if connection.peer_has_closed:
        connection.close()


class Conversation:
    """Two calls: the first makes the caller known, the second one waits for a long reply."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.polls_lost = 0
        self.path = StpPath(NEARBY, StpConfig(), self._near, self._far)
        self._send = self.path.return_.send
        self.path.return_.send = self._lossy  # type: ignore[method-assign]
        self.losing = False

    def _lossy(self, item: Any, octets: int) -> None:
        if self.losing and item[1][4] & 15 == Type.POLL:
            self.polls_lost += 1
            return
        self._send(item, octets)

    def _near(self, connection: Connection, events: Events, now: float) -> None:
        reads_and_closes(connection, self.received)

    def _far(self, connection: Connection, events: Events, now: float) -> None:
        if events & Events.ACCEPTED:
            connection.write(REPLY)
            connection.close()
        connection.read()

    def run(self, seconds: float) -> None:
        simulation = self.path.simulation
        until = simulation.now + seconds
        while (following := simulation.next_time()) is not None and following <= until:
            simulation.step()

    def call(self) -> Connection:
        connection = self.path.connect()
        self.path.near.settle()
        return connection


def test_known_caller_whose_listener_loses_its_polls_gets_the_reply() -> None:
    talk = Conversation()
    talk.call()
    talk.run(30.0)
    assert bytes(talk.received) == REPLY
    talk.received.clear()
    talk.losing = True
    waiting = talk.call()
    talk.run(15.0)
    assert talk.polls_lost
    talk.losing = False
    talk.run(100.0)
    assert waiting.is_over, "STP-CC-009: it ends"
    assert bytes(talk.received) == REPLY and waiting.succeeded


def trusted(make: Any) -> Any:
    """A caller with nothing to send that was accepted at once, and heard at 0 s."""
    script = make()
    script.called()
    script.arrive(script.poll(0, 1))
    return script


def proofs(script: Any, until: float) -> list[float]:
    """When it asks for a BGAK until then; it sends nothing else."""
    sent = script.run(until)
    assert all(isinstance(packet, Bgak) and packet.flags == C for _, packet in sent)
    return [time for time, _ in sent]


def test_trusted_caller_proves_its_address_more_and_more_rarely(stp: Any) -> None:
    script = trusted(stp)
    assert proofs(script, 40.0) == pytest.approx([1, 3, 7, 15, 31])
    script.arrive(script.sd(0))
    assert proofs(script, 44.0) == pytest.approx([41, 43])


def test_trusted_caller_that_hears_something_waits_again(stp: Any) -> None:
    script = trusted(stp)
    for second in range(1, 6):
        assert proofs(script, 0.9 * second) == []
        script.arrive(script.poll(0, 1 + second))
    assert proofs(script, 6.0) == pytest.approx([5.5])


def test_trusted_caller_is_silent_once_its_proof_is_accepted(stp: Any) -> None:
    script = trusted(stp)
    assert proofs(script, 1.3) == pytest.approx([1])
    assert script.arrive(script.bgak()) == []
    assert script.run(until=1000.0) == []


def test_trusted_caller_does_not_take_late_answers_to_its_begins_for_accepted(stp: Any) -> None:
    script = stp()
    script.call()
    script.run(until=1.2)
    script.arrive(script.bgak(), script.poll(0, 1))
    script.now = 2.2
    script.arrive(script.bgak())
    assert proofs(script, 3.5) == pytest.approx([3.2]), "it had not asked"
    script.arrive(script.bgak())
    assert proofs(script, 4.6) == pytest.approx([4.5]), "the second BEGIN explains it"
    script.arrive(script.bgak())
    assert script.run(until=1000.0) == []


def test_trusted_caller_takes_no_copy_of_the_first_answer_for_another(stp: Any) -> None:
    script = trusted(stp)
    script.arrive(script.bgak())
    assert proofs(script, 1.3) == pytest.approx([1])


@pytest.mark.parametrize("wrong", [{"csn": 5}, {"peer_csn": 5}, {"flags": C}])
def test_trusted_caller_takes_no_other_bgak_for_an_answer(stp: Any, wrong: Any) -> None:
    script = trusted(stp)
    script.arrive(script.bgak(**wrong))
    assert proofs(script, 1.5) == pytest.approx([1])


def test_caller_that_was_asked_has_nothing_to_prove(stp: Any) -> None:
    script = stp()
    script.called(flags=C)
    script.arrive(script.poll(0, 1))
    assert script.run(until=1000.0) == []


def test_trusted_caller_gives_a_silent_listener_up(stp: Any) -> None:
    script = trusted(stp)
    sent = script.run(until=61.5)
    assert [time for time, _ in sent] == pytest.approx([1, 3, 7, 15, 31, 61])
    end = sent[-1][1]
    assert isinstance(end, End) and (end.flags, end.reason) == (int(Flags.A), Reason.NO_ANSWER)
    assert script.connection.failure


def test_proof_sets_a_listener_free_that_has_nothing_left_to_spend(stp: Any) -> None:
    script = stp()
    script.ready()
    script.arrive(script.end(flags=int(Flags.A)))
    again = script.begin(csn=script.begin().csn + 1)
    (bgak,) = script.arrive(again)
    script.connection.write(bytes(5000))
    script.flush()
    script.run(until=30.0)
    assert script.connection.budget < 20
    own = {"csn": again.csn, "peer_csn": bgak.csn, "n_r": bgak.iss, "flags": C}
    answer, *data = script.arrive(script.bgak(**own))
    assert isinstance(answer, Bgak) and answer.flags == 0
    assert data and script.connection.proven
