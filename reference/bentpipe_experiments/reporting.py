"""The outcome of an experiment as data and as files."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bentpipe_experiments.figure import draw
from bentpipe_experiments.model import Cell, Cells, Experiment, Judgment, Published
from bentpipe_experiments.store import code_digest
from bentpipe_experiments.verdicts import altogether


def outcome(
    experiment: Experiment, cells: Cells, judgments: Sequence[Judgment], seed: int
) -> dict[str, Any]:
    """What ``results.json`` holds."""
    return {
        "experiment": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        "settings": dict(experiment.settings),
        "seed": seed,
        "made_with": {
            "bentpipe": version("bentpipe"),
            "code": code_digest(),
            "python": platform.python_version(),
        },
        "series": [{"id": series.id, "label": series.label} for series in experiment.series],
        "x": experiment.x_label,
        "y": experiment.y_label,
        "panels": [{"note": panel.note, "y": panel.y_label} for panel in experiment.panels],
        "points": [
            {
                "series": series,
                "x": point,
                "runs": len(cell.values),
                "mean": cell.mean,
                "ci95": cell.interval,
                "notes": dict(cell.notes),
                "values": list(cell.values),
                "panels": {
                    panel.note: _summary(cell.of(panel.note)) for panel in experiment.panels
                },
            }
            for (series, point), cell in sorted(cells.items())
        ],
        "published": [_published(item, cells) for item in experiment.published],
        "judgments": [
            {"id": item.id, "claim": item.claim, "holds": item.holds, "sentence": item.sentence}
            for item in judgments
        ],
        "holds": holds(judgments),
        "ladder": [item.text() for item in experiment.ladder()] if experiment.ladder else [],
    }


def _summary(cell: Cell) -> dict[str, Any]:
    return {"mean": cell.mean, "ci95": cell.interval, "values": list(cell.values)}


def _published(item: Published, cells: Cells) -> dict[str, Any]:
    """A printed number beside ours, with the relative difference where we have one."""
    point = math.nan if item.point is None else item.point
    cell = cells.get((item.series, point))
    ours = None if cell is None else cell.of(item.note).mean
    return {
        **asdict(item),
        "ours": ours,
        "difference": None if ours is None else ours / item.value - 1,
    }


def holds(judgments: Sequence[Judgment]) -> bool | None:
    """False when a claim does not hold, else None when one stayed open, else True."""
    return altogether(item.holds for item in judgments)


def write(directory: Path, experiment: Experiment, cells: Cells, result: dict[str, Any]) -> None:
    """Write ``results.json`` and the figure as SVG and PNG."""
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    (directory / "results.json").write_text(text, encoding="utf-8")
    draw(experiment, cells, [directory / f"{experiment.id}.{kind}" for kind in ("svg", "png")])
