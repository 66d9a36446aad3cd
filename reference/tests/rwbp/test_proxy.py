"""Proxies: bounded buffers, back-pressure from end to end, ends and failures (section 9)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.proxy import Proxy
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_SPEC = importlib.util.spec_from_file_location("chain", Path(__file__).with_name("chain.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
chain = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(chain)


def run(flows: int, octets: int | None, seconds: float, **settings: Any) -> Any:
    it = chain.Chain(flows, octets, **settings)
    it.simulation.run_until(seconds)
    return it


def relays(proxy: Proxy) -> list[Any]:
    return [end.relay for end in proxy._ends[0].values()]


@pytest.mark.parametrize(("flows", "octets", "gateway"), [(15, 900_000, True), (5, 900_000, False)])
def test_flows_share_a_satellite_link_with_bit_errors(
    flows: int, octets: int, gateway: bool
) -> None:
    """ZB03 section IV.B: all is delivered, nobody is ahead, no queue overflows."""
    it = chain.Chain(flows, octets, ber=1e-5, gateway=gateway)
    it.simulation.run_while(lambda: not any(it.finished), 60.0)
    assert chain.jain(it.read) >= 0.99
    most = 0
    while not all(it.finished):
        assert it.simulation.step()
        assert it.simulation.now < 90.0
        if it.simulation.now > most:
            most = it.simulation.now + 0.2
            for relay in relays(it.upstream):
                assert relay.ground.connection.readable <= 16_000
                sender = relay.satellite.connection.sender
                assert sender.buffered <= relay.satellite.connection.config.send_buffer
    assert it.read == [octets] * flows
    assert all(it.intact)
    if it.gateway is not None:
        assert it.gateway.dropped == 0
        assert it.gateway.longest <= 1098
    it.simulation.run_until(it.simulation.now + 200.0)
    assert (it.upstream.relays, it.downstream.relays) == (0, 0)


def test_user_that_does_not_read_stops_its_source_and_nobody_else() -> None:
    """RWBP-FC-001, RWBP-FC-002, RWBP-FC-007."""
    it = run(3, 400_000, 20.0, deaf=frozenset({1}))
    assert it.read[0] == it.read[2] == 400_000
    sent = it.servers[1].connection.sender
    buffers = 2 * 16_000 + 75_000 + 4 * 75_000 + 2 * 16_000
    assert sent.snd_una - sent.iss < buffers
    it.deaf = frozenset()
    it.users[1].settle()
    it.simulation.run_until(60.0)
    assert it.read == [400_000] * 3
    assert all(it.intact)


def test_gateway_when_it_falls_silent_stops_the_proxy_and_loses_nothing() -> None:
    """RWBP-LC-005: no credit frame for two seconds."""
    it = run(2, 300_000, 1.5)
    silent = it.upstream.receive_credit
    it.upstream.receive_credit = lambda frame, now: None
    it.simulation.run_until(3.0)
    before = it.gateway.frame().arrived
    it.simulation.run_until(3.5)
    assert it.gateway.frame().arrived == before
    it.upstream.receive_credit = silent
    it.simulation.run_until(30.0)
    assert it.read == [300_000] * 2
    assert it.gateway.dropped == 0


def test_reset_of_one_connection_resets_the_other() -> None:
    """RWBP-FC-009: both ways, over both proxies."""
    it = run(2, None, 4.0)
    it.servers[0].connection.abort("the test", 4.0)
    it.servers[0].settle()
    it.users[1].connection.abort("the test", 4.0)
    it.users[1].settle()
    it.simulation.run_until(8.0)
    assert it.users[0].connection.failure == "the peer reset the connection"
    assert it.servers[1].connection.failure == "the peer reset the connection"
    assert (it.upstream.relays, it.downstream.relays) == (0, 0)


def test_half_close_of_the_source_is_relayed_and_the_other_half_stays_open() -> None:
    """RWBP-FC-009."""
    it = chain.Chain(1, 20_000, deaf=frozenset({0}))
    it.simulation.run_until(6.0)
    user, server = it.users[0].connection, it.servers[0].connection
    assert user.read(20_000)
    it.users[0].settle()
    it.simulation.run_until(12.0)
    while user.read():
        pass
    assert user.peer_has_closed
    assert server.state is State.FIN_WAIT_2
    user.write(b"still here", it.simulation.now)
    user.close(it.simulation.now)
    it.users[0].settle()
    it.simulation.run_until(16.0)
    assert server.read() == b"still here"
    assert server.peer_has_closed


# -- a proxy by itself ------------------------------------------------------------------------


def proxy(**settings: Any) -> Proxy:
    return Proxy(tcp.Setup(EndpointConfig()), Setup(RwbpConfig()), 1, **settings)


def syn(port: int = 1000) -> Segment:
    return Segment(1, 2, port, 9, 77, 0, Flags.SYN, 1000, mss=1460)


def test_call_is_accepted_and_passed_on_with_the_addresses_of_the_source() -> None:
    node = proxy()
    node.receive_ground(syn(), 0.0)
    (answer,) = node.transmit_ground()
    (call,) = node.transmit_satellite()
    assert (answer.source, answer.dport, answer.flags) == (2, 1000, Flags.SYN | Flags.ACK)
    assert (call.source, call.destination, call.sport, call.dport) == (1, 2, 1000, 9)
    assert call.unknown
    assert call.flags == Flags.SYN


def test_call_when_refused_on_the_far_side_is_reset_on_the_near_one() -> None:
    """RWBP-FC-009."""
    node = proxy()
    node.receive_ground(syn(), 0.0)
    node.transmit_ground()
    (call,) = node.transmit_satellite()
    refusal = Segment(2, 1, 9, 1000, 0, call.seq + 1 & 0xFFFFFFFF, Flags.RST | Flags.ACK)
    node.receive_satellite(refusal, 0.5)
    (reset,) = node.transmit_ground()
    assert reset.flags & Flags.RST
    assert node.relays == 0


def test_calls_beyond_the_bound_are_ignored() -> None:
    """RWBP-SEC-002."""
    node = proxy(most_relays=2)
    for port in range(5):
        node.receive_ground(syn(1000 + port), 0.0)
    assert node.relays == 2
    assert len(node.transmit_ground()) == 2


def test_segment_when_for_no_connection_is_reset() -> None:
    node = proxy()
    stray = Segment(1, 2, 1000, 9, 5, 6, Flags.ACK)
    node.receive_ground(stray, 0.0)
    node.receive_satellite(stray, 0.0)
    assert [each.flags for each in node.transmit_ground()] == [Flags.RST]
    assert [each.flags for each in node.transmit_satellite()] == [Flags.RST]


def test_timer_that_a_turn_has_started_expires_although_nothing_else_happens() -> None:
    """A turn may come by credit alone, long after the last event of its connection."""
    it = run(2, None, 3.0)
    assert it.upstream.next_deadline() is not None
    it.forward.drops.update(range(it.forward.counters.offered, 10**6))
    before = sum(end.connection.sender.counters.timeouts for end in it.upstream._ends[1].values())
    it.simulation.run_until(20.0)
    after = [end.connection.sender.counters.timeouts for end in it.upstream._ends[1].values()]
    assert min(after) >= 2
    assert sum(after) > before
