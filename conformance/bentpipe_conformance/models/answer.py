"""A designer's question: does this change break something, and what is the shortest way there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace

from bentpipe_conformance.models.definitions import definitions_of, needed, variables_of
from bentpipe_conformance.models.manifest import Manifest, Run
from bentpipe_conformance.models.verification import Checker, Result

BROKEN = ("violation", "not caught", "not covered")
_TUPLE = re.compile(r"\w+ == <<[\w, <>]*>>")
_OR = " or "
_KINDS = {"check": 0, "liveness": 1, "reach": 2, "mutant": 3, "limit": 3}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known when the search ends.

    Attributes:
        results: of the runs that were finished, in the order in which they ended.
        left: the runs that were not.
        seconds: wall clock.
    """

    results: list[Result]
    left: list[tuple[Manifest, Run]]
    seconds: float

    @property
    def broken(self) -> Result | None:
        """The shortest of what has been found broken."""
        found = [item for item in self.results if item.verdict in BROKEN]
        return min(found, key=_length, default=None)


def _length(result: Result) -> int:
    return len(result.outcome.trace) if result.outcome is not None else 0


def small_first(chosen: Sequence[tuple[Manifest, Run]]) -> list[tuple[Manifest, Run]]:
    """Runs in the order in which a broken rule is likely to be found soon."""
    return sorted(chosen, key=lambda item: (_KINDS[item[1].kind], item[1].seconds or 0.0))


def answer(
    checker: Checker, chosen: Sequence[tuple[Manifest, Run]], workers: int, *,
    first: bool = True, within: float | None = None,
    finished: Callable[[Result], None] = lambda _result: None,
) -> Answer:  # fmt: skip
    """Run until something breaks, or until the time is up.

    Args:
        checker: cancelled at the end.
        chosen: the runs.
        workers: runs at a time.
        first: whether to end at the first that breaks.
        within: seconds of wall clock; None for no limit.
        finished: told of each result.
    """
    began = time.monotonic()
    results: dict[int, Result] = {}
    order = small_first(chosen)
    with checker.working(workers) as pool:
        futures: dict[Future[Result], int] = {
            pool.submit(_checked, checker, *item): at for at, item in enumerate(order)
        }
        with suppress(TimeoutError):
            for future in as_completed(futures, within):
                result = results[futures[future]] = future.result()
                finished(result)
                if first and result.verdict in BROKEN:
                    break
        checker.cancel()
        pool.shutdown(cancel_futures=True)
    left = [item for at, item in enumerate(order) if at not in results]
    return Answer(list(results.values()), left, time.monotonic() - began)


def _checked(checker: Checker, manifest: Manifest, run: Run) -> Result:
    """One run; of temporal properties that TLC does not tell apart, one that is violated."""
    result = checker.check(manifest, run)
    if result.verdict == "violation" and _OR in result.violated:
        for name in result.violated.split(_OR):
            alone = checker.check(manifest, replace(run, checks=(name,)))
            if alone.violated == name:
                return alone
    return result


def stated(manifest: Manifest, name: str) -> str:
    """The text of a property in the model's modules; empty where none defines it."""
    for path in sorted(manifest.folder.glob("*.tla")):
        found = definitions_of(path.read_text(encoding="utf-8")).get(name)
        if found is not None:
            return found.source
    return ""


def variables_behind(manifest: Manifest, name: str) -> frozenset[str]:
    """The variables that a property speaks of, at whatever remove; none where it is not found.

    A tuple of variables, such as the one that an action may leave unchanged, speaks of none.
    """
    texts = [path.read_text(encoding="utf-8") for path in sorted(manifest.folder.glob("*.tla"))]
    known = {
        key: item
        for text in texts
        for key, item in definitions_of(text).items()
        if not _TUPLE.fullmatch(item.code)
    }
    names = {word for item in needed([name], known) for word in known[item].names}
    return frozenset().union(*map(variables_of, texts)) & names
