"""The models themselves: every run of the pr tier shows what its manifest says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from bentpipe_conformance.models import diagram as ladder
from bentpipe_conformance.models.manifest import Manifest, Run, load_models, model_root
from bentpipe_conformance.models.tool import ToolProblem, find_tool
from bentpipe_conformance.models.verification import Checker, Limits, Result

ROOT = model_root()
RUNS = {
    f"{manifest.name}/{run.name}": (manifest, run)
    for manifest in load_models(ROOT).values()
    for run in manifest.runs
    if run.tier == "pr"
}
LIMITS = Limits(timeout=300.0, memory_mb=2048, workers=1)


@pytest.fixture(scope="module")
def result_of(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Result]]:
    """Results by name. The model checker works ahead of the tests, one process per core."""
    missing = ""
    try:
        tool = find_tool(ROOT)
    except ToolProblem as problem:
        missing = str(problem)
    if missing:  # outside the handler, so that the sentence stands alone
        pytest.fail(missing, pytrace=False)
    checker = Checker(tool, LIMITS)

    def check(manifest: Manifest, run: Run) -> Result:
        return checker.check(manifest, run, lambda _run, _progress: None)

    started: dict[str, Future[Result]] = {}
    with checker.working(len(os.sched_getaffinity(0))) as pool:

        def result(name: str) -> Result:
            if name not in started:
                started[name] = pool.submit(check, *RUNS[name])
            return started[name].result()

        if (
            "PYTEST_XDIST_WORKER" not in os.environ
        ):  # there every worker has a part of the tests only
            for item in request.session.items:
                if getattr(item, "originalname", "") == test_run_as_its_manifest_says.__name__:
                    name = item.callspec.params["name"]  # type: ignore[attr-defined]
                    started[name] = pool.submit(check, *RUNS[name])
        yield result
        checker.cancel()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", RUNS)
def test_run_as_its_manifest_says(name: str, result_of: Callable[[str], Result]) -> None:
    result = result_of(name)
    if result.verdict != "as expected":
        shown = ""
        if result.outcome is not None and result.outcome.trace and result.verdict != "drift":
            drawn = ladder.build(result.outcome.trace, result.manifest.ladder, result.outcome.loop)
            shown = f"\n{ladder.as_text(drawn)}"
        pytest.fail(f"{result.verdict}: {result.why}{shown}", pytrace=False)
