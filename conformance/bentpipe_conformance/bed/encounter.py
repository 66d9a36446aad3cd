"""Two hosts of one kernel talk over a link, and both are captured: implementations as they are.

Run in a guest with a virtual clock, where an order may hold hundreds of encounters. One process
plays all users: its sockets are made in either host's namespace, and computing takes no time.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.bed.capture import Capture, Record
from bentpipe_conformance.bed.check import profile_from_json
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.two_hosts import ADDRESSES, TwoHosts

FRAMES = 16_384
"""Packets a capture holds between two looks of the only process, which looks at every event."""
LONGEST_WAIT_S = 0.5
"""Between two looks at the captures."""
_PIECE = bytes(1 << 16)
_SNDBUF, _RCVBUF = socket.SO_SNDBUF, socket.SO_RCVBUF
_PACING_RATE = 47
"""SO_MAX_PACING_RATE, octets a second, which Python's socket does not name."""
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Script:
    """What one user of a connection does.

    Attributes:
        writes: (seconds after the connection began, octets): given to the socket then, in one
            piece as far as it takes them.
        endless: writes whatever the socket takes, until it ends.
        echoes: writes what it reads.
        reading: octets it reads at most each time.
        pause: seconds between two reads, 0.0 to read whenever something can be read.
        deaf: (from, to) in seconds after the beginning, in which it reads nothing.
        ends_at: seconds after the beginning at which it ends, with what is unwritten dropped; -1.0
            once everything is written and the other has ended.
        end: how: ``close``, ``shutdown`` (its own half, reading on) or ``abort``.
    """

    writes: Sequence[tuple[float, int]] = ()
    endless: bool = False
    echoes: bool = False
    reading: int = 1 << 16
    pause: float = 0.0
    deaf: tuple[float, float] = (0.0, 0.0)
    ends_at: float = -1.0
    end: str = "close"


@dataclass(frozen=True, slots=True)
class Meeting:
    """One connection.

    Attributes:
        at: when it is opened, seconds after the beginning.
        caller: 0 or 1, the host that opens it.
        port: the port it opens; of no other meeting with the same host.
        options: of the caller's and the other's socket: ``congestion``, ``mss``, ``send``,
            ``receive`` (buffers, octets), ``nodelay``, ``keepalive`` (seconds), ``clamp`` (the
            widest window, octets), ``quickack``, ``cork``, ``low`` (octets that wake a reader),
            ``pacing_rate`` (octets a second).
        scripts: of the caller's and the other's user.
    """

    at: float
    caller: int
    port: int
    options: tuple[Mapping[str, Any], Mapping[str, Any]]
    scripts: tuple[Script, Script]


@dataclass(frozen=True, slots=True)
class Encounter:
    """Two hosts, a link and their connections.

    Attributes:
        link: forward is from the first host to the second.
        seed: of the link's losses and reordering.
        sysctls: kernel parameters of each host.
        meetings: the connections.
        seconds: after which it ends, whatever still goes on.
        most_packets: at one of the two captures, after which it ends too.
    """

    link: LinkProfile
    seed: int
    sysctls: tuple[Mapping[str, str], Mapping[str, str]]
    meetings: Sequence[Meeting]
    seconds: float
    most_packets: int


Evidence = tuple[list[Record], list[Record]]
"""What was captured at each host's side of the link; ``sent`` means: by the satellite."""


