"""The tester as a gateway, on the reference in virtual time."""

from __future__ import annotations

from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.iut.inprocess import SimulatedLane
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE
from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.common.subject import subject_of


def test_connections_whose_last_acknowledgment_waits_do_not_outlive_the_case() -> None:
    subject = subject_of("rwbp")
    lane = SimulatedLane(subject.make, subject.setups["rwbp1"], load_profiles()["leo-40"])
    settings = RunSettings("rwbp1", subject.ics, 0.04)
    peer = suite_named("rwbp").driver.peer(lane, lane.begin(), settings, 1)
    gateway = peer.behind_the_link()  # type: ignore[attr-defined]
    gateway.grant(AMPLE)
    connection = peer.connect()  # type: ignore[attr-defined]
    peer.wait(0.5)
    gateway.restart(0)
    connection.send_data(100)
    peer.wait(0.5)
    peer.finish()
    peer.wait(0.1)
    assert not lane._host.link.connections  # type: ignore[attr-defined]
