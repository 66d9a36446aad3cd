"""Moving packets between a socket and the protocol machine, without ever waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bentpipe_reference.stp.io.addresses import SocketAddress
from bentpipe_reference.stp.io.carrier import BATCH, Carrier


class Machine(Protocol):
    """What is pumped: octets and time in, octets out."""

    def receive(self, octets: bytes, peer: SocketAddress, now: float) -> None:
        """Take a packet at ``now`` seconds."""

    def transmit(self, now: float) -> list[tuple[SocketAddress, bytes]]:
        """Let timers expire and return what is to be sent now."""

    def next_deadline(self) -> float | None:
        """When :meth:`transmit` has to be called at the latest, None when no timer runs."""


class Pump:
    """One machine on one carrier.

    Args:
        machine: the protocol machine.
        carrier: the socket.
        serve: called with the time before anything is sent, and again when that may have changed
            something: the machine's users read, write and close here. Returns whether they did.

    Attributes:
        blocked: the socket's buffer is full; nothing more is asked of the machine before it is
            writable again.
        received: packets taken from the socket.
        sent: packets given to it.
    """

    def __init__(
        self, machine: Machine, carrier: Carrier, serve: Callable[[float], bool] | None = None
    ) -> None:
        self.machine = machine
        self.carrier = carrier
        self.serve = serve
        self.blocked = False
        self.received = self.sent = 0
        self._outbox: list[tuple[SocketAddress, bytes]] = []

    def take(self, now: float) -> bool:
        """Give the machine what has arrived; whether more may be waiting."""
        packets = self.carrier.receive()
        receive = self.machine.receive
        for octets, peer in packets:
            receive(octets, peer, now)
        self.received += len(packets)
        return len(packets) >= BATCH

    def flush(self, now: float) -> None:
        """Serve the users and send what is due, or what was left when the buffer was full."""
        serve = self.serve
        if serve is not None:
            serve(now)
        if self._outbox and not self._send(self._outbox):
            return
        while self._send(self.machine.transmit(now)):
            # Sending makes room to write, and an expired timer may have ended a connection.
            if serve is None or not serve(now):
                return

    def _send(self, packets: list[tuple[SocketAddress, bytes]]) -> bool:
        """Send in order; whether all have gone."""
        taken = self.carrier.send(packets)
        self.sent += taken
        self._outbox = packets[taken:]
        self.blocked = bool(self._outbox)
        return not self.blocked

    def deadline(self) -> float | None:
        """When :meth:`flush` has to be called without anything having happened."""
        return None if self.blocked else self.machine.next_deadline()
