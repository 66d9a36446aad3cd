"""Opening, confirming, releasing and aborting: scripts against one endpoint."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events, StreamError
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    End,
    Endak,
    Flags,
    Packet,
    Poll,
    Sd,
    Sdp,
    Stat,
)
from bentpipe_reference.stp.sequence import PACKET_MASK, newer
from bentpipe_reference.stp.states import State

ISS, PEER_ISS = 5000, 900_000
OWN_CSN, PEER_CSN = 0x7777_1234, 0x0009_8765
A, R, V = int(Flags.A), int(Flags.R), int(Flags.V)
PEER = ("peer", 1)


def test_idle_call_with_a_cookie_carries_early_data_within_the_early_credit(stp: Any) -> None:
    script = stp()
    sent = script.call(bytes(5000))
    begin, *sds = sent
    assert isinstance(begin, Begin) and begin.cookie == b"a cookie of the peer's"
    assert len(begin.data) == 1000 and begin.max_sd >= 512 and begin.n_mr >= 4
    assert [sd.n_s for sd in sds] == [ISS + 1, ISS + 2, ISS + 3]
    assert [type(sd) for sd in sds] == [Sd] * 3 and {len(sd.data) for sd in sds} == {1000}


def test_idle_call_without_a_cookie_is_empty(stp: Any) -> None:
    script = stp()
    (begin,) = script.call(bytes(5000), close=True, known=False)
    assert (begin.data, begin.flags, begin.cookie) == (b"", 0, None)
    assert {packet for _, packet in script.run(until=14.0)} == {begin}


def test_begin_with_a_cookie_fits_into_a_packet_of_the_path(stp: Any) -> None:
    script = stp()
    script.know(bytes(range(32)), max_sd=9000)
    begin, *sds = script.call(bytes(9000), known=False)
    assert len(encode(begin)) == 1500 - 28
    assert {len(encode(sd)) for sd in sds} == {1500 - 28 - 12}, "an SDP would still fit"


def test_outgoing_cookie_makes_it_call_anew_from_the_beginning(stp: Any) -> None:
    script = stp()
    begin, *_ = script.call(bytes(range(200)) * 20)
    script.now = 0.6
    bgrej = script.bgrej(reason=6, cookie=b"the next one", max_sd=600)
    anew, *sds = script.arrive(bgrej)
    assert newer(anew.csn, begin.csn) and anew.tag == anew.csn & 0xFFFF
    assert anew.cookie == b"the next one" and len(anew.data) == 600
    assert anew.data + b"".join(sd.data for sd in sds) == (bytes(range(200)) * 20)[:2400]
    assert {sd.tag for sd in sds} == {anew.tag}
    assert script.connection.outgoing.rtt.srtt == pytest.approx(0.6)
    assert script.arrive(bgrej) == [], "it answers the first BEGIN"
    (end,) = script.arrive(script.bgak())
    assert isinstance(end, End) and end.flags == A | R and script.state is State.OUTGOING


def test_outgoing_call_begins_anew_five_times_at_most(stp: Any) -> None:
    script = stp()
    (begin,) = script.call(b"data", known=False)
    for step in range(5):
        bgrej = script.bgrej(reason=6, peer_csn=begin.csn, cookie=b"cookie %d" % step)
        (again,) = script.arrive(bgrej)
        assert again.cookie == bgrej.cookie and again.csn != begin.csn
        begin = again
    assert script.arrive(script.bgrej(reason=6, peer_csn=begin.csn, cookie=b"cookie 6")) == []
    assert script.state is State.IDLE and script.connection.failure


def test_outgoing_call_anew_restarts_timer_cc(stp: Any) -> None:
    script = stp()
    script.call(b"data", known=False)
    script.run(until=2.5)
    (begin,) = script.arrive(script.bgrej(reason=6, cookie=b"a cookie"))
    times = [at for at, packet in script.run(until=30.0) if packet == begin]
    assert times == pytest.approx([3.5, 5.5, 9.5, 17.5])
    assert script.connection.outgoing.rtt.srtt is None, "the first BEGIN has been sent twice"


def test_cookies_are_used_once(stp: Any) -> None:
    script = stp()
    for step in range(3):
        script.know(b"cookie %d" % step)
    begins = []
    for port in (20, 21, 22, 23):
        script.endpoint.connect(PEER, port, 9)
        begins += script.flush()
    used = [b"cookie 0", b"cookie 1", b"cookie 2", None]
    assert [begin.cookie for begin in begins] == used


def test_cookie_of_a_bgak_begins_the_next_call(stp: Any) -> None:
    script = stp()
    script.called(cookie=b"for the next").abort(0.0)
    script.arrive(script.endak())
    (begin, *_) = script.call(b"data", known=False)
    assert begin.cookie == b"for the next" and begin.data == b"data"


@pytest.mark.parametrize(("pause", "used"), [(599.0, True), (601.0, False)])
def test_cookie_is_used_for_ten_minutes(stp: Any, pause: float, used: bool) -> None:
    script = stp()
    script.know()
    script.now = pause
    assert (script.call(b"data", known=False)[0].cookie is not None) == used


def test_calls_set_v_with_their_cookies_until_one_has_opened(stp: Any) -> None:
    script = stp()
    begin, *_ = script.call(b"data", known=False)
    assert begin.flags == 0, "there is no cookie yet"
    anew, *_ = script.arrive(script.bgrej(reason=6, peer_csn=begin.csn, cookie=b"a cookie"))
    assert anew.flags == V
    script.arrive(script.bgak(peer_csn=anew.csn, cookie=b"for the next"))
    script.endpoint.connect(PEER, 20, 9)
    begin, *_ = script.flush()[-1:]
    assert (begin.flags, begin.cookie) == (0, b"for the next")


def test_call_that_fails_makes_the_next_ones_set_v(stp: Any) -> None:
    script = stp()
    script.called().abort(0.0)
    script.arrive(script.endak())
    failing = script.call(known=False)[0]
    script.arrive(script.bgrej(peer_csn=failing.csn))
    assert script.state is State.IDLE
    script.know()
    begin, *_ = script.call(known=False)
    assert begin.cookie is not None and begin.flags == V


def test_call_without_a_cookie_that_fails_spoils_nothing(stp: Any) -> None:
    script = stp()
    (begin, *_) = script.call(known=False)
    script.know(b"from another call")
    script.arrive(script.bgrej(peer_csn=begin.csn))
    assert script.call(known=False)[0].cookie == b"from another call"


def test_call_made_before_another_failed_sets_v_as_if_it_had_not(stp: Any) -> None:
    script = stp()
    script.called(cookie=b"the first").abort(0.0)
    script.arrive(script.endak())
    script.know()
    for port in (20, 21):
        script.endpoint.connect(PEER, 4000, port)
    early, failing = (item for item in script.flush() if isinstance(item, Begin))
    assert early.cookie and failing.cookie and not early.flags and not failing.flags
    script.arrive(script.bgrej(dport=21, peer_csn=failing.csn))
    bgrej = script.bgrej(dport=20, peer_csn=early.csn, reason=6, cookie=b"the next one")
    (anew,) = script.arrive(bgrej)
    assert anew.cookie == b"the next one" and anew.flags == 0


def test_call_made_before_another_failed_does_not_end_the_setting_of_v(stp: Any) -> None:
    script = stp()
    for port in (20, 21):
        script.know()
        script.endpoint.connect(PEER, 4000, port)
    early, failing = (item for item in script.flush() if isinstance(item, Begin))
    assert (early.flags, failing.flags) == (V, V)
    script.arrive(script.bgrej(dport=21, peer_csn=failing.csn))
    script.arrive(script.bgak(dport=20, peer_csn=early.csn))
    script.know()
    begin, *_ = script.call(known=False)
    assert begin.cookie is not None and begin.flags == V


def test_call_that_fails_spoils_the_cookies_of_answers_to_earlier_begins(stp: Any) -> None:
    script = stp()
    for port in (20, 21):
        script.know()
        script.endpoint.connect(PEER, 4000, port)
    early, failing = script.flush()
    script.know()
    script.arrive(script.bgrej(dport=21, peer_csn=failing.csn))
    bgrej = script.bgrej(dport=20, peer_csn=early.csn, reason=6, cookie=b"much too old")
    (anew,) = script.arrive(bgrej)
    assert anew.csn != early.csn and anew.cookie == b"much too old", "STP-CC-037: always"
    bgak = script.bgak(dport=20, peer_csn=anew.csn, cookie=b"new enough")
    script.arrive(bgak)
    assert [begin.cookie for begin in script.call(known=False)] == [b"new enough"]


def test_cookie_of_an_open_connection_survives_its_abort(stp: Any) -> None:
    script = stp()
    script.called().abort(0.0)
    script.arrive(script.endak())
    assert script.call(known=False)[0].cookie is not None


def test_cookie_of_another_address_is_not_used(stp: Any) -> None:
    script = stp()
    script.know()
    script.endpoint.connect(("peer", 2), 7, 7)
    assert script.flush()[0].cookie is None


def test_outgoing_begin_is_repeated_as_it_was_and_given_up(stp: Any) -> None:
    script = stp()
    first = script.call(b"data")[0]
    script.connection.write(b"later data")
    sent = [item for item in script.run(until=100.0) if isinstance(item[1], Begin)]
    assert [packet for _, packet in sent] == [first] * 4
    assert [time for time, _ in sent] == pytest.approx([1, 3, 7, 15])
    ends = [item for item in script.sent if isinstance(item[1], End)]
    assert [time for time, _ in ends] == pytest.approx([31, 32, 34, 38, 46])
    assert {(end.flags, end.reason, end.peer_csn) for _, end in ends} == {(A, 7, 0)}
    assert script.connection.failure == "the peer does not answer" and script.state is State.IDLE
    assert not script.endpoint.connections


def test_outgoing_sends_nothing_by_timer_but_the_begin(stp: Any) -> None:
    script = stp()
    script.call(bytes(5000))
    assert {type(packet) for _, packet in script.run(until=20.0)} == {Begin}


def test_outgoing_bgak_that_covers_the_data_acknowledges_it(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    answers = script.arrive(script.bgak(n_r=ISS + 1))
    assert answers == [] and not script.connection.outgoing.sender.unacknowledged
    sent = [packet for _, packet in script.run(until=500.0)]
    assert sent == []


def test_outgoing_bgak_that_does_not_cover_the_data_makes_it_poll(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    assert [type(packet) for packet in script.arrive(script.bgak())] == [Poll]
    again = script.arrive(script.stat(0, 1, [0, 1]))
    assert [(sd.n_s, sd.data) for sd in again if isinstance(sd, Sd)] == [(ISS, b"data")]


def test_outgoing_bgak_with_impossible_numbers_is_discarded_or_corrected(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    for n_r in (ISS + 2, ISS - 1):
        assert script.arrive(script.bgak(n_r=n_r)) == [] and script.state is State.OUTGOING
    script.arrive(script.bgak(n_mr=ISS - 5, max_sd=0))
    sender = script.connection.outgoing.sender
    assert (sender.vt_a, sender.vt_ms, sender.max_sd) == (ISS, ISS + 4, 512)


def test_outgoing_refuses_a_call_between_the_same_ports(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    for _ in range(20):
        (bgrej,) = script.arrive(script.begin(cookie=script.cookie()))
        assert (bgrej.reason, bgrej.peer_csn) == (3, PEER_CSN), "STP-CC-043 knows no limit"
    assert script.state is State.OUTGOING


def test_begin_without_a_cookie_is_given_one_and_keeps_nothing(stp: Any) -> None:
    script = stp()
    for bad in ({}, {"cookie": b"forged forged fo"}, {"cookie": bytes(8)}):
        (bgrej,) = script.arrive(script.begin(data=b"data", **bad))
        assert (bgrej.reason, bgrej.peer_csn, bgrej.tag) == (6, PEER_CSN, 0)
        assert bgrej.max_sd >= 512 and not script.endpoint.connections
    bgak, *_ = script.arrive(script.begin(csn=PEER_CSN + 1, data=b"data", cookie=bgrej.cookie))
    assert isinstance(bgak, Bgak) and bgak.n_r == PEER_ISS + 1
    assert script.connection.read() == b"data"


def test_used_cookie_opens_nothing_again(stp: Any) -> None:
    script = stp()
    begin = script.begin(data=b"once", cookie=script.cookie())
    (bgak,) = script.arrive(begin)
    assert script.connection.read() == b"once"
    script.arrive(script.end(flags=A, peer_csn=bgak.csn))
    for now in (0.0, 599.0, 899.0):
        script.now = now
        (end,) = script.arrive(begin)
        assert isinstance(end, End) and end.flags == A | R and end.n_r == 0
        assert (end.csn, end.tag, end.peer_csn) == (0, 0, PEER_CSN)
    script.now = 900.1
    (bgrej,) = script.arrive(begin)
    assert bgrej.reason == 6 and not script.endpoint.connections


def test_cookie_older_than_one_used_is_good(stp: Any) -> None:
    script = stp()
    old, new = script.cookie(), script.cookie()
    script.arrive(script.begin(sport=4001, cookie=new))
    assert isinstance(script.arrive(script.begin(cookie=old))[0], Bgak)


def test_cookie_older_than_that_of_a_begin_with_v_is_not_good(stp: Any) -> None:
    script = stp()
    old, new = script.cookie(), script.cookie()
    script.arrive(script.begin(sport=4001, cookie=new, flags=V))
    (bgrej,) = script.arrive(script.begin(cookie=old))
    assert bgrej.reason == 6
    assert isinstance(script.arrive(script.begin(cookie=bgrej.cookie))[0], Bgak)


@pytest.mark.parametrize(("pause", "good"), [(600.0, True), (600.1, False)])
def test_cookie_is_good_for_ten_minutes(stp: Any, pause: float, good: bool) -> None:
    script = stp()
    cookie = script.cookie()
    script.now = pause
    (answer,) = script.arrive(script.begin(cookie=cookie))
    assert isinstance(answer, Bgak) == good


def test_call_is_refused_while_used_cookies_fill_the_memory_for_them(stp: Any) -> None:
    script = stp(used_cookies=2)
    for step in range(2):
        script.ready(csn=PEER_CSN + step)
        script.arrive(script.end(flags=A, csn=PEER_CSN + step, peer_csn=0, tag=0))
        script.now += 10.0
    (bgrej,) = script.arrive(script.begin(cookie=script.cookie()))
    assert bgrej.reason == 5
    script.now = 900.1
    assert isinstance(script.arrive(script.begin(cookie=script.cookie()))[0], Bgak)


@pytest.mark.parametrize("complete_before", [False, True])
def test_later_call_replaces_the_connection(stp: Any, complete_before: bool) -> None:
    script = stp()
    old = script.ready()
    if complete_before:
        complete(script, old)
    script.endpoint.take_events()
    (bgak,) = script.arrive(script.begin(csn=PEER_CSN + 9, data=b"new", cookie=script.cookie()))
    assert isinstance(bgak, Bgak) and bgak.peer_csn == PEER_CSN + 9 and bgak.csn != old.csn
    events = dict(script.endpoint.take_events())
    new = script.connection
    assert new is not old and new.read() == b"new" and events[new] & Events.ACCEPTED
    assert bool(old.failure) != complete_before
    assert bool(events.get(old, Events.NONE) & Events.FAILED) != complete_before


def test_begin_with_more_data_than_max_sd_gets_no_answer(stp: Any) -> None:
    script = stp(max_sd=512)
    cookie = script.cookie()
    begin = script.begin(data=bytes(513), cookie=cookie)
    assert script.arrive(begin) == [] and not script.endpoint.connections
    old = script.ready(cookie=cookie)
    begin = script.begin(csn=PEER_CSN + 9, data=bytes(513), cookie=script.cookie())
    assert script.arrive(begin) == [] and script.connection is old and not old.is_over


def test_connection_that_is_replaced_makes_room_for_the_new_one(stp: Any) -> None:
    script = stp(receive_memory=4 * 1400, max_sd=1400, max_connections=1)
    old = script.ready()
    assert script.endpoint._memory.free == 0
    (bgrej,) = script.arrive(script.begin(sport=4001, cookie=script.cookie()))
    assert bgrej.reason == 5 and script.connection is old
    (bgak,) = script.arrive(script.begin(csn=PEER_CSN + 9, cookie=script.cookie()))
    assert isinstance(bgak, Bgak) and bgak.peer_csn == PEER_CSN + 9 and old.failure


def test_forged_call_does_not_replace_the_connection(stp: Any) -> None:
    script = stp()
    old = script.ready()
    (bgrej,) = script.arrive(script.begin(csn=PEER_CSN + 9, cookie=bytes(16)))
    assert bgrej.reason == 6 and script.connection is old and not old.is_over


def test_own_connection_numbers_rise() -> None:
    endpoint = StpEndpoint(StpConfig(csn=2**32 - 3), 1)
    csns = [endpoint.connect(PEER, 9).csn for _ in range(50)]
    assert all(newer(later, earlier) for earlier, later in pairwise(csns))


def test_numbers_of_one_peer_tell_nothing_about_those_of_another() -> None:
    endpoint = StpEndpoint(StpConfig(), 1)
    csns = {host: [endpoint.connect((host, 1), 9).csn for _ in range(5)] for host in range(200)}
    for rising in csns.values():
        assert all(newer(later, earlier) for earlier, later in pairwise(rising))
    firsts = sorted(rising[0] for rising in csns.values())
    assert firsts[-1] - firsts[0] > 1 << 31, "spread over the whole range"
    assert [rising[0] for rising in csns.values()] != firsts


def test_ready_connection_answers_its_begin_again(stp: Any) -> None:
    script = stp()
    script.ready(data=b"once")
    (bgak,) = script.arrive(script.begin(data=b"once", cookie=b"any cookie"))
    assert bgak.flags == 0 and bgak.n_r == PEER_ISS + 1
    assert script.connection.read() == b"once"


def test_repeated_begin_is_told_the_credit_announced_last(stp: Any) -> None:
    script = stp(credit=4)
    connection = script.ready()
    script.arrive(script.sd(0), script.sd(1))
    assert connection.read()
    (bgak,) = script.arrive(script.begin(cookie=b"any cookie"))
    assert (bgak.n_r, bgak.n_mr) == (PEER_ISS + 2, PEER_ISS + 4)
    (stat,) = script.arrive(script.poll(2, 1))
    assert stat.n_mr == PEER_ISS + 6


def test_begin_that_permits_less_than_four_sds_permits_four(stp: Any) -> None:
    script = stp()
    script.ready(n_mr=0).write(bytes(50_000))
    assert len(script.of(Sd, script.flush()) + script.of(Sdp, script.sent[-1:])) <= 4
    assert script.connection.outgoing.sender.vt_ms == ISS + 4


def complete(script: Any, connection: Any) -> list[Packet]:
    """Both streams end; what the endpoint sends at the moment when it is complete."""
    connection.write(b"ours")
    connection.close()
    script.arrive(script.fin(0, b"theirs"))
    script.endpoint.take_events()
    sent: list[Packet] = script.arrive(script.stat(connection.outgoing.sender.vt_s - ISS, 1))
    return sent


def test_caller_complete_releases_at_once(stp: Any) -> None:
    script = stp()
    connection = script.called()
    (end,) = [p for p in complete(script, connection) if not isinstance(p, Poll)]
    assert isinstance(end, End) and (end.flags, end.reason, end.n_r) == (0, 0, PEER_ISS + 1)
    assert (end.csn, end.peer_csn) == (OWN_CSN, PEER_CSN)
    ((_, events),) = script.endpoint.take_events()
    assert events & Events.ENDED and connection.succeeded
    assert connection.read() == b"theirs", "what was delivered can still be read"
    script.arrive(script.endak())
    assert script.state is State.IDLE and script.run(until=100.0) == []


def test_called_complete_leaves_the_release_to_the_caller(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    assert complete(script, connection) == [] and script.state is State.READY
    ((_, events),) = script.endpoint.take_events()
    assert events & Events.ENDED and connection.succeeded, "success does not wait for the END"
    script.run(until=0.9)
    (stat,) = script.arrive(script.poll(1, 7))
    assert isinstance(stat, Stat) and (stat.n_ps, stat.n_r) == (7, PEER_ISS + 1)
    assert connection.read() == b"theirs"
    (answer,) = script.arrive(script.end(n_r=ISS + 1))
    assert isinstance(answer, Endak) and script.state is State.IDLE
    assert script.run(until=100.0) == [] and script.endpoint.take_events() == []


@pytest.mark.parametrize(("rtt", "path_class"), [(0.1, "geo"), (1.9, "geo"), (0.6, "vbdc")])
def test_called_complete_whose_caller_is_silent_releases_itself(
    stp: Any, rtt: float, path_class: str
) -> None:
    script = stp(path_class=path_class)
    connection = script.ready()
    connection.close()
    script.arrive(script.fin(0))
    script.now = rtt
    script.arrive(script.stat(1, 1))
    assert connection.succeeded
    timer = connection.config.timer_cc
    first = rtt + max(timer, rtt + 4 * rtt / 2)
    ends = [(at, packet) for at, packet in script.run(until=200.0) if isinstance(packet, End)]
    times = [first + timer * waited for waited in (0, 1, 3, 7, 15)]
    assert [at for at, _ in ends] == pytest.approx(times)
    assert {(end.flags, end.n_r) for _, end in ends} == {(0, PEER_ISS + 1)}
    assert script.state is State.IDLE


def test_called_complete_stays_until_the_end_comes(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    complete(script, connection)
    script.endpoint.take_events()
    (stat,) = script.arrive(script.poll(1, 7))
    assert isinstance(stat, Stat), "the caller may not know yet that everything has arrived"
    assert script.arrive(script.end(flags=A | R, csn=0, tag=0)) == []
    assert script.state is State.IDLE and connection.failure is None
    assert script.endpoint.take_events() == [], "the user has been told already"


def test_abort_that_comes_with_the_last_acknowledgment_is_a_success(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.close()
    script.arrive(script.fin(0))
    for packet in (script.stat(1, 1), script.end(flags=A)):
        script.endpoint.receive(encode(packet), PEER, script.now)
    assert connection.succeeded and not connection.failure


def test_called_complete_abort_changes_nothing(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    complete(script, connection)
    connection.abort(script.now)
    assert script.flush() == [] and connection.succeeded and script.state is State.READY


def test_release_is_repeated_and_then_over(stp: Any) -> None:
    script = stp()
    connection = script.called()
    complete(script, connection)
    ends = [time for time, packet in script.run(until=100.0) if isinstance(packet, End)]
    assert ends == pytest.approx([1, 3, 7, 15]) and script.state is State.IDLE
    assert connection.succeeded


def test_after_the_release_nothing_but_the_end_is_sent(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(bytes(50_000))
    script.flush()
    connection.abort(script.now)
    script.flush()
    assert script.arrive(script.poll(5, 1), script.sd(7), script.stat(0, 1, [0, 1])) == []
    assert {type(packet) for _, packet in script.run(until=50.0)} == {End}


def test_half_close_leaves_the_other_direction_open(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    script.arrive(script.fin(0, b"request"))
    assert connection.peer_has_closed
    connection.write(b"answer")
    (sdp,) = script.flush()
    assert sdp.data == b"answer" and sdp.flags == 0
    connection.close()
    (fin,) = script.flush()
    assert fin.flags == 1 and fin.n_s == ISS + 1
    with pytest.raises(StreamError, match="closed"):
        connection.write(b"more")


def test_premature_end_is_an_abort(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(b"unacknowledged")
    connection.close()
    script.flush()
    script.arrive(script.fin(0))
    (answer,) = script.arrive(script.end(n_r=ISS))
    assert isinstance(answer, Endak)
    assert connection.failure and not connection.succeeded
    with pytest.raises(StreamError, match="over"):
        connection.write(b"more")


def test_abort_in_state_2_names_no_peer(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    script.connection.abort(script.now)
    (end,) = script.flush()
    assert (end.flags, end.reason, end.peer_csn, end.n_r) == (A, 1, 0, 0)
    assert script.state is State.OUTGOING_RELEASE
    script.arrive(script.endak())
    assert script.state is State.IDLE


def test_abort_before_anything_was_sent_sends_nothing(stp: Any) -> None:
    script = stp()
    connection = script.endpoint.connect(PEER, 4000, 9)
    connection.abort(0.0)
    assert script.flush() == [] and script.state is State.IDLE and connection.failure


def test_crossing_ends_release_both_sides(stp: Any) -> None:
    script = stp()
    script.ready().abort(script.now)
    script.flush()
    (answer,) = script.arrive(script.end())
    assert isinstance(answer, Endak) and script.state is State.IDLE


def test_write_takes_what_there_is_room_for_and_tells_of_room(stp: Any) -> None:
    script = stp(send_buffer=3000)
    connection = script.ready()
    assert connection.write(bytes(5000)) == 3000 and connection.write_room == 0
    script.endpoint.take_events()
    script.flush()
    ((_, events),) = script.endpoint.take_events()
    assert events & Events.WRITABLE and connection.write_room == 3000


def test_every_packet_of_a_connection_has_its_tag_and_checksum(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(bytes(3000))
    script.arrive(script.sd(2), script.sdp(0, 1))
    connection.abort(script.now)
    script.flush()
    packets: list[Packet] = [packet for _, packet in script.sent]
    assert {packet.tag for packet in packets} == {OWN_CSN & 0xFFFF}
    assert all(decode(encode(packet)) == packet for packet in packets)


def test_wrong_tag_changes_nothing(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    assert script.arrive(script.sd(0, tag=1), script.poll(9, 1, tag=1)) == []
    assert connection.readable == 0 and connection.receiver.vr_h == PEER_ISS


def test_connection_to_the_same_port_from_the_same_port_is_refused_locally(stp: Any) -> None:
    script = stp()
    script.call()
    with pytest.raises(ValueError, match="already"):
        script.endpoint.connect(PEER, 4000, 9)


def test_unwrapped_iss_and_peer_iss_may_be_the_last_numbers(stp: Any) -> None:
    script = stp(iss=PACKET_MASK)
    script.ready(iss=PACKET_MASK, data=b"a")
    assert script.connection.read() == b"a"
    assert script.connection.receiver.vr_r == PACKET_MASK + 1
