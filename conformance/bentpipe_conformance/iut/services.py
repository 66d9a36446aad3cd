"""The standard services an implementation under test offers, for kernels' own TCP.

Discard (port 9, RFC 863), echo (port 7, RFC 862), daytime (port 13, after RFC 867: a line, then
the end of the stream; it reads on until the peer ends its own) and an endless chargen (port 19, RFC
864) whose octets follow from their offset in the stream, so that a tester can check any part of it.
A single thread that always blocks in poll: inside User-Mode Linux with a virtual clock a busy loop
would be expensive. Run as ``python -IS services.py``; prints ``ready``. A line ``open ADDRESS PORT
OCTETS`` on standard input opens a connection: to port 9 as chargen that ends after so many octets,
to any other as discard.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys

ECHO, DISCARD, DAYTIME, CHARGEN = 7, 9, 13, 19
LINE = b"Sunday, January 1, 2040 00:00:00-UTC\r\n"
PIECE = 65536
"""Octets that a service reads, or holds, at a time."""
SEND_BUFFER = 1 << 20
"""Octets; more than any profile's window, so that the application never limits TCP."""
ECHO_BUFFER = 1 << 16
"""Octets of each of the echo service's buffers."""
SO_SNDBUFFORCE = 32
PERIOD = 65536
"""Octets after which the pattern repeats; octet ``i`` is ``(i ^ i >> 8) & 0xFF``."""
PATTERN = 2 * b"".join(bytes([high ^ low for low in range(256)]) for high in range(256))
POLL_END = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Connection:
    """One accepted connection and what is still to be sent on it."""

    def __init__(self, handle: socket.socket, service: int, octets: int | None = None) -> None:
        """Serve ``service`` on a socket; chargen sends ``octets``, or for ever."""
        self.end = octets
        self.handle = handle
        self.service = service
        self.offset = 0
        self.pending = b""
        self.peer_finished = False
        handle.setblocking(False)
        if service == DAYTIME:
            handle.send(LINE)
            handle.shutdown(socket.SHUT_WR)

    def wanted(self) -> int:
        """The poll events to wait for."""
        events = 0
        if not self.peer_finished and len(self.pending) < PIECE:
            events |= select.POLLIN
        if (self.service == CHARGEN and self.offset != self.end) or self.pending:
            events |= select.POLLOUT
        return events

    def step(self, events: int) -> bool:
        """Do what is possible now; False when the connection is over."""
        try:
            if events & select.POLLIN and not self._read():
                return False
            if events & select.POLLOUT:
                self._write()
        except BlockingIOError:
            return True
        except OSError:
            return False
        if events & POLL_END and not events & select.POLLIN:
            return False
        return not self.peer_finished or bool(self.pending)

    def _read(self) -> bool:
        data = self.handle.recv(PIECE)
        if not data:
            self.peer_finished = True
            # Chargen never ends by itself, so the peer's FIN ends it.
            return bool(self.pending)
        if self.service == ECHO:
            self.pending += data
        return True

    def _write(self) -> None:
        if self.service == CHARGEN:
            start = self.offset % PERIOD
            size = PIECE if self.end is None else min(PIECE, self.end - self.offset)
            self.offset += self.handle.send(memoryview(PATTERN)[start : start + size])
            if self.offset == self.end:
                self.handle.shutdown(socket.SHUT_WR)
        elif self.pending:
            self.pending = self.pending[self.handle.send(self.pending) :]


class Services:
    """The listeners and their connections."""

    def __init__(self, address: str = "0.0.0.0") -> None:
        """Listen on ``address``."""
        self._poll = select.poll()
        self._listeners: dict[int, tuple[socket.socket, int]] = {}
        self._connections: dict[int, Connection] = {}
        for port in (ECHO, DISCARD, DAYTIME, CHARGEN):
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if port == ECHO:
                _bound(listener)
            else:
                _enlarge(listener)
            listener.bind((address, port))
            listener.listen(128)
            listener.setblocking(False)
            self._listeners[listener.fileno()] = (listener, port)
            self._poll.register(listener, select.POLLIN)
        self._orders = b""
        self._poll.register(sys.stdin, select.POLLIN)

    def serve(self) -> None:
        """Serve until killed."""
        while True:
            for fd, events in self._poll.poll():
                if fd == sys.stdin.fileno():
                    self._obey()
                elif fd in self._listeners:
                    self._accept(*self._listeners[fd])
                else:
                    self._serve(fd, events)

    def _obey(self) -> None:
        """Open the connections that complete lines on standard input ask for."""
        octets = os.read(sys.stdin.fileno(), PIECE)
        if not octets:
            self._poll.unregister(sys.stdin)
        *lines, self._orders = (self._orders + octets).split(b"\n")
        for line in lines:
            match line.split():
                case [b"open", address, port, amount]:
                    self._open(address.decode(), int(port), int(amount))

    def _open(self, address: str, port: int, octets: int) -> None:
        handle = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        service = CHARGEN if port == DISCARD else DISCARD
        connection = Connection(handle, service, octets)
        handle.connect_ex((address, port))
        self._connections[handle.fileno()] = connection
        self._poll.register(handle, connection.wanted())

    def _accept(self, listener: socket.socket, service: int) -> None:
        with contextlib.suppress(OSError):
            handle, _ = listener.accept()
            connection = Connection(handle, service)
            self._connections[handle.fileno()] = connection
            self._poll.register(handle, connection.wanted())

    def _serve(self, fd: int, events: int) -> None:
        connection = self._connections[fd]
        if connection.step(events):
            self._poll.modify(fd, connection.wanted())
        else:
            self._poll.unregister(fd)
            del self._connections[fd]
            connection.handle.close()


def _bound(listener: socket.socket) -> None:
    """Give the connections accepted later buffers that a peer which does not read fills soon."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        listener.setsockopt(socket.SOL_SOCKET, option, ECHO_BUFFER)


def _enlarge(listener: socket.socket) -> None:
    """Give the connections accepted later a large send buffer."""
    try:
        listener.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER)
    except PermissionError:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)


def main() -> int:
    """Serve the standard services on every address of this namespace."""
    try:
        services = Services()
    except OSError as error:
        print(f"cannot listen on ports 7, 9, 13 and 19: {error.strerror}", file=sys.stderr)
        return 1
    print("ready", flush=True)
    services.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
