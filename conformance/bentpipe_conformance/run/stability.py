"""Do repeated certifications of one implementation agree? ``make stability`` asks.

A verdict that flips between pass and fail is a defect of the judge or of the bed; where the machine
is loaded on purpose, inconclusive verdicts are allowed.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import click
from bentpipe_reference.common.processes import ended_by_signals

from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.run.certify import certify
from bentpipe_conformance.run.plan import make_plan
from bentpipe_conformance.run.seal import seal_bundle
from bentpipe_conformance.run.watcher import Watcher


def _burn() -> None:
    """Compute until the parent ends, however it ends."""
    parent = multiprocessing.parent_process()
    while parent is None or not wait([parent.sentinel], timeout=0):
        sum(range(1_000_000))


@contextmanager
def loaded(cores: int) -> Iterator[None]:
    """Meanwhile ``cores`` processes compute; they end with this one, even when it is killed."""
    burners = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(cores)]
    try:
        for burner in burners:
            burner.start()
        yield
    finally:
        for burner in burners:
            if burner.pid is not None:
                burner.kill()


def verdicts_of(result: dict[str, Any]) -> dict[str, str]:
    """Verdicts of requirements and cases by identifier."""
    return {row["id"]: row["verdict"] for row in (*result["requirements"], *result["cases"])}


def differences(
    runs: Sequence[dict[str, str]], *, only_flips: bool = False
) -> dict[str, list[str]]:
    """All verdicts of each identifier that did not get the same in every run.

    With ``only_flips`` only of those that both passed and failed.
    """
    found = {}
    for name in sorted({name for run in runs for name in run}):
        seen = [run.get(name, "absent") for run in runs]
        if {Verdict.PASS, Verdict.FAIL} <= set(seen) if only_flips else len(set(seen)) > 1:
            found[name] = seen
    return found


def _certifications(
    iut: str, runs: int, link: str, profile: str | None, bed: str, only: tuple[str, ...]
) -> Iterator[dict[str, str]]:
    """The verdicts of one certification after the other.

    Raises:
        click.UsageError: there is no such implementation, link, profile, bed or case.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bentpipe-stability-") as folder:
        for number in range(runs):
            try:
                plan = make_plan(
                    iut=iut, link=link, profile=profile, bed=bed, only=only, seed=number,
                    directory=Path(folder) / str(number),
                )  # fmt: skip
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            bundle = certify(plan, Watcher())
            yield verdicts_of(seal_bundle(bundle, jobs=plan.jobs))
            bundle.close()
            click.echo(f"run {number + 1} of {runs}: {time.monotonic() - started:.0f} s", err=True)


@click.command(
    epilog="Example: python -m bentpipe_conformance.run.stability linux --runs 20 --load"
)
@click.argument("iut", default="linux")
@click.option("--runs", default=20, show_default=True, help="Certifications in a row.")
@click.option("--link", default="geo", show_default=True, help="Link profile.")
@click.option("--profile", help="Requirements to judge (default: the suite's first).")
@click.option("--bed", default="auto", show_default=True, help="Place.")
@click.option("--only", multiple=True, help="Only these cases.")
@click.option("--load", is_flag=True, help="Keep every core busy with other work meanwhile.")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
def main(
    iut: str, runs: int, link: str, profile: str | None, bed: str, only: tuple[str, ...],
    load: bool, as_json: bool,
) -> None:  # fmt: skip
    """Certify IUT again and again; exit status 0 when no verdict flipped (1 otherwise).

    Interrupted, it compares what it has (status 130).
    """
    found: list[dict[str, str]] = []
    interrupted = False
    try:
        with ended_by_signals(), loaded(multiprocessing.cpu_count() if load else 0):
            for run in _certifications(iut, runs, link, profile, bed, only):
                found.append(run)
    except KeyboardInterrupt:
        interrupted = True
    different = differences(found, only_flips=load)
    if as_json:
        click.echo(json.dumps({"runs": len(found), "load": load, "different": different}, indent=1))
    else:
        for name, seen in different.items():
            click.echo(f"{name}: {', '.join(seen)}")
        click.echo(
            f"{len(found)} certifications of {iut}{' under load' if load else ''}: "
            f"{len(different)} of {len(found[0]) if found else 0} verdicts differ"
        )
    sys.exit(130 if interrupted else 1 if different else 0)


if __name__ == "__main__":
    main()
