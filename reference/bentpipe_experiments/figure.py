"""The figure of an experiment: curves with bars for the 95 % confidence intervals, or a ladder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bentpipe_experiments.ladder import Ladder, Rung
from bentpipe_experiments.model import Cells, Experiment

STYLES = (
    ("#0072b2", "o"), ("#009e73", "s"), ("#e69f00", "^"), ("#d55e00", "v"), ("#cc79a7", "D"),
    ("#56b4e9", "P"), ("#000000", "X"),
)  # fmt: skip
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
        _printed(axes, experiment, note)
        axes.set_ylim(bottom=0)  # only now, since it ends the scaling
        axes.set_ylabel(label)
    top, bottom = places[0], places[-1]
    bottom.set_xlabel(experiment.x_label)
    top.set_title(experiment.title, loc="left", fontweight="bold")
    runs = max(len(cell.values) for cell in cells.values())
    top.text(
        1.0, 1.015, f"{runs} runs per point, 95 % confidence", transform=top.transAxes,
        ha="right", va="bottom", fontsize=8, color=_QUIET,
    )  # fmt: skip
    for axes in places if experiment.published else places[:1]:
        axes.legend(frameon=False, loc="lower left" if len(quantities) == 1 else "best")
    return figure


def _printed(axes: Axes, experiment: Experiment, note: str | None) -> None:
    """What the source prints of a quantity: hollow markers, or a line if it is for all points."""
    order = [series.id for series in experiment.series]
    named = set[str]()
    for item in experiment.published:
        if item.note != note:
            continue
        label = item.label if item.label not in named else None
        named.add(item.label)
        known = item.series in order
        colour, marker = STYLES[order.index(item.series)] if known else (_QUIET, "D")
        if item.point is None:
            axes.axhline(item.value, color=colour, linewidth=1, linestyle=(0, (4, 3)), label=label)
        else:
            axes.errorbar(
                [item.point], [item.value], yerr=[item.half_width] if item.half_width else None,
                label=label, color=colour, marker=marker, markerfacecolor="none",
                markersize=9, linestyle="none", capsize=3,
            )  # fmt: skip


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
    _scale(axes, experiment, sorted({point for _, point in cells}))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _scale(axes: Axes, experiment: Experiment, points: Sequence[float]) -> None:
    """The x axis; where it is logarithmic, only what was measured is marked."""
    if experiment.x_scale == "linear":
        axes.set_xlim(left=0)
        return
    if experiment.x_scale == "log":
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=min((x for x in points if x > 0), default=1.0))
    axes.set_xticks(points, [f"{x:g}" for x in points])
    axes.minorticks_off()


def _ladders(experiment: Experiment, ladders: Sequence[Ladder]) -> Figure:
    longest = max(rung.arrived or rung.sent for ladder in ladders for rung in ladder.rungs)
    rungs = max(len(ladder.rungs) for ladder in ladders)
    figure = Figure(figsize=(5.6 * len(ladders), 1.5 + 0.34 * rungs), layout="constrained")
    figure.suptitle(experiment.title, x=0.01, ha="left", fontweight="bold")
    places = figure.subplots(1, len(ladders), squeeze=False, sharey=True)[0]
    for axes, ladder in zip(places, ladders, strict=True):
        _draw_ladder(axes, ladder, longest)
    places[0].set_ylabel("time since the first packet (ms)")
    return figure


def _draw_ladder(axes: Axes, ladder: Ladder, longest: float) -> None:
    """Time runs downwards; each packet is an arrow from side to side, its name where it begins."""
    end = 1000 * longest * 1.03
    axes.vlines((0, 1), 0, end, color="black", linewidth=1)
    step = end / 32
    for forward in (True, False):
        rungs = [rung for rung in ladder.rungs if rung.forward is forward]
        for rung, place in zip(
            rungs, _places([1000 * rung.sent for rung in rungs], step), strict=True
        ):
            _draw_rung(axes, rung, place, step)
    axes.set_title(ladder.title, loc="left", fontsize=9)
    axes.text(0, -end / 60, ladder.left, ha="center", va="bottom", fontsize=9)
    axes.text(1, -end / 60, ladder.right, ha="center", va="bottom", fontsize=9)
    axes.set_xlim(-1.0, 2.0)
    axes.set_ylim(end, -end / 16)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def _places(times: Sequence[float], step: float) -> list[float]:
    """Where labels go so that each is as near to its time as its neighbours let it, ``step`` apart.

    Labels that would touch form a group around the mean of their times.
    """
    groups: list[list[float]] = []
    for time in times:
        groups.append([time])
        while len(groups) > 1 and _first(groups[-1], step) < _last(groups[-2], step) + step:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_first(group, step) + at * step for group in groups for at in range(len(group))]


def _first(group: Sequence[float], step: float) -> float:
    return fmean(group) - (len(group) - 1) * step / 2


def _last(group: Sequence[float], step: float) -> float:
    return fmean(group) + (len(group) - 1) * step / 2


def _draw_rung(axes: Axes, rung: Rung, place: float, step: float) -> None:
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
    outside, aligned = (-0.1, "right") if rung.forward else (1.1, "left")
    axes.plot([start, outside * 0.85 + start * 0.15], [sent, place], color=colour, linewidth=0.5)
    axes.text(outside, place, rung.what, ha=aligned, va="center", fontsize=8, color=colour)
