"""Work in forked children, one for each item, so that what they do to themselves stays theirs."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any, Generic, TypeVar

from bentpipe_reference.common.processes import die_with_parent

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Lost:
    """What is received of a child that ended, or was ended, without a result."""

    why: str


@dataclass(slots=True)
class _Child(Generic[Item]):
    item: Item
    process: ForkProcess
    until: float


def in_children(
    items: Iterable[Item], function: Callable[[Item], Any], jobs: int, seconds: float
) -> Iterator[tuple[Item, Any]]:
    """The items with their results, or :class:`Lost`, in the order in which they end.

    Args:
        items: what to do.
        function: called in a child of this process, which has everything that this one has.
        jobs: children at a time.
        seconds: wall time that each may take.
    """
    waiting = iter(items)
    running: dict[Connection, _Child[Item]] = {}
    try:
        while True:
            while len(running) < jobs:
                try:
                    item = next(waiting)
                except StopIteration:
                    break
                connection, child = _start(item, function, seconds)
                running[connection] = child
            if not running:
                return
            yield from _ended(running)
    finally:
        for child in running.values():
            child.process.kill()
            child.process.join()


def _start(
    item: Item, function: Callable[[Item], Any], seconds: float
) -> tuple[Connection, _Child[Item]]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def work() -> None:
        ours.close()
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
        theirs.send(function(item))
        theirs.close()
        os._exit(0)  # without the parent's clean-up

    process = context.Process(target=work, daemon=True)
    process.start()
    theirs.close()
    return ours, _Child(item, process, time.monotonic() + seconds)


def _ended(running: dict[Connection, _Child[Item]]) -> Iterator[tuple[Item, Any]]:
    """The results of those that end within a second, or whose time is up."""
    for ready in multiprocessing.connection.wait(list(running), timeout=1.0):
        assert isinstance(ready, Connection)
        child = running.pop(ready)
        result: Any = Lost("the process ended without a result")
        with contextlib.suppress(EOFError, OSError):
            result = ready.recv()
        ready.close()
        child.process.join()
        yield child.item, result
    for connection, child in list(running.items()):
        if time.monotonic() > child.until:
            child.process.kill()
            child.process.join()
            connection.close()
            del running[connection]
            yield child.item, Lost("the process took too long")
