"""The whole pipeline on the simulated reference: run, resume, verify, tamper."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle, BundleError, case_directory
from bentpipe_conformance.evidence.tool import source_digest
from bentpipe_conformance.run import completeness, plan
from click.testing import CliRunner

CASE = "snr/fast-retransmit/established-third-duplicate-acknowledgment"
GROUP = "snr/fast-retransmit/*"


def command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(bentpipe, words, catch_exceptions=False)
    return result.exit_code, result.stdout or result.stderr


def certify(out: Path, *more: str, only: str = CASE) -> tuple[int, str]:
    return command("certify", "reference", "--only", only, "--out", str(out), "--seed", "3", *more)


@pytest.fixture(autouse=True)
def small_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of one case."""
    monkeypatch.setattr(completeness, "whole_suite", lambda *_: (CASE,))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "bundle"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completeness, "whole_suite", lambda *_: (CASE,))
        status, output = certify(out, "--json")
    assert status == 0, output
    return out


def test_certified_reference_leaves_a_complete_bundle(bundle: Path) -> None:
    result = json.loads((bundle / "result.json").read_text())
    assert result["verdict"] == "pass"
    assert result["partial"] is False
    assert result["summary"]["fail"] == 0
    assert [case["id"] for case in result["cases"]] == [CASE]
    assert {"SNR-FR-001", "SNR-FR-002"} <= {row["id"] for row in result["requirements"]}
    for name in ("run.json", "junit.xml", "report.html", "manifest.sha256"):
        assert (bundle / name).stat().st_size
    for point in ("iut", "peer"):
        assert (bundle / "cases" / case_directory(CASE) / f"{point}.pcapng").stat().st_size


def test_plan_says_what_is_run_by_what(bundle: Path) -> None:
    run = json.loads((bundle / "run.json").read_text())
    assert run["cases"] == [CASE]
    assert run["source"] == source_digest()
    assert len(run["requirements"]) == 64
    assert run["iut"]["bundled"] is True
    assert run["iut"]["attached"] == {"kind": "in-process", "variant": "sack-newreno-rfc"}
    assert [Path(name).name for name in run["iut"]["files"]] == ["reference.toml"]
    case = json.loads((bundle / "cases" / case_directory(CASE) / "case.json").read_text())
    assert case["run"] == json.loads((bundle / "result.json").read_text())["run"]


def test_run_of_chosen_cases_is_partial_everywhere(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completeness, "whole_suite", lambda *_: (CASE, "snr/a", "snr/b"))
    out = tmp_path / "bundle"
    status, output = certify(out)
    assert status == 3
    sentence = "1 of the suite's 3 cases were chosen"
    assert f"this run is partial, and certifies nothing: {sentence}" in output
    assert "verdict: partial " in output
    result = json.loads((out / "result.json").read_text())
    assert (result["verdict"], result["partial"]) == ("inconclusive", True)
    assert result["partial_because"] == [sentence]
    report = (out / "report.html").read_text()
    assert "This run is partial: 1 of the suite&#39;s 3 cases were chosen." in report
    assert '<p class="verdict">partial</p>' in report
    assert ": partial, inconclusive · bentpipe</title>" in report
    junit = ElementTree.parse(out / "junit.xml").getroot()
    assert junit.get("errors") == "1"
    assert junit.find(".//error").get("message") == f"the run is partial: {sentence}"
    status, output = command("verify", str(out), "--json")
    assert status == 3
    said = json.loads(output)
    assert said["doubts"] == [f"the run is partial: {sentence}"]
    assert (said["differences"], said["agrees"]) == ([], False)


def test_verify_of_an_untouched_bundle_agrees(bundle: Path) -> None:
    status, output = command("verify", str(bundle), "--json")
    assert status == 0
    assert json.loads(output)["agrees"] is True


def copied(bundle: Path, folder: Path) -> Path:
    return shutil.copytree(bundle, folder / "copy")


def test_verify_of_a_changed_capture_is_refused(bundle: Path, tmp_path: Path) -> None:
    copy = copied(bundle, tmp_path)
    capture = copy / "cases" / case_directory(CASE) / "iut.pcapng"
    octets = bytearray(capture.read_bytes())
    octets[-20] ^= 1
    capture.write_bytes(octets)
    result = CliRunner().invoke(bentpipe, ["verify", str(copy)], standalone_mode=True)
    assert result.exit_code == 3
    assert "iut.pcapng" in result.output


def test_verify_of_forged_verdicts_with_a_forged_manifest_disagrees(
    bundle: Path, tmp_path: Path
) -> None:
    copy = copied(bundle, tmp_path)
    opened = Bundle.open(copy)
    record = opened.case(CASE)
    path = copy / "cases" / case_directory(CASE) / "case.json"
    path.write_text(path.read_text().replace('"verdict": "pass"', '"verdict": "fail"'))
    opened.seal({})
    status, output = command("verify", str(copy), "--json")
    assert status == 1, output
    differences = json.loads(output)["differences"]
    place = f"cases/{case_directory(record.id)}/case.json.verdict"
    assert {"place": place, "stored": "fail", "found": "pass"} in differences


