from __future__ import annotations

from bentpipe_reference.common.stream import PatternSource, WriteBuffer, pattern
from hypothesis import given, settings
from hypothesis import strategies as st


@given(st.integers(0, 1 << 20), st.integers(0, 200_000))
@settings(max_examples=50)
def test_pattern_when_cut_anywhere_is_the_same_stream(offset: int, size: int) -> None:
    data = pattern(offset, size)
    assert len(data) == size
    for place in {0, size // 2, size - 1} if size else set():
        assert data[place] == (offset + place ^ (offset + place) >> 8) & 0xFF


def test_pattern_source_when_stopped_ends_there() -> None:
    source = PatternSource()
    assert source.end() is None
    source.stop_at(500)
    assert source.end() == 500


def test_write_buffer_when_full_takes_what_fits_and_frees_on_release() -> None:
    buffer = WriteBuffer(10)
    assert buffer.write(b"abcdefgh") == 8
    assert buffer.write(b"ijkl") == 2
    assert (buffer.room, buffer.end(), buffer.read(6, 4)) == (0, 10, b"ghij")
    buffer.release(4)
    assert (buffer.room, buffer.end(), buffer.read(4, 2)) == (4, 10, b"ef")
    assert buffer.write(b"klmnop") == 4
    assert buffer.read(10, 4) == b"klmn"
