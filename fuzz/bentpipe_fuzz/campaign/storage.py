"""What a campaign leaves: a folder with one sub-folder for each finding, and its figures.

::

    DIR/campaign.json                  figures: conversations, packets, states x packets, findings
    DIR/findings/REQUIREMENT-N/        replay.json, story.txt, iut.pcapng, peer.pcapng

Every file appears whole or not at all, and ``replay.json`` is written last, so that a finding is
complete if it has one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.evidence.bundle import POINTS
from bentpipe_conformance.evidence.captures import dump_captured

from bentpipe_fuzz.campaign.engine import Discovery, Tally
from bentpipe_fuzz.campaign.oracle import ALIVE
from bentpipe_fuzz.campaign.replay import Replay, ReplayError, load

FIGURES = "campaign.json"
FINDINGS = "findings"
PLAYING = "playing.json"
"""The replay file of what a shard plays just now: what is left of it if its guest ends."""
STOP = "stop"
"""A file that asks a shard to begin no more conversations."""
MOST_LADDER = 200
"""Packets that a ladder shows at most."""
AROUND = 20
"""Packets that it shows before and behind one that is marked."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is attacked and how; a worker gets it as JSON.

    Attributes:
        iut, link: identifier or path of description and link profile.
        profile: of the suite.
        seed: of this shard.
        examples: conversations to play; 0 for no limit.
        modes: modes, or none for all.
        timing_error: seconds, of the bed.
        shrink_runs: see :class:`~bentpipe_fuzz.campaign.engine.Campaign`.
        folder: of the shard's results.
        patience: the end of every so many conversations is waited for; of none if 0.
        replay: a replay file's text, whose script alone is played; empty for a campaign.
        share: where conversations worth keeping are shared; empty for nowhere.
    """

    iut: str
    link: str
    profile: str
    seed: int
    examples: int
    modes: tuple[str, ...]
    timing_error: float
    shrink_runs: int
    folder: str
    patience: int
    replay: str = ""
    share: str = ""


@dataclass(slots=True)
class Figures:
    """The figures of one shard or of several, as they are stored."""

    conversations: int = 0
    packets: int = 0
    link_seconds: float = 0.0
    restarts: int = 0
    reached: set[tuple[str, str]] = field(default_factory=set)
    met: set[str] = field(default_factory=set)
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)
    problem: str = ""
    broken: str = ""
    note: str = ""

    @classmethod
    def of(cls, tally: Tally) -> Figures:
        """Those of a campaign so far."""
        return cls(
            tally.conversations, tally.packets, tally.link_seconds, tally.restarts,
            set(tally.reached), set(tally.met), dict[tuple[str, ...], int](tally.seen.items()),
            tally.problem, tally.broken, tally.note,
        )  # fmt: skip

    def add(self, other: Figures) -> None:
        """Count those of another shard as well."""
        self.conversations += other.conversations
        self.packets += other.packets
        self.link_seconds += other.link_seconds
        self.restarts += other.restarts
        self.reached |= other.reached
        self.met |= other.met
        for signature, count in other.seen.items():
            self.seen[signature] = self.seen.get(signature, 0) + count
        self.problem = self.problem or other.problem
        self.broken = self.broken or other.broken
        self.note = self.note or other.note

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "conversations": self.conversations, "packets": self.packets,
            "link_seconds": round(self.link_seconds, 6), "restarts": self.restarts,
            "reached": sorted(map(list, self.reached)), "met": sorted(self.met),
            "seen": [{"signature": list(name), "conversations": count}
                     for name, count in sorted(self.seen.items())],
            "problem": self.problem, "broken": self.broken, "note": self.note,
        }  # fmt: skip

    @classmethod
    def load(cls, folder: Path) -> Figures:
        """Those that a shard has stored; none if it has stored none."""
        try:
            document: Mapping[str, Any] = json.loads((folder / FIGURES).read_text(encoding="utf-8"))
            return cls(
                int(document["conversations"]), int(document["packets"]),
                float(document["link_seconds"]), int(document["restarts"]),
                {(str(a), str(b)) for a, b in document["reached"]}, set(document["met"]),
                {tuple(row["signature"]): row["conversations"] for row in document["seen"]},
                str(document["problem"]), str(document["broken"]), str(document["note"]),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError):
            return cls()


def write(path: Path, octets: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(octets)
    unfinished.replace(path)


def store_figures(folder: Path, document: Mapping[str, Any]) -> None:
    """Write the figures of a campaign or a shard."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / FIGURES, (json.dumps(document, indent=1) + "\n").encode())


