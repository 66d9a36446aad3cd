"""The codecs of every protocol, written apart from each other, on any packet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_fuzz.inputs import codecs
from bentpipe_fuzz.inputs.codecs import MADE, Measured, corpus_of, main, report
from bentpipe_fuzz.inputs.covering import minimal
from bentpipe_fuzz.inputs.harness import PROTOCOLS, Disagreement, harness_of
from click.testing import CliRunner

MANY = 4_000
FEW = 20
"""Packets of a corpus that Scapy reads, too."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_codecs_agree_on_packets_that_nobody_wrote(protocol: str) -> None:
    measured = Measured(protocol)
    measured.run(MANY, 7)
    assert measured.problems == []
    assert measured.counts[MADE] == MANY
    # Neither is everything refused, nor is everything taken.
    assert MANY // 5 < measured.taken < MANY * 4 // 5


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_codecs_agree_on_the_corpus(protocol: str) -> None:
    corpus = corpus_of(protocol)
    taken = [harness_of(protocol).agree(packet, layers=True) for packet in corpus[:FEW]]
    taken += [harness_of(protocol).agree(packet) for packet in corpus[FEW:]]
    assert any(taken)
    assert not all(taken)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("codec", ["tester", "layers"])
def test_codec_that_reads_something_else_is_noticed(protocol: str, codec: str) -> None:
    honest = harness_of(protocol)
    read = getattr(honest, codec)

    def dishonest(packet: bytes) -> Any:
        return (read(packet), 1)

    harness = replace(honest, **{codec: dishonest, "undetermined": lambda _: ""})
    packet = next(packet for packet in corpus_of(protocol) if honest.agree(packet))
    with pytest.raises(Disagreement):
        harness.agree(packet, layers=True)


def test_codec_that_breaks_is_told_of_with_its_packet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(_: bytes) -> Any:
        raise IndexError("behind the end")

    monkeypatch.setattr(
        codecs, "harness_of", lambda name: replace(harness_of(name), reference=broken)
    )
    done = CliRunner().invoke(main, ["tcp", "--packets", "64", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "IndexError: behind the end" in done.stderr
    kept = next(tmp_path.iterdir())
    assert kept.name.startswith("tcp-")
    assert f"{kept}:" in done.stderr


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_packet_of_the_corpus_reaches_what_no_smaller_one_does(protocol: str) -> None:
    corpus = corpus_of(protocol)
    assert sorted(minimal(corpus, harness_of(protocol).agree)) == sorted(corpus)


def test_packets_of_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "packet"
    path.write_bytes(corpus_of("stp")[0])
    assert CliRunner().invoke(main, ["stp", str(path)]).exit_code == 0


def test_rates_of_each_codec_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    measured = Measured("tcp")
    measured.run(1_000, 1)
    report(measured)
    told = capsys.readouterr().out
    assert "a second read by the tester alone" in told
    assert "a second made, read by both and compared (at least 50,000" in told
