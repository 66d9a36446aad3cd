"""Smaller examples: fewer disturbances, or a shorter script, that still break the same requirement.

Not Hypothesis: its shrinker works on choices that it can draw anew, while a replay file holds a
script only, and a run that fails may have thousands of disturbances in a recorded order, of which
most can be left out. That is delta debugging's field.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bentpipe_fuzz.campaign.script import Impairment, Script, Step

_Item = TypeVar("_Item")

MOST_RUNS = 400
"""Runs that shrinking one script takes at most."""


def shrunk(
    disturbances: list[_Item],
    still_fails: Callable[[list[_Item]], bool],
    *,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> list[_Item]:
    """A sublist that still fails, from which no single disturbance can be left out.

    Unless the time expires first. The list itself is returned if it does not fail when repeated.

    Args:
        disturbances: what a failing run recorded.
        still_fails: repeats the run with these.
        seconds: time limit, after which the smallest list found so far is returned.
        clock: tells the time.
    """
    deadline = clock() + seconds
    if not still_fails(disturbances):
        return disturbances
    kept = disturbances
    size = max(1, len(kept) // 2)
    while kept:
        at, smaller = 0, False
        while at < len(kept):
            if clock() > deadline:
                return kept
            fewer = kept[:at] + kept[at + size :]
            if still_fails(fewer):
                kept, smaller = fewer, True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2) if not smaller or size > 1 else 1
    return kept


def shrunk_script(
    script: Script, still_fails: Callable[[Script], bool], most: int = MOST_RUNS
) -> Script:
    """A script that still fails and is as short and plain as ``most`` runs can make it.

    First steps and impairments are left out together, then arguments take their usual values, then
    numbers become smaller; again, until nothing changes. A run counts, not a second, so that the
    result is the same on any machine.

    Args:
        script: one that fails.
        still_fails: plays another.
        most: limit of runs.
    """
    left = most

    def fails(candidate: Script) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and still_fails(candidate)

    kept = script
    while left > 0:
        before = kept
        kept = _with_fewer(kept, fails)
        for candidate in _plainer(kept):
            if left <= 0:
                break
            # What was found plainer before is part of each later candidate.
            altered = candidate(kept)
            if altered != kept and fails(altered):
                kept = altered
        if kept == before:
            break
    return kept


def _with_fewer(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Without the steps and impairments that can be left out."""

    def made_of(items: Sequence[Step | Impairment]) -> Script:
        steps = tuple(item for item in items if isinstance(item, Step))
        link = tuple(item for item in items if isinstance(item, Impairment))
        return replace(script, steps=steps, link=link)

    items: list[Step | Impairment] = [*script.link, *script.steps]
    # It is known to fail; without that, the first run would only say so again.
    known = [True]
    found = shrunk(
        items, lambda fewer: bool(known and known.pop()) or fails(made_of(fewer)), seconds=1e9
    )
    return made_of(found)


_Alteration = Callable[[Script], Script]


def _plainer(script: Script) -> Iterator[_Alteration]:
    """Alterations of single values, the bolder ones first."""
    for place, step in enumerate(script.steps):
        for name in step.given:
            yield partial(_altered, place=place, name=name, value=_LEFT_OUT)
        for name, value in step.given.items():
            for change in _changes(value):
                yield partial(_altered, place=place, name=name, value=change)
    for place, item in enumerate(script.link):
        for name, values in (
            ("span", (1, item.span // 2)), ("value", (0.0, 0.05, item.value / 2)),
            ("first", (1, item.first // 2, item.first - 1)),
        ):  # fmt: skip
            for value in values:
                yield partial(_relinked, place=place, name=name, value=value)


_LEFT_OUT = object()


def _altered(script: Script, place: int, name: str, value: Any) -> Script:
    """With another argument of a step, or without it."""
    step = script.steps[place]
    given = dict(step.given)
    if name not in given:
        return script
    if value is _LEFT_OUT:
        del given[name]
    else:
        given[name] = value
    steps = [*script.steps]
    steps[place] = Step(step.verb, given)
    return replace(script, steps=tuple(steps))


def _relinked(script: Script, place: int, name: str, value: float) -> Script:
    """With a smaller value of an impairment."""
    item = script.link[place]
    least = 1 if name == "span" or (name, item.kind) == ("value", "rate") else 0
    if not least <= value < getattr(item, name):
        return script
    changed: dict[str, Any] = {name: value}
    link = [*script.link]
    link[place] = replace(item, **changed)
    return replace(script, link=tuple(link))


def _changes(value: Any) -> Iterator[Any]:
    """Plainer values in place of one, the plainest first."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float) and abs(value) > 1:
        yield from (type(value)(0), type(value)(1), type(value)(value / 2))
    elif isinstance(value, str) and len(value) > 1 and value.isupper():
        yield value[:1]  # letters of flags; other texts are names
    elif isinstance(value, list | tuple) and value:
        for at in range(len(value)):
            if not isinstance(value[at], str):
                yield [*value[:at], *value[at + 1 :]] if len(value) > 2 else value
            for change in _changes(value[at]):
                if not isinstance(value[at], str):
                    yield [*value[:at], change, *value[at + 1 :]]
    elif isinstance(value, dict):
        for name in value:
            yield {key: other for key, other in value.items() if key != name}
