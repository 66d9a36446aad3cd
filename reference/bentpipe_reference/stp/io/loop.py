"""Moving packets between a socket and the protocol machine, and a loop of one thread to do it.

A pump never waits; the loop sleeps until something arrives or a deadline has come.
"""

from __future__ import annotations

import contextlib
import math
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from types import FrameType
from typing import Protocol

from bentpipe_reference.stp.io.addresses import SocketAddress
from bentpipe_reference.stp.io.carrier import BATCH, Carrier

LONGEST_SLEEP_S = 3600.0


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
        if not packets:
            return True
        taken = self.carrier.send(packets)
        self.sent += taken
        self._outbox = packets[taken:]
        self.blocked = bool(self._outbox)
        return not self.blocked

    def deadline(self) -> float | None:
        """When :meth:`flush` has to be called without anything having happened."""
        return None if self.blocked else self.machine.next_deadline()


class Loop:
    """Runs a pump, and whoever else has a file to watch or a time to keep.

    Waits in ``select``, whose timeout is exact to a microsecond where ``epoll`` knows
    milliseconds. No descriptor may be above 1023, as in any program of few files.

    Args:
        pump: packets and users.
        clock: seconds; the machine gets no other time.
    """

    def __init__(self, pump: Pump, clock: Callable[[], float] = time.monotonic) -> None:
        self.pump = pump
        self.clock = clock
        self._caught: list[Callable[[], None]] = []
        self._selector = selectors.SelectSelector()
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0
        self._key = self._selector.register(pump.carrier, selectors.EVENT_READ)

    def watch(self, descriptor: int, action: Callable[[], None], *, writing: bool = False) -> None:
        """Call ``action`` whenever ``descriptor`` is readable or at its end, or is writable."""
        events = selectors.EVENT_WRITE if writing else selectors.EVENT_READ
        self._selector.register(descriptor, events, action)

    def unwatch(self, descriptor: int) -> None:
        """Watch it no longer."""
        self._selector.unregister(descriptor)

    def call_at(self, moment: float, action: Callable[[], None]) -> None:
        """Call ``action`` once at ``moment`` on this loop's clock."""
        self._planned += 1
        heappush(self._alarms, (moment, self._planned, action))

    def run(self, until: Callable[[], bool]) -> None:
        """Run until the condition holds, which is looked at after everything that happens."""
        pump, clock, wait = self.pump, self.clock, self._selector.select
        pump.flush(clock())
        while not until():
            ready = wait(self._timeout())
            # First, so that what came after a signal is not done before it.
            while self._caught:
                self._caught.pop(0)()
            for key, _ in ready:
                if key.data is not None:
                    key.data()
                else:
                    pump.take(clock())
            now = clock()
            while self._alarms and self._alarms[0][0] <= now:
                heappop(self._alarms)[2]()
            pump.flush(now)

    def _timeout(self) -> float:
        """Seconds to sleep; also asks for writability while the socket's buffer is full."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.pump.blocked else 0)
        if events != self._key.events:
            self._key = self._selector.modify(self.pump.carrier, events)
        deadline = self.pump.deadline()
        moments = [alarm[0] for alarm in self._alarms[:1]]
        moments += [] if deadline is None else [deadline]
        return min(max(0.0, min(moments, default=math.inf) - self.clock()), LONGEST_SLEEP_S)

    @contextlib.contextmanager
    def interruptible(self, action: Callable[[int], None]) -> Iterator[None]:
        """Meanwhile SIGINT and SIGTERM end no packet half-way: ``action`` is called by the loop."""
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)

        def caught(number: int, _: FrameType | None) -> None:
            self._caught.append(lambda: action(number))

        def woken() -> None:
            with contextlib.suppress(BlockingIOError):
                while reading.recv(64):
                    pass

        signals = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, caught) for number in signals]
        wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self.watch(reading.fileno(), woken)
        try:
            yield
        finally:
            self.unwatch(reading.fileno())
            signal.set_wakeup_fd(wakeup)
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)
            reading.close()
            writing.close()

    def close(self) -> None:
        """Close the selector; the carrier is its owner's."""
        self._selector.close()
