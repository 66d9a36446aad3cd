"""What is known of a stack and reviewed is told as known, and nothing else."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.story import CLAIMS, RTT, Story, flight
from bentpipe_fuzz.campaign.known import known_deviation

ERROR_S = 1e-6


def _known(iut: str, profile: str, story: Story, requirement: str) -> str:
    found = next(f for f in story.findings(requirement) if f.verdict is Verdict.FAIL)
    return known_deviation(iut, profile, found, story.packets, ERROR_S, CLAIMS)


@pytest.mark.parametrize("iut", ["linux", "linux-bbr"])
def test_short_timeout_of_linux_is_known(iut: str) -> None:
    story = flight().send(1, after=0.3)
    assert _known(iut, "rfc", story, "SNR-RTO-002").startswith("TCP_RTO_MIN is 200 ms")


def test_timeout_shorter_than_what_was_reviewed_is_news() -> None:
    story = Story(sack=False).send(0).ack(1, after=RTT).send(1).send(1, after=0.1)
    assert not _known("linux", "rfc", story, "SNR-RTO-002")


def test_other_stacks_and_profiles_have_other_deviations() -> None:
    story = flight().send(1, after=0.3)
    assert not _known("reference", "rfc", story, "SNR-RTO-002")
    assert not _known("linux", "hk99", story, "SNR-RTO-002")
