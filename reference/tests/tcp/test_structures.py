"""Scoreboard and reassembly against naive models."""

from __future__ import annotations

from bentpipe_reference.common.stream import pattern
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.scoreboard import Scoreboard
from hypothesis import given, settings
from hypothesis import strategies as st

ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=25)


def runs(held: set[int]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for number in sorted(held):
        if result and result[-1][1] == number:
            result[-1] = result[-1][0], number + 1
        else:
            result.append((number, number + 1))
    return result


@given(ranges, st.integers(0, 75), st.integers(1, 4), st.integers(0, 20))
@settings(max_examples=200)
def test_scoreboard_when_ranges_are_added_matches_a_set(
    added: list[tuple[int, int]], edge: int, count: int, octets: int
) -> None:
    board, model = Scoreboard(), set[int]()
    for left, size in added:
        new = set(range(left, left + size)) - model
        model |= new
        assert board.add(left, left + size) == len(new)
    board.remove_below(edge)
    model = {number for number in model if number >= edge}
    assert list(board.snapshot()) == runs(model)
    assert board.highest == (max(model) + 1 if model else 0)
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