def test_verify_of_a_bundle_with_rules_of_another_release_is_refused(
    bundle: Path, tmp_path: Path
) -> None:
    copy = copied(bundle, tmp_path)
    path = copy / "run.json"
    path.write_text(path.read_text().replace('"profile": "rfc"', '"profile": "rfc-2019"'))
    Bundle.open(copy).seal({})
    result = CliRunner().invoke(bentpipe, ["verify", str(copy)])
    assert result.exit_code == 3
    assert "the profile 'rfc-2019', which this release does not have" in result.output


def test_second_run_into_the_same_directory_is_refused(bundle: Path) -> None:
    result = CliRunner().invoke(
        bentpipe, ["certify", "reference", "--only", CASE, "--out", str(bundle)]
    )
    assert result.exit_code == 3
    assert "--resume" in result.output


def unsealed(bundle: Path, folder: Path) -> Path:
    copy = copied(bundle, folder)
    (copy / "manifest.sha256").unlink()
    (copy / "result.json").unlink()
    return copy


def test_interrupted_run_is_resumed_without_repeating_cases(bundle: Path, tmp_path: Path) -> None:
    out = unsealed(bundle, tmp_path)
    first = (out / "cases" / case_directory(CASE) / "case.json").stat().st_mtime_ns
    status, said = command("verify", str(out))
    assert (status, "the run was not finished" in said) == (3, True)
    # Without --seed: that of the run.
    words = ("certify", "reference", "--only", CASE, "--out", str(out), "--resume")
    assert command(*words)[0] == 0
    assert (out / "cases" / case_directory(CASE) / "case.json").stat().st_mtime_ns == first
    assert json.loads((out / "result.json").read_text())["summary"]
    assert command("verify", str(out))[0] == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--only", GROUP), "1 planned cases, of which 1 are asked"),
        (("--only", CASE, "--seed", "4"), "seed 3 not 4"),
        (("--only", CASE, "--link", "lan"), "link geo not lan"),
    ],
)
def test_resume_of_another_plan_is_refused(
    bundle: Path, tmp_path: Path, words: Sequence[str], why: str
) -> None:
    out = unsealed(bundle, tmp_path)
    said = CliRunner().invoke(
        bentpipe, ["certify", "reference", "--out", str(out), "--resume", *words]
    )
    assert said.exit_code == 3
    assert why in said.output


def test_resume_after_another_source_is_refused(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = unsealed(bundle, tmp_path)
    monkeypatch.setattr(plan, "source_digest", lambda: "f" * 64)
    words = ["certify", "reference", "--only", CASE, "--out", str(out), "--resume"]
    said = CliRunner().invoke(bentpipe, words)
    assert said.exit_code == 3
    assert "not ffffffffffff" in said.output


def test_case_that_broke_is_tried_again_and_kept(bundle: Path, tmp_path: Path) -> None:
    out = unsealed(bundle, tmp_path)
    opened = Bundle.open(out)
    record = opened.case(CASE)
    shutil.rmtree(out / "cases" / case_directory(CASE))
    broken = Finding("SNR-FR-001", Verdict.ERROR, (), "the disk was full")
    opened.add_case(
        replace(record, verdict=Verdict.ERROR, error="the disk was full", findings=(broken,)), ()
    )
    words = ("certify", "reference", "--only", CASE, "--out", str(out), "--resume")
    assert command(*words)[0] == 0
    kept = json.loads((out / "attempts" / "1" / case_directory(CASE) / "case.json").read_text())
    assert kept["error"] == "the disk was full"
    assert json.loads((out / "cases" / case_directory(CASE) / "case.json").read_text())["session"]
    assert command("verify", str(out))[0] == 0


def test_damaged_case_of_an_interrupted_run_is_run_again(bundle: Path, tmp_path: Path) -> None:
    out = unsealed(bundle, tmp_path)
    capture = out / "cases" / case_directory(CASE) / "peer.pcapng"
    capture.write_bytes(capture.read_bytes()[:100])
    words = ("certify", "reference", "--only", CASE, "--out", str(out), "--resume")
    assert command(*words)[0] == 0
    assert command("verify", str(out))[0] == 0


def test_verdict_that_stands_is_not_replaced(bundle: Path, tmp_path: Path) -> None:
    opened = Bundle.open(copied(bundle, tmp_path))
    with pytest.raises(BundleError, match="has its verdict already, which is never replaced"):
        opened.add_case(opened.case(CASE), ())


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (["certify", "no-such-stack"], "no implementation"),
        (["certify", "reference", "--link", "no-such-link"], "no link profile"),
        (["certify", "reference", "--only", "no-such-case"], "matches"),
        (["show", "SNR-XX-999"], "nothing is called"),
        (["analyze", "/no/such/file.pcapng"], "not a file"),
    ],
)
def test_wrong_words_get_one_sentence_and_status_2(
    words: Sequence[str], needle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(bentpipe, list(words))
    assert result.exit_code == 2
    assert needle in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "status"),
    [(["list", "cases"], 0), (["list", "nonsense"], 2), (["verify", "/no/such/bundle"], 3)],
)
def test_command_as_a_process_exits_with_its_status(words: Sequence[str], status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bentpipe_conformance.cli.main", *words],
        capture_output=True,
        check=False,
    )
    assert done.returncode == status
