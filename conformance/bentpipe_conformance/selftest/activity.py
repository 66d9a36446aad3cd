"""Whether faults change any packet: for whoever writes a blind round, without the exam.

``python -m bentpipe_conformance.selftest.activity PROTOCOL FILE`` lets each fault or variant of a
Python file talk to a true reference over drawn links and users, or stand between two ends if it is
a box's. It says in how many of the transfers packets differ from those of true references. Nothing
is judged.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_reference.common.blind import Variant, written_in
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Subject, subject_of

from bentpipe_conformance.engine.case import Script
from bentpipe_conformance.engine.suite import Suite, load_suites
from bentpipe_conformance.selftest.chance import draw_calls, draw_link
from bentpipe_conformance.selftest.innocence import (
    ADDRESSES,
    LENGTH_S,
    connected,
    improvised,
    run_transfer,
)

SEEDS = range(1, 21)


@dataclass(frozen=True, slots=True)
class Activity:
    """What became of a fault.

    Attributes:
        active: transfers in which packets differ.
        transfers: how many there were.
        error: the exception that ended the faulty host, or kept it from starting; empty for none.
    """

    active: int
    transfers: int
    error: str = ""


def activity_of(fault: Variant, protocol: str, seeds: Sequence[int] = SEEDS) -> Activity:
    """Let a fault transfer data with a true reference, or for what stands between two ends."""
    subject = subject_of(protocol)
    suite = next(suite for suite in load_suites().values() if suite.folder == protocol)
    profile = fault.profile or next(iter(subject.setups))
    setup = subject.setups[profile]
    if fault.setting:
        setup = subject.settings[fault.setting].configure(setup)
    script = suite.driver.improvise
    active = 0
    for seed in seeds:
        try:
            if script is not None:
                true = _passing(suite, script, seed, fault.setting)
                faulty = _passing(suite, script, seed, fault.setting, fault.configure)
            else:
                true = _packets(subject, setup, setup, seed)
                faulty = _packets(subject, fault.configure(setup), setup, seed)
        except Exception as error:  # whatever a stranger wrote
            return Activity(active, len(seeds), f"{type(error).__name__}: {error}")
        active += faulty != true
    return Activity(active, len(seeds))


def _passing(
    suite: Suite, script: Script, seed: int, setting: str,
    configure: Callable[[Any], Any] = lambda setup: setup,
) -> list[tuple[float, bytes]]:  # fmt: skip
    """What reaches and leaves a box on both sides.

    Raises:
        RuntimeError: it broke down.
    """
    outcome = improvised(suite, script, seed, configure, setting)
    if outcome.broken or outcome.died:
        raise RuntimeError(outcome.broken or outcome.died)
    return [(item.time, item.data) for item in outcome.captured]


def _packets(subject: Subject, first: Any, second: Any, seed: int) -> list[tuple[float, bytes]]:
    """What the first host sends and receives."""
    numbers = random.Random(seed)
    simulation = Simulation()
    link = draw_link(numbers)
    hosts = [
        subject.make(address, setup, numbers.getrandbits(32))
        for address, setup in zip(ADDRESSES, (first, second), strict=True)
    ]
    stations = connected(simulation, hosts, (0.0, 0.0), link, numbers)
    for number, station in enumerate(stations):
        for call in draw_calls(numbers, LENGTH_S):
            subject.call(simulation, station, hosts[number], ADDRESSES[1 - number], call)
    run_transfer(simulation, stations, LENGTH_S)
    return [(item.time, item.data) for item in stations[0].captured]


def faults_in(path: Path) -> dict[str, Variant]:
    """The faults or variants of a Python file.

    Raises:
        ValueError: it is none, or two share an identifier.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return written_in(module)


def main(arguments: Sequence[str] | None = None, out: Callable[[str], object] = print) -> int:
    """Say of each fault whether it is active; 0 when all are, 1 otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("protocol", choices=("tcp", "stp", "pep"))
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    idle = 0
    for fault in faults_in(given.file).values():
        found = activity_of(fault, given.protocol)
        what = found.error or f"packets differ in {found.active} of {found.transfers} transfers"
        out(f"{fault.id}: {what}")
        idle += bool(found.error) or not found.active
    return 1 if idle else 0


if __name__ == "__main__":
    sys.exit(main())
