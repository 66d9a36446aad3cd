"""Scripts as data, and the impairments of the link."""

from __future__ import annotations

import importlib
import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.link import Enough, ImpairedPort, flipped
from bentpipe_fuzz.campaign.plan import Planner, drawn, impairments, links
from bentpipe_fuzz.campaign.script import Impairment, Script, ScriptError, Step, decode, encode
from hypothesis import given, settings
from hypothesis import strategies as st

SUITES = ["snr", "stp", "rwbp"]


@pytest.mark.parametrize("suite", SUITES)
def test_drawn_script_can_be_played_and_comes_back_from_json(suite: str) -> None:
    binding = binding_of(suite_named(suite))
    for mode, steps in binding.modes.items():
        for taken, link in drawn(st.tuples(steps, links), 40, 7):
            script = Script(suite, mode, tuple(taken), tuple(link), 5)
            binding.check(script)
            document = json.dumps(encode(script))
            again = decode(json.loads(document))
            binding.check(again)
            assert json.dumps(encode(again)) == document


def test_plan_follows_from_its_seed_alone() -> None:
    modes = binding_of(suite_named("snr")).modes

    def first(number: int) -> list[Any]:
        scripts = Planner("snr", modes, number).scripts()
        return [encode(next(scripts)) for _ in range(60)]

    assert first(3) == first(3) != first(4)


def test_kept_scripts_are_bred() -> None:
    planner = Planner("snr", binding_of(suite_named("snr")).modes, 1)
    scripts = planner.scripts()
    planner.corpus.append(next(scripts))
    bred = [next(scripts) for _ in range(20)][::2]
    assert all(script.mode == "honest" and script.length for script in bred)
    assert any(script.steps[0] == planner.corpus[0].steps[0] for script in bred)


GOOD = encode(Script("snr", "honest", (Step("open", {"mss": 536}),)))


@pytest.mark.parametrize(
    "change",
    [
        {"steps": [{"mss": 536}]},
        {"steps": 3},
        {"link": [{"way": "to-iut", "kind": "eat"}]},
        {"link": [{"way": "to-iut", "kind": "lose", "first": -1}]},
        {"link": [{"way": "to-iut", "kind": "rate", "value": 0}]},
        {"link": [{"way": "to-iut", "kind": "lose", "first": "x"}]},
        {"seed": None},
        {"suite": None, "steps": None},
    ],
)
def test_what_is_no_script_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ScriptError):
        decode({**GOOD, **change})


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (Script("snr", "rude", ()), "there is no mode 'rude'"),
        (Script("snr", "honest", (Step("dance"),)), "there is no verb 'dance'"),
        (Script("snr", "honest", (Step("write", {"words": 3}),)), "unexpected keyword"),
    ],
)
def test_script_that_the_protocol_cannot_play_is_refused(script: Script, sentence: str) -> None:
    with pytest.raises(ScriptError, match=sentence):
        binding_of(suite_named("snr")).check(script)


# The link


@dataclass
class Wire:
    """A port whose far end is here; time passes only while nothing is to be received."""

    clock: float = 0.0
    sent: list[tuple[float, bytes]] = field(default_factory=list)
    coming: deque[tuple[float, bytes]] = field(default_factory=deque)

    def now(self) -> float:
        return self.clock

    def send(self, packet: bytes) -> None:
        self.sent.append((self.clock, packet))

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        if self.coming and self.coming[0][0] <= deadline:
            self.clock, packet = self.coming.popleft()
            return self.clock, packet
        self.clock = max(self.clock, deadline)
        return None


def packet(number: int) -> bytes:
    return bytes(20) + bytes([number])


