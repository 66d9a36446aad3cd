"""Attackers: one who sees the connection, and one who has to guess."""

from __future__ import annotations

import random
from collections.abc import Callable

from bentpipe_reference.stp import packets as stp
from bentpipe_reference.stp.codec import MalformedPacket, decode, encode
from bentpipe_reference.stp.config import COOKIE_LIFE_S
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.packets import Packet
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Identity

from bentpipe_fuzz.stp.forging import altered, any_cookie, damaged, invented, mutated, near
from bentpipe_fuzz.stp.network import Network, address_of
from bentpipe_fuzz.stp.plan import AttackPlan

_KEPT = 400
"""Packets that the attacker remembers."""

_TAGGED = (stp.Sd, stp.Sdp, stp.Poll, stp.Stat, stp.Ustat)

Forge = Callable[[], tuple[str, str, bytes] | None]
"""Makes a packet: the node that gets it, whom it claims to come from, octets."""


class Attacker:
    """Sends forged packets at random times, and remembers what it has seen."""

    def __init__(
        self, network: Network, plan: AttackPlan, seed: int, pair: tuple[str, str]
    ) -> None:
        self.network = network
        self.random = random.Random(f"attack {network.plan.mode} {seed}")
        self.pair = pair
        self.seen: list[tuple[str, str, bytes]] = []
        self._plan = plan

    def watch(self, source: str, target: str, octets: bytes) -> None:
        """See an honest packet of the pair."""
        if {source, target} == set(self.pair):
            self.seen.append((source, target, octets))
            if len(self.seen) > _KEPT:
                del self.seen[self.random.randrange(_KEPT)]

    def start(self, forge: Forge) -> None:
        """Begin, after the plan's time."""
        self._forge = forge
        self.network.at(self._plan.begins + self.random.expovariate(self._plan.rate), self._act)

    def _act(self) -> None:
        if self.network.elapsed >= self._plan.ends:
            return
        for _ in range(self.random.choice([1, 1, 1, 5])):
            made = self._forge()
            if made is not None:
                target, source, octets = made
                self.network.inject(target, source, octets)
        self.network.simulation.call_after(self.random.expovariate(self._plan.rate), self._act)

    def ports(self, target: str) -> tuple[int, int]:
        """Ports of a packet to one of the pair: those of the call that is attacked."""
        elapsed = self.network.elapsed
        call = [call for call in self.network.plan.calls if call.at <= elapsed][-1]
        if target == call.called:
            return call.local_port, call.port
        return call.port, call.local_port

    def connection(self, name: str) -> Connection | None:
        """The connection that is attacked, at one of its ends."""
        other = self.pair[self.pair[0] == name]
        identity = Identity(address_of(other), *self.ports(name))
        return self.network.nodes[name].endpoint.connections.get(identity)


# Somebody on the path


class OnPath(Attacker):
    """Mutates, invents and replays packets, with all numbers known."""

    def forge(self) -> tuple[str, str, bytes] | None:
        """Any hostile packet."""
        numbers = self.random
        target = numbers.choice(self.pair)
        source = self.pair[self.pair[0] == target]
        way = numbers.random()
        if way < 0.1:
            # A host of its own, so that connections come and go.
            source = f"x{numbers.randrange(40)}"
            packet: Packet | None = self._own(target)
        elif way < 0.3 and self.seen:
            return self._replay()
        elif way < 0.65 and self.seen:
            packet = self._mutated(target)
        else:
            packet = self._invented(target)
        if (
            isinstance(packet, stp.End | stp.Bgak | stp.Bgrej | stp.Endak)
            and numbers.random() < 0.8
        ):
            return None  # else no connection lives long enough to be attacked
        if packet is None:
            return None
        octets = encode(packet)
        if numbers.random() < 0.05:
            octets = damaged(octets, numbers)
        return target, source, octets

    def _replay(self) -> tuple[str, str, bytes]:
        source, target, octets = self.random.choice(self.seen)
        if self.random.random() < 0.1:
            # Sent back to where it came from.
            source, target = target, source
        return target, source, octets

    def _mutated(self, target: str) -> Packet | None:
        numbers = self.random
        _, _, octets = numbers.choice(
            [item for item in self.seen if item[1] == target] or self.seen
        )
        try:
            packet = decode(octets)
        except MalformedPacket:
            return None
        for _ in range(numbers.randint(1, 3)):
            packet = mutated(packet, numbers)
        return packet

    def _own(self, target: str) -> Packet:
        numbers = self.random
        sport, dport = numbers.randrange(1, 60), self.ports(target)[1]
        return invented(numbers, (sport, dport), numbers.randrange(1 << 16), (
            numbers.getrandbits(32), numbers.getrandbits(32)
        ), numbers.getrandbits(24), numbers.getrandbits(24))  # fmt: skip

    def _invented(self, target: str) -> Packet | None:
        connection = self.connection(target)
        if connection is None:
            return self._own(target)
        peer_csn = connection.peer_csn or 0
        sender, receiver = connection.outgoing.sender, connection.receiver
        theirs = 0 if receiver is None else receiver.vr_r
        return invented(
            self.random, self.ports(target), peer_csn & 0xFFFF, (peer_csn, connection.csn),
            theirs, sender.vt_a, sender.vt_s, sender.vt_ps,
        )  # fmt: skip


