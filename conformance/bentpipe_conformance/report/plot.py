"""Time-sequence plots as small inline SVG, in the manner of tcptrace.

Unlike matplotlib's SVG they keep a page with 80 plots small, and follow its light or dark colours
through CSS classes, which are those of a suite's legend.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from bentpipe_conformance.engine.scene import Mark, Scene
from bentpipe_conformance.report.ladder import thousands

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 74, 16, 14, 40
_LABELS = 8
_CIRCLES = 60
_STROKES = 4000
"""More strokes of one kind are thinned out evenly; they could not be distinguished."""


@dataclass(frozen=True, slots=True)
class View:
    """The part of a scene to draw: seconds, and what the vertical axis counts."""

    start: float
    end: float
    low: float
    high: float

    def x(self, time: float) -> float:
        """Horizontal position in drawing units."""
        return LEFT + (time - self.start) / (self.end - self.start) * (WIDTH - LEFT - RIGHT)

    def y(self, offset: float) -> float:
        """Vertical position in drawing units; offset 0 is at the bottom."""
        share = (offset - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def has(self, mark: Mark) -> bool:
        """Whether a mark lies in the time shown."""
        return self.start <= mark.time <= self.end


def whole_view(scene: Scene) -> View | None:
    """All of a scene; None when it has nothing to draw."""
    times = [mark.time for mark in (*scene.data, *scene.acks)]
    return _fit(scene, min(times), max(times)) if times else None


def close_view(scene: Scene, numbers: Collection[int], context: int = 24) -> View | None:
    """The surroundings of some packets; None when that is most of the scene anyway."""
    marks = sorted([*scene.data, *scene.acks], key=lambda mark: mark.time)
    places = [index for index, mark in enumerate(marks) if mark.number in numbers]
    if not places:
        return None
    first = marks[max(0, places[0] - context)].time
    last = marks[min(len(marks) - 1, places[-1] + context)].time
    if last - first > 0.6 * (marks[-1].time - marks[0].time):
        return None
    return _fit(scene, first, last)


def _fit(scene: Scene, start: float, end: float) -> View:
    margin = max(0.02 * (end - start), 0.001)
    start, end = start - margin, end + margin
    data = [mark for mark in scene.data if start <= mark.time <= end]
    acks = [mark for mark in scene.acks if start <= mark.time <= end]
    low = min((mark.start for mark in [*data, *acks]), default=0)
    high = max((mark.end for mark in [*data, *acks]), default=1)
    # Hostile numbers in a report on data must not squeeze the rest into a line.
    reach = max((mark.end for mark in data), default=high)
    floor = min((mark.start for mark in data), default=low)
    room = max(reach - floor, 1)
    low, high = max(low, floor - room), min(max(high, reach), reach + room)
    pad = max(0.05 * (high - low), 1.0)
    return View(start, end, low - pad, high + pad)


def draw(
    scene: Scene,
    view: View,
    *,
    label: str,
    highlighted: Sequence[int] = (),
    lost: Collection[int] = (),
    frame: View | None = None,
    unit: str,
) -> Markup:
    """One plot.

    Args:
        scene: what to draw.
        view: which part of it.
        label: a text alternative for readers who do not see it.
        highlighted: frame numbers to circle.
        lost: frame numbers of data packets that the link lost.
        frame: another view to outline, which a plot of its own shows enlarged.
        unit: what the vertical axis counts.
    """
    data, acks, ticks = ([*filter(view.has, m)] for m in (scene.data, scene.acks, scene.ticks))
    pen = _Pen(view, coarse=len(data) + len(acks) > 2500)
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}"'
        f' data-view="{view.start:.6f} {view.end:.6f} {view.low:.1f} {view.high:.1f}">',
        *_axes(view, unit),
        f'<svg x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"'
        f' viewBox="{LEFT} {TOP} {WIDTH - LEFT - RIGHT} {HEIGHT - TOP - BOTTOM}">',
    ]
    if frame is not None:
        x, y = view.x(frame.start), view.y(frame.high)
        width, height = view.x(frame.end) - x, view.y(frame.low) - y
        parts.append(
            f'<rect class="zoomed" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}"/>'
        )
    lost_at = [(mark.time, (mark.start + mark.end) / 2) for mark in data if mark.number in lost]
    parts += [
        pen.path("window", pen.steps((m.time, m.edge) for m in _widest(scene.acks, view))),
        pen.path("sack", pen.bars((m.time, *block) for m in acks for block in m.blocks)),
        pen.path("ack", pen.steps((m.time, m.end) for m in _reaching(scene.acks, view))),
        pen.path("dup", pen.signs([(m.time, m.end) for m in [*acks, *ticks] if m.duplicate], "v5")),
        pen.path("new", pen.bars((m.time, m.start, m.end) for m in data if not m.again)),
        pen.path("again", pen.bars((m.time, m.start, m.end) for m in data if m.again)),
        pen.path("lost", pen.signs(lost_at, "l8 8m0-8l-8 8", before=4)),
        *_circles(view, [*data, *acks, *ticks], highlighted),
        "</svg></svg>",
    ]
    return Markup("".join(parts))


class _Pen:
    """Writes SVG path data in whole or half units and each stroke once, to stay small."""

    def __init__(self, view: View, coarse: bool) -> None:
        self.view = view
        self.grid = 1 if coarse else 2

    def _n(self, value: float) -> str:
        value = min(max(value, -4000.0), 4000.0)
        return f"{round(value * self.grid) / self.grid:g}"

    def path(self, kind: str, data: str) -> str:
        return f'<path class="{kind}" d="{data}"/>' if data else ""

    def bars(self, bars: Iterable[tuple[float, float, float]]) -> str:
        strokes = []
        for time, low, high in bars:
            top, bottom = sorted((self.view.y(low), self.view.y(high)))
            bottom = max(bottom, top + 1.5)
            x = self._n(self.view.x(time))
            strokes.append(f"M{x} {self._n(top)}V{self._n(bottom)}")
        return _thinned(strokes)

    def steps(self, points: Iterable[tuple[float, float]]) -> str:
        path: list[str] = []
        last = ""
        for time, offset in points:
            x, y = self._n(self.view.x(time)), self._n(self.view.y(offset))
            if not path:
                path.append(f"M{x} {y}")
            elif y != last:
                path.append(f"H{x}V{y}")
            last = y
        path = path[:1] + path[1 :: len(path) // _STROKES + 1]
        return "".join(path) + (f"H{self._n(self.view.x(self.view.end))}" if path else "")

    def signs(self, points: Iterable[tuple[float, float]], shape: str, before: int = 0) -> str:
        """The same shape at each point, begun ``before`` units left of and above it."""
        return _thinned(
            f"M{self._n(self.view.x(time) - before)} {self._n(self.view.y(offset) - before)}{shape}"
            for time, offset in points
        )


def _thinned(strokes: Iterable[str]) -> str:
    once = list(dict.fromkeys(strokes))
    return "".join(once[:: len(once) // _STROKES + 1])


def _reaching(acks: Sequence[Mark], view: View) -> list[Mark]:
    """Marks of the view and the last before it, so that a line enters from the left edge."""
    before = [mark for mark in acks if mark.time < view.start]
    return [*before[-1:], *filter(view.has, acks)]


def _widest(acks: Sequence[Mark], view: View) -> list[Mark]:
    """The offered window's edge, drawn only while it is near the data."""
    room = view.high - view.low
    return [mark for mark in _reaching(acks, view) if mark.edge < view.high + room]


