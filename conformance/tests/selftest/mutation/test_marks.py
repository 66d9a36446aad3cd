"""Lines and mutants as bits."""

from __future__ import annotations

from bentpipe_conformance.selftest.mutation.marks import Marks

MARKS = Marks({"m": 3, "n": 2}, ["m:x:0", "n:y:0"])


def test_every_line_has_a_bit_of_its_own() -> None:
    lines = [("m", 1), ("m", 2), ("m", 3), ("n", 1), ("n", 2)]
    assert len({MARKS.lines([item]) for item in lines}) == len(lines)
    assert MARKS.lines(lines).bit_count() == len(lines)


def test_span_is_its_lines_and_no_others() -> None:
    assert MARKS.span("m", (2, 3)) == MARKS.lines([("m", 2), ("m", 3)])
    assert not MARKS.span("m", (1, 3)) & MARKS.span("n", (1, 2))


def test_mutants_have_bits_of_their_own() -> None:
    assert MARKS.mutants(["m:x:0", "n:y:0"]).bit_count() == 2
    assert not MARKS.mutants(["m:x:0"]) & MARKS.mutants(["n:y:0"])
