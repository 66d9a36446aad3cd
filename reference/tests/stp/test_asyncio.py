"""The asyncio front over loopback sockets. Nothing waits for longer than it must."""

import asyncio
import hashlib
import os
import random
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.io.errors import StpAborted, StpIoError, StpNoAnswer, StpRefused
from bentpipe_reference.stp.io.streams import Connected, StpServer, open_connection, start_server
from bentpipe_reference.stp.polling import Polling

PATIENCE = 120.0
HOST = "127.0.0.1"


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def served(connected: Connected, host: str = HOST, **config: Any) -> AsyncIterator[StpServer]:
    server = await start_server(connected, host, 0, 7, config=StpConfig(**config))
    try:
        yield server
    finally:
        server.abort()
        await server.wait_closed()


@pytest.mark.parametrize("host", [HOST, "::1"])
def test_stream_is_echoed_and_both_ends_close(host: str) -> None:
    data = os.urandom(1_000_000)

    async def scenario() -> None:
        async with served(echo, host) as server:
            reader, writer = await open_connection(host, server.address[1], 7)
            assert writer.get_extra_info("peername")[:2] == server.address[:2]
            assert writer.get_extra_info("stp_ports")[1] == 7

            async def feed() -> None:
                for start in range(0, len(data), 50_000):
                    writer.write(data[start : start + 50_000])
                    await writer.drain()
                writer.write_eof()

            feeding = asyncio.create_task(feed())
            answer = await reader.read()
            await feeding
            writer.close()
            await writer.wait_closed()
            assert hashlib.sha256(answer).digest() == hashlib.sha256(data).digest()

    run(scenario())


def test_reader_does_not_read_the_writer_is_held_back() -> None:
    may_read = asyncio.Event()
    got: list[int] = []

    async def reluctant(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_read.wait()
        got.append(len(await reader.read()))
        writer.close()

    async def scenario() -> None:
        config = StpConfig(credit=16, send_buffer=20_000)
        async with served(reluctant, credit=16, send_buffer=20_000) as server:
            _, writer = await open_connection(HOST, server.address[1], 7, config=config)
            # What reader and receiver buffer, what the sender does, and what the transport does.
            most = 2 * (1 << 18) + 16 * 1452 + 20_000 + 2 * 65_536 + 100_000
            written = 0
            while True:
                writer.write(bytes(10_000))
                written += 10_000
                assert written <= most
                try:
                    await asyncio.wait_for(writer.drain(), 0.5)
                except TimeoutError:
                    break
            may_read.set()
            writer.close()
            await writer.wait_closed()
            assert got == [written]

    run(scenario())


def test_service_port_has_no_listener_the_call_is_refused() -> None:
    async def scenario() -> None:
        async with served(echo) as server:
            with pytest.raises(StpRefused, match="nobody listens"):
                await open_connection(HOST, server.address[1], 8)

    run(scenario())


def test_udp_port_has_no_endpoint_the_call_is_refused_at_once() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    with pytest.raises(StpRefused, match="nobody is at this UDP port"):
        run(_open_only(port))


async def _open_only(port: int) -> None:
    await open_connection(HOST, port, 7)


def test_name_is_unknown_the_error_says_so() -> None:
    with pytest.raises(StpIoError, match="not found"):
        run(_open_elsewhere())


async def _open_elsewhere() -> None:
    await open_connection("no such host", 4000, 7)


def test_peer_aborts_the_reader_learns_of_it() -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        writer.transport.abort()

    async def scenario() -> None:
        async with served(rude) as server:
            reader, writer = await open_connection(HOST, server.address[1], 7)
            writer.write(b"hello")
            with pytest.raises(StpAborted, match="aborted"):
                await reader.read()
            writer.close()
            with pytest.raises(StpAborted):
                await writer.wait_closed()

    run(scenario())


def test_peer_falls_silent_the_connection_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Polling, "no_response_s", 1.0)

    async def scenario() -> None:
        server = await start_server(echo, HOST, 0, 7)
        reader, writer = await open_connection(HOST, server.address[1], 7)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        # As a host does that loses its power: the socket is gone, and nothing is said.
        server._driver.close()
        writer.write(b"anybody there?")
        with pytest.raises(StpNoAnswer, match="does not answer any more"):
            await reader.read()
        writer.close()
        with pytest.raises(StpNoAnswer):
            await writer.wait_closed()

    run(scenario())


def test_thousand_connections_at_once_in_one_process() -> None:
    async def one(port: int, number: int) -> None:
        reader, writer = await open_connection(HOST, port, 7)
        data = random.Random(number).randbytes(3000)
        writer.write(data)
        writer.write_eof()
        assert await reader.read() == data
        writer.close()
        await writer.wait_closed()

    async def scenario() -> None:
        most = 0

        async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal most
            most = max(most, len(server._driver.transports()))
            await all_there.wait()
            await echo(reader, writer)

        all_there = asyncio.Event()
        async with served(counted) as server:
            clients = [asyncio.create_task(one(server.address[1], n)) for n in range(1000)]
            while most < 1000:
                await asyncio.sleep(0.01)
            all_there.set()
            await asyncio.gather(*clients)
        assert most == 1000

    run(scenario())


def test_garbage_at_the_socket_harms_no_connection() -> None:
    numbers = random.Random(20)
    print("seed 20")

    async def scenario() -> None:
        async with served(echo) as server:
            reader, writer = await open_connection(HOST, server.address[1], 7)
            # With the connection's own ports, from another address and from the peer's own.
            ours, theirs = writer.get_extra_info("stp_ports")
            carrier = writer.transport._driver.carrier  # type: ignore[attr-defined]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hostile:
                hostile.connect((HOST, server.address[1]))
                for number in range(3000):
                    head = ours.to_bytes(2, "big") + theirs.to_bytes(2, "big")
                    body = bytes([number & 15]) + numbers.randbytes(numbers.randrange(60))
                    packet = numbers.choice((head + body, numbers.randbytes(number % 70)))
                    if number % 2:
                        hostile.send(packet)
                    else:
                        carrier.send([(carrier.peer, packet)])
                    if number % 100 == 0:
                        writer.write(b"0123456789")
                        assert await reader.readexactly(10) == b"0123456789"
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    run(scenario())


def test_server_closes_open_connections_go_on() -> None:
    async def scenario() -> None:
        server = await start_server(echo, HOST, 0, [7, 17])
        port = server.address[1]
        reader, writer = await open_connection(HOST, port, 17)
        server.close()
        with pytest.raises(StpRefused):
            await open_connection(HOST, port, 7)
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        writer.close()
        await writer.wait_closed()
        await server.wait_closed()

    run(scenario())


def test_call_is_cancelled_nothing_is_left() -> None:
    async def scenario() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind((HOST, 0))
            port = silent.getsockname()[1]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(open_connection(HOST, port, 7), 0.1)

    run(scenario())


def test_write_after_the_end_is_refused() -> None:
    async def scenario() -> None:
        async with served(echo) as server:
            reader, writer = await open_connection(HOST, server.address[1], 7)
            assert writer.can_write_eof()
            writer.write_eof()
            with pytest.raises(RuntimeError, match="ended"):
                writer.write(b"more")
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    run(scenario())


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets take root")
def test_stream_directly_over_ip_is_echoed() -> None:
    async def scenario() -> None:
        config = StpConfig(protocol=254)
        server = await start_server(echo, "127.0.0.11", 0, 7, config=config)
        reader, writer = await open_connection("127.0.0.11", 0, 7, config=config)
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    run(scenario())
