"""Files from anybody: the corpus, mutations of it, and octets that nobody wrote."""

from __future__ import annotations

import os
import random
from mmap import mmap
from pathlib import Path

import pytest
from bentpipe_fuzz.inputs.__main__ import tried
from bentpipe_fuzz.inputs.shaped import drawn
from bentpipe_fuzz.inputs.targets import CORPUS, TARGETS, packed, unpack
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.long
FEW = int(os.environ.get("BENTPIPE_INPUTS", "25"))


def corpus_of(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_corpus_and_its_mutations_break_nothing(target: str) -> None:
    corpus, draw = corpus_of(target), random.Random(7)
    assert corpus
    for octets in (*corpus, *(drawn(target, corpus, draw) for _ in range(FEW))):
        assert tried(TARGETS[target], octets).problem == ""


def test_every_suite_judges_captures_of_the_corpus_and_its_bundles_are_judged() -> None:
    words = {
        tried(TARGETS[kind], octets).word
        for kind in ("pcap", "pcapng", "bundle")
        for octets in corpus_of(kind)
    }
    assert {"judged as snr", "judged as stp", "contradicted"} <= words


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_octets_that_nobody_wrote_break_nothing(target: str) -> None:
    @settings(max_examples=FEW, deadline=None)
    @given(st.binary(max_size=400))
    def each(octets: bytes) -> None:
        assert tried(TARGETS[target], octets).problem == ""

    each()


def test_target_that_fails_is_told_of() -> None:
    def broken(octets: bytes) -> str:
        raise KeyError(octets)

    def hungry(_: bytes) -> str:
        return f"{len(bytearray(300 << 20))}"

    def modest(_: bytes) -> str:
        fresh = mmap(-1, 32 << 20)  # memory that the heap has kept would not count
        for _ in range(32):
            fresh.write(bytes([1]) * (1 << 20))
        return f"{len(fresh)}"

    assert "KeyError" in tried(broken, b"x").problem
    assert "memory" in tried(hungry, b"x").problem
    done = tried(modest, b"x")
    assert not done.problem
    assert 0.4 < done.share < 0.7


def test_bundle_packed_and_unpacked_is_the_same(tmp_path: Path) -> None:
    octets = (CORPUS / "bundle" / "snr.bundle").read_bytes()
    assert unpack(octets, tmp_path / "bundle")
    assert packed(tmp_path / "bundle") == octets
    assert not unpack(b'[["../x", 1]]\nx', tmp_path / "other")
    assert not (tmp_path / "x").exists()
