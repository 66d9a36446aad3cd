from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.benchmarks import boxes, captures, stp_codecs, suites, tcp_codecs
from bentpipe_conformance.benchmarks.__main__ import BENCHMARKS, main
from bentpipe_conformance.benchmarks.model import Report, at_least, below, median_of
from bentpipe_reference.tcp.wire import parse_packet
from click.testing import CliRunner


def test_figures_know_whether_their_target_is_met() -> None:
    assert at_least("rate", 20.0, 20).met
    assert not at_least("rate", 19.9, 20).met
    assert below("seconds", 1.4, 1.5).met
    assert not below("seconds", 1.5, 1.5).met


def test_boxes_need_rights_and_only_ours_has_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes.os, "geteuid", lambda: 1000)
    assert "needs root" in boxes.boxes(1).skipped
    monkeypatch.setattr(boxes.os, "geteuid", lambda: 0)
    monkeypatch.setattr(boxes, "_measured", lambda _: boxes._Found(200.0, 350.0, 12_000.0))
    figures = {figure.name: figure.met for figure in boxes.boxes(2).figures}
    ours = [met for name, met in figures.items() if name.startswith("pep run --sockets")]
    assert ours == [False, False, True]
    others = {met for name, met in figures.items() if not name.startswith("pep run --sockets")}
    assert others == {None}


def test_median_of_repetitions_ignores_an_outlier() -> None:
    values = iter([1.0, 50.0, 2.0])
    assert median_of(3, lambda: next(values)) == 2.0


def test_codecs_are_compared_on_the_same_octets() -> None:
    """What Scapy builds is what our codecs dissect and build."""
    for packet in tcp_codecs.packets()[:4]:
        built = bytes(tcp_codecs.scapy_layers(parse_packet(packet))())
        assert parse_packet(built) == parse_packet(packet)
        assert len(built) == len(packet)


def test_stp_codecs_are_compared_on_the_same_octets() -> None:
    for packet in stp_codecs.packets()[:6]:
        assert bytes(stp_codecs.scapy_layers(packet)()) == stp_codecs.octets(packet)


def test_codec_benchmark_prints_a_ratio_and_the_machine() -> None:
    result = CliRunner().invoke(main, ["--only", "codec", "--repeat", "1", "--json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    figures = document["benchmarks"]["codec"]["figures"]
    assert figures[0]["name"] == "times Scapy's rate"
    assert figures[0]["value"] > 1
    assert int(document["machine"]["cores"]) >= 1


@pytest.mark.parametrize("name", ["stp-codec", "stp-tester-codec"])
def test_stp_codec_benchmark_prints_a_ratio(name: str) -> None:
    result = CliRunner().invoke(main, ["--only", name, "--repeat", "1", "--json"])
    assert result.exit_code == 0
    figures = json.loads(result.stdout)["benchmarks"][name]["figures"]
    assert figures[0]["name"] == "times Scapy's rate"
    assert figures[0]["value"] > 1


def test_benchmark_without_a_virtual_time_kernel_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**_: object) -> None:
        raise BedError("there is no kernel; run 'bentpipe bed build'")

    monkeypatch.setattr(suites, "make_plan", refuse)
    result = CliRunner().invoke(main, ["--only", "certify"])
    assert result.exit_code == 0
    assert "skipped: there is no kernel; run 'bentpipe bed build'" in result.stdout


def test_broken_benchmark_costs_no_other_one_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> Report:
        raise RuntimeError("no such file")

    monkeypatch.setattr(tcp_codecs, "reference_codec", fail)
    monkeypatch.setattr(tcp_codecs, "tester_codec", lambda _: Report("nothing, quickly"))
    asked = ["--only", "codec", "--only", "tester-codec"]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 1
    assert "error: codec: RuntimeError: no such file" in result.stderr
    assert "tester-codec: nothing, quickly" in result.stdout
    document = json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)
    assert document["errors"] == {"codec": "RuntimeError: no such file"}
    assert list(document["benchmarks"]) == ["tester-codec"]


def test_peak_of_memory_is_not_that_of_the_process_it_was_forked_from() -> None:
    large = b"x" * (200 << 20)
    script = "from bentpipe_conformance.benchmarks.model import peak_octets; print(peak_octets())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert 1 << 20 < int(done.stdout) < len(large) // 2


def test_command_that_is_refused_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="is not a file"):
        captures._judged(tmp_path / "none.pcapng")


def test_every_benchmark_exists() -> None:
    for benchmark in BENCHMARKS.values():
        path = Path(suites.__file__).with_name(f"{benchmark.module}.py")
        assert f"def {benchmark.function}(" in path.read_text(encoding="utf-8")
