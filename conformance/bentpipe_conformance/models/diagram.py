"""Counterexamples as ladder diagrams: two endpoints, what travels between them, what changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import wrap
from typing import Any
from xml.sax.saxutils import escape

from bentpipe_conformance.models.messages import State
from bentpipe_conformance.models.values import NotAValue, parse_value

_WIDTH = 44
_COLUMNS = 100  # of a line with changes
_IGNORED = "age"  # a field that changes while a message is in flight


@dataclass(frozen=True, slots=True)
class Message:
    """A message on the ladder.

    Attributes:
        text: its contents.
        rightwards: True when it travels from the left endpoint to the right one.
        left_at: step in which it was sent.
        arrived_at: step in which it arrived or was lost; None while in flight.
        lost: whether it was lost.
    """

    text: str
    rightwards: bool
    left_at: int
    arrived_at: int | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the action, what it sent, received and changed."""

    number: int
    action: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ladder:
    """A counterexample ready to be drawn."""

    left: str
    right: str
    steps: tuple[Step, ...]
    messages: tuple[Message, ...]
    loop: int | None


def build(
    trace: Sequence[State], layout: Mapping[str, Any], loop: int | None = None,
    shown: Collection[str] = (),
) -> Ladder:  # fmt: skip
    """Follow messages and variables through a counterexample.

    Args:
        trace: the states.
        layout: ``left`` and ``right`` name the endpoints, ``forward`` and ``back`` list the
            variables that hold messages in flight, ``hidden`` those not worth showing. Where the
            network is a set from which nothing leaves, ``network`` names it, and ``from`` the
            field of a message with the name of its sender; only sending is shown then.
        loop: index of the state the behaviour goes back to.
        shown: the only variables whose changes are worth showing; none for all but the hidden.
    """
    channels = dict.fromkeys(layout.get("forward", ()), True)
    channels.update(dict.fromkeys(layout.get("back", ()), False))
    network = layout.get("network", "")
    hidden = {*channels, *layout.get("hidden", ()), network}
    messages: list[Message] = []
    under_way: dict[str, list[int]] = {name: [] for name in channels}
    steps: list[Step] = []
    for number, state in enumerate(trace, start=1):
        before = trace[number - 2].variables if number > 1 else {}
        for name, rightwards in channels.items():
            old, new = _sequence(before.get(name, "<<>>")), _sequence(state.variables.get(name, ""))
            gone, added = _difference(old, new)
            for at in sorted(gone, reverse=True):
                which = under_way[name].pop(at)
                lost = "Lose" in state.action
                messages[which] = replace(messages[which], arrived_at=number, lost=lost)
            for value in added:
                under_way[name].append(len(messages))
                messages.append(Message(_shown(value), rightwards, number))
        for value in _new_in_set(before.get(network, ""), state.variables.get(network, "")):
            sender = value.get(layout.get("from", "from"), layout["left"])
            messages.append(
                Message(_shown_without(value, "from"), sender == layout["left"], number)
            )
        changes = tuple(
            change
            for name, value in state.variables.items()
            if name in before
            and name not in hidden
            and before[name] != value
            and (not shown or name in shown)
            for change in _changed(name, before[name], value)
        )
        action = "start" if number == 1 else state.action
        steps.append(Step(number, action, changes))
    return Ladder(layout["left"], layout["right"], tuple(steps), tuple(messages), loop)


