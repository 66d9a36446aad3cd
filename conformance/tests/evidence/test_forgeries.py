"""Forgeries of a bundle: each is refused, with the reason, and the true bundle is not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.run import completeness, plan
from click.testing import CliRunner

from . import second_opponent
from .forgeries import FORGERIES, edit, forge, seal, tie

pytestmark = pytest.mark.long

DESCRIPTION = """
id = "claims"
name = "A stack that claims D-SACK"

[attach]
kind = "in-process"
variant = "sack-newreno-{variant}"

[ics]
active_open = true
patient_syn = true
patient_syn_ack = true
challenge_acks = true
nagle = true
daytime = true
sack = true
sack_receiver = true
sack_sender = true
dsack = true
timestamps = true
window_scale = true
initial_window_segments = 1
"""
"""Of hk99's reference it is untrue: that sends no D-SACK."""

CASES = (
    "snr/timestamps/[a-c]*",
    "snr/sack/[a-d]*",
    "SNR-RCV-014",
    "*/established-edge-of-an-unsc*",
)


def call(*words: str) -> tuple[int, str]:
    """Status and output of a command."""
    result = CliRunner().invoke(bentpipe, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@dataclass(frozen=True)
class Bundles:
    """One of an implementation that fails, one of the same name that does not."""

    failing: Path
    true: Path

    def copied(self, folder: Path) -> Bundles:
        """Copies, since a forgery may write through a link of its own into either."""
        return Bundles(
            *(
                shutil.copytree(bundle, folder / bundle.name, symlinks=True)
                for bundle in (self.failing, self.true)
            )
        )


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundles]:
    """Two whole runs of a suite that has a few cases only."""
    folder = tmp_path_factory.mktemp("forgeries")
    with pytest.MonkeyPatch.context() as patch:
        few = tuple(item.id for item in plan.select_cases("snr", "rfc", CASES))
        patch.setattr(completeness, "whole_suite", lambda *_: few)
        made = []
        for variant, status in (("hk99", 1), ("rfc", 0)):
            description = folder / f"{variant}.toml"
            description.write_text(DESCRIPTION.format(variant=variant), encoding="utf-8")
            only = [word for pattern in CASES for word in ("--only", pattern)]
            made.append(folder / variant)
            words = ["certify", str(description), "--link", "lan", *only, "--jobs", "2"]
            words += ["--seed", "1", "--out", str(made[-1])]
            patch.setattr("sys.argv", ["bentpipe", *words])
            found, said = call(*words)
            assert found == status, said
        yield Bundles(*made)


def test_bundle_that_nobody_touched_is_reproduced(bundles: Bundles) -> None:
    for bundle, verdict in ((bundles.failing, "fail"), (bundles.true, "pass")):
        status, said = call("verify", str(bundle))
        assert status == 0, said
        assert f"everything stored is reproduced (overall: {verdict})" in said


CASE = "cases/snr__receiver__established-duplicate-segments"
NO_RESULT = "planned cases have no result: snr/receiver/established-duplicate-segments"

