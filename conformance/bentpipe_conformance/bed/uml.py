"""Running a command inside User-Mode Linux.

The guest sees the host's files (hostfs) and runs the caller's interpreter, so that a command needs
no preparation; its results are the files it writes. With ``virtual`` the guest's clock jumps ahead
whenever every process sleeps: sleeping takes no wall time, and computing takes no virtual time.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import secrets
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError, quoted
from bentpipe_conformance.bed.groups import GROUP_VARIABLE
from bentpipe_conformance.bed.kernel import Kernel, cache_directory
from bentpipe_conformance.bed.supervised import Supervised
from bentpipe_conformance.bed.xstate import preload

POLL = 0.02
"""Seconds between looks at a running guest's output."""
SETTLE = 0.1
"""Virtual seconds after boot for the guest's timers to become exact."""
HIDDEN = ("/proc", "/sys")
"""Where the guest mounts file systems of its own, so that the run's files cannot be there."""
GUEST_INIT = Path(__file__).with_name("guest_init.py")


@dataclass(frozen=True, slots=True)
class GuestResult:
    """How a command ended inside the guest.

    Attributes:
        status: its exit status, negative when a signal ended it.
        seconds: wall-clock seconds from start to halt.
    """

    status: int
    seconds: float
    stdout: str
    stderr: str


