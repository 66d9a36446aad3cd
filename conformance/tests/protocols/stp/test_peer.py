"""The tester's peer against the reference in the simulation: it must do what scripts ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.probe import chargen
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.protocols.stp.arrival import withholding
from bentpipe_conformance.protocols.stp.codec import END, ENDAK, POLL, SD, A
from bentpipe_conformance.protocols.stp.cookies import Kept
from bentpipe_conformance.protocols.stp.numbers import MODULUS, near, newer
from bentpipe_conformance.protocols.stp.reception import Reception, cut
from bentpipe_conformance.protocols.stp.suite import SUITE as STP


def test_connect_obtains_a_cookie_and_calls_with_it(bed: Any) -> None:
    connection = bed.peer.connect("discard")
    asked, flow = bed.flows()
    assert asked.established is None
    assert flow.established is not None
    assert flow.begins[0].stp.cookie == connection.cookie == asked.ledger.opened[0].stp.cookie


def test_later_call_uses_the_cookie_of_the_bgak(bed: Any) -> None:
    first = bed.peer.connect("discard")
    second = bed.peer.connect("discard")
    assert second.cookie == first.opening.packet.cookie
    assert len(bed.flows()) == 3


def test_call_with_a_cookie_that_is_void_is_made_again(bed: Any) -> None:
    bed.peer.connect("discard", cookie=bytes(16)).ask()
    refused, opened = bed.flows()[-2:]
    assert refused.established is None
    assert opened.established is not None
    assert refused.ends == opened.ends


def test_call_with_a_void_cookie_before_others_that_are_void(bed: Any) -> None:
    """The one that the refusal gives is good, whatever else the tester has kept."""
    bed.peer.jar.kept.extend(Kept(bytes(16), bed.peer.now()) for _ in range(5))
    bed.peer.connect("discard", cookie=bytes(16)).ask()
    assert bed.flows()[-1].established is not None


def test_connect_to_a_port_nobody_serves_is_not_reached(bed: Any) -> None:
    with pytest.raises(NotReached, match="refused it, reason 3"):
        bed.peer.connect(47)


def test_echo_returns_what_was_sent_and_releases(bed: Any) -> None:
    connection = bed.peer.connect("echo")
    connection.sds(5, octets=300)
    connection.release()
    assert bytes(connection.reception.stream) == b"".join(d for d, _ in connection.sent.values())
    assert connection.closed


def test_sds_lost_by_rule_come_again(bed: Any) -> None:
    connection = bed.peer.connect("chargen")
    connection.receive(30, losing={5: 2, 6: 1})
    assert (connection.reception.seen[5], connection.reception.seen[6]) == (3, 2)
    stream = bytes(connection.reception.stream)
    assert stream == chargen(0, len(stream))


def test_stats_withheld_late_and_twice(bed: Any) -> None:
    connection = bed.peer.connect("chargen")
    connection.receive(20, answer=withholding([1]))
    connection.receive(30, answer=lambda _poll, _before: (0.0, 0.2))
    flow = bed.flows()[-1]
    answered = [len(poll.answers) for poll in flow.polls_sent]
    assert answered[1] == 0
    assert 2 in answered
    late = [report for report in flow.reports_heard if "below VT(PA)" in report.fault]
    assert all(report.n_ps is not None for report in late)


def test_sds_skipped_are_reported_missing_and_delivered_later(bed: Any) -> None:
    connection = bed.peer.connect("discard")
    connection.sds(8, skip=[2, 3, 6])
    stat = connection.ask()
    assert stat.elements == (2, 4, 6, 7, 8)
    connection.deliver()
    assert connection.vt_a == 8


def test_credit_closed_keeps_the_implementation_from_sending(bed: Any) -> None:
    connection = bed.peer.connect("chargen", credit=6)
    connection.receive(6, credit=None)
    connection.discard(3.0)
    assert connection.highest == 6


def test_summoned_implementation_calls_and_sends(bed: Any) -> None:
    connection = bed.peer.summon("send")
    connection.bgak()
    connection.receive(10)
    flow = bed.flows()[-1]
    assert flow.iut_calls
    assert flow.established is not None


def test_summon_without_an_opener_is_not_reached(bed: Any) -> None:
    bed.peer._opener = None
    with pytest.raises(NotReached, match="cannot make"):
        bed.peer.summon("send")


def test_unanswered_expectation_says_what_was_missing(bed: Any) -> None:
    connection = bed.peer.connect("discard")
    with pytest.raises(NotReached, match=r"0\.5 s passed without END or POLL"):
        connection.expect((END, POLL), within=0.5)


def test_impolite_connection_leaves_an_end_to_the_script(bed: Any) -> None:
    connection = bed.peer.connect("discard")
    connection.polite = False
    connection.sd(b"", fin=True, poll=True)
    connection.serve(lambda: bool(connection.closed), within=20)
    flow = bed.flows()[-1]
    assert not any(p.content and p.content.type == ENDAK for p in flow.packets if not p.outgoing)


def test_raw_fields_override_everything(bed: Any) -> None:
    connection = bed.peer.connect("discard")
    packet = connection.compose(SD, tag=1, seq=5, sport=9)
    assert (packet.tag, packet.seq, packet.sport) == (1, 5, 9)
    connection.stat(n_r=3, elements=(3, 4), n_mr=7, n_ps=77)
    flow = bed.flows()[-1]
    assert flow.reports_heard[0].fault


def test_finish_aborts_what_is_open_and_marks_the_end(
    bed: Any, make_bed: Callable[[], Any]
) -> None:
    bed.peer.connect("discard")
    bed.peer.finish()
    flow = bed.flows()[-1]
    assert any(p.content and p.content.type == END and p.content.flags & A for p in flow.packets)
    other = make_bed()
    other.peer.wait(3.0)
    other.peer.finish()
    assert read_trace(other.lane.end(), suite=STP).packets[-1].time == pytest.approx(3.0)


def test_lists_of_stats() -> None:
    got = Reception(vr_mr=100)
    for number in (0, 3, 4, 7):
        got.take(number, b"", False)
    assert got.elements() == (1, 3, 5, 7, 8)
    got.polled(10)
    assert got.elements() == (1, 3, 5, 7, 8, 10)
    got.polled(200)
    assert got.vr_h == 10
    assert cut((1, 3, 5, 7, 8, 10), 3) == [(1, 3, 5), (5, 7, 8), (8, 10)]
    assert cut((1, 3, 5), 3) == [(1, 3, 5)]


def test_numbers_wrap() -> None:
    assert near(2, MODULUS - 3, 4) == 5
    assert near(MODULUS - 4, MODULUS - 3, 1) == -1
    assert newer(0, 0xFFFF_FFFF)
    assert not newer(5, 5)
    assert not newer(4, 5)


def test_summoned_implementation_is_given_a_cookie_first(bed: Any) -> None:
    connection = bed.peer.summon("send", anew=False)
    assert connection.begun.cookie is None
    connection.reject(6)
    anew = bed.peer.await_anew(connection)
    assert anew.begun.cookie == bed.peer.jar.made[-1]
    assert anew.peer_csn != connection.peer_csn
