"""POLLs and time: intervals, silence, closed windows, keep-alive, giving up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from bentpipe_reference.stp.packets import End, Poll, Reason, Sd, Sdp, Stat
from bentpipe_reference.stp.states import State

ISS = 5000
RTT = 0.6


def opened(make: Any, **config: Any) -> Any:
    """A connection whose round-trip time is known to be 0.6 s, with some deviation."""
    script = make(**config)
    script.arrive(script.begin())
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
    script = wide(stp, 200_000)
    times = polls(script.run(until=script.now + 1.5))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.2 - 1e-6 <= gap <= 0.2 + 0.011 for gap in gaps[:5]), gaps


def test_wide_window_polls_ride_on_sds(stp: Any) -> None:
    script = wide(stp, 200_000)
    sent = [packet for _, packet in script.run(until=script.now + 0.45)]
    assert [type(packet) for packet in sent if isinstance(packet, Poll | Sdp)] == [Sdp, Sdp]
    for packet in sent:
        if isinstance(packet, Sdp):
            assert packet.n_s == max(sd.n_s for sd in sent[: sent.index(packet) + 1])  # type: ignore[union-attr]


def test_poll_numbers_rise_by_one_and_name_the_next_new_number(stp: Any) -> None:
    script = wide(stp, 10)
    script.run(until=30.0)
    asked = [packet for _, packet in script.sent if isinstance(packet, Poll | Sdp)]
    assert [packet.n_ps for packet in asked] == list(range(1, len(asked) + 1))
    assert all(packet.n_s == ISS + 1 for packet in asked if isinstance(packet, Poll))


def test_small_window_polls_with_the_last_sd_of_a_burst(stp: Any) -> None:
    script = opened(stp)
    script.connection.write(bytes(100_000))
    sent = [packet for _, packet in script.run(until=script.now + RTT)]
    assert [type(packet) for packet in sent] == [Sd, Sd, Sd, Sdp]


def test_small_window_polls_when_the_sd_that_was_to_go_on_outgrows_it(stp: Any) -> None:
    script = opened(stp)
    full = script.connection.outgoing.congestion.smss
    script.connection.outgoing.congestion.cwnd = 6.4 * full
    script.connection.write(bytes(6 * full + full // 5))
    while sum(isinstance(packet, Sd) for _, packet in script.sent) < 6:
        script.run(until=script.now + 0.01)
    assert not any(isinstance(packet, Poll | Sdp) for _, packet in script.sent)
    script.connection.write(bytes(4 * full))
    assert [type(packet) for _, packet in script.run(until=script.now + 0.3)] == [Poll]


def test_last_sd_polls_in_a_wide_window_too(stp: Any) -> None:
    script = wide(stp, 2500)
    sent = [packet for _, packet in script.run(until=script.now + 0.1)]
    assert [type(packet) for packet in sent] == [Sd, Sd, Sdp]


def test_without_piggyback_every_poll_is_a_packet(stp: Any) -> None:
    script = wide(stp, 2500, piggyback=False)
    sent = [packet for _, packet in script.run(until=script.now + 0.1)]
    assert [type(packet) for packet in sent] == [Sd, Sd, Sd, Poll]


def test_silence_doubles_the_interval_and_the_second_shrinks_the_window(stp: Any) -> None:
    script = wide(stp)
    congestion = script.connection.outgoing.congestion
    times = polls(script.run(until=script.now + 25.0))
    start = times[0]
    # 0.6 + 4 x 0.3 + 0.2 = 2.0 s of silence, then 4 and 8 more
    late = [time - start for time in times if time - start > 2.0 - 1e-6]
    assert late == pytest.approx([2.0, 6.0, 14.0], abs=0.01)
    assert congestion.cwnd == congestion.smss and congestion.ssthresh == 2 * congestion.smss


def test_first_silence_leaves_the_window_alone(stp: Any) -> None:
    script = wide(stp)
    script.run(until=script.now + 5.0)
    assert script.connection.outgoing.congestion.cwnd == 100_000.0


def test_stat_ends_the_silence(stp: Any) -> None:
    script = wide(stp)
    script.run(until=script.now + 5.0)
    polling = script.connection.outgoing.polling
    assert polling.silences == 1
    start = script.now
    script.arrive(script.stat(0, script.connection.outgoing.sender.vt_ps))
    assert polling.silences == 0
    times = [time - start for time in polls(script.sent) if time >= start]
    assert times == [0.0], "the last POLL is long ago"
    interval = script.connection.outgoing.rtt.srtt / 3
    (following, *_) = polls(script.run(until=script.now + 0.5))
    assert following == pytest.approx(start + interval, abs=0.01)


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


def test_idle_connection_is_silent(stp: Any) -> None:
    script = wide(stp, 10)
    script.flush()
    script.arrive(script.stat(1, 1))
    assert script.run(until=1000.0) == [] and script.endpoint.next_deadline() is None


def test_keep_alive_polls_every_fifteen_seconds_and_finds_a_dead_peer(stp: Any) -> None:
    script = opened(stp, keep_alive=True)
    start = script.now
    sent = script.run(until=80.0)
    assert polls(sent) == pytest.approx([start + 15.0 * n for n in range(1, 5)])
    assert [packet.reason for _, packet in sent if isinstance(packet, End)][:1] == [7]


def test_closed_window_is_probed_ever_more_seldom(stp: Any) -> None:
    script = opened(stp)
    sender = script.connection.outgoing.sender
    sender.vt_ms = sender.vt_s
    script.connection.write(b"waiting")
    script.flush()
    times = [script.now]
    while len(times) < 11:
        script.run(until=script.endpoint.next_deadline())
        times.append(script.now)
        script.arrive(script.stat(0, sender.vt_ps, n_mr=ISS))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    rough = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0, 15.0]
    # The round-trip time shrinks as the peer on paper answers at once; the doubling stays.
    assert all(0.2 * want <= gap <= want + 1e-6 for gap, want in zip(gaps, rough, strict=True))
    assert gaps[-1] == pytest.approx(15.0)
    for _ in range(3):
        script.run(until=script.endpoint.next_deadline())
    assert script.connection.failure is None, "three probes in a row may be lost (STP-PL-008)"
    assert [type(packet) for packet in script.arrive(script.stat(0, sender.vt_ps))] == [Sdp]


def test_confirmation_of_an_idle_caller_is_polled_for_until_a_stat(stp: Any) -> None:
    script = stp()
    script.call()
    script.now = RTT
    answers = script.arrive(script.bgak(flags=2))
    assert [packet.type.name for packet in answers] == ["BGAK", "POLL"]
    assert polls(script.run(until=5.0))
    script.arrive(script.stat(0, script.connection.outgoing.sender.vt_ps))
    assert script.run(until=500.0) == []


def test_unconfirmed_caller_is_told_when_the_peer_knows_nothing(stp: Any) -> None:
    script = stp()
    script.call()
    script.arrive(script.bgak(flags=2))
    hint = script.end(flags=12, csn=0, peer_csn=0x7777_1234 & 0xFFFF, tag=0)
    (challenge,) = script.arrive(hint)
    assert challenge.flags == 2
    script.arrive(script.end(flags=12))
    assert script.connection.failure == "the peer no longer knows the connection"


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
    script.call()
    script.run(until=3.5)
    script.arrive(script.bgak())
    script.connection.outgoing.rtt.srtt = None
    script.connection.write(b"x")
    script.flush()
    begun = script.now
    times = polls(script.run(until=begun + 3.1))
    assert times[0] == pytest.approx(begun + first)


def test_stat_timestamp_is_not_trusted(stp: Any) -> None:
    script = opened(stp)
    script.connection.write(b"x")
    script.flush()
    script.now += RTT
    stat = script.stat(1, 1, timestamp=12345)
    assert isinstance(stat, Stat)
    script.arrive(stat)
    assert script.connection.outgoing.rtt.srtt == pytest.approx(RTT)
