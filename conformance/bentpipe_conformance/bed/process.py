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
from pathlib import Path

from bentpipe_reference.common.processes import die_with_parent

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError, quoted
from bentpipe_conformance.bed.jail import Confinement, Jail

TAIL = 4096
"""Octets at the end of standard error that may be quoted."""
OPENING_TIMEOUT_S = 10.0
"""Seconds on this place's clock that a command of ``[open]`` may take; it opens and returns."""

GLANCE = 0.01
"""Seconds between looks at what it listens to."""
LISTENING = "0A"
"""The state of a socket in /proc/net/tcp."""


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
        confinement: Confinement | None = None,
        own_network: bool = False,
    ) -> None:
        """Start ``command`` and wait until it prints the line ``ready`` (None: ready at once).

        ``ready_timeout`` is in seconds on this place's clock. The process keeps the ``inherited``
        file descriptors; one that ``listens`` reads lines from its standard input, see `tell`.
        With a ``confinement`` it is isolated, with ``own_network`` from this thread's network too;
        ``env`` and ``cwd`` are then of no account.

        Raises:
            BedError: it does not start, ends, or never becomes ready.
        """
        self.name = os.path.basename(command[0])
        self._jail: Jail | None = None
        if confinement is not None:
            self._jail = Jail(
                command, confinement, inherited=inherited, own_network=own_network, listens=listens
            )
            self._process = self._jail.process
        else:
            self._start(command, env, cwd, inherited, listens)
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        try:
            if ready is not None:
                self._await(ready.encode(), ready_timeout)
        except BaseException:
            self.close()
            raise

    def _start(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | None,
        inherited: Sequence[int],
        listens: bool,
    ) -> None:
        """Start it with the rights of this process."""
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

    def await_listening(self, port: int, timeout: float) -> None:
        """Wait until something listens at a TCP port of this thread's network namespace.

        ``timeout`` is in seconds on this place's clock.

        Raises:
            BedError: it ends, or never listens.
        """
        deadline = time.monotonic() + timeout
        while not _listens(port):
            if ended := self.ended():
                raise BedError(f"The implementation ended before it was ready: {ended}")
            if time.monotonic() > deadline:
                raise BedError(
                    f"The implementation {self.name} did not listen at port {port} within "
                    f"{timeout:g} s{self._quoted_stderr()}; correct [start] ready_port in its TOML "
                    "file."
                )
            time.sleep(GLANCE)

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
        if self._jail is not None:
            tail = self._jail.complaints()
        else:
            size = os.fstat(self._stderr.fileno()).st_size
            tail = os.pread(self._stderr.fileno(), TAIL, max(0, size - TAIL))
        return quoted(tail.decode(errors="replace"))

    def call(self, command: Sequence[str], where: str = "[open] command") -> None:
        """Run a command beside it, with its rights, by default the one that makes it call.

        ``where`` is where its TOML file has the command.

        Raises:
            BedError: the command does not start, fails, or does not return in time.
        """
        if self._jail is None:
            run_beside(command, where)
            return
        code = self._jail.call(command, OPENING_TIMEOUT_S)
        if code is None:
            raise _did_not_return(command[0], where)
        if code:
            raise _failed(command[0], code, self._jail.complaints(), where)

    def close(self) -> None:
        """Kill it and what it started: in its session, or in its isolation."""
        if self._jail is not None:
            self._jail.close()
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._stderr.close()


def run_beside(command: Sequence[str], where: str = "[open] command") -> None:
    """Run a command beside an implementation, by default the one that makes it call.

    Raises:
        BedError: it does not start, fails, or does not return in time.
    """
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=OPENING_TIMEOUT_S,
        )  # fmt: skip
    except OSError as error:
        raise BedError(
            f"{command[0]} does not start ({error.strerror}); {_remedy(where)}."
        ) from None
    except subprocess.TimeoutExpired:
        raise _did_not_return(command[0], where) from None
    if done.returncode:
        raise _failed(command[0], done.returncode, done.stderr, where)


def _listens(port: int) -> bool:
    """Whether a socket of this thread's network namespace listens at a TCP port."""
    wanted = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/thread-self/net", name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == LISTENING:
                    return True
    return False


def _did_not_return(program: str, where: str) -> BedError:
    return BedError(
        f"{program} did not return within {OPENING_TIMEOUT_S:g} s; {where} must start what it is "
        "for and return."
    )


def _failed(program: str, code: int, complaints: bytes, where: str) -> BedError:
    how = f"exit status {code}{quoted(complaints.decode(errors='replace'))}"
    return BedError(f"{program} failed with {how}; {_remedy(where)}.")


def _remedy(where: str) -> str:
    return f"correct {where} in the implementation's TOML file"


def _signal_name(number: int) -> str:
    known = {item.value: item.name for item in signal.Signals}
    return known.get(number, f"signal {number}")
