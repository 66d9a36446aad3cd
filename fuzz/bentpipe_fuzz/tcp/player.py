"""The tester's side of a TCP conversation: what the steps of a script do.

Places are offsets of a stream. A segment that a verb makes on purpose is one of Scapy.
"""

from __future__ import annotations

import importlib
import random
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.peer import NotReached, pattern, rule_to_lose
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, PSH, RST, SYN, build
from bentpipe_conformance.protocols.tcp.connection import Connection, Segment
from bentpipe_conformance.protocols.tcp.crafting import (
    craft,
    layers,
    usual_options,
    wrong_checksum,
)

from bentpipe_fuzz.campaign.player import Place, long_verb, verb, verbs_of
from bentpipe_fuzz.tcp.telling import MOST_TIMES, TellingPlayer

SYN_TIMES_S = (2.0, 3.0)
"""Seconds after which the tester sends its SYN again, and the usual one where that was odd."""

MOST_SEGMENTS = 60
"""Segments that one step writes at most."""

MOST_FILLING = 2000
"""Segments and waits that filling a window takes at most."""

MOST_WINDOWS = 8
"""Windows of data after which one that is as large as at first will not be filled."""

SACK = 5
"""Kind of the option that reports blocks (RFC 2018 section 3)."""

TIMESTAMPS = "080a"
"""How an option of that kind begins."""

FLAGS = {name: 1 << bit for bit, name in enumerate("FSRPAUEC")}


def _bits(flags: str) -> int:
    return sum(FLAGS[letter] for letter in set(flags))


def fuzzed_fields(seed: int) -> dict[str, Any]:
    """Fields that ``fuzz()`` of Scapy draws for a segment; which of them, is random as well."""
    layer, scapy_fuzz = layers().TCP, importlib.import_module("scapy.packet").fuzz
    numbers, usual = random.Random(seed), random.getstate()
    random.seed(seed)
    try:
        drawn = scapy_fuzz(layer())
        wanted = numbers.sample(("reserved", "urgptr", "window", "flags"), numbers.randint(1, 3))
        return {name: int(drawn.getfieldval(name)) for name in wanted}
    finally:
        random.setstate(usual)