class _User:
    """One end of a connection, driven by its script."""

    def __init__(self, handle: socket.socket, script: Script, began: float) -> None:
        self.handle = handle
        self.script = script
        self.began = began
        self.due = sorted(script.writes)
        self.unwritten = 0
        self.read_at = 0.0
        self.ended = self.over = self.other_ended = False

    def wake(self) -> float | None:
        """When it does something of its own accord next, None when it waits."""
        if self.over:
            return None
        times = [self.began + at for at, _ in self.due[:1]]
        if self.script.ends_at >= 0 and not self.ended:
            times.append(self.began + self.script.ends_at)
        if not self.other_ended:
            times += [self.read_at, self.began + self.script.deaf[1]]
        now = time.monotonic()
        return min((item for item in times if item > now), default=None)

    def wanted(self) -> int:
        """The events it waits for."""
        events = 0
        if self.may_read() and not self.other_ended:
            events |= select.POLLIN
        if not self.ended and (self.unwritten or self.script.endless):
            events |= select.POLLOUT
        return events

    def may_read(self) -> bool:
        """Whether it reads now."""
        now = time.monotonic()
        start, end = self.script.deaf
        return now >= self.read_at and not start <= now - self.began < end

    def run(self, events: int) -> None:
        """Do what there is to do."""
        try:
            if events & (select.POLLHUP | select.POLLERR):
                # Poll would tell it for ever, which on a virtual clock no time ends.
                self.over = True
                return
            if events & select.POLLIN:
                self._read()
            self._write()
            self._end()
        except BlockingIOError:
            pass
        except OSError:
            self.over = True

    def _read(self) -> None:
        if not self.may_read() or self.other_ended:
            return
        data = self.handle.recv(self.script.reading)
        if not data:
            self.other_ended = True
        elif self.script.echoes:
            self.unwritten += len(data)
        self.read_at = time.monotonic() + self.script.pause if self.script.pause else 0.0

    def _write(self) -> None:
        if self.ended:
            return
        now = time.monotonic() - self.began
        while self.due and self.due[0][0] <= now:
            self.unwritten += self.due.pop(0)[1]
        while self.unwritten or self.script.endless:
            piece = _PIECE if self.script.endless else _PIECE[: self.unwritten]
            try:
                taken = self.handle.send(piece)
            except BlockingIOError:
                return
            self.unwritten -= 0 if self.script.endless else taken

    def _end(self) -> None:
        if not self.ended:
            script = self.script
            late = 0 <= script.ends_at <= time.monotonic() - self.began
            done = not script.endless and not self.due and not self.unwritten
            if late or (script.ends_at < 0 and self.other_ended and (done or script.endless)):
                self.ended = True
                if script.end == "shutdown":
                    self.handle.shutdown(socket.SHUT_WR)
                    return
                if script.end == "abort":
                    self.handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self.over = True
        elif self.other_ended:
            self.over = True


def configure(handle: socket.socket, options: Mapping[str, Any]) -> None:
    """Apply the options of a :class:`Meeting` to a socket not yet connected."""
    tcp, own = socket.IPPROTO_TCP, socket.SOL_SOCKET
    for name, value in options.items():
        if name == "congestion":
            handle.setsockopt(tcp, socket.TCP_CONGESTION, value.encode())
        elif name == "keepalive":
            handle.setsockopt(own, socket.SO_KEEPALIVE, 1)
            handle.setsockopt(tcp, socket.TCP_KEEPIDLE, value)
            handle.setsockopt(tcp, socket.TCP_KEEPINTVL, value)
        else:
            numbers = {
                "mss": (tcp, socket.TCP_MAXSEG), "send": (own, _SNDBUF), "receive": (own, _RCVBUF),
                "nodelay": (tcp, socket.TCP_NODELAY), "clamp": (tcp, socket.TCP_WINDOW_CLAMP),
                "quickack": (tcp, socket.TCP_QUICKACK), "cork": (tcp, socket.TCP_CORK),
                "low": (own, socket.SO_RCVLOWAT), "pacing_rate": (own, _PACING_RATE),
            }  # fmt: skip
            handle.setsockopt(*numbers[name], value)


