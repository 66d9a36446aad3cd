"""The tester as a gateway, on the reference in virtual time."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.probe import ECHO_TEXT
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.iut.inprocess import SimulatedLane
from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.credit import EPOCHS
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.common.subject import subject_of


def _on_a_lane() -> tuple[SimulatedLane, Any]:
    subject = subject_of("rwbp")
    lane = SimulatedLane(subject.make, subject.setups["rwbp1"], load_profiles()["leo-40"])
    settings = RunSettings("rwbp1", subject.ics, 0.04)
    return lane, suite_named("rwbp").driver.peer(lane, lane.begin(), settings, 1)


def test_connections_whose_last_acknowledgment_waits_do_not_outlive_the_case() -> None:
    lane, peer = _on_a_lane()
    gateway = peer.behind_the_link()
    gateway.grant(AMPLE)
    connection = peer.connect()
    peer.wait(0.5)
    gateway.restart(0)
    connection.send_data(100)
    peer.wait(0.5)
    peer.finish()
    peer.wait(0.1)
    assert not lane._host.link.connections  # type: ignore[attr-defined]


def test_last_questions_behind_a_link_are_answered_though_the_gateway_has_fallen_silent() -> None:
    _, peer = _on_a_lane()
    peer.behind_the_link().grant(AMPLE)
    peer.finish()
    peer.wait(60.0)
    interview = suite_named("rwbp").driver.interview(peer)
    assert interview.echo(interview.open("echo")) == ECHO_TEXT


def test_last_questions_are_answered_though_the_proxy_has_taken_another_epoch() -> None:
    """A frame of an epoch that was half the circle away comes late, and is newer by then."""
    for late in (False, True):
        _, peer = _on_a_lane()
        gateway = peer.behind_the_link()
        gateway.grant(AMPLE)
        stray = (gateway.epoch + EPOCHS // 2) % EPOCHS
        if not late:
            gateway.restart(AMPLE)
            gateway.tell(epoch=stray)
        peer.finish()
        if late:
            gateway.tell(epoch=stray)
        peer.wait(60.0)
        interview = suite_named("rwbp").driver.interview(peer)
        assert interview.echo(interview.open("echo")) == ECHO_TEXT


def test_tester_counts_in_the_unit_of_the_option_that_it_sends() -> None:
    _, peer = _on_a_lane()
    connection = peer.connect(option=option_octets(8, 600))
    assert connection.unit == 600


def test_way_back_from_the_link_ends_what_is_open_there() -> None:
    lane, peer = _on_a_lane()
    before = peer.connect("echo")
    peer.behind_the_link().grant(AMPLE)
    connection = peer.connect()
    peer.wait(0.5)
    peer.gateway.restart(0)
    connection.send_data(100)
    peer.leave_the_link()
    assert connection.closed
    assert not before.closed
    assert len(lane._host.free.connections) == 1  # type: ignore[attr-defined]
    assert not lane._host.link.connections  # type: ignore[attr-defined]
    before.send_data(len(ECHO_TEXT))
    assert before.expect(within=1.0).end == len(ECHO_TEXT)
    peer.behind_the_link().grant(AMPLE)
    assert peer.connect("echo").syn.dst == peer.gateway.proxy != before.syn.dst


def test_only_what_comes_through_the_gateway_is_counted_there() -> None:
    _, peer = _on_a_lane()
    peer.connect()
    gateway = peer.behind_the_link()
    gateway.grant(AMPLE)
    peer.wait(0.5)
    peer.leave_the_link()
    counted = gateway.arrived
    peer.connect()
    peer.wait(0.5)
    assert gateway.arrived == counted
