"""The picture of the rooms, drawn from what the code imports.

A *room* is a top-level package, a folder of the conformance package, or a protocol's folder in one
of the packages that have such folders. An arrow says that a room imports another one; arrows that
follow from others are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from statistics import fmean

import grimp

PACKAGES = (
    "bentpipe_spec",
    "bentpipe_reference",
    "bentpipe_experiments",
    "bentpipe_conformance",
    "bentpipe_fuzz",
)
Rooms = Mapping[str, frozenset[str]]
"""By room, the rooms it imports."""

BOX_WIDTH, BOX_HEIGHT, GAP, RANK = 138, 34, 18, 84


def room_of(module: str) -> str | None:
    """The room of a module; None for one that holds rooms."""
    package, *path = module.split(".")
    name = package.removeprefix("bentpipe_")
    if name in ("spec", "experiments"):
        return name
    if path[:1] == ["protocols"]:
        name, path = "protocols", path[1:]
    if not path:
        return None
    return path[0] if name == "conformance" else f"{name}/{path[0]}"


def read_rooms() -> Rooms:
    """Which room imports which, in the installed packages."""
    graph = grimp.build_graph(*PACKAGES)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        room = room_of(module)
        if room is None:
            continue
        imported = map(room_of, graph.find_modules_directly_imported_by(module))
        found.setdefault(room, set()).update(other for other in imported if other and other != room)
    return {room: frozenset(others) for room, others in sorted(found.items())}


def reachable(rooms: Rooms, start: str) -> set[str]:
    """Every room that ``start`` imports, directly or not."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = rooms[waiting.pop()] - seen
        seen |= fresh
        waiting += fresh
    return seen


def reduced(rooms: Rooms) -> Rooms:
    """The same without the arrows that follow from others."""
    return {
        room: frozenset(
            other
            for other in others
            if not any(other in reachable(rooms, between) for between in others - {other})
        )
        for room, others in rooms.items()
    }


def ranks(rooms: Rooms) -> list[list[str]]:
    """Rooms from the bottom upwards: each stands above everything it imports.

    Raises:
        ValueError: rooms import each other.
    """
    placed: dict[str, int] = {}
    while len(placed) < len(rooms):
        ready = {r for r, others in rooms.items() if r not in placed and others <= placed.keys()}
        if not ready:
            raise ValueError(f"rooms import each other: {sorted(rooms.keys() - placed.keys())}")
        placed |= {
            room: 1 + max((placed[other] for other in rooms[room]), default=-1) for room in ready
        }
    height = 1 + max(placed.values())
    return [sorted(room for room in placed if placed[room] == rank) for rank in range(height)]


def picture(rooms: Rooms) -> str:
    """The rooms and their arrows as SVG, in the colours of the text around it."""
    rows = ranks(rooms)
    width = max(len(row) for row in rows) * (BOX_WIDTH + GAP) + GAP
    height = (len(rows) - 1) * RANK + BOX_HEIGHT + 2 * GAP
    arrows = reduced(rooms)
    places = dict(_places(rows, arrows, width, height))
    curves = [
        _arrow(places[room], places[other])
        for room, others in arrows.items()
        for other in sorted(others)
    ]
    boxes = [_box(room, *place) for room, place in places.items()]
    return "\n".join(
        (
            f'<svg class="rooms" role="img" viewBox="0 0 {width} {height}" '
            'xmlns="http://www.w3.org/2000/svg" font-size="13" text-anchor="middle">',
            "<title>Which room imports which</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/>'
            "</marker></defs>",
            *curves,
            *boxes,
            "</svg>",
        )
    )


def _places(
    rows: Iterable[list[str]], arrows: Rooms, width: int, height: int
) -> Iterable[tuple[str, tuple[float, float]]]:
    """The centre of the upper edge of every room's box; each near the rooms that it imports."""
    across: dict[str, float] = {}
    for rank, row in enumerate(rows):
        y = height - GAP - BOX_HEIGHT - rank * RANK
        left = (width - len(row) * (BOX_WIDTH + GAP)) / 2 + (BOX_WIDTH + GAP) / 2
        below = {room: [across[other] for other in arrows[room]] or [width / 2] for room in row}
        for number, room in enumerate(sorted(row, key=lambda name: (fmean(below[name]), name))):
            across[room] = left + number * (BOX_WIDTH + GAP)
            yield room, (across[room], y)


def _box(room: str, x: float, y: float) -> str:
    return (
        f'<rect x="{x - BOX_WIDTH / 2:g}" y="{y:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
        'rx="5" fill="#fff" fill-opacity=".92" stroke="currentColor"/>'
        f'<text x="{x:g}" y="{y + 22:g}" fill="#222">{escape(room)}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    y1 += BOX_HEIGHT
    bend = (y2 - y1) / 2
    return (
        f'<path d="M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2 - 1:g}" '
        'fill="none" stroke="currentColor" stroke-opacity=".55" marker-end="url(#tip)"/>'
    )
