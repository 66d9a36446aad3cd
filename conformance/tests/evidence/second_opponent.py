"""Forgeries by an opponent who has bentpipe itself, and renders with it whatever he has changed.

Written from what the documentation promises. Each takes the bundle of a run that failed, and one of
a true implementation with the same cases. Result, JUnit file, report, certificate and manifest are
then made by bentpipe's own functions (`render`), so that all of it agrees; what a forgery does to
these files themselves, it does afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bentpipe_conformance.evidence.bundle import Bundle
from bentpipe_conformance.run.seal import certificate, rendered, result_of

from .forgeries import MANIFEST, Forgery, all_pass, case_of, edit, failed, folders, put, seal, tie

SESSION = {"command": ["bentpipe", "certify", "--resume"]}


def render(bundle: Path) -> None:
    """Make everything derived from plan and cases, as bentpipe does."""
    tie(bundle)
    held = Bundle.open(bundle)
    ended = json.loads((bundle / "result.json").read_text(encoding="utf-8"))["finished"]
    records = held.cases()
    outcome = result_of(held, records, ended)
    for name, text in rendered(held, outcome, records).items():
        (bundle / name).write_text(text, encoding="utf-8")
    render_certificate(bundle, outcome)


def render_certificate(bundle: Path, outcome: Any) -> None:
    held = Bundle.open(bundle)
    text = certificate(held.run, outcome, held.contents_digest())
    (bundle / "certificate.html").write_text(text, encoding="utf-8")


def violations_left_out(bundle: Path, _: Path) -> None:
    for folder in folders(bundle, "fail"):
        edit(folder / "case.json", all_pass)


def called_a_campaign(bundle: Path, _: Path) -> None:
    """A campaign plans no cases, so that those that failed are missed by nobody."""
    for folder in list(folders(bundle, "fail")):
        shutil.rmtree(folder)

    def change(plan: Any) -> None:
        plan["campaign"] = {"minutes": 1}
        kept = {case_of(folder)["id"] for folder in folders(bundle)}
        plan["cases"] = [name for name in plan["cases"] if name in kept]

    edit(bundle / "run.json", change)


def with_a_later_session(bundle: Path) -> None:
    plan = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    session = {**SESSION, "bed": plan["bed"], "started": plan["started"] + 60}
    (bundle / "resumed-1.json").write_text(
        json.dumps({"format": "bentpipe-bundle/2", **session}, indent=2) + "\n", encoding="utf-8"
    )


def failing_cases_tried_again(bundle: Path, other: Path) -> None:
    """What failed was an attempt; the verdict is that of a second one, of another stack."""
    with_a_later_session(bundle)
    for folder in list(folders(bundle, "fail")):
        aside = bundle / "attempts" / "1" / folder.name
        aside.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(aside)
        shutil.copytree(other / "cases" / folder.name, folder)
        put("case.json", "session", value=1)(folder, folder)


def failing_cases_said_to_have_broken(bundle: Path, other: Path) -> None:
    """The same, where the bed is said to have broken in the first attempts."""
    failing_cases_tried_again(bundle, other)

    def broken(record: Any) -> None:
        record.update(verdict="error", reason="the bed broke", error="the bed broke", findings=[])

    for path in bundle.glob("attempts/1/*/case.json"):
        edit(path, broken)


def case_planned_twice(bundle: Path, _: Path) -> None:
    edit(bundle / "run.json", lambda plan: plan["cases"].append(plan["cases"][0]))


def member_beside_the_verdict(bundle: Path, _: Path) -> None:
    edit(failed(bundle) / "case.json", lambda record: record.update(certified=True))


def member_beside_the_plan(bundle: Path, _: Path) -> None:
    edit(bundle / "run.json", lambda plan: plan.update(approved_by="a laboratory"))


def directions_turned_round(bundle: Path, _: Path) -> None:
    """What the implementation sent was sent by the tester."""
    for name in ("iut.pcapng", "peer.pcapng"):
        path = failed(bundle) / name
        octets = bytearray(path.read_bytes())
        at = 0
        while (at := octets.find(struct.pack("<HHI", 2, 4, 1), at)) >= 0:
            octets[at + 4] = 2
            at += 8
        path.write_bytes(bytes(octets))


def remark_in_a_capture(bundle: Path, _: Path) -> None:
    path = failed(bundle) / "iut.pcapng"
    text = b"the stack was not to blame  "
    length = 12 + 4 + len(text)
    block = struct.pack("<III", 0x0BAD, length, 7253) + text + struct.pack("<I", length)
    path.write_bytes(path.read_bytes() + block)


def edit_result(bundle: Path, change: Callable[[Any], None]) -> None:
    """Change result.json, and the certificate's digest with it."""
    outcome = json.loads((bundle / "result.json").read_text(encoding="utf-8"))
    edit(bundle / "result.json", change)
    tie(bundle)
    render_certificate(bundle, outcome)


