from __future__ import annotations

from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
)
from bentpipe_conformance.protocols.stp.replay.cookies import Worth
from bentpipe_conformance.protocols.stp.replay.flow import State
from bentpipe_conformance.protocols.stp.replay.reader import read_flows
from bentpipe_conformance.protocols.stp.story import COOKIES, TESTER_CSN, StpStory


def figure_8() -> StpStory:
    """The worked exchange of section 13, SD 7 being lost."""
    story = StpStory().opened()
    for number in range(5):
        story.iut(SD, number)
    story.iut(POLL, 5, n_ps=1).tester(STAT, 5, n_ps=1, after=0.6)
    story.iut(SD, 5).iut(SD, 6).iut(SD, 7).iut(SD, 8).tester(USTAT, 7, elements=(7, 8), after=0.6)
    story.iut(SD, 9).iut(POLL, 10, n_ps=2).iut(SD, 7)
    story.tester(STAT, 7, n_ps=2, elements=(7, 8, 10), after=0.6).iut(SD, 10).iut(POLL, 11, n_ps=3)
    return story.tester(STAT, 11, n_ps=3, after=0.6)


def test_worked_exchange_replayed_as_sender_wants_one_retransmission() -> None:
    flow = figure_8().flow()
    assert [event.wanted for event in flow.reports_heard] == [(), (7,), (), ()]
    assert flow.reports_heard[2].spared == (7,)
    assert all(not event.fault for event in flow.reports_heard)
    again = [sd for sd in flow.sds_sent if not sd.new]
    assert [(sd.number, sd.transmission, sd.stamp) for sd in again] == [(7, 2, 2)]
    assert again[0].awaited is flow.reports_heard[1]
    assert flow.reports_heard[1].responses == again
    assert flow.sender is not None
    assert (flow.sender.vt_s, flow.sender.vt_a, flow.sender.vt_ps, flow.sender.vt_pa) == (
        11,
        11,
        3,
        3,
    )
    assert [len(poll.answers) for poll in flow.polls_sent] == [1, 1, 1]


def test_retransmission_lost_stat_of_the_next_poll_wants_it_again() -> None:
    story = StpStory().opened().iut(SD, 0).iut(SD, 1).iut(SD, 2).iut(POLL, 3, n_ps=1)
    story.tester(STAT, 1, n_ps=1, elements=(1, 2, 3), after=0.6).iut(SD, 1).iut(POLL, 3, n_ps=2)
    story.tester(STAT, 1, n_ps=2, elements=(1, 2, 3), after=0.6)
    flow = story.flow()
    assert [event.wanted for event in flow.reports_heard] == [(1,), (1,)]


def test_reports_out_of_range_arrive_are_at_fault_and_change_nothing() -> None:
    story = StpStory().opened()
    for number in range(4):
        story.iut(SD, number)
    story.iut(POLL, 4, n_ps=1)
    story.tester(STAT, 5, n_ps=1).tester(STAT, 2, n_ps=2).tester(STAT, 2, n_ps=1, elements=(2, 5))
    story.tester(STAT, 2, n_ps=1, elements=(3, 3)).tester(STAT, 2, n_ps=1, elements=(2,))
    story.tester(STAT, 2, n_ps=1, n_mr=3, elements=(2, 4)).tester(STAT, 2, n_ps=1)
    story.tester(STAT, 1, n_ps=1)
    flow = story.flow()
    faults = [event.fault for event in flow.reports_heard]
    assert all(faults[:6])
    assert not faults[6]
    assert "below VT(A)" in faults[7]
    assert flow.sender is not None
    assert flow.sender.vt_a == 2


def test_flight_counts_what_was_sent_and_not_reported() -> None:
    story = StpStory().opened()
    story.iut(SD, 0, data=bytes(100)).iut(SD, 1, data=bytes(50)).iut(SD, 2).iut(SD, 3, data=b"xx")
    assert [sd.flight for sd in story.flow().sds_sent] == [0, 100, 150, 151]
    story.iut(POLL, 4, n_ps=1).tester(STAT, 1, n_ps=1, elements=(1, 2, 4), after=0.6)
    story.iut(SD, 1, data=bytes(50)).iut(SD, 4)
    flights = [sd.flight for sd in story.flow().sds_sent]
    assert flights[4:] == [0, 50]


