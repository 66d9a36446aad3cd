from __future__ import annotations

from typing import Any

from bentpipe_reference.common.subject import Call
from bentpipe_reference.common.users import Caller


class Sink:
    """A stream that takes everything and notes what happens to it."""

    readable, write_room, peer_has_closed = 0, 1000, False

    def __init__(self) -> None:
        self.said: list[object] = []

    def read(self, octets: int | None = None) -> bytes:
        return b""

    def write(self, data: bytes, *now: Any, **_: Any) -> int:
        self.said.append((len(data), *now))
        return len(data)

    def close(self, *now: Any, **_: Any) -> None:
        self.said.append(("close", *now))

    def abort(self) -> None:
        self.said.append("abort")


def call(*, octets: int = 5, aborts: bool = False, endless: bool = False) -> Call:
    return Call(0.0, 9, octets, 3, 100, ends_at=9.0, aborts=aborts, endless=endless)


def after(user: Caller, *times: float) -> list[object]:
    sink = Sink()
    for time in times:
        user.go_on(sink, time, sink.abort)
    return sink.said


def test_caller_writes_piece_by_piece_then_closes() -> None:
    assert after(Caller(call()), 0.0, 1.0) == [(3,), (2,), ("close",)]


def test_caller_of_an_endless_service_closes_at_the_latest_time() -> None:
    assert after(Caller(call(octets=0, endless=True)), 0.0, 9.0) == [("close",)]


def test_caller_that_aborts_writes_nothing_more() -> None:
    assert after(Caller(call(aborts=True)), 9.0) == ["abort"]


def test_time_is_handed_to_a_stream_that_asks_for_it() -> None:
    sink = Sink()
    Caller(call(octets=2)).go_on(sink, 1.5, sink.abort, 1.5)
    assert sink.said == [(2, 1.5), ("close", 1.5)]
