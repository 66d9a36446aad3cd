"""Recorded proxies and gateways against the model of flow control."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.rejection import Setup
from bentpipe_conformance.models.traces import Judgement, Trace, read_trace, validate
from bentpipe_experiments.flow_trace import NARROW, main, record
from bentpipe_experiments.zb03 import MSS
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.credit import Credit, CreditFrame
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.rwbp.parts import Setup as Parts
from bentpipe_reference.rwbp.scheduler import Entry, RoundRobin
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue

from ..conftest import EXPECTED, Rejections
from .conftest import written

Events = list[dict[str, Any]]


NETWORKS = (
    NARROW,
    replace(NARROW, peak=60e3, queue=3, middle=(("ip_queue", 1),)),
    replace(NARROW, ber=0.0, receive=1.0),
    replace(NARROW, peak=200e3, queue=12, middle=(("ip_queue", 5),), receive=1.0),
)
FLOWS = (2, 3)
SEEDS = (1, 2)


def recorded(chosen: Container[int]) -> Iterator[tuple[int, str, Events]]:
    """Traces of the reference, those chosen of sixteen, with their numbers and names."""
    for number, (place, flows, seed) in enumerate(product(range(len(NETWORKS)), FLOWS, SEEDS)):
        if number in chosen:
            trace = record(NETWORKS[place], flows, seed=seed, events=220)
            yield number, f"{place}-{flows}-{seed}", trace.events


def of(events: Events, *names: str) -> list[int]:
    """Where events of some kinds are, those at the beginning left out."""
    return [at for at, event in enumerate(events) if event["event"] in names and at > 30]


def corrupted(events: Events, seed: int) -> tuple[Events, int]:
    """The events with one of them changed so that no proxy could do it, and its line."""
    numbers = random.Random(seed)
    kind = ("serve", "move", "pass", "credit")[seed % 4]
    at = numbers.choice(of(events, kind))
    before, changed, after = events[:at], dict(events[at]), events[at + 1 :]
    if kind == "serve":  # again, which nothing calls for
        changed = {"event": "again", "f": changed["f"]}
        if any(event["event"] == "lost" for event in before):
            changed = {"event": "report", "f": changed["f"], "n": 1000, "awaited": 0}
    elif kind == "pass":  # one more than there are, or than the gateway permits
        queued = sum((e["event"] in ("serve", "again", "control")) for e in before)
        limit = max(e["n"] for e in before if e["event"] == "credit")
        passed = sum(e["event"] == "pass" for e in before)
        more = min(queued, limit) - passed + 1
        return [*before, *[changed] * more, *after], at + more
    else:
        changed["n"] += 1000
    return [*before, changed, *after], at + 1


def judged(setup: Setup, traces: list[Trace]) -> dict[str, Judgement]:
    """What the model says of each trace, by its name; a run of TLC for each kind."""
    found: dict[str, Judgement] = {}
    for kind in sorted({trace.kind for trace in traces}):
        directory = setup.directory / f"run-{len(found)}"
        directory.mkdir()
        alike = [trace for trace in traces if trace.kind == kind]
        for item in validate(alike, Setup(setup.tool, directory, setup.timeout)):
            found[Path(item.trace.name).stem] = item
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "changes"),
    [
        pytest.param(range(0, 16, 5), 1, id="each-network-and-change-once"),
        pytest.param(range(16), 7, id="all", marks=pytest.mark.slow),
    ],
)
def test_recorded_proxies_are_followed_and_changed_events_are_not(
    setup: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str], rejections: Rejections,
    chosen: Sequence[int], changes: int,
) -> None:  # fmt: skip
    main(["--flows", "3"])
    (tmp_path / "by-hand.ndjson").write_text(capsys.readouterr().out)
    traces = [read_trace(tmp_path / "by-hand.ndjson")]
    expected: dict[str, int | None] = {"by-hand": None}
    for number, name, events in recorded(chosen):
        traces.append(written(tmp_path / f"{name}.ndjson", events))
        expected[name] = None
        for at in range(changes):
            changed, line = corrupted(events, number + 101 * at)
            traces.append(written(tmp_path / f"{name}-bad-{at}.ndjson", changed))
            expected[f"{name}-bad-{at}"] = line
    assert len(traces) == 1 + (1 + changes) * len(chosen)
    found = judged(setup, traces)
    lines = {
        name: None if item.rejected is None else item.rejected.line for name, item in found.items()
    }
    guards = {name: item.guard for name, item in found.items() if item.guard}
    assert lines == expected, guards
    rejections("rwbp-flow", guards)


# -- what the model's mutants do, done by the reference --------------------------------------------


class WriteDoesNotBlock(RwbpConnection):
    """The send buffer takes more than it has room for."""

    @property
    def write_room(self) -> int:
        """See :class:`RwbpConnection`."""
        return super().write_room + 4 * MSS


class RoomForUnsentOnly(RwbpConnection):
    """What is outstanding takes no room."""

    @property
    def write_room(self) -> int:
        """See :class:`RwbpConnection`."""
        sender = self.sender
        held = sender.segments.octets if isinstance(sender, RwbpSender) else 0
        return super().write_room + held


class WindowIgnored(RwbpSender):
    """The peer's window is no bound."""

    def next_may_be_sent(self) -> bool:
        """See :class:`RwbpSender`."""
        return self.next_end() is not None


