"""Packets that nothing can dissect are shown as they are."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.report.page import dissected


@pytest.mark.parametrize("suite", sorted(load_suites()))
@pytest.mark.parametrize("octets", [b"", b"E", b"E\0\0", b"\x45" + bytes(3), b"\xff" * 60])
def test_packet_that_is_none_is_shown(suite: str, octets: bytes) -> None:
    shown = dissected(load_suites()[suite], octets)
    assert isinstance(shown, str)
    if octets == b"E\0\0":
        assert "45 00 00" in shown
