"""The engine knows its suites by their records alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bentpipe_conformance.engine.case import check_targets, load_cases
from bentpipe_conformance.engine.suite import UnknownSuite, load_suites, suite_named, suite_of
from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.protocols.stp.suite import SUITE as STP
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.plan import make_plan
from bentpipe_conformance.run.verification import verify
from bentpipe_conformance.run.worker import Worker
from bentpipe_spec.registry import load_requirements
from click.testing import CliRunner

GOOD = "stp/format/ready-sds-arrive-with-gaps"


def test_every_suite_finds_its_parts() -> None:
    for suite in load_suites().values():
        assert suite.driver
        assert suite.interpreter
        assert suite.reporter
        assert suite.profile(None) in suite.profiles


def test_requirements_are_shared_out_by_prefix() -> None:
    assert {name for name in load_requirements() if name.startswith("STP-")} == set(
        STP.requirements()
    )
    assert not set(SNR.requirements()) & set(STP.requirements())


def test_identifiers_tell_their_suite() -> None:
    assert suite_of("snr/rto/x") is SNR
    assert suite_of("STP-DT-001") is STP
    assert suite_of("RWBP-EC-001").name == "rwbp"
    with pytest.raises(
        UnknownSuite, match="there is no suite 'ttcp'; there are pep, rwbp, snr, stp"
    ):
        suite_of("TTCP-EC-001")
    with pytest.raises(UnknownSuite):
        suite_named("")


def test_profile_of_another_suite_is_refused() -> None:
    assert STP.profile(None) == "stp1e2"
    with pytest.raises(ValueError, match="the suite stp has no profile 'hk99'; it has stp1e2"):
        STP.profile("hk99")


def imported_by(statement: str) -> set[str]:
    """Modules of ours that a statement loads, in a process of its own."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.splitlines() if name.startswith("bentpipe")}


WORKER = (
    "import bentpipe_conformance.run.worker; "
    "from bentpipe_conformance.engine.suite import load_suites; "
)


@pytest.mark.long
def test_protocol_without_a_record_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "__init__.py").touch()
    code = (
        "import bentpipe_conformance.protocols as protocols\n"
        f"protocols.__path__.append({str(tmp_path)!r})\n"
        "from bentpipe_conformance.cli.main import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "list", "cases"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bentpipe: the protocol unfinished has no suite; write SUITE in ")
    assert done.stderr.count("\n") == 1


RECORDS = {
    f"bentpipe_conformance.protocols.{name}" for name in ("tcp", "tcp.suite", "stp", "stp.suite")
}
"""What any command loads of a protocol."""


@pytest.mark.long
def test_worker_of_one_suite_loads_no_other_protocol_and_no_report() -> None:
    tcp = imported_by(WORKER + "s = load_suites()['snr']; s.driver; s.interpreter") - RECORDS
    assert not {name for name in tcp if ".stp" in name or ".report" in name}
    stp = imported_by(WORKER + "s = load_suites()['stp']; s.driver; s.interpreter") - RECORDS
    assert "bentpipe_conformance.protocols.stp.replay.flow" in stp
    assert not {name for name in stp if ".tcp" in name or ".report" in name}


def certified(folder: Path) -> Bundle:
    plan = make_plan(
        iut="stp-reference-simulated", link="geo", directory=folder, only=(GOOD,), seed=1
    )
    assert plan.run.suite == "stp"
    assert plan.run.profile == "stp1e2"
    assignment = Assignment(
        iut=plan.iut, link=plan.link, profile="stp1e2", suite="stp",
        cases=(GOOD,), bundle=str(folder), claims=str(folder.parent / "claims"), seed=1,
    )  # fmt: skip
    (folder.parent / "claims").mkdir()
    Bundle.create(folder, plan.run).close()
    Worker(assignment).run()
    return Bundle.open(folder)


@pytest.mark.long
def test_stp_case_is_run_stored_and_judged_again_by_the_same_engine(tmp_path: Path) -> None:
    from bentpipe_conformance.cli.analyze import analyze
    from bentpipe_conformance.report.page import render_report
    from bentpipe_conformance.run.seal import seal_bundle

    bundle = certified(tmp_path / "bundle")
    outcome = seal_bundle(bundle)
    done = verify(bundle.directory)
    assert done.differences == []
    assert [row["verdict"] for row in done.result["cases"]] == ["pass"]
    assert done.result == outcome
    assert "cases were chosen" in done.doubts[0]
    assert all(row["id"].startswith("STP-") for row in outcome["requirements"])
    page = render_report(bundle, outcome, {})
    for text in ("SD number", "reported missing by STAT or USTAT", "USTAT · N(R) 2", "number 7"):
        assert text in page
    capture = next((tmp_path / "bundle").glob("cases/*/iut.pcapng"))
    said = CliRunner().invoke(
        analyze, [str(capture), "--suite", "stp", "--iut", "10.77.0.2", "--json"]
    )
    assert said.exit_code == 0, said.output
    assert '"STP-PF-013"' in said.output
    refused = CliRunner().invoke(analyze, [str(capture), "--suite", "stp", "--profile", "rfc"])
    assert refused.exit_code == 2


def test_unknown_profile_of_an_implementation_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no profile 'rfc'"):
        make_plan(
            iut="stp-reference-simulated", link="geo", profile="rfc", directory=tmp_path / "b"
        )


def test_cases_of_a_suite_have_its_profiles() -> None:
    assert load_cases("stp")[GOOD].profiles == ("stp1e2",)
    assert load_cases("stp")[GOOD].suite is STP


def test_case_that_targets_an_unknown_requirement_is_refused() -> None:
    case = load_cases("stp")[GOOD]
    check_targets(case, STP.requirements())
    with pytest.raises(ValueError, match=rf"{GOOD} targets STP-\S+, which is no requirement"):
        check_targets(case, SNR.requirements())
