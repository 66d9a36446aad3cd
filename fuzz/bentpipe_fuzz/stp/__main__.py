"""The campaign's command."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from bentpipe_reference.common.mutation import load_mutants

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp import campaign as campaigns
from bentpipe_fuzz.stp.black_box import BlackBoxError, Target, attack
from bentpipe_fuzz.stp.flood import flood
from bentpipe_fuzz.stp.plan import MODES, TURNS, Mode
from bentpipe_fuzz.stp.runs import Configure, Outcome

PASSED, FAILED, USAGE, OPEN = 0, 1, 2, 3
"""Exit statuses, those of ``bentpipe``."""

_TELL_EVERY_S = 5.0


class Failure(click.ClickException):
    """One sentence, and the status of an error."""

    exit_code = OPEN


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
               epilog="Exit status: 0 pass, 1 fail, 2 wrong usage, 3 error.")  # fmt: skip
@click.option("--runs", type=click.IntRange(1), help="Stop after so many runs.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Stop after so long.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Of the first run of each mode; the following count up.")  # fmt: skip
@click.option("--only", "modes", multiple=True, type=click.Choice(MODES),
              help="This mode only; may be given more than once.")  # fmt: skip
@click.option("--begins", type=click.IntRange(0), default=0,
              help="First send this many BEGINs from forged addresses.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path),
              help="Directory for what is found; a campaign there is continued.")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Forget the campaign in that directory.")
@click.option("--shrink", "shrink_s", type=click.FloatRange(0), default=60.0, show_default=True,
              help="Seconds for making one failing run smaller.")  # fmt: skip
@click.option("--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Repeat the failing run of a file.")  # fmt: skip
@click.option("--mutant", help="Run against this mutant; a good campaign fails.")
@click.option("--against", metavar="COMMAND",
              help="Attack another implementation over UDP: a command with {address} and {port}, "
                   "or ADDRESS:PORT of one that runs.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def main(
    runs: int | None,
    seconds: float | None,
    seed: int,
    modes: tuple[Mode, ...],
    begins: int,
    out: Path | None,
    fresh: bool,
    shrink_s: float,
    replay: Path | None,
    mutant: str | None,
    against: str | None,
    as_json: bool,
) -> None:
    """Let hostile and unlucky peers loose on STP, in virtual time and from seeds.

    \b
    Examples:
      python -m bentpipe_fuzz.stp --runs 1000
      python -m bentpipe_fuzz.stp --seconds 3600 --out campaign
      python -m bentpipe_fuzz.stp --only off-path --seed 7 --runs 1
      python -m bentpipe_fuzz.stp --replay campaign/off-path-7.json
      python -m bentpipe_fuzz.stp --begins 1000000 --runs 1
      python -m bentpipe_fuzz.stp --mutant stp-delivers-twice --runs 50
      python -m bentpipe_fuzz.stp --seconds 60 \\
          --against './my-stp --listen {address}:{port}'
    """
    try:
        if replay is not None:
            _finish_replay(campaigns.replay(replay, _configure(mutant)), as_json)
        elif against is not None:
            _black_box(against, seed, runs, seconds or 20.0, as_json)
        else:
            bounded = runs is not None or seconds is not None
            if fresh and out is not None:
                (out / campaigns.STATE).unlink(missing_ok=True)
            _campaign(
                campaigns.load(out, seed), begins, seed, as_json, modes=modes or TURNS,
                runs=runs if bounded else 100, seconds=seconds, folder=out, shrink_s=shrink_s,
                configure=_configure(mutant),
            )  # fmt: skip
    except (ValueError, OSError) as error:
        raise Failure(str(error)) from None


def _configure(mutant: str | None) -> Configure | None:
    if mutant is None:
        return None
    known = load_mutants()
    if mutant not in known or known[mutant].profile != "stp1e2":
        raise click.UsageError(f"there is no mutant {mutant!r} of STP; see bentpipe selftest stp")
    return known[mutant].configure


def _campaign(tally: campaigns.Tally, begins: int, seed: int, as_json: bool, **bounds: Any) -> None:
    """Run the flood and the campaign, whose bounds are those of ``campaigns.campaign``."""
    found: list[Outcome] = []
    flooded: dict[str, Any] | None = None
    if begins:
        try:
            flooded = asdict(flood(begins, seed))
        except Violation as violation:
            flooded = {"violation": str(violation)}
        _tell(as_json, f"{begins} forged BEGINs: {flooded}")
    told = time.monotonic()

    def progress(so_far: campaigns.Tally) -> None:
        nonlocal told
        if time.monotonic() - told >= _TELL_EVERY_S:
            told = time.monotonic()
            _tell(as_json, _line(so_far, len(found)))

    def tell(outcome: Outcome) -> None:
        found.append(outcome)
        _tell(as_json, f"{outcome.plan.mode} {outcome.plan.seed}: {outcome.violation}")
        _tell(as_json, f"  {len(outcome.disturbances)} disturbances; again: "
                       f"{campaigns.command(outcome)}")  # fmt: skip

    interrupted = False
    try:
        campaigns.campaign(tally, found=tell, progress=progress, **bounds)
    except KeyboardInterrupt:
        interrupted = True
    failed = bool(found) or (flooded is not None and "violation" in flooded)
    if as_json:
        failures = [campaigns.document(outcome) for outcome in found]
        result = {"verdict": "fail" if failed else "error" if interrupted else "pass",
                  **asdict(tally), "flood": flooded, "found": failures}  # fmt: skip
        click.echo(json.dumps(result, indent=1))
    else:
        click.echo(_line(tally, len(found)))
    sys.exit(FAILED if failed else OPEN if interrupted else PASSED)


def _line(tally: campaigns.Tally, found: int) -> str:
    modes = ", ".join(f"{mode} {count}" for mode, count in tally.runs.items())
    return (
        f"{tally.total} runs ({modes}): {tally.packets} packets, "
        f"{tally.disturbances} disturbances, {tally.succeeded} successes, "
        f"{tally.failed} failures told; {found} violations"
    )


def _tell(as_json: bool, line: str) -> None:
    click.echo(line, err=as_json)


def _finish_replay(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(campaigns.document(outcome), indent=1))
    else:
        click.echo(str(outcome.violation or "the run no longer fails"))
    sys.exit(PASSED if outcome.violation is None else FAILED)


def _black_box(against: str, seed: int, runs: int | None, seconds: float, as_json: bool) -> None:
    try:
        result = attack(Target.of(against), seed, seconds=seconds, rounds=runs)
    except BlackBoxError as error:
        raise Failure(str(error)) from None
    if as_json:
        click.echo(json.dumps(asdict(result), indent=1))
    else:
        click.echo(result.sentence)
    sys.exit(FAILED if result.violation else PASSED)


if __name__ == "__main__":
    main()
