"""An end of a connection through the box: an ordinary TCP, until the script says otherwise.

It has no congestion control, and no more under way than a satellite link holds that may be between
it and the box. It acknowledges every segment at once.
Offsets count the octets of a stream from 0, the first one behind the SYN.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from bentpipe_conformance.protocols.tcp.codec import (
    ACK,
    CWR,
    ECE,
    FIN,
    MODULUS,
    PSH,
    RST,
    SYN,
    Tcp,
    nearest,
)

FIRST_TIMEOUT_S, LONGEST_TIMEOUT_S = 1.0, 20.0
"""Of retransmissions, which the box has to cope with in any case."""
FLIGHT = 65_535
"""Octets under way at most."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What an end offers in its SYN, or answers if it was offered.

    ``buffer`` is what it holds for its user, in octets; it is also its largest window. ``away_s``
    is how long what arrives is on its way to the end, in seconds; see :class:`.distant.Distant`.
    With ``ecn`` it says that it knows ECN (RFC 3168), and does no more about it. ``wraps_s``
    seconds after it was made the clock of its timestamps wraps. ``number`` is its initial sequence
    number, drawn by default.
    """

    mss: int | None = 1460
    scale: int | None = 3
    sack: bool = True
    timestamps: bool = True
    buffer: int = 65_535
    away_s: float = 0.0
    ecn: bool = False
    wraps_s: float | None = None
    number: int | None = None


Place = tuple[str, int]
"""An address and a port."""


class End:
    """One end.

    Args:
        send: puts a segment on this end's wire.
        now: the lane's clock.
        local, remote: the two ends as this side of the box has them.
        iss: initial sequence number.
        offer: see :class:`Offer`.

    Attributes:
        alive: whether it reacts by itself: acknowledges, sends what it has, retransmits.
        reading: whether its user reads; else its window closes when its buffer is full.
        acknowledging: whether it acknowledges what it takes in.
        established: whether the handshake is complete.
        written: all octets that its user has written.
        got: all octets that have arrived in order.
        acked: how many octets of ``written`` the box has acknowledged.
        edge: how many it permits.
        ended: whether the box's FIN has arrived, and all octets before it.
        end_acked: whether the box has acknowledged this end's FIN.
        was_reset: whether a RST of this connection has arrived.
        closing: whether its user has closed.
        riding: whether its FIN rides on its last octets; else it has a segment of its own.
        seen: segments that have arrived.
        carrier: the packet that has brought the last one.
        reached_by: says of a segment whether it reaches this end, or is lost before.
    """

    def __init__(
        self, send: Callable[[Tcp], None], now: Callable[[], float], local: Place, remote: Place,
        iss: int, offer: Offer,
    ) -> None:  # fmt: skip
        self.local, self.remote = local, remote
        self.iss, self.irs = iss, 0
        self.offer = offer
        self.alive = self.reading = self.acknowledging = True
        self.established = self.ended = self.end_acked = self.was_reset = self.closing = False
        self.riding = False
        self.written, self.got = bytearray(), bytearray()
        self.acked = self.edge = 0
        self.seen: list[Tcp] = []
        self.carrier = b""
        self.reached_by: Callable[[Tcp], bool] = lambda _: True
        self.on_data: Callable[[End], None] = lambda _: None
        self._send, self._now = send, now
        self._next = 0
        self._taken = 0
        self._ahead: dict[int, bytes] = {}
        self._end_at: int | None = None
        self._answered = self._has_reset = False
        self._mss = 536
        self._shift = self._own_shift = 0
        self._sack = self._stamps = self._ecn = False
        self._echo = 0
        # The same for another connection with these ports (RFC 7323 section 5.4).
        self._offset = zlib.crc32(repr((local, remote)).encode())
        if offer.wraps_s is not None:
            self._offset = -int((now() + offer.wraps_s) * 1000)
        self._timeout = FIRST_TIMEOUT_S
        self.due: float | None = None

    # -- the script's side ----------------------------------------------------------------------

    def call(self) -> None:
        """Send a SYN."""
        self.segment(SYN, -1)
        self.due = self._now() + self._timeout

    def write(self, octets: bytes) -> None:
        """Send these octets as soon as the box permits."""
        self.written += octets
        self.pump()

    def close(self) -> None:
        """End the stream behind what was written."""
        self.closing = True
        self.pump()

    def reset(self, *, beyond: int = 0) -> None:
        """Reset the connection, so many octets behind the next one, and fall silent."""
        at = self._sequence_end + beyond if self.established else 0
        self.segment(RST | ACK if self._answered else RST, at)
        self.vanish()
        self._has_reset = True

    def vanish(self) -> None:
        """Fall silent, as if the power had failed."""
        self.alive = self._has_reset = False
        self.due = None

    def stop(self) -> None:
        """The user reads no more."""
        self.reading = False

    def go_on(self) -> None:
        """The user reads again."""
        self.read_all()
        self.acknowledge()

    def read_all(self) -> None:
        """The user reads again, and nothing says so yet."""
        self.reading = True
        self._read()

    def read(self, octets: int) -> None:
        """The user, who has stopped, reads some octets."""
        self._taken = min(self._taken + octets, len(self.got))
        self.acknowledge()

    @property
    def full(self) -> int:
        """Octets of a full segment."""
        return self._mss - 12 * self._stamps

    @property
    def is_over(self) -> bool:
        """Whether both streams have ended, or the connection was reset, or never was."""
        return not self.alive or self.was_reset or (self.ended and self.end_acked)

    @property
    def window(self) -> int:
        """Octets that there is room for; 16 bits of them while there is no scale."""
        room = self.offer.buffer - (len(self.got) - self._taken)
        return min(max(0, room), 0xFFFF << self._own_shift)

    def acknowledge(self) -> None:
        """Send an acknowledgment of everything, now."""
        self.segment(ACK, self._sequence_end)

    def segment(
        self, flags: int, offset: int, payload: bytes = b"", *, ack: int | None = None,
        window: int | None = None, changed: Callable[[Tcp], Tcp | None] = lambda tcp: tcp,
    ) -> None:  # fmt: skip
        """Send any segment.

        Args:
            flags: of the header.
            offset: of its first octet; -1 for the SYN's number.
            payload: its octets.
            ack: acknowledgment number, by default of everything.
            window: octets offered, by default those there is room for.
            changed: changes what would be sent; None to send nothing.
        """
        number = 0 if not flags & ACK else self._ack_number if ack is None else ack
        shift = 0 if flags & SYN else self._own_shift
        offered = min((self.window if window is None else window) >> shift, 0xFFFF)
        tcp = Tcp(
            self.local[0], self.remote[0], self.local[1], self.remote[1],
            (self.iss + 1 + offset) % MODULUS, number, flags, offered, payload,
        )  # fmt: skip
        if flags & SYN:
            tcp = self._with_offer(tcp, answering=bool(flags & ACK))
        elif self._stamps and not flags & RST:
            tcp = replace(tcp, tsval=self._stamp(), tsecr=self._echo)
        if self._sack and self._ahead and not flags & (SYN | RST):
            tcp = replace(tcp, sack=self._blocks())
        made = changed(tcp)
        if made is not None:
            self._send(made)

    def next_segment(self, payload: bytes, flags: int = ACK) -> Tcp:
        """What it would send next, with these octets; nothing is sent, and nothing remembered."""
        made: list[Tcp] = []
        self.segment(flags, self._sequence_end, payload, changed=made.append)
        return made[0]

    def skip(self, octets: bytes) -> None:
        """Take octets for written and sent, which the script itself sends."""
        self.written += octets
        self._next = len(self.written)
        self.due = self._now() + self._timeout

    # -- what arrives ---------------------------------------------------------------------------

    def take(self, tcp: Tcp) -> None:
        """A segment arrives."""
        if not self.reached_by(tcp):
            return
        self.seen.append(tcp)
        if not self.alive:
            if self._has_reset and tcp.flags & (RST | ACK) == ACK:
                # The host knows of no such connection any more (RFC 9293 section 3.10.7.1).
                self.segment(RST, 0, changed=lambda made: replace(made, seq=tcp.ack))
            return
        if tcp.tsval is not None:
            self._echo = tcp.tsval
        if self.was_reset:
            return
        if tcp.flags & RST:
            if self._heeds(tcp):
                self.was_reset = True
                self.due = None
            return
        if tcp.flags & SYN and self.established:
            self.acknowledge()  # whatever its number (RFC 5961 section 4.2)
            return
        if tcp.flags & SYN:
            self._take_syn(tcp)
            return
        if not self._answered:
            return
        progress = self._take_ack(tcp)
        if self._is_old(tcp):
            # A probe, or a keep-alive: RFC 9293 section 3.10.7.4 answers what is not acceptable.
            self.acknowledge()
        if tcp.payload or tcp.flags & FIN:
            self._take_text(tcp)
            if self.acknowledging:
                self.acknowledge()
            self.on_data(self)
        if progress or self.closing or self.acked < len(self.written):
            self.pump()

    def _heeds(self, reset: Tcp) -> bool:
        """Whether a RST is one of this connection: it names the SYN, or lies in the window.

        A box may pass on one of the other side's, which has the numbers of that (RFC 9293
        section 3.10.7.4, first).
        """
        if not self._answered:
            named = (reset.ack - self.iss) % MODULUS
            return bool(reset.flags & ACK) and 1 <= named <= 1 + len(self.written)
        at = nearest(reset.seq - self.irs - 1, len(self.got))
        return len(self.got) <= at <= len(self.got) + self.offer.buffer + 1

    def _take_syn(self, tcp: Tcp) -> None:
        first = not self._answered
        self.irs, self._answered = tcp.seq, True
        self._mss = tcp.mss or 536
        offer = self.offer
        scaled = tcp.window_scale is not None and offer.scale is not None
        self._shift = min(tcp.window_scale or 0, 14) if scaled else 0
        self._own_shift = (offer.scale or 0) if scaled else 0
        self._stamps = offer.timestamps and tcp.tsval is not None
        self._sack = offer.sack and tcp.sack_permitted
        self._ecn = offer.ecn and tcp.flags & (ECE | CWR) == ECE | CWR
        if tcp.flags & ACK:
            self.edge = tcp.window
            self.established = True
            self._settled()
            self.acknowledge()
            self.pump()
        elif first or not self.established:
            self.segment(SYN | ACK, -1)
            self.due = self._now() + self._timeout

    def _is_old(self, tcp: Tcp) -> bool:
        """Whether a segment without octets has a number before the next one expected."""
        at = nearest(tcp.seq - self.irs - 1, len(self.got))
        return not tcp.payload and not tcp.flags & FIN and at < len(self.got) + self.ended

    def _take_ack(self, tcp: Tcp) -> bool:
        """Whether the acknowledgment or the window brings anything new."""
        number = nearest(tcp.ack - self.iss - 1, self.acked)
        if not 0 <= number <= len(self.written) + 1:
            return False
        if not self.established:
            self.established = True
            self._settled()
        before = self.acked, self.edge, self.end_acked
        self.end_acked = self.end_acked or (self.closing and number > len(self.written))
        self.acked = max(self.acked, min(number, len(self.written)))
        self._next = max(self._next, self.acked)
        self.edge = max(self.edge, min(number, len(self.written)) + (tcp.window << self._shift))
        if before != (self.acked, self.edge, self.end_acked):
            self._settled()
            return True
        return False

    def _take_text(self, tcp: Tcp) -> None:
        at = nearest(tcp.seq - self.irs - 1, len(self.got))
        if tcp.flags & FIN:
            self._end_at = at + len(tcp.payload)
        limit = self._taken + self.offer.buffer
        payload = tcp.payload[: max(0, limit - at)]
        if payload and at + len(payload) > len(self.got):
            self._ahead[at] = max(self._ahead.get(at, b""), payload, key=len)
        for start in sorted(self._ahead):
            if start > len(self.got):
                break
            self.got += self._ahead.pop(start)[len(self.got) - start :]
        if self._end_at == len(self.got):
            self.ended = True
        self._read()

    def _read(self) -> None:
        if self.reading:
            self._taken = len(self.got)

    # -- what leaves ----------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what the box permits."""
        if not (self.alive and self.established):
            return
        end = min(len(self.written), self.edge, self.acked + FLIGHT)
        while self._next < end:
            self._next = self._emit(self._next, end)
        last = self._next == len(self.written) <= self.edge
        if self.closing and last and not self.end_acked:
            self.segment(FIN | ACK, self._next)
            self._next += 1
        waits = self.acked < len(self.written) or (self.closing and not self.end_acked)
        if waits and self.due is None:
            self.due = self._now() + self._timeout

    def expire(self) -> None:
        """The timer has expired: send the first octets again that are not acknowledged."""
        self.due = None
        self._timeout = min(2 * self._timeout, LONGEST_TIMEOUT_S)
        if not self.established:
            self.segment(SYN | ACK if self._answered else SYN, -1)
        elif self.acked < len(self.written):
            # At a closed window one octet probes it.
            end = max(self.acked + 1, min(self.edge, len(self.written)))
            self._emit(self.acked, end)
        elif self.closing and not self.end_acked:
            self.segment(FIN | ACK, len(self.written))
        else:
            return
        self.due = self._now() + self._timeout

    def _emit(self, start: int, end: int) -> int:
        """Send one segment of what was written; return where it ends."""
        stop = min(end, start + self.full)
        last = stop == len(self.written)
        fin = FIN if last and self.riding and self.closing and stop < self.edge else 0
        octets = bytes(self.written[start:stop])
        self.segment(ACK | (PSH if last else 0) | fin, start, octets)
        return stop + bool(fin)

    @property
    def _sequence_end(self) -> int:
        return min(self._next, len(self.written) + 1)

    @property
    def _ack_number(self) -> int:
        return (self.irs + 1 + len(self.got) + self.ended) % MODULUS if self._answered else 0

    def _settled(self) -> None:
        self.due, self._timeout = None, FIRST_TIMEOUT_S

    def _stamp(self) -> int:
        return (self._offset + int(self._now() * 1000)) % MODULUS

    def _with_offer(self, tcp: Tcp, *, answering: bool) -> Tcp:
        offer = self.offer
        scale = offer.scale if not answering or self._own_shift or self._shift else None
        stamps = self._stamps if answering else offer.timestamps
        ecn = ECE * self._ecn if answering else (ECE | CWR) * offer.ecn
        return replace(
            tcp, flags=tcp.flags | ecn, mss=offer.mss, window_scale=scale,
            sack_permitted=self._sack if answering else offer.sack,
            tsval=self._stamp() if stamps else None, tsecr=self._echo if stamps else None,
        )  # fmt: skip

    def _blocks(self) -> tuple[tuple[int, int], ...]:
        found: list[tuple[int, int]] = []
        for start in sorted(self._ahead):
            stop = start + len(self._ahead[start])
            if found and found[-1][1] >= start:
                found[-1] = found[-1][0], max(found[-1][1], stop)
            else:
                found.append((start, stop))
        at = self.irs + 1
        return tuple(((at + left) % MODULUS, (at + right) % MODULUS) for left, right in found[:3])