def as_text(ladder: Ladder, most: int | None = None) -> str:
    """The ladder for a terminal: a line for each step or message, and below it what changed.

    Args:
        ladder: the ladder.
        most: lines for the steps; of a longer ladder the first ones are only named, as many of
            them as it takes. None for no limit.
    """
    margin = max(len(step.action) for step in ladder.steps) + 6
    lines = [f"{'':{margin}}{ladder.left:<{_WIDTH - len(ladder.right) + 2}}{ladder.right}"]
    steps: list[list[str]] = []
    for step in ladder.steps:
        label = f"{step.number:>3}  {step.action}"
        changes = _packed(step.changes, _COLUMNS - margin)
        events = _events(ladder, step.number)
        if not events:  # between the ends there is room for what one of them does by itself
            alone = len(changes) == 1 and len(changes[0]) <= _WIDTH - 2
            events = [f"  {changes.pop() if alone else '':<{_WIDTH - 2}}"]
        steps.append(
            [
                *(f"{'' if at else label:<{margin}}|{event}|" for at, event in enumerate(events)),
                *(f"{'':{margin}}  {line}" for line in changes),
            ]
        )
    for step_lines in steps if most is None else _folded(ladder, steps, most):
        lines += step_lines
    if ladder.loop is not None:
        last = ladder.loop + 1 == len(ladder.steps)
        lines.append(
            "     and nothing ever happens again" if last
            else f"     and from here again from step {ladder.loop + 1} on, forever"
        )  # fmt: skip
    return "\n".join(lines)


def _folded(ladder: Ladder, steps: Sequence[list[str]], most: int) -> list[list[str]]:
    """The lines of the last steps, as far as there is room, and the names of those before."""
    for first in range(len(steps)):
        names = [
            name if times == 1 else f"{name} x{times}"
            for name, group in groupby(step.action for step in ladder.steps[:first])
            for times in [len(list(group))]
        ]
        before = [f"     {line}" for line in wrap(", ".join(names), _COLUMNS)]
        found = [before, *steps[first:]]
        if sum(map(len, found)) <= most:
            break
    return found


def _changed(name: str, old: str, new: str) -> Iterable[str]:
    """What has changed of a variable: of records and sequences only the parts that have."""
    try:
        parts = list(_parts(name, parse_value(old), parse_value(new)))
    except NotAValue:
        parts = []
    if not parts or parts == [(name, "")]:
        return [f"{name}: {old} -> {new}"]
    return [f"{place}: {change}" for place, change in parts]


