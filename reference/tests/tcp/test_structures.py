"""Sequence arithmetic, scoreboard and reassembly against naive models."""

from __future__ import annotations

from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.scoreboard import Scoreboard
from bentpipe_reference.tcp.stream import PatternSource, WriteBuffer, pattern
from bentpipe_reference.tcp.wire.sequence import before, difference, unwrap, wrap
from hypothesis import given, settings
from hypothesis import strategies as st

far = st.integers(0, 1 << 40)
ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=25)


@given(far, st.integers(-(1 << 31), (1 << 31) - 1))
def test_unwrap_when_within_half_the_space_returns_the_number(near: int, offset: int) -> None:
    assert unwrap(wrap(near + offset), near) == near + offset


@given(far, st.integers(1, (1 << 31) - 1))
def test_before_when_numbers_wrap_still_orders(number: int, step: int) -> None:
    assert before(wrap(number), wrap(number + step))
    assert not before(wrap(number + step), wrap(number))
    assert difference(wrap(number + step), wrap(number)) == step


def runs(held: set[int]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for number in sorted(held):
        if result and result[-1][1] == number:
            result[-1] = result[-1][0], number + 1
        else:
            result.append((number, number + 1))
    return result


@given(ranges, st.integers(0, 75), st.integers(0, 75), st.integers(1, 4), st.integers(0, 20))
@settings(max_examples=200)
def test_scoreboard_when_ranges_are_added_matches_a_set(
    added: list[tuple[int, int]], edge: int, start: int, count: int, octets: int
) -> None:
    board, model = Scoreboard(), set[int]()
    for left, size in added:
        new = set(range(left, left + size)) - model
        model |= new
        assert board.add(left, left + size) == len(new)
    board.discard_below(edge)
    model = {number for number in model if number >= edge}
    assert board.ranges == runs(model)
    assert board.octets == len(model)
    assert board.highest == (max(model) + 1 if model else None)
    assert board.octets_below(start) == len([number for number in model if number < start])
    missing = [number for number in range(start, 80) if number not in model]
    end = next((n for n in range(missing[0], 80) if n in model), 80)
    assert board.next_hole(start, 80) == (missing[0], end)
    lost = board.loss_edge(count, octets)
    for number in range(80):
        above = {held for held in model if held > number}
        if number not in model:
            is_lost = len(runs(above)) >= count or len(above) > octets
            assert (lost is not None and number < lost) is is_lost


@given(ranges, st.lists(st.integers(1, 30), max_size=8))
@settings(max_examples=200)
def test_reassembly_when_pieces_overlap_yields_the_stream(
    pieces: list[tuple[int, int]], reads: list[int]
) -> None:
    stream = pattern(12_345, 100)
    buffer, arrived, taken = Reassembly(0), set[int](), b""
    for number, (left, size) in enumerate(pieces):
        known = set(range(left, left + size)) <= arrived
        assert buffer.covered(left, left + size) is known
        buffer.insert(left, stream[left : left + size])
        arrived |= set(range(left, left + size))
        expected = next(n for n in range(101) if n not in arrived)
        assert buffer.rcv_nxt == expected
        assert sorted(buffer.blocks) == runs({n for n in arrived if n >= expected})
        if left > expected:
            assert buffer.blocks[0][0] <= left < buffer.blocks[0][1]
        if number < len(reads):
            data = buffer.read(reads[number])
            assert len(data) <= reads[number]
            taken += data
    assert len(taken) + buffer.unread == buffer.rcv_nxt
    assert taken + buffer.read() == stream[: buffer.rcv_nxt]


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
