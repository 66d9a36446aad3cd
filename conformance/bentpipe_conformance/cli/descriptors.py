"""Standard input and output, and files, as descriptors for a transfer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bentpipe_conformance.cli.outcome import USAGE, Failure


def standard(which: str) -> int:
    """The descriptor of standard input or output."""
    stream = sys.stdin if which == "input" else sys.stdout
    if stream is None:
        raise Failure(f"standard {which} is closed; open it or give a file.", USAGE)
    return stream.fileno()


@contextlib.contextmanager
def opened(file: str, flags: int) -> Iterator[int]:
    """A descriptor of a file, or of standard input."""
    if file == "-":
        yield standard("input")
        return
    try:
        descriptor = os.open(file, flags | os.O_CLOEXEC, 0o666)
    except OSError as error:
        remedy = "check its name and permissions."
        raise Failure(f"{file} cannot be opened ({error.strerror}); {remedy}", USAGE) from None
    try:
        if os.path.isdir(file):
            raise Failure(f"{file} is a directory; give a file, or pipe `tar c` into -.", USAGE)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def written(target: str | None) -> Iterator[tuple[int, Callable[[], None]]]:
    """Where to write, and what to call when everything has been written.

    A file is called ``target.part`` until then.
    """
    if target is None:
        yield standard("output"), lambda: None
        return
    if os.path.exists(target) and not os.path.isfile(target):
        # A device or a named pipe is written to, never replaced.
        with opened(target, os.O_WRONLY) as descriptor:
            yield descriptor, lambda: None
        return
    # The target of a symbolic link is replaced, not the link.
    target = os.path.realpath(target)
    part = f"{target}.part"
    # Whoever may write here could lead it elsewhere by a symbolic link.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with opened(part, flags) as descriptor:

        def finish() -> None:
            os.fsync(descriptor)
            os.replace(part, target)

        yield descriptor, finish
    with contextlib.suppress(OSError):
        if os.path.getsize(part) == 0:
            os.unlink(part)


def next_name(out: Path, number: int) -> Path:
    """The first free name ``received-0001`` and so on in ``out``, from ``number`` on."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "give another directory."
        raise Failure(f"{out} cannot be made ({error.strerror}); {remedy}", USAGE) from None
    while (found := out / f"received-{number:04}").exists():
        number += 1
    return found
