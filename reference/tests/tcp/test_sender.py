"""Windows, timers and acknowledgments outside fast recovery."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from bentpipe_reference.common.stream import PatternSource
from bentpipe_reference.tcp.wire import Flags

VARIANTS = ["reno", "newreno", "sack-reno", "sack-newreno-hk99", "sack-newreno-rfc"]


# -- growth -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_slow_start_when_segments_are_acknowledged_adds_one_per_ack(
    script: Any, variant: str
) -> None:
    peer = script(variant, initial=1)
    assert peer.first_flight == [0]
    assert peer.ack(1) == [1, 2]
    assert peer.ack(3) == [3, 4, 5]
    assert peer.cwnd == 3


def test_slow_start_when_acks_are_split_counts_octets(script: Any) -> None:
    peer = script()
    for tenth in range(1, 11):
        peer.ack(tenth / 10)
    assert peer.cwnd == 11


def test_congestion_avoidance_adds_one_segment_per_window(script: Any) -> None:
    peer = script()
    peer.sender.ssthresh = 10_000
    for number in range(1, 10):
        peer.ack(number)
    assert peer.cwnd == 10
    peer.ack(10)
    assert peer.cwnd == 11


def test_congestion_avoidance_after_recovery_counts_acknowledged_octets_anew(script: Any) -> None:
    """RFC 5681 section 3.1: no more than one segment in a round trip."""
    peer = script("newreno", initial=16)
    peer.sender.ssthresh = 10_000
    for number in range(1, 16):
        peer.ack(number)
    for _ in range(15):
        peer.ack(15)
    peer.ack(31)
    assert peer.cwnd == peer.ssthresh
    reduced = round(peer.cwnd)
    for number in range(32, 32 + reduced):
        peer.ack(number)
    assert peer.cwnd == reduced + 1


@pytest.mark.parametrize(("variant", "expected"), [("sack-newreno-rfc", 10), ("reno", 1)])
def test_start_when_initial_window_is_not_set_follows_the_variant(
    script: Any, variant: str, expected: int
) -> None:
    assert len(script(variant, initial=None).first_flight) == expected


def test_start_when_syn_was_repeated_sends_one_segment(script: Any) -> None:
    """RFC 5681 section 3.1, and RFC 6298 rule 5.7: three seconds to start with."""
    peer = script(connect=False)
    peer.wait(1.5)
    assert peer.connection.handshake.attempts == 2
    assert peer.ack(0) == []
    peer.connection.attach(PatternSource(), peer.now)
    assert peer.flush() == [0]
    assert peer.sender.estimator.rto == 3.0


def test_output_after_idle_restarts_from_initial_window(script: Any) -> None:
    """RFC 5681 section 4.1."""
    peer = script("reno", octets=4000, initial=2)
    peer.ack(2)
    peer.ack(4)
    assert peer.cwnd == 4
    peer.wait(10.0)
    peer.source.stop_at(20_000)
    peer.connection.attach(peer.source, peer.now)
    assert peer.flush() == [4, 5]
    assert peer.cwnd == 2


# -- the offered window -----------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_window_when_smaller_than_cwnd_is_never_exceeded(script: Any, variant: str) -> None:
    peer = script(variant, window=4032)
    assert peer.first_flight == [0, 1, 2, 3]
    for _ in range(30):
        peer.ack(0)
    assert peer.sender.snd_max <= peer.iss + 1 + 4032


def test_window_when_it_shrinks_holds_new_data_back(script: Any) -> None:
    peer = script()
    assert peer.ack(4, window=2048) == []
    assert peer.ack(10, window=2048) == [10, 11]


def test_zero_window_when_it_lasts_is_probed_ever_more_slowly(script: Any) -> None:
    """RFC 9293 section 3.8.6.1: one octet, intervals doubling to the bound."""
    peer = script()
    assert peer.ack(10, window=0) == []
    times = []
    for _ in range(9):
        ((time, number),) = peer.wait(peer.sender.persist_deadline - peer.now)
        assert number == 10
        assert [len(segment.payload) for segment in peer.last] == [1]
        times.append(time)
        peer.ack(10, window=0)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    rto = peer.sender.estimator.rto
    assert gaps == pytest.approx([min(rto * 2**n, 60.0) for n in range(1, 9)])
    assert peer.sender.counters.timeouts == 0


def test_zero_window_when_it_opens_sends_full_segments_from_the_probe_on(script: Any) -> None:
    peer = script(octets=13_000)
    peer.ack(10, window=0)
    peer.wait(5.0)
    assert peer.ack(10, window=50_048) == [10, 11, 12]
    assert peer.sender.persist_deadline is None
    assert peer.ack(13) == []


def test_zero_window_when_probe_is_accepted_goes_on_after_it(script: Any) -> None:
    peer = script(octets=13_000)
    peer.ack(10, window=0)
    peer.wait(5.0)
    assert peer.ack(10.001, window=50_048) == [10.001, 11.001, 12.001]


@pytest.mark.parametrize("answered", [False, True])
def test_zero_window_when_it_has_lasted_restarts_from_initial_window(
    script: Any, answered: bool
) -> None:
    """RFC 5681 section 4.1: what opens it comes soon after a probe, the first data for long."""
    peer = script()
    peer.wait(0.1)
    peer.ack(10, window=0)
    before = peer.cwnd
    peer.wait(peer.sender.persist_deadline - peer.now)
    if answered:
        peer.ack(10, window=0)
    assert len(peer.ack(10, window=50_048)) == 10 < before


def test_zero_window_when_peer_answers_keeps_the_connection(script: Any) -> None:
    peer = script(max_retransmissions=4)
    peer.ack(10, window=0)
    for _ in range(12):
        peer.wait(60.0)
        peer.ack(10, window=0)
    assert peer.connection.failure is None


def test_window_update_when_older_than_the_last_is_ignored(script: Any) -> None:
    """SND.WL1 and SND.WL2 of RFC 9293."""
    peer = script()
    peer.ack(3)
    wnd = peer.sender.snd_wnd
    old = peer.segment(ack=peer.number(1), window=1)
    peer.give(old)
    assert peer.sender.snd_wnd == wnd


def test_old_segment_that_acknowledges_new_data_keeps_the_right_edge(script: Any) -> None:
    """The peer repeats data it sent before, with a newer ACK and a smaller window."""
    peer = script(window=10_048)
    peer.peer_sent = 100
    peer.ack(0)
    peer.peer_sent = 0
    assert peer.ack(4, window=4096, payload=b"x" * 100) == []
    assert peer.sender.right_edge == peer.iss + 1 + 10_048


def test_small_window_below_half_waits_for_the_probe(script: Any) -> None:
    """Sender's silly window avoidance."""
    peer = script()
    assert peer.ack(10, window=320) == []
    ((_, number),) = peer.wait(peer.sender.persist_deadline - peer.now)
    assert number == 10
    assert len(peer.last[0].payload) == 320


