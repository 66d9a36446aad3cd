"""Programs that end with this process, whatever kills it."""

from __future__ import annotations

import contextlib
import marshal
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe_conformance.bed.closing import Closing

SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a supervised program ended.

    Attributes:
        ending: ``exited``, ``timeout``, ``killed`` when its supervisor was killed, or
            ``unprepared`` when what it needs could not be made.
        status: exit status, negative when a signal ended it; None when unknown. The number of
            the error when it is unprepared.
        seconds: wall-clock seconds it ran.
    """

    ending: str
    status: int | None = None
    seconds: float = 0.0


class Supervised(Closing):
    """A program under a supervisor of its own (see :mod:`bentpipe_conformance.bed.supervisor`)."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str,
        console: Path,
        timeout: float,
        locks: str = "",
        isolate: bool = False,
        make: Sequence[tuple[str, bytes | None, int]] = (),
        remove: Sequence[str] = (),
        keep: Sequence[str] = (),
        inherited: Sequence[int] = (),
    ) -> None:
        """Start it; ``argv`` begins with an absolute path, the file ``console`` gets its output.

        It is killed after ``timeout`` wall-clock seconds. It claims a processor by a lock in the
        directory ``locks`` (empty: it uses all), and is started in a process namespace if
        ``isolate`` and where that is allowed. Before it starts, what is to ``make`` is made: files
        with octets and modes, directories without octets. When it has ended, the directories
        ``remove`` are removed, and those of ``keep`` if this process ends before it has called
        `close`. The supervisor keeps the ``inherited`` file descriptors open, such as a lock's.
        """
        order = {
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(cwd),
            "console": str(console),
            "timeout": timeout,
            "locks": locks,
            "isolate": isolate,
            "make": list(make),
            "remove": list(remove),
            "keep": list(keep),
        }
        self._process = subprocess.Popen(
            (sys.executable, "-IS", str(SUPERVISOR)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(inherited),
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(marshal.dumps(order))
            self._process.stdin.flush()
        self._ending: Ending | None = None

    def running(self) -> bool:
        """Whether it still runs."""
        output = self._process.stdout
        if self._ending is not None or output is None or output.closed:
            return False
        return not select.select([output], [], [], 0)[0]

    def follow(self, printed: Path, tell: Callable[[str], None], glance: float) -> None:
        """Call ``tell`` with each line that the program writes to a file, without its end.

        It returns when the program has ended; ``glance`` are the wall-clock seconds between looks.
        """
        while not printed.exists() and self.running():
            time.sleep(glance)
        if not printed.exists():
            return
        with printed.open(encoding="utf-8", errors="replace") as output:
            rest = ""
            running = True
            while running:
                running = self.running()
                *lines, rest = (rest + output.read()).split("\n")
                for line in lines:
                    tell(line)
                if running:
                    time.sleep(glance)
        if rest:
            tell(rest)

    def wait(self) -> Ending:
        """Wait for its end."""
        if self._ending is None:
            assert self._process.stdout is not None
            told = self._process.stdout.read()
            self._ending = Ending(*marshal.loads(told)) if told else Ending("killed")
        return self._ending

    def close(self) -> None:
        """Kill it if it still runs."""
        if self._process.stdin is not None:
            if not self.running():
                with contextlib.suppress(OSError, ValueError):
                    self._process.stdin.write(b".")
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