class Guest(Closing):
    """One running User-Mode Linux; closing it kills it."""

    def __init__(
        self,
        kernel: Kernel,
        command: Sequence[str],
        *,
        virtual: bool = True,
        memory_mib: int = 512,
        timeout: float = 600.0,
    ) -> None:
        """Start ``command`` in a new guest, with ``virtual`` on a virtual clock.

        Its memory is taken from the host as it is used; after ``timeout`` wall-clock seconds it is
        killed.

        Raises:
            BedError: the kernel cannot do this or cannot be started.
        """
        if virtual and not kernel.virtual:
            raise BedError(
                f"The kernel {kernel.path} has no virtual clock; "
                "build one with `bentpipe bed build`."
            )
        self.kernel = kernel
        self._timeout = timeout
        token = secrets.token_hex(8)
        try:
            self._folder = Path(_visible_directory()) / f"bentpipe-run-{token}"
            self._uml_dir = f"{_short_directory()}/bentpipe-uml-{token}"
        except OSError as error:
            raise BedError(
                f"No directory for temporary files ({error.strerror}); set TMPDIR to one."
            ) from None
        try:
            self._supervisor = self._start(command, virtual, memory_mib)
        except BaseException:
            self._clear()
            raise
        self.running = self._supervisor.running

    def _start(self, command: Sequence[str], virtual: bool, memory_mib: int) -> Supervised:
        folder, uml_dir = self._folder, self._uml_dir
        environment = {
            "TMPDIR": str(folder / "guest" / "tmp"),
            "BENTPIPE_TUN": str(folder / "guest" / "tun"),
            "BENTPIPE_PLACE": "uml-virtual" if virtual else "uml",
            GROUP_VARIABLE: str(folder / "guest" / "groups" / "implementations"),
        }
        order = {
            "command": list(command),
            "cwd": os.getcwd(),
            "env": os.environ | environment,
            "stdin": os.devnull,
            "stdout": str(folder / "stdout"),
            "stderr": str(folder / "stderr"),
            "settle": SETTLE if virtual else 0.0,
            "modules": [] if virtual else [str(module) for module in self.kernel.modules],
        }
        init = folder / "init"
        words = (sys.executable, "-IS", str(GUEST_INIT), str(folder))
        start = f"#!/bin/sh\nexec {shlex.join(words)}\n"
        make = [
            *((str(place), None, 0o700) for place in (folder, folder / "guest", uml_dir)),
            *((str(folder / name), b"", 0o600) for name in ("stdout", "stderr", "console")),
            (str(folder / "order"), marshal.dumps(order), 0o600),
            (str(init), start.encode(), 0o700),
        ]
        arguments = [
            str(self.kernel.path), "quiet", f"mem={memory_mib}M", "rootfstype=hostfs", "rw",
            f"init={init}", "con=null", "con0=null,fd:1", "ssl=null", f"uml_dir={uml_dir}/",
            "umid=bed", "panic=-1", *(("time-travel=inf-cpu",) if virtual else ()),
        ]  # fmt: skip
        return Supervised(
            arguments,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "TMPDIR": _memory_directory(memory_mib),
                "HOME": uml_dir,
                **preload(),
            },
            cwd="/",
            console=folder / "console",
            timeout=self._timeout,
            locks=_locks_directory(),
            isolate=True,
            make=make,
            remove=[uml_dir],
            keep=[str(folder)],
        )

    def wait(self, follow: Callable[[str], None] | None = None) -> GuestResult:
        """Wait for the command and the guest to end; ``follow`` gets each line as it is printed.

        Raises:
            BedError: the guest ended without the command's exit status.
        """
        if follow is not None:
            self._supervisor.follow(self._folder / "stdout", follow, POLL)
        outcome = self._supervisor.wait()
        if outcome.ending == "killed":
            raise BedError("User-Mode Linux was killed from outside; run the command again.")
        if outcome.ending == "unprepared":
            raise BedError(
                f"User-Mode Linux cannot be started from {self._folder} "
                f"({os.strerror(outcome.status or 0)}); make room there or set TMPDIR."
            )
        if outcome.ending == "timeout":
            raise BedError(
                f"User-Mode Linux did not finish within {self._timeout:.0f} s and was killed"
                f"{self._last_words()}."
            )
        try:
            status = int(self._text("status"))
        except ValueError:
            raise BedError(
                f"User-Mode Linux ({self.kernel.path}) ended before its command did"
                f"{self._last_words()}."
            ) from None
        return GuestResult(status, outcome.seconds, self._text("stdout"), self._text("stderr"))

    def _last_words(self) -> str:
        return quoted(self._text("stderr") + self._text("console"))

    def _text(self, name: str) -> str:
        """A file of this run; empty when it cannot be read."""
        try:
            return (self._folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def close(self) -> None:
        """Kill the guest if it still runs and remove its temporary files."""
        if not self._supervisor.running():
            self._clear()  # first: until it is closed, the supervisor does it if we are killed
        self._supervisor.close()
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._uml_dir, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def run(
    kernel: Kernel,
    command: Sequence[str],
    *,
    virtual: bool = True,
    memory_mib: int = 512,
    timeout: float = 600.0,
) -> GuestResult:
    """Run ``command`` in a guest of its own to its end; see :class:`Guest`.

    Raises:
        BedError: the guest could not be started or ended without an exit status.
    """
    with Guest(kernel, command, virtual=virtual, memory_mib=memory_mib, timeout=timeout) as guest:
        return guest.wait()


def _visible_directory() -> str:
    folder = Path(tempfile.gettempdir()).resolve()
    return "/tmp" if any(folder.is_relative_to(hidden) for hidden in HIDDEN) else str(folder)


def _short_directory() -> str:
    """A directory whose name leaves room for the management socket (108 octets)."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 60 else "/tmp"


def _memory_directory(memory_mib: int) -> str:
    """Where the guest's memory is best kept: shared memory where there is room for it."""
    shared = "/dev/shm"
    with contextlib.suppress(OSError):
        room = os.statvfs(shared)
        enough = room.f_bavail * room.f_frsize >= memory_mib << 20
        if enough and not room.f_flag & os.ST_NOEXEC and os.access(shared, os.W_OK):
            return shared
    return tempfile.gettempdir()


def _locks_directory() -> str:
    """A directory of this user's for locks; empty where there is none."""
    with contextlib.suppress(OSError, BedError):
        folder = cache_directory() / "locks"
        folder.mkdir(mode=0o700, exist_ok=True)
        told = folder.lstat()
        if stat.S_ISDIR(told.st_mode) and (told.st_uid, told.st_mode & 0o077) == (os.getuid(), 0):
            return str(folder)
    return ""