def _parts(name: str, old: Any, new: Any) -> Iterable[tuple[str, str]]:
    """Places and what has changed there; nothing is said of a value that is changed as a whole."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        inner = [
            (f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]", old[key], new[key])
            for key in new
        ]
    elif isinstance(old, tuple) and isinstance(new, tuple) and 0 < len(old) == len(new):
        inner = [(f"{name}[{at}]", *pair) for at, pair in enumerate(zip(old, new, strict=True), 1)]
    elif isinstance(old, tuple) and isinstance(new, tuple) and old and new[: len(old)] == old:
        yield name, f"+ {_shown(new[len(old) :])}"
        return
    else:
        yield name, "" if name.isidentifier() else f"{_leaf(old)} -> {_leaf(new)}"
        return
    for place, before, after in inner:
        if before != after:
            yield from _parts(place, before, after)


def _packed(changes: Iterable[str], columns: int) -> list[str]:
    """As many changes on a line as there is room for."""
    lines: list[str] = []
    for change in changes:
        if lines and len(lines[-1]) + len(change) + 2 <= columns:
            lines[-1] += f"; {change}"
        else:
            lines.append(change)
    return lines


def _events(ladder: Ladder, number: int) -> list[str]:
    found = []
    for message in ladder.messages:
        text = message.text[: _WIDTH - 8]
        if message.arrived_at == number and message.lost:
            found.append(f" x lost: {text}".center(_WIDTH))
        elif message.arrived_at == number:
            found.append(
                f"{f' {text} ':.>{_WIDTH - 2}}->" if message.rightwards
                else f"<-{f' {text} ':.<{_WIDTH - 2}}"
            )  # fmt: skip
        if message.left_at == number:
            found.append(
                f"{f'-- {text} ':-<{_WIDTH // 2 + len(text) // 2}}>".ljust(_WIDTH)
                if message.rightwards
                else f"<{f' {text} --':->{_WIDTH // 2 + len(text) // 2}}".rjust(_WIDTH)
            )
    return found


def as_svg(ladder: Ladder, title: str) -> str:
    """The ladder as an SVG picture: time runs downwards, changed variables at the right."""
    row, top, left, right = 22, 70, 190, 560
    heights: list[int] = []
    at = top
    for step in ladder.steps:
        heights.append(at)
        at += row * max(1, len(step.changes), _sent(ladder, step.number))
    bottom = at + row
    longest = max((len(change) for step in ladder.steps for change in step.changes), default=0)
    width = right + 60 + 7 * longest
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 20}" '
        'font-family="monospace" font-size="12">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6 z"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="22" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for x, name in ((left, ladder.left), (right, ladder.right)):
        parts.append(f'<text x="{x}" y="48" text-anchor="middle">{escape(name)}</text>')
        parts.append(f'<line x1="{x}" y1="56" x2="{x}" y2="{bottom}" stroke="black"/>')
    for step, y in zip(ladder.steps, heights, strict=True):
        parts.append(f'<text x="12" y="{y + 4}">{step.number} {escape(step.action)}</text>')
        for line, change in enumerate(step.changes):
            place = f'x="{right + 20}" y="{y + 4 + line * row}"'
            parts.append(f'<text {place} fill="#444">{escape(change)}</text>')
    for order, message in enumerate(ladder.messages):
        parts.extend(_arrow(ladder, message, order, heights, (left, right, bottom)))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _arrow(
    ladder: Ladder, message: Message, order: int, heights: list[int], frame: tuple[int, int, int]
) -> list[str]:
    left, right, bottom = frame
    first = next(at for at, other in enumerate(ladder.messages) if other.left_at == message.left_at)
    y1 = heights[message.left_at - 1] + 22 * (order - first)
    y2 = bottom if message.arrived_at is None else max(heights[message.arrived_at - 1], y1 + 8)
    x1, x2 = (left, right) if message.rightwards else (right, left)
    if message.arrived_at is None or message.lost:
        x2 = (x1 + x2) // 2
    colour = "#b00" if message.lost else "#06c" if message.rightwards else "#080"
    tip = "" if message.lost else ' marker-end="url(#tip)"'
    text_x = x1 + (12 if message.rightwards else -12)
    anchor = "start" if message.rightwards else "end"
    parts = [
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"{tip}/>',
        f'<text x="{text_x}" y="{y1 - 3}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(message.text)}</text>",
    ]
    if message.lost:
        parts.append(f'<text x="{x2 - 4}" y="{y2 + 5}" fill="{colour}">x</text>')
    return parts


def _sent(ladder: Ladder, number: int) -> int:
    return sum(message.left_at == number for message in ladder.messages)


def _sequence(text: str) -> tuple[Any, ...]:
    try:
        value = parse_value(text)
    except NotAValue:
        return ()
    return value if isinstance(value, tuple) else ()


def _new_in_set(old: str, new: str) -> list[dict[Any, Any]]:
    """The messages that a step adds to a set, in a fixed order."""
    before, after = _records(old), _records(new)
    return [dict(item) for item in sorted(after - before, key=str)]


def _records(text: str) -> frozenset[Any]:
    try:
        value = parse_value(text) if text else frozenset()
    except NotAValue:
        return frozenset()
    return value if isinstance(value, frozenset) else frozenset()


def _shown_without(value: dict[Any, Any], field: str) -> str:
    return _shown({key: item for key, item in value.items() if key != field})


def _difference(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[set[int], tuple[Any, ...]]:
    """Positions of the old sequence that are gone, and what was appended."""
    for removed in range(len(old) + 1):
        for first in range(len(old) - removed + 1):
            rest = old[:first] + old[first + removed :]
            if len(new) >= len(rest) and all(map(_alike, rest, new)):
                return set(range(first, first + removed)), new[len(rest) :]
    return set(range(len(old))), new


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return {k: v for k, v in one.items() if k != _IGNORED} == {
            k: v for k, v in other.items() if k != _IGNORED
        }
    return bool(one == other)


def _leaf(value: Any) -> str:
    return str(value).upper() if isinstance(value, bool) else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        kind = value.get("type", "")
        fields = (f"{key}={_shown(item)}" for key, item in value.items() if key != "type")
        return f"{kind} {' '.join(fields)}".strip()
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(map(_shown, value), key=lambda text: (len(text), text))) + "}"
    if isinstance(value, tuple):
        return "<<" + ",".join(map(_shown, value)) + ">>"
    return str(value)
