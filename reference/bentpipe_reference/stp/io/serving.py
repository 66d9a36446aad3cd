"""The standard services on a socket, and calls made on command: an upper tester's endpoint."""

from __future__ import annotations

import os
from collections.abc import Callable

from bentpipe_reference.common.encapsulation import UDP
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.io.addresses import Place, resolve
from bentpipe_reference.stp.io.errors import StpIoError
from bentpipe_reference.stp.io.programs import serve_place
from bentpipe_reference.stp.io.shedding import Shedding
from bentpipe_reference.stp.services import NAMED, SERVICES, Chargen, Service
from bentpipe_reference.stp.states import State

PATIENCE_S = 1.0
"""How long the ENDs of aborted connections may wait for their ENDAKs: one transmission."""

USAGE = (
    f"say open ADDRESS UDPPORT SERVICEPORT [{'|'.join(NAMED)} [OCTETS]], close or abort; "
    "after OCTETS chargen ends its stream"
)


class Server:
    """Echo, discard and chargen at a place, until a signal ends it.

    Attributes:
        address: where it listens, as people write it.
        interrupted: the signal that ended it, 0 before.
    """

    def __init__(self, place: Place, config: StpConfig, say: Callable[[str], None]) -> None:
        """Listen.

        Args:
            place: host and UDP port; 0 for any that is free.
            config: settings of all connections.
            say: receives what is wrong with a command or a call.

        Raises:
            StpIoError: the address is not known, not ours, in use or forbidden.
        """
        self.node = serve_place(place, config)
        self.address = str(self.node.place)
        self.interrupted = 0
        self._say = say
        self._family_is_v6 = len(self.node.carrier.address) == 4
        self._called: list[Connection] = []
        self._line = b""
        self._stop_at: float | None = None
        loop = self.node.loop
        self._shedding = Shedding(self.node.endpoint, loop.clock, loop.call_at)
        for port, service in SERVICES.items():
            self.node.listen(port, self._maker(service))

    def _maker(self, service: Callable[[], Service]) -> Callable[[Connection], Service]:
        def accepted(_: Connection) -> Service:
            self._shedding.accepted()
            return service()

        return accepted

    def run(self, commands: int | None = None) -> None:
        """Serve; take commands from the descriptor ``commands`` until its end."""
        loop = self.node.loop
        if commands is not None:
            loop.watch(commands, lambda: self._read(commands))
        with loop.interruptible(self._interrupt):
            loop.run(self._done)

    def close(self) -> None:
        """Close the socket."""
        self.node.close()

    def obey(self, line: str) -> None:
        """One command; an invalid one is reported and ignored."""
        words = line.split()
        try:
            if words == ["close"]:
                self._end_calls(Connection.close)
            elif words == ["abort"]:
                now = self.node.loop.clock()
                self._end_calls(lambda connection: connection.abort(now))
            elif words[:1] == ["open"] and len(words) in (4, 5, 6):
                self._open(words[1], _port(words[2]), _port(words[3]), *words[4:])
            elif words:
                raise ValueError(f"{line.strip()!r} is not a command; {USAGE}")
        except (ValueError, StpIoError) as error:
            self._say(str(error))

    def _open(
        self, host: str, udp_port: int, port: int, service: str = "echo", octets: str = ""
    ) -> None:
        if service not in NAMED:
            raise ValueError(f"{service!r} is not a service; {USAGE}")
        most = _octets(octets) if octets else None
        _, address = resolve(
            Place(host, udp_port if self.node.endpoint.config.protocol == UDP else 0)
        )
        if (len(address) == 4) != self._family_is_v6:
            raise ValueError(f"{host} is not of the address family of {self.address}")
        connection = self.node.connect(address, port)
        connection.user = Chargen(most) if service == "chargen" else NAMED[service]()
        connection.user.run(connection)
        self._called = [other for other in self._called if not other.is_over]
        self._called.append(connection)

    def _end_calls(self, end: Callable[[Connection], None]) -> None:
        for connection in self._called:
            if not connection.is_over:
                end(connection)

    def _read(self, commands: int) -> None:
        data = os.read(commands, 65536)
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self.obey(line.decode(errors="replace"))
        if not data:
            self.node.loop.unwatch(commands)
        if len(self._line) > 65536:
            self._line = b""
            self._say(f"a command of more than 65536 octets is ignored; {USAGE}")

    def _interrupt(self, number: int) -> None:
        loop = self.node.loop
        now = loop.clock()
        self._stop_at = now if self.interrupted else now + PATIENCE_S
        self.interrupted = number
        loop.call_at(self._stop_at, lambda: None)
        for connection in list(self.node.endpoint.connections.values()):
            if not connection.is_over:
                connection.abort(now)

    def _done(self) -> bool:
        if self._stop_at is None:
            return False
        states = {other.state for other in self.node.endpoint.connections.values()}
        return self.node.loop.clock() >= self._stop_at or states <= {State.IDLE}


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise ValueError(f"{text!r} is not a port; {USAGE}")
    return int(text)


def _octets(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a number of octets; {USAGE}")
    return int(text)
