"""STP connections as asyncio transports, and the socket they share.

The socket is drained in batches from ``add_reader``: a datagram transport of asyncio would take one
packet per turn of the event loop, and knows no raw sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.io.addresses import SocketAddress
from bentpipe_reference.stp.io.carrier import Carrier
from bentpipe_reference.stp.io.errors import StpAborted, StpIoError, StpNoAnswer, StpRefused
from bentpipe_reference.stp.io.loop import Pump
from bentpipe_reference.stp.io.node import make_endpoint
from bentpipe_reference.stp.packets import Reason
from bentpipe_reference.stp.states import State

PIECE = 1 << 16
"""Octets given to a protocol at a time."""

HIGH_WATER = 1 << 16
"""Octets written beyond the connection's own buffer before the protocol is asked to pause."""

PATIENCE_S = 3.0
"""How long the last END may wait for its ENDAK: two transmissions."""

ProtocolFactory = Callable[[], asyncio.Protocol]


class StpTransport(asyncio.Transport):
    """One connection for an :class:`asyncio.Protocol`.

    ``close`` ends our stream once everything has been sent, and forgets what still arrives;
    ``connection_lost`` comes when both streams have ended and are acknowledged, with None, or with
    the error. ``abort`` tells the peer at once. Where the socket is the connection's own,
    ``connection_lost`` waits for the ENDAK, though no longer than :data:`PATIENCE_S`, and the
    socket is closed with it.

    Attributes:
        opened: done when the peer has accepted the call, or with the error.
        lost: whether ``connection_lost`` has been called.
    """

    def __init__(
        self, driver: Driver, connection: Connection, protocol: asyncio.Protocol, *, accepted: bool
    ) -> None:
        super().__init__()
        self.opened: asyncio.Future[None] = driver.loop.create_future()
        self._driver = driver
        self._connection = connection
        self._protocol = protocol
        self._buffer = bytearray()
        self._high, self._low = HIGH_WATER, HIGH_WATER // 4
        self._writing_paused = self._reading_paused = False
        self._ending = self._closing = self.lost = False
        self._eof_told = self._patience = False
        self._error: Exception | None = None
        connection.user = self
        if accepted:
            self._open()

    # What the driver calls

    def run(self) -> None:
        """Something has happened on the connection."""
        connection = self._connection
        if not self.opened.done() and connection.state is State.READY:
            self._open()
        self._push()
        self._deliver()
        if connection.is_over and not self.lost and not connection.readable:
            if self._driver.has_said_all(connection):
                self._lose()
            elif not self._patience:
                self._patience = True
                self._driver.loop.call_later(PATIENCE_S, self._lose_patience)

    def _lose_patience(self) -> None:
        self._lose()
        self._driver.poke()

    def fail(self, error: Exception) -> None:
        """Abort for a reason that the connection does not know."""
        self._error = error
        self._driver.abort(self._connection)

    def drop(self) -> None:
        """The socket is gone."""
        self._error = self._error or StpAborted("the socket was closed")
        self._lose()

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended, though perhaps without its ENDAK."""
        return self._connection.is_over

    @property
    def calling(self) -> bool:
        """Whether the peer has not yet answered."""
        return self._connection.state is State.OUTGOING

    def _open(self) -> None:
        if not self.opened.done():
            self.opened.set_result(None)
        self._protocol.connection_made(self)

    def _lose(self) -> None:
        if self.lost:
            return
        self.lost = self._closing = True
        connection = self._connection
        error = None if connection.succeeded else (self._error or failure_of(connection))
        if not self.opened.done():
            # Nobody but the caller, who waits, knows of the connection.
            assert error is not None
            self.opened.set_exception(error)
        elif not self.opened.cancelled():
            self._protocol.connection_lost(error)

    # Reading

    def _deliver(self) -> None:
        connection = self._connection
        while not self._reading_paused or self._closing:
            data = connection.read(PIECE)
            if not data:
                break
            if not self._closing:
                self._protocol.data_received(data)
        ended = connection.peer_has_closed and not connection.readable
        if ended and not self._eof_told and self.opened.done() and not self.lost:
            self._eof_told = True
            if not self._closing and not self._protocol.eof_received():
                self.close()

    def pause_reading(self) -> None:
        """Deliver nothing more; the peer's credit runs out."""
        self._reading_paused = True

    def resume_reading(self) -> None:
        """Deliver again."""
        if self._reading_paused:
            self._reading_paused = False
            self._driver.loop.call_soon(self._driver.run, self)

    def is_reading(self) -> bool:
        """Whether data is delivered."""
        return not self._reading_paused and not self._closing

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data`` after what was written before; dropped when the connection is over."""
        if self._closing or self._connection.is_over or not data:
            return
        if self._ending:
            raise RuntimeError("the stream has been ended")
        if self._buffer:
            self._buffer += data
        else:
            self._buffer += memoryview(data)[self._connection.write(memoryview(data)) :]
        if len(self._buffer) > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()
        self._driver.poke()

    def _push(self) -> None:
        connection = self._connection
        if self._buffer and connection.is_over:
            self._buffer.clear()
        if self._buffer:
            view = memoryview(bytes(self._buffer))
            del self._buffer[: connection.write(view)]
        if self._ending and not self._buffer:
            connection.close()
        if self._writing_paused and len(self._buffer) <= self._low:
            self._writing_paused = False
            self._protocol.resume_writing()

    def can_write_eof(self) -> bool:
        """Streams end one by one."""
        return True

    def write_eof(self) -> None:
        """End our stream; the peer's goes on."""
        if not self._ending:
            self._ending = True
            self._push()
            self._driver.poke()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When to pause and resume the protocol, octets beyond the connection's own buffer."""
        self._high = HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low
        if not 0 <= self._low <= self._high:
            raise ValueError(f"low ({self._low}) must lie between 0 and high ({self._high})")

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Low and high."""
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        """Octets written and not yet sent once."""
        return len(self._buffer) + self._connection.outgoing.sender.unsent

    # Ending

    def close(self) -> None:
        """End our stream after what has been written, and forget what still arrives."""
        if not self._closing:
            self._closing = True
            self.write_eof()
            self._driver.loop.call_soon(self._driver.run, self)

    def abort(self) -> None:
        """End the connection now; the peer learns that it failed."""
        self._closing = True
        self._driver.abort(self._connection)

    def is_closing(self) -> bool:
        """Whether it is closing or gone."""
        return self._closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who uses it."""
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Somebody else uses it."""
        self._protocol = cast("asyncio.Protocol", protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """``peername``, ``sockname``, ``stp_ports`` (ours, the peer's) or ``stp_connection``."""
        identity = self._connection.identity
        known = {
            "peername": identity.peer,
            "sockname": self._driver.carrier.address,
            "stp_ports": (identity.local_port, identity.peer_port),
            "stp_connection": self._connection,
        }
        return known.get(name, default)


class Driver:
    """An endpoint on a carrier in the running event loop.

    Args:
        config: settings of all connections.
        carrier: the socket; the driver closes it.
        seed: see :func:`node.make_endpoint`.

    Attributes:
        gone: done when the socket has been closed.
        only: the transport to which the socket belongs, None where there are others.
    """

    def __init__(self, config: StpConfig, carrier: Carrier, seed: int | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.carrier = carrier
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self.only: StpTransport | None = None
        self._closing = False
        self._endpoint = make_endpoint(config, carrier, seed)
        self._pump = Pump(self._endpoint, carrier, self._serve)
        self._factories: dict[int, ProtocolFactory] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._poked = self._flushing = self._watching_room = False
        self.loop.add_reader(carrier.fileno(), self._readable)

    def listen(self, port: int, factory: ProtocolFactory) -> None:
        """Accept calls to ``port``."""
        self._factories[port] = factory
        self._endpoint.listen(port)

    def unlisten(self) -> None:
        """Accept no more calls; the connections go on, and the socket closes with the last."""
        for port in self._factories:
            self._endpoint.unlisten(port)
        self._closing = True
        self.poke()

    def connect(self, peer: SocketAddress, port: int, protocol: asyncio.Protocol) -> StpTransport:
        """Call ``port`` of ``peer``, to which the socket is connected; wait for ``opened``."""
        connection = self._endpoint.connect(peer, port)
        self.poke()
        self.only = StpTransport(self, connection, protocol, accepted=False)
        return self.only

    def has_said_all(self, connection: Connection) -> bool:
        """Whether a connection that is over still needs the socket."""
        return (
            self.only is None
            or self.carrier.refused
            or connection.state is State.IDLE
            or connection.reason == Reason.NO_ANSWER
        )

    def transports(self) -> list[StpTransport]:
        """Those of the live connections."""
        users = [connection.user for connection in self._endpoint.connections.values()]
        return [user for user in users if user is not None]

    def abort(self, connection: Connection) -> None:
        """Abort a connection and tell the peer now, not in the next turn of the loop."""
        if not connection.is_over:
            connection.abort(self.loop.time())
            self._flush()

    def run(self, transport: StpTransport) -> None:
        """Let one transport go on, and send what that makes possible."""
        transport.run()
        self._flush()

    def poke(self) -> None:
        """Something may have to be sent: once, however often this is called in one turn."""
        if not self._poked:
            self._poked = True
            self.loop.call_soon(self._flush)

    def close(self) -> None:
        """Close the socket; peers learn nothing, the users of open connections that they failed."""
        if self.gone.done():
            return
        self.gone.set_result(None)
        for transport in self.transports():
            transport.drop()
        self.loop.remove_reader(self.carrier.fileno())
        self.loop.remove_writer(self.carrier.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self.carrier.close()

    def _readable(self) -> None:
        self._pump.take(self.loop.time())
        self._flush()

    def _flush(self) -> None:
        self._poked = False
        # A protocol that writes or aborts from its callback is inside already.
        if self._flushing or self.gone.done():
            return
        self._flushing = True
        try:
            self._refuse()
            self._pump.flush(self.loop.time())
        finally:
            self._flushing = False
        if self.only is not None and self.only.is_over and not self.only.lost:
            # The ENDAK is no event of the connection.
            self.only.run()
        idle = self._closing and not self._endpoint.connections
        if self.only.lost if self.only is not None else idle:
            self.close()
            return
        self._watch_room()
        self._set_timer()

    def _refuse(self) -> None:
        """What the kernel says about the only peer of a connected socket."""
        if self.carrier.refused:
            for transport in self.transports():
                if transport.calling:
                    transport.fail(StpRefused(f"nobody answers there: {self.carrier.fault}"))
        if self.carrier.too_long and self.only is not None:
            for transport in self.transports():
                transport.fail(StpIoError(f"{self.carrier.fault}; give a smaller max_sd."))

    def _serve(self, _: float) -> bool:
        eventful = self._endpoint.take_events()
        for connection, _ in eventful:
            if connection.user is None:
                factory = self._factories[connection.identity.local_port]
                StpTransport(self, connection, factory(), accepted=True)
            connection.user.run()
        return bool(eventful)

    def _watch_room(self) -> None:
        if self._pump.blocked != self._watching_room:
            self._watching_room = self._pump.blocked
            if self._watching_room:
                self.loop.add_writer(self.carrier.fileno(), self._flush)
            else:
                self.loop.remove_writer(self.carrier.fileno())

    def _set_timer(self) -> None:
        deadline = self._pump.deadline()
        if self._timer is not None:
            # One that expires too early is set again then: deadlines mostly move to later.
            if deadline is not None and self._timer.when() <= deadline:
                return
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            self._timer = self.loop.call_at(deadline, self._expired)

    def _expired(self) -> None:
        self._timer = None
        self._flush()


def failure_of(connection: Connection) -> StpIoError:
    """The error that tells why a connection failed."""
    words = connection.failure or "the connection was lost"
    if connection.reason in (Reason.NOT_LISTENING, Reason.VERSION) and connection.peer_csn is None:
        return StpRefused(words)
    if connection.reason == Reason.NO_ANSWER:
        return StpNoAnswer(words)
    with contextlib.suppress(ValueError):
        words = f"{words} ({Reason(connection.reason).name.lower().replace('_', ' ')})"
    return StpAborted(words)
