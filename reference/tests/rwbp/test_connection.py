"""Negotiation, plain TCP, opening and closing, and odd segments (sections 4, 5.4 and 10)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.option import KIND, RwbpOption, counting_option
from bentpipe_reference.rwbp.parts import TRUE_PARTS
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment

A, B = 1, 2
EXID = b"RWBP"


def end(address: int, config: EndpointConfig, isn: int) -> Connection:
    addresses = Addresses(A, 10, B, 20)
    if address == B:
        addresses = addresses.swapped()
    if isinstance(config, RwbpConfig):
        return RwbpConnection(config, addresses, isn, TRUE_PARTS)
    return Connection(config, addresses, isn)


class Pair:
    """Two connections whose segments are carried over by hand, without delay."""

    def __init__(self, first: EndpointConfig, second: EndpointConfig) -> None:
        self.a, self.b = end(A, first, 100), end(B, second, 900)
        self.now = 0.0
        self.carried: list[Segment] = []

    def connect(self) -> Pair:
        self.a.open(self.now)
        (syn,) = self.a.transmit(self.now)
        self.carried = [syn]
        self.b.accept(syn, self.now)
        self.carry()
        return self

    def carry(self) -> None:
        while segments := self.a.transmit(self.now) + self.b.transmit(self.now):
            for segment in segments:
                self.carried.append(segment)
                (self.b if segment.source == A else self.a).receive(segment, self.now)

    def agreed(self) -> list[bool]:
        return [getattr(each, "agreed", False) for each in (self.a, self.b)]


RWBP, PLAIN = RwbpConfig(timestamps=True), EndpointConfig(timestamps=True)


# -- negotiation ------------------------------------------------------------------------------


def test_open_when_both_ends_offer_agrees_without_scale_and_timestamps() -> None:
    """RWBP-NG-001 to -004, RWBP-NG-009; appendix A."""
    pair = Pair(RWBP, RWBP).connect()
    assert pair.agreed() == [True, True]
    syn, answer, third, update = pair.carried
    assert counting_option(syn) == RwbpOption(8, 1460)
    assert (syn.mss, syn.sack_permitted, syn.window_scale) == (1460, True, 2)
    assert counting_option(answer) == RwbpOption(8, 1460)
    assert (answer.window_scale, answer.timestamps, answer.window) == (None, None, 65535)
    units = RWBP.receive_buffer // 1460
    assert (third.window, update.window) == (units, units)
    assert not third.timestamps
    assert not third.unknown


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (RWBP, PLAIN),
        (PLAIN, RWBP),
        (RWBP, RwbpConfig(rwbp=False)),
        (RwbpConfig(rwbp=False), RWBP),
        (RWBP, RwbpConfig(sack=False)),
        (RwbpConfig(sack=False), RWBP),
    ],
)
def test_open_when_one_end_does_not_offer_is_plain_tcp(
    first: EndpointConfig, second: EndpointConfig
) -> None:
    """RWBP-NG-005, RWBP-NG-008."""
    pair = Pair(first, second).connect()
    assert pair.agreed() == [False, False]
    sent = pattern(0, 50_000)
    assert pair.a.write(sent, pair.now) == len(sent)
    received = b""
    for _ in range(50):
        pair.carry()
        received += pair.b.read()
    assert received == sent
    assert pair.a.sender.cwnd < 1 << 20
    assert all(counting_option(each) is None for each in pair.carried[1:])


def test_open_when_both_ends_open_at_once_agrees() -> None:
    """RWBP-NG-012."""
    pair = Pair(RWBP, RWBP)
    pair.a.open(0.0)
    pair.b.open(0.0)
    pair.carry()
    assert (pair.a.state, pair.b.state) == (State.ESTABLISHED, State.ESTABLISHED)
    assert pair.agreed() == [True, True]
    pair.a.write(pattern(0, 5000), 0.0)
    pair.carry()
    assert pair.b.read() == pattern(0, 5000)


def test_open_by_the_callers_syn_ack_tells_the_edge_in_units() -> None:
    """RWBP-WN-007 is asked when the connection opens, whatever opens it (sections 5.4 and 6.3)."""
    pair = Pair(RWBP, RWBP)
    pair.a.open(0.0)
    (syn,) = pair.a.transmit(0.0)
    pair.b.accept(syn, 0.0)
    (answer,) = pair.b.transmit(0.0)
    both = Flags.SYN | Flags.ACK
    pair.b.receive(replace(syn, flags=both, ack=answer.seq + 1), 0.1)
    assert pair.b.state is State.ESTABLISHED
    (update,) = pair.b.transmit(0.1)
    assert update.flags == Flags.ACK
    assert update.window < answer.window  # units


def test_open_when_written_to_before_the_answer_sends_it_all() -> None:
    pair = Pair(RWBP, RWBP)
    pair.a.open(0.0)
    pair.a.write(pattern(0, 9000), 0.0)
    pair.a.close(0.0)
    (syn,) = pair.a.transmit(0.0)
    assert syn.payload == b""
    assert pair.a.state is State.CLOSED


@pytest.mark.parametrize(
    "data",
    [
        EXID + bytes.fromhex("000805b4"),
        EXID + bytes.fromhex("200805b4"),
        EXID + bytes.fromhex("100005b4"),
        EXID + bytes.fromhex("1008002f"),
        EXID + bytes.fromhex("1008"),
        EXID + bytes.fromhex("100805b400"),
        EXID,
        b"",
        b"XWBP" + bytes.fromhex("100805b4"),
    ],
)
def test_option_when_void_or_another_is_an_absent_one(script: Any, data: bytes) -> None:
    """RWBP-NG-006."""
    peer = script(option=(KIND, data), octets=3000)
    assert not peer.connection.agreed
    assert peer.syn_ack.unknown == ()
    assert peer.first_flight


def test_option_when_several_the_first_that_is_not_void_counts() -> None:
    syn = Segment(1, 2, 3, 4, flags=Flags.SYN)
    first, second = RwbpOption(3, 100).emit(), RwbpOption(4, 200).emit()
    syn.unknown = ((KIND, EXID + bytes(4)), first, second)
    assert counting_option(syn) == RwbpOption(3, 100)


def test_option_when_in_another_segment_is_ignored(script: Any) -> None:
    """RWBP-NG-007."""
    peer = script(window=2)
    peer.ack(0, window=2, unknown=(RwbpOption(1, 50).emit(),))
    assert (peer.sender.edge - peer.iss - 1, peer.receiver.interval) == (2000, 8)


@pytest.mark.parametrize(
    ("unit", "mss", "smss"),
    [(1000, 1000, 1000), (48, 1000, 48), (5000, 800, 800), (500, None, 500)],
)
def test_segment_size_is_the_smallest_of_units_and_mss(
    script: Any, unit: int, mss: int | None, smss: int
) -> None:
    """RWBP-WF-006."""
    peer = script(unit=unit, connect=False)
    peer.syn.mss = mss
    peer.connection.handshake.take_options(peer.syn)
    assert peer.connection.handshake.smss() == smss


def test_segments_of_a_connection_carry_no_option_but_sack(script: Any) -> None:
    """RWBP-WF-003, RWBP-WF-004."""
    peer = script(window=5, timestamps=True)
    sent = [*peer.last]
    peer.data(3)
    sent += peer.last
    assert sent
    assert all(each.timestamps is None and not each.unknown for each in sent)
    assert all(not each.sack_blocks for each in sent if each.payload)


def test_syn_ack_when_repeated_has_the_option_again(script: Any) -> None:
    """RWBP-NG-003, RWBP-CX-002."""
    peer = script(connect=False)
    peer.wait(7.5)
    assert peer.connection.handshake.attempts == 4
    (last,) = peer.last
    assert counting_option(last) == RwbpOption(8, 1000)
    assert last.window == peer.syn_ack.window
    peer.ack(0)
    assert peer.sender.estimator.rto == 3.0


def test_data_in_a_syn_is_not_acknowledged(script: Any) -> None:
    """RWBP-NG-011."""
    connection = RwbpConnection(RwbpConfig(), Addresses(A, 1, B, 2), 5, TRUE_PARTS)
    syn = Segment(B, A, 2, 1, seq=7, flags=Flags.SYN, payload=b"early", sack_permitted=True)
    syn.unknown = (RwbpOption(8, 1460).emit(),)
    connection.accept(syn, 0.0)
    (answer,) = connection.transmit(0.0)
    assert answer.ack == 8


# -- plain TCP --------------------------------------------------------------------------------


def test_plain_tcp_peer_is_given_slow_start_and_octets(script: Any) -> None:
    """RWBP-NG-008."""
    peer = script(rwbp=False, window=65535)
    assert peer.first_flight == list(range(10))
    assert peer.syn_ack.unknown == ()
    assert peer.last[-1].window == 60_000


# -- closing ----------------------------------------------------------------------------------


def test_close_when_both_do_leaves_no_state_behind() -> None:
    """RWBP-CX-001, RWBP-CX-003, RWBP-CX-004."""
    pair = Pair(RWBP, RWBP).connect()
    pair.a.write(pattern(0, 3000), 0.0)
    pair.a.close(0.0)
    pair.carry()
    assert (pair.a.state, pair.b.state) == (State.FIN_WAIT_2, State.CLOSE_WAIT)
    pair.b.write(pattern(0, 4000), 0.0)
    pair.b.close(0.0)
    pair.carry()
    assert (pair.a.state, pair.b.state) == (State.TIME_WAIT, State.CLOSED)
    assert (pair.a.read(), pair.b.read()) == (pattern(0, 4000), pattern(0, 3000))


def test_fin_when_lost_is_repaired_by_the_timer(script: Any) -> None:
    """RWBP-CX-003."""
    peer = script(window=10, octets=0)
    peer.connection.close(peer.now)
    peer.connection.transmit(peer.now)
    peer.wait(1.4)
    assert peer.connection.transmit(peer.now) == []
    peer.wait(0.2)
    copies = peer.last
    assert [bool(each.flags & Flags.FIN) for each in copies] == [True, True]
    peer.ack(0.001)
    assert peer.connection.state is State.FIN_WAIT_2


def test_fin_that_rides_on_data_when_that_is_reported_has_arrived(script: Any) -> None:
    peer = script(window=10, octets=0)
    peer.connection.write(pattern(0, 2000), peer.now)
    peer.connection.close(peer.now)
    peer.connection.transmit(peer.now)
    peer.give(peer.segment(sack_blocks=((peer.number(1), peer.number(2)),)))
    assert [each.seq for each in peer.last] == [peer.number(0)]
    assert peer.sender.segments.count == 1


def test_abort_is_one_reset_at_the_next_number(script: Any) -> None:
    """RWBP-CX-006."""
    peer = script(window=3)
    peer.connection.abort("the user aborted", peer.now)
    (reset,) = peer.connection.transmit(peer.now)
    assert reset.flags & Flags.RST
    assert reset.seq == peer.number(3)
    assert reset.sack_blocks == ()


@pytest.mark.parametrize(
    ("offset", "state", "answers"),
    [
        (0, State.CLOSED, 0),
        (1, State.ESTABLISHED, 1),
        (59_999, State.ESTABLISHED, 1),
        (60_000, State.ESTABLISHED, 0),
    ],
)
def test_reset_counts_only_at_the_next_number(
    script: Any, offset: int, state: State, answers: int
) -> None:
    """RWBP-CX-005."""
    peer = script(octets=0)
    peer.give(peer.segment(seq=peer.peer_number(0) + offset, flags=Flags.RST))
    assert (peer.connection.state, len(peer.last)) == (state, answers)


# -- odd segments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"flags": Flags.ACK | Flags.URG, "urgent": 9, "payload": pattern(0, 1000)},
        {"flags": Flags.ACK | Flags.ECE | Flags.CWR, "payload": pattern(0, 1000)},
        {"timestamps": (1, 2), "payload": pattern(0, 1000)},
        {"mss": 48, "window_scale": 9, "payload": pattern(0, 1000)},
        {"unknown": ((200, b"abc"), (5, b"odd")), "payload": pattern(0, 1000)},
    ],
)
def test_data_with_odd_flags_or_options_is_taken(script: Any, fields: dict[str, Any]) -> None:
    """RWBP-WF-005, RWBP-WF-009, RWBP-NG-009, RWBP-NG-010."""
    peer = script(octets=0, interval=1)
    peer.give(peer.segment(**fields))
    assert peer.connection.read() == pattern(0, 1000)
    assert peer.reports() == [(1, [])]
    assert not peer.last[0].flags & (Flags.URG | Flags.ECE | Flags.CWR)


def test_sack_option_on_data_is_read(script: Any) -> None:
    """RWBP-WF-005."""
    peer = script(window=4)
    blocks = ((peer.number(1), peer.number(2)),)
    assert peer.give(peer.segment(payload=pattern(0, 10), sack_blocks=blocks)) == [0]


@pytest.mark.parametrize("offset", [-1, 0, 5])
def test_syn_on_an_open_connection_is_acknowledged_and_ignored(script: Any, offset: int) -> None:
    peer = script(octets=0)
    seq = peer.peer_number(0) + offset
    peer.give(peer.segment(seq=seq, flags=Flags.SYN | Flags.ACK))
    assert peer.reports() == [(0, [])]
    assert peer.connection.state is State.ESTABLISHED


def test_acknowledgment_at_the_edge_counts(script: Any) -> None:
    """RWBP-WN-013: its sender has filled the window, and the first of it has been lost."""
    peer = script(window=2, buffer=4000)
    assert peer.ack(2, window=1, seq=peer.peer_number(4)) == [2]
    assert peer.last[0].payload
    assert peer.ack(3, window=1, seq=peer.peer_number(4) + 1) == []
    assert peer.reports() == [(0, [])]


def test_reset_below_the_next_number_is_discarded_even_if_its_data_reaches_into_the_window(
    script: Any,
) -> None:
    """RWBP-CX-005 asks for SEG.SEQ alone."""
    peer = script(octets=0)
    peer.give(peer.segment(seq=peer.peer_number(-0.5), payload=bytes(1000), flags=Flags.RST))
    assert (peer.connection.state, peer.last) == (State.ESTABLISHED, [])


def test_reminders_are_a_second_apart(script: Any) -> None:
    """RWBP-AK-003, RWBP-EC-015: of unacceptable segments without data, and of what is refused."""
    peer = script(octets=0)
    peer.give(peer.segment(seq=peer.peer_number(-1)))
    assert peer.reports() == [(0, [])]
    peer.wait(0.9)
    for fields in ({"seq": peer.peer_number(-1)}, {"ack": peer.number(9)}):
        peer.give(peer.segment(**fields))
        assert peer.reports() == []
    peer.give(peer.segment(seq=peer.peer_number(-1), payload=bytes(1000)))
    assert peer.reports() == [(0, [])]
    peer.wait(0.2)
    peer.give(peer.segment(ack=peer.number(9)))
    assert peer.reports() == [(0, [])]


def test_ends_set_apart_by_forged_data_fall_silent() -> None:
    """RWBP-AK-003: without a limit each answers the other for ever."""
    pair = Pair(RWBP, RWBP).connect()
    forged = Segment(B, A, 20, 10, 901, 101, Flags.ACK, 9, 0, bytes(100))
    pair.a.receive(forged, pair.now)
    pair.now = 0.2
    pair.a.advance(pair.now)
    pair.carried.clear()
    pair.carry()
    assert [(each.source, each.ack) for each in pair.carried] == [(A, 1001), (B, 101), (A, 1001)]


def test_segments_when_random_never_stop_a_connection(script: Any) -> None:
    """RWBP-SEC-003, RWBP-SEC-004: the stream goes on afterwards."""
    for seed in range(60):
        numbers = random.Random(seed)
        peer = script(octets=0, window=4, buffer=20_000)
        peer.connection.write(pattern(0, 3000), peer.now)
        peer.connection.transmit(peer.now)
        for _ in range(60):
            near = peer.peer_number(numbers.choice((0, 0, 1, 5, 19, 21, -3, 1 << 21)))
            sack = tuple(
                (peer.number(numbers.randrange(-2, 6)), peer.number(numbers.randrange(-2, 6)))
                for _ in range(numbers.randrange(4))
            )
            flags = numbers.choice((0, 16, 16, 16, 2, 18, 48, 24, 208))
            octets = numbers.choice((0, 0, 1, 999, 1000))
            segment = peer.segment(
                seq=near, flags=flags, sack_blocks=sack, payload=bytes(octets),
                ack=peer.number(numbers.choice((0, 0, -1, 4, 1 << 20))),
            )  # fmt: skip
            peer.connection.receive(segment, peer.now)
            peer.connection.transmit(peer.now)
            peer.wait(numbers.choice((0.0, 0.05, 0.5)))
        assert peer.connection.state is State.ESTABLISHED
        receiver = peer.receiver
        assert receiver.buffer.unread + sum(b - a for a, b in receiver.buffer.runs) <= 20_000
        peer.give(peer.segment(seq=receiver.rcv_nxt & 0xFFFFFFFF, ack=peer.number(3)))
        assert peer.sender.snd_una == peer.iss + 1 + 3000
