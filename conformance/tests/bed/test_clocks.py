"""Telling a clock that was set from a process that was stopped."""

from bentpipe_conformance.bed import clocks

SECOND = 1_000_000_000
START = (5 * SECOND, 900 * SECOND, 5 * SECOND + 200)


def test_both_clocks_went_on_alike_nothing_was_set() -> None:
    assert not clocks.was_set(START, (9 * SECOND, 904 * SECOND, 9 * SECOND + 200))


def test_stopped_between_the_clocks_nothing_was_set() -> None:
    late = 300_000_000
    assert not clocks.was_set(START, (9 * SECOND, 904 * SECOND + late, 9 * SECOND + late))
    begun_late = (5 * SECOND, 900 * SECOND + late, 5 * SECOND + late)
    assert not clocks.was_set(begun_late, (9 * SECOND, 904 * SECOND, 9 * SECOND + 200))


def test_real_time_jumps_it_was_set() -> None:
    for jump in (-SECOND, -2_000_000, 2_000_000, SECOND):
        end = (9 * SECOND, 904 * SECOND + jump, 9 * SECOND + 200)
        assert clocks.was_set(START, end), jump


def test_two_looks_in_a_row_nothing_was_set() -> None:
    assert not clocks.was_set(clocks.look(), clocks.look())
