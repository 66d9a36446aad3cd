"""Processes that end with their parent, however it ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Have the kernel kill this process with the thread that started it; Linux alone does.

    For ``Popen(preexec_fn=...)``, of a program that outlives a parent which is killed. The thread
    has to wait for the program, for it takes it along.
    """
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def follow_parent() -> None:
    """Leave Ctrl-C, which reaches the whole process group, to the parent; but end when it ends.

    For ``ProcessPoolExecutor(initializer=...)``: a pool's process waits for work for ever, also
    when a kill has taken the parent away.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
