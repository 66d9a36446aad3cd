"""The box on the kernel's sockets, on loopback and without the rules that lead calls to it."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from bentpipe_reference.pep.io import divert, metrics, program
from bentpipe_reference.pep.io.divert import Diversion, diverted
from bentpipe_reference.pep.io.network import NetworkError
from bentpipe_reference.pep.io.program import Settings, check_sockets
from bentpipe_reference.pep.io.sockets import SocketBox

OCTETS = bytes(range(256)) * 4000
MANY = 20
"""Times so many octets are more than the kernel keeps for both ends."""

LEAST, HELD = 2048, 20_000
"""Octets of an end's buffer, and of a stream of which the box's kernel then holds the most."""

LOOP = "127.0.0.1"


class Box(SocketBox):
    """Calls a server on loopback, whoever was called."""

    def __init__(self, server: int, buffer: int = 1 << 17, connections: int = 10) -> None:
        self.server = server
        super().__init__(asyncio.get_running_loop(), buffer, connections)

    def _transparent(self) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._kernel)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._kernel)
        return made

    def _call(self, near: socket.socket, caller: tuple[str, int]) -> socket.socket:
        far = self._transparent()
        with contextlib.suppress(BlockingIOError):
            far.connect((LOOP, self.server))
        return far


class Bench:
    """A client and a server with a box between them."""

    def __init__(self) -> None:
        self.listener = socket.create_server((LOOP, 0))
        self.listener.setblocking(False)
        self.box = Box(self.listener.getsockname()[1])
        self.loop = asyncio.get_running_loop()
        self._held: list[socket.socket] = [self.listener]

    async def call(self, buffer: int = 0) -> socket.socket:
        client = socket.socket()
        if buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.setblocking(False)
        self._held.append(client)
        await self.loop.sock_connect(client, (LOOP, self.box.listening[0]))
        return client

    async def opened(self, buffer: int = 0) -> tuple[socket.socket, socket.socket]:
        client = await self.call(buffer)
        server, _ = await self.loop.sock_accept(self.listener)
        server.setblocking(False)
        self._held.append(server)
        return client, server

    async def rest(self, one: socket.socket) -> bytes:
        found = bytearray()
        while data := await self.loop.sock_recv(one, 1 << 16):
            found += data
        return bytes(found)

    async def stopped(self) -> Any:
        """The side that takes no more, once there is one."""
        while True:
            for side in self.box._sides.values():
                if side.waiting:
                    return side
            await asyncio.sleep(0)

    def close(self) -> None:
        self.box.close()
        for one in self._held:
            one.close()


@contextlib.asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    try:
        yield made
    finally:
        made.close()


def play(script: Callable[[Bench], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with bench() as made:
            return await asyncio.wait_for(script(made), 20.0)

    return asyncio.run(run())


def reset(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


def test_streams_of_both_directions_arrive_and_end_by_themselves() -> None:
    async def script(made: Bench) -> None:
        client, server = await made.opened()
        sending = asyncio.ensure_future(made.loop.sock_sendall(client, OCTETS))
        await made.loop.sock_sendall(server, b"welcome")
        assert await made.loop.sock_recv(client, 100) == b"welcome"
        reading = asyncio.ensure_future(made.rest(server))
        await sending
        client.shutdown(socket.SHUT_WR)
        assert await reading == OCTETS
        await made.loop.sock_sendall(server, b"still here")
        server.shutdown(socket.SHUT_WR)
        assert await made.rest(client) == b"still here"
        while made.box.connections:
            await asyncio.sleep(0)
        counted = metrics.numbers(made.box)
        assert counted["relayed_octets_from_lan_total"] == len(OCTETS)
        assert counted["relayed_octets_from_satellite_total"] == 17
        assert (counted["opened_total"], counted["failed_total"]) == (1, 0)

    play(script)


def test_receiver_that_does_not_read_stops_its_sender_within_the_buffer() -> None:
    async def script(made: Bench) -> None:
        client, server = await made.opened()
        sending = asyncio.ensure_future(made.loop.sock_sendall(client, OCTETS * MANY))
        side = await made.stopped()
        assert len(side.waiting) <= 1 << 15
        assert made.box.counts.octets[0] < len(OCTETS) * MANY // 2, "the rest is with the sender"
        got = 0
        while got < len(OCTETS) * MANY:
            got += len(await made.loop.sock_recv(server, 1 << 20))
        await sending

    play(script)


@pytest.mark.parametrize("who", [0, 1])
def test_reset_of_one_side_is_one_of_the_other(who: int) -> None:
    async def script(made: Bench) -> None:
        ends = await made.opened()
        reset(ends[who])
        with pytest.raises(ConnectionResetError):
            await made.loop.sock_recv(ends[1 - who], 10)
        assert metrics.numbers(made.box)["failed_total"] == 1

    play(script)


@pytest.mark.parametrize("who", [0, 1])
def test_reset_once_both_have_ended_is_one_of_who_has_not_read(who: int) -> None:
    async def script(made: Bench) -> None:
        made.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LEAST)
        ends = await made.opened(buffer=LEAST)
        for one in ends:
            assert one.send(OCTETS[:HELD]) == HELD
            one.shutdown(socket.SHUT_WR)
        while not all(side.has_ended for side in made.box._sides.values()):
            await asyncio.sleep(0)
        reset(ends[who])
        while made.box.connections:
            await asyncio.sleep(0)
        with pytest.raises(ConnectionResetError):
            await made.rest(ends[1 - who])

    play(script)


def test_reset_behind_a_receiver_that_does_not_read_is_carried_over() -> None:
    async def script(made: Bench) -> None:
        client, server = await made.opened()
        sending = asyncio.ensure_future(made.loop.sock_sendall(client, OCTETS * MANY))
        await made.stopped()
        sending.cancel()
        await asyncio.wait([sending])
        reset(client)
        with pytest.raises(ConnectionResetError):
            await made.rest(server)

    play(script)


def test_refusal_resets_the_caller_and_is_told() -> None:
    async def script(made: Bench) -> None:
        told: list[tuple[str, int]] = []
        made.box.on_refusal = told.append
        made.listener.close()
        client = await made.call()
        with pytest.raises(ConnectionResetError):
            await made.loop.sock_recv(client, 10)
        assert told == [(LOOP, made.box.listening[0])]

    play(script)


def test_full_box_says_so_and_again_when_there_is_room() -> None:
    async def script(made: Bench) -> None:
        told: list[bool] = []
        made.box._most, made.box.on_full = 2, told.append
        pairs = [await made.opened() for _ in range(2)]
        assert told == [True]
        reset(pairs[0][0])
        with pytest.raises(ConnectionResetError):
            await made.loop.sock_recv(pairs[0][1], 10)
        while len(told) < 2:
            await asyncio.sleep(0)
        assert told == [True, False]

    play(script)


def test_event_of_a_socket_that_is_closed_meanwhile_harms_no_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(made: Bench) -> None:
        client, server = await made.opened()
        await made.loop.sock_sendall(client, b"here")
        assert await made.loop.sock_recv(server, 100) == b"here"
        near, far = made.box._sides
        (listening, _) = made.box._listeners
        made.loop.remove_reader(made.box._epoll.fileno())
        second = await made.call()
        broken = select.EPOLLERR | select.EPOLLHUP

        class Told:
            """All that has happened, at once: numbers of what is closed are given again."""

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def poll(self, *_: Any) -> list[tuple[int, int]]:
                return [(near, broken), (listening, select.EPOLLIN), (far, broken)]

        real, made.box._epoll = made.box._epoll, Told()  # type: ignore[assignment]
        made.box._turn()
        made.box._epoll = real
        assert made.box.connections == 1
        made.loop.add_reader(real.fileno(), made.box._turn)
        other, _ = await made.loop.sock_accept(made.listener)
        with other:
            other.setblocking(False)
            await made.loop.sock_sendall(second, b"still there")
            assert await made.loop.sock_recv(other, 100) == b"still there"

    play(script)


def test_urgent_octet_keeps_its_place_and_its_mark() -> None:
    async def script(made: Bench) -> None:
        client, server = await made.opened()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        await made.loop.sock_sendall(client, b"before")
        client.send(b"!", socket.MSG_OOB)
        await made.loop.sock_sendall(client, b"after")
        client.shutdown(socket.SHUT_WR)
        # The kernel reads up to the mark, and then what is at it.
        assert await made.rest(server) == b"before!after"

    play(script)


def test_box_that_drains_ends_with_its_last_connection() -> None:
    async def script(made: Bench) -> None:
        client, server = await made.opened()
        ended = made.loop.create_future()
        made.box.drain(60.0, lambda: ended.set_result(None))
        for one in (client, server):
            one.shutdown(socket.SHUT_WR)
        await ended

    play(script)


def test_box_that_is_told_twice_resets_what_is_left() -> None:
    async def script(made: Bench) -> None:
        client, _ = await made.opened()
        ended: list[bool] = []
        made.box.drain(60.0, lambda: ended.append(True))
        made.box.drain(60.0, lambda: None)
        assert ended == [True]
        with pytest.raises(ConnectionResetError):
            await made.loop.sock_recv(client, 10)

    play(script)


@pytest.mark.parametrize(
    "wish", [{"speak": "stp"}, {"opening": "late"}, {"end": "confirmed"}, {"strangers": "reset"}]
)
def test_what_sockets_cannot_do_is_wrong_usage(wish: dict[str, Any]) -> None:
    settings = Settings(lan="a", satellite="b", sockets=True, **wish)
    with pytest.raises(ValueError, match=f"With sockets {next(iter(wish))} is"):
        check_sockets(settings)
    check_sockets(Settings(lan="a", satellite="b", sockets=True, opening="early", end="local"))


class Nft:
    """Takes what ``nft`` would take, and says what it is to say."""

    def __init__(self, answer: str) -> None:
        self.stdin, self.stdout = StringIO(), StringIO(answer)


def test_rules_are_changed_one_by_one_and_an_error_is_one_sentence() -> None:
    nft: Any = Nft("table ip bentpipe_pep {\n}\n" * 3)
    led = Diversion(nft, 'iifname "a" accept;\n')
    led.lead("here")
    led.spare(("192.0.2.1", 80))
    said = [line for line in nft.stdin.getvalue().splitlines() if not line.startswith("list")]
    assert said == [
        "flush chain ip bentpipe_pep calls",
        'add rule ip bentpipe_pep calls iifname "a" accept;',
        "add element ip bentpipe_pep refused { 192.0.2.1 . 80 }",
    ]
    for answer, why in (("Error: no such table\n", "no such table"), ("", "it has ended")):
        with pytest.raises(NetworkError, match=why):
            Diversion(Nft(answer), "").lead("past")  # type: ignore[arg-type]


class Kernel:
    """Answers ``ip``, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, words: list[str]) -> str:
        text = " ".join(words)
        self.told.append(text)
        if "link show" in text:
            return '[{"mtu": 1500}]'
        if "netconf" in text:
            return "ipv4 a forwarding on\nipv4 b forwarding on\n"
        if "address" in text:
            return '[{"addr_info": [{"local": "192.0.2.7"}]}, {}]'
        return ""


