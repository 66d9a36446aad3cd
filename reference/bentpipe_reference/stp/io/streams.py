"""STP for asyncio programs: ``open_connection`` and ``start_server``, as for TCP.

::

    reader, writer = await open_connection("192.0.2.1", 7253, 7)
    writer.write(b"hello")
    await writer.drain()            # waits while the peer cannot take more
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()      # the peer has acknowledged the end of the stream

Reader and writer are asyncio's own. Errors are those of :mod:`bentpipe_reference.stp.io.errors`,
all of them :class:`OSError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Self

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.io.addresses import Place, SocketAddress
from bentpipe_reference.stp.io.node import listening, towards
from bentpipe_reference.stp.io.transport import Driver

LIMIT = 1 << 18
"""Octets a reader buffers before the peer is held back, unless given."""

_V6_LONGER = 20
"""Octets by which an IPv6 header is longer than one of IPv4."""

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]


async def open_connection(
    host: str,
    udp_port: int,
    service_port: int,
    *,
    config: StpConfig | None = None,
    limit: int = LIMIT,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Call ``service_port`` of the endpoint at ``host`` and wait until it accepts.

    Args:
        host: name or address.
        udp_port: of the endpoint; ignored directly over IP.
        service_port: STP port.
        config: settings; ``protocol`` chooses UDP or IP.
        limit: octets the reader buffers.

    Raises:
        StpRefused: nobody is there, or nobody listens on the port.
        StpNoAnswer: no answer to five BEGINs.
        StpIoError: the name is unknown, or there is no socket.
    """
    config = _suited(config, host)
    place = Place(host, udp_port)
    if place.is_numeric:
        carrier = towards(place, config)
    else:  # to look up a name may take seconds
        carrier = await asyncio.to_thread(towards, place, config)
    driver = Driver(config, carrier)
    reader = asyncio.StreamReader(limit=limit, loop=driver.loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=driver.loop)
    transport = driver.connect(carrier.peer, service_port, protocol)
    try:
        await transport.opened
    except asyncio.CancelledError:
        transport.abort()
        driver.close()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, driver.loop)


class StpServer:
    """What :func:`start_server` returns; leaving it as a context manager closes it.

    Attributes:
        address: where it listens, as the kernel has it: host and UDP port first.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.address: SocketAddress = driver.carrier.address

    def close(self) -> None:
        """Accept no more calls; open connections go on, and the socket closes with the last."""
        self._driver.unlisten()

    def abort(self) -> None:
        """Accept no more calls and abort every connection."""
        for transport in self._driver.transports():
            transport.abort()
        self._driver.unlisten()

    async def wait_closed(self) -> None:
        """Wait until the last connection has ended."""
        await asyncio.shield(self._driver.gone)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()


async def start_server(
    connected: Connected,
    host: str,
    udp_port: int,
    service_ports: int | Iterable[int],
    *,
    config: StpConfig | None = None,
    limit: int = LIMIT,
) -> StpServer:
    """Listen, and call ``connected`` with reader and writer of every connection.

    Args:
        connected: a function or coroutine function; a coroutine becomes a task.
        host: address of this host, empty for all.
        udp_port: 0 for any that is free; ignored directly over IP.
        service_ports: STP port or ports.
        config: settings; ``protocol`` chooses UDP or IP.
        limit: octets each reader buffers.

    Raises:
        StpIoError: the address is unknown, not ours, in use or forbidden.
    """
    config = _suited(config, host)
    carrier = await asyncio.to_thread(listening, Place(host, udp_port), config)
    driver = Driver(config, carrier)

    def factory() -> asyncio.Protocol:
        reader = asyncio.StreamReader(limit=limit, loop=driver.loop)
        return asyncio.StreamReaderProtocol(reader, connected, loop=driver.loop)

    ports = [service_ports] if isinstance(service_ports, int) else service_ports
    for port in ports:
        driver.listen(port, factory)
    return StpServer(driver)


def _suited(config: StpConfig | None, host: str) -> StpConfig:
    """Unless ``max_sd`` is set, leave room for the longer header of IPv6."""
    config = config or StpConfig()
    if config.max_sd is None and ":" in host:
        return replace(config, mtu=config.mtu - _V6_LONGER)
    return config
