"""Receiving SDs, answering POLLs, giving credit: scripts against one endpoint."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.packets import Stat, Ustat
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sequence import PACKET_MASK
from hypothesis import given
from hypothesis import strategies as st

PEER_ISS = 900_000


def offsets(stat: Stat) -> list[int]:
    return [element - PEER_ISS for element in stat.elements]


def only(kind: type, packets: list[Any]) -> Any:
    (packet,) = packets
    assert isinstance(packet, kind)
    return packet


def test_ready_sd_above_the_highest_reports_the_gap_once(stp: Any) -> None:
    script = stp()
    script.ready()
    assert script.arrive(script.sd(0)) == []
    ustat = only(Ustat, script.arrive(script.sd(3)))
    assert ustat.elements == (PEER_ISS + 1, PEER_ISS + 3) and ustat.n_r == PEER_ISS + 1
    assert script.arrive(script.sd(2)) == []
    ustat = only(Ustat, script.arrive(script.sd(5)))
    assert ustat.elements == (PEER_ISS + 4, PEER_ISS + 5)


def test_ready_poll_raises_the_highest_so_that_no_ustat_repeats_its_stat(stp: Any) -> None:
    script = stp()
    script.ready()
    stat = only(Stat, script.arrive(script.poll(2, 1)))
    assert offsets(stat) == [0, 2] and (stat.n_ps, stat.timestamp) == (1, 77)
    assert script.arrive(script.sd(2)) == []
    assert offsets(only(Stat, script.arrive(script.poll(3, 2)))) == [0, 2, 3]


def test_ready_sdp_is_taken_before_its_poll_is_answered(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    stat = only(Stat, script.arrive(script.sdp(0, 1, b"data")))
    assert stat.n_r == PEER_ISS + 1 and stat.elements == ()
    assert connection.read() == b"data"
    stat = only(Stat, script.arrive(script.sdp(0, 2, b"data")))
    assert stat.n_ps == 2 and connection.read() == b""


def test_ready_poll_beyond_the_credit_or_old_raises_nothing(stp: Any) -> None:
    script = stp(credit=8)
    script.ready()
    script.arrive(script.sd(0))
    for at in (10, -5, 1 << 23):
        assert only(Stat, script.arrive(script.poll(at, 1))).elements == ()
    assert offsets(only(Stat, script.arrive(script.poll(8, 1)))) == [1, 8]


def test_ready_sd_beyond_the_credit_is_discarded(stp: Any) -> None:
    script = stp(credit=4)
    connection = script.ready()
    assert script.arrive(script.sd(4), script.sd(1000), script.sd(-1)) == []
    assert connection.receiver.held() == [] and connection.receiver.vr_h == PEER_ISS
    for at in range(4):
        script.arrive(script.sd(at))
    assert script.arrive(script.sd(4)) == [] and connection.readable == 4


def test_ready_credit_rises_only_as_the_user_reads(stp: Any) -> None:
    script = stp(credit=4)
    connection = script.ready()
    for at in range(3):
        script.arrive(script.sd(at, b"abc"))
    stat = only(Stat, script.arrive(script.poll(3, 1)))
    assert stat.n_mr == PEER_ISS + 4
    assert connection.read(4) == b"abca"
    assert only(Stat, script.arrive(script.poll(3, 2))).n_mr == PEER_ISS + 5
    assert connection.read() == b"bcabc"
    assert only(Stat, script.arrive(script.poll(3, 3))).n_mr == PEER_ISS + 7


def test_ready_reopened_window_is_announced_by_a_stat_that_answers_no_poll(stp: Any) -> None:
    script = stp(credit=40)
    connection = script.ready()
    for at in range(40):
        script.arrive(script.sd(at))
    assert only(Stat, script.arrive(script.poll(40, 5))).n_mr == PEER_ISS + 40
    connection.read(15)
    assert script.flush() == []
    connection.read(1)
    stat = only(Stat, script.flush())
    assert (stat.n_mr, stat.n_ps, stat.timestamp, stat.elements) == (PEER_ISS + 56, 0, 0, ())
    connection.read()
    assert script.flush() == [], "credit beyond VR(H) has been shown"


def test_ready_window_reopened_after_the_fin_is_not_announced(stp: Any) -> None:
    script = stp(credit=8)
    connection = script.ready()
    for at in range(7):
        script.arrive(script.sd(at))
    script.arrive(script.fin(7, b"x"))
    assert only(Stat, script.arrive(script.poll(8, 1))).n_mr == PEER_ISS + 8
    connection.read()
    assert script.flush() == [], "nothing can follow the FIN (STP-DT-024)"


def test_ready_small_buffer_is_announced_when_half_is_free(stp: Any) -> None:
    script = stp(credit=8)
    connection = script.ready()
    for at in range(8):
        script.arrive(script.sd(at))
    script.arrive(script.poll(8, 1))
    connection.read(3)
    assert script.flush() == []
    connection.read(1)
    assert only(Stat, script.flush()).n_mr == PEER_ISS + 12


def test_ready_empty_sd_takes_its_number_and_delivers_nothing(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    script.arrive(script.sd(0, b""), script.sd(1, b"x"))
    assert connection.receiver.vr_r == PEER_ISS + 2 and connection.read() == b"x"


def test_ready_fin_is_reported_after_all_data_and_nothing_follows(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    script.endpoint.take_events()
    script.arrive(script.fin(2, b"c"), script.sd(0, b"a"))
    assert connection.read() == b"a" and not connection.peer_has_closed
    script.arrive(script.sd(1, b"b"))
    ((_, events),) = script.endpoint.take_events()
    assert events & Events.END_OF_STREAM
    assert connection.peer_has_closed and connection.read() == b"bc"
    script.arrive(script.sd(3, b"d"))
    assert connection.read() == b"" and connection.receiver.vr_r == PEER_ISS + 3


def test_ready_sds_that_cannot_be_are_discarded(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    assert script.arrive(script.sd(0, bytes(1453))) == [] and connection.readable == 0
    script.arrive(script.sd(3), script.fin(2))
    assert connection.receiver.held() == [PEER_ISS + 3], "a FIN below what is held"
    script.arrive(script.fin(5))
    script.arrive(script.sd(6))
    assert connection.receiver.held() == [PEER_ISS + 3, PEER_ISS + 5], "beyond a known FIN"


def test_ready_gap_does_not_show_in_an_announcement(stp: Any) -> None:
    script = stp(credit=8)
    connection = script.ready()
    for at in (0, 1, 2, 3, 5, 6, 7):
        script.arrive(script.sd(at))
    script.arrive(script.poll(8, 1))
    connection.read()
    stat = only(Stat, script.flush())
    assert (stat.n_r, stat.n_mr, stat.elements) == (PEER_ISS + 4, PEER_ISS + 12, ())


def test_ready_credit_counts_from_its_announcement(stp: Any) -> None:
    script = stp(credit=8)
    connection = script.ready()
    for at in range(8):
        script.arrive(script.sd(at))
    script.arrive(script.poll(8, 1))
    connection.read(3)
    assert script.arrive(script.sd(8)) == [] and connection.receiver.vr_r == PEER_ISS + 8
    assert only(Stat, script.arrive(script.poll(8, 2))).n_mr == PEER_ISS + 11
    script.arrive(script.sd(8))
    assert connection.receiver.vr_r == PEER_ISS + 9


def test_ready_ustat_announces_credit(stp: Any) -> None:
    script = stp(credit=8)
    connection = script.ready()
    script.arrive(script.sd(0), script.sd(1))
    connection.read()
    assert only(Ustat, script.arrive(script.sd(3))).n_mr == PEER_ISS + 10
    assert connection.receiver.vr_mr == PEER_ISS + 10


def test_ready_window_closed_after_the_last_report_is_not_announced(stp: Any) -> None:
    script = stp(credit=8)
    connection = script.ready()
    script.arrive(script.sd(0), script.poll(1, 1))
    for at in range(1, 8):
        script.arrive(script.sd(at))
    connection.read()
    assert script.flush() == [], "the last report showed credit beyond VR(H)"


def test_ready_long_list_is_cut_as_sscop_cuts_it(stp: Any) -> None:
    script = stp(max_stat=5)
    script.ready()
    for at in range(1, 12, 2):
        script.arrive(script.sd(at))
    stats = script.arrive(script.poll(12, 1))
    whole = list(range(13))
    assert [offsets(stat) for stat in stats] == [whole[0:5], whole[4:9], whole[8:13]]
    assert {(stat.n_ps, stat.timestamp) for stat in stats} == {(1, 77)}


def test_ready_reordering_path_reports_after_three_more_sds(stp: Any) -> None:
    script = stp(fifo=False)
    script.ready()
    assert script.arrive(script.sd(2), script.sd(3), script.sd(4)) == []
    assert script.arrive(script.sd(0)) != []
    (ustat,) = [packet for _, packet in script.sent if isinstance(packet, Ustat)]
    assert ustat.elements == (PEER_ISS + 1, PEER_ISS + 2), "0 has arrived meanwhile"


def test_ready_reordering_path_reports_after_an_eighth_of_the_round_trip(stp: Any) -> None:
    script = stp(fifo=False)
    script.call()
    script.now = 0.8
    script.arrive(script.bgak())
    script.arrive(script.sd(2))
    (item,) = script.run(until=5.0)
    assert abs(item[0] - 0.9) < 1e-6 and isinstance(item[1], Ustat)


def test_ready_reordering_path_reports_nothing_that_a_stat_has_reported(stp: Any) -> None:
    script = stp(fifo=False)
    script.ready()
    script.arrive(script.sd(2))
    assert only(Stat, script.arrive(script.poll(3, 1))).elements != ()
    assert script.run(until=5.0) == []


@given(
    start=st.sampled_from([0, 5, PACKET_MASK - 3]),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("sd"), st.integers(0, 24)),
            st.tuples(st.just("poll"), st.integers(0, 24)),
            st.tuples(st.just("read"), st.integers(0, 3)),
        ),
        max_size=40,
    ),
)
def test_receiver_agrees_with_a_plain_set_of_numbers(
    start: int, steps: list[tuple[str, int]]
) -> None:
    receiver = Receiver(StpConfig(credit=16, max_stat=5), start)
    arrived: set[int] = set()
    highest = unread = taken = 0
    limit = 16
    for step, value in steps:
        field = start + value & PACKET_MASK
        next_ = min(set(range(60)) - arrived)
        if step == "sd":
            run = receiver.on_sd(field, bytes([value]), 0)
            if next_ <= value < limit and value not in arrived:
                expected = (start + highest, start + value) if value > highest else None
                assert run == expected
                if run is not None:
                    receiver.reported()
                    limit = taken + 16
                arrived.add(value)
                highest = max(highest, value + 1)
            else:
                assert run is None
        elif step == "poll":
            if highest < value <= limit:
                highest = value
            lists = receiver.on_poll(field)
            limit = taken + 16
            missing = [n for n in range(highest) if n not in arrived]
            assert told(lists, start) == (missing, highest if missing else None)
        else:
            data = receiver.read(value)
            assert list(data) == list(range(taken, taken + len(data)))
            taken += len(data)
        next_ = min(set(range(60)) - arrived)
        unread = next_ - taken
        assert receiver.vr_r == start + next_ and receiver.vr_h == start + highest
        assert receiver.readable == unread and receiver.vr_mr == start + limit


def told(lists: list[tuple[int, ...]], start: int) -> tuple[list[int], int | None]:
    """What a series of STATs says: the numbers missing and the bound."""
    if lists == [()]:
        return [], None
    missing: list[int] = []
    for elements, following in pairwise([*lists, ()]):
        assert 2 <= len(elements) <= 5
        if following:
            assert len(elements) == 5 and following[0] == elements[-1]
        runs = [element - start & PACKET_MASK for element in elements]
        assert runs == sorted(set(runs))
        for first, end in zip(runs[::2], runs[1::2], strict=False):
            missing += range(first, end)
    return missing, (lists[-1][-1] - start) & PACKET_MASK
