"""Peers that lie, flood or fall silent: nothing raises, nothing grows without bound."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pytest
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.packets import Begin, Bgak, Packet, Poll, Sd, Stat, Ustat
from bentpipe_reference.stp.states import State
from hypothesis import given, settings
from hypothesis import strategies as st

PEER_CSN, ISS, PEER_ISS = 0x0009_8765, 5000, 900_000


def weight(endpoint: StpEndpoint) -> int:
    """What an endpoint keeps, counted in entries of everything that could grow."""
    return sum(
        len(kept)
        for kept in (
            endpoint.connections, endpoint._timers, endpoint._alarms, endpoint._pending,
            endpoint._unproven, endpoint._peers, endpoint._active, endpoint._outbox,
            endpoint._eventful,
        )
    )  # fmt: skip


def test_a_hundred_thousand_forged_begins_keep_a_bounded_state(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    endpoint = script.endpoint
    begin = Begin(1, 9, 0, 0, 0, 100, 0, max_sd=1400, data=b"data")
    octets = [encode(replace(begin, sport=port, csn=port)) for port in range(1, 101)]
    heaviest = answered = 0
    for host in range(1000):
        script.now += 0.01
        for packet in octets:
            endpoint.receive(packet, ("forged", host), script.now)
        sent = endpoint.transmit(script.now)
        answered += len(sent)
        assert sum(len(answer) for _, answer in sent) <= 3 * sum(map(len, octets))
        heaviest = max(heaviest, weight(endpoint))
    assert answered == 100_000, "every BEGIN is answered (STP-CC-012)"
    assert heaviest < 1000
    assert len(endpoint._pending) == 64 and endpoint.dropped_pending == 100_000 - 64
    assert endpoint.take_events() and not endpoint.take_events()
    script.arrive(script.sd(0, b"still here"))
    assert connection.read() == b"still here"
    script.run(until=script.now + 40)
    assert list(endpoint.connections.values()) == [connection]
    assert weight(endpoint) < 10


def test_begins_of_a_known_address_are_bounded_too(stp: Any) -> None:
    script = stp(max_unproven=64)
    script.ready()
    script.arrive(script.end(flags=4))
    for port in range(5000):
        begin = script.begin(sport=5000 + port, csn=PEER_CSN + 1 + port, data=bytes(400))
        script.endpoint.receive(encode(begin), ("peer", 1), script.now)
        script.flush()
        script.endpoint.take_events()
    assert len(script.endpoint.connections) <= 64 + 64


def test_full_endpoint_refuses_calls_for_want_of_resources(stp: Any) -> None:
    script = stp(max_connections=1)
    script.ready()
    (bgrej,) = script.arrive(script.begin(sport=4001))
    assert bgrej.reason == 5 and bgrej.peer_csn == PEER_CSN


def test_answers_without_a_connection_are_limited_to_ten_per_second(stp: Any) -> None:
    script = stp(listening=False)
    script.now = 100.0
    sds = script.arrive(*[script.sd(0)] * 50)
    refusals = script.arrive(*[script.begin()] * 50)
    assert (len(sds), len(refusals)) == (10, 10)
    script.now += 0.5
    assert len(script.arrive(*[script.sd(0)] * 50)) == 5


def unproven(make: Any, data: bytes) -> tuple[Any, int]:
    """A connection accepted at once that has not been proven, and the octets received for it."""
    script = make()
    script.ready()
    script.arrive(script.end(flags=4))
    begin = script.begin(csn=PEER_CSN + 1, data=data)
    script.arrive(begin)
    assert script.state is State.READY and not script.connection.proven
    return script, len(encode(begin))


@pytest.mark.parametrize("octets", [0, 10, 100, 500])
def test_unproven_peer_gets_three_times_what_it_sent(stp: Any, octets: int) -> None:
    script, received = unproven(stp, bytes(octets))
    before = script.now
    script.connection.write(bytes(100_000))
    first = script.flush()
    assert any(isinstance(packet, Poll) for packet in first), "data that waits asks (STP-SEC-001)"
    script.run(until=50.0)
    spent = sum(len(encode(packet)) for at, packet in script.sent[-60:] if at >= before)
    bgak = 32
    assert spent <= 3 * received + bgak * 2  # of the connection before: its BGAK and ENDAK
    unproven_octets = 3 * received - script.connection.budget
    assert unproven_octets <= 3 * received


def test_proven_peer_gets_the_rest(stp: Any) -> None:
    script, _ = unproven(stp, b"")
    script.connection.write(bytes(3000))
    script.flush()
    tag = PEER_CSN + 1 & 0xFFFF
    sender = script.connection.outgoing.sender
    answers = script.arrive(script.stat(0, sender.vt_ps, tag=tag))
    assert script.connection.proven and [p for p in answers if isinstance(p, Sd)]


def test_invalid_stat_proves_nothing(stp: Any) -> None:
    script, _ = unproven(stp, b"")
    script.arrive(script.stat(7, 0, tag=PEER_CSN + 1 & 0xFFFF))
    assert not script.connection.proven


def test_sender_ahead_of_the_window_is_held_to_its_credit(stp: Any) -> None:
    script = stp(credit=16)
    connection = script.ready()
    for at in range(1, 5000):
        script.endpoint.receive(encode(script.sd(at, bytes(500))), ("peer", 1), script.now)
    script.flush()
    assert len(connection.receiver.held()) == 15


def test_stat_bomb_naming_every_number_is_discarded(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(b"one")
    script.flush()
    everything = tuple((ISS + step) % 2**24 for step in range(0, 2**23, 2**23 // 300))
    bomb = script.stat(0, 1, n_mr=(ISS + 2**23) % 2**24)
    assert script.arrive(replace(bomb, elements=everything)) == []
    assert connection.outgoing.sender.queued() == []


def test_silent_peer_costs_a_minute_of_rare_polls(stp: Any) -> None:
    script = stp()
    script.ready().write(bytes(200_000))
    sent = script.run(until=300.0)
    assert script.connection.failure and len(sent) < 60
    assert not script.endpoint.connections and weight(script.endpoint) < 5


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    state=st.sampled_from(list(State)),
    config=st.sampled_from([{}, {"fifo": False}, {"keep_alive": True}, {"credit": 4}]),
)
def test_random_packets_neither_raise_nor_pile_up(
    stp: Any, seed: int, state: State, config: dict[str, Any]
) -> None:
    numbers = random.Random(seed)
    script = stp(**config)
    if state is not State.IDLE:
        script.enter(state)
        if state is not State.OUTGOING_RELEASE:
            script.connection.write(bytes(5000))
    for _ in range(120):
        script.now += numbers.choice([0, 0, 0.01, 0.3, 2.0, 20.0])
        octets = encode(_random_packet(script, numbers))
        if numbers.random() < 0.1:
            octets = octets[: numbers.randrange(len(octets))]
        script.endpoint.receive(octets, ("peer", 1), script.now)
        if numbers.random() < 0.7:
            script.run(until=script.now)
            script.flush()
        for connection, events in script.endpoint.take_events():
            if numbers.random() < 0.5:
                connection.read()
            if events & Events.FAILED:
                assert connection.failure
        assert len(script.endpoint.connections) <= 1
    script.run(until=script.now + 1.0)


def _random_packet(script: Any, numbers: random.Random) -> Packet:
    near = numbers.choice([0, 1, 2, 3, 5, 20, -1])
    live = next(iter(script.endpoint.connections.values()), None)
    own = 0x7777_1234 if live is None else live.csn
    csn = numbers.choice([PEER_CSN, PEER_CSN, PEER_CSN + 1, PEER_CSN - 1, 0])
    own = numbers.choice([own, own, 0, own & 0xFFFF])
    kind = numbers.randrange(10)
    if kind == 0:
        return script.begin(csn=csn, data=bytes(near + 1), n_mr=numbers.choice([4, 0, 2**24 - 1]))
    if kind == 1:
        flags = numbers.choice([0, 2])
        return script.bgak(csn=csn, peer_csn=own, flags=flags, n_r=ISS + near + 1)
    if kind == 2:
        return script.bgrej(peer_csn=own)
    if kind == 3:
        flags = numbers.choice([0, 4, 8, 12])
        return script.end(csn=csn, peer_csn=own, flags=flags, n_r=ISS + near + 1)
    if kind == 4:
        return script.endak(peer_csn=own)
    tag = numbers.choice([PEER_CSN & 0xFFFF] * 5 + [0])
    if kind == 5:
        return script.sd(near, bytes(near + 1), tag=tag, flags=numbers.choice([0, 0, 0, 1]))
    if kind == 6:
        return script.sdp(near, numbers.randrange(9), tag=tag)
    if kind == 7:
        return script.poll(near, numbers.randrange(9), tag=tag)
    edges = sorted(numbers.sample(range(near + 1, near + 12), numbers.choice([0, 2, 3, 4])))
    if kind == 8:
        return script.stat(near, numbers.randrange(6), edges, tag=tag)
    return script.ustat(near, *(edges[:2] if len(edges) > 1 else (near, near + 1)), tag=tag)


@given(octets=st.binary(max_size=60))
def test_any_octets_are_survived(stp: Any, octets: bytes) -> None:
    script = stp()
    script.ready()
    script.endpoint.receive(octets, ("peer", 1), 0.0)
    assert script.endpoint.ignored == 1 and script.flush() == []


def test_a_thousand_idle_connections_cost_nothing(stp: Any) -> None:
    script = stp()
    endpoint = script.endpoint
    ports = range(1000, 2000)
    for port in ports:
        script.endpoint.receive(encode(script.begin(sport=port)), ("peer", port), 0.0)
        ((_, octets),) = endpoint.transmit(0.0)
        answer = decode(octets)
        assert isinstance(answer, Bgak)
        confirmation = script.bgak(sport=port, peer_csn=answer.csn)
        endpoint.receive(encode(confirmation), ("peer", port), 0.0)
        endpoint.transmit(0.0)
    assert len(endpoint.connections) == 1000
    calls = 0

    real = Actions.put

    def counted(self: Any, v: Any, packet: Packet) -> None:
        nonlocal calls
        calls += 1
        real(self, v, packet)

    Actions.put = counted  # type: ignore[method-assign]
    try:
        started = time.process_time()
        for step in range(2000):
            key = (("peer", 1000), 1000, 9)
            assert key in endpoint.connections
            endpoint.receive(encode(script.poll(0, step + 1, sport=1000)), ("peer", 1000), 1.0)
            assert len(endpoint.transmit(1.0)) == 1
            assert len(endpoint._active) == 0
        spent = time.process_time() - started
    finally:
        Actions.put = real  # type: ignore[method-assign]
    assert calls == 2000
    assert spent < 2.0, "a millisecond per step would mean a scan over all connections"


def test_hostile_reports_do_not_make_it_send_what_was_not_written(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(b"abc")
    script.flush()
    ustat = script.ustat(0, 0, 1)
    stat = script.stat(0, 1, [0, 1])
    assert isinstance(ustat, Ustat) and isinstance(stat, Stat)
    sent = [p for _ in range(50) for p in script.arrive(ustat, stat) if isinstance(p, Sd)]
    assert len(sent) == 1 and sent[0].data == b"abc"


def test_settings_out_of_range_name_themselves() -> None:
    for wrong in ({"mtu": 100}, {"max_stat": 4}, {"credit": 3}, {"max_pending": 15},
                  {"max_sd": 1500}, {"protocol": 118}, {"path_class": "moon"},
                  {"max_pending_beside": 3}):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            StpConfig(**wrong)  # type: ignore[arg-type]
