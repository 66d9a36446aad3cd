"""Files of a bundle: written whole or not at all, read only when they are what they should be."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bentpipe_conformance.evidence import serialization
from bentpipe_conformance.evidence.frames import CaptureError

MOST_OCTETS = 256 << 20
"""Octets that one file of a bundle may have."""


class BundleError(Exception):
    """A bundle cannot be written or trusted; the message is one sentence."""


def digest(octets: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(octets).hexdigest()


def write(path: Path, octets: bytes, *, durable: bool = False) -> None:
    """Write a file that appears whole or not at all; a ``durable`` one survives a power cut.

    Raises:
        BundleError: the disk refuses.
    """
    # The process ID separates the temporary files of two writers; the rename is atomic.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path):
        try:
            with temporary.open("wb") as file:
                file.write(octets)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            temporary.replace(path)
            if durable:
                sync(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def read(path: Path) -> bytes:
    """The content of a regular file; a link is not followed, a pipe not waited for.

    Raises:
        BundleError: it cannot be read, is no regular file, or is too large.
    """
    with explained(path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise BundleError(f"{path} is a symbolic link; a bundle has none.") from error
            raise
        with os.fdopen(handle, "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                raise BundleError(f"{path} is not a regular file; a bundle has no others.")
            if told.st_size > MOST_OCTETS:
                raise BundleError(f"{path} is larger than a bundle's files can be.")
            return file.read(told.st_size)  # a larger number would be allocated at once


def read_json(path: Path) -> serialization.Json:
    """The JSON document in a file.

    Raises:
        BundleError: it cannot be read or is not such a document.
    """
    octets = read(path)
    with decoded(path):
        return serialization.loads(octets.decode("utf-8"))


def sync(path: Path) -> None:
    """Bring a file or directory to the disk.

    Raises:
        BundleError: the disk refuses.
    """
    with explained(path):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def decoded(path: Path) -> Iterator[None]:
    """Say of a document that does not fit its record which file it is."""
    try:
        yield
    except (serialization.RecordError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is damaged: {error}.") from error


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say of what the system refuses which file it is, and the remedy."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "; make room and go on with --resume" if full else ""
        raise BundleError(f"{path}: {error.strerror or error}{remedy}.") from error
    except (CaptureError, ValueError, TypeError, OverflowError) as error:
        raise BundleError(f"{path} cannot be written: {str(error).rstrip('.')}.") from error
