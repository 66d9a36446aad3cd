"""``bentpipe bed``: build, fetch, find and measure the test bed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.cli.options import bed_option, examples, json_option, link_option
from bentpipe_conformance.cli.outcome import USAGE, explained
from bentpipe_conformance.cli.output import output, print_json

if TYPE_CHECKING:
    from bentpipe_conformance.bed.progress import Step


@click.group(epilog=examples("bed build", "bed check --link geo --json"))
def bed() -> None:
    """The test bed: a satellite link laid out by netem in network namespaces.

    It runs in one of three places, the first that this machine can offer: uml-virtual (User-Mode
    Linux with a virtual clock: exact, and faster than the satellite), uml (Debian's packaged
    User-Mode Linux, on the wall clock) or host (this kernel's own netem; needs root).
    """


@contextmanager
def _steps() -> Iterator[Callable[[Step], None]]:
    """Shows the steps of a long task: a bar on a terminal, a line per phase elsewhere."""
    console = output(stderr=True)
    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

        def show(step: Step) -> None:
            if step.phase not in tasks:
                tasks[step.phase] = bar.add_task(step.text, total=None)
                if not console.is_terminal:
                    console.print(f"{step.phase}: {step.text}", highlight=False)
            total = step.total or None
            bar.update(tasks[step.phase], description=step.text, total=total, completed=step.done)

        yield show


@bed.command(epilog=examples("bed build"))
@json_option("Print the kernel as JSON.")
def build(as_json: bool) -> None:
    """Build the virtual-time kernel from Debian's source package, once per machine.

    Needs gcc, make and some six minutes of two cores, but no root; the result is kept in
    $XDG_CACHE_HOME/bentpipe. Does nothing when the kernel is there.
    """
    from bentpipe_conformance.bed.build import build as build_kernel

    with explained(BedError), _steps() as progress:
        kernel = build_kernel(progress)
    _print_kernel(kernel, as_json)


@bed.command(epilog=examples("bed fetch"))
@json_option("Print the kernel as JSON.")
def fetch(as_json: bool) -> None:
    """Get a kernel for the bed in seconds: the one built before, else Debian's packaged one."""
    from bentpipe_conformance.bed.kernel import fetch_packaged, find_virtual

    with explained(BedError), _steps() as progress:
        kernel = find_virtual() or fetch_packaged(progress)
    _print_kernel(kernel, as_json)


def _print_kernel(kernel: Any, as_json: bool) -> None:
    if as_json:
        print_json({key: str(value) for key, value in asdict(kernel).items()})
        return
    clock = "virtual clock" if kernel.virtual else "wall clock"
    output().print(f"{kernel.path} (Linux {kernel.version}, {clock})", soft_wrap=True)


@bed.command(epilog=examples("bed check --link leo-40"))
@link_option
@bed_option("place", "Which place to measure.")
@json_option("Print the figures as JSON.")
def check(link: str, place: str, as_json: bool) -> None:
    """Lay out a link and measure its delay, rate and loss.

    Every certification checks its bed the same way before it starts.
    """
    from bentpipe_conformance.run.opening import load_link
    from bentpipe_conformance.run.workplace import check_place

    with explained(ValueError, exit_code=USAGE):
        profile = load_link(link)
    with explained(BedError):
        name, reason, figures = check_place(place, profile)
    if as_json:
        print_json({"place": name, "reason": reason, "link": profile.id, **figures})
        return
    console = output()
    console.print(f"[bold]{name}[/]: {reason}", soft_wrap=True, highlight=False)
    for line in _figures(figures):
        console.print(f"  {line}", highlight=False)


def _figures(figures: dict[str, Any]) -> list[str]:
    """The figures of a check as lines for people."""
    lines = [
        f"round trip  {figures['rtt_mean'] * 1e3:.3f} ms, expected "
        f"{figures['rtt_expected'] * 1e3:.3f} ms "
        f"(error {figures['rtt_error_mean'] * 1e3:.3f} ms on average, "
        f"{figures['rtt_error_p99'] * 1e3:.3f} ms at the 99th percentile)"
    ]
    for key, way in (("forward", "to the tester"), ("return", "to the implementation")):
        measured, expected = figures[f"{key}_bit_s"], figures[f"{key}_expected"]
        if measured and expected:
            found = f"{measured / 1e3:.1f} kb/s {way}"
            lines.append(f"rate        {found}, expected {expected / 1e3:.1f} kb/s")
    lines.append(f"loss        {figures['lost']} of {figures['sent']} packets")
    lines.append(f"times       within {figures['timing_error'] * 1e3:.3f} ms")
    return lines + [f"[yellow]{fault}[/]" for fault in figures["faults"]]
