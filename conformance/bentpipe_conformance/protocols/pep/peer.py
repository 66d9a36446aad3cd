"""The tester as client and server, with a box between."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, count
from socket import inet_aton
from typing import Literal

from bentpipe_conformance.engine.codec import UDP, MalformedPacket, build_ipv4, build_udp
from bentpipe_conformance.engine.lane import CLIENT, SERVER, Crossing
from bentpipe_conformance.engine.peer import PATIENCE_S, Crafted, NotReached
from bentpipe_conformance.protocols.pep.codec import LAST
from bentpipe_conformance.protocols.pep.distant import Distant
from bentpipe_conformance.protocols.pep.end import End, Offer, Place
from bentpipe_conformance.protocols.pep.mishap import Mishap
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, Tcp, build, dissect

Answer = Literal["accept", "refuse", "nothing"]

USUAL = Offer()

_FIRST_PORT, _PORTS, _TURNS = 20_000, 20, 20
"""Where a case takes the server's ports: those of twenty cases in a row are others."""
_CROWDS, _CROWD = 20_400, 100
"""Where it goes on when it has used them, in two places by turns.

A box that is addressed listens at them all, up to 20600 (``iuts/pep-nginx``).
"""
_OWN_PORTS = 40_000
"""From where clients take theirs; their address is new in each case."""


@dataclass
class Listener:
    """A port of the server.

    Attributes:
        answer: what becomes of a SYN.
        offer: what the server offers.
        welcome: called with each new end before it answers.
        ends: those that were made, in order.
        syns: what arrived.
    """

    answer: Answer = "accept"
    offer: Offer = USUAL
    welcome: Callable[[End], None] = lambda _: None
    ends: list[End] = field(default_factory=list)
    syns: list[Tcp] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Through:
    """A connection through the box, as both ends have it."""

    client: End
    server: End


