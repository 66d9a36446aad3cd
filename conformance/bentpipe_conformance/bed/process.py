"""The process of an implementation under test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

from bentpipe_reference.common.processes import die_with_parent

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError, quoted

TAIL = 4096
"""Octets at the end of standard error that may be quoted."""
OPENING_TIMEOUT_S = 10.0
"""Seconds on this place's clock that a command of ``[open]`` may take; it opens and returns."""


class IutProcess(Closing):
    """One implementation under test, started in this thread's network namespace."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        ready: str | None,
        ready_timeout: float = 10.0,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        inherited: Sequence[int] = (),
        listens: bool = False,
    ) -> None:
        """Start ``command`` and wait until it prints the line ``ready`` (None: ready at once).

        ``ready_timeout`` is in seconds on this place's clock. The process keeps the ``inherited``
        file descriptors; one that ``listens`` reads lines from its standard input, see `tell`.

        Raises:
            BedError: it does not start, ends, or never becomes ready.
        """
        self.name = os.path.basename(command[0])
        in_guest = os.environ.get("BENTPIPE_PLACE", "").startswith("uml")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close())
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=None if env is None else dict(env),
                cwd=cwd,
                pass_fds=tuple(inherited),
                start_new_session=True,
                # On a host, the kernel kills it with this process; a guest's kernel ends anyway.
                preexec_fn=None if in_guest else die_with_parent,
            )
        except OSError as error:
            self._stderr.close()
            raise BedError(
                f"The implementation does not start: {command[0]}: {error.strerror}; "
                "correct [start] command in its TOML file."
            ) from None
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        try:
            if ready is not None:
                self._await(ready.encode(), ready_timeout)
        except BaseException:
            self.close()
            raise

    def _await(self, ready: bytes, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        seen = b""
        while (left := deadline - time.monotonic()) > 0:
            select.select([self._output], [], [], left)
            with contextlib.suppress(BlockingIOError):
                piece = os.read(self._output, 65536)
                if not piece:
                    self._process.wait()
                    raise BedError(f"The implementation ended before it was ready: {self.ended()}")
                seen = (seen + piece)[-65536:]
                if any(line.strip() == ready for line in seen.split(b"\n")):
                    return
        raise BedError(
            f"The implementation {self.name} did not print {ready.decode()!r} within "
            f"{timeout:g} s{self._quoted_stderr()}; correct [start] ready in its TOML file."
        )

    def tell(self, line: str) -> None:
        """Write a line to its standard input.

        Raises:
            BedError: it has stopped reading.
        """
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), f"{line}\n".encode())
        except OSError as error:
            raise BedError(
                f"The implementation {self.name} takes no line on its standard input "
                f"({error.strerror}); correct [open] in its TOML file."
            ) from None

    def ended(self) -> str | None:
        """None while it runs, else one sentence on how it ended."""
        with contextlib.suppress(BlockingIOError):
            # A full pipe would block a talkative implementation.
            while os.read(self._output, 65536):
                pass
        code = self._process.poll()
        if code is None:
            return None
        how = f"with exit status {code}" if code >= 0 else f"by {_signal_name(-code)}"
        return f"{self.name} ended {how}{self._quoted_stderr()}."

    def _quoted_stderr(self) -> str:
        size = os.fstat(self._stderr.fileno()).st_size
        tail = os.pread(self._stderr.fileno(), TAIL, max(0, size - TAIL))
        return quoted(tail.decode(errors="replace"))

    def close(self) -> None:
        """Kill it and what it started in its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._stderr.close()


def run_opening(command: Sequence[str]) -> None:
    """Run the command that makes an implementation open a connection.

    Raises:
        BedError: it does not start, fails, or does not return in time.
    """
    remedy = "correct [open] command in the implementation's TOML file"
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=OPENING_TIMEOUT_S,
        )  # fmt: skip
    except OSError as error:
        raise BedError(f"{command[0]} does not start ({error.strerror}); {remedy}.") from None
    except subprocess.TimeoutExpired:
        raise BedError(
            f"{command[0]} did not return within {OPENING_TIMEOUT_S:g} s; [open] command must "
            "start the opening and return."
        ) from None
    if done.returncode:
        how = f"exit status {done.returncode}{quoted(done.stderr.decode(errors='replace'))}"
        raise BedError(f"{command[0]} failed with {how}; {remedy}.")


def _signal_name(number: int) -> str:
    known = {item.value: item.name for item in signal.Signals}
    return known.get(number, f"signal {number}")
