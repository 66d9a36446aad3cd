"""Conversations in which campaigns accused the reference wrongly, each made small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from bentpipe_fuzz.campaign.script import Impairment, Step


def step(verb: str, **given: Any) -> Step:
    return Step(verb, given)


SCRIPTS = [
    (
        "a SYN-ACK long after the attempt may have been given up",
        "SNR-CON-025",
        [step("ring"), step("wait", seconds=4000.0), step("answer"), step("segment")],
    ),
    (
        "the SYN-ACK of SYNs that crossed, whose SYN had been acknowledged",
        "SNR-CON-030",
        [step("ring", role="receive"), step("answer", flags="S"), step("wait", seconds=0.05),
         step("answer"), step("wait", seconds=5.0)],
    ),
    (
        "SYNs that crossed, and then nothing that would have to be answered",
        "SNR-CON-031",
        [step("ring", role="receive"), step("answer", flags="S"), step("wait", seconds=0.05),
         step("answer"), step("segment"), step("wait", seconds=5.0)],
    ),
    (
        "a window that opens by less than a segment, of whose size only probes were seen",
        "SNR-WIN-007",
        [step("open", service="echo", window_scale=None), step("fill"), step("offer", window=100),
         step("receive", seconds=0.05), step("settle")],
    ),
    (
        "data in the place of a FIN that has been acknowledged is no duplicate of data",
        "SNR-RCV-014",
        [step("open", service="echo", window_scale=None), step("fill", fin=True),
         step("segment", seq=("next", -1), octets=1), step("receive")],
    ),
    (
        "a small window long after the FIN of a service that sends nothing",
        "SNR-WIN-013",
        [step("open", service="discard"), step("close"), step("receive"), step("offer", window=182),
         step("wait", seconds=100.0), step("offer")],
    ),
    (
        "a window that closes while a segment waits for room",
        "SNR-WIN-004",
        [step("open"), step("offer", window=133), step("receive", seconds=70.0), step("offer")],
    ),
    (
        "a FIN behind data that a window of less than a segment holds back",
        "SNR-CON-035",
        [step("open", service="echo"), step("fill", fin=True), step("offer", window=182)],
    ),
    (
        "data before the handshake is over, with an acknowledgment that it is refused for",
        "SNR-RCV-001",
        [step("knock", service="echo"),
         step("segment", seq=("next", 10), ack=("delivered", -2), octets=1),
         step("wait", seconds=0.6), step("segment", octets=100), step("wait")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("requirement", "steps"), [row[1:] for row in SCRIPTS], ids=[row[0] for row in SCRIPTS]
)
def test_reference_is_not_accused(
    requirement: str, steps: list[Step], accused: Callable[[str, str, Sequence[Step]], bool]
) -> None:
    assert not accused("snr", requirement, steps)


def test_listening_segment_without_ack_that_comes_twice(accused: Callable[..., bool]) -> None:
    twice = Impairment("to-iut", "copy", value=1.5)
    stray = step("stray", flags="FPU", octets=100, port=9)
    assert not accused("snr", "SNR-CON-003", [stray, step("wait", seconds=3.0)], [twice])
