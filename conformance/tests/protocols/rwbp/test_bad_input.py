"""What a peer or a gateway may do wrong, each with the cases that try it, against the reference.

The reaction is that of the text; there is no hang, and no octet is wrong, lost or kept for ever.
"""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.case import load_cases
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.stage import stage
from bentpipe_reference.common.subject import subject_of

LONGEST_S = 400.0
"""Seconds of the link after which every one of these cases is over."""

BAD_INPUT = {
    "a plain TCP peer": (
        "negotiation/plain", "negotiation/plain-without-sack", "negotiation/plain-loss",
        "negotiation/plain-echo", "negotiation/plain-upload", "calling/called-without-rwbp",
    ),
    "N = 0": ("negotiation/interval-0", "calling/called-interval-0"),
    "a unit that is none": ("negotiation/unit-0", "negotiation/unit-47", "calling/called-unit-47"),
    "window 65,535 with segments of 64 KB": (
        "window/product-above-the-largest-window", "negotiation/largest-unit",
    ),
    "block lists out of order or overlapping": (
        "error-control/blocks-in-any-order-and-overlapping", "error-control/untrue-blocks",
        "security/blocks-of-what-was-never-sent",
    ),
    "corrupted options": (
        "negotiation/length-9", "negotiation/after-unknown-options", "calling/called-length-11",
        "format/lengths-that-are-wrong", "format/malformed-syns", "format/malformed-data",
        "format/malformed-acknowledgments", "format/malformed-ends",
    ),
    "a gateway whose credit messages stop": (
        "gateway/frames-stop", "gateway/gateway-is-away-for-long",
        "gateway/peers-go-on-while-the-gateway-is-silent",
    ),
    "frames that no gateway sends": ("gateway/frames-that-are-not-valid",),
    "a peer that reneges": ("error-control/reneging-receiver",),
    "a window that shrinks": ("window/fields-that-name-lower-edges",),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted({case for cases in BAD_INPUT.values() for case in cases}))
def test_bad_input_meets_the_documented_reaction(case: str) -> None:
    lane, settings = stage(subject_of("rwbp"), "rwbp1", "", 1)
    result = run_case(load_cases("rwbp")[f"rwbp/{case}"], lane, settings)
    assert result.verdict is Verdict.PASS, result.reason
    assert result.link_seconds < LONGEST_S
