"""The checkers of TOY, each asked about single situations, both ways."""

from __future__ import annotations

from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.toy.codec import ACK, CLOSE, DATA, OPEN
from bentpipe_conformance.protocols.toy.story import ToyStory

PASS, FAIL = {Verdict.PASS}, {Verdict.FAIL}


def opened() -> ToyStory:
    return ToyStory().opened()


def test_open_answered_late_fails() -> None:
    assert opened().verdicts("TOY-CON-001") == PASS
    assert ToyStory().tester(OPEN).tester(OPEN, after=1.0).verdicts("TOY-CON-001") == FAIL


def test_packet_before_the_acknowledgment_fails() -> None:
    acknowledged = opened().iut(DATA).tester(ACK, after=0.6).iut(CLOSE, 1)
    assert acknowledged.verdicts("TOY-DAT-001") == PASS
    assert opened().iut(DATA).iut(CLOSE, 1).verdicts("TOY-DAT-001") == FAIL


def test_duplicate_without_acknowledgment_fails() -> None:
    once = opened().tester(DATA).iut(ACK)
    assert once.verdicts("TOY-DAT-002") == PASS
    assert once.tester(DATA, after=1.0).tester(OPEN, after=1.0).verdicts("TOY-DAT-002") >= FAIL


def test_retransmission_at_another_time_fails() -> None:
    assert opened().iut(DATA).iut(DATA, after=2.0).verdicts("TOY-TIM-001") == PASS
    assert opened().iut(DATA).iut(DATA, after=1.0).verdicts("TOY-TIM-001") == FAIL
    assert opened().iut(DATA).tester(OPEN, after=3.0).verdicts("TOY-TIM-001") == FAIL
