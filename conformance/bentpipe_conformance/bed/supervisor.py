"""Runs one program, and leaves nothing of it behind, however its owner ends.

Run as ``python -IS supervisor.py`` by :mod:`bentpipe_conformance.bed.supervised`, with the standard
library only. Standard input carries one marshalled order and then stays open: its end means that
the owner has ended, unless an octet comes before. Standard output carries the marshalled result.
Directories and files that the program needs are made here, so that there is no moment at which
nobody would remove them.

User-Mode Linux runs every guest process as a traced child of its own; were it killed alone, those
children would run on with the host's system calls. So it gets a process namespace where that is
allowed (the host's kernel kills all in it with its first process, which is ours), and in any case
this process adopts and kills what is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import marshal
import os
import random
import select
import shutil
import signal
import sys
import time
from typing import Any

CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
DEATH_PATIENCE = 5.0

libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Obey the order on standard input."""
    try:
        order: dict[str, Any] = marshal.load(sys.stdin.buffer)
    except (EOFError, ValueError, TypeError):  # the owner ended before it had said all
        return 0
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for unwanted in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(unwanted, signal.SIG_IGN)
    started = time.monotonic()
    try:
        for made in order["make"]:
            make(*made)
    except OSError as error:
        remove(order["remove"] + order["keep"])
        answer("unprepared", error.errno, started)
        return 0
    processor = claim_processor(order["locks"]) if order["locks"] else None
    if order["isolate"]:
        enter_process_namespace()
    child = start(order, processor)
    ending = wait(child, order["timeout"])
    status = kill_all(child)
    remove(order["remove"] + (order["keep"] if ending == "abandoned" else []))
    answer(ending, None if status is None else os.waitstatus_to_exitcode(status), started)
    if order["keep"] and ending != "abandoned":
        await_owner(order["keep"])
    return 0


def await_owner(keep: list[str]) -> None:
    """Until the owner says that it goes on without us; where it ends instead, remove ``keep``."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)  # the end of the answer
    if not os.read(0, 1):
        remove(keep)


def make(path: str, octets: bytes | None, mode: int) -> None:
    """Make a file, or a directory where there are no octets."""
    if octets is None:
        os.mkdir(path, mode)
        return
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(octets)


def remove(directories: list[str]) -> None:
    """Remove directories with whatever is in them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def answer(ending: str, code: int | None, started: float) -> None:
    """Tell the owner, if there still is one."""
    with contextlib.suppress(OSError):
        os.write(1, marshal.dumps((ending, code, time.monotonic() - started)))


def claim_processor(locks: str) -> int:
    """A processor for this guest alone where one is free; the lock ends with this process.

    A guest and its kernel take turns. On two processors each turn waits for a wake-up across
    them, which makes every system call four times slower.
    """
    allowed = sorted(os.sched_getaffinity(0))
    for processor in allowed:
        try:
            handle = open_lock(f"{locks}/cpu-{processor}")
        except OSError:
            break
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
        else:
            return processor
    return random.choice(allowed)


def open_lock(path: str) -> int:
    """Open a lock file, made if it is not there; no link is followed, no pipe waited for."""
    flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(path, flags, 0o600)


def enter_process_namespace() -> None:
    """Put the next child into a process namespace of its own where that is allowed."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWPID) == 0 or libc.unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0:
        return
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    with contextlib.suppress(OSError):
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as handle:
                handle.write(text)


def start(order: dict[str, Any], processor: int | None) -> int:
    """Start the program in a session of its own, bound to ``processor``."""
    child = os.fork()
    if child:
        return child
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        if os.getpid() == 1:
            stand_first()
        if processor is not None:
            os.sched_setaffinity(0, {processor})
        os.chdir(order["cwd"])
        console = os.open(order["console"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(console, 1)
        os.dup2(console, 2)
        for unwanted in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(unwanted, signal.SIG_DFL)
        os.execve(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        os.write(2, f"cannot start {order['argv'][0]}: {error}\n".encode())
    os._exit(127)


def stand_first() -> None:
    """Be the first process of a namespace, and return in its child, which is the program.

    The first one survives whatever signal it sends itself: a User-Mode Linux that aborts would try
    that for ever. All others end with it.
    """
    program = os.fork()
    if not program:
        return
    while True:
        with contextlib.suppress(InterruptedError):
            ended, status = os.wait()
            if ended == program:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else 128 - code)


def wait(child: int, timeout: float) -> str:
    """How it ended: ``exited``, ``abandoned`` by the owner, or ``timeout``."""
    handle = os.pidfd_open(child)
    owner = sys.stdin.fileno()
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(owner, select.POLLIN)
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        for ready, _ in poll.poll(left * 1000):
            if ready == handle:
                return "exited"
            if not os.read(owner, 4096):
                return "abandoned"
    return "timeout"


def descendants() -> list[int]:
    """Every process below this one, deepest first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as handle:
                parent = int(handle.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found[::-1]


def kill_all(child: int) -> int | None:
    """Kill and reap what is below this process, traced children before their tracer.

    Returns:
        The wait status of ``child``, None when it could not be killed in time.
    """
    status: int | None = None
    deadline = time.monotonic() + DEATH_PATIENCE
    while time.monotonic() < deadline:
        for process in descendants():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == child:
                    status = reaped[1]
        except ChildProcessError:
            break
        time.sleep(0.002)
    return status


if __name__ == "__main__":
    sys.exit(main())
