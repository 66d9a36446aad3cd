"""The tester as a scripted TCP peer.

Scripts are synchronous: waiting blocks in select on a real link and steps the event queue on the
simulated one. Nothing here judges; a script only drives the implementation under test (IUT) into
a situation. Offsets count octets of a direction, 0 being the first octet of data.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bentpipe_reference.common.ranges import Range, RangeSet

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.lane import Port
from bentpipe_conformance.engine.peer import PATIENCE_S, STANDARD_SERVICES, NotReached
from bentpipe_conformance.protocols.tcp.codec import (
    ACK,
    FIN,
    MODULUS,
    PSH,
    RST,
    SYN,
    Tcp,
    build,
    dissect,
)

QUIET_S = 0.05
"""Seconds without an arrival after which a window's worth of segments has arrived: five times what
the slowest link of the profiles takes for one, and short enough that no retransmission timer of
200 ms expires meanwhile on a path of 80 ms."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as it reached the tester: arrival time, payload as offsets, and the dissection."""

    time: float
    start: int
    end: int
    ack: int
    tcp: Tcp

    @property
    def has_data(self) -> bool:
        """Whether it carries data or FIN."""
        return self.end > self.start


Drop = Callable[[Segment, int], bool]
"""Given a segment and how often its first octet arrived before (0, 1, ...), whether to lose it."""


def lose_nothing(_segment: Segment, _seen: int) -> bool:
    """The drop rule of a link without loss."""
    return False


