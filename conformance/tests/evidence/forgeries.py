"""What an opponent does to a bundle, written from its documentation alone.

Each forgery takes the bundle of a run that failed, and one of a true implementation with the same
cases, and makes the first say something that did not happen. The opponent knows the format: every
file that depends on another one is adapted, and the manifest is written anew at the end (`seal`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Forgery = Callable[[Path, Path], None]

MANIFEST = "manifest.sha256"


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON file."""
    held = json.loads(path.read_text(encoding="utf-8"))
    change(held)
    path.write_text(json.dumps(held, indent=1), encoding="utf-8")


def put(name: str, *keys: str, value: object) -> Forgery:
    """One value of a JSON file of the bundle becomes another one."""

    def forge(bundle: Path, _: Path) -> None:
        def change(held: Any) -> None:
            for key in keys[:-1]:
                held = held[key]
            assert keys[-1] in held, keys
            assert held[keys[-1]] != value
            held[keys[-1]] = value

        edit(bundle / name, change)

    return forge


def tie(bundle: Path) -> None:
    """Write the digests anew that one file has of another."""
    run = bundle / "run.json"
    identity = hashlib.sha256(run.read_bytes()).hexdigest() if run.exists() else ""
    for path in bundle.glob("cases/*/case.json"):
        if not path.is_file():
            continue  # a pipe would be waited for
        held = json.loads(path.read_text(encoding="utf-8"))
        if "run" in held:
            held["run"] = identity
        for name in held["sha256"]:
            if (capture := path.parent / name).is_file():
                held["sha256"][name] = hashlib.sha256(capture.read_bytes()).hexdigest()
        path.write_text(json.dumps(held, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    result = bundle / "result.json"
    if result.is_file() and not result.is_symlink():
        held = json.loads(result.read_text(encoding="utf-8"))
        if "run" in held:
            held["run"] = identity
            text = json.dumps(held, indent=1, ensure_ascii=False) + "\n"
            result.write_text(text, encoding="utf-8")


def seal(bundle: Path) -> None:
    """Write the manifest anew."""
    lines = []
    for path in sorted(bundle.rglob("*")):
        if path.is_file() and path.name not in (MANIFEST, "attestation.json", ".lock"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {path.relative_to(bundle).as_posix()}\n")
    (bundle / MANIFEST).write_text("".join(lines), encoding="utf-8")


def case_of(folder: Path) -> Any:
    """The record of a case."""
    return json.loads((folder / "case.json").read_text(encoding="utf-8"))


def folders(bundle: Path, *verdicts: str) -> Iterator[Path]:
    """Those of the cases with such a verdict (or of all)."""
    for record in sorted(bundle.glob("cases/*/case.json")):
        if not verdicts or case_of(record.parent)["verdict"] in verdicts:
            yield record.parent


def failed(bundle: Path) -> Path:
    """A case that failed."""
    return next(folders(bundle, "fail"))


def tidy_result(bundle: Path, gone: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """Make result.json, junit.xml and report.html say that all passed, without some cases."""

    def change(result: Any) -> None:
        result["verdict"] = "pass"
        result["cases"] = [case for case in result["cases"] if case["id"] not in gone]
        for case in result["cases"]:
            if case["verdict"] not in ("pass", "unsupported"):
                case["verdict"] = "pass"
                case["findings"] = [f for f in case["findings"] if f["verdict"] == "pass"]
        for one in result["requirements"]:
            one["cases"] = [case for case in one["cases"] if case not in gone]
            one["findings"] = [f for f in one["findings"] if f["verdict"] == "pass"]
            if one["verdict"] != "unsupported":
                one["verdict"] = "pass"
                one["reason"] = one["findings"][0]["sentence"] if one["findings"] else ""
        verdicts = [one["verdict"] for one in result["requirements"]]
        result["summary"] = {name: verdicts.count(name) for name in result["summary"]}
        result["deviations"] = []
        result["attribution"] = []

    edit(bundle / "result.json", change)
    for name in ("report.html", "junit.xml"):
        text = (bundle / name).read_text(encoding="utf-8")
        text = text.replace(">fail<", ">pass<").replace('class="fail"', 'class="pass"')
        (bundle / name).write_text(text, encoding="utf-8")


def all_pass(record: Any) -> None:
    """A case without its violations."""
    record["verdict"] = "pass"
    record["findings"] = [f for f in record["findings"] if f["verdict"] == "pass"]
    record["reason"] = record["findings"][0]["sentence"]


# ---- cases ------------------------------------------------------------------------------------


def failing_cases_removed(bundle: Path, _: Path) -> None:
    gone = set()
    for folder in list(folders(bundle, "fail", "inconclusive")):
        gone.add(case_of(folder)["id"])
        shutil.rmtree(folder)
    tidy_result(bundle, gone)


def failing_folder_removed(bundle: Path, _: Path) -> None:
    shutil.rmtree(failed(bundle))


def record_of_a_failing_case_removed(bundle: Path, _: Path) -> None:
    (failed(bundle) / "case.json").unlink()


def failing_cases_renamed(bundle: Path, _: Path) -> None:
    gone = set()
    for number, folder in enumerate(list(folders(bundle, "fail", "inconclusive"))):
        gone.add(case_of(folder)["id"])
        put("case.json", "id", value=f"snr/other/{number}")(folder, folder)
        folder.rename(folder.parent / f"snr__other__{number}")
    tidy_result(bundle, gone)


def failing_case_replaced_by_a_passing_one(bundle: Path, _: Path) -> None:
    bad, good = failed(bundle), next(folders(bundle, "pass"))
    name = case_of(bad)["id"]
    shutil.rmtree(bad)
    shutil.copytree(good, bad)
    put("case.json", "id", value=name)(bad, bad)
    tidy_result(bundle)


def captures_of_another_case(bundle: Path, _: Path) -> None:
    bad, good = failed(bundle), next(folders(bundle, "pass"))
    for name in ("iut.pcapng", "peer.pcapng"):
        shutil.copy(good / name, bad / name)
    edit(bad / "case.json", lambda record: record.update(findings=case_of(good)["findings"]))
    edit(bad / "case.json", all_pass)
    tidy_result(bundle)


def captures_of_another_implementation(bundle: Path, other: Path) -> None:
    for folder in list(folders(bundle, "fail", "inconclusive")):
        shutil.rmtree(folder)
        shutil.copytree(other / "cases" / folder.name, folder)
    for name in ("result.json", "report.html", "junit.xml"):
        shutil.copy(other / name, bundle / name)


def whole_run_of_another_implementation(bundle: Path, other: Path) -> None:
    shutil.rmtree(bundle / "cases")
    shutil.copytree(other / "cases", bundle / "cases")
    for name in ("result.json", "report.html", "junit.xml"):
        shutil.copy(other / name, bundle / name)


def extra_case(bundle: Path, _: Path) -> None:
    good = next(folders(bundle, "pass"))
    extra = good.parent / "snr__timestamps__and-one-more"
    shutil.copytree(good, extra)
    put("case.json", "id", value="snr/timestamps/and-one-more")(extra, extra)
    more = {**case_of(extra)}
    edit(bundle / "result.json", lambda result: result["cases"].append(more))


def verdict_of_a_case_edited(bundle: Path, _: Path) -> None:
    for folder in list(folders(bundle, "fail", "inconclusive")):
        edit(folder / "case.json", all_pass)
    tidy_result(bundle)


def failing_cases_called_unsupported(bundle: Path, _: Path) -> None:
    def change(record: Any) -> None:
        record["verdict"] = "unsupported"
        record["reason"] = "the conformance statement does not claim dsack"
        record["findings"] = []

    for folder in list(folders(bundle, "fail", "inconclusive")):
        edit(folder / "case.json", change)
        for capture in folder.glob("*.pcapng"):
            capture.unlink()
    tidy_result(bundle)


def failing_cases_called_broken(bundle: Path, _: Path) -> None:
    def change(record: Any) -> None:
        record["verdict"] = "error"
        record["reason"] = "the bed broke"
        record["findings"] = []

    for folder in list(folders(bundle, "fail")):
        edit(folder / "case.json", change)
    edit(bundle / "result.json", lambda result: result.update(verdict="error"))


def timing_error_raised(bundle: Path, _: Path) -> None:
    for folder in folders(bundle, "fail"):
        edit(folder / "case.json", lambda record: record["lane"].update(timing_error=9.0))


def purpose_of_a_case_edited(bundle: Path, _: Path) -> None:
    put("case.json", "purpose", value="Everything is as it should be.")(failed(bundle), bundle)


def targets_of_a_case_edited(bundle: Path, _: Path) -> None:
    folder = next(folders(bundle, "pass"))
    edit(folder / "case.json", lambda record: record["requirements"].append("SNR-REC-001"))


def finding_counted_more_often(bundle: Path, _: Path) -> None:
    folder = next(folders(bundle, "pass"))
    edit(folder / "case.json", lambda record: record["findings"][0].update(count=400))


# ---- captures ---------------------------------------------------------------------------------


def captures_cut_to_a_few_packets(bundle: Path, _: Path) -> None:
    for name in ("iut.pcapng", "peer.pcapng"):
        path = failed(bundle) / name
        path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 8 // 4 * 4])


def captures_cut_between_packets(bundle: Path, _: Path) -> None:
    folder = failed(bundle)
    for name in ("iut.pcapng", "peer.pcapng"):
        octets = (folder / name).read_bytes()
        at, kept = 0, 0
        while at < len(octets) and kept < 8:
            at += int.from_bytes(octets[at + 4 : at + 8], "little")
            kept += 1
        assert at < len(octets)
        (folder / name).write_bytes(octets[:at])
    edit(folder / "case.json", all_pass)
    tidy_result(bundle)


def captures_emptied(bundle: Path, _: Path) -> None:
    for name in ("iut.pcapng", "peer.pcapng"):
        (failed(bundle) / name).write_bytes(b"")


def captures_removed(bundle: Path, _: Path) -> None:
    for folder in list(folders(bundle, "fail", "inconclusive")):
        (folder / "iut.pcapng").unlink()
        (folder / "peer.pcapng").unlink()
        edit(folder / "case.json", all_pass)
    tidy_result(bundle)


def one_side_of_a_capture_edited(bundle: Path, other: Path) -> None:
    folder = next(folders(bundle, "pass"))
    path = folder / "peer.pcapng"
    octets = bytearray(path.read_bytes())
    octets[-12] ^= 0x40
    path.write_bytes(octets)


def one_side_of_a_capture_replaced(bundle: Path, other: Path) -> None:
    for folder in list(folders(bundle, "fail")):
        shutil.copy(other / "cases" / folder.name / "iut.pcapng", folder / "iut.pcapng")
        edit(folder / "case.json", all_pass)
    tidy_result(bundle)


# ---- the statement of the run -----------------------------------------------------------------


def claim_withdrawn_after_the_run(bundle: Path, _: Path) -> None:
    put("run.json", "iut", "ics", "dsack", value=False)(bundle, bundle)


def statement_emptied(bundle: Path, _: Path) -> None:
    put("run.json", "iut", "ics", value={})(bundle, bundle)


def link_with_other_contents(bundle: Path, _: Path) -> None:
    put("run.json", "link", "forward", "delay_s", value=0.25)(bundle, bundle)
    put("run.json", "link", "return_", "delay_s", value=0.25)(bundle, bundle)


def another_link(bundle: Path, _: Path) -> None:
    put("run.json", "link", "id", value="geo")(bundle, bundle)
    put("run.json", "link", "title", value="Geostationary satellite")(bundle, bundle)


def command_without_its_choice(bundle: Path, _: Path) -> None:
    def change(run: Any) -> None:
        words = run["command"]
        while "--only" in words:
            at = words.index("--only")
            del words[at : at + 2]

    edit(bundle / "run.json", change)


def removed_result(name: str) -> Forgery:
    """A file of the upper group is gone."""

    def forge(bundle: Path, _: Path) -> None:
        (bundle / name).unlink()

    return forge


# ---- result, report, JUnit --------------------------------------------------------------------


def result_edited(bundle: Path, _: Path) -> None:
    tidy_result(bundle)


def failed_requirements_not_listed(bundle: Path, _: Path) -> None:
    def change(result: Any) -> None:
        kept = [one for one in result["requirements"] if one["verdict"] == "pass"]
        result["requirements"] = kept
        result["summary"] = {**dict.fromkeys(result["summary"], 0), "pass": len(kept)}

    edit(bundle / "result.json", change)


def passed_requirement_not_listed(bundle: Path, _: Path) -> None:
    def change(result: Any) -> None:
        at = next(n for n, one in enumerate(result["requirements"]) if one["verdict"] == "pass")
        del result["requirements"][at]

    edit(bundle / "result.json", change)


def requirement_never_looked_at_listed(bundle: Path, _: Path) -> None:
    def change(result: Any) -> None:
        listed = {one["id"] for one in result["requirements"]}
        extra = {**result["requirements"][0], "id": "SNR-ACK-001", "cases": [], "findings": []}
        assert extra["id"] not in listed
        result["requirements"].append(extra)
        result["summary"]["pass"] += 1

    edit(bundle / "result.json", change)


def musts_called_shoulds(bundle: Path, _: Path) -> None:
    def change(result: Any) -> None:
        for one in result["requirements"]:
            if one["verdict"] == "fail":
                one["level"] = "SHOULD"
        result["deviations"] = [r["id"] for r in result["requirements"] if r["verdict"] == "fail"]
        result["verdict"] = "pass"

    edit(bundle / "result.json", change)


def requirement_exercised_more_often(bundle: Path, _: Path) -> None:
    edit(
        bundle / "result.json",
        lambda result: result["requirements"][0].update(exercised=12345),
    )


def summary_edited(bundle: Path, _: Path) -> None:
    put("result.json", "summary", "fail", value=0)(bundle, bundle)


def case_listed_twice(bundle: Path, _: Path) -> None:
    edit(bundle / "result.json", lambda result: result["cases"].append(result["cases"][0]))


def in_text(name: str, old: str, new: str) -> Forgery:
    """A text in one of the files for people or machines becomes another one."""

    def forge(bundle: Path, _: Path) -> None:
        text = (bundle / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old}"
        (bundle / name).write_text(text.replace(old, new), encoding="utf-8")

    return forge


def report_of_another_run(bundle: Path, other: Path) -> None:
    shutil.copy(other / "report.html", bundle / "report.html")


def junit_of_another_run(bundle: Path, other: Path) -> None:
    shutil.copy(other / "junit.xml", bundle / "junit.xml")


# ---- the directory ----------------------------------------------------------------------------


def manifest_without_the_failing_cases(bundle: Path, _: Path) -> None:
    names = [folder.name for folder in folders(bundle, "fail")]
    lines = (bundle / MANIFEST).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not any(name in line for name in names)]
    assert len(kept) < len(lines)
    (bundle / MANIFEST).write_text("".join(kept), encoding="utf-8")


def capture_that_is_a_link(bundle: Path, other: Path) -> None:
    path = failed(bundle) / "iut.pcapng"
    path.unlink()
    path.symlink_to(other / "cases" / failed(bundle).name / "iut.pcapng")


def case_that_is_a_link(bundle: Path, other: Path) -> None:
    folder = failed(bundle)
    shutil.rmtree(folder)
    folder.symlink_to(other / "cases" / folder.name, target_is_directory=True)
    tidy_result(bundle)


def result_that_is_a_pipe(bundle: Path, _: Path) -> None:
    (bundle / "result.json").unlink()
    os.mkfifo(bundle / "result.json")


def unknown_file(bundle: Path, _: Path) -> None:
    (bundle / "README.txt").write_text("This stack is certified.", encoding="utf-8")


def unknown_file_in_a_case(bundle: Path, _: Path) -> None:
    (next(folders(bundle)) / "notes.txt").write_text("It was the bed's fault.", encoding="utf-8")


UNSEALED = frozenset({"manifest_without_the_failing_cases", "manifest_removed"})
"""Those that leave the manifest as they made it."""

FORGERIES: dict[str, Forgery] = {
    "failing_cases_removed": failing_cases_removed,
    "failing_folder_removed": failing_folder_removed,
    "record_of_a_failing_case_removed": record_of_a_failing_case_removed,
    "failing_cases_renamed": failing_cases_renamed,
    "failing_case_replaced_by_a_passing_one": failing_case_replaced_by_a_passing_one,
    "captures_of_another_case": captures_of_another_case,
    "captures_of_another_implementation": captures_of_another_implementation,
    "whole_run_of_another_implementation": whole_run_of_another_implementation,
    "extra_case": extra_case,
    "verdict_of_a_case_edited": verdict_of_a_case_edited,
    "failing_cases_called_unsupported": failing_cases_called_unsupported,
    "failing_cases_called_broken": failing_cases_called_broken,
    "timing_error_raised": timing_error_raised,
    "purpose_of_a_case_edited": purpose_of_a_case_edited,
    "targets_of_a_case_edited": targets_of_a_case_edited,
    "finding_counted_more_often": finding_counted_more_often,
    "captures_cut_to_a_few_packets": captures_cut_to_a_few_packets,
    "captures_cut_between_packets": captures_cut_between_packets,
    "captures_emptied": captures_emptied,
    "captures_removed": captures_removed,
    "one_side_of_a_capture_edited": one_side_of_a_capture_edited,
    "one_side_of_a_capture_replaced": one_side_of_a_capture_replaced,
    "claim_withdrawn_after_the_run": claim_withdrawn_after_the_run,
    "statement_emptied": statement_emptied,
    "link_with_other_contents": link_with_other_contents,
    "another_link": another_link,
    "command_without_its_choice": command_without_its_choice,
    "another_seed": put("run.json", "seed", value=77),
    "another_profile": put("run.json", "profile", value="hk99"),
    "another_suite": put("run.json", "suite", value="stp"),
    "another_name": put("run.json", "iut", "name", value="Linux 6.12"),
    "another_implementation": put("run.json", "iut", "id", value="linux"),
    "another_version_of_bentpipe": put("run.json", "bentpipe", value="0.0.9"),
    "another_format_of_the_bundle": put("run.json", "format", value="bentpipe-bundle/0"),
    "another_place": put("run.json", "bed", "place", value="uml-virtual"),
    "another_kernel": put("run.json", "bed", "kernel", value="6.12.1"),
    "run_said_to_have_ended_later": put("result.json", "finished", value=4e9),
    "run_record_removed": removed_result("run.json"),
    "result_removed": removed_result("result.json"),
    "report_removed": removed_result("report.html"),
    "manifest_removed": removed_result(MANIFEST),
    "another_format_of_the_result": put("result.json", "format", value="bentpipe-result/0"),
    "overall_verdict_edited": put("result.json", "verdict", value="pass"),
    "deviations_hidden": put("result.json", "deviations", value=[]),
    "disagreements_invented": put("result.json", "ics_disagreements", value=["it claims SACK"]),
    "result_edited": result_edited,
    "failed_requirements_not_listed": failed_requirements_not_listed,
    "passed_requirement_not_listed": passed_requirement_not_listed,
    "requirement_never_looked_at_listed": requirement_never_looked_at_listed,
    "musts_called_shoulds": musts_called_shoulds,
    "requirement_exercised_more_often": requirement_exercised_more_often,
    "summary_edited": summary_edited,
    "case_listed_twice": case_listed_twice,
    "report_edited": in_text("report.html", "fail", "pass"),
    "report_of_another_run": report_of_another_run,
    "junit_edited": in_text("junit.xml", "<failure", "<system-out"),
    "junit_of_another_run": junit_of_another_run,
    "manifest_without_the_failing_cases": manifest_without_the_failing_cases,
    "capture_that_is_a_link": capture_that_is_a_link,
    "case_that_is_a_link": case_that_is_a_link,
    "result_that_is_a_pipe": result_that_is_a_pipe,
    "unknown_file": unknown_file,
    "unknown_file_in_a_case": unknown_file_in_a_case,
}
"""Every forgery by its name."""


def forge(name: str, bundle: Path, other: Path) -> None:
    """Make the forgery of that name of a bundle, with what a run of another implementation left."""
    FORGERIES[name](bundle, other)
    if name not in UNSEALED:
        tie(bundle)
        seal(bundle)
