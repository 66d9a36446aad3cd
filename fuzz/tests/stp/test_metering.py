"""Conversations of campaigns with the reference take bounded work and memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.engine import Campaign
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.stp.metering import Meter, excess, too_costly, units
from bentpipe_reference.common.subject import subject_of
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.packets import Stat, Ustat
from bentpipe_reference.stp.sender import Sender

CONVERSATIONS = 30


class WalksTheNumbers(Sender):
    """Looks at every number that a report names, which may be millions; at 50,000 of them here."""

    def _walk(self, elements: tuple[int, ...]) -> None:
        for first, end in itertools.pairwise(elements):
            for _ in range(min((end - first) % (1 << 24), 50_000)):
                pass

    def read_report(self, packet: Stat | Ustat) -> tuple[int | None, int, list[int]] | None:
        self._walk(packet.elements)
        return super().read_report(packet)


@contextmanager
def metered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What endpoints do beyond their bounds, packet by packet."""
    found: list[str] = []
    receive = StpEndpoint.receive

    def measured(self: StpEndpoint, octets: bytes, peer: Any, now: float) -> None:
        had = units(self)
        with Meter() as meter:
            receive(self, octets, peer, now)
        if too_costly(meter.lines, 1, max(had, units(self))):
            found.append(f"STP-SEC-004: {meter.lines} lines for {octets.hex()}")
        if (kept := excess(self)) is not None:
            found.append(f"STP-SEC-003: {kept}")

    with monkeypatch.context() as patched:
        patched.setattr(StpEndpoint, "receive", measured)
        yield found


@pytest.mark.parametrize("mode", ["honest", "lazy", "on-path", "off-path"])
def test_work_and_memory_of_the_reference_are_bounded(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    record = suite_named("stp")
    lane, settings = stage(subject_of("stp"), record.profiles[0], "", 0)
    running = Campaign(record, lambda: lane, settings, 1, modes=[mode], shrink_runs=0)
    with metered(monkeypatch) as found:
        list(running.run(lambda tally: tally.conversations < CONVERSATIONS))
    assert not found


def having(part: type[Sender]) -> Callable[[Any], Any]:
    return lambda setup: setup.with_part(part)


def test_work_that_grows_with_a_number_in_a_packet_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    far = [("delivered", 0), ("delivered", 1 << 20)]
    steps = Step("open"), Step("receive"), Step("packet", {"kind": "USTAT", "elements": far})
    record = suite_named("stp")
    told = []
    for part in (Sender, WalksTheNumbers):
        lane, settings = stage(subject_of("stp"), record.profiles[0], "", 0, having(part))
        with metered(monkeypatch) as found:
            play(Script("stp", "on-path", steps), lane, settings)
        told.append([line.partition(":")[0] for line in found])
    assert told == [[], ["STP-SEC-004"]]
