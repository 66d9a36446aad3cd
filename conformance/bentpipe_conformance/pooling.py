"""Processes of a pool that end with their parent."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading


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
