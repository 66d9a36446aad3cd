"""The replay explains every packet of the true reference, on paths that lose, delay and repeat.

Whatever the replay finds wrong here is wrong in the replay, the reference or the specification.
"""

from __future__ import annotations

import random

import pytest
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.iut.inprocess import simulated_lane
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import MODULUS
from bentpipe_conformance.protocols.stp.peer import Peer
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.reader import read_flows
from bentpipe_conformance.protocols.stp.suite import SUITE as STP
from bentpipe_reference.common.link.profile import load_profiles

LINK = load_profiles()["geo"]


def download(peer: Peer, source: random.Random) -> None:
    def answer(_poll: object, _before: int) -> tuple[float, ...]:
        chance = source.random()
        return () if chance < 0.1 else (0.0,) if chance < 0.8 else (0.0, source.random())

    connection = peer.connect("chargen")
    connection.receive(200, losing=lambda _sd, _before: source.random() < 0.08, answer=answer)


def upload(peer: Peer, source: random.Random) -> None:
    connection = peer.connect("discard", iss=MODULUS - 30)
    for _ in range(8):
        first = connection.vt_s
        connection.sds(7, skip=[n for n in range(first, first + 7) if source.random() < 0.2])
        peer.wait(source.random())
        if source.random() < 0.5:
            connection.poll()
    connection.deliver()


def both_ways(peer: Peer, source: random.Random) -> None:
    connection = peer.connect("echo", iss=MODULUS - 10)
    for _ in range(4):
        first = connection.vt_s
        lost = [n for n in range(first, first + 10) if source.random() < 0.1]
        connection.sds(10, octets=700, skip=lost)
        serve_for(connection, 2.0, source)
        connection.poll()
    connection.deliver()
    connection.release()


def serve_for(connection: Connection, seconds: float, source: random.Random) -> None:
    until = connection.peer.now() + seconds
    with pytest.raises(NotReached):
        connection.serve(
            lambda: connection.peer.now() > until + 1.0,
            losing=lambda _sd, _before: source.random() < 0.1,
            within=seconds,
        )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("drive", [download, upload, both_ways])
def test_transfer_with_losses_every_packet_is_explained(drive: object, seed: int) -> None:
    lane = simulated_lane(STP, "stp1e2", LINK, seed)
    peer = Peer(lane.port, lane.begin(), lane.iut_address, rtt=LINK.round_trip_s, seed=seed)
    drive(peer, random.Random(seed))  # type: ignore[operator]
    peer.wait(1.0)
    peer.finish()
    flows = read_flows(read_trace(lane.end(), suite=STP))
    assert flows[-1].established is not None
    for flow in flows:
        assert problems(flow) == []


def problems(flow: Flow) -> list[str]:
    found = [
        f"retransmission {sd.packet.number} has no cause"
        for sd in flow.sds_sent
        if not sd.new and sd.awaited is None
    ]
    for heard in flow.reports_heard:
        sent = {sd.number for sd in heard.responses}
        late = flow.until - heard.time < 2.0
        if not late and set(heard.wanted) - sent - arrived_later(flow, heard.time):
            found.append(f"what report {heard.packet.number} wanted was not sent")
    for report in flow.reports_sent:
        had = {(known.vr_r, known.elements) for known in report.possible}
        if not report.certain:
            found.append(f"report {report.packet.number} is uncertain")
        elif report.is_stat and (report.n_r, report.elements) not in had:
            found.append(f"STAT {report.packet.number} is not what the receiver had")
        elif not report.is_stat and report.cause is None:
            found.append(f"USTAT {report.packet.number} has no cause")
    found += [
        f"gap {sd.gap} of packet {sd.packet.number} was not reported"
        for sd in flow.sds_heard
        if sd.gap and not sd.answers
    ]
    return found + [
        f"POLL {poll.packet.number} was not answered"
        for poll in flow.polls_heard
        if not poll.answers
    ]


def arrived_later(flow: Flow, time: float) -> set[int]:
    return {n for report in flow.reports_heard if report.time > time for n in report.arrived}
