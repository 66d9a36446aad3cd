"""The bundle survives interruption and tells when it was tampered with."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.bundle import Bundle, BundleError, case_directory
from bentpipe_conformance.evidence.captures import as_recorded, dump_captured, load_captured
from bentpipe_conformance.evidence.frames import CaptureError
from bentpipe_conformance.evidence.records import CaseRecord, Implementation, RunRecord
from bentpipe_conformance.evidence.serialization import RecordError, decode, dumps, encode, loads
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(max_size=12)
CASES = st.builds(
    CaseRecord,
    id=TEXT,
    title=TEXT,
    purpose=TEXT,
    requirements=st.lists(TEXT, max_size=3).map(tuple),
    verdict=st.sampled_from(Verdict),
    reason=TEXT,
    findings=st.lists(
        st.builds(
            Finding,
            requirement=TEXT,
            verdict=st.sampled_from(Verdict),
            packets=st.lists(st.integers(1), max_size=3).map(tuple),
            sentence=TEXT,
        ),
        max_size=2,
    ).map(tuple),
    started=st.floats(0, 1e10),
    lane=st.dictionaries(TEXT, st.none() | st.booleans() | TEXT, max_size=2),
)
CAPTURED = st.lists(
    st.builds(
        Captured,
        time=st.floats(0, 1e6),
        point=st.sampled_from(["iut", "peer"]),
        outgoing=st.booleans(),
        data=st.binary(max_size=40),
    ),
    max_size=8,
)


@given(CASES)
def test_any_case_written_and_read_is_the_same(case: CaseRecord) -> None:
    assert decode(CaseRecord, loads(dumps(encode(case)))) == case


@given(CAPTURED, st.floats(0, 4e9))
def test_any_packets_stored_and_loaded_are_as_recorded(
    captured: list[Captured], started: float
) -> None:
    octets = {point: dump_captured(captured, point, "a/b", started) for point in ("iut", "peer")}
    assert load_captured(octets, "x") == as_recorded(captured)  # type: ignore[arg-type]
    assert as_recorded(as_recorded(captured)) == as_recorded(captured)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"extra": 1}, "unknown member 'extra'"),
        ({"verdict": "maybe"}, "CaseRecord.verdict must be one of pass, "),
        ({"started": "now"}, "CaseRecord.started must be a number, not a string"),
        ({"started": True}, "must be a number, not true or false"),
        ({"title": None}, "CaseRecord.title must be a string, not null"),
        ({"requirements": "SNR"}, "requirements must be an array"),
        ({"lane": []}, "lane must be an object"),
        ({"findings": [{"requirement": "a"}]}, r"findings\[0\] lacks 'verdict'"),
        ({"findings": [7]}, r"findings\[0\] must be an object"),
        (
            {"findings": [{"requirement": "a", "verdict": "pass", "packets": [1.5]}]},
            r"findings\[0\].packets\[0\] must be an integer",
        ),
    ],
)
def test_record_with_a_wrong_member_is_refused(
    case: CaseRecord, change: dict[str, object], why: str
) -> None:
    with pytest.raises(RecordError, match=why):
        decode(CaseRecord, {**encode(case), **change})


@pytest.mark.parametrize(
    "text", ["", "{", '{"a":1,"a":2}', "[NaN]", "[Infinity]", "[" * 100_000, "\ud800"]
)
def test_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        loads(text)


@pytest.mark.parametrize(
    "case_id", ["", "/", "a//b", "../x", "a/../b", ".a", "a b", "a__b", "a/_b", "ä", "a" * 201]
)
def test_case_id_that_makes_no_file_name_is_refused(case_id: str) -> None:
    with pytest.raises(BundleError, match="cannot be a case ID"):
        case_directory(case_id)


def test_case_ids_never_share_a_directory() -> None:
    assert case_directory("snr/a_b/c[1-x]") == "snr__a_b__c[1-x]"


def test_case_added_and_bundle_reopened_gives_it_back(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    Bundle.create(tmp_path / "b", run).add_case(case, captured)
    bundle = Bundle.open(tmp_path / "b")
    assert bundle.run == run
    assert bundle.cases() == [case]
    assert bundle.captured(case.id) == as_recorded(captured)
    assert not bundle.finished


def test_two_runs_with_equal_input_leave_equal_octets(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    contents = []
    for name in ("a", "b"):
        bundle = Bundle.create(tmp_path / name, run)
        bundle.add_case(case, captured)
        bundle.seal({"result.json": "{}\n"})
        contents.append((tmp_path / name / "manifest.sha256").read_text())
    assert contents[0] == contents[1]
    assert len(contents[0].splitlines()) == 5


def test_manifest_is_understood_by_sha256sum(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    bundle = Bundle.create(tmp_path, run)
    bundle.add_case(case, captured)
    bundle.seal({"report.html": "<p>"})
    bundle.check()
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "manifest.sha256"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == 5


def _damage_case(root: Path) -> None:
    (next(root.glob("cases/*/case.json"))).write_text("{")


def _flip_capture(root: Path) -> None:
    path = next(root.glob("cases/*/iut.pcapng"))
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def _remove_capture(root: Path) -> None:
    next(root.glob("cases/*/peer.pcapng")).unlink()


def _add_file(root: Path) -> None:
    (root / "cases" / "extra.txt").write_text("hello")


def _link(root: Path) -> None:
    (root / "link").symlink_to("/etc/passwd")


def _break_manifest(root: Path) -> None:
    (root / "manifest.sha256").write_text("nonsense\n")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_damage_case, "case.json was changed after the run"),
        (_flip_capture, r"iut.pcapng was changed after the run \(SHA-256 differs\)"),
        (_remove_capture, "peer.pcapng is missing"),
        (_add_file, "extra.txt is no part of a bundle"),
        (_link, "is a symbolic link"),
        (_break_manifest, "'nonsense' is not a line of it"),
    ],
)
def test_tampered_bundle_is_noticed(
    stored: Bundle, damage: Callable[[Path], None], why: str
) -> None:
    stored.seal({})
    damage(stored.directory)
    with pytest.raises(BundleError, match=why):
        Bundle.open(stored.directory).check()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_damage_case, r"case.json is damaged: line 1 is not JSON \(.*\)\."),
        (_flip_capture, "iut.pcapng has been changed since the case ran"),
        (_remove_capture, "peer.pcapng: No such file or directory"),
    ],
)
def test_damaged_case_of_an_unfinished_run_is_noticed(
    stored: Bundle, case: CaseRecord, damage: Callable[[Path], None], why: str
) -> None:
    damage(stored.directory)
    with pytest.raises(BundleError, match=why):
        stored.captured(case.id)


def test_unfinished_bundle_is_not_checked(tmp_path: Path, run: RunRecord) -> None:
    with pytest.raises(BundleError, match="not finished; finish it with --resume"):
        Bundle.create(tmp_path, run).check()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        ("[]", "format is not bentpipe-bundle/2"),
        ('{"format": "bentpipe-bundle/3"}', "format is not bentpipe-bundle/2"),
        ('{"format": "bentpipe-bundle/2"}', "lacks 'bentpipe'"),
        ('{"format": "bentpipe-bundle/1", "bentpipe": "0.0.1"}', "made by bentpipe 0.0.1 before"),
        (
            '{"format": "bentpipe-bundle/2", "seed": 1' + "0" * 5000 + "}",
            "a number in it is too long",
        ),
        ('{"format": ' + "[" * 60 + "]" * 60 + "}", "nested too deeply"),
        ('{"format": "\\ud800"}', "half a character"),
        ("\ufeff{}", "is damaged"),
    ],
)
def test_directory_that_is_no_bundle_is_refused(
    tmp_path: Path, content: str | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(BundleError, match=why):
        Bundle.open(tmp_path)


def test_directory_in_other_use_is_not_overwritten(tmp_path: Path, run: RunRecord) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(BundleError, match="already holds other files; choose another --out"):
        Bundle.create(tmp_path, run)
    Bundle.create(tmp_path / "b", run).close()
    with pytest.raises(BundleError, match="already holds a run; add --resume or --fresh, or"):
        Bundle.create(tmp_path / "b", run)
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="file: File exists"):
        Bundle.create(tmp_path / "file", run)


def test_bundle_in_use_is_not_taken_over(tmp_path: Path, run: RunRecord) -> None:
    holder = Bundle.create(tmp_path, run)
    with pytest.raises(BundleError, match="in use by another bentpipe"):
        Bundle.resume(tmp_path, run)
    holder.close()
    Bundle.resume(tmp_path, run).close()


def test_other_experiment_does_not_resume(tmp_path: Path, run: RunRecord) -> None:
    Bundle.create(tmp_path, run).close()
    other = dataclasses.replace(
        run, iut=Implementation("lwip", "lwIP", ics={}), link={"id": "leo-40"}
    )
    with pytest.raises(
        BundleError,
        match=r"another run \(implementation linux not lwip; link geo not leo-40; another conf",
    ):
        Bundle.resume(tmp_path, other)


def test_resumed_run_knows_its_cases_and_can_be_finished_again(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    first = Bundle.create(tmp_path, run)
    first.add_case(case, captured)
    first.seal({})
    first.close()
    later = dataclasses.replace(run, started=5000.0)
    bundle = Bundle.resume(tmp_path, later)
    assert not bundle.finished
    assert bundle.completed() == (case.id,)
    assert bundle.run.started == run.started
    bundle.add_case(dataclasses.replace(case, id="snr/other"), captured)
    bundle.seal({})
    bundle.check()
    assert Bundle.open(tmp_path).completed() == ("snr/other", case.id)


def test_killed_writer_leaves_only_what_is_complete(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    bundle = Bundle.create(tmp_path, run)
    bundle.add_case(case, captured)
    half = tmp_path / "cases" / "snr__half"
    half.mkdir()
    (half / "iut.pcapng").write_bytes(b"whole")
    (half / ".peer.pcapng.123.tmp").write_bytes(b"ha")
    (tmp_path / ".run.json.124.tmp").write_text('{"form')
    assert bundle.completed() == (case.id,)
    bundle.add_case(dataclasses.replace(case, id="snr/half"), captured)
    bundle.seal({})
    bundle.check()
    assert not list(tmp_path.rglob("*.tmp"))


_KEEP_WRITING = """
import dataclasses, json, sys
from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.evidence.records import CaseRecord, RunRecord
from bentpipe_conformance.evidence.serialization import decode
from bentpipe_conformance.engine.lane import Captured

