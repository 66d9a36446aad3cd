"""A state machine that talks nonsense to a reference host and checks what must always hold.

The same invariants hold for every recovery variant; a failing run is printed by Hypothesis as a
script of calls.
"""

from __future__ import annotations

from bentpipe_reference.common.address import address_number
from bentpipe_reference.tcp.config import VARIANTS, EndpointConfig
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.wire import Segment, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.sequence import MASK
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bentpipe_fuzz.tcp.strategies import hostile_octets, segments

HOST = "10.77.0.2"
PEER = address_number("10.78.0.1")
PEER_PORT = 40000
MOST_CONNECTIONS = 8
PACKETS_AT_ONCE = 2000
"""More packets than any window of these tests holds; a host that sends more is out of control."""


class HostMachine(RuleBasedStateMachine):
    """One host, one fairly sane peer, and noise."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.service = 19
        self.next = 1000
        self.received = 0
        self.host = TcpHost(HOST, EndpointConfig(), 1, most_connections=MOST_CONNECTIONS)

    @initialize(
        variant=st.sampled_from(VARIANTS),
        service=st.sampled_from([7, 9, 19]),
        mss=st.sampled_from([1, 100, 536, 1460]),
    )
    def choose(self, variant: str, service: int, mss: int) -> None:
        """Start the host in one of its variants and open a connection."""
        config = EndpointConfig(variant=next(v for v in VARIANTS if v == variant))
        self.host = TcpHost(HOST, config, 1, most_connections=MOST_CONNECTIONS)
        self.service = service
        syn = self.segment(flags=0x02)
        syn.mss, syn.sack_permitted, syn.window_scale = mss, True, 7
        self.next += 1
        self.put(syn)
        self.put(self.segment(flags=0x10))

    def segment(self, flags: int) -> Segment:
        """An in-sequence segment of the peer."""
        return Segment(
            PEER, address_number(HOST), PEER_PORT, self.service,
            seq=self.next & MASK, ack=self.received & MASK, flags=flags, window=1000,
        )  # fmt: skip

    def put(self, segment: Segment) -> None:
        """Deliver a segment and receive the answers."""
        self.host.receive(emit_packet(segment), self.now)
        self.take()

    def take(self) -> None:
        """Receive what the host sends: well-formed, and not without end."""
        packets = self.host.transmit(self.now)
        assert len(packets) <= PACKETS_AT_ONCE
        for packet in packets:
            answer = parse_packet(packet)
            assert answer.source == address_number(HOST)
            if answer.dport == PEER_PORT and not answer.flags & 0x04:
                end = (answer.seq + answer.sequence_length) & MASK
                if self.received == 0 or ((end - self.received) & MASK) < 1 << 31:
                    self.received = end

    @rule(octets=hostile_octets)
    def noise(self, octets: bytes) -> None:
        """Octets from anywhere."""
        self.host.receive(octets, self.now)
        self.take()

    @rule(drawn=segments(source=PEER, destination=address_number(HOST), sport=PEER_PORT, dport=19))
    def nonsense(self, drawn: tuple[Segment, int, int, tuple[tuple[int, int], ...]]) -> None:
        """A segment of this connection with numbers near or far from the truth."""
        segment, seq, ack, edges = drawn
        segment.dport = self.service
        segment.seq = (self.next + seq) & MASK
        segment.ack = (self.received + ack) & MASK
        segment.sack_blocks = tuple(
            ((self.received + a) & MASK, (self.received + b) & MASK) for a, b in edges
        )
        if segment.mss is not None and len(edges) > 1:
            segment.mss = None
        if segment.timestamps is not None and segment.window_scale is not None and edges:
            segment.window_scale = None
        if segment.timestamps is not None and segment.sack_permitted and len(edges) > 1:
            segment.sack_permitted = False
        self.put(segment)

    @rule(share=st.floats(0, 1))
    def acknowledge(self, share: float) -> None:
        """Acknowledge what has arrived, or request it again."""
        if share > 0.3:
            self.put(self.segment(flags=0x10))
        else:
            repeated = self.segment(flags=0x10)
            repeated.ack = (self.received - 1000) & MASK
            self.put(repeated)

    @rule(octets=st.integers(1, 1000))
    def data(self, octets: int) -> None:
        """The next octets in sequence."""
        segment = self.segment(flags=0x18)
        segment.payload = b"d" * octets
        self.next += octets
        self.put(segment)

    @rule(seconds=st.sampled_from([0.001, 0.1, 1.0, 60.0, 4000.0]))
    def silence(self, seconds: float) -> None:
        """Let time pass without packets; every deadline is met."""
        until = self.now + seconds
        steps = 0
        while (deadline := self.host.next_deadline()) is not None and deadline <= until:
            assert steps < 20_000, "the host's timers expire without end"
            steps += 1
            self.now = max(self.now, deadline)
            self.host.advance(self.now)
            self.take()
        self.now = until

    @invariant()
    def connections_are_bounded(self) -> None:
        """Memory does not grow with what the peer sends."""
        assert len(self.host.connections) <= MOST_CONNECTIONS

    @invariant()
    def nothing_is_left_to_send(self) -> None:
        """Unless time passes or packets arrive, the host has nothing more to send."""
        assert self.host.transmit(self.now) == []
