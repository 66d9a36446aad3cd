"""What an experiment is, and what its results look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bentpipe_experiments.ladder import Ladder
from bentpipe_experiments.statistics import half_width, mean


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one run.

    Attributes:
        value: the measured quantity, in the experiment's unit.
        notes: further figures to average, for example how often a timer expired.
    """

    value: float
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one series at one point.

    Attributes:
        values: one per run.
        notes: the mean of each note.
        noted: each note of each run.
    """

    values: tuple[float, ...]
    notes: Mapping[str, float]
    noted: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Sample mean."""
        return mean(self.values)

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % confidence interval of the mean; 0 for a single run."""
        return half_width(self.values)

    @property
    def interval(self) -> list[float]:
        """The 95 % confidence interval of the mean."""
        return [self.mean - self.half_width, self.mean + self.half_width]

    def of(self, note: str | None) -> Cell:
        """The cell of a note instead of the value; None is the value itself."""
        return self if note is None else Cell(self.noted[note], {})


Cells = Mapping[tuple[str, float], Cell]
"""By series and point."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """Whether a published claim shows in the results.

    Attributes:
        id: permanent name in ``results.json``.
        claim: the claim, and where it is published.
        holds: None when the points it speaks of were not measured.
        sentence: the figures behind it.
    """

    id: str
    claim: str
    holds: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: its identifier and its name in the figure."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A further quantity of the same runs, with axes and a table of its own.

    Attributes:
        note: the note that is shown.
        y_label: what it is, with its unit.
    """

    note: str
    y_label: str


@dataclass(frozen=True, slots=True)
class Published:
    """A number that the source prints; figures and tables show it beside ours.

    Attributes:
        label: whose it is, as in the legend.
        value: the number, in the unit of the quantity.
        where: the section or table that prints it.
        point: the x that it belongs to; None for all of them.
        series: the series that measures the same; empty if none does.
        note: the panel that it belongs to, None for the value of the experiment.
        half_width: half of the interval that the source prints with it.
    """

    label: str
    value: float
    where: str
    point: float | None = None
    series: str = ""
    note: str | None = None
    half_width: float = 0.0


@dataclass(frozen=True, slots=True)
class Experiment:
    """One published experiment.

    Attributes:
        id: name on the command line.
        title: one line.
        source: paper, figure and sections.
        series: the curves.
        x_label: what is varied, with its unit.
        y_label: what is measured, with its unit.
        points: the values of x measured unless others are asked for.
        runs: runs of each series at each point.
        settings: every parameter, with the reason where the source leaves it open.
        measure: one run of a series at a point with a seed; a pure function.
        judge: the published claims against all results and the seed.
        panels: what else the runs measure.
        published: what the source prints of it.
        x_scale: of the axis: ``linear``, ``log``, or ``symlog`` for one that begins with 0.
        ladder: the packets of an exchange, where the figure is not one of curves.
    """

    id: str
    title: str
    source: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    points: tuple[float, ...]
    runs: int
    settings: Mapping[str, str]
    measure: Callable[[str, float, int], Measurement]
    judge: Callable[[Cells, int], Sequence[Judgment]]
    panels: tuple[Panel, ...] = ()
    published: tuple[Published, ...] = ()
    x_scale: Literal["linear", "log", "symlog"] = "linear"
    ladder: Callable[[], Sequence[Ladder]] | None = None

    @property
    def quantities(self) -> tuple[tuple[str | None, str], ...]:
        """Note (None for the value) and label of everything that is measured."""
        return ((None, self.y_label), *((panel.note, panel.y_label) for panel in self.panels))