run, case = (json.loads(text) for text in sys.argv[2:])
bundle = Bundle.resume(sys.argv[1], decode(RunRecord, run))
start = len(bundle.completed())
for number in range(start, start + 100_000):
    again = dataclasses.replace(decode(CaseRecord, case), id=f"snr/c{number}")
    bundle.add_case(again, [Captured(0.0, "iut", True, b"E" * 40)] * 20)
"""


def test_writer_killed_at_any_moment_can_be_resumed(
    tmp_path: Path, run: RunRecord, case: CaseRecord
) -> None:
    arguments = [str(tmp_path / "b"), json.dumps(encode(run)), json.dumps(encode(case))]
    for wanted in (1, 20, 50):
        writer = subprocess.Popen([sys.executable, "-c", _KEEP_WRITING, *arguments])
        while writer.poll() is None and len(list(tmp_path.glob("b/cases/*/case.json"))) < wanted:
            pass
        writer.kill()
        assert writer.wait() == -signal.SIGKILL
    bundle = Bundle.resume(tmp_path / "b", run)
    done = bundle.completed()
    assert len(done) >= 50
    assert all(len(bundle.captured(case_id)) == 20 for case_id in done)
    bundle.seal({})
    bundle.check()


def test_several_processes_add_their_cases(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    Bundle.create(tmp_path, run)
    workers = [Bundle.open(tmp_path), Bundle.open(tmp_path)]
    for number, worker in enumerate(workers):
        worker.add_case(dataclasses.replace(case, id=f"snr/{number}"), captured)
    assert workers[0].completed() == ("snr/0", "snr/1")


def test_full_disk_is_said_and_keeps_earlier_cases(
    tmp_path: Path,
    run: RunRecord,
    case: CaseRecord,
    captured: list[Captured],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = Bundle.create(tmp_path, run)
    bundle.add_case(case, captured)

    def full(path: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BundleError, match=r"No space left on device; make room .* --resume\."):
        bundle.add_case(dataclasses.replace(case, id="snr/late"), captured)
    assert bundle.completed() == (case.id,)
    assert not list(tmp_path.rglob("*.tmp"))


def test_refusing_kernel_is_said(tmp_path: Path, run: RunRecord, case: CaseRecord) -> None:
    bundle = Bundle.create(tmp_path, run)
    big = [Captured(0.0, "iut", True, b"E" * 1500)] * 100
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(BundleError, match=r"iut\.pcapng.*: File too large\."):
            bundle.add_case(case, big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert bundle.completed() == ()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"started": float("nan")}, "cannot be written"),
        ({"lane": {"path": sys}}, "not JSON serializable"),
    ],
)
def test_case_that_cannot_be_told_is_refused(
    tmp_path: Path, run: RunRecord, case: CaseRecord, broken: dict[str, object], why: str
) -> None:
    bundle = Bundle.create(tmp_path, run)
    with pytest.raises(BundleError, match=why):
        bundle.add_case(dataclasses.replace(case, **broken), [])  # type: ignore[arg-type]


def test_packet_before_its_case_is_refused(
    tmp_path: Path, run: RunRecord, case: CaseRecord
) -> None:
    bundle = Bundle.create(tmp_path, run)
    with pytest.raises(BundleError, match="packet 1 has no time"):
        bundle.add_case(case, [Captured(-1.0, "iut", True, b"")])


def test_foreign_file_in_place_of_a_case_capture_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"x/iut\.pcapng is empty"):
        load_captured({"iut": b""}, "x")


def test_case_directory_under_another_name_is_refused(
    tmp_path: Path, run: RunRecord, case: CaseRecord, captured: list[Captured]
) -> None:
    bundle = Bundle.create(tmp_path, run)
    bundle.add_case(case, captured)
    folder = tmp_path / "cases" / case_directory(case.id)
    folder.rename(folder.with_name("snr__other"))
    with pytest.raises(BundleError, match="belongs to snr/recovery/third-duplicate-ack"):
        bundle.completed()
    assert json.loads((tmp_path / "run.json").read_text())["seed"] == 7