def test_sds_arrive_with_gaps_receiver_knows_what_reports_must_say() -> None:
    story = StpStory().opened().tester(SD, 0).tester(SD, 1).tester(SD, 4, after=0.1)
    story.iut(USTAT, 2, elements=(2, 4)).tester(SD, 4).tester(POLL, 7, n_ps=9, timestamp=3)
    story.iut(STAT, 2, n_ps=9, timestamp=3, elements=(2, 4, 5, 7)).tester(SD, 3, after=0.1)
    flow = story.flow()
    gaps = [sd.gap for sd in flow.sds_heard]
    assert gaps == [None, None, (2, 4), None, None]
    assert [sd.duplicate for sd in flow.sds_heard] == [False, False, False, True, False]
    ustat, stat = flow.reports_sent
    assert ustat.cause is flow.sds_heard[2]
    assert stat.poll is flow.polls_heard[0]
    assert stat.possible[0].elements == stat.elements
    assert flow.receiver is not None
    assert flow.receiver.reception.elements() == (2, 3, 5, 7)


def test_sd_beyond_the_announced_credit_is_doubtful_until_a_report_tells() -> None:
    story = StpStory(credit=4).opened().tester(SD, 0).tester(SD, 5)
    assert not story.flow().receiver.certain  # type: ignore[union-attr]
    story.tester(POLL, 1, n_ps=1, timestamp=3, after=0.2)
    story.iut(STAT, 1, n_ps=1, timestamp=3, n_mr=5)
    flow = story.flow()
    assert flow.sds_heard[1].discarded
    assert flow.receiver is not None and flow.receiver.certain
    assert flow.reports_sent[0].possible[0].elements == ()


def test_sd_beyond_the_announced_credit_is_taken_if_more_was_on_its_way_out() -> None:
    story = StpStory(credit=4).opened().tester(SD, 0).tester(SD, 5, after=0.1)
    story.iut(STAT, 1, n_ps=0, timestamp=0, n_mr=8, after=0.01)
    story.tester(POLL, 6, n_ps=1, timestamp=3, after=0.1)
    story.iut(STAT, 1, n_ps=1, timestamp=3, n_mr=8, elements=(1, 5, 6))
    flow = story.flow()
    assert not flow.sds_heard[1].discarded
    assert flow.receiver is not None and flow.receiver.reception.elements() == (1, 5, 6)


def test_sds_between_begin_and_bgak_are_taken() -> None:
    story = StpStory().asked().tester(BEGIN, data=b"first", after=0.6).tester(SD, 1, after=0.01)
    flow = story.iut(BGAK, 1, after=0.01).flow()
    assert flow.state == State.OPEN
    assert flow.receiver is not None and flow.receiver.reception.vr_r == 2


def test_begin_without_a_cookie_opens_nothing() -> None:
    story = StpStory().tester(BEGIN, cookie=None, data=b"first").iut(BGREJ, reason=6, after=0.01)
    flow = story.tester(SD, 1, after=0.01).flow()
    assert (flow.state, flow.receiver, flow.established) == (State.IDLE, None, None)


def test_call_anew_is_a_flow_of_its_own() -> None:
    story = StpStory().called(b"first")
    old, new = read_flows(story.trace())
    assert (old.ended, new.state) == (0.6, State.OPEN)
    assert new.begins[0].stp.cookie in new.ledger.handed


def test_ledger_tells_what_a_cookie_is_worth() -> None:
    story = StpStory().opened().tester(END, flags=A, reason=1, after=1.0).iut(ENDAK)
    story.tester(BEGIN, csn=TESTER_CSN + 9, after=1.0)
    story.tester(BEGIN, csn=TESTER_CSN + 10, cookie=COOKIES[1], after=1.0)
    story.tester(BEGIN, csn=TESTER_CSN + 11, cookie=b"x" + COOKIES[1][1:], after=1.0)
    story.tester(BEGIN, csn=TESTER_CSN + 12, cookie=bytes(range(8)), after=1.0)
    flows = read_flows(story.trace())
    begins = [at for flow in flows for at in flow.heard_of(BEGIN) if at.time > 1.5]
    worth = [flows[-1].ledger.standing(at).worth for at in begins]
    assert worth == [Worth.USED, Worth.GOOD, Worth.FORGED, Worth.UNKNOWN]


