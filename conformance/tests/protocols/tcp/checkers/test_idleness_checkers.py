"""The checkers of idle connections on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.receipt import CLAIMS, Receipt
from bentpipe_conformance.protocols.tcp.story import FAIL, NOTHING


@pytest.mark.parametrize(("window", "expected"), [(0, FAIL), (200, NOTHING)])
def test_edge_that_had_moved_back_when_the_connection_has_long_been_idle(
    window: int, expected: set[Verdict]
) -> None:
    """Where it comes forward again the user has read; an edge that stays is a keep-alive."""
    receipt = Receipt(window=300).data(0, 100).reply(100, window=200)
    receipt.data(200, 250, after=0.1).reply(100, window=0).reply(100, window=window, after=11)
    assert receipt.verdicts("SNR-CON-022") == expected


@pytest.mark.parametrize(
    ("window", "times", "expected"), [(65535, 1, NOTHING), (65535, 2, FAIL), (65534, 1, FAIL)]
)
def test_field_that_can_say_no_more_when_the_connection_has_long_been_idle(
    window: int, times: int, expected: set[Verdict]
) -> None:
    """Its user may have read what has arrived, once (encounter 800135)."""
    receipt = Receipt(window=window).data(0, 100).reply(100)
    for _ in range(times):
        receipt.reply(100, after=11)
    assert receipt.verdicts("SNR-CON-022") == expected


def test_keep_alive_that_the_user_asked_for_or_may_have() -> None:
    receipt = Receipt().data(0, 100).reply(100).reply(100, after=30)
    assert receipt.verdicts("SNR-CON-022") == FAIL
    asked = {**CLAIMS, "keep_alive": True}
    assert receipt.verdicts("SNR-CON-022", claims=asked) == NOTHING
    assert receipt.verdicts("SNR-CON-022", claims={}) == NOTHING
