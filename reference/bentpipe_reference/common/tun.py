"""A reference behind a TUN device, as a process, such as ``python -m bentpipe_reference.rwbp.tun``.

It prints ``ready``, and obeys lines on its standard input: ``open ADDRESS PORT SERVICE OCTETS``
makes a call, ``abort`` has the user abort all calls. Its end is that of its standard input.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import sys
import time
from collections.abc import Callable
from typing import Protocol

from bentpipe_reference.common import subject

LARGEST_PACKET = 65_535
"""Octets of an IPv4 packet."""

LONGEST_WAIT_S = 5.0
"""Kernels end a wait in ``select`` late by up to a thousandth of it."""


class Host(subject.Host, Protocol):
    """A reference whose user makes calls."""

    def open(
        self, remote: str, port: int, service: str, now: float, udp_port: int = 0,
        octets: int | None = None,
    ) -> object:  # fmt: skip
        """Make a call."""

    def abort(self, now: float) -> None:
        """Have the user abort all calls."""


class Tun:
    """A host and the descriptor that carries its packets.

    Args:
        fd: of a TUN device without packet information.
        host: the host.
        clock: seconds on a clock that never goes back.
    """

    def __init__(self, fd: int, host: Host, clock: Callable[[], float] = time.monotonic) -> None:
        self._fd = fd
        self._host = host
        self._clock = clock
        os.set_blocking(fd, False)

    def arrived(self) -> None:
        """Take in what the device has; after each packet the answers leave."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._host.receive(os.read(self._fd, LARGEST_PACKET), self._clock())
                self.leave()

    def leave(self) -> None:
        """Let timers expire and packets leave; one that the kernel refuses is lost."""
        now = self._clock()
        self._host.advance(now)
        for packet in self._host.transmit(now):
            with contextlib.suppress(OSError):
                os.write(self._fd, packet)

    def obey(self, line: str) -> None:
        """Carry out a line; what is no command is ignored."""
        match line.split():
            case ["open", remote, port, service, octets]:
                self._host.open(remote, int(port), service, self._clock(), 0, int(octets))
            case ["abort"]:
                self._host.abort(self._clock())
        self.leave()

    def patience(self) -> float:
        """Seconds to wait at most."""
        deadline = self._host.next_deadline()
        if deadline is None:
            return LONGEST_WAIT_S
        return min(LONGEST_WAIT_S, max(0.0, deadline - self._clock()))

    def serve(self, commands: int) -> None:
        """Run until the descriptor with the commands ends."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._fd, selectors.EVENT_READ)
            selector.register(commands, selectors.EVENT_READ)
            rest = b""
            while True:
                ready = {key.fd for key, _ in selector.select(self.patience())}
                if self._fd in ready:
                    self.arrived()
                if commands in ready:
                    found = os.read(commands, 4096)
                    if not found:
                        return
                    *lines, rest = (rest + found).split(b"\n")
                    for line in lines:
                        self.obey(line.decode(errors="replace"))
                self.leave()


def parser(about: str) -> argparse.ArgumentParser:
    """The options that every reference has."""
    options = argparse.ArgumentParser(description=about.partition("\n")[0])
    options.add_argument("--fd", type=int, required=True, help="descriptor of the TUN device")
    options.add_argument("--address", required=True, help="own IPv4 address")
    return options


def serve(fd: int, host: Host) -> None:
    """Serve until standard input ends."""
    print("ready", flush=True)
    Tun(fd, host).serve(sys.stdin.fileno())
