"""Network namespaces without names, which vanish with the process that holds them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.jail_init import FIRST_USER, NOBODY

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
USERS = 1 << 22
"""As many as there can be processes; the user of an implementation has the number of one."""
_OWN = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)


class NetworkNamespace(Closing):
    """A network namespace held by a file descriptor."""

    def __init__(self, *, apart: bool = False) -> None:
        """Make a new, empty namespace.

        One set ``apart`` belongs to a user namespace of its own, whose users are those of isolated
        implementations: an administrator of this network has no rights over anything else.

        Raises:
            BedError: this process has no permission.
        """
        if apart:
            self.fd = _apart()
            return
        before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.unshare(CLONE_NEWNET):
                reason = os.strerror(ctypes.get_errno())
                raise BedError(
                    f"Making a network namespace needs root ({reason}); "
                    "run inside User-Mode Linux with `--bed uml-virtual`."
                )
            self.fd = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
            _enter(before)
        finally:
            os.close(before)

    @classmethod
    def of(cls, fd: int) -> NetworkNamespace:
        """The namespace of a descriptor, which the caller closes."""
        known = cls.__new__(cls)
        known.fd = fd
        return known

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Meanwhile, sockets, devices and processes of this thread are made in the namespace."""
        before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(self.fd)
            try:
                yield
            finally:
                _enter(before)
        finally:
            os.close(before)

    def set_sysctls(self, values: Mapping[str, str]) -> None:
        """Set kernel parameters, ``net.ipv4.tcp_sack`` being ``/proc/sys/net/ipv4/tcp_sack``.

        Raises:
            BedError: one is unknown to this kernel or refuses the value.
        """
        with self.entered():
            for name, value in values.items():
                try:
                    # Slashes are kept, so that interface names with dots can be written.
                    path = name if "/" in name else name.replace(".", "/")
                    Path("/proc/sys", path).write_text(f"{value}\n", encoding="ascii")
                except OSError as error:
                    remedy = "correct the [sysctl] table or use a kernel that has it"
                    if error.errno == errno.EPERM and name.endswith("tcp_congestion_control"):
                        remedy = "add it to the host's net.ipv4.tcp_allowed_congestion_control"
                    raise BedError(
                        f"The kernel refuses sysctl {name} = {value} ({error.strerror}); {remedy}."
                    ) from None

    def close(self) -> None:
        """Release it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _apart() -> int:
    """A network namespace that a new user namespace owns."""
    code = f"import ctypes, sys\nlibc = ctypes.CDLL(None)\nlibc.unshare({CLONE_NEWUSER})\n"
    code += f"libc.unshare({CLONE_NEWNET})\nprint(flush=True)\nsys.stdin.read()\n"
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as maker:
        assert maker.stdout is not None
        maker.stdout.readline()
        own = Path(f"/proc/{maker.pid}")
        try:
            for name in ("uid_map", "gid_map"):
                try:
                    (own / name).write_text(f"{FIRST_USER} {FIRST_USER} {USERS}\n")
                except PermissionError:  # a container that has few numbers
                    (own / name).write_text(f"{NOBODY} {NOBODY} 1\n")
            handle = os.open(own / "ns" / "net", os.O_RDONLY | os.O_CLOEXEC)
            if os.fstat(handle).st_ino == os.stat(_OWN).st_ino:
                os.close(handle)
                raise PermissionError(errno.EPERM, "user namespaces are not allowed here")
            return handle
        except OSError as error:
            raise BedError(
                "A network for which an implementation may have rights cannot be made "
                f"({error.strerror}); use `--bed uml-virtual`."
            ) from None


def _enter(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET):
        raise BedError(f"Entering a network namespace failed ({os.strerror(ctypes.get_errno())}).")
