"""Splitting connections by the kernel's sockets: fast, with the weaker end.

The kernel answers a caller and acknowledges its FIN by itself, so that this box opens early and its
end is *local* (PEP/1 sections 5 and 6). What arrives at one socket is written to the other one as
far as that takes it; then nothing more is read, and the window closes. An end goes on behind the
last octet, a reset at once, also when both ends have passed and the kernel still holds octets.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import select
import socket
import struct
from collections.abc import Callable

from bentpipe_reference.pep.box import Counts

READ = 1 << 18
"""Octets that are read at once, at most."""

_READS = 4
"""Reads of one socket before others have their turn."""

_CALLS = 64
"""Calls that are taken before others have their turn."""

_BACKLOG = 128
_EVENTS = 512
_IP_TRANSPARENT = 19
_SO_RCVBUFFORCE, _SO_SNDBUFFORCE = 33, 32
_TCP_SAVE_SYN, _TCP_SAVED_SYN = 27, 28
_SYN_OCTETS = 256
_DSCP = 0xFC
_RESET_WHEN_CLOSED = struct.pack("ii", 1, 0)
_IN, _OUT = select.EPOLLIN | select.EPOLLPRI, select.EPOLLOUT
_SIOCATMARK = 0x8905
_BROKEN = select.EPOLLERR | select.EPOLLHUP
_LAST = select.EPOLLET
"""Told once of each failure and end, not as long as a socket is shut both ways."""
_TCP_CLOSED = 7


class _Side:
    """One socket of a connection that is split.

    Attributes:
        socket: the socket.
        port: that of the box, 0 towards the LAN, 1 over the satellite.
        other: the other side.
        waiting: octets for this one that it has not taken.
        opens: whether its handshake goes on.
        has_ended: whether the peer's end was read.
        is_ended: whether ours was sent.
        mask: what is waited for.
        urgent: whether an urgent octet has arrived and is not read.
        waits_urgent: whether what waits is one urgent octet.
        given_up: whether it is only to be reset when it is open (PEP-OP-011).
    """

    __slots__ = (
        "given_up", "has_ended", "is_ended", "mask", "opens", "other", "port", "socket", "urgent",
        "waiting", "waits_urgent",
    )  # fmt: skip

    other: _Side

    def __init__(self, own: socket.socket, port: int, *, opens: bool) -> None:
        self.socket = own
        self.port = port
        self.opens = opens
        self.waiting = memoryview(b"")
        self.has_ended = self.is_ended = False
        self.urgent = self.waits_urgent = self.given_up = False
        self.mask = 0

    @property
    def wanted(self) -> int:
        """What has to be waited for."""
        blocked = self.opens or self.has_ended or self.other.opens or self.other.waiting
        return (0 if blocked else _IN) | (_OUT if self.opens or self.waiting else 0)

    @property
    def is_over(self) -> bool:
        """Whether the kernel has delivered all, and the peer has acknowledged our end."""
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSED


class SocketBox:
    """Splits the connections that are led to its listening sockets.

    Args:
        loop: the event loop.
        buffer: octets that are held of one stream at most, those of the kernel included.
        connections: how many are split at once, but for those that the kernel has answered already.

    Attributes:
        on_full: called with whether it has no room, so that calls are to be left unanswered.
        on_refusal: called with whom a call was refused by, address and port.
        draining: whether it is to end.
        counts: what it has done since it began; octets are those of all connections.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: int, connections: int) -> None:
        self.on_full: Callable[[bool], None] = _ignored
        self.on_refusal: Callable[[tuple[str, int]], None] = _ignored
        self.draining = False
        self.counts = Counts()
        self._loop = loop
        self._view = memoryview(bytearray(min(READ, buffer // 4)))
        # The kernel keeps up to twice what it is asked for, on either side.
        self._kernel = (buffer - len(self._view)) // 4
        self._most = connections
        self._ended: Callable[[], None] | None = None
        self._sides: dict[int, _Side] = {}
        self._epoll = select.epoll()
        self._listeners: dict[int, tuple[socket.socket, int]] = {}
        for port in (0, 1):
            listener = self._transparent()
            listener.setsockopt(socket.IPPROTO_TCP, _TCP_SAVE_SYN, 1)
            listener.bind(("", 0))
            listener.listen(_BACKLOG)
            self._listeners[listener.fileno()] = (listener, port)
            self._epoll.register(listener, select.EPOLLIN)
        self._full = False
        loop.add_reader(self._epoll.fileno(), self._turn)

    @property
    def listening(self) -> tuple[int, int]:
        """TCP ports to which calls are led, by port of the box."""
        first, second = (listener.getsockname()[1] for listener, _ in self._listeners.values())
        return first, second

    @property
    def connections(self) -> int:
        """How many are split now."""
        return (len(self._sides) + 1) // 2

    def drain(self, seconds: float, ended: Callable[[], None]) -> None:
        """Call ``ended`` when nothing is left; reset what then is (PEP-RE-014).

        Called again, it does not wait.
        """
        if self.draining:
            self.finish()
            return
        self.draining, self._ended = True, ended
        self._loop.call_later(seconds, self.finish)
        self._look_for_end()

    def finish(self) -> None:
        """Reset what is left."""
        for side in list(self._sides.values()):
            self._break(side)
        self._look_for_end()

    def close(self) -> None:
        """Reset what is left, and listen no more."""
        self.finish()
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        for listener, _ in self._listeners.values():
            listener.close()

    # -- events ---------------------------------------------------------------------------------

    def _turn(self) -> None:
        calls = []
        for number, events in self._epoll.poll(0, _EVENTS):
            if number in self._listeners:
                calls.append(self._listeners[number])
            elif (side := self._sides.get(number)) is not None:
                try:
                    self._serve(side, events)
                except OSError:
                    self._break(side)
        # Last, for the numbers of what was closed are given to new sockets.
        for listener, port in calls:
            self._take_calls(listener, port)
        self._look_for_room()
        self._look_for_end()

    def _serve(self, side: _Side, events: int) -> None:
        """Do what can be done with a socket.

        Raises:
            OSError: its connection has failed.
        """
        if side.opens or events & _BROKEN:
            error = side.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error == errno.ECONNREFUSED and side.opens:
                self.on_refusal(side.other.socket.getsockname())
            if error or events & select.EPOLLERR:
                raise OSError(error, "the connection has failed")
            side.opens = False
        if side.given_up:
            self._drop(side)
            return
        side.urgent = side.urgent or bool(events & select.EPOLLPRI)
        if side.waiting and events & _OUT:
            self._send(side, side.waiting, urgent=side.waits_urgent)
        if side.wanted & _IN:
            self._read(side)
        self._go_on(side)

    def _read(self, side: _Side) -> None:
        """Hand over what has arrived, until the other side takes no more."""
        for _ in range(_READS):
            # The kernel reads up to an urgent octet, and then it and what follows.
            urgent = side.urgent and _at_mark(side.socket)
            view = self._view[:1] if urgent else self._view
            try:
                octets = side.socket.recv_into(view)
            except BlockingIOError:
                return
            if not octets:
                side.has_ended = True
                return
            self.counts.octets[side.port] += octets
            side.urgent = side.urgent and not urgent
            self._send(side.other, view[:octets], urgent=urgent)
            if side.other.waiting or octets < len(view):
                return

    def _send(self, side: _Side, data: memoryview, *, urgent: bool) -> None:
        """Give octets to a socket, or an urgent one; what it does not take waits."""
        try:
            taken = side.socket.send(data, socket.MSG_OOB if urgent else 0)
        except BlockingIOError:
            taken = 0
        except OSError:
            self._break(side)
            return
        side.waiting = memoryview(bytes(data[taken:]))
        side.waits_urgent = urgent and not taken

    def _go_on(self, side: _Side) -> None:
        """Pass ends on, and wait for what comes next."""
        for one in (side, side.other):
            if one.other.has_ended and not (one.waiting or one.opens or one.is_ended):
                one.is_ended = True
                one.socket.shutdown(socket.SHUT_WR)
        for one in (side, side.other):
            self._wait(one)
        if all(one.has_ended and one.is_ended and one.is_over for one in (side, side.other)):
            self._forget(side)

    def _wait(self, side: _Side) -> None:
        number = side.socket.fileno()
        if number not in self._sides:
            return
        wanted = side.wanted or (_LAST if side.is_ended else 0)
        if wanted != side.mask:
            self._epoll.modify(number, wanted)
            side.mask = wanted

    # -- connections ----------------------------------------------------------------------------

    def _look_for_room(self) -> None:
        """Leave calls unanswered as long as the box is full (PEP-FI-005)."""
        full = self.connections >= self._most
        if full != self._full and not self.draining:
            self._full = full
            self.on_full(full)

    def _take_calls(self, listener: socket.socket, port: int) -> None:
        for _ in range(_CALLS):
            try:
                near, caller = listener.accept()
            except OSError:
                return
            self.counts.opened += 1
            near.setblocking(False)
            try:
                far = self._call(near, caller)
            except OSError:
                self.counts.failed += 1
                _reset(near)
                continue
            sides = _Side(near, port, opens=False), _Side(far, 1 - port, opens=True)
            for one, other in (sides, sides[::-1]):
                one.other = other
                self._sides[one.socket.fileno()] = one
            for one in sides:
                one.mask = one.wanted
                self._epoll.register(one.socket, one.mask)
            self._look_for_room()

    def _call(self, near: socket.socket, caller: tuple[str, int]) -> socket.socket:
        """Call whom the caller has called, in its name and class (PEP-TR-002, -003, -005).

        Raises:
            OSError: the kernel refuses.
        """
        far = self._transparent()
        try:
            syn = near.getsockopt(socket.IPPROTO_TCP, _TCP_SAVED_SYN, _SYN_OCTETS)
            if len(syn) > 1 and syn[1] & _DSCP:
                far.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, syn[1] & _DSCP)
            far.bind(caller)
            with contextlib.suppress(BlockingIOError):
                far.connect(near.getsockname())
        except OSError:
            far.close()
            raise
        return far

    def _transparent(self) -> socket.socket:
        """A socket that may have any address."""
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
        for forced, asked in (
            (_SO_RCVBUFFORCE, socket.SO_RCVBUF),
            (_SO_SNDBUFFORCE, socket.SO_SNDBUF),
        ):
            try:
                made.setsockopt(socket.SOL_SOCKET, forced, self._kernel)
            except PermissionError:  # within a user namespace: as much as is permitted
                made.setsockopt(socket.SOL_SOCKET, asked, self._kernel)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        return made

    def _break(self, side: _Side) -> None:
        """One side has failed: reset the other one (PEP-RE-006, -007, -008)."""
        if side.socket.fileno() not in self._sides:
            return
        self.counts.failed += not side.given_up
        other = side.other
        self._drop(side)
        if other.opens and not self.draining and other.socket.fileno() in self._sides:
            other.given_up = True
        else:
            self._drop(other)

    def _drop(self, side: _Side) -> None:
        """Reset a connection."""
        self._sides.pop(side.socket.fileno(), None)
        _reset(side.socket)

    def _forget(self, side: _Side) -> None:
        """Both streams have been delivered with their ends."""
        for one in (side, side.other):
            del self._sides[one.socket.fileno()]
            one.socket.close()

    def _look_for_end(self) -> None:
        if self._ended is not None and not self._sides:
            ended, self._ended = self._ended, None
            ended()


def _ignored(_: object) -> None:
    """Nobody wants to know."""


def _at_mark(one: socket.socket) -> bool:
    """Whether the next octet is the urgent one."""
    return bool(struct.unpack("i", fcntl.ioctl(one, _SIOCATMARK, bytes(4)))[0])


def _reset(one: socket.socket) -> None:
    """Close a socket by a RST."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_WHEN_CLOSED)
    one.close()