class Peer:
    """The tester on one lane during one case.

    Attributes:
        address, server: addresses of the client and of the server.
        rtt: round-trip time of the satellite link, seconds.
        connections, buffer: how many the box serves at once, and octets of a stream that it holds
            at most, as it is declared; 0 where nothing is.
        random: seeded from the run's printed seed.
        strays: what arrived for no end: time, side and octets.
        crafted: see :class:`~bentpipe_conformance.engine.peer.ScriptedPeer`.
        mishaps: what happens to packets between the box and the ends.
    """

    def __init__(
        self, lane: Crossing, address: str, rtt: float, seed: int, connections: int = 0,
        buffer: int = 0,
    ) -> None:  # fmt: skip
        self.address, self.server = address, lane.iut_address
        self.rtt = rtt
        self.connections, self.buffer = connections, buffer
        self.random = random.Random(seed)
        self.strays: list[tuple[float, str, bytes]] = []
        self.crafted: list[Crafted] = []
        self.mishaps: list[Mishap] = []
        self.lane = lane
        self.questions = count()
        self._wires = {CLIENT: lane.port, SERVER: lane.far}
        self._ends: dict[tuple[str, Place, Place], End] = {}
        self._listeners: dict[int, Listener] = {}
        # A box may remember a port of the server from case to case, say that it has refused.
        turn = int.from_bytes(inet_aton(address)) % _TURNS
        first, further = _FIRST_PORT + _PORTS * turn, _CROWDS + _CROWD * (turn % 2)
        self._ports = chain(range(first + 1, first + _PORTS + 1), count(further + 1))
        self._own_ports = count(_OWN_PORTS)
        self._began = lane.port.now()

    # -- time -----------------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds on the lane's clock."""
        return self.lane.port.now()

    def elapsed(self) -> float:
        """Seconds since the case began, as captured packets have them."""
        return self.now() - self._began

    @property
    def patience(self) -> float:
        """Seconds to wait for something that a live box must do."""
        return 4 * self.rtt + PATIENCE_S

    def run(self, until: Callable[[], bool], within: float) -> bool:
        """Let the ends react until ``until()``; False after ``within`` seconds."""
        deadline = self.now() + within
        while not until():
            due = min((end.due for end in self._ends.values() if end.due is not None), default=None)
            if due is not None and due <= self.now():
                for end in [end for end in self._ends.values() if end.due == due]:
                    end.expire()
                continue
            item = self.lane.receive(deadline if due is None else min(due, deadline))
            if item is not None:
                self._arrive(*item)
            elif self.now() >= deadline:
                return until()
        return True

    def wait(self, seconds: float) -> None:
        """Let time pass; the ends react."""
        self.run(lambda: False, seconds)

    def until(self, reached: Callable[[], bool], what: str, within: float | None = None) -> None:
        """Let the ends react until ``reached()``.

        Raises:
            NotReached: it was still false after ``within`` seconds, by default :attr:`patience`.
        """
        patience = self.patience if within is None else within
        if not self.run(reached, patience):
            raise NotReached(f"{patience:.1f} s passed without {what}")

    def finish(self) -> None:
        """Reset what is open; a last datagram shows until when nothing else has happened."""
        self.wait(0.0)
        self.send(CLIENT, self.last_datagram(self.address, self.server))
        for end in self._ends.values():
            if end.established and not end.is_over:
                end.reset()
            end.vanish()
        self.lane.receive(self.now())

    # -- packets --------------------------------------------------------------------------------

    def send(self, side: str, packet: bytes) -> None:
        """Put any IPv4 packet on the wire of one side."""
        self._wires[side].send(packet)

    def datagram(self, payload: bytes, *, back: bool = False) -> bytes:
        """A UDP datagram from client to server, or back."""
        ends = (self.server, self.address) if back else (self.address, self.server)
        return _datagram(*ends, payload)

    @staticmethod
    def last_datagram(client: str, server: str) -> bytes:
        """What says in a trace that the case is over."""
        return _datagram(client, server, LAST)

    def strays_at(self, side: str) -> list[bytes]:
        """What arrived there for no end."""
        return [octets for _, at, octets in self.strays if at == side]

    def _arrive(self, time: float, side: str, octets: bytes) -> None:
        try:
            tcp = dissect(octets)
        except MalformedPacket:
            self.strays.append((time, side, octets))
            return
        if not (tcp.checksum_ok and tcp.offset_ok):
            self.strays.append((time, side, octets))  # a host drops it (RFC 9293 section 3.1)
            return
        self._pass(side, True, tcp, lambda: self._deliver(time, side, octets, tcp))

    def _pass(self, side: str, by_box: bool, tcp: Tcp, go: Callable[[], None]) -> None:
        """Let a packet pass between the box and an end, unless something happens to it."""
        mishap = next((it for it in self.mishaps if it.concerns(side, by_box, tcp)), None)
        if mishap is None:
            go()
        else:
            mishap.meet(tcp, go)

    def _deliver(self, time: float, side: str, octets: bytes, tcp: Tcp) -> None:
        local, remote = (tcp.dst, tcp.dport), (tcp.src, tcp.sport)
        end = self._ends.get((side, local, remote))
        new = tcp.flags & (SYN | ACK | RST) == SYN
        if side == SERVER and new and (end is None or end.is_over):
            self._called(tcp, local, remote)
        elif end is not None:
            end.carrier = octets
            end.take(tcp)
        else:
            self.strays.append((time, side, octets))
            hosts = self.address, self.server
            if tcp.flags & (SYN | ACK | RST) == SYN | ACK and tcp.dst in hosts:
                # Of a call that the ends know nothing of (RFC 9293 section 3.10.7.1).
                refused = Tcp(tcp.dst, tcp.src, tcp.dport, tcp.sport, tcp.ack, 0, RST, 0, b"")
                self.send(side, build(refused))

    def _called(self, syn: Tcp, local: Place, remote: Place) -> None:
        listener = self._listeners.get(local[1]) or Listener("refuse")
        listener.syns.append(syn)
        if listener.answer == "refuse":
            flags, ack = RST | ACK, syn.seq + 1 + len(syn.payload)
            refusal = Tcp(local[0], remote[0], local[1], remote[1], 0, ack, flags, 0, b"")
            self.send(SERVER, build(refusal))
        elif listener.answer == "accept":
            self.answer(listener, syn)

    def answer(self, listener: Listener, syn: Tcp) -> None:
        """Accept a SYN that has arrived at the server."""
        local, remote = (syn.dst, syn.dport), (syn.src, syn.sport)
        end = self._new(SERVER, local, remote, listener.offer)
        listener.ends.append(end)
        end.take(syn)
        listener.welcome(end)

    # -- connections ----------------------------------------------------------------------------

    def new_port(self) -> int:
        """A port of the server that no connection of this case has used."""
        return next(self._ports)

    def own_port(self) -> int:
        """A port of the client that no connection of this case has used."""
        return next(self._own_ports)

    def listen(
        self, answer: Answer = "accept", offer: Offer = USUAL, *, port: int | None = None,
        welcome: Callable[[End], None] = lambda _: None,
    ) -> tuple[int, Listener]:  # fmt: skip
        """A port of the server, a new one by default, and what becomes of SYNs there."""
        chosen = self.new_port() if port is None else port
        self._listeners[chosen] = listener = Listener(answer, offer, welcome)
        return chosen, listener

    def listener(self, port: int) -> Listener:
        """What becomes of SYNs at a port."""
        return self._listeners[port]

    def draft(
        self, port: int, offer: Offer = USUAL, *, own_port: int | None = None,
        address: str | None = None,
    ) -> End:  # fmt: skip
        """A client's end on which nothing has been sent; of another client with an address."""
        own = self.own_port() if own_port is None else own_port
        return self._new(CLIENT, (address or self.address, own), (self.server, port), offer)

    def call(
        self, port: int, offer: Offer = USUAL, *, own_port: int | None = None,
        address: str | None = None,
    ) -> End:  # fmt: skip
        """Send a SYN to a port of the server and return at once."""
        end = self.draft(port, offer, own_port=own_port, address=address)
        end.call()
        return end

    def connect(
        self, client: Offer = USUAL, server: Offer = USUAL, *, own_port: int | None = None
    ) -> Through:
        """A connection that both ends have.

        Raises:
            NotReached: it did not open.
        """
        port, listener = self.listen("accept", server)
        caller = self.call(port, client, own_port=own_port)
        return self.opened(caller, listener)

    def opened(self, caller: End, listener: Listener) -> Through:
        """Wait until both ends have it.

        Raises:
            NotReached: it did not open.
        """
        where = f"port {caller.remote[1]}"

        def both() -> bool:
            there = bool(listener.ends) and listener.ends[-1].established
            return caller.was_reset or (caller.established and there)

        self.until(both, f"a connection to {where} at both ends")
        if caller.was_reset:
            raise NotReached(f"the connection to {where} was reset")
        return Through(caller, listener.ends[-1])

    def octets(self, count: int) -> bytes:
        """Octets that no other stream has."""
        return self.random.randbytes(count)

    def forget(self, end: End) -> None:
        """Let nobody react to what arrives for an end."""
        end.vanish()

    def _new(self, side: str, local: Place, remote: Place, offer: Offer) -> End:
        def send(tcp: Tcp) -> None:
            self._pass(side, False, tcp, lambda: self.send(side, build(tcp)))

        kind = Distant if offer.away_s else End
        number = self.random.getrandbits(32) if offer.number is None else offer.number
        end = kind(send, self.now, local, remote, number, offer)
        self._ends[side, local, remote] = end
        return end


def _octets(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def _datagram(source: str, target: str, payload: bytes) -> bytes:
    src, dst = _octets(source), _octets(target)
    return build_ipv4(src, dst, UDP, build_udp(src, dst, 30_000, 9, payload))
