"""One TCP connection of the tester with the implementation under test (IUT).

Offsets count octets of a direction, 0 being the first octet of data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from bentpipe_reference.common.ranges import Range
from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.peer import (
    BaseConnection,
    BasePeer,
    Losses,
    NotReached,
    pattern,
    rule_to_lose,
)
from bentpipe_conformance.protocols.tcp import codec
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, Tcp
from bentpipe_conformance.protocols.tcp.crafting import Option, close_options, craft, usual_options
from bentpipe_conformance.protocols.tcp.reception import Reception

SEGMENT = 1460
"""Octets of a full-sized segment on the links of the profiles, without TCP options."""

QUIET_S = 0.05
"""Seconds without an arrival after which a window's worth of segments has arrived: five times what
the slowest link of the profiles takes for one, and short enough that no retransmission timer of
200 ms expires meanwhile on a path of 80 ms."""


SOON_BITS, SOON_TICKS_BITS = 12.0, 13.0
"""Binary logarithms of the most octets, and ticks of the clock, before a wrap that is soon."""


def _soon_wrapping(numbers: Random, bits: float) -> int:
    """A number that in every other case is at most 2^``bits`` before 2^32, or before 2^31."""
    kind, before = numbers.randrange(8), int(2 ** numbers.uniform(0, bits))
    if kind > 3:
        return numbers.getrandbits(32)
    return (MODULUS // 2 if kind == 0 else MODULUS) - before


@record
class Segment:
    """A segment of the IUT as it reached the tester: time, payload as offsets, dissection."""

    time: float
    start: int
    end: int
    ack: int
    tcp: Tcp

    @property
    def has_data(self) -> bool:
        """Whether it carries data or FIN."""
        return self.end > self.start


class Connection(BaseConnection[Tcp, Segment]):
    """One connection of the tester with the IUT.

    Attributes:
        segment: payload of a full-sized segment of the IUT, known after its first data; before
            that no more than the IUT takes (its MSS option or 536).
        window: octets the tester offers in its next segment, if its user has read all.
        read: one past the highest offset that its user has read, None if it always reads all.
        reception: what the tester has received.
        acked: highest offset of the tester's data the IUT has acknowledged.
        iut_window: octets the IUT last offered, scaled.
        iut_edge: one past the highest offset that it has ever permitted.
        next_offset: offset of the tester's next new data.
        highest: one past the highest offset of the IUT's data that has arrived, lost or not.
        bearing: octets of new data that each acknowledgment carries; 0 for pure ones.
        padding: NOPs in front of the options of its segments, which then stand close together on
            any boundary (RFC 9293 section 3.1, MUST-64); None for the usual alignment.
        syn: the tester's SYN.
        appended: octets behind the options of its SYN or SYN-ACK, of a protocol that stands on TCP.
        syn_ack: the IUT's SYN-ACK, or its SYN if it called.
        spoken: whether more than SYNs have come from it.
    """

    spoken = False

    def __init__(
        self,
        peer: BasePeer[Tcp, Any],
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
        iss: int | None = None,
        options: Sequence[Option] = (),
        raw: bytes = b"",
    ) -> None:
        """What the tester offers, see also :meth:`Peer.connect`.

        Args:
            peer: the tester.
            port: the IUT's port.
            source_port: the tester's port.
            mss: MSS option, None to leave it out.
            sack: offer SACK-permitted.
            timestamps: offer the Timestamps option.
            window_scale: shift to offer, None to leave the option out.
            window: octets to offer once established.
            syn_window: window field of the SYN, never scaled.
            tsval: first timestamp value; a random one when omitted, which often wraps soon.
            iss: initial sequence number; the same.
            options: further options of the SYN; it is then a packet of Scapy.
            raw: octets behind its options, see :func:`~.crafting.craft`.
        """
        super().__init__(peer, port, source_port)
        self.window = window
        self.read: int | None = None
        self.segment = 536 if mss is None else max(mss, 1)
        self.reception = Reception()
        self.acked = 0
        self.iut_window = self.iut_edge = 0
        self.next_offset = 0
        self.highest = 0
        self.bearing = 0
        self.padding: int | None = None
        self.syn_ack: Tcp | None = None
        self._segment_known = False
        self._iss = _soon_wrapping(peer.random, SOON_BITS) if iss is None else iss % MODULUS
        self._irs = 0
        drawn = _soon_wrapping(peer.random, SOON_TICKS_BITS)
        self._ts_base = drawn if tsval is None else tsval
        self._ts_start = peer.now()
        self._ts_recent = 0
        self._shift = 0
        self._iut_shift = 0
        self._syn_options, self._syn_raw = list(options), raw
        self.appended = b""
        self.syn = Tcp(
            peer.address, peer.iut_address, source_port, port, self._iss, 0, SYN, syn_window, b"",
            mss=mss, window_scale=window_scale, sack_permitted=sack,
            tsval=self._ts_base if timestamps else None, tsecr=0,
        )  # fmt: skip

    @property
    def answered(self) -> bool:
        """Whether the SYN-ACK has come."""
        return self.syn_ack is not None

    @property
    def delivered(self) -> int:
        """Next offset the tester expects in sequence."""
        return self.reception.delivered

    @property
    def progress(self) -> str:
        """How much of the IUT's data the tester has in sequence."""
        return f"{self.delivered} octets delivered"

    # -- opening and closing

    def send_syn(self) -> None:
        """Send (or repeat) the SYN."""
        if self._syn_options or self._syn_raw:
            options = usual_options(self.syn) + self._syn_options
            self.peer.send(craft(self.syn, options, self.appended + self._syn_raw))
        else:
            self.peer.send(codec.build(self.syn, self.appended))

    def called(self, syn: Tcp) -> None:
        """The IUT's SYN has come; :meth:`answer` it, or not."""
        self._negotiate(syn)

    def answer(self, *, flags: int = SYN | ACK, ack: int = 0) -> None:
        """Send the SYN-ACK that accepts the IUT's SYN, or another segment with SYN.

        Args:
            flags: SYN alone for a simultaneous open.
            ack: offset to acknowledge.
        """
        syn, theirs = self.syn, self.syn_ack
        assert theirs is not None
        answer = replace(
            syn,
            flags=flags,
            ack=(self._irs + 1 + ack) % MODULUS if flags & ACK else 0,
            sack_permitted=self.sack,
            window_scale=syn.window_scale if theirs.window_scale is not None else None,
            tsval=self.timestamp() if self.timestamps else None,
            tsecr=self._ts_recent if flags & ACK else 0,
        )
        self.peer.send(codec.build(answer, self.appended))

    def establish(self) -> None:
        """Wait for the SYN-ACK and acknowledge it.

        Raises:
            NotReached: it did not come, or a RST came.
        """
        self.await_answer("SYN-ACK")
        self.ack()

    @property
    def sack(self) -> bool:
        """Whether SACK was negotiated."""
        return bool(self.syn.sack_permitted and self.syn_ack and self.syn_ack.sack_permitted)

    @property
    def timestamps(self) -> bool:
        """Whether timestamps were negotiated."""
        return bool(self.syn.tsval is not None and self.syn_ack and self.syn_ack.tsval is not None)

    def abort(self) -> None:
        """Send a RST the IUT must accept: exactly at the octet it expects (RFC 5961)."""
        if self.syn_ack is not None:
            self.send(flags=RST | ACK, at=self.acked)
        self.closed = "the tester reset it"

    # -- sending

    def timestamp(self) -> int:
        """The tester's timestamp clock: 1 ms ticks, of which zero is left out.

        RFC 7323 section 5.3 asks for a valid TS.Recent and leaves open how one is marked that is
        not. Who takes zero for that (Linux) accepts old data after it, which would show by chance.
        """
        return (self._ts_base + int((self.peer.now() - self._ts_start) * 1000)) % MODULUS or 1

    def ack(
        self,
        ack: int | None = None,
        *,
        sack: Sequence[Range] | None = None,
        window: int | None = None,
        pause: float = 0.0,
    ) -> None:
        """Send an acknowledgment, pure unless it has to bear data.

        Args:
            ack: offset to acknowledge; everything delivered in sequence when omitted.
            sack: SACK blocks as offsets, in wire order; the RFC 2018 blocks for what is held
                when omitted, none when empty.
            window: octets to offer in this and later segments.
            pause: seconds to wait then.
        """
        if window is not None:
            self.window = window
        self.send(pattern(self.next_offset, self.bearing), ack=ack, sack=sack, pause=pause)

    def send(
        self, payload: bytes = b"", *, at: int | None = None, pause: float = 0.0, **fields: Any
    ) -> None:
        """Send a well-formed segment of this connection, see :meth:`compose`; then wait."""
        segment = self.compose(payload, at=at, **fields)
        if self.padding is None:
            self.peer.send(codec.build(segment))
        else:
            self.peer.send(craft(segment, close_options(segment, self.padding)))
        if at is None:
            self.next_offset += len(payload) + bool(segment.flags & FIN)
        if pause:
            self.wait(pause)

    def craft(
        self,
        payload: bytes = b"",
        *,
        options: Sequence[Option] | None = None,
        more: Sequence[Option] = (),
        raw: bytes = b"",
        fields: Mapping[str, Any] | None = None,
        **usual: Any,
    ) -> Any:
        """An odd segment of this connection, as a packet of Scapy for :meth:`BasePeer.send`.

        Args:
            payload: data.
            options: instead of the usual ones.
            more: options behind them.
            raw: octets behind these, see :func:`~.crafting.craft`.
            fields: fields of Scapy's ``TCP``, for example ``{"reserved": 7}``.
            usual: see :meth:`compose`.
        """
        segment = self.compose(payload, **usual)
        listed = [*(usual_options(segment) if options is None else options), *more]
        return craft(segment, listed, raw, **(fields or {}))

    def send_odd(self, payload: bytes = b"", *, at: int | None = None, **odd: Any) -> None:
        """Send an odd segment, see :meth:`craft`."""
        self.peer.send(self.craft(payload, at=at, **odd))
        if at is None:
            self.next_offset += len(payload)

    def compose(
        self,
        payload: bytes = b"",
        *,
        flags: int = ACK,
        at: int | None = None,
        ack: int | None = None,
        sack: Sequence[Range] | None = None,
        tsval: int | None = None,
    ) -> Tcp:
        """A segment of this connection.

        Args:
            payload: data.
            flags: TCP flags.
            at: offset of the first octet; the next new one when omitted.
            ack: offset to acknowledge; what is delivered when omitted.
            sack: SACK blocks as offsets; see :meth:`ack`.
            tsval: timestamp value instead of the clock's, where timestamps were negotiated.
        """
        if sack is None:
            sack = self.sack_blocks() if self.sack else ()
        tsecr = None
        if not self.timestamps:
            tsval = None
        else:
            tsval, tsecr = self.timestamp() if tsval is None else tsval, self._ts_recent
        syn, first = self.syn, self._irs + 1
        return Tcp(
            syn.src, syn.dst, syn.sport, syn.dport,
            (self._iss + 1 + (self.next_offset if at is None else at)) % MODULUS,
            (first + (self.delivered if ack is None else ack)) % MODULUS,
            flags, min(self.window_field(), 0xFFFF), payload,
            sack=tuple(((first + a) % MODULUS, (first + b) % MODULUS) for a, b in sack),
            tsval=tsval, tsecr=tsecr,
        )  # fmt: skip

    @property
    def offered(self) -> int:
        """Octets of the window, in which what has been delivered and not read takes room."""
        unread = 0 if self.read is None else self.delivered - self.read
        return max(self.window - unread, 0)

    def window_field(self) -> int:
        """What stands for the window in a segment, where the field has room for it."""
        return self.offered >> self._shift

    def send_data(
        self, octets: int, *, at: int | None = None, flags: int = ACK | PSH, pause: float = 0.0
    ) -> None:
        """Send ``octets`` of patterned data in one segment, see :meth:`send`."""
        start = self.next_offset if at is None else at
        self.send(pattern(start, octets), at=at, flags=flags, pause=pause)

    def sack_blocks(self) -> list[Range]:
        """RFC 2018 blocks for what is held above ``delivered``: newest first, 3 or 4 at most."""
        return self.reception.blocks(3 if self.timestamps else 4)

    # -- receiving

    def accept(self, time: float, packet: Tcp) -> None:
        """Take a segment off the link into the inbox (the peer calls this)."""
        if packet.flags & RST:
            refused = self.syn_ack is None
            self.closed = "it refused the connection" if refused else "the IUT reset it"
        elif packet.flags & SYN:
            if self.syn_ack is None and packet.flags & ACK:
                self._negotiate(packet)
        elif self.syn_ack is not None:
            self.inbox.append(self._learn(time, packet))
            self.iut_edge = max(self.iut_edge, self.acked + self.iut_window)

    def _negotiate(self, syn_ack: Tcp) -> None:
        self.syn_ack = syn_ack
        self._irs = syn_ack.seq
        self.iut_window = self.iut_edge = syn_ack.window
        self.segment = min(self.segment, syn_ack.mss or 536)
        if self.syn.window_scale is not None and syn_ack.window_scale is not None:
            self._shift, self._iut_shift = self.syn.window_scale, syn_ack.window_scale
        if syn_ack.tsval is not None:
            self._ts_recent = syn_ack.tsval

    def _learn(self, time: float, tcp: Tcp) -> Segment:
        """What a segment says about the IUT."""
        start = codec.nearest(tcp.seq - self._irs - 1, self.highest)
        ack = codec.nearest(tcp.ack - self._iss - 1, self.acked)
        self.highest = max(self.highest, start + tcp.length)
        self.acked = max(self.acked, ack)
        self.iut_window = tcp.window << self._iut_shift
        self.spoken = self.spoken or not tcp.flags & SYN
        if tcp.tsval is not None and start <= self.delivered:
            self._ts_recent = tcp.tsval
        if tcp.payload and not self._segment_known:
            self.segment, self._segment_known = len(tcp.payload), True
        return Segment(time, start, start + tcp.length, ack, tcp)

    def expect(
        self,
        match: Callable[[Segment], bool] = lambda segment: segment.has_data,
        *,
        within: float | None = None,
        what: str = "a data segment",
    ) -> Segment:
        """The next segment that matches; see :meth:`await_arrival`."""
        return self.await_arrival(match, what, within)

    def take(self, segment: Segment) -> None:
        """Take in what a segment carries, and acknowledge it."""
        self.hold(segment)
        self.ack()

    def hold(self, segment: Segment) -> bool:
        """Count a segment's data as received; return whether it was in sequence and new."""
        self.reception.note(segment.start)
        return self.reception.take(segment.start, segment.end)

    def serve(
        self,
        until: Callable[[], bool],
        *,
        losing: Losses[Segment] = (),
        ack_every: int = 1,
        within: float | None = None,
        probed: bool = False,
    ) -> None:
        """Be an ordinary receiver, except for what is lost, until ``until()``.

        Args:
            until: asked after every arrival.
            losing: segments to lose, by index from the start of the connection, or a rule.
            ack_every: acknowledge only every n-th in-sequence segment; anything else at once.
            within: see :meth:`serve_until`.
            probed: also acknowledge what carries nothing and lies below what is expected, by which
                some probe a window, or keep a connection alive (RFC 9293 sections 3.8.4, 3.10.7.4).

        Raises:
            NotReached: see :meth:`serve_until`.
        """
        rule = rule_to_lose(losing, lambda segment: segment.start // self.segment)
        owed = 0

        def serve(segment: Segment) -> None:
            nonlocal owed
            if probed and not segment.has_data and segment.start < self.delivered:
                self.ack()
            if not segment.has_data or rule(segment, self.reception.note(segment.start)):
                return
            in_sequence = self.reception.take(segment.start, segment.end)
            in_sequence = in_sequence and not self.reception.recent
            owed += 1
            if owed >= ack_every or not in_sequence:
                self.ack()
                owed = 0

        self.serve_until(until, serve, within)

    def receive(self, segments: int, **how: Any) -> None:
        """Be an ordinary receiver until ``segments`` full segments are delivered in sequence.

        ``how`` is as for :meth:`serve`.
        """
        self.serve(lambda: self.delivered >= segments * self.segment, **how)

    def receive_more(self, segments: int, **how: Any) -> None:
        """As :meth:`receive`, but counting ``segments`` from what is delivered now."""
        self.receive(self.delivered // self.segment + segments, **how)

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

    def take_round(self) -> list[Segment]:
        """What :meth:`await_round` leaves in the inbox, taken out of it."""
        self.await_round()
        segments = list(self.inbox)
        self.inbox.clear()
        return segments

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
            outstanding = -(-(self.highest - self.delivered) // self.segment)
            if outstanding >= flight:
                return
            stagnant = 0 if outstanding > largest else stagnant + 1
            largest = max(largest, outstanding)
            if stagnant == 4:
                raise NotReached(f"the IUT keeps no more than {largest} segments outstanding")
            for _ in range(len(self.inbox)):
                segment = self.inbox.popleft()
                if segment.has_data:
                    self.take(segment)