def test_what_is_set_up_is_taken_back_even_if_nft_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    nfts: list[Nft] = []

    @contextlib.contextmanager
    def running(answer: str) -> Iterator[Any]:
        nfts.append(Nft(answer))
        yield nfts[-1]

    for answer, refused in (("}\n", False), ("Error: no\n", True)):
        kernel = Kernel()
        monkeypatch.setattr(divert, "_nft", lambda answer=answer: running(answer))
        with contextlib.suppress(NetworkError), diverted("a", "b", (1001, 1002), kernel):
            assert not refused
        rules = nfts[-1].stdin.getvalue()
        assert 'iifname "b" meta l4proto tcp tproxy to :1002' in rules
        assert "ip daddr { 192.0.2.7 } accept" in rules
        added = [it for it in kernel.told if " add " in it or " replace " in it]
        assert len(added) == 2
        assert kernel.told[-2:] == [
            added[1].replace(" add ", " del "),
            "-4 route flush table 7300",
        ]


def test_nft_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(divert.subprocess, "Popen", absent)
    with pytest.raises(NetworkError, match="install nftables"), divert._nft():
        pass


def test_limit_of_open_files_grows_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(program.resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(program.resource, "setrlimit", lambda _, both: asked.append(both))
    for files in (500, 2000, 9000):
        program._raise_limit(files)
    assert asked == [(2000, 4096), (9000, 9000)]
