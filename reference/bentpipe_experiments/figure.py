"""The figure of an experiment: curves with bars for the 95 % confidence intervals, or a ladder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bentpipe_experiments.ladder import Ladder, Rung
from bentpipe_experiments.model import Cells, Experiment

STYLES = (("#0072b2", "o"), ("#009e73", "s"), ("#e69f00", "^"), ("#d55e00", "v"))
"""Colours that stay apart for colour-blind eyes, and a marker each."""

_QUIET = "#555555"
_FORWARD, _BACK, _LOST = "#0072b2", "#009e73", "#d55e00"


def draw(experiment: Experiment, cells: Cells, files: Iterable[Path]) -> None:
    """Draw the figure into each of ``files``; the suffix gives the format."""
    with matplotlib.rc_context({"svg.hashsalt": experiment.id, "font.size": 10}):
        if experiment.ladder is None:
            figure = _figure(experiment, cells)
        else:
            figure = _ladders(experiment, experiment.ladder())
        for path in files:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, dpi=160, metadata=metadata)


def _figure(experiment: Experiment, cells: Cells) -> Figure:
    quantities = experiment.quantities
    figure = Figure(figsize=(7.2, 4.6 if len(quantities) == 1 else 7.6), layout="constrained")
    places = figure.subplots(len(quantities), sharex=True, squeeze=False)[:, 0]
    for axes, (note, label) in zip(places, quantities, strict=True):
        _curves(axes, experiment, {key: cell.of(note) for key, cell in cells.items()})
        axes.set_ylabel(label)
    top, bottom = places[0], places[-1]
    bottom.set_xlabel(experiment.x_label)
    top.set_title(experiment.title, loc="left", fontweight="bold")
    runs = max(len(cell.values) for cell in cells.values())
    top.text(
        1.0, 1.015, f"{runs} runs per point, 95 % confidence", transform=top.transAxes,
        ha="right", va="bottom", fontsize=8, color=_QUIET,
    )  # fmt: skip
    top.legend(frameon=False, loc="lower left" if len(quantities) == 1 else "best")
    return figure


def _curves(axes: Axes, experiment: Experiment, cells: Cells) -> None:
    for i, series in enumerate(experiment.series):
        points = sorted(point for name, point in cells if name == series.id)
        found = [cells[series.id, point] for point in points]
        colour, marker = STYLES[i % len(STYLES)]
        axes.errorbar(
            points,
            [cell.mean for cell in found],
            yerr=[cell.half_width for cell in found],
            label=series.label,
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.4,
            capsize=3,
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _ladders(experiment: Experiment, ladders: Sequence[Ladder]) -> Figure:
    longest = max(rung.arrived or rung.sent for ladder in ladders for rung in ladder.rungs)
    rungs = max(len(ladder.rungs) for ladder in ladders)
    figure = Figure(figsize=(5.2 * len(ladders), 1.5 + 0.34 * rungs), layout="constrained")
    figure.suptitle(experiment.title, x=0.01, ha="left", fontweight="bold")
    places = figure.subplots(1, len(ladders), squeeze=False)[0]
    for axes, ladder in zip(places, ladders, strict=True):
        _draw_ladder(axes, ladder, longest)
    return figure


def _draw_ladder(axes: Axes, ladder: Ladder, longest: float) -> None:
    """Time runs downwards; each packet is an arrow from side to side."""
    end = 1000 * longest * 1.03
    axes.vlines((0, 1), 0, end, color="black", linewidth=1)
    taken: dict[bool, float] = {}
    for rung in ladder.rungs:
        _draw_rung(axes, rung, taken, end / 36)
    axes.set_title(ladder.title, loc="left", fontsize=9)
    axes.text(0, -end / 60, ladder.left, ha="center", va="bottom", fontsize=9)
    axes.text(1, -end / 60, ladder.right, ha="center", va="bottom", fontsize=9)
    axes.set_xlim(-0.85, 1.85)
    axes.set_ylim(end, -end / 16)
    axes.axis("off")


def _draw_rung(axes: Axes, rung: Rung, taken: dict[bool, float], step: float) -> None:
    sent = 1000 * rung.sent
    start, end = (0.0, 1.0) if rung.forward else (1.0, 0.0)
    colour = _FORWARD if rung.forward else _BACK
    if rung.arrived is None:
        colour, end, arrived = _LOST, 0.5, sent + step
        axes.plot([end], [arrived], marker="x", color=_LOST, markersize=6)
    else:
        arrived = 1000 * rung.arrived
    axes.annotate(
        "", (end, arrived), (start, sent),
        arrowprops={"arrowstyle": "-" if rung.arrived is None else "->", "color": colour,
                    "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    # Packets that leave together must not be written over each other.
    place = max(sent, taken.get(rung.forward, -step) + step)
    taken[rung.forward] = place
    side, aligned = (-0.04, "right") if rung.forward else (1.04, "left")
    axes.text(side, place, rung.what, ha=aligned, va="center", fontsize=8, color=colour)