def store(found: Discovery, order: Order, suite: Suite) -> Path:
    """Write a finding; return its folder."""
    parent = Path(order.folder) / FINDINGS
    number = 1 + sum(1 for _ in parent.glob(f"{found.signature[0]}-*"))
    name = f"{found.signature[0]}-{number}"
    folder = parent / name
    folder.mkdir(parents=True)
    for point in POINTS:
        octets = dump_captured(found.captured, point, f"{suite.name}/found/{name}", time.time())
        write(folder / f"{point}.pcapng", octets)
    told = story(found, suite)
    write(folder / "story.txt", ("\n".join(told) + "\n").encode())
    replay = Replay(
        found.script, order.iut, order.link, order.profile, found.signature[0], found.sentence,
        found.signature, tuple(told), found.crafted, order.seed,
    )  # fmt: skip
    write(folder / "replay.json", replay.dumps().encode())
    return folder


def story(found: Discovery, suite: Suite) -> list[str]:
    """What happened: the finding, the script and its packets at the implementation's side."""
    requirement, state, packet = found.signature
    lines = [f"{requirement}: {found.sentence}"]
    if packet:
        lines.append(f"in state {state or 'none'}, after {packet}")
    lines += ["", "The script:", *(f"  {line}" for line in found.script.story()), ""]
    return [*lines, "The packets at the implementation's side:", *_ladder(found, suite)]


def _ladder(found: Discovery, suite: Suite) -> list[str]:
    packets: Sequence[Any] = read_trace(found.captured, suite=suite).at("iut")
    marked = set(found.packets)
    lines, following = [], 0
    for place in _shown(len(packets), [n for n, p in enumerate(packets) if p.number in marked]):
        lines += _left_out(place - following)
        packet, following = packets[place], place + 1
        arrow = "IUT -->" if packet.outgoing else "IUT <--"
        mark = "*" if packet.number in marked else " "
        said = suite.reporter.plain(packet)[0]
        lines.append(f" {mark}{packet.number:4d} {packet.time:11.6f}  {arrow}  {said}")
    return [*lines, *_left_out(len(packets) - following)]


def _left_out(count: int) -> list[str]:
    return [f"  ... and {count} more"] if count else []


def _shown(count: int, marked: Iterable[int]) -> list[int]:
    """Places of the packets that a ladder shows: those around the marked ones, then the first."""
    near = {n for at in marked for n in range(max(at - AROUND, 0), min(at + AROUND, count))}
    first = (place for place in range(count) if place not in near)
    return sorted([*sorted(near), *first][:MOST_LADDER])


def store_ending(order: Order, why: str) -> bool:
    """Write what a shard was playing when its process or guest ended, as a finding; if anything."""
    folder = Path(order.folder)
    try:
        played = load(folder / PLAYING)
    except ReplayError:
        return False
    name = f"{ALIVE}-{1 + sum(1 for _ in (folder / FINDINGS).glob(f'{ALIVE}-*'))}"
    (folder / FINDINGS / name).mkdir(parents=True)
    found = replace(
        played, requirement=ALIVE, sentence=why, signature=(ALIVE, "", ""),
        story=(why, *played.script.story()),
    )  # fmt: skip
    write(folder / FINDINGS / name / "story.txt", ("\n".join(found.story) + "\n").encode())
    write(folder / FINDINGS / name / "replay.json", found.dumps().encode())
    return True


def stored(folders: Iterable[Path]) -> list[Path]:
    """The folders of complete findings in those of shards."""
    return sorted(
        path.parent for folder in folders for path in (folder / FINDINGS).glob("*/replay.json")
    )