REFUSED: dict[str, tuple[int, str]] = {
    "failing_cases_removed": (1, "planned cases have no result: snr/receiver/"),
    "failing_folder_removed": (1, NO_RESULT),
    "record_of_a_failing_case_removed": (1, f"{CASE} has no case.json"),
    "failing_cases_renamed": (3, "cases/snr__other__0 is no case of the plan"),
    "failing_case_replaced_by_a_passing_one": (3, "its packets are another case's"),
    "captures_of_another_case": (3, "its packets are another case's"),
    "captures_of_another_implementation": (1, "result.json.verdict: stored pass, plan and packets"),
    "whole_run_of_another_implementation": (1, "report.html, line"),
    "extra_case": (3, "cases/snr__timestamps__and-one-more is no case of the plan"),
    "verdict_of_a_case_edited": (1, f"{CASE}/case.json.verdict: stored pass, plan and packets"),
    "failing_cases_called_unsupported": (3, f"{CASE}/iut.pcapng: No such file"),
    "failing_cases_called_broken": (1, f"{CASE}/case.json.verdict: stored error, plan and"),
    "timing_error_raised": (1, f"{CASE}/case.json.lane.timing_error: stored 9.0, plan"),
    "purpose_of_a_case_edited": (1, f"{CASE}/case.json.purpose: stored Everything is as"),
    "targets_of_a_case_edited": (1, '.requirements: stored ["SNR-SAK-011", "SNR-REC-001"]'),
    "finding_counted_more_often": (1, "case.json.findings[0].count: stored 400, plan"),
    "captures_cut_to_a_few_packets": (3, f"{CASE}/iut.pcapng is truncated after packet 4"),
    "captures_cut_between_packets": (1, "stored pass, plan and packets give inconclusive"),
    "captures_emptied": (3, f"{CASE}/iut.pcapng is empty"),
    "captures_removed": (3, f"{CASE}/iut.pcapng: No such file"),
    "one_side_of_a_capture_edited": (3, "peer.pcapng of snr/sack/all-held-data-receiver-reneges"),
    "one_side_of_a_capture_replaced": (3, "is not what this case has stored"),
    "claim_withdrawn_after_the_run": (1, f"{CASE}/case.json.verdict: stored fail, plan and"),
    "statement_emptied": (3, "has packets, although the conformance statement does not claim"),
    "link_with_other_contents": (1, "run.json: link.forward.delay_s: stored 0.25, plan"),
    "another_link": (1, "run.json: link.forward.delay_s: stored 0.0005, plan and packets give 0.3"),
    "command_without_its_choice": (1, "report.html, line"),
    "another_seed": (1, "junit.xml, line"),
    "another_profile": (1, f"{CASE}/case.json.verdict: stored fail, plan and"),
    "another_suite": (3, "was judged by the profile 'rfc', which this release does not have"),
    "another_name": (1, "report.html, line 7"),
    "another_implementation": (1, 'plan and packets give <testsuites name="bentpipe snr linux'),
    "another_version_of_bentpipe": (3, "Verify it with bentpipe 0.0.9."),
    "another_format_of_the_bundle": (3, "its format is not bentpipe-bundle/2"),
    "another_place": (1, "junit.xml, line"),
    "another_kernel": (1, "junit.xml, line"),
    "run_said_to_have_ended_later": (1, "report.html, line"),
    "run_record_removed": (3, "run.json: No such file"),
    "result_removed": (3, "result.json is missing"),
    "report_removed": (3, "report.html is missing"),
    "manifest_removed": (3, "the run was not finished: there is no manifest"),
    "another_format_of_the_result": (1, "result.json.format: stored bentpipe-result/0"),
    "overall_verdict_edited": (1, "result.json.verdict: stored pass, plan and packets give fail"),
    "deviations_hidden": (1, "result.json.deviations: stored [], plan"),
    "disagreements_invented": (1, 'result.json.ics_disagreements: stored ["it claims SACK"]'),
    "result_edited": (1, "result.json.verdict: stored pass, plan and packets give fail"),
    "failed_requirements_not_listed": (1, "requirements[SNR-RCV-014]: stored nothing, plan"),
    "passed_requirement_not_listed": (1, "stored nothing, plan and packets give pass"),
    "requirement_never_looked_at_listed": (1, "[SNR-ACK-001]: stored pass, plan and packets give"),
    "musts_called_shoulds": (1, "[SNR-SAK-015].level: stored SHOULD, plan and packets give MUST"),
    "requirement_exercised_more_often": (1, ".exercised: stored 12345, plan and packets give 1"),
    "summary_edited": (1, "result.json.summary.fail: stored 0, plan and packets give 5"),
    "case_listed_twice": (1, "result.json.cases: stored something twice, plan and packets give"),
    "report_edited": (1, "report.html, line 7"),
    "report_of_another_run": (1, "report.html, line 7"),
    "junit_edited": (1, "junit.xml, line"),
    "junit_of_another_run": (1, "junit.xml, line 2"),
    "manifest_without_the_failing_cases": (3, "added after the run; the manifest lacks it"),
    "capture_that_is_a_link": (3, f"{CASE}/iut.pcapng is a symbolic link; a bundle has none"),
    "case_that_is_a_link": (3, f"{CASE} is a symbolic link; a bundle has none"),
    "result_that_is_a_pipe": (3, "result.json is not a regular file"),
    "unknown_file": (3, "README.txt is no part of a bundle"),
    "unknown_file_in_a_case": (3, "notes.txt is no part of a bundle"),
}
"""How each is refused: exit status, and a part of what is said."""


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_bundle_is_refused(bundles: Bundles, name: str, tmp_path: Path) -> None:
    own = bundles.copied(tmp_path)
    forge(name, own.failing, own.true)
    status, said = call("verify", str(own.failing))
    expected, part = REFUSED[name]
    assert part in said
    assert status == expected