def arrived(*link: Impairment, at: tuple[float, ...] = (0.0, 1.0, 2.0)) -> list[tuple[float, int]]:
    """When which of the packets 1, 2, ... reach the implementation, sent at these times."""
    wire = Wire()
    port = ImpairedPort(wire, link)
    for number, time in enumerate(at, start=1):
        while port.receive(time) is not None:
            pass
        port.send(packet(number))
    port.receive(100.0)
    return [(round(time, 3), octets[-1]) for time, octets in wire.sent]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Impairment("to-iut", "lose", first=2), [(0.0, 1), (2.0, 3)]),
        (Impairment("to-iut", "lose", first=2, span=9), [(0.0, 1)]),
        (Impairment("to-iut", "lose", "second", 0.5, 1.0), [(0.0, 1), (2.0, 3)]),
        (Impairment("to-iut", "delay", first=1, value=1.5), [(1.0, 2), (1.5, 1), (2.0, 3)]),
        (Impairment("to-iut", "delay", "second", 0.9, 9.0, 0.5), [(0.0, 1), (1.5, 2), (2.5, 3)]),
        (Impairment("to-iut", "copy", first=3, value=0.2), [(0, 1), (1, 2), (2, 3), (2.2, 3)]),
        (Impairment("to-iut", "flip", first=1, value=1), [(0.0, 3), (1.0, 2), (2.0, 3)]),
        (Impairment("to-iut", "rate", "second", 0.0, 9.0, 84.0), [(2.0, 1), (4.0, 2), (6.0, 3)]),
        (Impairment("to-tester", "lose", span=9), [(0.0, 1), (1.0, 2), (2.0, 3)]),
    ],
)
def test_impairment_does_what_it_says(item: Impairment, expected: list[tuple[float, int]]) -> None:
    assert arrived(item) == expected


def test_impaired_arrivals_are_late_lost_and_doubled() -> None:
    wire = Wire(coming=deque((float(n), packet(n)) for n in range(1, 5)))
    link = [
        Impairment("to-tester", "flip", first=1, value=9),
        Impairment("to-tester", "delay", first=2, value=1.5),
        Impairment("to-tester", "copy", first=4, value=1.0),
    ]
    port = ImpairedPort(wire, link)
    found = []
    while (item := port.receive(10.0)) is not None:
        found.append((item[0], item[1][-1]))
    assert found == [(3.0, 3), (3.5, 2), (4.0, 4), (5.0, 4)]


def test_healed_link_does_nothing_more() -> None:
    wire = Wire()
    port = ImpairedPort(wire, [Impairment("to-iut", "lose", span=1000)])
    port.send(packet(1))
    port.heal()
    port.send(packet(2))
    assert wire.sent == [(0.0, packet(2))]


@given(st.binary(min_size=21, max_size=60), st.integers(0, 1000))
@settings(derandomize=True)
def test_flipped_packet_differs_in_one_bit_behind_the_ip_header(octets: bytes, bit: int) -> None:
    altered = flipped(octets, bit)
    assert altered[:20] == octets[:20]
    assert sum((a ^ b).bit_count() for a, b in zip(altered, octets, strict=True)) == 1


@given(impairments)
@settings(derandomize=True)
def test_impairment_is_told_in_words(item: Impairment) -> None:
    assert ": " in str(item) and "to the" in str(item)


def test_same_seed_beside_another_module_draws_the_same_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis takes constants from the modules of a project that happen to be loaded."""
    numbers = st.lists(st.integers(0, 1 << 40), min_size=50, max_size=50)
    before = drawn(numbers, 100, 11)
    module = tmp_path / "neighbour.py"
    module.write_text(f"NUMBERS = {[987_654_321_000 + item for item in range(200)]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("neighbour")
    assert drawn(numbers, 100, 11) == before


def test_conversation_that_has_had_its_packets_gets_no_more_until_it_is_relieved() -> None:
    wire = Wire()
    port = ImpairedPort(wire, (), most=3)
    for number in (1, 2, 3):
        port.send(bytes([number]))
    assert port.spent
    with pytest.raises(Enough):
        port.send(b"4")
    with pytest.raises(Enough):
        port.receive(1.0)
    port.relieve()
    port.send(b"5")
    assert not port.spent and len(wire.sent) == 4
