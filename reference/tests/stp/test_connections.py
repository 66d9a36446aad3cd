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
C, A, R = int(Flags.C), int(Flags.A), int(Flags.R)
PEER = ("peer", 1)


def test_idle_call_carries_early_data_within_the_early_credit(stp: Any) -> None:
    script = stp()
    sent = script.call(bytes(5000))
    begin, *sds = sent
    assert isinstance(begin, Begin) and len(begin.data) == 512 and begin.max_sd >= 512
    assert begin.n_mr >= 4
    assert [sd.n_s for sd in sds] == [ISS + 1, ISS + 2, ISS + 3]
    assert [type(sd) for sd in sds] == [Sd, Sd, Sdp] and {len(sd.data) for sd in sds} == {512}


def test_outgoing_begin_is_repeated_as_it_was_and_given_up(stp: Any) -> None:
    script = stp()
    first = script.call(b"data")[0]
    script.connection.write(b"later data")
    sent = [item for item in script.run(until=100.0) if isinstance(item[1], Begin)]
    assert [packet for _, packet in sent] == [first] * 4
    assert [time for time, _ in sent] == pytest.approx([1, 3, 7, 15])
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
    script.arrive(script.sd(0))
    sent = [packet for _, packet in script.run(until=100.0)]
    assert Poll not in map(type, sent), "the peer has shown itself (STP-CC-030)"


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