def partial_is_a_number(bundle: Path, _: Path) -> None:
    edit_result(bundle, lambda held: held.update(partial=0))


def note_in_the_result(bundle: Path, _: Path) -> None:
    edit_result(bundle, lambda held: held.update(note="certified"))


def certificate_of_another_run(bundle: Path, other: Path) -> None:
    shutil.copy(other / "certificate.html", bundle / "certificate.html")


def certificate_removed(bundle: Path, _: Path) -> None:
    (bundle / "certificate.html").unlink()


def text_in_the_lock(bundle: Path, _: Path) -> None:
    (bundle / ".lock").write_text("This stack is certified.", encoding="utf-8")


def folder_beside_the_cases(bundle: Path, _: Path) -> None:
    (bundle / "approved-by-a-laboratory").mkdir()


def scratch_with_a_text(bundle: Path, _: Path) -> None:
    (bundle / ".work").mkdir(exist_ok=True)
    (bundle / ".work" / "notes.txt").write_text("It was the bed's fault.", encoding="utf-8")


def manifest_that_lists_twice(bundle: Path, other: Path) -> None:
    """The digests of the other run's result, and then those of this one's."""
    theirs = (other / MANIFEST).read_text(encoding="utf-8").splitlines()
    line = next(line for line in theirs if line.endswith("result.json"))
    path = bundle / MANIFEST
    path.write_text(f"{line}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


def manifest_that_leaves_the_directory(bundle: Path, _: Path) -> None:
    path = bundle / MANIFEST
    text = path.read_text(encoding="utf-8")
    path.write_text(text + f"{'0' * 64}  ../other/result.json\n", encoding="utf-8")


def case_named_in_another_way(bundle: Path, _: Path) -> None:
    folder = failed(bundle)
    os.rename(folder, folder.with_name(folder.name.upper()))


BEFORE_RENDERING = (
    violations_left_out, called_a_campaign, failing_cases_tried_again,
    failing_cases_said_to_have_broken, case_planned_twice, directions_turned_round,
    remark_in_a_capture,
)  # fmt: skip
AFTER_RENDERING = (
    member_beside_the_verdict, member_beside_the_plan, partial_is_a_number, note_in_the_result,
    certificate_of_another_run, certificate_removed, text_in_the_lock, folder_beside_the_cases,
    scratch_with_a_text, case_named_in_another_way,
)  # fmt: skip
AFTER_SEALING = (manifest_that_lists_twice, manifest_that_leaves_the_directory)
FORGERIES: dict[str, Forgery] = {
    change.__name__: change for change in (*BEFORE_RENDERING, *AFTER_RENDERING, *AFTER_SEALING)
}


def forge(name: str, bundle: Path, other: Path) -> None:
    """Make the forgery of that name, and everything that bentpipe makes after it."""
    change = FORGERIES[name]
    if change in AFTER_SEALING:
        tie(bundle)
        seal(bundle)
    change(bundle, other)
    if change in BEFORE_RENDERING:
        render(bundle)
    if change not in AFTER_SEALING:
        tie(bundle)
        seal(bundle)