STANDS = f"attempts/1/{CASE.removeprefix('cases/')} has a verdict on the implementation"
REFUSED_AS_WELL: dict[str, tuple[int, str]] = {
    "violations_left_out": (1, f"{CASE}/case.json.verdict: stored pass, plan and packets give"),
    "called_a_campaign": (3, "plans both a campaign and cases"),
    "failing_cases_tried_again": (3, f"{STANDS} (fail), which no later attempt may replace"),
    "failing_cases_said_to_have_broken": (3, f"{STANDS} (error), which no later attempt may"),
    "case_planned_twice": (3, "run.json plans no run"),
    "directions_turned_round": (1, "plan and packets give"),
    "remark_in_a_capture": (3, "is not what this case has stored"),
    "member_beside_the_verdict": (3, "CaseRecord has an unknown member 'certified'"),
    "member_beside_the_plan": (3, "RunRecord has an unknown member 'approved_by'"),
    "partial_is_a_number": (1, "result.json.partial: stored 0, plan and packets give false"),
    "note_in_the_result": (1, "result.json.note: stored certified, plan and packets give nothing"),
    "certificate_of_another_run": (1, "certificate.html, line 6"),
    "certificate_removed": (3, "certificate.html is missing"),
    "text_in_the_lock": (3, ".lock is not the empty file that a lock is"),
    "folder_beside_the_cases": (3, "approved-by-a-laboratory is no part of a bundle"),
    "scratch_with_a_text": (3, ".work is no part of a bundle"),
    "manifest_that_lists_twice": (3, "result.json' is not a line of it"),
    "manifest_that_leaves_the_directory": (3, "result.json is missing, although the manifest"),
    "case_named_in_another_way": (3, "ESTABLISHED-DUPLICATE-SEGMENTS is no case of the plan"),
}


@pytest.mark.parametrize("name", second_opponent.FORGERIES)
def test_bundle_forged_and_rendered_by_bentpipe_itself_is_refused(
    bundles: Bundles, name: str, tmp_path: Path
) -> None:
    own = bundles.copied(tmp_path)
    second_opponent.forge(name, own.failing, own.true)
    status, said = call("verify", str(own.failing))
    expected, part = REFUSED_AS_WELL[name]
    assert part in said
    assert status == expected


def test_plan_whose_probe_found_no_sentences_is_damaged(bundles: Bundles, tmp_path: Path) -> None:
    for number, found in enumerate((7.5, {"disagreements": 7.5}, {"disagreements": [None]})):
        bundle = shutil.copytree(bundles.true, tmp_path / str(number))
        edit(
            bundle / "run.json", lambda plan, found=found: plan["bed"]["check"].update(probe=found)
        )
        tie(bundle)
        seal(bundle)
        status, said = call("verify", str(bundle))
        assert "run.json is damaged: what its probe found is no list of sentences" in said
        assert status == 3


def test_bundle_that_breaks_its_judge_cannot_be_judged(
    bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bentpipe_conformance.run.verification.result_of", lambda *_: 1 / 0)
    status, said = call("verify", str(bundles.true))
    assert "cannot be judged: ZeroDivisionError" in said
    assert status == 3
