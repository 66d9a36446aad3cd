"""The figure of an experiment: a curve per series, bars for the 95 % confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from bentpipe_conformance.experiments.model import Cells, Experiment

STYLES = (("#0072b2", "o"), ("#009e73", "s"), ("#e69f00", "^"), ("#d55e00", "v"))
"""Colours that stay apart for colour-blind eyes, and a marker each."""


def draw(experiment: Experiment, cells: Cells, files: Iterable[Path]) -> None:
    """Draw the figure into each of ``files``; the suffix gives the format."""
    with matplotlib.rc_context({"svg.hashsalt": experiment.id, "font.size": 10}):
        figure = _figure(experiment, cells)
        for path in files:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, dpi=160, metadata=metadata)


def _figure(experiment: Experiment, cells: Cells) -> Figure:
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    runs = 0
    for i, series in enumerate(experiment.series):
        points = sorted(point for name, point in cells if name == series.id)
        found = [cells[series.id, point] for point in points]
        runs = max([runs, *(len(cell.values) for cell in found)])
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
    axes.set_xlabel(experiment.x_label)
    axes.set_ylabel(experiment.y_label)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(experiment.title, loc="left", fontweight="bold")
    axes.text(
        1.0, 1.015, f"{runs} runs per point, 95 % confidence", transform=axes.transAxes,
        ha="right", va="bottom", fontsize=8, color="#555555",
    )  # fmt: skip
    axes.legend(frameon=False, loc="lower left")
    return figure