def lose(times: Mapping[int, int] | Iterable[int], size: int) -> Drop:
    """Lose segments by index (offset // size): each once, or as often as a mapping says."""
    wanted = dict(times) if isinstance(times, Mapping) else dict.fromkeys(times, 1)
    return lambda segment, seen: seen < wanted.get(segment.start // size, 0)


class Peer:
    """The tester on one lane during one case.

    Attributes:
        address: the tester's IPv4 address in this case.
        rtt: round-trip time of the link without queueing, in seconds.
        random: the case's own random source, seeded from the run's printed seed.
        strays: packets that belong to no connection of this case.
    """

    def __init__(
        self,
        port: Port,
        address: str,
        iut_address: str,
        *,
        rtt: float,
        seed: int = 0,
        services: Mapping[str, int] = STANDARD_SERVICES,
    ) -> None:
        self.address = address
        self.iut_address = iut_address
        self.rtt = rtt
        self.random = random.Random(seed)
        self.strays: list[tuple[float, bytes]] = []
        self._port = port
        self._services = services
        self._connections: dict[tuple[int, int], Connection] = {}
        self._next_port = 40000

    def now(self) -> float:
        """Seconds on the lane's clock."""
        return self._port.now()

    def send(self, packet: bytes) -> None:
        """Put any IPv4 packet on the link, for example one crafted with Scapy."""
        self._port.send(packet)

    def connect(
        self,
        service: str = "chargen",
        *,
        mss: int | None = 1460,
        sack: bool = True,
        timestamps: bool = False,
        window_scale: int | None = 7,
        window: int = 1 << 20,
        syn_window: int = 65535,
        tsval: int | None = None,
        options: bytes = b"",
    ) -> Connection:
        """Open a connection to a service of the IUT and complete the handshake.

        Args:
            service: name of an upper-tester service.
            mss: MSS option, None to leave it out.
            sack: offer SACK-permitted.
            timestamps: offer the Timestamps option.
            window_scale: shift to offer, None to leave the option out.
            window: octets to offer once established.
            syn_window: window field of the SYN, never scaled.
            tsval: first timestamp value; a random one when omitted.
            options: raw octets to append to the SYN's option list.

        Raises:
            NotReached: no SYN-ACK came, or the connection was refused.
        """
        connection = self.begin_connection(
            service, mss=mss, sack=sack, timestamps=timestamps, window_scale=window_scale,
            window=window, syn_window=syn_window, tsval=tsval, options=options,
        )  # fmt: skip
        connection.establish()
        return connection

    def begin_connection(self, service: str = "chargen", **offer: object) -> Connection:
        """Send a SYN and return at once; arguments as for :meth:`connect`."""
        self._next_port += 1
        connection = Connection(self, self._services[service], self._next_port, **offer)  # type: ignore[arg-type]
        self._connections[self._next_port, self._services[service]] = connection
        connection.send_syn()
        return connection

    def pump(self, deadline: float) -> bool:
        """Take one packet off the link into its connection's inbox; False at the deadline."""
        item = self._port.receive(deadline)
        if item is None:
            return False
        time, packet = item
        try:
            tcp = dissect(packet)
        except MalformedPacket:
            self.strays.append((time, packet))
            return True
        connection = self._connections.get((tcp.dport, tcp.sport))
        if connection is None or tcp.src != self.iut_address:
            self.strays.append((time, packet))
        else:
            connection.take(time, tcp)
        return True

    def wait(self, seconds: float) -> None:
        """Let time pass; what arrives waits in the inboxes."""
        deadline = self.now() + seconds
        while self.pump(deadline):
            pass

    def finish(self) -> None:
        """Reset every connection still open, so that the IUT carries nothing into the next case."""
        for connection in self._connections.values():
            if not connection.closed:
                connection.reset()


class Connection:
    """One connection of the tester with the IUT.

    Attributes:
        segment: payload of a full-sized segment of the IUT, known after its first data.
        window: octets the tester offers in its next segment.
        delivered: next offset the tester expects in sequence.
        held: what the tester holds, in or out of sequence.
        acked: highest offset of the tester's data the IUT has acknowledged.
        iut_window: octets the IUT last offered, scaled.
        next: offset of the tester's next new data.
        closed: a RST was seen or sent.
        syn_ack: the IUT's SYN-ACK.
    """

    def __init__(
        self,
        peer: Peer,
        port: int,
        source_port: int,
        *,
        mss: int | None = 1460,
        sack: bool = True,
        timestamps: bool = False,
        window_scale: int | None = 7,
        window: int = 1 << 20,
        syn_window: int = 65535,
        tsval: int | None = None,
        options: bytes = b"",
    ) -> None:
        self.peer = peer
        self.window = window
        self.segment = mss if mss is not None else 536
        self.delivered = 0
        self.held = RangeSet()
        self.acked = 0
        self.iut_window = 0
        self.next = 0
        self.closed = False
        self.syn_ack: Tcp | None = None
        self.inbox: deque[Segment] = deque()
        self.seen: dict[int, int] = {}
        self._recent: list[Range] = []
        self._segment_known = False
        self._iss = peer.random.getrandbits(32)
        self._irs = 0
        self._highest = 0
        self._ts_base = tsval if tsval is not None else peer.random.getrandbits(31)
        self._ts_start = peer.now()
        self._ts_recent = 0
        self._shift = 0
        self._iut_shift = 0
        self._syn_options = options
        self._syn = Tcp(
            peer.address, peer.iut_address, source_port, port, self._iss, 0, SYN, syn_window, b"",
            mss=mss, window_scale=window_scale, sack_permitted=sack,
            tsval=self._ts_base if timestamps else None, tsecr=0,
        )  # fmt: skip

    # -- opening and closing

    def send_syn(self) -> None:
        """Send (or repeat) the SYN."""
        self.peer.send(build(self._syn, self._syn_options))

    def establish(self) -> None:
        """Wait for the SYN-ACK and acknowledge it.

        Raises:
            NotReached: it did not come, or a RST came.
        """
        deadline = self.peer.now() + 2 * self.peer.rtt + PATIENCE_S
        while self.syn_ack is None and not self.closed:
            if not self.peer.pump(deadline):
                raise NotReached(
                    f"no SYN-ACK from port {self._syn.dport} within "
                    f"{2 * self.peer.rtt + PATIENCE_S:.1f} s"
                )
        if self.closed:
            raise NotReached(f"port {self._syn.dport} refused the connection")
        self.ack()

    @property
    def sack(self) -> bool:
        """Whether SACK was negotiated."""
        return bool(self._syn.sack_permitted and self.syn_ack and self.syn_ack.sack_permitted)

    @property
    def timestamps(self) -> bool:
        """Whether timestamps were negotiated."""
        return bool(self._syn.tsval is not None and self.syn_ack and self.syn_ack.tsval is not None)

    def reset(self) -> None:
        """Send a RST the IUT must accept: exactly at the octet it expects (RFC 5961)."""
        if self.syn_ack is not None:
            self.send(flags=RST | ACK, at=self.acked)
        self.closed = True

    def close(self) -> None:
        """Send FIN."""
        self.send(flags=FIN | ACK)

    # -- sending

    def timestamp(self) -> int:
        """The tester's timestamp clock: 1 ms ticks."""
        return (self._ts_base + int((self.peer.now() - self._ts_start) * 1000)) % MODULUS

    def ack(
        self,
        ack: int | None = None,
        *,
        sack: Sequence[Range] | None = None,
        window: int | None = None,
    ) -> None:
        """Send a pure acknowledgment.

        Args:
            ack: offset to acknowledge; everything delivered in sequence when omitted.
            sack: SACK blocks as offsets, in wire order; the RFC 2018 blocks for what is held
                when omitted, none when empty.
            window: octets to offer in this and later segments.
        """
        if window is not None:
            self.window = window
        self.send(flags=ACK, ack=ack, sack=sack)

    def send(
        self,
        payload: bytes = b"",
        *,
        flags: int = ACK,
        at: int | None = None,
        ack: int | None = None,
        sack: Sequence[Range] | None = None,
        tsval: int | None = None,
        tsecr: int | None = None,
        options: bytes = b"",
    ) -> None:
        """Send any segment of this connection.

        Args:
            payload: data.
            flags: TCP flags.
            at: offset of the first octet; the next new one when omitted.
            ack: offset to acknowledge; what is delivered when omitted.
            sack: SACK blocks as offsets; see :meth:`ack`.
            tsval: timestamp value instead of the clock's.
            tsecr: echoed timestamp instead of the most recent one.
            options: raw octets to append to the option list.
        """
        segment = self.compose(
            payload, flags=flags, at=at, ack=ack, sack=sack, tsval=tsval, tsecr=tsecr
        )
        self.peer.send(build(segment, options))
        if at is None:
            self.next += len(payload) + bool(flags & FIN)

    def compose(
        self,
        payload: bytes = b"",
        *,
        flags: int = ACK,
        at: int | None = None,
        ack: int | None = None,
        sack: Sequence[Range] | None = None,
        tsval: int | None = None,
        tsecr: int | None = None,
    ) -> Tcp:
        """The segment :meth:`send` would send, for scripts that distort it first."""
        blocks = self.sack_blocks() if sack is None else list(sack)
        if not self.sack and sack is None:
            blocks = []
        stamp = (self.timestamp() if tsval is None else tsval) if self.timestamps else None
        return replace(
            self._syn,
            seq=(self._iss + 1 + (self.next if at is None else at)) % MODULUS,
            ack=(self._irs + 1 + (self.delivered if ack is None else ack)) % MODULUS,
            flags=flags,
            window=min(self.window >> self._shift, 0xFFFF),
            payload=payload,
            mss=None,
            window_scale=None,
            sack_permitted=False,
            sack=tuple(
                ((self._irs + 1 + a) % MODULUS, (self._irs + 1 + b) % MODULUS) for a, b in blocks
            ),
            tsval=stamp,
            tsecr=(self._ts_recent if tsecr is None else tsecr) if stamp is not None else None,
        )

    def send_data(self, octets: int, *, at: int | None = None, flags: int = ACK | PSH) -> None:
        """Send ``octets`` of patterned data in one segment (``at`` as in :meth:`send`)."""
        start = self.next if at is None else at
        self.send(pattern(start, octets), at=at, flags=flags)

    def sack_blocks(self) -> list[Range]:
        """RFC 2018 blocks for what is held above ``delivered``: newest first, 3 or 4 at most."""
        limit = 3 if self.timestamps else 4
        return [block for block in self._recent if block[1] > self.delivered][:limit]

    # -- receiving

    def take(self, time: float, tcp: Tcp) -> None:
        """Accept a segment from the link into the inbox (the peer calls this)."""
        if tcp.flags & RST:
            self.closed = True
            return
        if tcp.flags & SYN:
            if self.syn_ack is None and tcp.flags & ACK:
                self.syn_ack = tcp
                self._irs = tcp.seq
                self.iut_window = tcp.window
                if self._syn.window_scale is not None and tcp.window_scale is not None:
                    self._shift, self._iut_shift = self._syn.window_scale, tcp.window_scale
                if tcp.tsval is not None:
                    self._ts_recent = tcp.tsval
            return
        if self.syn_ack is None:
            return
        start = self._unwrap(tcp.seq)
        ack = self._unwrap_ack(tcp.ack)
        self._highest = max(self._highest, start + tcp.length)
        self.acked = max(self.acked, ack)
        self.iut_window = tcp.window << self._iut_shift
        if tcp.tsval is not None and start <= self.delivered:
            self._ts_recent = tcp.tsval
        if tcp.payload and not self._segment_known:
            self.segment, self._segment_known = len(tcp.payload), True
        self.inbox.append(Segment(time, start, start + tcp.length, ack, tcp))

    def _unwrap(self, seq: int) -> int:
        near = (self._irs + 1 + self._highest) % MODULUS
        return self._highest + ((seq - near + MODULUS // 2) % MODULUS) - MODULUS // 2

    def _unwrap_ack(self, ack: int) -> int:
        near = (self._iss + 1 + self.acked) % MODULUS
        return self.acked + ((ack - near + MODULUS // 2) % MODULUS) - MODULUS // 2

    def next_segment(self, within: float) -> Segment | None:
        """The next segment of this connection, or None after ``within`` seconds."""
        deadline = self.peer.now() + within
        while not self.inbox:
            if self.closed or not self.peer.pump(deadline):
                return None
        return self.inbox.popleft()

    def expect(
        self,
        match: Callable[[Segment], bool] = lambda segment: segment.has_data,
        *,
        within: float | None = None,
        what: str = "a data segment",
    ) -> Segment:
        """The next segment that matches; others are passed over.

        Raises:
            NotReached: none came in time (two round trips and :data:`PATIENCE_S` by default).
        """
        patience = 2 * self.peer.rtt + PATIENCE_S if within is None else within
        deadline = self.peer.now() + patience
        while (segment := self.next_segment(deadline - self.peer.now())) is not None:
            if match(segment):
                return segment
        ended = "the connection was reset" if self.closed else f"{patience:.1f} s passed"
        raise NotReached(f"{ended} without {what}")

    def collect(self, for_: float) -> list[Segment]:
        """Take in whatever arrives during ``for_`` seconds without acknowledging it.

        The data counts as received: a later :meth:`ack` reports it.
        """
        found = []
        deadline = self.peer.now() + for_
        while (segment := self.next_segment(deadline - self.peer.now())) is not None:
            if segment.has_data:
                self.hold(segment)
                found.append(segment)
        return found

    def discard(self, for_: float) -> list[Segment]:
        """As :meth:`collect`, but the data counts as lost on the way."""
        found = []
        deadline = self.peer.now() + for_
        while (segment := self.next_segment(deadline - self.peer.now())) is not None:
            found.append(segment)
        return found

    def hold(self, segment: Segment) -> bool:
        """Count a segment's data as received; return whether it was in sequence and new."""
        self.seen[segment.start] = self.seen.get(segment.start, 0) + 1
        advanced = segment.start <= self.delivered < segment.end
        self.held.add(segment.start, segment.end)
        for left, right in self.held.snapshot():
            if left <= self.delivered < right:
                self.delivered = right
            if left <= segment.start < right and left > self.delivered:
                self._recent = [
                    block for block in self._recent if block[1] < left or block[0] > right
                ]
                self._recent.insert(0, (left, right))
        self._recent = [block for block in self._recent if block[0] > self.delivered]
        return advanced

    def renege(self, to: int) -> None:
        """Throw away whatever is held from offset ``to`` on (RFC 2018 section 8)."""
        self.delivered = to
        self.held = RangeSet(((0, to),))
        self._recent = []

    def serve(
        self,
        until: Callable[[], bool],
        *,
        drop: Drop = lose_nothing,
        ack_every: int = 1,
        within: float | None = None,
    ) -> None:
        """Be an ordinary receiver, except for losing what ``drop`` says, until ``until()``.

        In-sequence data is acknowledged every ``ack_every`` segments, anything else at once.

        Raises:
            NotReached: ``until()`` was still false after ``within`` seconds (a minute and twenty
                round trips by default) or when the IUT reset the connection.
        """
        patience = 60 + 20 * self.peer.rtt if within is None else within
        deadline = self.peer.now() + patience
        owed = 0
        while not until():
            segment = self.next_segment(deadline - self.peer.now())
            if segment is None:
                reason = "the IUT reset it" if self.closed else f"{patience:.0f} s passed"
                raise NotReached(f"{reason} with {self.delivered} octets delivered")
            if not segment.has_data:
                continue
            if drop(segment, self.seen.get(segment.start, 0)):
                self.seen[segment.start] = self.seen.get(segment.start, 0) + 1
                continue
            in_sequence = self.hold(segment) and not self._recent
            owed += 1
            if owed >= ack_every or not in_sequence:
                self.ack()
                owed = 0

    def receive(
        self,
        segments: int,
        *,
        losing: Mapping[int, int] | Iterable[int] = (),
        ack_every: int = 1,
        within: float | None = None,
    ) -> None:
        """Be an ordinary receiver until ``segments`` full segments are delivered in sequence.

        ``losing`` names segments by index from the start of the connection; each is lost once, or
        as many times as a mapping says.
        """

        def drop(segment: Segment, seen: int) -> bool:
            return lose(losing, self.segment)(segment, seen)

        self.serve(
            lambda: self.delivered >= segments * self.segment,
            drop=drop,
            ack_every=ack_every,
            within=within,
        )

    @property
    def highest(self) -> int:
        """One past the highest offset of the IUT's data that has arrived, lost or not."""
        return self._highest

    def await_round(self) -> int:
        """Wait for data and then until none follows; return the segments that wait in the inbox.

        Raises:
            NotReached: no data came in time.
        """
        if not any(segment.has_data for segment in self.inbox):
            self.inbox.appendleft(self.expect())
        while self.peer.pump(self.peer.now() + QUIET_S):
            pass
        return sum(segment.has_data for segment in self.inbox)

    def grow(self, flight: int) -> None:
        """Be an ordinary receiver, a window at a time, until ``flight`` segments are outstanding.

        They wait in the inbox, neither acknowledged nor taken in; take them in with
        :meth:`collect`, or lose them with :meth:`discard`. Slow start doubles, so up to twice as
        many can be outstanding.

        Raises:
            NotReached: the flight has stopped growing below that.
        """
        largest = stagnant = 0
        while True:
            self.await_round()
            outstanding = -(-(self._highest - self.delivered) // self.segment)
            if outstanding >= flight:
                return
            stagnant = 0 if outstanding > largest else stagnant + 1
            largest = max(largest, outstanding)
            if stagnant == 4:
                raise NotReached(f"the IUT keeps no more than {largest} segments outstanding")
            for _ in range(len(self.inbox)):
                segment = self.inbox.popleft()
                if segment.has_data:
                    self.hold(segment)
                    self.ack()


def pattern(offset: int, octets: int) -> bytes:
    """Test data: printable octets that depend only on the stream offset."""
    cycle = bytes(range(33, 127))
    start = offset % len(cycle)
    return (cycle[start:] + cycle * (octets // len(cycle) + 1))[:octets]


__all__ = [
    "PATIENCE_S", "STANDARD_SERVICES", "Connection", "Drop", "NotReached", "Peer", "Segment",
    "lose", "lose_nothing", "pattern",
]  # fmt: skip
