"""The tester's end of a connection."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from bentpipe_conformance.protocols.tcp.codec import ACK, SYN, Tcp
from bentpipe_conformance.protocols.tcp.connection import Connection


def test_timestamp_clock_at_the_wrap_leaves_zero_out() -> None:
    clock = SimpleNamespace(at=0.0)
    peer: Any = SimpleNamespace(
        now=lambda: clock.at, random=Random(1), address="10.0.0.1", iut_address="10.0.0.2"
    )
    connection = Connection(peer, 9, 40001, timestamps=True, tsval=(1 << 32) - 2)
    ticks = []
    for clock.at in (0.0, 0.0015, 0.0025, 0.0035, 0.0045):
        ticks.append(connection.timestamp())
    assert ticks == [(1 << 32) - 2, (1 << 32) - 1, 1, 1, 2]


@pytest.mark.parametrize(("mss", "expected"), [(536, 536), (None, 536), (9000, 1460)])
def test_segment_before_any_data_is_no_longer_than_the_syn_ack_permits(
    mss: int | None, expected: int
) -> None:
    peer: Any = SimpleNamespace(
        now=lambda: 0.0, random=Random(1), address="10.0.0.1", iut_address="10.0.0.2"
    )
    connection = Connection(peer, 9, 40001)
    answer = Tcp("10.0.0.2", "10.0.0.1", 9, 40001, 7, 0, SYN | ACK, 65535, b"", mss=mss)
    connection.accept(0.6, answer)
    assert connection.segment == expected
