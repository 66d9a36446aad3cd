"""Octets from a file or pipe into a connection, and out of one: users of connections.

Neither blocks the loop: a pipe is read and written only when it is ready, and until then the
connection's credit holds the peer back.
"""

from __future__ import annotations

import hashlib
import os
import select
import stat
from collections.abc import Callable

from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.io.loop import Loop

PIECE = 1 << 18
"""Octets read or written at a time."""

PIPE_BUF = 4096
"""What a pipe takes without blocking once it is writable."""


class _Flow:
    """Octets between a descriptor and a connection.

    Attributes:
        octets: read from the descriptor, or from the connection, so far.
        digest: SHA-256 of them.
        error: why the descriptor failed; the connection is then aborted.
    """

    def __init__(self, loop: Loop, descriptor: int, connection: Connection) -> None:
        self.octets = 0
        self.digest = hashlib.sha256()
        self.error: OSError | None = None
        self._loop = loop
        self._descriptor = descriptor
        self._connection = connection
        self._rest = memoryview(b"")
        self._watching = False

    def _count(self, data: bytes) -> None:
        self.octets += len(data)
        self.digest.update(data)
        self._rest = memoryview(data)

    def _watch(self, action: Callable[[], None], *, writing: bool = False) -> None:
        if not self._watching:
            self._watching = True
            self._loop.watch(self._descriptor, action, writing=writing)

    def _fail(self, error: OSError) -> None:
        self.error = error
        if not self._connection.is_over:
            self._connection.abort(self._loop.clock())

    def stop(self) -> None:
        """Leave the descriptor alone."""
        if self._watching:
            self._watching = False
            self._loop.unwatch(self._descriptor)


class Upload(_Flow):
    """Feeds a connection from a descriptor, and closes it at the end of that."""

    def __init__(self, loop: Loop, descriptor: int, connection: Connection) -> None:
        """Begin to read; what is available already travels with the BEGIN."""
        super().__init__(loop, descriptor, connection)
        self._ended = False
        self._watch(self._read)
        if select.select([descriptor], [], [], 0)[0]:
            self._read()

    def resume(self) -> None:
        """There is room again."""
        if self._ended or self._watching:
            return
        if self._rest:
            self._rest = self._rest[self._connection.write(self._rest) :]
        if not self._rest:
            self._watch(self._read)

    def stop(self) -> None:
        """Read no more; the stream ends where it is."""
        self._ended = True
        super().stop()

    def _read(self) -> None:
        if self._connection.is_over:
            self.stop()
            return
        try:
            data = os.read(self._descriptor, PIECE)
        except OSError as error:
            self.stop()
            self._fail(error)
            return
        if data:
            self._count(data)
            self._rest = self._rest[self._connection.write(data) :]
            if self._rest:
                super().stop()
        else:
            self.stop()
            self._connection.close()


class Download(_Flow):
    """Writes what a connection delivers to a descriptor.

    Args:
        loop: the loop.
        descriptor: where to write.
        connection: the connection to read.
        finish: called once all has been written and the peer's stream has ended.

    Attributes:
        finished: whether ``finish`` has been called.
    """

    def __init__(
        self, loop: Loop, descriptor: int, connection: Connection, finish: Callable[[], None]
    ) -> None:
        super().__init__(loop, descriptor, connection)
        self.finished = False
        self._finish = finish
        self._waits = _may_wait(descriptor)

    def drain(self) -> None:
        """Read and write as much as is possible now."""
        connection = self._connection
        while self.error is None and not self._watching:
            if not self._rest:
                data = connection.read(PIECE)
                if not data:
                    break
                self._count(data)
            self._write()
        at_end = connection.peer_has_closed and not connection.readable
        if self.error is None and not self._rest and at_end and not self.finished:
            self.finished = True
            try:
                self._finish()
            except OSError as error:
                self._fail(error)

    @property
    def busy(self) -> bool:
        """Whether something delivered has not been written yet."""
        return self.error is None and bool(self._rest or self._connection.readable)

    def _write(self) -> None:
        """Write as much as is possible; watch for room where there is none."""
        descriptor = self._descriptor
        try:
            while self._rest:
                piece = self._rest
                if self._waits:
                    if not select.select([], [descriptor], [], 0)[1]:
                        self._watch(self._writable, writing=True)
                        return
                    piece = piece[:PIPE_BUF]
                self._rest = self._rest[os.write(descriptor, piece) :]
        except OSError as error:
            self._fail(error)

    def _writable(self) -> None:
        self.stop()
        self.drain()


def _may_wait(descriptor: int) -> bool:
    """Whether writing may block: not into a file, nor where everything disappears."""
    found = os.fstat(descriptor)
    return not stat.S_ISREG(found.st_mode) and not os.path.samestat(found, os.stat(os.devnull))


class Transfer:
    """Uses one connection until it is over: sends, receives, or both.

    Data received without a :class:`Download` is discarded.

    Attributes:
        upload, download: the directions, None for those not used.
        connection: the connection.
    """

    def __init__(self, connection: Connection) -> None:
        self.upload: Upload | None = None
        self.download: Download | None = None
        self.connection = connection

    @property
    def busy(self) -> bool:
        """Whether something delivered has not been written yet."""
        return self.download is not None and self.download.busy

    @property
    def error(self) -> OSError | None:
        """Why a file failed, None if none did."""
        parts = (self.upload, self.download)
        return next((part.error for part in parts if part is not None and part.error), None)

    @property
    def digest(self) -> str:
        """SHA-256 of what was sent, or if nothing was, of what was received."""
        part = self.upload or self.download
        return "" if part is None else part.digest.hexdigest()

    def stop(self) -> None:
        """Leave the files alone."""
        for part in (self.upload, self.download):
            if part is not None:
                part.stop()

    def run(self, connection: Connection) -> None:
        """See :class:`~bentpipe_reference.stp.services.Service`."""
        if self.download is not None:
            self.download.drain()
        else:
            connection.read()
            if connection.peer_has_closed and self.upload is None:
                connection.close()
        if connection.is_over:
            if self.upload is not None:
                self.upload.stop()
        elif self.upload is not None:
            self.upload.resume()
