"""Running collected cases in a real bed and reporting them to pytest."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.records import CaseRecord
from bentpipe_conformance.run.certify import certify
from bentpipe_conformance.run.plan import make_plan
from bentpipe_conformance.run.seal import seal_bundle
from bentpipe_conformance.run.watcher import Watcher


class _Reporter(Watcher):
    """Turns each finished case into a pytest report as it comes in."""

    def __init__(self, session: pytest.Session, cases: Mapping[pytest.Item, Case]) -> None:
        self._session = session
        self._items = {case.id: item for item, case in cases.items()}

    def note(self, sentence: str) -> None:
        """Warn in pytest's own summary."""
        self._session.config.issue_config_time_warning(pytest.PytestWarning(sentence), 2)

    def finished(self, record: CaseRecord, running: Sequence[str]) -> None:
        """Report one case."""
        del running
        item = self._items[record.id]
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in _reports(item, record):
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _reports(item: pytest.Item, record: CaseRecord) -> list[pytest.TestReport]:
    verdict = record.verdict
    text = f"{verdict.value}: {record.reason}"

    def report(
        when: Literal["setup", "call", "teardown"],
        outcome: Literal["passed", "failed", "skipped"] = "passed",
        longrepr: str | tuple[str, int, str] | None = None,
    ) -> pytest.TestReport:
        duration = record.wall_seconds if when == "call" else 0.0
        return pytest.TestReport(
            item.nodeid, item.location, {}, outcome, longrepr, when, duration=duration
        )

    if verdict is Verdict.ERROR:
        return [report("setup", "failed", text), report("teardown")]
    call = report("call")
    if verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE):
        call = report("call", "failed", text)
    elif verdict is Verdict.UNSUPPORTED:
        path, line, _ = item.location
        call = report("call", "skipped", (path, (line or 0) + 1, text))
    return [report("setup"), call, report("teardown")]


def run_in_bed(session: pytest.Session, cases: Mapping[pytest.Item, Case]) -> bool:
    """Certify the collected cases; every result becomes a pytest report."""
    config = session.config
    kept: Path | None = config.getoption("--bundle")
    with tempfile.TemporaryDirectory(prefix="bentpipe-pytest-") as scratch:
        plan = make_plan(
            iut=config.getoption("--iut"),
            link=config.getoption("--link"),
            profile=config.getoption("--requirement-profile"),
            bed=config.getoption("--bed"),
            cases=tuple(cases.values()),
            directory=kept if kept is not None else Path(scratch) / "bundle",
            command=("pytest", *config.invocation_params.args),
        )
        bundle = certify(plan, _Reporter(session, cases))
        seal_bundle(bundle)
        bundle.close()
    return True