class EndlessIpQueue(IpQueue):
    """There is always room."""

    def has_room(self) -> bool:
        """See :class:`IpQueue`."""
        return len(self) < 100


class CreditIgnored(Credit):
    """The gateway's limit is no bound."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        return self.epoch is not None


class LowestFirst(RoundRobin):
    """Each turn begins with the first flow."""

    def served(self, entry: Entry) -> None:
        """See :class:`RoundRobin`."""
        self._last = -1

    def _queue(self, entry: Entry) -> None:
        self._round.served.appendleft(entry)
        entry.queued = True


class WholeQueue(Gateway[Any]):
    """What waits in the queue is not counted."""

    def frame(self) -> CreditFrame:
        """See :class:`Gateway`."""
        frame = super().frame()
        return CreditFrame(frame.epoch, frame.arrived, frame.arrived + self._low_places)


def with_part(part: type[Any]) -> Callable[[Parts], Parts]:
    return lambda setup: setup.with_part(part)


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "source-ignores-window": ("RWBP-FC-001", {"window": 30}),
    "write-does-not-block": ("RWBP-FC-002", {"alter": with_part(WriteDoesNotBlock)}),
    "room-for-unsent-only": ("RWBP-FC-002", {"alter": with_part(RoomForUnsentOnly)}),
    "window-ignored": ("RWBP-FC-003", {"alter": with_part(WindowIgnored)}),
    "ip-queue-ignored": ("RWBP-FC-004", {"alter": with_part(EndlessIpQueue)}),
    "lowest-first": ("RWBP-FC-005", {"alter": with_part(LowestFirst)}),
    "credit-ignored": ("RWBP-FC-006", {"alter": with_part(CreditIgnored)}),
    "credit-names-whole-queue": ("RWBP-LC-010", {"gateway": WholeQueue}),
}
"""By the model's mutant: the rule that a trace of the reference with this defect breaks."""

DECLARED = {
    "rwbp-served-twice": "RWBP-FC-005",
    "rwbp-served-until-it-stops": "RWBP-FC-005",
    "rwbp-ring-backwards": "RWBP-SC-001",
    "rwbp-window-greater-than-one": "RWBP-FC-005",
    "rwbp-new-data-first": "RWBP-EC-004",
}
"""By the reference's mutant. The one whose window has to be greater than one is passed over."""


@pytest.mark.long
def test_proxies_that_break_a_rule_are_not_followed(setup: Setup, tmp_path: Path) -> None:
    expected = {name: rule for name, (rule, _) in BROKEN.items()} | DECLARED
    changes = {name: change for name, (_, change) in BROKEN.items()}
    changes |= {name: {"alter": load_mutants()[name].configure} for name in DECLARED}
    traces = []
    for name, change in changes.items():
        for flows, item in (
            (2, replace(NARROW, receive=1.0)),
            (3, replace(NARROW, receive=0.5, window=2.0)),
        ):
            events = record(item, flows, events=400, **change).events
            traces.append(written(tmp_path / f"{name}-{flows}.ndjson", events))
    found = judged(setup, traces)
    for name, rule in expected.items():
        guards = [found[f"{name}-{flows}"].guard for flows in (2, 3)]
        assert any(rule in guard for guard in guards), (name, guards)
        assert all(EXPECTED.search(guard) for guard in guards if guard), (name, guards)