# Somebody off the path


class OffPath(Attacker):
    """Knows addresses and ports, and guesses the rest wrong: tag, CSNs or numbers (STP-SEC-005).

    It inspects the endpoints to make sure that a guess is wrong, yet as close as possible.
    """

    def forge(self) -> tuple[str, str, bytes] | None:
        """A packet that must do no harm."""
        numbers = self.random
        target = numbers.choice(self.pair)
        source = self.pair[self.pair[0] == target]
        connection = self.connection(target)
        packet: Packet | None
        if numbers.random() < 0.25:
            packet = self._other_begin(target, connection)
        elif connection is None or connection.state is State.OUTGOING:
            packet = self._stray(target)
        else:
            packet = numbers.choice([self._wrong_tag, self._wrong_csns, self._wrong_numbers])(
                target, connection
            )
        if packet is None:
            return None
        octets = encode(packet)
        if numbers.random() < 0.05:
            octets = numbers.randbytes(numbers.randrange(60))
        return target, source, octets

    def _wrong(self, right: int, bits: int) -> int:
        """A number that is not the right one."""
        guess = self.random.choice([right + 1, right - 1, 0, right ^ 1 << bits - 1,
                                    self.random.getrandbits(bits)])  # fmt: skip
        guess &= (1 << bits) - 1
        return guess if guess != right else right ^ 1

    def _stray(self, target: str) -> Packet | None:
        """To an endpoint that is idle or calls: nothing that begins a connection."""
        connection = self.connection(target)
        own = 0 if connection is None else connection.csn
        peer = 0 if connection is None else connection.peer_csn or 0
        head = (*self.ports(target), self._wrong(peer & 0xFFFF, 16))
        csns = self._wrong(peer, 32), self._wrong(own, 32) or 1
        if csns[1] == own:
            return None
        packet = invented(self.random, head[:2], head[2], csns, 100, 100)
        if isinstance(packet, stp.Begin) or getattr(packet, "peer_csn", None) == own:
            return None
        if isinstance(packet, stp.End) and packet.peer_csn == 0:
            return None
        return packet

    def _wrong_tag(self, target: str, connection: Connection) -> Packet | None:
        assert connection.peer_csn is not None and connection.receiver is not None
        sender = connection.outgoing.sender
        tag = self._wrong(connection.peer_csn & 0xFFFF, 16)
        packet = invented(
            self.random, self.ports(target), tag, (connection.peer_csn, connection.csn),
            connection.receiver.vr_r, sender.vt_a, sender.vt_s, sender.vt_ps,
        )  # fmt: skip
        return packet if isinstance(packet, _TAGGED) else None

    def _wrong_csns(self, target: str, connection: Connection) -> Packet | None:
        assert connection.peer_csn is not None and connection.receiver is not None
        numbers = self.random
        csn = numbers.choice([connection.peer_csn, self._wrong(connection.peer_csn, 32)])
        own = self._wrong(connection.csn, 32) or 1  # zero is right in an END with A flag
        ports = self.ports(target)
        head = (*ports, connection.peer_csn & 0xFFFF)
        sender = connection.outgoing.sender
        n_r = numbers.choice([sender.vt_s & PACKET_MASK, near(numbers, sender.vt_a & PACKET_MASK)])
        kind = numbers.randrange(4)
        if kind == 0:
            iss, n_mr = (
                connection.receiver.iss & PACKET_MASK,
                near(numbers, sender.vt_ms & PACKET_MASK),
            )
            return stp.Bgak(*head, 0, iss, n_mr, csn, own, n_r, cookie=any_cookie(numbers))
        if kind == 1:
            return stp.Bgrej(*ports, 0, 0, numbers.randrange(9), own, cookie=any_cookie(numbers))
        if kind == 2:
            return stp.Endak(*head, 0, own)
        if numbers.random() < 0.3:
            csn, own = self._wrong(connection.peer_csn, 32) or 1, connection.csn
        return stp.End(*head, numbers.choice([0, 4, 12]), n_r, numbers.randrange(9), csn, own)

    def _wrong_numbers(self, target: str, connection: Connection) -> Packet | None:
        """The tag has been guessed; the numbers are out of their windows."""
        assert connection.peer_csn is not None and connection.receiver is not None
        numbers, receiver = self.random, connection.receiver
        sender = connection.outgoing.sender
        head = (*self.ports(target), connection.peer_csn & 0xFFFF)
        beyond = numbers.choice([1, 2, 100, 1 << 22, (1 << 23) - 1 - connection.config.credit])
        above = receiver.vr_mr + beyond & PACKET_MASK
        flags = numbers.randrange(2)
        kind = numbers.randrange(5)
        below = receiver.vr_r - numbers.choice([1, 2, 100, 1 << 22]) & PACKET_MASK
        n_s = numbers.choice([above, below])
        csn = numbers.choice([connection.peer_csn, self._wrong(connection.peer_csn, 32)])
        if kind == 0:
            return stp.Sd(*head, flags, n_s, b"forged")
        n_ps = numbers.choice([0, numbers.getrandbits(24)])
        if kind == 1:
            return stp.Sdp(*head, flags, n_s, n_ps, 7, csn, b"forged")
        if kind == 2:
            if csn != connection.peer_csn:  # then its number may be anything (STP-DT-008)
                n_s = numbers.choice([n_s, receiver.vr_h + 1 & PACKET_MASK])
            return stp.Poll(*head, 0, n_s, n_ps, 7, csn)
        n_r = numbers.choice([sender.vt_s + numbers.choice([1, 2, 1 << 22]), sender.vt_a - 1])
        credit = n_r + numbers.choice([0, 1000, 1 << 22]) & PACKET_MASK
        if kind == 3:
            return stp.Ustat(*head, 0, n_r & PACKET_MASK, credit,
                         (n_r & PACKET_MASK, n_r + 1 & PACKET_MASK))  # fmt: skip
        n_ps = numbers.choice([0, sender.vt_ps, sender.vt_ps + 1, sender.vt_pa - 1]) & PACKET_MASK
        if n_ps == sender.vt_ps + 1 & PACKET_MASK:
            # A POLL that was never sent: then the other numbers may even be right.
            n_r, credit = sender.vt_s, sender.vt_ms & PACKET_MASK
        return stp.Stat(*head, 0, n_r & PACKET_MASK, credit, n_ps, 7)

    def _other_begin(self, target: str, connection: Connection | None) -> Packet | None:
        """A call with another CSN than any, and without a good cookie (STP-CC-035, STP-CC-041)."""
        csns = (0, 0) if connection is None else (connection.peer_csn or 0, connection.csn)
        csn = self._wrong(csns[0], 32)
        if csn == csns[1]:
            return None
        iss = self.random.getrandbits(24)
        ports = self.ports(target)
        flags = self.random.randrange(4)
        return stp.Begin(*ports, csn & 0xFFFF, flags, iss, 100, csn, data=b"forged", max_sd=1400,
                     cookie=self._bad_cookie(target))  # fmt: skip

    def _bad_cookie(self, target: str) -> bytes | None:
        """None, forged, altered, another address's, used, void or expired (STP-CC-035)."""
        numbers, node = self.random, self.network.nodes[target]
        cookies, now = node.endpoint._cookies, self.network.now
        peer = address_of(self.pair[self.pair[0] == target])
        way = numbers.randrange(6)
        if way == 0:
            return None
        if way == 1:
            return any_cookie(numbers)
        if way == 2:
            return altered(cookies.make(peer, now), numbers)
        if way == 3:
            return cookies.make(address_of("elsewhere"), now)
        number = int((now - COOKIE_LIFE_S - 1) * 1e6)
        if way == 4:
            used = [number for number, whose in cookies._used.items() if whose == peer]
            void = cookies._void.get(peer, 0)
            number = numbers.choice([*sorted(used), void - 1, void - 1000])
        if number <= 0:
            return None
        octets = number.to_bytes(8, "big")
        return octets + cookies.code(octets, peer)
