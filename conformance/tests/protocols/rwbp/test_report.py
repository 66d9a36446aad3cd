"""What the report says of packets that belong to no connection."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.trace import Packet
from bentpipe_conformance.protocols.rwbp.credit import build_frame
from bentpipe_conformance.protocols.rwbp.report import REPORTER


@pytest.mark.parametrize(("first", "notes"), [(0x11, ()), (0x21, ("not valid: its version is 2",))])
def test_credit_frame_is_told_in_words(first: int, notes: tuple[str, ...]) -> None:
    frame = build_frame("10.77.0.3", 7, 20, 83, first=first)
    told = REPORTER.plain(Packet(1, 0.0, "iut", False, None, frame))
    assert told == ("credit · epoch 7 · 20 arrived · limit 83", notes)
