"""Processes that end with their parent, even when it is killed, and commands that signals end."""

from __future__ import annotations

import ctypes
import multiprocessing
import multiprocessing.connection
import multiprocessing.process
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from types import FrameType

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends; Linux only.

    For ``Popen(preexec_fn=...)`` where no other thread runs. The thread has to wait for the
    program, which would otherwise be killed with it.
    """
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


_LAUNCHER = f"""
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
if hasattr(libc, "prctl"):
    libc.prctl({_PR_SET_PDEATHSIG}, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def dying_with_parent(command: Sequence[str]) -> list[str]:
    """``command``, to be killed with its parent as by :func:`die_with_parent`.

    For processes with threads, where no code may run between fork and exec.
    """
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Meanwhile SIGTERM and SIGHUP end the command as Ctrl-C does, so that nothing outlives it."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        # A second one must not interrupt what the first one has begun to take down.
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup has it ignored
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def process_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``jobs`` processes that end with this one, and at once on an exception here.

    An executor waits for work that has begun, and may wait for ever when a second Ctrl-C cuts that
    waiting short. What a process was at is lost.
    """
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(max_workers=jobs, initializer=_follow_parent)
    with _interrupted_once():
        try:
            yield pool
            pool.shutdown()
        except BaseException:
            while True:
                try:
                    pool.shutdown(wait=False, cancel_futures=True)
                    for member in set(multiprocessing.active_children()) - others:
                        member.kill()
                    break
                except KeyboardInterrupt:
                    continue  # SIGTERM and SIGHUP may come as well, once: none leaves this half-way
            raise


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """Let the first Ctrl-C have its effect, and no other one until this ends.

    A second one might come between the first and the code that is to heed it.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    heeded = False

    def heed(number: int, frame: FrameType | None) -> None:
        nonlocal heeded
        if not heeded:
            heeded = True
            usual(number, frame)

    signal.signal(signal.SIGINT, heed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _follow_parent() -> None:
    """Leave Ctrl-C, which reaches the whole process group, to the parent; end when it ends.

    A pool's process would otherwise wait for work for ever after the parent was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