class _Stage:
    """The sockets of an encounter while it lasts."""

    def __init__(self, hosts: Sequence[NetworkNamespace], encounter: Encounter) -> None:
        self.hosts = hosts
        self.encounter = encounter
        self.began = time.monotonic()
        self.poll = select.poll()
        self.users: dict[int, _User] = {}
        self.listeners: dict[int, tuple[socket.socket, Meeting]] = {}
        self.calls = sorted(encounter.meetings, key=lambda item: item.at)
        for meeting in encounter.meetings:
            handle = self._socket(1 - meeting.caller, meeting.options[1])
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            handle.bind((ADDRESSES[1 - meeting.caller], meeting.port))
            handle.listen(4)
            self.listeners[handle.fileno()] = handle, meeting
            self.poll.register(handle, select.POLLIN)

    def _socket(self, host: int, options: Mapping[str, Any]) -> socket.socket:
        with self.hosts[host].entered():
            handle = socket.socket()
        handle.setblocking(False)
        configure(handle, options)
        return handle

    def run(self, look: Callable[[], bool]) -> None:
        """Until the encounter is over or ``look`` says that it is enough."""
        end = self.began + self.encounter.seconds
        while (now := time.monotonic()) < end and look():
            while self.calls and self.began + self.calls[0].at <= now:
                self._call(self.calls.pop(0))
            wakes = [user.wake() for user in self.users.values()]
            wakes += [self.began + item.at for item in self.calls[:1]]
            wake = min((item for item in wakes if item is not None), default=end)
            wait = max(0.0, min(wake, end, now + LONGEST_WAIT_S) - now)
            events = dict(self.poll.poll(wait * 1000.0))
            for fd in list(self.listeners):
                if fd in events:
                    self._accept(*self.listeners[fd])
            for fd, user in list(self.users.items()):
                self._run(fd, user, events.get(fd, 0))

    def _call(self, meeting: Meeting) -> None:
        handle = self._socket(meeting.caller, meeting.options[0])
        with contextlib.suppress(BlockingIOError):
            handle.connect((ADDRESSES[1 - meeting.caller], meeting.port))
        self._add(handle, meeting.scripts[0])

    def _accept(self, listener: socket.socket, meeting: Meeting) -> None:
        with contextlib.suppress(OSError):
            handle, _ = listener.accept()
            handle.setblocking(False)
            self._add(handle, meeting.scripts[1])

    def _add(self, handle: socket.socket, script: Script) -> None:
        user = _User(handle, script, time.monotonic())
        self.users[handle.fileno()] = user
        self.poll.register(handle, user.wanted())

    def _run(self, fd: int, user: _User, events: int) -> None:
        user.run(events)
        if user.over:
            self.poll.unregister(fd)
            del self.users[fd]
            user.handle.close()
        else:
            self.poll.modify(fd, user.wanted())

    def close(self) -> None:
        """Close every socket."""
        for user in self.users.values():
            user.handle.close()
        for handle, _ in self.listeners.values():
            handle.close()


def play(encounter: Encounter) -> Evidence:
    """Let the hosts meet; what was captured at either side of the link."""
    with TwoHosts(encounter.link, encounter.seed) as hosts, contextlib.ExitStack() as held:
        for host, sysctls in zip(hosts.hosts, encounter.sysctls, strict=True):
            host.set_sysctls(sysctls)
        with hosts.satellite.entered():
            captures = [
                held.enter_context(Capture("iut", device, FRAMES)) for device in hosts.devices
            ]
        stage = _Stage(hosts.hosts, encounter)

        def look() -> bool:
            for capture in captures:
                capture.drain()
            return all(capture.count <= encounter.most_packets for capture in captures)

        stage.run(look)
        first, second = (capture.finish(encounter.most_packets) for capture in captures)
        stage.close()
    return first, second


def order(encounters: Sequence[Encounter]) -> str:
    """Encounters as text, for the guest."""
    return json.dumps([asdict(item) for item in encounters])


def _read_order(text: str) -> Iterator[Encounter]:
    for item in json.loads(text):
        link = profile_from_json(json.dumps(item.pop("link")))
        meetings = [
            Meeting(**{**each, "scripts": tuple(Script(**one) for one in each["scripts"])})
            for each in item.pop("meetings")
        ]
        yield Encounter(link=link, meetings=meetings, **item)


def main(folder: str) -> None:
    """Play the encounters of the order in a folder; each one's evidence goes to a file there."""
    for number, encounter in enumerate(_read_order(Path(folder, "order").read_text())):
        evidence = play(encounter)
        Path(folder, f"{number}").write_bytes(marshal.dumps(evidence))


if __name__ == "__main__":
    main(sys.argv[1])
