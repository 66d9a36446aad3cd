"""State diagrams as SVG, drawn from a table of transitions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

_NAME_LETTERS = 14
_LETTER, _NAME_LETTER = 6.3, 9.2
"""Pixels that a letter of a label, and of a state's name, takes on average."""

_LINE, _GAP, _MARGIN = 16, 14, 16
_STYLE = """
svg { color-scheme: light dark; font: 12px system-ui, sans-serif; text-anchor: middle;
  --ink: #1b1f24; --box: #e6eefb;
  --paper: #fff; --band: #f5f7fa; --line: #c3ccd8; --edge: #2f6ab5 }
@media (prefers-color-scheme: dark) { svg {
  --ink: #e6e9ee; --box: #22344f;
  --paper: #14181d; --band: #1b2128; --line: #465160; --edge: #7fb0f0
} }
text { fill: var(--ink) }
.name { font-size: 14px; font-weight: 600 }
.paper { fill: var(--paper) }
.band { fill: var(--band) }
.state { fill: var(--box); stroke: var(--edge) }
.life { stroke: var(--line); stroke-dasharray: 2 4 }
.edge { stroke: var(--edge); stroke-width: 1.8 }
.end { fill: var(--edge) }
"""


class Transition(NamedTuple):
    """One change of state, and what brings it about."""

    source: str
    target: str
    label: str


def diagram(title: str, states: Sequence[str], transitions: Iterable[Transition]) -> str:
    """An SVG with a column for each state and an arrow for each way from one to another.

    Arrows are grouped by the state they leave; labels stand above theirs. A transition that leads
    back to its own state is not drawn. Colours follow the reader's preference for light or dark.

    Args:
        title: what the diagram shows, for readers who cannot see it.
        states: the names of the states, from left to right.
        transitions: those to draw; labels that recur on an arrow are written once.

    Raises:
        ValueError: a transition names a state that is not in ``states``.
    """
    arrows: dict[tuple[int, int], dict[str, None]] = {}
    for source, target, label in transitions:
        if unknown := {source, target} - set(states):
            raise ValueError(f"there is no state {unknown.pop()!r}")
        if source != target:
            ends = states.index(source), states.index(target)
            arrows.setdefault(ends, {})[label] = None
    names = [textwrap.wrap(name, _NAME_LETTERS, break_long_words=False) for name in states]
    letters = max(len(line) for lines in names for line in lines)
    box = letters * _NAME_LETTER + 20
    pitch = box + 36
    longest = max((len(label) for labels in arrows.values() for label in labels), default=0)
    width = 2 * _MARGIN + max(pitch * (len(states) - 1) + box, longest * _LETTER)
    xs = [_MARGIN + box / 2 + pitch * column for column in range(len(states))]
    head = max(map(len, names)) * 18 + 14
    bands, drawn = [], []
    y = bottom = float(_MARGIN + head + _GAP)
    groups = groupby(sorted(arrows.items(), key=lambda item: item[0]), key=lambda item: item[0][0])
    for number, (_, group) in enumerate(groups):
        for (left, right), labels in group:
            for label in labels:
                y += _LINE
                drawn.append(_label(label, (xs[left] + xs[right]) / 2, y, width))
            y += 8
            drawn.append(_arrow(xs[left], xs[right], y))
            y += _GAP
        if number % 2 == 0:
            bands.append(
                f'<rect class="band" x="0" y="{bottom - 4:g}" width="{width:g}" '
                f'height="{y - bottom:g}"/>'
            )
        bottom = y
    height = bottom + head + _MARGIN
    lives = [
        f'<path class="life" d="M{x:g} {_MARGIN + head}V{bottom:g}"/>' for x in xs
    ]  # fmt: skip
    boxes = [
        _box(lines, x, top, box, head)
        for top in (float(_MARGIN), bottom)
        for lines, x in zip(names, xs, strict=True)
    ]
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>'
    )
    return "\n".join([start, *bands, *lives, *boxes, *drawn, "</svg>\n"])


def _label(text: str, x: float, y: float, width: float) -> str:
    """A line of text around ``x``, or as near to it as the picture is wide."""
    half = len(text) * _LETTER / 2 + 4
    x = min(max(x, half), width - half)
    return f'<text x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _arrow(source: float, target: float, y: float) -> str:
    back = 11 if source < target else -11
    return (
        f'<circle class="end" cx="{source:g}" cy="{y:g}" r="3.5"/>'
        f'<path class="edge" d="M{source:g} {y:g}H{target - back:g}"/>'
        f'<path class="end" d="M{target:g} {y:g}l{-back} -5v10z"/>'
    )


def _box(lines: Sequence[str], x: float, top: float, width: float, height: float) -> str:
    first = top + height / 2 - 9 * (len(lines) - 1) + 5
    text = "".join(
        f'<text class="name" x="{x:g}" y="{first + 18 * number:g}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect class="state" x="{x - width / 2:g}" y="{top:g}" width="{width:g}" '
        f'height="{height:g}" rx="8"/>{text}'
    )
