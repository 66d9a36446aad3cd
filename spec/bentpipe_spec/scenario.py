"""Scenarios from the models: what the environment does to a transfer, for suites to impose.

A scenario is a script of the environment alone: which transmissions are lost, delayed or doubled,
when a timer expires, how much the user offers and the window permits. What the endpoints do is
theirs. ``bentpipe model NAME --scenarios`` makes them (``docs/models``) and stores them in
``PROTOCOL/scenarios/NAME.json``; a suite reads them so::

    for scenario in load_scenarios("stp-data").named():
        for kind, nth, fate in scenario.fates():
            ...  # ("SD", 2, "lost"): the second SD that is sent, retransmissions included

Fates: ``lost``; ``delayed``, until right behind another transmission (:attr:`Event.behind`);
``doubled``, a second copy right behind the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from bentpipe_spec.protocols import files

Fate = Literal["lost", "delayed", "doubled"]
Kind = Literal["mutant", "limit", "cover"]


@dataclass(frozen=True, slots=True)
class Event:
    """What becomes of one transmission.

    Attributes:
        message: the kind of message, such as ``SD`` or ``STAT``.
        nth: which transmission of that kind, from 1, retransmissions included.
        fate: what becomes of it.
        number: its sequence number in the model; None where messages have none.
        transmission: which transmission of that number, from 1; 0 where messages have none.
        behind: for ``delayed``: kind and count of the transmission behind which it arrives.
    """

    message: str
    nth: int
    fate: Fate
    number: int | None
    transmission: int
    behind: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Expiry:
    """A timer expires although what it waits for is under way.

    Attributes:
        timer: the model's action.
        after: how many messages come before.
        of: what is counted: ``taken KIND`` or ``sent KIND``, at the endpoint with the timer.
    """

    timer: str
    after: int
    of: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario.

    Attributes:
        name: permanent for mutants and limits, an ordinal for covers.
        kind: the counterexample of a ``mutant`` or of a ``limit`` of the protocol, or one of the
            ``cover`` of the state graphs.
        property: what the mutant breaks; empty for covers.
        requirements: the requirements behind the property.
        about: one sentence on the mutant; empty for covers.
        offered: packets that the user offers.
        window: packets that the receiver permits.
        events: what becomes of transmissions; those not named arrive once and in order.
        expiries: timers that expire early.
        order: all that the environment does, in order, where a script fixes that: what users call,
            restarts, and ``deliver`` with the text of a message; empty elsewhere.
        edges: edges of the state graphs that a cover takes and those before it do not.
        sent: of a counterexample, what was sent per direction, in order.
        steps: of a counterexample, the model's actions.
    """

    name: str
    kind: Kind
    property: str
    requirements: tuple[str, ...]
    about: str
    offered: int
    window: int
    events: tuple[Event, ...]
    expiries: tuple[Expiry, ...]
    order: tuple[str, ...]
    edges: int
    sent: tuple[tuple[str, ...], ...]
    steps: tuple[str, ...]

    def fates(self) -> list[tuple[str, int, Fate]]:
        """The script as a list: n-th transmission of which kind, and what becomes of it."""
        return [(event.message, event.nth, event.fate) for event in self.events]

    def lost(self, message: str) -> frozenset[int]:
        """Which transmissions of a kind are lost, from 1."""
        return frozenset(
            event.nth
            for event in self.events
            if event.message == message and event.fate == "lost"
        )  # fmt: skip

    def script(self) -> tuple[object, ...]:
        """What is imposed; scenarios with equal scripts are the same to a suite."""
        return (self.offered, self.window, self.events, self.expiries, self.order)


@dataclass(frozen=True, slots=True)
class Covered:
    """A state graph that scenarios cover: its bounds, its size, how many edges are covered."""

    name: str
    constants: Mapping[str, str]
    states: int
    edges: int
    covered: int


@dataclass(frozen=True, slots=True)
class Scenarios:
    """All scenarios of one model.

    Attributes:
        model: its name.
        model_sha256: of the modules, bounds and mutants that they were made from.
        tool: the model checker that made them.
        graphs: what the covers cover.
        all: mutants and limits, then covers; each cover takes most of what is left to take.
    """

    model: str
    model_sha256: str
    tool: str
    graphs: tuple[Covered, ...]
    all: tuple[Scenario, ...]

    def named(self) -> Iterator[Scenario]:
        """The counterexamples of mutants and limits."""
        return (item for item in self.all if item.kind != "cover")

    def covers(self, most: int | None = None) -> list[Scenario]:
        """The covering scenarios, or the first ``most`` of them."""
        return [item for item in self.all if item.kind == "cover"][:most]


class NoScenarios(ValueError):
    """There are none of that name, or the file is damaged; the message is one sentence."""


@cache
def load_scenarios(model: str) -> Scenarios:
    """The scenarios of a model.

    Raises:
        NoScenarios: there are none.
    """
    for path in files("scenarios", ".json"):
        if path.name == f"{model}.json":
            return read_scenarios(path.read_text(encoding="utf-8"), path.name)
    raise NoScenarios(
        f"there are no scenarios of {model!r}; make them: bentpipe model {model} --scenarios"
    )


def read_scenarios(text: str, name: str) -> Scenarios:
    """Scenarios from the text of a file called ``name``.

    Raises:
        NoScenarios: the file is damaged.
    """
    try:
        data = json.loads(text)
        return Scenarios(
            data["model"], data["model_sha256"], data["tool"],
            tuple(Covered(**item) for item in data["graphs"]),
            tuple(_scenario(item) for item in data["scenarios"]),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoScenarios(
            f"{name} holds no scenarios ({error}); make it again: bentpipe model NAME --scenarios"
        ) from error


def _scenario(item: Mapping[str, Any]) -> Scenario:
    events = [event for event in item["events"] if "message" in event]
    expiries = [event for event in item["events"] if "timer" in event]
    return Scenario(
        name=item["name"],
        kind=item["kind"],
        property=item.get("property", ""),
        requirements=tuple(item.get("requirements", ())),
        about=item.get("about", ""),
        offered=item["offered"],
        window=item["window"],
        events=tuple(
            Event(
                event["message"], event["nth"], event["fate"], event.get("number"),
                event.get("transmission", 0),
                (event["behind"][0], event["behind"][1]) if "behind" in event else None,
            )
            for event in events
        ),
        expiries=tuple(Expiry(event["timer"], event["after"], event["of"]) for event in expiries),
        order=tuple(item.get("order", ())),
        edges=item.get("edges", 0),
        sent=tuple(tuple(channel) for channel in item.get("sent", ())),
        steps=tuple(item.get("steps", ())),
    )  # fmt: skip
