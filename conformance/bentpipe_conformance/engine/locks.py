"""Lock files."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_lock(path: Path) -> int:
    """Open a lock file, made if it is not there; a link is not followed, a pipe not waited for.

    Raises:
        OSError: it is no regular file, or the system refuses.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "A lock has to be a regular file", str(path))
    return handle
