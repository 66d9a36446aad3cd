"""What an implementation may echo, where many segments arrive within a reaction time."""

from __future__ import annotations

from time import process_time

import pytest
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.replay.flow import read_flows
from bentpipe_conformance.protocols.tcp.suite import SUITE


def _burst(segments: int) -> Receipt:
    """Bare segments above a segment that is not acknowledged yet, each with a newer timestamp."""
    receipt = Receipt(timestamps=True).data(0, 100, after=0.1, tsval=1100)
    for index in range(segments):
        receipt.data(100, 100, tsval=1101 + index)
    return receipt.reply(100, tsval=7100, tsecr=1100, after=0.001)


def test_every_value_of_a_burst_may_be_echoed() -> None:
    reply = read_flows(read_trace(_burst(200).packets, suite=SUITE))[0].replies[-1]
    assert set(reply.echoes) >= set(range(1101, 1301))


@pytest.mark.long
def test_bursts_whose_every_segment_is_answered_say_nothing_of_echoes_in_the_end() -> None:
    receipt, count = Receipt(timestamps=True), 1500
    for index in range(count):
        receipt.data(0, 100, after=1e-6, tsval=1101 + index)
        receipt.reply(0, tsval=7100, tsecr=1100, after=1e-6)
    replies = read_flows(read_trace(receipt.packets, suite=SUITE))[0].replies
    assert set(replies[99].echoes) >= set(range(1101, 1201))
    assert not replies[-1].echoes
    # What is computed and kept is no more than so many for each segment.
    assert sum(len(reply.echoes) for reply in replies) < 100 * count


@pytest.mark.long
def test_burst_of_a_hundred_times_the_size_is_replayed_in_time() -> None:
    trace = read_trace(_burst(20_000).packets, suite=SUITE)
    started = process_time()
    reply = read_flows(trace)[0].replies[-1]
    assert len(reply.echoes) >= 20_000
    assert process_time() - started < 10
