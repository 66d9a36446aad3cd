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
from bentpipe_reference.stp.cookies import CookieJar, Ticket
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.packets import Begin, Bgak, Bgrej, Packet, Sd, Stat, Ustat
from bentpipe_reference.stp.states import State
from hypothesis import given, settings
from hypothesis import strategies as st

PEER_CSN, ISS, PEER_ISS = 0x0009_8765, 5000, 900_000


def weight(endpoint: StpEndpoint) -> int:
    """What an endpoint keeps, counted in entries of everything that could grow."""
    return sum(
        len(kept)
        for kept in (
            endpoint.connections, endpoint._timers, endpoint._alarms, endpoint._active,
            endpoint._outbox, endpoint._eventful, endpoint._cookies._used,
            endpoint._cookies._oldest, endpoint._cookies._void,
        )
    )  # fmt: skip


def test_a_hundred_thousand_forged_begins_keep_nothing(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    endpoint = script.endpoint
    endpoint.take_events()
    before = weight(endpoint)
    begin = Begin(1, 9, 0, 0, 0, 100, 0, cookie=bytes(16), data=b"data")
    octets = [encode(replace(begin, sport=port, csn=port)) for port in range(1, 101)]
    answered = 0
    for host in range(1000):
        script.now += 0.01
        for packet in octets:
            endpoint.receive(packet, ("forged", host), script.now)
        sent = endpoint.transmit(script.now)
        answered += len(sent)
        assert sum(len(answer) for _, answer in sent) <= 3 * sum(map(len, octets))
        assert weight(endpoint) <= before
    assert answered == 100_000, "every BEGIN is answered (STP-CC-036)"
    assert endpoint.take_events() == []
    script.arrive(script.sd(0, b"still here"))
    assert connection.read() == b"still here"


def test_shortest_packet_is_answered_with_three_times_its_octets_at_most(stp: Any) -> None:
    script = stp()
    bare = script.begin(max_sd=None)
    for packet in (bare, replace(bare, dport=1), script.poll(0, 1), script.bgak(), script.end()):
        (answer,) = script.arrive(packet)
        assert len(encode(answer)) <= 3 * len(encode(packet))


def test_used_cookies_are_bounded_and_forgotten(stp: Any) -> None:
    script = stp(used_cookies=100)
    refused = 0
    for step in range(300):
        begin = script.begin(csn=PEER_CSN + step, cookie=script.cookie())
        refused += isinstance(script.arrive(begin)[0], Bgrej)
        script.now += 1.0
    assert refused == 200 and len(script.endpoint._cookies) == 100
    script.now = 1200.0
    assert script.endpoint._cookies.has_room(script.now)
    assert len(script.endpoint._cookies) == 0 == len(script.endpoint._cookies._void)


def test_received_cookies_are_bounded() -> None:
    jar = CookieJar(100)
    for host in range(1000):
        for step in range(20):
            jar.put(host, Ticket(b"%8d" % step, 1000, float(host), jar.begin()))
    assert len(jar) == 8 * 100
    first = jar.take(999, 999.0)
    assert first is not None and first.cookie == b"%8d" % 12
    assert jar.take(0, 999.0) is None


def test_all_receivers_together_promise_no_more_than_the_memory_for_them(stp: Any) -> None:
    octets = 1 << 20
    script = stp(receive_memory=octets, credit=2048)
    opened = []
    for port in range(2000):
        cookie = script.cookie()
        (answer,) = script.arrive(script.begin(sport=5000 + port, cookie=cookie))
        if isinstance(answer, Bgrej):
            assert answer.reason == 5
            break
        opened.append(answer.n_mr - PEER_ISS)
    assert len(opened) > 30 and min(opened) == 4 and opened[0] == 64
    assert sum(opened) * 1448 <= octets
    for connection in list(script.endpoint.connections.values()):
        connection.abort(script.now)
    script.run(until=100.0)
    assert script.endpoint._memory.free == octets and not script.endpoint.connections


def test_credit_grows_with_what_the_user_takes(stp: Any) -> None:
    script = stp(credit=256)
    connection = script.ready()
    assert connection.receiver.vr_mr == PEER_ISS + 64
    for at in range(200):
        (stat,) = script.arrive(script.sdp(at, at + 1))
        connection.read()
    (stat,) = script.arrive(script.poll(200, 201))
    assert stat.n_mr == PEER_ISS + 200 + 256
    script = stp(credit=256)
    connection = script.ready()
    for at in range(60):
        script.arrive(script.sd(at))
    (stat,) = script.arrive(script.poll(60, 1))
    assert stat.n_mr == PEER_ISS + 64, "the user has taken nothing"


def test_own_call_needs_memory_for_what_the_peer_may_send(stp: Any) -> None:
    script = stp(receive_memory=4 * 1448)
    script.call()
    with pytest.raises(ValueError, match="no memory"):
        script.endpoint.connect(("peer", 1), 1, 1)


def test_host_whose_memory_is_promised_goes_on_without_the_call() -> None:
    host = StpHost("10.0.0.1", StpConfig(receive_memory=4 * 1448), 1)
    assert host.open("10.0.0.2", 9, "chargen", 0.0) is not None
    assert host.open("10.0.0.2", 9, "chargen", 0.0) is None


def test_full_endpoint_refuses_calls_for_want_of_resources(stp: Any) -> None:
    script = stp(max_connections=1)
    script.ready()
    (bgrej,) = script.arrive(script.begin(sport=4001, cookie=script.cookie()))
    assert bgrej.reason == 5 and bgrej.peer_csn == PEER_CSN


def test_answers_without_a_connection_are_limited_to_ten_per_second(stp: Any) -> None:
    script = stp(listening=False)
    script.now = 100.0
    ends = script.arrive(*[script.poll(0, 1)] * 50)
    refusals = script.arrive(*[script.begin()] * 50)
    assert (len(ends), len(refusals)) == (10, 10)
    script.now += 0.5
    assert len(script.arrive(*[script.poll(0, 1)] * 50)) == 5


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
    config=st.sampled_from([{}, {"fifo": False}, {"keep_alive": 15.0}, {"credit": 4}]),
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
        cookie = numbers.choice([None, script.cookie(), bytes(16)])
        n_mr = numbers.choice([4, 0, 2**24 - 1])
        return script.begin(csn=csn, data=bytes(near + 1), n_mr=n_mr, cookie=cookie)
    if kind == 1:
        return script.bgak(csn=csn, peer_csn=own, n_r=ISS + near + 1)
    if kind == 2:
        cookie = numbers.choice([None, b"a cookie"])
        return script.bgrej(peer_csn=own, reason=numbers.choice([3, 6]), cookie=cookie)
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
        begin = script.begin(sport=port, cookie=script.cookie(("peer", port)))
        script.endpoint.receive(encode(begin), ("peer", port), 0.0)
        ((_, octets),) = endpoint.transmit(0.0)
        assert isinstance(decode(octets), Bgak)
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
    for wrong in ({"mtu": 100}, {"max_stat": 4}, {"credit": 3}, {"used_cookies": 0},
                  {"max_sd": 1500}, {"protocol": 118}, {"path_class": "moon"},
                  {"receive_memory": 100}):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            StpConfig(**wrong)  # type: ignore[arg-type]
