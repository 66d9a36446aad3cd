from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.common.services import Discard, Echo


class Pipe:
    """A stream with little room to write, and a peer that may have closed."""

    def __init__(self, arrived: bytes, room: int, *, closed: bool) -> None:
        self.arrived, self.write_room, self.peer_has_closed = arrived, room, closed
        self.written = b""
        self.closed_at: tuple[float, ...] | None = None

    @property
    def readable(self) -> int:
        return len(self.arrived)

    def read(self, octets: int | None = None) -> bytes:
        data, self.arrived = self.arrived[:octets], b"" if octets is None else self.arrived[octets:]
        return data

    def write(self, data: bytes, *_now: Any, **_: Any) -> int:
        self.written += data
        self.write_room -= len(data)
        return len(data)

    def close(self, *now: Any, **_: Any) -> None:
        self.closed_at = now


@pytest.mark.parametrize("closed", [False, True])
def test_echo_when_room_runs_out_keeps_the_rest_and_stays_open(closed: bool) -> None:
    pipe = Pipe(b"abcdef", 4, closed=closed)
    Echo().run(pipe, 1.5)
    assert (pipe.written, pipe.arrived, pipe.closed_at) == (b"abcd", b"ef", None)


def test_echo_when_all_is_returned_closes_after_the_peer() -> None:
    pipe = Pipe(b"abc", 4, closed=True)
    Echo().run(pipe, 1.5)
    assert (pipe.written, pipe.closed_at) == (b"abc", (1.5,))


@pytest.mark.parametrize(("closed", "expected"), [(False, None), (True, ())])
def test_discard_reads_all_and_closes_after_the_peer(
    closed: bool, expected: tuple[float, ...] | None
) -> None:
    pipe = Pipe(b"abc", 4, closed=closed)
    Discard().run(pipe)
    assert (pipe.arrived, pipe.written, pipe.closed_at) == (b"", b"", expected)