# -- acknowledgments --------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_ancient_ack_has_no_effect(script: Any, variant: str) -> None:
    peer = script(variant)
    peer.ack(5)
    state = (peer.sender.snd_una, peer.sender.cwnd, peer.sender.dupacks, peer.sender.snd_wnd)
    for _ in range(5):
        assert peer.ack(2, window=1 << 19) == []
        assert not peer.last
    assert state == (
        peer.sender.snd_una, peer.sender.cwnd, peer.sender.dupacks, peer.sender.snd_wnd
    )  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_ack_beyond_snd_max_is_answered_and_dropped(script: Any, variant: str) -> None:
    peer = script(variant)
    assert peer.ack(30) == []
    assert [segment.flags for segment in peer.last] == [Flags.ACK]
    assert peer.sender.snd_una == peer.iss + 1


@pytest.mark.parametrize("variant", ["reno", "newreno"])
def test_window_change_is_no_duplicate(script: Any, variant: str) -> None:
    peer = script(variant, sack=False)
    peer.ack(1)
    for size in range(8):
        peer.ack(1, window=(1 << 18) + (size << 10))
    assert peer.sender.dupacks == 0


@pytest.mark.parametrize("variant", ["reno", "newreno"])
def test_segment_with_data_is_no_duplicate(script: Any, variant: str) -> None:
    peer = script(variant, sack=False)
    peer.ack(1)
    for _ in range(6):
        peer.ack(1, payload=b"x" * 10)
        peer.peer_sent += 10
    assert peer.sender.dupacks == 0
    assert not peer.sender.in_recovery


@pytest.mark.parametrize("variant", VARIANTS)
def test_duplicates_interrupted_by_new_ack_count_afresh(script: Any, variant: str) -> None:
    peer = script(variant, sack=False, limited_transmit=False)
    for number in (1, 2, 3):
        peer.ack(number)
        peer.ack(number)
        peer.ack(number)
    assert not peer.sender.in_recovery
    assert peer.sender.counters.retransmissions == 0


# -- the retransmission timer -----------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_timeout_collapses_the_window_and_backs_off(script: Any, variant: str) -> None:
    peer = script(variant, limited_transmit=False)
    rto = peer.sender.estimator.rto
    first, second, third = peer.wait(7 * rto + 0.1)
    assert [number for _, number in (first, second, third)] == [0, 0, 0]
    assert second[0] - first[0] == pytest.approx(2 * rto)
    assert third[0] - second[0] == pytest.approx(4 * rto)
    assert peer.cwnd == 1
    assert peer.ssthresh == 5


