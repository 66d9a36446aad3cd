"""The sizes of Web replies beside HK99's Table 2, whose analysis columns depend on them alone."""

from __future__ import annotations

from statistics import fmean, median

import pytest
from bentpipe_experiments.web_traffic import packet_octets, reply_octets

COUNT = 20_001
SIZES = [reply_octets((i + 0.5) / COUNT) for i in range(COUNT)]

ROWS = {  # initial window in segments of 1500 and 500 octets, handshake, delayed acknowledgment
    "TCP": ((1, 1), 1, True),
    "T/TCP": ((1, 1), 0, False),
    "4KSS": ((3, 4), 1, False),
    "both": ((3, 4), 0, False),
}
PRINTED = {
    (600, 1500): [(1.2, 1.9, 1.9), (0.6, 1.2, 1.2), (1.2, 1.2, 1.4), (0.6, 0.6, 0.8)],
    (600, 500): [(1.2, 2.5, 2.5), (0.6, 1.8, 1.7), (1.2, 1.8, 1.7), (0.6, 1.2, 1.1)],
    (80, 1500): [(0.16, 0.34, 0.31), (0.08, 0.16, 0.17), (0.16, 0.16, 0.18), (0.08, 0.08, 0.1)],
    (80, 500): [(0.16, 0.42, 0.42), (0.08, 0.24, 0.25), (0.16, 0.24, 0.23), (0.08, 0.16, 0.15)],
}
"""Minimum, median and mean latency in seconds, by round trip in milliseconds and segment."""


def latency(size: int, segment: int, rtt_ms: int, row: str) -> float:
    """HK99 section 5.4: round trips of a window that doubles; 0.1 s for a lone first segment."""
    windows, handshake, delayed = ROWS[row]
    segments = -(-size // segment)
    window, sent, rounds = windows[segment == 500], 0, 0
    while sent < segments:
        sent, window, rounds = sent + window, 2 * window, rounds + 1
    return rtt_ms / 1000 * (rounds + handshake) + (0.1 if delayed and segments > 1 else 0)


def compared(rtt_ms: int, segment: int) -> list[tuple[float, float]]:
    """Ours, rounded as the paper rounds, and the paper's."""
    digits = 1 if rtt_ms == 600 else 2
    pairs = []
    for row, printed in zip(ROWS, PRINTED[rtt_ms, segment], strict=True):
        found = [latency(size, segment, rtt_ms, row) for size in SIZES]
        ours = [round(value, digits) for value in (min(found), median(found), fmean(found))]
        pairs += zip(ours, printed, strict=True)
    return pairs


def test_sizes_explain_nearly_all_of_the_printed_latencies() -> None:
    pairs = [pair for key in PRINTED for pair in compared(*key)]
    assert len(pairs) == 48
    assert sum(ours == pytest.approx(printed) for ours, printed in pairs) == 44


@pytest.mark.parametrize(("rtt_ms", "segment"), PRINTED)
def test_no_latency_is_off_by_more_than_a_third_of_a_round_trip(rtt_ms: int, segment: int) -> None:
    for ours, printed in compared(rtt_ms, segment):
        assert abs(ours - printed) <= rtt_ms / 3000


def test_sizes_lie_between_a_line_and_a_hundred_segments() -> None:
    assert reply_octets(0.0) == min(SIZES) == 60
    assert 100_000 < max(SIZES) <= 146_000
    assert 2000 < median(SIZES) <= 3500


def test_packets_carry_the_reply_and_their_headers() -> None:
    assert packet_octets(1460) == 48 + 1460 + 3 * 40
    assert packet_octets(1461) == 48 + 1461 + 4 * 40
