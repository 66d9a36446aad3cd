"""The nonsense probe, tried with interviews that fail in every way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from bentpipe_conformance.engine.execution import RunSettings
from bentpipe_conformance.engine.peer import UNUSED_PORT, NotReached
from bentpipe_conformance.engine.probe import ECHO_TEXT, Probe
from bentpipe_conformance.engine.suite import Driver, Interpreter


@dataclass
class Answers:
    """An interview, a peer and a lane in one; the ``failing`` question has no answer."""

    failing: str = ""
    returned: bytes = ECHO_TEXT
    fault: str = ""
    died: str | None = None
    finished: int = 0

    def _answer(self, question: str) -> None:
        if question == self.failing:
            raise NotReached("5.0 s passed without an answer")

    def open(self, service: str | int) -> str:
        self._answer(f"open {service}")
        if service == UNUSED_PORT and self.failing != "refusal":
            raise NotReached("refused")
        return str(service)

    def observed(self, connection: str) -> dict[str, Any]:
        assert connection == "echo"
        return {"sack": True, "sack_sender": True, "timestamps": False}

    def echo(self, connection: str) -> bytes:
        self._answer("echo")
        return self.returned

    def generate(self, connection: str) -> str:
        self._answer("generate")
        return self.fault

    def take(self, connection: str) -> None:
        self._answer("take")

    def begin(self) -> str:
        return "10.78.0.1"

    def wait(self, seconds: float) -> None:
        raise AssertionError

    def finish(self) -> None:
        self.finished += 1

    def end(self) -> list[Any]:
        return []

    def iut_alive(self) -> str | None:
        return self.died


def probe(answers: Answers, **ics: bool) -> Probe:
    driver = Driver(lambda *_: answers, lambda _peer: answers, roles=("sack_sender",))
    found = driver.probe(answers, RunSettings("rfc", ics, 0.6))  # type: ignore[arg-type]
    assert answers.finished == 1
    return found


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (Answers("open echo"), "the echo service cannot be opened: 5.0 s passed"),
        (Answers("echo"), "the echo service returned nothing: 5.0 s passed"),
        (Answers(returned=b"?"), "the echo service returned other octets than were sent"),
        (Answers("open chargen"), "the chargen service cannot be opened: 5.0 s passed"),
        (Answers("generate"), "the chargen service sends no data: 5.0 s passed"),
        (Answers(fault="the octets are wrong"), "the octets are wrong"),
        (Answers("take"), "the discard service takes no data: 5.0 s passed"),
        (Answers("refusal"), "port 47, which nothing serves, accepted a connection"),
        (Answers("echo", died="signal 11"), "an answer; the implementation ended: signal 11"),
    ],
)
def test_wrong_answer_is_the_problem(answers: Answers, problem: str) -> None:
    assert problem in probe(answers).problem


def test_statement_is_compared_with_the_handshake() -> None:
    found = probe(Answers(), sack=False, timestamps=True)
    assert not found.problem
    assert found.disagreements == (
        "the conformance statement says sack = false, the handshake says true",
        "the conformance statement says timestamps = true, the handshake says false",
    )


def test_protocol_without_negotiation_refuses_and_observes_nothing() -> None:
    interpreter = Interpreter(dissect=bytes, trusting=bytes, read_flows=list)  # type: ignore[arg-type]
    assert interpreter.prepare("flow") is None
    assert interpreter.refused("flow", None) is None  # type: ignore[arg-type]
