"""Isolation: an implementation under test in a world of its own.

It runs as a user of its own without capabilities, in mount, process, IPC, host-name and network
namespaces of its own. Its root is put together anew in memory: copies of exactly the files that the
plan names, compared with their digests while they are copied, a few devices, its own ``/proc``, and
a bounded ``/tmp``. Memory, processes, files and what it prints are bounded. How that is done is in
:mod:`bentpipe_conformance.bed.jail_init`, which is the first process of that world.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.groups import limiting_groups
from bentpipe_conformance.bed.jail_init import FIRST_AT, STATUS, TAIL, TAIL_AT

SCRIPT = Path(__file__).with_name("jail_init.py")
MEMORY = 256 << 20
"""Octets of memory of all its processes where there are control groups, else of each."""
ROOM = 64 << 20
"""Octets that it may write to /tmp, and to a single file."""
PROCESSES, HANDLES = 64, 1024
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
PATIENCE = 5.0
"""Seconds for the kernel to end what is in a jail."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What an implementation may have.

    Attributes:
        files: copied into its root, with the SHA-256 that each must have (empty: any).
        links: symbolic links there, path -> target.
        folders: directories and files shown there, read only; more than the usual.
        network: it has the rights of an administrator over the network namespace that it is
            started in, which has to belong to a user namespace of its own.
        processes: how many it may have at once.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: Sequence[str] = ()
    network: bool = False
    processes: int = PROCESSES


class Jail(Closing):
    """An isolated implementation that was started."""

    def __init__(
        self,
        command: Sequence[str],
        confinement: Confinement,
        *,
        inherited: Sequence[int],
        own_network: bool,
        listens: bool,
    ) -> None:
        """Start ``command``, an absolute path first, in the network namespace of this thread.

        With ``own_network`` it gets an empty one instead; it keeps the ``inherited`` descriptors.

        Raises:
            BedError: isolation is impossible here, or the program does not start.
        """
        self._groups = limiting_groups(MEMORY, confinement.processes)
        with contextlib.ExitStack() as held:
            self._tail = os.memfd_create("tail")
            os.pwrite(self._tail, bytes(TAIL_AT), 0)
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            held.callback(theirs.close)
            trouble, tells = os.pipe()
            held.callback(os.close, trouble)
            order = os.memfd_create("order")
            document = {
                "command": list(command),
                "environment": ENVIRONMENT,
                "files": dict(confinement.files),
                "links": dict(confinement.links),
                "folders": list(confinement.folders),
                "network": confinement.network,
                "network_of_its_own": own_network,
                "inherited": list(inherited),
                "tail": self._tail,
                "control": theirs.fileno(),
                "trouble": tells,
                "groups": [(str(parent), limits) for parent, limits in self._groups.items()],
                "memory": MEMORY,
                "room": ROOM,
                "processes": confinement.processes,
                "handles": HANDLES,
            }
            os.write(order, marshal.dumps(document))
            os.lseek(order, 0, os.SEEK_SET)
            try:
                self.process = subprocess.Popen(
                    (sys.executable, "-IS", str(SCRIPT), str(order)),
                    stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[self._tail, theirs.fileno(), tells, order, *inherited],
                    start_new_session=True,
                )
            finally:
                os.close(tells)
                os.close(order)
            said = _read_to_the_end(trouble).decode(errors="replace")
        if said:
            self.close()
            name = os.path.basename(command[0])
            raise BedError(
                f"The implementation {name} cannot be started in isolation ({said}); correct its "
                "TOML file, or see [isolation] in docs/howto/own-stack."
            )

    def complaints(self) -> bytes:
        """The last octets that it wrote to standard error."""
        return os.pread(self._tail, TAIL, TAIL_AT)

    def call(self, command: Sequence[str], timeout: float) -> int | None:
        """Run a further command beside it; its exit status, None if it takes too long.

        ``timeout`` is in seconds on this place's clock.
        """
        with contextlib.suppress(OSError):
            self._control.send(marshal.dumps(list(command)))
            if select.select([self._control], [], [], timeout)[0] and (
                told := self._control.recv(STATUS.size)
            ):
                return os.waitstatus_to_exitcode(STATUS.unpack(told)[0])
        return None

    def close(self) -> None:
        """Kill everything in it."""
        first = STATUS.unpack(os.pread(self._tail, STATUS.size, FIRST_AT))[0]
        if first and self.process.poll() is None:
            for parent in self._groups:
                # All at once: one that never rests would keep the first from ending the others.
                with contextlib.suppress(OSError):
                    (parent / f"bentpipe-{self.process.pid}" / "cgroup.kill").write_text("1")
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        os.close(self._tail)


def _read_to_the_end(handle: int) -> bytes:
    """Everything until the other end of a pipe is closed."""
    said = b""
    while octets := os.read(handle, 4096):
        said += octets
    return said