class Player(TellingPlayer):
    """See :class:`.BasePlayer`, and :class:`.TellingPlayer` for what it reports on purpose."""

    # -- users

    @verb
    def open(
        self, service: str = "chargen", odd: Mapping[str, Any] | None = None, **offer: Any
    ) -> None:  # fmt: skip
        """Open a connection to a service; ``offer`` is what the tester offers.

        ``odd`` are fields of Scapy's ``TCP`` for the SYN, ``raw``, see :meth:`segment`, and
        ``data``, octets that the SYN carries.
        """
        self.connection = None
        opened = self._syn(service, odd, offer)
        for patience in SYN_TIMES_S:
            if self.peer.pump_until(lambda: opened.answered or bool(opened.closed), patience):
                break
            opened.send_syn()
        opened.establish()
        self.connection = opened

    @verb
    def reopen(self, ahead: int = 1, service: str | None = None, **offer: Any) -> None:
        """Open another connection between the same ports; see :meth:`open`.

        Its initial sequence number is ``ahead`` octets beyond the last one sent. With a ``service``
        only the tester's port is the same.
        """
        last = self.connection
        if last is None:
            return
        peer: Any = self.peer
        again = {"iss": (last.compose().seq + ahead) % MODULUS, "source_port": last.source_port}
        self.connection = opened = peer.draft(service or last.port, **again, **offer)
        opened.send_syn()
        opened.establish()

    @verb
    def call(self, role: str = "send", **offer: Any) -> None:
        """Have the implementation's user call the tester, in order to send or to receive."""
        self.ring(role, **offer)
        if self.connection is not None:
            self.connection.answer()
            self.wait(self.connection.rtt)

    @verb
    def knock(self, service: str = "chargen", **offer: Any) -> None:
        """Send a SYN and wait for its answer, which is not acknowledged; see :meth:`open`."""
        self.connection = connection = self._syn(service, None, offer)
        self.peer.pump_until(lambda: connection.answered or bool(connection.closed), SYN_TIMES_S[0])

    @verb
    def ring(self, role: str = "send", **offer: Any) -> None:
        """Have the implementation's user call the tester, who does not answer yet."""
        port = 9 if role == "send" else 19
        self.connection = None
        # Not every implementation can be asked to.
        with suppress(LaneError):
            self.connection = self.peer.summon(port, octets=20_000, **offer)  # type: ignore[attr-defined]

    @verb
    def answer(self, flags: str = "SA", ack: int = 0, raw: str = "") -> None:
        """Answer the implementation's SYN, whose acknowledgment is ``ack`` octets off.

        ``raw`` are further options, hexadecimal, left out where they find no room.
        """
        connection = self.connection
        if connection is None or not connection.answered:
            return
        usual, more = connection.appended, bytes.fromhex(raw)[:20]
        for appended in (usual + more + bytes(-len(more) % 4), usual):
            connection.appended = appended
            with suppress(ValueError):  # the header would be too large
                connection.answer(flags=_bits(flags), ack=ack)
                break
        connection.appended = usual

    @verb
    def quit(self) -> None:
        """See :meth:`BasePlayer.quit`; it does so once the connection is there.

        An attempt that is given up ends without a word, so that no capture shows it.
        """
        if self.connection is not None and self.connection.spoken:
            super().quit()

    @verb
    def write(self, octets: int = 1000, at_once: int = 1460, gap: float = 0.0) -> None:
        """Send new data in segments of ``at_once``, every ``gap`` seconds, as far as it may."""
        connection = self.connection
        if connection is None or self.fin is not None:
            return
        left = octets
        for _ in range(MOST_SEGMENTS):
            room = connection.acked + connection.iut_window - connection.next_offset
            size = min(left, max(at_once, 1), self._largest(connection), room)
            if size <= 0:
                return
            connection.send_data(size, flags=ACK | (PSH if size == left else 0))
            left -= size
            if gap:
                self.receive(gap)

    @long_verb
    def fill(
        self, octets: int = 1400, beyond: int = 0, fin: bool = False, leaving: int = 0
    ) -> None:  # fmt: skip
        """Offer no window and send until the implementation's own is full to the last octet.

        Args:
            octets: of a segment.
            beyond: so many octets of the last segment lie outside the window.
            fin: whether it has FIN.
            leaving: octets of the window that stay free; then nothing lies outside.
        """
        connection = self.connection
        if connection is None or self.fin is not None:
            return
        self.offer(0)
        first, most = connection.next_offset, connection.iut_window
        for _ in range(MOST_FILLING):
            filled = connection.next_offset - first
            if filled > MOST_WINDOWS * most and connection.iut_window >= most:
                return  # its user reads on
            room = connection.iut_edge - connection.next_offset
            outstanding = connection.next_offset - connection.acked
            if room >= octets and outstanding < 8 * octets:
                connection.send_data(octets)
            elif not self.peer.pump(self.peer.now() + connection.rtt + 0.3):
                break
        else:
            return
        edge = connection.iut_edge - max(leaving, 0)
        if 0 < edge - connection.next_offset <= octets:
            size = edge - connection.next_offset + (0 if leaving else max(beyond, 0))
            connection.send_data(size, flags=ACK | PSH | (FIN if fin else 0))
            if fin:
                self.fin = connection.next_offset - 1
            connection.next_offset = edge
            self.receive(connection.rtt + 0.3)
            connection.next_offset = max(edge, connection.acked)

    @verb
    def close(self, octets: int = 0) -> None:
        """Send FIN, behind so many octets in the same segment."""
        connection = self.connection
        if connection is not None and self.fin is None:
            size = max(0, min(octets, self._largest(connection)))
            self.fin = connection.next_offset + size
            connection.send_data(size, flags=ACK | FIN)

    # -- the peer

    @verb
    def receive(
        self, seconds: float = 1.0, every: int = 1, segments: int = 1 << 20,
        losing: Sequence[int] = (), takes: bool = True,
    ) -> None:  # fmt: skip
        """Be a receiver for a while or so many segments.

        Args:
            seconds: how long.
            every: each n-th segment is acknowledged.
            segments: how many, at most.
            losing: segments to lose, counted from what has been delivered; one that is named twice
                is lost twice.
            takes: whether what probes a closed window by an octet is taken, or acknowledged only.
        """
        connection = self.connection
        if connection is None:
            return
        wanted = connection.delivered + segments * connection.segment
        base = connection.delivered // connection.segment

        def index(arriving: Segment) -> int:
            return arriving.start // connection.segment

        lost = rule_to_lose(Counter(base + number for number in losing), index)

        def is_lost(arriving: Segment, before: int) -> bool:
            if takes or connection.offered or arriving.end > arriving.start + 1:
                return lost(arriving, before)
            connection.ack()
            return True

        with suppress(NotReached):
            connection.serve(
                lambda: connection.delivered >= wanted, ack_every=max(every, 1),
                losing=is_lost, within=min(seconds, self.longest), probed=True,
            )  # fmt: skip

    @long_verb
    def transfer(self, segments: int = 100, every: int = 1) -> None:
        """Receive many segments, for which a minute is time; see :meth:`receive`."""
        self.receive(60.0, every, segments)

    @verb
    def renege(self, octets: int = 0) -> None:
        """Throw away what is held from so many octets behind what is delivered on."""
        if self.connection is not None:
            self.connection.reception.renege(self.connection.delivered + max(octets, 0))

    @verb
    def settle(self, rounds: int = 8) -> None:
        """Send again what is not acknowledged, once a round, and receive meanwhile."""
        connection = self.connection
        if connection is None:
            return
        for _ in range(min(rounds, 20)):
            self.receive(2 * connection.rtt + 0.3)
            if connection.closed or connection.acked >= connection.next_offset:
                return
            self._again(connection)

    def rest(self) -> None:
        """What an honest tester does at the end: wait for what is still to come, and repair."""
        if self.connection is not None and not self.connection.closed:
            self.settle(2)
            self.receive(3.0, segments=20)

    @verb
    def offer(self, window: int = 0) -> None:
        """Offer a window of ``window`` octets from now on."""
        if self.connection is not None:
            self.connection.ack(window=max(window, 0))

    @verb
    def stall(self, stalls: bool = True) -> None:
        """Have the tester's user read nothing from now on, so that its window closes, or all."""
        connection = self.connection
        if connection is None:
            return
        reads = connection.read is not None and not stalls
        connection.read = connection.delivered if stalls else None
        if reads:
            connection.ack()

    # -- what is odd

    @verb
    def segment(
        self, flags: str = "A", seq: Place = ("next", 0), ack: Place = ("delivered", 0),
        octets: int = 0, window: int | None = None, sack: Sequence[Sequence[Place]] | None = None,
        tsval: int = 0, odd: Mapping[str, Any] | None = None, times: int = 1, bare: bool = False,
        also: Sequence[Sequence[Place]] = (),
    ) -> None:  # fmt: skip
        """A segment of the connection with any field.

        Args:
            flags: letters of ``FSRPAUEC``.
            seq: offset of its first octet.
            ack: offset that it acknowledges.
            octets: length of its data, which is always that of its place in the stream.
            window: octets to offer in this segment alone.
            sack: blocks, as pairs of places, as many as fit; the right ones when omitted.
            tsval: ticks beyond the tester's clock.
            odd: fields of Scapy's ``TCP``; ``raw`` (hexadecimal) stands behind the options, ``ip``
                (likewise) are options of IP, and ``checksum`` makes the checksum wrong. ``fuzz`` is
                a seed, for which ``fuzz()`` of Scapy draws some of the fields.
            times: how often it is sent.
            bare: leave out the timestamp.
            also: blocks of a second SACK option, two at most; there is none when empty.
        """
        connection = self.connection
        if connection is None:
            return
        usual, odd = connection.window, dict(odd or {})
        # Of two timestamps nobody knows which is meant.
        bare = bare or TIMESTAMPS in str(odd.get("raw", ""))
        start = self.number(seq)
        connection.window = usual if window is None else max(window, 0)
        blocks = None if sack is None else sack[: 3 if connection.timestamps else 4]
        drafted = connection.compose(
            pattern(start, min(octets, 1460)), at=start, ack=self.number(ack),
            flags=_bits(flags),
            sack=None if blocks is None else [(self.number(a), self.number(b)) for a, b in blocks],
            tsval=(connection.timestamp() + tsval) % MODULUS if tsval else None,
        )  # fmt: skip
        connection.window = usual
        if bare:
            drafted = replace(drafted, tsval=None, tsecr=None)
        raw, spoilt = bytes.fromhex(odd.pop("raw", ""))[:20], odd.pop("checksum", False)
        raw = self._another_sack(connection, also) + raw
        of_ip = bytes.fromhex(odd.pop("ip", ""))[:40]
        if "fuzz" in odd:
            odd = {**fuzzed_fields(int(odd.pop("fuzz"))), **odd}
        for _ in range(min(times, MOST_TIMES)):
            with suppress(ValueError):
                if self.expressive or odd or raw or spoilt or of_ip:
                    packet = craft(drafted, usual_options(drafted), raw, **odd)
                    packet.options = [layers().IPOption(of_ip)] if of_ip else []
                    self.peer.send(wrong_checksum(packet) if spoilt else packet)
                else:
                    self.peer.send(build(drafted))
        end = start + drafted.length
        if start <= connection.next_offset < end and not (spoilt or drafted.flags & (RST | SYN)):
            connection.next_offset = end
            if drafted.flags & FIN and self.fin is None:
                self.fin = end - 1

    @verb
    def syn(
        self, service: str | int = "chargen", odd: Mapping[str, Any] | None = None, **offer: Any
    ) -> None:  # fmt: skip
        """Send a SYN of another connection and look at no answer; see :meth:`open`."""
        self._syn(service, odd, offer)

    def _syn(
        self, service: str | int, odd: Mapping[str, Any] | None, offer: Mapping[str, Any]
    ) -> Connection:
        drafted: Connection = self.peer.draft(service, **offer)  # type: ignore[attr-defined]
        if not odd:
            drafted.send_syn()
            return drafted
        fields = dict(odd)
        raw = drafted.appended + bytes.fromhex(fields.pop("raw", ""))[:20]
        syn = replace(drafted.syn, payload=pattern(0, min(fields.pop("data", 0), 1000)))
        with suppress(ValueError):
            self.peer.send(craft(syn, usual_options(syn), raw, **fields))
        return drafted

    @verb
    def stray(
        self, flags: str = "A", seq: int = 0, ack: int = 0, octets: int = 0, port: int = 19
    ) -> None:
        """A segment of no connection, with raw numbers."""
        draft = self.peer.draft(port)  # type: ignore[attr-defined]
        segment = draft.compose(pattern(0, min(octets, 1460)), at=seq, ack=ack, sack=(),
                                flags=_bits(flags))  # fmt: skip
        self.peer.send(craft(segment) if self.expressive else build(segment))

    def places(self) -> Mapping[str, int]:
        """``next``, ``acked`` and ``edge`` are of the tester's stream, the others of its peer's."""
        connection = self.connection
        assert connection is not None
        return {
            "next": connection.next_offset, "acked": connection.acked,
            "edge": connection.iut_edge,
            "delivered": connection.delivered, "highest": connection.highest,
        }  # fmt: skip

    # -- helpers

    def _another_sack(self, connection: Connection, blocks: Sequence[Sequence[Place]]) -> bytes:
        """The octets of an option with one block or two; none without any."""
        if not blocks:
            return b""
        named = [(self.number(a), self.number(b)) for a, b in blocks[:2]]
        numbers = [n for block in connection.compose(sack=named).sack for n in block]
        return struct.pack(f">BB{len(numbers)}I", SACK, 2 + 4 * len(numbers), *numbers)

    def _largest(self, connection: Connection) -> int:
        answer = connection.syn_ack
        theirs = answer.mss if answer is not None and answer.mss is not None else 536
        return max(1, min(theirs, 1460) - (12 if connection.timestamps else 0))

    def _again(self, connection: Connection) -> None:
        """The first segment that is not acknowledged, and the FIN if that is all."""
        start = connection.acked
        end = connection.next_offset if self.fin is None else self.fin
        if start >= end and self.fin is not None:
            connection.send(flags=ACK | FIN, at=self.fin)
        elif start < end:
            connection.send_data(min(end - start, self._largest(connection)), at=start)


VERBS = verbs_of(Player)
