"""The whole pipeline on the simulated reference: run, resume, verify, tamper."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.evidence.bundle import Bundle, case_directory
from click.testing import CliRunner

CASE = "snr/fast-retransmit/established-third-duplicate-acknowledgment"
GROUP = "snr/fast-retransmit/*"


def command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(bentpipe, words, catch_exceptions=False)
    return result.exit_code, result.stdout


def certify(out: Path, *more: str, only: str = CASE) -> tuple[int, str]:
    return command("certify", "reference", "--only", only, "--out", str(out), "--seed", "3", *more)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "bundle"
    status, output = certify(out, "--json")
    assert status == 0, output
    return out


def test_certified_reference_leaves_a_complete_bundle(bundle: Path) -> None:
    result = json.loads((bundle / "result.json").read_text())
    assert result["verdict"] == "pass"
    assert result["summary"]["fail"] == 0
    assert [case["id"] for case in result["cases"]] == [CASE]
    assert {"SNR-FR-001", "SNR-FR-002"} <= {row["id"] for row in result["requirements"]}
    for name in ("run.json", "junit.xml", "report.html", "manifest.sha256"):
        assert (bundle / name).stat().st_size
    for point in ("iut", "peer"):
        assert (bundle / "cases" / case_directory(CASE) / f"{point}.pcapng").stat().st_size


def test_verify_of_an_untouched_bundle_agrees(bundle: Path) -> None:
    status, output = command("verify", str(bundle), "--json")
    assert status == 0
    assert json.loads(output)["agrees"] is True


def copied(bundle: Path, folder: Path) -> Path:
    import shutil

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
    opened.seal({}, 0.0)
    status, output = command("verify", str(copy), "--json")
    assert status == 1
    differences = json.loads(output)["differences"]
    assert differences == [{"case": record.id, "stored": "fail", "judged": "pass"}]


def test_verify_of_a_bundle_with_rules_of_another_release_is_refused(
    bundle: Path, tmp_path: Path
) -> None:
    copy = copied(bundle, tmp_path)
    path = copy / "run.json"
    path.write_text(path.read_text().replace('"profile": "rfc"', '"profile": "rfc-2019"'))
    Bundle.open(copy).seal({}, 0.0)
    result = CliRunner().invoke(bentpipe, ["verify", str(copy)])
    assert result.exit_code == 3
    assert "the profile 'rfc-2019', which this release does not have" in result.output


def test_second_run_into_the_same_directory_is_refused(bundle: Path) -> None:
    result = CliRunner().invoke(
        bentpipe, ["certify", "reference", "--only", CASE, "--out", str(bundle)]
    )
    assert result.exit_code == 3
    assert "--resume" in result.output


def test_interrupted_run_is_resumed_without_repeating_cases(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    assert certify(out)[0] == 0
    first = (out / "cases" / case_directory(CASE) / "case.json").stat().st_mtime_ns
    (out / "manifest.sha256").unlink()
    (out / "result.json").unlink()
    status, _ = certify(out, "--resume", only=GROUP)
    assert status in (0, 3)
    assert (out / "cases" / case_directory(CASE) / "case.json").stat().st_mtime_ns == first
    assert json.loads((out / "result.json").read_text())["summary"]


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
