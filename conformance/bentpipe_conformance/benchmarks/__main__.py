"""``python -m bentpipe_conformance.benchmarks``: run the benchmarks and print them."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import click

from bentpipe_conformance.benchmarks.model import Report


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Where a benchmark lives: its module is imported only when it runs.

    Attributes:
        module: module beside this one.
        function: takes the number of repetitions, returns a :class:`Report`.
        repeat: repetitions unless asked otherwise.
        alone: whether it takes minutes and runs only where it is named.
    """

    module: str
    function: str
    repeat: int
    alone: bool = False

    def run(self, repeat: int | None) -> Report:
        """Measure."""
        module = importlib.import_module(f"bentpipe_conformance.benchmarks.{self.module}")
        measure: Callable[[int], Report] = getattr(module, self.function)
        return measure(repeat or self.repeat)


BENCHMARKS = {
    "codec": Benchmark("tcp_codecs", "reference_codec", 5),
    "tester-codec": Benchmark("tcp_codecs", "tester_codec", 5),
    "stp-codec": Benchmark("stp_codecs", "reference_codec", 5),
    "stp-tester-codec": Benchmark("stp_codecs", "tester_codec", 5),
    "transfer": Benchmark("transfers", "transfer", 5),
    "linearity": Benchmark("transfers", "linearity", 3),
    "stp-transfer": Benchmark("transfers", "stp_transfer", 5),
    "rwbp-chain": Benchmark("chains", "rwbp_chain", 3),
    "rwbp-scheduler": Benchmark("chains", "rwbp_scheduler", 3),
    "stp-sockets": Benchmark("stp_sockets", "sockets", 3),
    "stp-connections": Benchmark("stp_sockets", "connections", 1),
    "designer": Benchmark("designer", "designer", 1),
    "analyze": Benchmark("captures", "analyze", 1),
    "analyze-million": Benchmark("captures", "analyze_million", 1, alone=True),
    "boxes": Benchmark("boxes", "boxes", 1),
    "selftest": Benchmark("suites", "selftest", 1),
    "certify": Benchmark("suites", "certify", 1),
}
"""By the name for ``--only``; a further one is a function and a line here."""

_WORDS = {True: "met", False: "MISSED", None: ""}


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: python -m bentpipe_conformance.benchmarks --only codec --repeat 9",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(BENCHMARKS)),
    help="Only this one (repeatable); analyze-million runs only so.",
)
@click.option(
    "--repeat", type=click.IntRange(1),
    help="Measure this often and take the median (default: 3 to 5, selftest and certify once).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def main(only: tuple[str, ...], repeat: int | None, as_json: bool) -> None:
    """Measure what bentpipe costs and print it beside its targets.

    Targets are meant for two cores that have nothing else to do. A missed one does not change
    the exit status; a benchmark that breaks makes it 1, after the others have run.
    """
    about = _machine()
    if not as_json:
        click.echo("  ".join(f"{name} {value}" for name, value in about.items()))
    reports = {}
    broken = {}
    for name in only or [name for name, known in BENCHMARKS.items() if not known.alone]:
        try:
            reports[name] = BENCHMARKS[name].run(repeat)
        except Exception as error:  # the others may have taken long
            broken[name] = f"{type(error).__name__}: {error}"
            click.echo(f"\nerror: {name}: {broken[name]}", err=True)
            continue
        if not as_json:
            _print(name, reports[name])
    if as_json:
        document = {
            "machine": about,
            "benchmarks": {name: asdict(report) for name, report in reports.items()},
            "errors": broken,
        }
        click.echo(json.dumps(document, indent=2))
    if broken:
        sys.exit(1)


def _machine() -> dict[str, str]:
    """Processor, cores, how busy they are, system, Python, Scapy and bentpipe."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "scapy": version("scapy"),
        "bentpipe": version("bentpipe"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def _print(name: str, report: Report) -> None:
    click.echo(f"\n{name}: {report.measured}")
    if report.skipped:
        click.echo(f"  skipped: {report.skipped}")
    for figure in report.figures:
        line = f"  {figure.value:12.4g}  {figure.name}"
        if figure.target:
            line += f"  ({figure.target}: {_WORDS[figure.met]})"
        click.echo(line)


if __name__ == "__main__":
    main()
