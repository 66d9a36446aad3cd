"""Whole streams over a link in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.path import Flow, Path
from bentpipe_reference.tcp.states import State

UNIT = 472
RATE = 600e3
RTT = 0.5


def link(forward: dict[str, Any], back: dict[str, Any]) -> LinkProfile:
    return LinkProfile(
        id="satellite",
        title="",
        source="ZB03",
        forward=Direction(rate_bit_s=RATE, delay_s=RTT / 2, queue_packets=10_000, **forward),
        return_=Direction(delay_s=RTT / 2, **back),
    )


def transfer(
    segments: int,
    forward: dict[str, Any] | None = None,
    back: dict[str, Any] | None = None,
    seed: int = 1,
    **config: Any,
) -> tuple[Flow, Path]:
    """A stream of segments of 512 octets in IP; it has to arrive, and the connection to close."""
    config.setdefault("receive_buffer", 4 * int(RATE * RTT / 8))
    path = Path(link(forward or {}, back or {}), seed)
    flow = path.flow(segments * UNIT, Setup(RwbpConfig(mss=UNIT, send_buffer=100_000, **config)))
    flow.start()
    path.simulation.run_while(flow.is_pending, 3600.0)
    assert (flow.failure, flow.read, flow.intact) == (None, segments * UNIT, True)
    path.simulation.run_until(path.simulation.now + 200.0)
    assert (flow.sending.state, flow.receiving.state) == (State.CLOSED, State.CLOSED)
    return flow, path


def sender(flow: Flow) -> RwbpSender:
    assert isinstance(flow.sending.sender, RwbpSender)
    return flow.sending.sender


def test_stream_on_a_clean_link_fills_it_and_is_sent_once() -> None:
    flow, _ = transfer(2000)
    assert sender(flow).counters.retransmissions == 0
    assert flow.finished is not None
    assert flow.finished < 2000 * 8 * 512 / RATE + 2 * RTT


@pytest.mark.parametrize("interval", [1, 2, 8, 64])
def test_return_channel_carries_one_acknowledgment_for_n_segments(interval: int) -> None:
    """ZB03 figure 4; what the timer sends with the largest N is one for 15 segments."""
    _, path = transfer(2000, interval=interval)
    per = path.forward.counters.offered / path.return_.counters.offered
    assert per == pytest.approx(min(interval, 15), rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_losses_on_a_link_that_keeps_the_order_are_never_false(seed: int) -> None:
    """ZB03 III.B: each loss is repaired once, as long as no acknowledgment is lost."""
    flow, path = transfer(3000, {"ber": 1e-5}, seed=seed)
    sending = sender(flow)
    assert (sending.false_losses, sending.threshold) == (0, 1)
    lost = path.forward.counters.dropped_by_bit_error
    spare = 2 * sending.counters.timeouts
    assert lost <= sending.counters.retransmissions + 1 <= lost + spare + 1


@pytest.mark.parametrize("interval", [1, 3, 8, 64])
@pytest.mark.parametrize("seed", range(3))
def test_stream_over_a_link_that_loses_a_third_both_ways_arrives(interval: int, seed: int) -> None:
    transfer(
        300, {"loss_probability": 0.33}, {"loss_probability": 0.33}, seed=seed, interval=interval
    )


@pytest.mark.parametrize("seed", range(3))
def test_stream_over_a_link_that_changes_the_order_and_duplicates_arrives(seed: int) -> None:
    faults = {
        "reorder_probability": 0.05,
        "reorder_delay_s": 0.05,
        "duplicate_probability": 0.05,
        "loss_probability": 0.02,
    }
    flow, _ = transfer(1500, faults, faults, seed=seed)
    assert sender(flow).threshold == 3


def test_smallest_window_of_four_units_carries_a_stream() -> None:
    transfer(100, {"loss_probability": 0.1}, receive_buffer=4 * UNIT)


def test_plain_tcp_carries_a_stream_where_rwbp_is_not_offered() -> None:
    flow, _ = transfer(500, {"loss_probability": 0.01}, rwbp=False)
    assert not isinstance(flow.sending.sender, RwbpSender)
