"""How a kernel that routes between two interfaces leads what it routes through two TUN devices.

The kernel keeps doing what a router does: it answers ARP, counts hops, and tells senders that a
packet is too big. Instead of to the other interface it routes what arrives at one of them into a
device of ours; what we write into a device it routes by its usual tables. So no socket of the
kernel takes part in a connection, and nothing but two rules and two routes is set::

    interface --[rule: iif]--> device  |box|  device --[usual routes]--> interface

A device lives as long as its descriptor, and its route as long as it. A rule without its route
leads nowhere, so that the kernel goes on with its usual tables: after the worst end of this program
the host is the router that it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator

_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x0001 | 0x1000
_DRIVER = "/dev/net/tun"

DEVICES = ("pep-0", "pep-1")
"""Names of the TUN devices, by the port of the box."""

PRIORITY = 7300
"""Of the first rule; as number of its table, too. The second has the next number."""

QUEUE = 1000
"""Packets that wait for the box at most; what comes then is lost as in any router."""

Run = Callable[[list[str]], str]
"""Runs a command of iproute2; its output. Raises NetworkError."""


class NetworkError(OSError):
    """The kernel cannot be set up; one sentence that names the remedy."""


def run_ip(words: list[str]) -> str:
    """Run ``ip`` with these words.

    Raises:
        NetworkError: it is not installed, or the kernel refuses.
    """
    try:
        done = subprocess.run(
            ["ip", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise NetworkError(
            f"The command ip does not start ({error.strerror}); install iproute2."
        ) from None
    if done.returncode:
        why = done.stderr.strip().replace("\n", "; ") or f"status {done.returncode}"
        raise NetworkError(
            f"'ip {' '.join(words)}' failed: {why}; run this as administrator of the network."
        )
    return done.stdout


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Be the only program here that leads packets to itself in this network.

    The name that tells it belongs to the network namespace, and goes with the process however it
    ends.

    Raises:
        NetworkError: another one runs.
    """
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind("\0bentpipe pep")
        except OSError:
            raise NetworkError(
                "Another 'bentpipe pep run' splits connections in this network; end it first."
            ) from None
        yield


@contextlib.contextmanager
def ruled(rule: list[str], run: Run) -> Iterator[None]:
    """A routing rule while it is needed; one that an earlier run has left behind is replaced.

    Raises:
        NetworkError: the kernel refuses.
    """
    _unrule(rule, run)
    run(["-4", "rule", "add", *rule])
    try:
        yield
    finally:
        _unrule(rule, run)


def _unrule(rule: list[str], run: Run) -> None:
    """Remove a rule; who manages the network may have done so before."""
    try:
        run(["-4", "rule", "del", *rule])
    except NetworkError as error:
        if "No such file" not in str(error):
            raise


@contextlib.contextmanager
def between(outer: str, inner: str, run: Run = run_ip) -> Iterator[tuple[tuple[int, int], int]]:
    """Lead what is routed between two interfaces through two devices, and take that back.

    Args:
        outer: the interface towards the ends at this side.
        inner: that towards the satellite.
        run: runs ``ip``.

    Yields:
        The descriptors of the devices by port of the box, and the MTU of the smaller interface.

    Raises:
        NetworkError: there is no such interface, no permission, or the kernel does not route.
    """
    sizes = [size_of(name, run) for name in (outer, inner)]
    with contextlib.ExitStack() as held:
        descriptors = []
        for port, (name, size) in enumerate(zip((outer, inner), sizes, strict=True)):
            descriptors.append(_open(DEVICES[port]))
            held.callback(os.close, descriptors[port])
            _lead(name, DEVICES[port], size, PRIORITY + port, held, run)
        yield (descriptors[0], descriptors[1]), min(sizes)


def size_of(name: str, run: Run) -> int:
    """The MTU of an interface that routes.

    Raises:
        NetworkError: there is no such interface, or the kernel does not route.
    """
    try:
        found: list[dict[str, int]] = json.loads(run(["-json", "link", "show", "dev", name]))
    except NetworkError as error:
        if "does not exist" not in str(error):
            raise
        raise NetworkError(
            f"There is no interface {name} here; 'ip link' lists those there are."
        ) from None
    if _settings(name, run).get("forwarding") != "on":
        raise NetworkError(
            f"The kernel does not route what arrives at {name}; "
            "run 'sysctl -w net.ipv4.ip_forward=1'."
        )
    return next(each["mtu"] for each in found if each)


def _settings(name: str, run: Run) -> dict[str, str]:
    """What the kernel is set to do with IPv4 at an interface, such as forwarding: on."""
    for line in run(["-4", "netconf"]).splitlines():
        _, found, *words = line.split()
        if found == name:
            return dict(zip(words[::2], words[1::2], strict=False))
    return {}


def _open(name: str) -> int:
    """A TUN device; each read or write of its descriptor is one packet."""
    try:
        descriptor = os.open(_DRIVER, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise NetworkError(
            f"The TUN driver {_DRIVER} cannot be opened ({error.strerror}); "
            "load it with 'modprobe tun' as root."
        ) from None
    try:
        fcntl.ioctl(
            descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TUN_WITHOUT_HEADER)
        )
    except OSError as error:
        os.close(descriptor)
        raise NetworkError(
            f"The TUN device {name} cannot be made ({error.strerror}); run this as administrator "
            "of the network."
        ) from None
    return descriptor


def _lead(
    interface: str, device: str, size: int, number: int, held: contextlib.ExitStack, run: Run
) -> None:
    """Lead what arrives at an interface into a device."""
    rule = ["priority", str(number), "iif", interface, "lookup", str(number)]
    run(["link", "set", "dev", device, "mtu", str(size), "txqueuelen", str(QUEUE), "up"])
    # The stricter of both would count, but that loose is the larger number.
    filters = {_settings(each, run).get("rp_filter") for each in (device, "all")}
    if "strict" in filters and "loose" not in filters:
        raise NetworkError(
            f"The kernel would drop what comes from {device}, as its senders are elsewhere; "
            "run 'sysctl -w net.ipv4.conf.all.rp_filter=2'."
        )
    run(["-4", "route", "replace", "default", "dev", device, "table", str(number)])
    held.enter_context(ruled(rule, run))
