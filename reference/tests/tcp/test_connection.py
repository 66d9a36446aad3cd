"""Opening, closing and resetting, and segments that do not belong."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.states import TRANSITIONS, Happening, State, transitions
from bentpipe_reference.tcp.wire import Flags, Segment

A, B = 1, 2


class Pair:
    """Two connections whose segments are carried over by hand, without delay."""

    def __init__(self, first: EndpointConfig | None = None, second: EndpointConfig | None = None):
        self.a = Connection(first or EndpointConfig(), Addresses(A, 10, B, 20), 100)
        self.b = Connection(second or EndpointConfig(), Addresses(B, 20, A, 10), 900)
        self.now = 0.0

    def connect(self) -> Pair:
        self.a.open(self.now)
        (syn,) = self.a.transmit(self.now)
        self.b.accept(syn, self.now)
        self.carry()
        return self

    def carry(self) -> list[Segment]:
        """Deliver whatever either end sends until both are silent."""
        carried: list[Segment] = []
        while segments := self.a.transmit(self.now) + self.b.transmit(self.now):
            for segment in segments:
                carried.append(segment)
                (self.b if segment.source == A else self.a).receive(segment, self.now)
        return carried

    @property
    def states(self) -> tuple[State, State]:
        return self.a.state, self.b.state


def test_open_when_answered_establishes_both() -> None:
    assert Pair().connect().states == (State.ESTABLISHED, State.ESTABLISHED)


def test_open_when_both_ends_open_at_once_establishes_both() -> None:
    pair = Pair()
    pair.a.open(0.0)
    pair.b.open(0.0)
    pair.carry()
    assert pair.states == (State.ESTABLISHED, State.ESTABLISHED)
    pair.a.write(b"over", 0.0)
    pair.carry()
    assert pair.b.read() == b"over"


@pytest.mark.parametrize("answering", [True, False])
def test_options_when_only_one_end_offers_them_are_off(answering: bool) -> None:
    plain = EndpointConfig(sack=False, timestamps=False, window_scale=False)
    pair = Pair(*((EndpointConfig(), plain) if answering else (plain, EndpointConfig())))
    pair.connect()
    for end in (pair.a, pair.b):
        assert not end.sender.sack_ok
        assert not end.handshake.timestamps_ok
        assert (end.handshake.send_shift, end.handshake.receive_shift) == (0, 0)


def test_answer_to_a_bare_syn_has_no_options_but_mss(script: Any) -> None:
    connection = Connection(EndpointConfig(), Addresses(B, 20, A, 10), 900)
    connection.accept(Segment(A, B, 10, 20, seq=5, flags=Flags.SYN, window=100), 0.0)
    (answer,) = connection.transmit(0.0)
    assert answer.flags == Flags.SYN | Flags.ACK
    assert (answer.window_scale, answer.sack_permitted, answer.timestamps) == (None, False, None)
    assert answer.mss == 1460


def test_window_shift_above_fourteen_counts_as_fourteen() -> None:
    connection = Connection(EndpointConfig(), Addresses(B, 20, A, 10), 900)
    syn = Segment(A, B, 10, 20, seq=5, flags=Flags.SYN, window=100, window_scale=15)
    connection.accept(syn, 0.0)
    assert connection.handshake.send_shift == 14


def test_syn_when_repeated_is_answered_again() -> None:
    pair = Pair()
    pair.a.open(0.0)
    (syn,) = pair.a.transmit(0.0)
    pair.b.accept(syn, 0.0)
    pair.b.transmit(0.0)
    pair.b.receive(syn, 0.5)
    (again,) = pair.b.transmit(0.5)
    assert again.flags == Flags.SYN | Flags.ACK


def test_syn_when_never_answered_is_repeated_and_given_up() -> None:
    pair = Pair(EndpointConfig(max_syn_retransmissions=3))
    pair.a.open(0.0)
    times = []
    while (deadline := pair.a.next_deadline()) is not None:
        times += [pair.now for _ in pair.a.transmit(pair.now)]
        pair.now = deadline
        pair.a.advance(pair.now)
    assert times == [0.0, 1.0, 3.0, 7.0]
    assert (pair.a.state, pair.now) == (State.CLOSED, 15.0)
    assert pair.a.failure


def test_open_when_refused_says_so() -> None:
    pair = Pair()
    pair.a.open(0.0)
    (syn,) = pair.a.transmit(0.0)
    pair.a.receive(Segment(B, A, 20, 10, ack=syn.seq + 1, flags=Flags.RST | Flags.ACK), 0.1)
    assert pair.a.state is State.CLOSED
    assert pair.a.failure == "the peer refused the connection"


def test_close_one_after_the_other_passes_the_states() -> None:
    pair = Pair().connect()
    pair.a.close(0.0)
    pair.carry()
    assert pair.states == (State.FIN_WAIT_2, State.CLOSE_WAIT)
    pair.b.write(b"still open this way", 0.0)
    pair.carry()
    assert pair.a.read() == b"still open this way"
    pair.b.close(0.0)
    pair.carry()
    assert pair.states == (State.TIME_WAIT, State.CLOSED)
    pair.a.advance(60.0)
    assert pair.a.state is State.CLOSED
    assert pair.a.failure is None


def test_close_at_once_passes_closing() -> None:
    pair = Pair().connect()
    pair.a.close(0.0)
    pair.b.close(0.0)
    crossing = pair.a.transmit(0.0) + pair.b.transmit(0.0)
    for segment in crossing:
        (pair.b if segment.source == A else pair.a).receive(segment, 0.0)
    assert pair.states == (State.CLOSING, State.CLOSING)
    pair.carry()
    assert pair.states == (State.TIME_WAIT, State.TIME_WAIT)


def test_fin_repeated_in_time_wait_is_acknowledged_and_restarts_it() -> None:
    pair = Pair().connect()
    pair.a.close(0.0)
    pair.carry()
    pair.b.close(0.0)
    (fin,) = pair.b.transmit(0.0)
    pair.a.receive(fin, 0.0)
    pair.a.transmit(0.0)
    pair.a.receive(fin, 30.0)
    (again,) = pair.a.transmit(30.0)
    assert again.flags == Flags.ACK
    assert pair.a.time_wait_until == 90.0


def test_write_when_buffer_is_full_takes_what_fits() -> None:
    pair = Pair(EndpointConfig(send_buffer=1000)).connect()
    assert pair.a.write(bytes(1500), 0.0) == 1000
    assert pair.a.write_room == 0
    pair.carry()
    pair.now = 0.2
    pair.b.advance(pair.now)
    pair.carry()
    assert pair.a.write_room == 1000


def test_write_after_close_is_refused() -> None:
    pair = Pair().connect()
    pair.a.close(0.0)
    with pytest.raises(ValueError, match="after close"):
        pair.a.write(b"x", 0.0)


def test_reset_at_the_next_number_ends_the_connection(script: Any) -> None:
    peer = script()
    peer.give(peer.segment(flags=Flags.RST))
    assert peer.connection.state is State.CLOSED
    assert peer.connection.failure == "the peer reset the connection"
    assert peer.connection.next_deadline() is None


def test_reset_elsewhere_in_the_window_is_challenged(script: Any) -> None:
    """RFC 5961 section 3.2."""
    peer = script()
    peer.give(peer.segment(flags=Flags.RST, seq=peer.segment().seq + 100))
    assert peer.connection.state is State.ESTABLISHED
    assert [segment.flags for segment in peer.last] == [Flags.ACK]


def test_reset_outside_the_window_is_ignored(script: Any) -> None:
    peer = script()
    peer.give(peer.segment(flags=Flags.RST, seq=peer.segment().seq - 1))
    assert peer.connection.state is State.ESTABLISHED
    assert peer.last == []


def test_closed_window_keeps_out_the_data_of_a_reset_not_the_reset(script: Any) -> None:
    """RFC 9293 section 3.10.7.4: special allowance is made for RSTs."""
    peer = script()
    receiver = peer.connection.receiver
    receiver.edge = receiver.rcv_nxt
    peer.give(peer.segment(payload=b"x", flags=Flags.RST))
    assert peer.connection.state is State.CLOSED


def test_reset_with_an_old_timestamp_still_counts(script: Any) -> None:
    peer = script(timestamps=True)
    peer.now = 100.0
    peer.ack(1)
    peer.give(peer.segment(flags=Flags.RST, timestamps=(1, 0)))
    assert peer.connection.state is State.CLOSED


def test_syn_on_a_live_connection_is_challenged(script: Any) -> None:
    """RFC 5961 section 4.2."""
    peer = script()
    peer.give(peer.segment(flags=Flags.SYN))
    assert peer.connection.state is State.ESTABLISHED
    assert [segment.flags for segment in peer.last] == [Flags.ACK]


def test_segment_beyond_the_window_has_its_ack_ignored(script: Any) -> None:
    peer = script()
    far = peer.segment().seq + (1 << 20)
    peer.give(peer.segment(ack=peer.number(5), seq=far, payload=b"x"))
    assert peer.sender.snd_una == peer.iss + 1
    assert [segment.flags & ~Flags.PSH for segment in peer.last] == [Flags.ACK]


def test_segment_without_ack_is_dropped(script: Any) -> None:
    peer = script()
    peer.give(peer.segment(flags=0, payload=b"x"))
    assert peer.connection.readable == 0
    assert peer.last == []


def test_handshake_when_acknowledged_wrongly_is_reset(script: Any) -> None:
    peer = script(connect=False)
    peer.give(peer.segment(ack=peer.number(5)))
    assert [(segment.flags, segment.seq) for segment in peer.last] == [(Flags.RST, peer.number(5))]
    assert peer.connection.state is State.SYN_RECEIVED


@pytest.mark.parametrize("octets", [0, 100])
def test_handshake_half_open_hears_the_syn_again(script: Any, octets: int) -> None:
    """It is below the window, whatever data it carries; with an acknowledgment it opens."""
    peer = script(connect=False)
    irs = peer.segment().seq - 1
    peer.give(peer.segment(flags=Flags.SYN, seq=irs, payload=bytes(octets)))
    assert [segment.flags for segment in peer.last] == [Flags.SYN | Flags.ACK]
    both = Flags.SYN | Flags.ACK
    peer.give(peer.segment(flags=both, seq=irs, ack=peer.number(0), payload=bytes(octets)))
    assert peer.connection.state is State.ESTABLISHED
    assert peer.connection.readable == 0


def test_events_when_asked_for_tell_what_happened() -> None:
    names: list[str] = []
    a = Connection(
        EndpointConfig(),
        Addresses(A, 10, B, 20),
        1,
        on_event=lambda event: names.append(event.name),
    )
    pair = Pair()
    pair.a = a
    pair.connect()
    pair.a.write(b"x" * 5000, 0.0)
    pair.carry()
    assert names.count("send") == 4
    assert "ack" in names
    assert names.count("state") == 2


def test_transitions_when_drawn_leave_out_resets() -> None:
    drawn = transitions()
    assert ("SYN-SENT", "ESTABLISHED", "ACK of our SYN") in drawn
    assert {state for state, _, _ in drawn} == {state.value for state in State}
    assert Happening.ENDED.value not in {happening for _, _, happening in drawn}


def test_every_state_can_be_left() -> None:
    for state in State:
        if state is not State.CLOSED:
            assert {to for (at, _), to in TRANSITIONS.items() if at is state} - {state}
        assert TRANSITIONS[state, Happening.ENDED] is State.CLOSED


@pytest.mark.parametrize("settings", [{"variant": "tahoe"}, {"mss": 0}, {"mss": 70_000}])
def test_config_with_a_mistake_names_the_remedy(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"(choose from|give octets)"):
        EndpointConfig(**settings)
