"""POLLs and time: intervals, silence, closed windows, keep-alive, giving up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.packets import End, Poll, Reason, Sd, Sdp, Stat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State

ISS = 5000
RTT = 0.6


def opened(make: Any, **config: Any) -> Any:
    """A connection that the endpoint has called; the round-trip time is 0.6 s, with deviation."""
    script = make(**config)
    script.call()
    script.now = RTT
    script.arrive(script.bgak())
    assert script.state is State.READY
    return script


def wide(make: Any, octets: int = 2000, **config: Any) -> Any:
    """The same with a window of 100 SMSS and much to send."""
    script = opened(make, **config)
    script.connection.outgoing.congestion.cwnd = 100_000.0
    script.connection.outgoing.congestion.ssthresh = 100_000.0
    script.connection.write(bytes(octets))
    return script


def polls(sent: list[tuple[float, Any]]) -> list[float]:
    return [time for time, packet in sent if isinstance(packet, Poll | Sdp)]


def test_wide_window_polls_three_times_in_a_round_trip(stp: Any) -> None:
    script = wide(stp, 90_000)
    times = polls(script.run(until=script.now + 1.5))
    gaps = [later - earlier for earlier, later in pairwise(times[:4])]
    # The next SD would leave too late to carry the POLL, so one leaves a little early.
    assert all(0.18 <= gap <= 0.2 for gap in gaps), gaps


def test_wide_window_polls_ride_on_sds(stp: Any) -> None:
    script = wide(stp, 200_000)
    sent = [packet for _, packet in script.run(until=script.now + 0.45)]
    assert [type(packet) for packet in sent if isinstance(packet, Poll | Sdp)] == [Sdp] * 2
    for packet in sent:
        if isinstance(packet, Sdp):
            assert packet.n_s == max(sd.n_s for sd in sent[: sent.index(packet) + 1])  # type: ignore[union-attr]


def test_poll_numbers_rise_by_one_and_name_the_next_new_number(stp: Any) -> None:
    script = wide(stp, 10)
    script.run(until=30.0)
    asked = [packet for _, packet in script.sent if isinstance(packet, Poll | Sdp)]
    assert [packet.n_ps for packet in asked] == list(range(1, len(asked) + 1))
    assert all(packet.n_s == ISS + 1 for packet in asked if isinstance(packet, Poll))


def test_full_window_polls_with_its_last_sd(stp: Any) -> None:
    script = opened(stp)
    script.connection.write(bytes(100_000))
    sent = [packet for _, packet in script.run(until=script.now + RTT)]
    assert [type(packet) for packet in sent] == [Sd, Sd, Sd, Sdp]


def test_credit_used_again_soon_is_asked_for_an_interval_after_the_poll_before(stp: Any) -> None:
    script = wide(stp, 100_000)
    sender, polling = script.connection.outgoing.sender, script.connection.outgoing.polling
    sender.vt_ms = ISS + 4
    (first,) = polls(script.run(until=script.now + 0.1))
    script.arrive(script.stat(4, 1, n_mr=ISS + 6))
    sent = [(time, packet) for time, packet in script.sent if time >= script.now]
    assert [type(packet) for _, packet in sent] == [Sd, Sd], "the interval has not passed"
    ((second, poll),) = script.run(until=first + 0.4)
    assert isinstance(poll, Poll) and second == pytest.approx(first + polling.poll_interval())
    assert second < sent[0][0] + polling.poll_interval(), "Timer_POLL alone would wait longer"


def test_sd_that_outgrows_the_window_makes_the_one_before_poll(stp: Any) -> None:
    script = opened(stp)
    full = script.connection.outgoing.congestion.smss
    script.connection.outgoing.congestion.cwnd = 6.4 * full
    script.connection.write(bytes(6 * full + full // 5))
    while sum(isinstance(packet, Sd) for _, packet in script.sent) < 6:
        script.run(until=script.now + 0.01)
    assert not any(isinstance(packet, Poll | Sdp) for _, packet in script.sent)
    script.connection.write(bytes(4 * full))
    assert isinstance(script.run(until=script.now + 0.3)[0][1], Poll)


def test_last_data_polls_in_a_wide_window_too(stp: Any) -> None:
    script = wide(stp, 2500)
    sent = [packet for _, packet in script.run(until=script.now + 0.1)]
    assert [type(packet) for packet in sent] == [Sd, Sd, Sdp]


def test_user_that_writes_little_by_little_polls_three_times_in_a_round_trip(stp: Any) -> None:
    script = wide(stp, 10)
    start = script.now
    for tick in range(1, 100):
        script.run(until=start + 0.01 * tick)
        script.connection.write(b"little")
        script.flush()
    gaps = [later - earlier for earlier, later in pairwise(polls(script.sent))]
    assert len(gaps) == 5 and all(0.19 - 1e-6 <= gap <= 0.2 + 1e-6 for gap in gaps), gaps


def test_fin_polls_however_soon_after_another_poll(stp: Any) -> None:
    script = wide(stp, 10)
    assert [type(packet) for packet in script.flush()] == [Sdp]
    script.connection.write(b"last")
    script.connection.close()
    (sdp,) = script.flush()
    assert isinstance(sdp, Sdp) and sdp.flags == 1


def test_nothing_is_asked_about_what_is_acknowledged(stp: Any) -> None:
    script = wide(stp, 10)
    script.flush()
    script.connection.write(b"more")
    assert [type(packet) for packet in script.flush()] == [Sd]
    script.arrive(script.stat(2, 1))
    assert script.run(until=script.now + 500.0) == []


def test_without_piggyback_every_poll_is_a_packet(stp: Any) -> None:
    script = wide(stp, 2500, piggyback=False)
    sent = [packet for _, packet in script.run(until=script.now + 0.1)]
    assert [type(packet) for packet in sent] == [Sd, Sd, Sd, Poll]


def test_silence_doubles_and_the_second_shrinks_the_window(stp: Any) -> None:
    script = wide(stp)
    congestion = script.connection.outgoing.congestion
    start, *times = polls(script.run(until=script.now + 50.0))
    # 0.6 + 4 x 0.3 = 1.8 s of silence, then twice as much each time, up to 15 s
    after = [1.8, 5.4, 12.6, 27.0, 42.0]
    assert [time - start for time in times] == pytest.approx(after, abs=1e-6)
    assert congestion.cwnd == congestion.smss and congestion.ssthresh == 50_000


def test_first_silence_leaves_the_window_alone(stp: Any) -> None:
    script = wide(stp)
    script.run(until=script.now + 5.0)
    assert script.connection.outgoing.polling.silences == 1
    assert script.connection.outgoing.congestion.cwnd == 100_000.0


@pytest.mark.parametrize("kind", ["stat", "ustat"])
def test_report_ends_the_doubling(stp: Any, kind: str) -> None:
    script = wide(stp, 4000)
    script.run(until=script.now + 8.0)
    polling, sender = script.connection.outgoing.polling, script.connection.outgoing.sender
    assert polling.silences == 2
    report = script.stat(0, sender.vt_ps) if kind == "stat" else script.ustat(0, 0, 1)
    script.arrive(report)
    assert polling.silences == 0
    start = script.now
    (time, *_) = [time for time in polls(script.run(until=start + 9.0)) if time > start + 0.5]
    assert time == pytest.approx(start + polling.silence_time(), abs=0.05)


def test_report_of_everything_ends_the_polls(stp: Any) -> None:
    script = wide(stp)
    script.flush()
    script.arrive(script.stat(2, 1))
    assert script.run(until=script.now + 500.0) == []


def test_peer_that_does_not_answer_is_given_up_after_a_minute(stp: Any) -> None:
    script = wide(stp)
    sent = script.run(until=200.0)
    first = polls(sent)[0]
    ends = [(time, packet) for time, packet in sent if isinstance(packet, End)]
    assert ends[0][0] == pytest.approx(first + 60.0)
    assert ends[0][1].reason == Reason.NO_ANSWER and ends[0][1].flags == 4
    assert script.connection.failure == "the peer does not answer any more"
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(ends)]
    assert gaps == pytest.approx([1, 2, 4, 8]) and script.state is State.IDLE


def test_answer_to_an_old_poll_keeps_a_peer_from_being_given_up(stp: Any) -> None:
    script = wide(stp)
    script.run(until=script.now + 59.0)
    script.arrive(script.stat(0, 1))
    script.run(until=script.now + 59.0)
    assert script.state is State.READY


def test_idle_connection_asks_after_ten_minutes(stp: Any) -> None:
    script = wide(stp, 10)
    script.flush()
    script.arrive(script.stat(1, 1))
    start = script.now
    assert polls(script.run(until=start + 600.1)) == [pytest.approx(start + 600.0)]


def test_every_packet_starts_keep_alive_anew(stp: Any) -> None:
    script = opened(stp, keep_alive=15.0)
    start = script.now
    script.run(until=start + 10.0)
    script.arrive(script.sd(0))
    assert polls(script.run(until=start + 25.1)) == [pytest.approx(start + 25.0)]
    script.arrive(script.stat(0, 1))
    assert polls(script.run(until=start + 41.0)) == [pytest.approx(start + 40.1)]


def test_keep_alive_poll_is_repeated_until_it_is_answered(stp: Any) -> None:
    script = opened(stp, keep_alive=15.0)
    start = script.now
    times = polls(script.run(until=start + 20.0))
    assert times == pytest.approx([start + 15.0, start + 16.8])
    assert script.connection.outgoing.congestion.cwnd > script.connection.outgoing.congestion.smss
    script.arrive(script.stat(0, 2))
    assert polls(script.run(until=start + 34.0)) == []


def test_keep_alive_finds_a_dead_peer(stp: Any) -> None:
    script = opened(stp, keep_alive=15.0)
    start = script.now
    sent = script.run(until=80.0)
    ends = [(time, packet.reason) for time, packet in sent if isinstance(packet, End)]
    assert ends[0] == (pytest.approx(start + 75.0), 7)


def closed(make: Any) -> Any:
    """A connection that has used its credit, all acknowledged, with data that waits."""
    script = opened(make)
    sender = script.connection.outgoing.sender
    sender.vt_ms = sender.vt_s
    script.connection.write(b"waiting")
    assert script.flush() == []
    return script


def test_closed_window_is_probed_ever_more_seldom(stp: Any) -> None:
    script = closed(stp)
    sender = script.connection.outgoing.sender
    times = [script.now]
    while len(times) < 9:
        asked = polls(script.run(until=script.endpoint.next_deadline()))
        times += asked
        if asked:
            script.arrive(script.stat(0, sender.vt_ps, n_mr=ISS))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps == pytest.approx([1.8, 3.6, 7.2, 14.4, 15.0, 15.0, 15.0, 15.0])
    assert script.connection.failure is None, "an answering peer is not given up (STP-PL-008)"
    assert [type(packet) for packet in script.arrive(script.stat(0, sender.vt_ps))] == [Sd]


def test_announced_credit_ends_the_probing(stp: Any) -> None:
    script = closed(stp)
    assert [type(packet) for packet in script.arrive(script.stat(0, 0))] == [Sdp]
    assert script.connection.outgoing.polling.silences == 0


def test_closed_window_probes_leave_the_congestion_window_alone(stp: Any) -> None:
    script = closed(stp)
    before = script.connection.outgoing.congestion.cwnd
    script.run(until=script.now + 30.0)
    assert script.connection.outgoing.congestion.cwnd == before


@pytest.mark.parametrize("data", [b"", b"early"])
def test_caller_polls_when_the_bgak_comes_if_sds_are_unacknowledged(stp: Any, data: bytes) -> None:
    script = stp()
    script.call(data)
    assert not polls(script.run(until=0.6))
    answers = script.arrive(script.bgak())
    assert [type(packet) for packet in answers] == ([Poll] if data else [])


def test_poll_numbers_skip_zero(stp: Any) -> None:
    script = opened(stp)
    sender = script.connection.outgoing.sender
    sender.vt_ps = sender.vt_pa = PACKET_MASK - 1
    for _ in range(3):
        script.connection.write(b"x")
        script.flush()
        script.run(until=script.now + 0.25)
    asked = [packet for _, packet in script.sent if isinstance(packet, Sdp)]
    assert [packet.n_ps for packet in asked] == [PACKET_MASK, 1, 2]
    assert not script.arrive(script.stat(2, 1)) and sender.vt_a == ISS + 2
    assert sender.vt_pa == PACKET_MASK + 1


def test_round_trip_is_measured_by_the_first_stat_of_a_poll_only(stp: Any) -> None:
    script = opened(stp)
    rtt = script.connection.outgoing.rtt
    script.connection.write(b"x")
    script.flush()
    script.now += 1.0
    script.arrive(script.stat(0, 1))
    assert rtt.srtt == pytest.approx(RTT + (1.0 - RTT) / 8)
    before = rtt.srtt
    script.now += 5.0
    script.arrive(script.stat(1, 1))
    assert rtt.srtt == before


def test_round_trip_is_not_measured_when_the_begin_was_repeated(stp: Any) -> None:
    script = stp()
    script.call()
    script.run(until=1.5)
    script.arrive(script.bgak())
    assert script.connection.outgoing.rtt.srtt is None


@pytest.mark.parametrize(("path_class", "first"), [("geo", 1.0), ("leo", 1.0), ("vbdc", 3.0)])
def test_unknown_round_trip_is_polled_at_the_initial_interval(
    stp: Any, path_class: str, first: float
) -> None:
    script = stp(path_class=path_class)
    connection = script.ready()
    connection.write(b"x")
    script.flush()
    begun = script.now
    times = polls(script.run(until=begun + 9.1))
    assert times[:2] == pytest.approx([begun + first, begun + 3 * first]), "of silence"


def test_stat_timestamp_is_not_trusted(stp: Any) -> None:
    script = opened(stp)
    script.connection.write(b"x")
    script.flush()
    script.now += RTT
    stat = script.stat(1, 1, timestamp=12345)
    assert isinstance(stat, Stat)
    script.arrive(stat)
    assert script.connection.outgoing.rtt.srtt == pytest.approx(RTT)


def timers(rtt: float) -> Polling:
    """Timers of an endpoint that has measured once."""
    measured = RoundTrip()
    measured.sample(rtt)
    return Polling(StpConfig(), measured)


def test_silence_time_above_fifteen_seconds_is_kept() -> None:
    polling = timers(8.0)
    polling.polled(0.0)
    assert polling.deadline() == 24.0  # 8 s and four deviations of 4 s
    assert polling.expire(24.0)
    assert polling.deadline() == 48.0


def test_report_that_leaves_a_window_closed_starts_the_doubled_time_again() -> None:
    polling = timers(RTT)
    polling.polled(0.0)
    assert polling.expire(1.8)
    polling.reported(2.4, opens=False)
    assert polling.deadline() == pytest.approx(2.4 + 3.6)