def _circles(view: View, marks: Sequence[Mark], numbers: Sequence[int]) -> list[str]:
    found = {mark.number: mark for mark in marks}
    parts = []
    used: list[tuple[float, float]] = []
    for number in dict.fromkeys(numbers[:_CIRCLES]):
        if (mark := found.get(number)) is None:
            continue
        x, y = view.x(mark.time), view.y((mark.start + mark.end) / 2)
        parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="7"/>')
        tx, ty, anchor = (x + 10, y - 9, "start") if x < WIDTH - 110 else (x - 10, y - 9, "end")
        ty = max(ty, TOP + 12)
        while any(abs(tx - ux) < 48 and abs(ty - uy) < 14 for ux, uy in used):
            ty += 14
        if len(used) < _LABELS:
            used.append((tx, ty))
            parts.append(
                f'<text class="marked" x="{tx:.1f}" y="{ty:.1f}" text-anchor="{anchor}">'
                f"#{number}</text>"
            )
    return parts


def _axes(view: View, unit: str) -> Iterable[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    grid, texts = [], []
    for time, text in nice_ticks(view.start, view.end, 8):
        x = view.x(time)
        grid.append(f"M{x:.1f} {TOP}V{bottom}")
        texts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    for offset, text in nice_ticks(max(view.low, 0.0), view.high, 6):
        y = view.y(offset)
        grid.append(f"M{LEFT} {y:.1f}H{right}")
        texts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    yield f'<path class="grid" d="{"".join(grid)}"/>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    yield from texts
    yield (
        f'<text class="unit" x="{right}" y="{HEIGHT - 6}" text-anchor="end">seconds since the '
        f'case began</text><text class="unit" x="{LEFT - 62}" y="{HEIGHT - 6}">{escape(unit)}'
        "</text>"
    )


def nice_ticks(low: float, high: float, wanted: int) -> list[tuple[float, str]]:
    """Round numbers between ``low`` and ``high``, about ``wanted``, with their texts."""
    raw = (high - low) / max(wanted, 1)
    if not raw > 0 or not math.isfinite(raw):
        return []
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [
        (index * step, thousands(index * step, f".{digits}f")) for index in range(first, last + 1)
    ]
