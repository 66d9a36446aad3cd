"""TUN and TAP devices, and the offloads of Ethernet devices."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import time
from collections.abc import Mapping

from bentpipe_conformance.bed.errors import BedError

SIOCGIFFLAGS = 0x8913
IFF_RUNNING = 0x40
PATIENCE, GLANCE = 5.0, 0.01
"""Seconds to wait for interfaces altogether, and between looks at one."""
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000
SIOCETHTOOL = 0x8946
ETHTOOL_SRXCSUM, ETHTOOL_STXCSUM, ETHTOOL_SSG, ETHTOOL_STSO = 0x15, 0x17, 0x19, 0x1F
ETHTOOL_SUFO, ETHTOOL_SGSO, ETHTOOL_SGRO = 0x22, 0x24, 0x2C
OFFLOADS = (ETHTOOL_STSO, ETHTOOL_SUFO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM, ETHTOOL_SSG)
"""The commands that set them; the one that reads each is the number before."""


def open_tun(name: str, *, ethernet: bool = False) -> int:
    """Make a TUN device (a TAP device if ``ethernet``) in this thread's namespace.

    Returns:
        A file descriptor: each read or write is one packet.

    Raises:
        BedError: there is no TUN driver or no permission.
    """
    device = os.environ.get("BENTPIPE_TUN", "/dev/net/tun")
    try:
        fd = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise BedError(
            f"The TUN driver {device} cannot be opened ({error.strerror}); "
            "load it with `modprobe tun` as root, or use `--bed uml-virtual`."
        ) from None
    flags = (IFF_TAP if ethernet else IFF_TUN) | IFF_NO_PI
    try:
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
    except OSError as error:
        os.close(fd)
        raise BedError(f"The TUN device {name} cannot be made ({error.strerror}).") from None
    return fd


def clear_offloads(name: str) -> None:
    """Make an Ethernet device carry only packets as they would be on a wire.

    Otherwise the kernel passes on several segments as one, and leaves checksums to hardware that
    does not exist.
    """
    set_offloads(name, dict.fromkeys(OFFLOADS, 0))


def read_offloads(name: str) -> dict[int, int]:
    """Each offload the device has, by the command that sets it, and whether it is on."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        # In the order in which they can be switched on again: each needs some of those before.
        for command in reversed(OFFLOADS):
            value = _ethtool(handle, name, command - 1, 0)
            if value is not None:
                found[command] = value
    return found


def set_offloads(name: str, values: Mapping[int, int]) -> None:
    """Set offloads of a device; those that it does not have are ignored.

    Raises:
        BedError: the device refuses.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for command, value in values.items():
            _ethtool(handle, name, command, value)


def await_running(*names: str) -> None:
    """Wait until interfaces carry packets; the kernel takes a moment after setting them up.

    Raises:
        BedError: one does not come up.
    """
    deadline = time.monotonic() + PATIENCE
    for name in names:
        # Before each look, the last too: queues are attached just after the flag is set.
        time.sleep(GLANCE)
        while not interface_value(name, SIOCGIFFLAGS, "H") & IFF_RUNNING:
            if time.monotonic() > deadline:
                raise BedError(f"The interface {name} does not come up; repeat the command.")
            time.sleep(GLANCE)


def interface_value(name: str, command: int, layout: str) -> int:
    """The answer of an ioctl about an interface, by its :mod:`struct` layout."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        answer = fcntl.ioctl(handle, command, struct.pack("16s24x", name.encode()))
    return int(struct.unpack_from(f"={layout}", answer, 16)[0])


def _ethtool(handle: socket.socket, name: str, command: int, value: int) -> int | None:
    """The value after a command; None where the device does not know it."""
    import ctypes

    data = bytearray(struct.pack("=II", command, value))
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    request = struct.pack("16sQ16x", name.encode(), ctypes.addressof(buffer))
    try:
        fcntl.ioctl(handle, SIOCETHTOOL, request)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):
            return None
        raise BedError(f"The offloads of {name} cannot be set ({error.strerror}).") from None
    return int(struct.unpack_from("=I", data, 4)[0])