def test_abort_in_state_2_is_repeated_with_the_peers_number_once_known(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    script.connection.abort(script.now)
    script.flush()
    (end,) = script.arrive(script.bgak(flags=C))
    assert (end.flags, end.reason, end.peer_csn) == (A, 1, PEER_CSN)
    assert script.arrive(script.bgak(flags=C)) == []
    (again, *_) = [packet for _, packet in script.run(until=5.0)]
    assert again == end


def test_caller_polls_until_the_peer_shows_itself(stp: Any) -> None:
    script = stp()
    script.call(b"data")
    script.now = 0.6
    script.arrive(script.bgak(n_r=ISS + 1))
    (first, *_) = script.run(until=2.0)
    assert isinstance(first[1], Poll) and 0.6 < first[0] <= 0.8 + 1e-6
    script.arrive(script.poll(0, 1), script.bgak(n_r=ISS + 1))
    assert script.run(until=300.0) == []


def test_both_call_at_once_and_get_one_connection() -> None:
    near, far = (StpEndpoint(StpConfig(), seed) for seed in (1, 2))
    a, b = near.connect(PEER, 20, 10), far.connect(PEER, 10, 20)
    a.write(b"from a")
    b.write(b"from b")
    now = 0.0
    for _ in range(40):
        there, back = near.transmit(now), far.transmit(now)
        now += 0.1
        for _, octets in there:
            far.receive(octets, PEER, now)
        for _, octets in back:
            near.receive(octets, PEER, now)
    assert a.read() == b"from b" and b.read() == b"from a"
    assert (a.peer_csn, b.peer_csn) == (b.csn, a.csn)
    assert a.state is b.state is State.READY


def test_incoming_is_forgotten_after_half_a_minute(stp: Any) -> None:
    script = stp()
    script.arrive(script.begin(data=b"data"))
    assert script.run(until=31.9) == [] and script.state is State.INCOMING
    assert script.run(until=32.1) == [] and script.state is State.IDLE
    assert script.endpoint.take_events() == [] and script.endpoint.next_deadline() is None


def test_known_peer_is_accepted_at_once_and_not_twice(stp: Any) -> None:
    script = stp()
    script.ready()
    script.arrive(script.end(flags=A))
    begin = script.begin(csn=PEER_CSN + 1, data=b"at once")
    (bgak,) = script.arrive(begin)
    assert isinstance(bgak, Bgak) and bgak.flags == 0 and bgak.n_r == PEER_ISS + 1
    assert script.connection.read() == b"at once"
    own = bgak.csn
    script.arrive(script.end(flags=A, csn=PEER_CSN + 1, peer_csn=own, tag=0))
    assert script.state is State.IDLE
    (bgak,) = script.arrive(begin)
    assert bgak.flags == C, "the same BEGIN again may be an old copy"
    assert script.connection.read() == b""


def test_known_peer_is_remembered_for_ten_minutes(stp: Any) -> None:
    for pause, flags in ((599.0, 0), (601.0, C)):
        script = stp()
        script.ready()
        script.arrive(script.end(flags=A))
        script.now += pause
        assert script.arrive(script.begin(csn=PEER_CSN + 1))[0].flags == flags


def test_peer_of_a_long_connection_stays_known(stp: Any) -> None:
    script = stp()
    script.ready()
    script.now = 5000.0
    other = script.begin(csn=PEER_CSN + 1, sport=4001)
    assert script.arrive(other)[0].flags == 0


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
    script.arrive(script.begin(data=b"once"))
    script.arrive(script.bgak())
    (bgak,) = script.arrive(script.begin(data=b"once"))
    assert bgak.flags == 0 and bgak.n_r == PEER_ISS + 1
    assert script.connection.read() == b"once"


def test_ready_challenges_at_most_once_per_second(stp: Any) -> None:
    script = stp()
    script.ready()
    answered = []
    for tenth in range(25):
        script.now = tenth / 10
        answered += [script.now] * len(script.arrive(script.begin(csn=PEER_CSN + 5)))
    assert answered == [0.0, 1.0, 2.0]
    assert script.state is State.READY


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


def test_caller_whose_begin_crossed_another_releases_at_once(stp: Any) -> None:
    script = stp()
    script.call()
    script.arrive(script.begin())
    script.arrive(script.bgak(flags=C))
    assert script.of(End, complete(script, script.connection))


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


@pytest.mark.parametrize(("rtt", "path_class"), [(0.1, "geo"), (0.6, "geo"), (0.6, "vbdc")])
def test_called_complete_whose_caller_is_silent_releases_itself(
    stp: Any, rtt: float, path_class: str
) -> None:
    script = stp(path_class=path_class)
    script.arrive(script.begin())
    script.now = rtt
    script.arrive(script.bgak())
    connection = script.connection
    connection.close()
    script.arrive(script.fin(0))
    script.now = 2 * rtt
    # Of the two equal measurements the second takes a quarter off the deviation.
    deviation = rtt / 2 * 3 / 4
    wait = max(connection.config.timer_cc, 1.0, rtt + 4 * deviation + rtt / 3)
    script.arrive(script.stat(1, 1))
    ends = [(at, packet) for at, packet in script.run(until=100.0) if isinstance(packet, End)]
    timer = connection.config.timer_cc
    first = 2 * rtt + wait
    times = [first + timer * waited for waited in (0, 1, 3, 7, 15)]
    assert [at for at, _ in ends] == pytest.approx(times)
    assert {(end.flags, end.n_r) for _, end in ends} == {(0, PEER_ISS + 1)}
    assert connection.succeeded and script.state is State.IDLE


def test_called_complete_survives_a_begin_until_the_caller_knows(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    complete(script, connection)
    script.endpoint.take_events()
    (challenge,) = script.arrive(script.begin(csn=PEER_CSN + 5))
    assert isinstance(challenge, Bgak) and challenge.flags == C
    assert (challenge.csn, challenge.peer_csn) == (OWN_CSN, PEER_CSN)
    (stat,) = script.arrive(script.poll(1, 7))
    assert isinstance(stat, Stat), "the caller may not know yet that everything has arrived"
    script.now = 0.5
    assert script.arrive(script.end(flags=A | R, csn=PEER_CSN, peer_csn=OWN_CSN)) == []
    assert script.state is State.IDLE and connection.failure is None
    assert script.endpoint.take_events() == [], "the user has been told already"
    (answer,) = script.arrive(script.begin(csn=PEER_CSN + 5))
    assert isinstance(answer, Bgak) and answer.peer_csn == PEER_CSN + 5


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
    script.arrive(script.begin(iss=PACKET_MASK, data=b"a"))
    script.arrive(script.bgak(iss=PACKET_MASK, n_r=PACKET_MASK, n_mr=500))
    assert script.connection.read() == b"a"
    assert script.connection.receiver.vr_r == PACKET_MASK + 1
