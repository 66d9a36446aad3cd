"""Running a command inside User-Mode Linux.

The guest sees the host's files (hostfs) and runs the caller's own interpreter, so a command needs
no preparation: its results are the files it writes. With ``virtual`` the guest's clock is moved
forward whenever every process sleeps, so that sleeping costs nothing and computing no time.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError, quoted
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.supervised import Supervised
from bentpipe_conformance.bed.xstate import preload

POLL = 0.02
"""Seconds between looks at a running guest's output."""
SETTLE = 0.1
"""Virtual seconds after boot for the guest's timers to become exact."""
HIDDEN = ("/proc", "/sys")
"""Where the guest mounts file systems of its own, so that no run can live there."""
GUEST_INIT = Path(__file__).with_name("guest_init.py")


@dataclass(frozen=True, slots=True)
class GuestResult:
    """How a command ended inside the guest.

    Attributes:
        status: its exit status, negative when a signal ended it.
        seconds: wall-clock seconds from start to halt.
        stdout: its standard output.
        stderr: its standard error.
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
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        run_dir: Path | str | None = None,
        virtual: bool = True,
        memory_mib: int = 512,
        timeout: float = 600.0,
    ) -> None:
        """Start ``command`` in a new guest.

        Args:
            kernel: what to boot.
            command: program and arguments, as for :mod:`subprocess`.
            cwd: working directory, the caller's if None.
            env: environment, the caller's if None.
            run_dir: directory of this run's files; a temporary one, removed at the end, if None.
            virtual: run on a virtual clock.
            memory_mib: the guest's memory, taken from the host as it is used.
            timeout: wall-clock seconds after which the guest is killed.

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
        self._owned = run_dir is None
        self.run_dir = _make_run_dir(run_dir)
        self._uml_dir = str(self.run_dir / "uml")
        try:
            self._supervisor = self._start(command, cwd, env, virtual, memory_mib)
        except OSError as error:
            self._clear()
            raise BedError(
                f"User-Mode Linux cannot be started from {self.run_dir} "
                f"({error.strerror or error}); make room there or set TMPDIR."
            ) from None
        except BaseException:
            self._clear()
            raise
        self._result: GuestResult | None = None

    def _start(
        self,
        command: Sequence[str],
        cwd: Path | str | None,
        env: Mapping[str, str] | None,
        virtual: bool,
        memory_mib: int,
    ) -> Supervised:
        folder = self.run_dir
        (folder / "guest").mkdir(exist_ok=True)
        for name in ("status", "stdout", "stderr", "console"):
            (folder / name).unlink(missing_ok=True)
        for name in ("stdout", "stderr", "console"):
            (folder / name).touch(mode=0o600)
        environment = dict(os.environ if env is None else env)
        environment["TMPDIR"] = str(folder / "guest" / "tmp")
        environment["BENTPIPE_TUN"] = str(folder / "guest" / "tun")
        environment["BENTPIPE_PLACE"] = "uml-virtual" if virtual else "uml"
        order = {
            "command": list(command),
            "cwd": os.path.abspath(cwd or os.getcwd()),
            "env": environment,
            "stdin": os.devnull,
            "stdout": str(folder / "stdout"),
            "stderr": str(folder / "stderr"),
            "settle": SETTLE if virtual else 0.0,
            "modules": [] if virtual else [str(module) for module in self.kernel.modules],
        }
        (folder / "order").write_bytes(marshal.dumps(order))
        init = folder / "init"
        words = (sys.executable, "-IS", str(GUEST_INIT), str(folder))
        init.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n", encoding="utf-8")
        init.chmod(0o700)
        uml_dir = self._uml_dir = tempfile.mkdtemp(prefix="bentpipe-uml-", dir=_short_directory())
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
            remove=[uml_dir],
            keep=[str(folder)] if self._owned else [],
        )

    def running(self) -> bool:
        """Whether the guest still runs."""
        return self._supervisor.running()

    def wait(self, follow: Callable[[str], None] | None = None) -> GuestResult:
        """Wait for the command and the guest to end.

        Args:
            follow: called with each line the command prints, as it is printed.

        Raises:
            BedError: the guest ended without the command's exit status.
        """
        if self._result is None:
            if follow is not None:
                self._supervisor.follow(self.run_dir / "stdout", follow, POLL)
            self._result = self._conclude()
        return self._result

    def _conclude(self) -> GuestResult:
        outcome = self._supervisor.wait()
        if outcome.ending == "killed":
            raise BedError("User-Mode Linux was killed from outside; run the command again.")
        if outcome.ending == "timeout":
            raise BedError(
                f"User-Mode Linux did not finish within {self._timeout:.0f} s and was killed"
                f"{self._last_words()}."
            )
        try:
            status = int((self.run_dir / "status").read_text(encoding="ascii"))
        except (OSError, ValueError):
            raise BedError(
                f"User-Mode Linux ({self.kernel.path}) ended before its command did"
                f"{self._last_words()}."
            ) from None
        return GuestResult(
            status=status,
            seconds=outcome.seconds,
            stdout=_text(self.run_dir / "stdout"),
            stderr=_text(self.run_dir / "stderr"),
        )

    def _last_words(self) -> str:
        return quoted(_text(self.run_dir / "stderr") + _text(self.run_dir / "console"))

    def close(self) -> None:
        """Kill the guest if it still runs and remove its temporary files."""
        self._supervisor.close()
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._uml_dir, ignore_errors=True)
        if self._owned:
            shutil.rmtree(self.run_dir, ignore_errors=True)


def run(
    kernel: Kernel,
    command: Sequence[str],
    follow: Callable[[str], None] | None = None,
    **options: Any,
) -> GuestResult:
    """Run ``command`` in a guest of its own, with the options of :class:`Guest`, to its end.

    Raises:
        BedError: the guest could not be started or ended without an exit status.
    """
    with Guest(kernel, command, **options) as guest:
        return guest.wait(follow)


def _make_run_dir(wanted: Path | str | None) -> Path:
    if wanted is None:
        try:
            return Path(tempfile.mkdtemp(prefix="bentpipe-run-", dir=_visible_directory()))
        except OSError as error:
            raise BedError(
                f"No directory for temporary files ({error.strerror}); set TMPDIR to one."
            ) from None
    folder = Path(wanted).resolve()
    if _hidden(folder):
        raise BedError(
            f"{folder} is not visible inside User-Mode Linux; choose a directory outside "
            f"{' and '.join(HIDDEN)}."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _hidden(folder: Path) -> bool:
    return any(folder.is_relative_to(hidden) for hidden in HIDDEN)


def _visible_directory() -> str | None:
    folder = Path(tempfile.gettempdir()).resolve()
    return "/tmp" if _hidden(folder) else str(folder)


def _short_directory() -> str | None:
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
    folder = Path(tempfile.gettempdir()) / "bentpipe-locks"
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
    return str(folder)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
