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


def test_loss_halves_the_window_whatever_is_in_flight(stp: Any) -> None:
    script = with_window(stp, 30, 8)
    script.flush()
    script.arrive(script.ustat(0, 0, 1))
    congestion = script.connection.outgoing.congestion
    assert (congestion.cwnd, congestion.ssthresh) == (15_000, 15_000)


def test_loss_leaves_two_segments() -> None:
    congestion = Congestion(StpConfig())
    congestion.learn(1000)
    congestion.cwnd = 3000.0
    congestion.on_loss(1)
    assert congestion.cwnd == 2000


def test_second_silence_leaves_one_segment() -> None:
    congestion = Congestion(StpConfig())
    congestion.learn(1000)
    congestion.cwnd = 15_000.0
    congestion.on_second_silence(2)
    assert (congestion.cwnd, congestion.ssthresh) == (1000, 7500)


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
    assert congestion.cwnd == 7000, "two segments for a full window"


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
    assert congestion.cwnd == 5000


def test_unused_window_does_not_grow(stp: Any) -> None:
    script = stp()
    congestion = script.ready().outgoing.congestion
    for at in range(8):
        script.connection.write(b"x" * 1000)
        script.flush()
        script.arrive(script.stat(at + 1, at + 1))
    assert congestion.cwnd == congestion.initial_window()


def test_half_used_window_grows(stp: Any) -> None:
    script = with_window(stp, 4, 2)
    script.flush()
    script.arrive(script.stat(2, 1))
    assert script.connection.outgoing.congestion.cwnd == 6000


class Watched(Outgoing):
    """Notes when SDs leave, the rate and the largest window then, and octets beyond the window."""

    left: ClassVar[deque[tuple[float, int, float, float, float]]] = deque()

    def transmit(self, now: float, put: Any) -> None:
        before, octets = self.sender.serial, [0]

        def count(packet: Any) -> None:
            if isinstance(packet, Sd | Sdp):
                octets[0] += len(packet.data)
            put(packet)

        rate = self.pacer.window_rate()
        super().transmit(now, count)
        if self.sender.serial > before:
            over = self.sender.flight - self.congestion.cwnd
            self.left.append((now, octets[0], rate, over, self.congestion.smss))


def noted(**direction: Any) -> list[tuple[float, int, float, float, float]]:
    Watched.left = deque()
    link = Direction(1_300_000, 0.3, 50, **direction)
    profile = LinkProfile("watched", "", "", link, link)
    parts = Parts(outgoing=Watched)
    result = stp_transfer(profile, StpConfig(), 1_500_000, parts=parts, seed=3)
    assert result.intact
    return list(Watched.left)


def test_octets_leave_no_faster_than_the_bucket_lets_them() -> None:
    notes = [note for note in noted() if note[2] < math.inf]
    assert len(notes) > 300
    for at, (start, *_, smss) in enumerate(notes):
        octets, fastest = 0, 0.0
        for time, size, rate, _, _ in notes[at : at + 200]:
            octets, fastest = octets + size, max(fastest, rate)
            assert octets <= fastest * (time - start + 0.001) + 4 * smss + 1


def test_window_is_never_exceeded_but_by_the_first_retransmission() -> None:
    over = [note for note in noted(loss_probability=0.01) if note[3] > 0.5]
    assert all(size <= smss for _, size, _, _, smss in over)


def test_four_sds_may_leave_at_once_and_no_fifth(stp: Any) -> None:
    script = with_window(stp, 50, 50)
    script.connection.outgoing.rtt.srtt = 0.5
    assert data(script.flush()) == [0, 1, 2, 3]
    # Twice 50 SDs in half a second: one in 5 ms, two at a time, and a millisecond's worth ahead.
    start = script.now
    later = [time - start for time, _ in script.run(until=start + 0.031)]
    assert later == pytest.approx([0.0095, 0.0095, 0.0195, 0.0195, 0.0295, 0.0295])


def test_pause_of_a_narrow_window_gives_no_right_to_exceed_the_maximum_rate(stp: Any) -> None:
    script = with_window(stp, 1, 60)
    outgoing = script.connection.outgoing
    outgoing.rtt.srtt = 0.5
    pacer = Pacer(StpConfig(max_rate=800_000), outgoing.congestion, outgoing.rtt)
    times = []
    for tick in range(400):
        now = 10 + tick / 1000
        outgoing.congestion.cwnd = 1000.0 if tick < 5 else 400_000.0
        pacer.set_rates(now)
        while pacer.ready() and (tick >= 5 or len(times) < 2):
            pacer.sent(1000)
            times.append(now)
    busiest = max(sum(start <= time < start + 0.1 for time in times) for start in times)
    assert busiest * 8 * 1052 <= 80_000 + 4 * 8 * 1052


@pytest.mark.parametrize("rate", [200_000, 1_000_000, 20_000_000])
def test_maximum_rate_holds_over_any_tenth_of_a_second(rate: int) -> None:
    times: list[tuple[float, int]] = []

    class Metered(Outgoing):
        def transmit(self, now: float, put: Any) -> None:
            def meter(packet: Any) -> None:
                if isinstance(packet, Sd | Sdp):
                    times.append((now, len(packet.data) + 24 + 28))
                put(packet)

            super().transmit(now, meter)

    fast = Direction(None, 0.01, 1000, loss_probability=0.01)
    profile = LinkProfile("fast", "", "", fast, fast)
    config, parts = StpConfig(max_rate=rate), Parts(outgoing=Metered)
    assert stp_transfer(profile, config, 300_000, parts=parts, seed=2).intact
    assert len(times) > 200
    for at, (start, _) in enumerate(times):
        octets = sum(size for time, size in times[at : at + 300] if time < start + 0.1)
        assert 8 * octets <= 0.1 * rate + 4 * 8 * 1500