def test_iut_calls_credit_and_numbers_come_from_the_bgak() -> None:
    story = StpStory(credit=10).called().iut(SD, 0).tester(SD, 0)
    flow = story.flow()
    assert flow.iut_calls
    assert flow.state == State.OPEN
    assert flow.sds_sent[0].vt_ms == 10
    assert flow.sds_heard[0].vr_mr == 10


def test_release_and_abort_end_the_connection() -> None:
    story = StpStory().opened().tester(SD, 0, flags=FIN).iut(SD, 0, flags=FIN)
    story.iut(END, 1)
    assert story.flow().state == State.RELEASING
    story.tester(ENDAK)
    assert story.flow().state == State.IDLE
    aborted = StpStory().opened().tester(END, flags=A, reason=1).flow()
    assert aborted.state == State.IDLE
    assert aborted.ended is not None
    forged = StpStory().opened().tester(END, flags=A, reason=1, csn=5).flow()
    assert forged.state == State.OPEN


def test_packets_without_any_connection_make_a_flow_of_their_own() -> None:
    story = StpStory().tester(POLL, 1).iut(END, flags=A | 8, reason=2, csn=0, seq=0, tag=0)
    (flow,) = read_flows(story.trace())
    assert flow.iut_csn is None
    assert flow.established is None
    assert [event.state for event in flow.others] == [State.IDLE, State.IDLE]


def test_refused_call_is_a_flow_that_never_opened() -> None:
    flow = StpStory().tester(BEGIN).iut(BGREJ).flow()
    assert flow.established is None
    assert flow.state == State.IDLE


def test_wrong_checksum_and_wrong_tag_are_ignored() -> None:
    story = StpStory().opened().tester(SD, 0, broken_checksum=True).tester(SD, 0, tag=7)
    flow = story.flow()
    assert flow.sds_heard == []
    assert [bool(event.ignored) for event in flow.others[-2:]] == [True, True]


def test_sdp_is_an_sd_and_a_poll() -> None:
    flow = StpStory().opened().tester(SDP, 0, n_ps=4, timestamp=9).iut(SDP, 0, n_ps=1).flow()
    assert flow.polls_heard[0].n_s == 1
    assert flow.polls_heard[0].after.vr_r == 1
    assert (flow.sds_sent[0].stamp, flow.polls_sent[0].n_s) == (0, 1)


def test_second_connection_on_the_same_ports_is_another_flow() -> None:
    story = StpStory().opened().tester(END, flags=A).iut(ENDAK)
    story.tester(BEGIN, csn=0x12345679, tag=0x5679, after=0.1)
    story.iut(BGAK, csn=3, peer_csn=0x12345679, tag=3, seq=77)
    _, first, second = read_flows(story.trace())
    assert (first.iut_csn, second.iut_csn) == (0xFFFFFFFF, 3)
    assert [len(first.packets), len(second.packets)] == [4, 2]


def test_later_call_displaces_an_open_connection() -> None:
    story = StpStory().opened().tester(BEGIN, csn=TESTER_CSN + 9, cookie=COOKIES[1], after=1.0)
    story.iut(BGAK, csn=5, peer_csn=TESTER_CSN + 9)
    _, old, new = read_flows(story.trace())
    assert old.displaced_by is new.opener
    assert (old.state, old.ended, new.state) == (None, story.at, State.OPEN)
    assert old.neighbours == new.neighbours


def test_poll_with_another_csn_is_ignored_with_its_sd() -> None:
    story = StpStory().opened()
    for kind in (POLL, SDP):
        story.tester(kind, 0, csn=TESTER_CSN ^ 1 << 16, tag=TESTER_CSN & 0xFFFF, after=0.1)
        story.tester(kind, 0, n_ps=0, after=0.1)
    flow = story.flow()
    assert (flow.polls_heard, flow.sds_heard) == ([], [])
    assert all(event.ignored for event in flow.others[-4:])


def test_bgak_that_acknowledges_what_was_not_sent_opens_no_call() -> None:
    story = StpStory().iut(BEGIN).tester(BGAK, 1, after=0.6).iut(BEGIN, after=0.4)
    assert story.flow().state == State.CALLING
    assert story.tester(BGAK, 0, after=0.6).flow().state == State.OPEN
