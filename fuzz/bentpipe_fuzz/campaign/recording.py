"""Scripts played on an implementation in its place, and kept with their packets.

::

    DIR/1/replay.json, played.json, iut.pcapng, peer.pcapng

``played.json`` says what the implementation violated; it is written last.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.supervised import Supervised
from bentpipe_conformance.bed.uml import Guest
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.timing import lateness
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.evidence.bundle import POINTS
from bentpipe_conformance.evidence.captures import dump_captured, load_captured
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.run.opening import load_link, open_lane, run_settings
from bentpipe_conformance.run.workplace import Workplace

from bentpipe_fuzz.campaign.comparing import Played
from bentpipe_fuzz.campaign.oracle import ALIVE
from bentpipe_fuzz.campaign.replay import Replay, load
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script
from bentpipe_fuzz.campaign.storage import write

PLAYED = "played.json"
REPLAY = "replay.json"
HUNG_S = 180.0
"""Seconds of the wall clock that one script may take."""
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Recital:
    """Which scripts are played where.

    Attributes:
        iut, link: identifier or path of description and link profile.
        profile: of the suite.
        seed: of the implementation's own numbers.
        timing_error: of the bed, seconds.
        patient: see :func:`~bentpipe_fuzz.campaign.run.play`.
        folder: of the results; the scripts are in it already.
    """

    iut: str
    link: str
    profile: str
    seed: int
    timing_error: float
    patient: bool
    folder: str


def recite(order: Recital) -> None:
    """Play the scripts of a folder one after the other; each on a lane that works."""
    description, link = load_iut(order.iut), load_link(order.link)
    settings = run_settings(description, link, order.profile, order.seed)
    lane: Lane | None = None
    for folder in _folders(Path(order.folder)):
        if (folder / PLAYED).exists():
            continue
        if lane is None:
            lane = open_lane(description, link, order.seed, order.timing_error)
        told = load(folder / REPLAY)
        found = play(
            told.script, lane, settings, lateness=lambda trace: lateness(trace, link),
            patient=order.patient,
        )  # fmt: skip
        for point in POINTS:
            name = f"{told.script.suite}/played/{folder.name}"
            octets = dump_captured(found.outcome.captured, point, name, time.time())
            write(folder / f"{point}.pcapng", octets)
        violated = {item.requirement: item.sentence for item in found.findings.values()}
        document = {"violated": violated, "error": found.outcome.timing_error,
                    "broken": found.outcome.broken}  # fmt: skip
        write(folder / PLAYED, json.dumps(document).encode())
        if found.outcome.died or found.outcome.broken:
            lane.close()
            lane = None
    if lane is not None:
        lane.close()


def record(scripts: Sequence[Script], order: Recital, place: Workplace) -> list[Played | None]:
    """Play scripts in a place; None for one that could not be played.

    Raises:
        BedError: the place cannot be had.
    """
    root = Path(order.folder)
    for number, script in enumerate(scripts, 1):
        (root / str(number)).mkdir(parents=True)
        told = Replay(script, order.iut, order.link, order.profile, seed=order.seed)
        write(root / str(number) / REPLAY, told.dumps().encode())
    if place.name == "simulation":
        recite(order)
    else:
        _recite_elsewhere(order, place)
    return [_played(folder, order) for folder in _folders(root)]


def _folders(root: Path) -> list[Path]:
    return sorted((path for path in root.iterdir() if path.name.isdecimal()), key=_number)


def _number(path: Path) -> int:
    return int(path.name)


def _recite_elsewhere(order: Recital, place: Workplace) -> None:
    """In a process or a guest; what ends it, or makes it hang, is left out the next time."""
    root = Path(order.folder)
    file = root / "order.json"
    file.write_text(json.dumps(asdict(order)), encoding="utf-8")
    command = (sys.executable, "-m", "bentpipe_fuzz.campaign.recording", str(file))
    while left := [path for path in _folders(root) if not (path / PLAYED).exists()]:
        if place.image is not None:
            member: Any = Guest(place.image, command, virtual=place.image.virtual, timeout=1e5)
        else:
            console = root / "console.log"
            console.touch()
            member = Supervised(
                command, env=os.environ, cwd=Path.cwd(), console=console, timeout=1e5
            )
        try:
            _wait(member, left)
        finally:
            member.close()
        missing = [path for path in left if not (path / PLAYED).exists()]
        if not missing:
            return
        first = missing[0]
        if len(missing) == len(_folders(root)):
            raise BedError(f"{order.iut} played no script: its guest or process ended before.")
        ended = {"violated": {ALIVE: "its guest or process ended, or hung"}, "error": 0.0,
                 "broken": ""}  # fmt: skip
        write(first / PLAYED, json.dumps(ended).encode())


def _wait(member: Any, left: Sequence[Path]) -> None:
    since, done = time.monotonic(), 0
    while member.running():
        now = sum((path / PLAYED).exists() for path in left)
        if now > done:
            since, done = time.monotonic(), now
        if done == len(left) or time.monotonic() - since > HUNG_S:
            return
        time.sleep(POLL_S)


def _played(folder: Path, order: Recital) -> Played | None:
    document = json.loads((folder / PLAYED).read_text(encoding="utf-8"))
    if document["broken"]:
        return None
    description = load_iut(order.iut)
    octets = {point: folder / f"{point}.pcapng" for point in POINTS}
    held = all(path.exists() for path in octets.values())
    captured = load_captured(
        {point: path.read_bytes() for point, path in octets.items()}, str(folder)
    ) if held else []  # fmt: skip
    trace = read_trace(captured, document["error"], suite=description.suite)
    return Played(trace, document["violated"], order.profile, description.ics)


def main(arguments: Sequence[str]) -> int:
    """``python -m bentpipe_fuzz.campaign.recording ORDER``."""
    recite(Recital(**json.loads(Path(arguments[0]).read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
