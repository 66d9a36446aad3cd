"""Congestion window and pacing: scripts against one endpoint and its parts."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, ClassVar

import pytest
from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import Sd, Sdp
from bentpipe_reference.stp.parts import Parts
from bentpipe_reference.stp.transfer import stp_transfer

ISS = 5000


def data(packets: list[Any]) -> list[int]:
    return [packet.n_s - ISS for packet in packets if isinstance(packet, Sd | Sdp)]


def with_window(make: Any, window: int, count: int) -> Any:
    """Everything written, the window in SDs of 1000 octets, no round-trip time known."""
    script = make()
    connection = script.ready()
    connection.outgoing.rtt.srtt = None
    connection.outgoing.congestion.cwnd = float(window * 1000)
    connection.write(bytes(1000 * count))
    return script


def test_initial_window_is_four(stp: Any) -> None:
    script = stp()
    script.ready().outgoing.rtt.srtt = None
    script.connection.write(bytes(20_000))
    assert data(script.flush()) == [0, 1, 2, 3]


def test_window_bounds_what_is_in_flight(stp: Any) -> None:
    script = with_window(stp, 6, 30)
    assert data(script.flush()) == list(range(6))
    script.connection.outgoing.congestion.ssthresh = 6000.0
    script.run(until=script.now + 1.1)
    answers = script.arrive(script.stat(2, 1))
    assert len(data(answers)) <= 2 + 1


def test_wide_window_lets_a_third_more_fly_once_a_stat_has_come(stp: Any) -> None:
    script = with_window(stp, 12, 60)
    assert len(data(script.flush())) == 12
    script.run(until=script.now + 1.1)
    script.connection.outgoing.congestion.ssthresh = 12_000.0
    script.connection.outgoing.rtt.srtt = 0.01
    sender = script.connection.outgoing.sender
    script.arrive(script.stat(2, sender.vt_ps))
    script.run(until=script.now + 0.2)
    assert sender.flight == 16_000


def test_stat_that_shows_no_arrival_widens_nothing(stp: Any) -> None:
    script = with_window(stp, 12, 60)
    script.flush()
    script.run(until=script.now + 1.1)
    congestion, sender = script.connection.outgoing.congestion, script.connection.outgoing.sender
    script.arrive(script.stat(0, sender.vt_ps))
    assert congestion.flight_limit() == congestion.cwnd
    script.arrive(script.stat(1, sender.vt_ps))
    assert congestion.flight_limit() > congestion.cwnd


def test_small_window_is_all_that_flies(stp: Any) -> None:
    congestion = stp().ready().outgoing.congestion
    congestion.reported = True
    congestion.learn(1000)
    congestion.cwnd = 9999.0
    assert congestion.flight_limit() == 9999
    congestion.cwnd = 10_000.0
    assert congestion.flight_limit() == pytest.approx(13_333, abs=1)


def test_loss_halves_no_more_than_the_window() -> None:
    congestion = Congestion(StpConfig())
    congestion.learn(1000)
    congestion.cwnd = 30_000.0
    congestion.on_loss(40_000, 1)
    assert congestion.cwnd == 15_000
    congestion.on_second_silence(8000, 2)
    assert (congestion.cwnd, congestion.ssthresh) == (1000, 4000)


def test_slow_start_grows_by_what_has_arrived() -> None:
    congestion = Congestion(StpConfig())
    congestion.learn(1000)
    congestion.on_arrived(2500)
    assert congestion.cwnd == 6500


def test_slow_start_ends_at_ssthresh_and_the_rest_counts_for_avoidance() -> None:
    congestion = Congestion(StpConfig())
    congestion.learn(1000)
    congestion.ssthresh = 5000
    congestion.on_arrived(2000)
    assert congestion.cwnd == 5000
    congestion.on_arrived(3999)
    assert congestion.cwnd == 5000
    congestion.on_arrived(1)
    assert congestion.cwnd == 6000


def test_loss_halves_once_for_all_that_was_sent_before(stp: Any) -> None:
    script = with_window(stp, 20, 100)
    assert len(data(script.flush())) == 20
    congestion = script.connection.outgoing.congestion
    first = script.arrive(script.ustat(2, 2, 3))
    assert (congestion.cwnd, congestion.ssthresh) == (10_000, 10_000)
    assert data(first) == [2], "the first retransmission does not wait for the window"
    assert data(script.arrive(script.ustat(2, 5, 7))) == []
    assert congestion.cwnd == 10_000


def test_loss_of_a_later_transmission_halves_again(stp: Any) -> None:
    script = with_window(stp, 20, 100)
    script.flush()
    sender, congestion = script.connection.outgoing.sender, script.connection.outgoing.congestion
    script.arrive(script.ustat(2, 2, 3))
    script.run(until=script.now + 1.1)
    assert sender.vt_ps >= 1
    script.arrive(script.stat(2, sender.vt_ps, [2, 3, 20]))
    assert congestion.cwnd == 5000, "18 SDs were in flight, of which the window's ten count"


def test_unused_window_does_not_grow(stp: Any) -> None:
    script = stp()
    congestion = script.ready().outgoing.congestion
    for at in range(8):
        script.connection.write(b"x" * 1000)
        script.flush()
        script.arrive(script.stat(at + 1, at + 1))
    assert congestion.cwnd == congestion.initial_window()


class Watched(Outgoing):
    """Notes when SDs leave, the spacing then, and the octets beyond the flight limit."""

    left: ClassVar[deque[tuple[float, int, float, float]]] = deque()

    def transmit(self, now: float, put: Any, affords: Any) -> None:
        before = self.sender.serial
        cwnd, srtt = self.congestion.cwnd, self.rtt.srtt
        gain = 2.0 if self.congestion.in_slow_start else 1.25
        super().transmit(now, put, affords)
        gap = 0.0 if srtt is None else srtt * self.congestion.smss / (gain * cwnd)
        if self.sender.serial > before:
            over = self.sender.flight - self.congestion.flight_limit()
            self.left.append((now, self.sender.serial - before, gap, over))


def noted(**direction: Any) -> list[tuple[float, int, float, float]]:
    Watched.left = deque()
    link = Direction(1_300_000, 0.3, 50, **direction)
    profile = LinkProfile("watched", "", "", link, link)
    parts = Parts(outgoing=Watched)
    result = stp_transfer(profile, StpConfig(), 1_500_000, parts=parts, seed=3)
    assert result.intact
    return list(Watched.left)


def test_sds_are_spread_at_no_less_than_the_spacing() -> None:
    notes = noted()
    for at, (start, _, gap, _) in enumerate(notes):
        # Over any quarter of a second: what the smallest spacing in it permits, and a burst of 4.
        inside = [note for note in notes[at:] if note[0] <= start + 0.25]
        least = min(note[2] for note in inside)
        if gap and least:
            assert sum(note[1] for note in inside) <= math.ceil(0.25 / least) + 4


def test_flight_limit_is_never_exceeded_but_by_the_first_retransmission() -> None:
    over = [note for note in noted(loss_probability=0.01) if note[3] > 0.5]
    assert all(note[1] == 1 for note in over)


def test_pause_of_a_narrow_window_gives_no_right_to_exceed_the_maximum_rate(stp: Any) -> None:
    script = with_window(stp, 1, 60)
    outgoing = script.connection.outgoing
    outgoing.rtt.srtt = 0.5
    pacer = Pacer(StpConfig(max_rate=800_000), outgoing.congestion, outgoing.rtt)
    times = []
    for tick in range(400):
        now = 10 + tick / 1000
        outgoing.congestion.cwnd = 1000.0 if tick < 5 else 400_000.0
        while pacer.ready(now) and (tick >= 5 or len(times) < 2):
            pacer.sent(1000)
            times.append(now)
    busiest = max(sum(start <= time < start + 0.1 for time in times) for start in times)
    assert busiest * 8 * 1048 <= 80_000 + 4 * 8 * 1048


@pytest.mark.parametrize("rate", [200_000, 1_000_000, 20_000_000])
def test_maximum_rate_holds_over_any_tenth_of_a_second(rate: int) -> None:
    times: list[tuple[float, int]] = []

    class Metered(Outgoing):
        def transmit(self, now: float, put: Any, affords: Any) -> None:
            def meter(packet: Any) -> None:
                if isinstance(packet, Sd | Sdp):
                    times.append((now, len(packet.data) + 20 + 28))
                put(packet)

            super().transmit(now, meter, affords)

    fast = Direction(None, 0.01, 1000, loss_probability=0.01)
    profile = LinkProfile("fast", "", "", fast, fast)
    config, parts = StpConfig(max_rate=rate), Parts(outgoing=Metered)
    assert stp_transfer(profile, config, 300_000, parts=parts, seed=2).intact
    assert len(times) > 200
    for at, (start, _) in enumerate(times):
        octets = sum(size for time, size in times[at : at + 300] if time < start + 0.1)
        assert 8 * octets <= 0.1 * rate + 4 * 8 * 1500
