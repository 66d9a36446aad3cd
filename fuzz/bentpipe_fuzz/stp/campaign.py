"""Many runs: which come next, what they have found, and where it is stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bentpipe_fuzz.campaign.shrinking import shrunk
from bentpipe_fuzz.stp.disturbance import Disturbance, as_json, from_json
from bentpipe_fuzz.stp.plan import TURNS, Mode, draw
from bentpipe_fuzz.stp.runs import Configure, Outcome, run

STATE = "campaign.json"


@dataclass(slots=True)
class Tally:
    """The results of a campaign so far.

    Attributes:
        first_seed: of the campaign.
        runs: done, by mode; the next of a mode has the seed ``first_seed + runs[mode]``.
        packets: honest packets sent.
        disturbances: faults and forged packets.
        succeeded, failed: outcomes that users were told.
        failures: files of what was found, by the campaign's directory.
    """

    first_seed: int = 1
    runs: dict[str, int] = field(default_factory=dict)
    packets: int = 0
    disturbances: int = 0
    succeeded: int = 0
    failed: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Runs of all modes."""
        return sum(self.runs.values())

    def next_seed(self, mode: Mode) -> int:
        """Of the next run of a mode."""
        return self.first_seed + self.runs.get(mode, 0)

    def count(self, outcome: Outcome) -> None:
        """Note a run."""
        mode = outcome.plan.mode
        self.runs[mode] = self.runs.get(mode, 0) + 1
        self.packets += outcome.packets
        self.disturbances += len(outcome.disturbances)
        self.succeeded += outcome.succeeded
        self.failed += outcome.failed


def load(folder: Path | None, first_seed: int) -> Tally:
    """The tally of a campaign to continue, or a new one.

    Raises:
        ValueError: the file there is not a campaign's.
    """
    if folder is None or not (folder / STATE).exists():
        return Tally(first_seed)
    try:
        return Tally(**json.loads((folder / STATE).read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder / STATE} is not a campaign's ({error})") from None


def save(folder: Path | None, tally: Tally) -> None:
    """Write the tally, whole or not at all."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{STATE}.part"
    fresh.write_text(json.dumps(asdict(tally), indent=1) + "\n", encoding="utf-8")
    fresh.replace(folder / STATE)


def _ignore(_: object) -> None:
    """Do nothing."""


def campaign(
    tally: Tally,
    *,
    modes: Sequence[Mode] = TURNS,
    runs: int | None = None,
    seconds: float | None = None,
    folder: Path | None = None,
    shrink_s: float = 60.0,
    configure: Configure | None = None,
    found: Callable[[Outcome], None] = _ignore,
    progress: Callable[[Tally], None] = _ignore,
    most_failures: int = 10,
) -> None:
    """Continue a campaign, the modes in turn, until a bound is reached.

    Args:
        tally: changed as it goes.
        modes: which.
        runs: how many more, None for no bound.
        seconds: how long, None for no bound.
        folder: for what is found and for continuing later, None to write nothing.
        shrink_s: seconds for making one example smaller.
        configure: makes a mutant of the reference.
        found: given every failing run, made as small as possible.
        progress: called after every run.
        most_failures: after which it ends.
    """
    ends = None if seconds is None else time.monotonic() + seconds
    done = failures = 0
    while runs is None or done < runs:
        if (ends is not None and time.monotonic() >= ends) or failures >= most_failures:
            break
        mode = modes[done % len(modes)]
        outcome = run(draw(mode, tally.next_seed(mode)), None, configure)
        tally.count(outcome)
        done += 1
        if outcome.violation is not None:
            failures += 1
            outcome = smaller(outcome, configure, shrink_s)
            if folder is not None:
                tally.failures.append(write(folder, outcome))
            found(outcome)
        save(folder, tally)
        progress(tally)


def smaller(outcome: Outcome, configure: Configure | None, seconds: float) -> Outcome:
    """The same failure with fewer disturbances."""
    assert outcome.violation is not None
    requirement = outcome.violation.requirement
    plan = outcome.plan
    if plan.attack is not None and requirement != "STP-SEC-004":
        plan = replace(plan, attack=replace(plan.attack, metered=False))

    def again(given: list[Disturbance]) -> Outcome:
        return run(plan, given, configure)

    def fails(given: list[Disturbance]) -> bool:
        violation = again(given).violation
        return violation is not None and violation.requirement == requirement

    least = shrunk(outcome.disturbances, fails, seconds=seconds)
    repeated = again(least)
    return outcome if repeated.violation is None else repeated


def command(outcome: Outcome) -> str:
    """One line that repeats a run."""
    return (
        f"python -m bentpipe_fuzz.stp --only {outcome.plan.mode} "
        f"--seed {outcome.plan.seed} --runs 1"
    )


def document(outcome: Outcome) -> dict[str, Any]:
    """A failing run as stored: what repeats it, and its last packets."""
    return {
        "mode": outcome.plan.mode,
        "seed": outcome.plan.seed,
        "violation": str(outcome.violation),
        "repeat": command(outcome),
        "disturbances": [as_json(one) for one in outcome.disturbances],
        "plan": asdict(outcome.plan),
        "packets": [
            [seen.at, seen.event, seen.source, seen.target, seen.octets.hex()]
            for seen in outcome.log
        ],
    }


def write(folder: Path, outcome: Outcome) -> str:
    """Write a failing run; return the file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{outcome.plan.mode}-{outcome.plan.seed}.json"
    (folder / name).write_text(json.dumps(document(outcome), indent=1) + "\n", encoding="utf-8")
    return name


def replay(file: Path, configure: Configure | None = None) -> Outcome:
    """Repeat the run of a file, with its disturbances, perhaps on a mutant.

    Raises:
        ValueError: it is not the file of a failing run.
        OSError: it cannot be read.
    """
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        plan = draw(told["mode"], told["seed"])
        given = [from_json(item) for item in told["disturbances"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is not a failing run ({error})") from None
    return run(plan, given, configure)
