"""Bounds on what reading a file or a bundle from anybody may cost: memory and time, by its size."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from bentpipe_conformance.evidence.files import BundleError, explained

MEMORY = 64 << 20
MEMORY_PER_OCTET = 50
"""Octets of memory beyond those in use at the beginning, and per octet of input."""

SECONDS, SECONDS_PER_MEGABYTE = 120.0, 60.0
"""Wall-clock seconds, and those per 2**20 octets of input; Linux's bundle of 30 MB takes 12 s."""


class BoundError(BundleError):
    """Judging a file would take more than its size permits; the message is one sentence."""


class _TooLong(BaseException):
    """Time is up; not an Exception, so that nothing on the way takes it for something else."""


def size_of(directory: Path) -> int:
    """Octets of the regular files in a directory, links not followed.

    Raises:
        BundleError: it cannot be read.
    """
    total = 0
    with explained(directory):
        for place, _, names in os.walk(directory):
            for name in names:
                total += os.lstat(os.path.join(place, name)).st_size
    return total


@contextlib.contextmanager
def bounded(octets: int) -> Iterator[None]:
    """Let what reads so many octets of input have so much memory and time, and no more.

    Raises:
        BoundError: it wants more.
    """
    seconds = SECONDS + SECONDS_PER_MEGABYTE * octets / (1 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _in_use() + MEMORY + MEMORY_PER_OCTET * octets
    lowered = soft if soft != resource.RLIM_INFINITY and soft < most else most
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, _alarm) if main else None
    resource.setrlimit(resource.RLIMIT_DATA, (lowered, hard))
    try:
        if main:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    except _TooLong:
        raise BoundError(
            f"It was not judged within {seconds:.0f} s; nothing that a run leaves takes so long."
        ) from None
    except MemoryError:
        room = (MEMORY + MEMORY_PER_OCTET * octets) >> 20
        raise BoundError(
            f"Judging it takes more than {room} MB of memory; nothing that a run leaves takes so "
            "much."
        ) from None
    finally:
        if main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise _TooLong


def _in_use() -> int:
    """Octets of data of this process, as the limit counts them (VmData)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
