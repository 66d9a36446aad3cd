"""The upper tester's connections, over a socket pair."""

import select
import socket
from collections.abc import Callable, Iterator

import pytest
from bentpipe_conformance.iut.services import CHARGEN, DISCARD, ECHO, PATTERN, PERIOD, Connection

READ, WRITE = select.POLLIN, select.POLLOUT


Connect = Callable[[int], tuple[Connection, socket.socket]]


@pytest.fixture
def connected() -> Iterator[Connect]:
    opened: list[socket.socket] = []

    def connect(service: int) -> tuple[Connection, socket.socket]:
        ours, theirs = socket.socketpair()
        opened.extend((ours, theirs))
        theirs.setblocking(False)
        return Connection(ours, service), theirs

    yield connect
    for handle in opened:
        handle.close()


def expected(offset: int, octets: int) -> bytes:
    return bytes((place ^ place >> 8) & 0xFF for place in range(offset, offset + octets))


def test_pattern_follows_from_the_offset() -> None:
    assert expected(0, 2 * PERIOD) == PATTERN


def test_chargen_sends_the_pattern_on_and_on(connected: Connect) -> None:
    connection, peer = connected(CHARGEN)
    received = b""
    while len(received) < 3 * PERIOD:
        assert connection.step(WRITE)
        received += peer.recv(1 << 20)
    assert received == expected(0, len(received))


def test_chargen_takes_input_without_answering_it(connected: Connect) -> None:
    connection, peer = connected(CHARGEN)
    peer.send(b"unwanted")
    assert connection.step(READ)
    assert connection.wanted() & WRITE
    assert connection.pending == b""


def test_chargen_peer_finishes_connection_is_over(connected: Connect) -> None:
    connection, peer = connected(CHARGEN)
    peer.shutdown(socket.SHUT_WR)
    assert not connection.step(READ)


def test_echo_returns_what_it_got(connected: Connect) -> None:
    connection, peer = connected(ECHO)
    peer.send(b"hello")
    assert connection.step(READ)
    assert connection.wanted() & WRITE
    assert connection.step(WRITE)
    assert peer.recv(100) == b"hello"
    assert not connection.wanted() & WRITE


def test_echo_peer_finishes_the_rest_is_returned_first(connected: Connect) -> None:
    connection, peer = connected(ECHO)
    peer.send(b"last")
    peer.shutdown(socket.SHUT_WR)
    assert connection.step(READ)
    assert connection.step(READ)
    assert connection.wanted() == WRITE
    assert not connection.step(WRITE)
    assert peer.recv(100) == b"last"


def test_discard_answers_nothing(connected: Connect) -> None:
    connection, peer = connected(DISCARD)
    peer.send(b"anything")
    assert connection.step(READ)
    assert connection.wanted() == READ


def test_peer_resets_connection_is_over() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    peer = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    connection = Connection(accepted, CHARGEN)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.close()
    assert not connection.step(READ)
    accepted.close()
    listener.close()


def test_nothing_to_do_connection_stays(connected: Connect) -> None:
    connection, _ = connected(DISCARD)
    assert connection.step(READ)
