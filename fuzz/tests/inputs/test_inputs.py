"""Files from anybody: the corpus, mutations of it, and octets that nobody wrote."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bentpipe_fuzz.inputs.__main__ import tried
from bentpipe_fuzz.inputs.mutation import mutated
from bentpipe_fuzz.inputs.targets import CORPUS, TARGETS, packed, unpack
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.long
FEW = 25


def corpus_of(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_corpus_and_its_mutations_break_nothing(target: str) -> None:
    corpus, draw = corpus_of(target), random.Random(7)
    assert corpus
    for octets in (*corpus, *(mutated(draw.choice(corpus), corpus, draw) for _ in range(FEW))):
        assert tried(TARGETS[target], octets) == ""


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_octets_that_nobody_wrote_break_nothing(target: str) -> None:
    @settings(max_examples=FEW, deadline=None)
    @given(st.binary(max_size=400))
    def each(octets: bytes) -> None:
        assert tried(TARGETS[target], octets) == ""

    each()


def test_target_that_fails_is_told_of() -> None:
    def broken(octets: bytes) -> None:
        raise KeyError(octets)

    def hungry(_: bytes) -> None:
        bytearray(300 << 20)

    assert "KeyError" in tried(broken, b"x")
    assert "memory" in tried(hungry, b"x")


def test_bundle_packed_and_unpacked_is_the_same(tmp_path: Path) -> None:
    octets = (CORPUS / "bundle" / "snr.bundle").read_bytes()
    assert unpack(octets, tmp_path / "bundle")
    assert packed(tmp_path / "bundle") == octets
    assert not unpack(b'[["../x", 1]]\nx', tmp_path / "other")
    assert not (tmp_path / "x").exists()
