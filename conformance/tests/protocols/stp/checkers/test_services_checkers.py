"""The checker of the standard services (STP-DT-030)."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.probe import chargen
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import FIN, SD, SDP, STAT
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, DISCARD, ECHO
from bentpipe_conformance.protocols.stp.story import FAIL, NOTHING, PASS, StpStory

SERVICES = "STP-DT-030"


def later(story: StpStory, service: int, flags: int = 0) -> set[Verdict]:
    """The verdicts when the capture has gone on."""
    return story.tester(SD, 0, flags=flags, after=9.0).of_service(service).verdicts(SERVICES)


@pytest.mark.parametrize(("octets", "verdict"), [(chargen(0, 300), PASS), (bytes(300), FAIL)])
def test_chargen_sends_its_pattern_and_another_one(octets: bytes, verdict: set[Verdict]) -> None:
    story = StpStory(credit=8).opened().iut(SDP, 0, data=octets)
    assert story.of_service(CHARGEN).verdicts(SERVICES) == verdict


@pytest.mark.parametrize(
    ("service", "verdict"), [(CHARGEN, FAIL), (ECHO, NOTHING), (DISCARD, NOTHING)]
)
def test_service_that_never_sends(service: int, verdict: set[Verdict]) -> None:
    assert later(StpStory(credit=8).opened(), service) == verdict


@pytest.mark.parametrize(("n_mr", "verdict"), [(5, FAIL), (4, NOTHING)])
def test_echo_keeps_what_it_received_with_and_without_credit(
    n_mr: int, verdict: set[Verdict]
) -> None:
    story = StpStory(credit=4).opened().iut(STAT, 0, n_mr=64)
    for number in range(4):
        story.tester(SD, number, data=b"x").iut(SDP, number, data=b"x", n_ps=number + 1)
    story.tester(STAT, 4, n_ps=4, n_mr=n_mr, after=0.6).tester(SD, 4, data=b"y", after=0.1)
    assert later(story, ECHO) == verdict


@pytest.mark.parametrize("service", [CHARGEN, ECHO, DISCARD])
def test_service_that_does_not_close(service: int) -> None:
    story = StpStory(credit=8).opened().iut(SDP, 0, data=chargen(0, 9))
    story.tester(STAT, 1, after=0.6).tester(SD, 0, flags=FIN, after=0.1)
    assert Verdict.FAIL in later(story, service, FIN)


def closes(returned: bytes, *order: int) -> StpStory:
    """An echo that closes with so many octets returned of three SDs, the last with FIN."""
    story = StpStory(credit=8).opened()
    for number in order:
        story.tester(SD, number, data=b"x", flags=FIN if number == 2 else 0, after=0.01)
    return story.iut(SDP, 0, data=returned, flags=FIN, after=0.01).of_service(ECHO)


@pytest.mark.parametrize(
    ("returned", "order", "rule"),
    [
        (b"x", (0, 1, 2), SERVICES),
        (b"", (0, 1, 2), SERVICES),
        (b"", (0, 2, 1), SERVICES),
        (b"xx", (0, 1, 2), "STP-CC-004"),  # what is lacking came with the FIN
        (b"x", (0, 2, 1), "STP-CC-004"),  # and what came after it
    ],
)
def test_echo_that_closes_before_it_has_returned_all(
    returned: bytes, order: tuple[int, ...], rule: str
) -> None:
    other = {SERVICES, "STP-CC-004"} - {rule}
    assert closes(returned, *order).verdicts(rule) == FAIL
    assert closes(returned, *order).verdicts(*other) == NOTHING
    assert closes(returned, *order).verdicts("STP-DT-012") == (
        NOTHING if rule == SERVICES else FAIL
    )


def test_echo_that_closes_with_everything_returned() -> None:
    assert closes(b"xxx", 0, 2, 1).verdicts(SERVICES) == PASS