def test_timeout_repeats_until_the_bound_and_then_gives_up(script: Any) -> None:
    peer = script(max_rto=8.0, max_retransmissions=6)
    times = [time for time, _ in peer.wait(200.0)]
    gaps = [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]
    assert gaps[-1] == 8.0
    assert len(times) == 6
    assert peer.connection.failure == "the peer answers no retransmission"


def test_rto_after_first_measurement_is_srtt_plus_four_rttvar(script: Any) -> None:
    peer = script()
    assert peer.sender.estimator.rto == pytest.approx(0.6 + 4 * 0.3)


def test_rtt_when_segment_was_retransmitted_is_not_measured(script: Any) -> None:
    """Karn's rule; back-off stays until new data is measured."""
    peer = script()
    srtt = peer.sender.estimator.srtt
    peer.wait(2.0)
    rto = peer.sender.estimator.rto
    peer.ack(1, after=0.6)
    assert peer.sender.estimator.srtt == srtt
    assert peer.sender.estimator.rto == rto
    peer.ack(10, after=0.6)
    assert peer.sender.estimator.rto == rto
    peer.ack((peer.sender.snd_max - peer.iss - 1) / 1000, after=0.6)
    assert peer.sender.estimator.rto < rto


def test_rtt_with_timestamps_is_taken_from_the_echo(script: Any) -> None:
    peer = script(timestamps=True)
    sent = peer.now
    peer.wait(0.9)
    stamp = peer.connection._timestamp(sent)
    peer.ack(1, timestamps=(int(peer.now * 1000), stamp))
    assert peer.sender.estimator.srtt == pytest.approx(0.6 * 7 / 8 + 0.9 / 8, abs=0.002)


@pytest.mark.parametrize("variant", VARIANTS)
def test_new_ack_restarts_the_timer_and_the_last_stops_it(script: Any, variant: str) -> None:
    """RFC 6298 rules 5.2 and 5.3."""
    peer = script(variant, octets=10_000)
    peer.ack(3, after=0.5)
    assert peer.sender.rto_deadline == pytest.approx(peer.now + peer.sender.estimator.rto)
    peer.ack(10, after=0.1)
    assert peer.sender.rto_deadline is None


def test_duplicate_ack_does_not_restart_the_timer(script: Any) -> None:
    peer = script()
    deadline = peer.sender.rto_deadline
    peer.ack(0, [(1, 2)], after=0.5)
    assert peer.sender.rto_deadline == deadline


def test_slow_start_after_timeout_resends_from_snd_una(script: Any) -> None:
    peer = script("reno", sack=False, initial=8)
    peer.wait(2.0)
    assert peer.ack(1) == [1, 2]
    assert peer.ack(3) == [3, 4, 5]


# -- the edges of the stream ------------------------------------------------------------------


def test_close_when_data_waits_sends_fin_with_the_last_segment(script: Any) -> None:
    peer = script(octets=12_500)
    peer.connection.close(peer.now)
    assert peer.ack(10) == [10, 11, 12]
    assert peer.last[-1].flags & Flags.FIN
    assert len(peer.last[-1].payload) == 500


def test_fin_when_lost_is_repeated_by_the_timer(script: Any) -> None:
    peer = script(octets=1000)
    peer.connection.close(peer.now)
    peer.ack(1)
    assert [bool(segment.flags & Flags.FIN) for segment in peer.last] == [True]
    peer.wait(2.0)
    assert peer.last[-1].flags & Flags.FIN
    peer.give(peer.segment(ack=peer.number(1) + 1))
    assert peer.connection.state.value == "FIN-WAIT-2"


def test_small_write_under_nagle_waits_for_the_ack(script: Any) -> None:
    peer = script(nagle=True, octets=10_300)
    assert peer.first_flight == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert peer.ack(9) == []
    assert peer.ack(10) == [10]


def test_half_the_window_under_nagle_waits_for_the_ack(script: Any) -> None:
    """RFC 9293 section 3.8.6.2.1, condition 3: the bracketed part is Nagle's."""
    peer = script(nagle=True, octets=1600, window=1024)
    peer.sender.max_snd_wnd = 1024
    assert peer.first_flight == [0]
    assert peer.ack(0.7) == []
    assert peer.ack(1) == [1]


@pytest.mark.parametrize(("peer_mss", "expected"), [(None, 536), (700, 700), (5000, 1000), (0, 48)])
def test_segment_size_follows_the_smaller_mss(
    script: Any, peer_mss: int | None, expected: int
) -> None:
    peer = script(peer_mss=peer_mss)
    assert {len(segment.payload) for segment in peer.last if segment.payload} == {expected}


def test_segment_size_with_timestamps_leaves_room_for_them(script: Any) -> None:
    peer = script(timestamps=True)
    assert peer.sender.smss == 988
    assert all(segment.timestamps for segment in peer.last)
