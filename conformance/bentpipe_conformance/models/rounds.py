"""Blind rounds of a model: edits of its specification that strangers to its properties wrote.

``tla/NAME/blind/round_N.json`` has the edits, in the form of :func:`.edits.read_edits`, and
``round_N.toml`` beside it what the pr tier said of each at the first run, which alone counts, with
its review::

    date = "2026-11-23"

    [edit.3]
    caught = false
    by = ""
    run = ""
    valid = "valid"
    reason = ""
    since = "RunsAreTold in newest-low: the bounds left no room for it."

``valid`` is *valid*, *unfit*, or a class of an explained survivor; what is not valid needs a reason
and does not count. ``since`` says what notices a miss now.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bentpipe_conformance.models.edits import Edit, read_edits
from bentpipe_conformance.models.manifest import Manifest
from bentpipe_conformance.models.mutation.campaign import CLASSES
from bentpipe_conformance.models.tool import ToolProblem

VALIDITIES = ("valid", "unfit", *CLASSES)
"""What the review may say; *unfit* is what the model checker cannot parse or evaluate."""


@dataclass(frozen=True, slots=True)
class Review:
    """The first run of an edit, and what a reader says of it.

    Attributes:
        caught: whether a property was violated, or a state no longer reached.
        by: which.
        run: in which run of the manifest.
        valid: one of :data:`VALIDITIES`.
        reason: why it is not valid.
        since: for a miss, what notices it now.
    """

    caught: bool
    by: str
    run: str
    valid: str = "valid"
    reason: str = ""
    since: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is an edit that the model ought to notice."""
        return self.valid == "valid"


@dataclass(frozen=True, slots=True)
class Round:
    """A round of one model.

    Attributes:
        model: its name.
        number: of the round.
        edits: as they were written.
        date: of the first run; empty before it.
        reviews: of the edits, in their order; empty before the first run.
    """

    model: str
    number: int
    edits: tuple[Edit, ...]
    date: str = ""
    reviews: tuple[Review, ...] = ()

    @property
    def valid(self) -> list[Review]:
        """The reviews of edits that count."""
        return [item for item in self.reviews if item.counts]

    @property
    def caught(self) -> int:
        """How many of them were noticed at the first run."""
        return sum(item.caught for item in self.valid)


def rounds_of(manifest: Manifest) -> list[int]:
    """The numbers of a model's rounds."""
    files = (manifest.folder / "blind").glob("round_*.json")
    return sorted(int(path.stem.removeprefix("round_")) for path in files)


def load_round(manifest: Manifest, number: int) -> Round:
    """A round with its reviews, as far as there are any.

    Raises:
        ToolProblem: there is no such round, or a review is incomplete or wrong.
    """
    if number not in rounds_of(manifest):
        raise ToolProblem(
            f"{manifest.name} has no blind round {number}; write one into "
            f"{_file(manifest, number, 'json')}."
        )
    edits = tuple(read_edits(_file(manifest, number, "json"), [manifest.name]))
    path = _file(manifest, number, "toml")
    if not path.exists():
        return Round(manifest.name, number, edits)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        reviews = _reviews(found["edit"], len(edits))
    except (ValueError, KeyError, TypeError) as error:
        raise ToolProblem(f"{path}: {error}; correct the review.") from error
    return Round(manifest.name, number, edits, str(found["date"]), reviews)


def _reviews(given: Mapping[str, Any], edits: int) -> tuple[Review, ...]:
    if list(given) != [str(at) for at in range(1, edits + 1)]:
        raise ValueError(f"the reviews are not those of the edits 1 to {edits}")
    known = {field.name for field in fields(Review)}
    for at, item in given.items():
        if unknown := item.keys() - known:
            raise ValueError(f"edit {at} has {', '.join(sorted(unknown))}, which means nothing")
        if item.get("valid", "valid") not in VALIDITIES:
            raise ValueError(f"edit {at} is {item['valid']!r}, not one of {', '.join(VALIDITIES)}")
        if item.get("valid", "valid") != "valid" and not item.get("reason"):
            raise ValueError(f"edit {at} is {item['valid']} without a reason")
    return tuple(Review(**item) for item in given.values())


def record_round(
    manifest: Manifest, number: int, rows: Sequence[Mapping[str, Any]], date: str
) -> Path:
    """Record the first run of a round; review it by hand.

    Args:
        manifest: of the model.
        number: of the round.
        rows: of each edit what ``property`` notices it, empty for none, and in which ``run``.
        date: of the run.

    Raises:
        FileExistsError: it has been recorded, and only the first run counts.
    """
    path = _file(manifest, number, "toml")
    with path.open("x", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in _lines(rows, date))
    return path


def _lines(rows: Iterable[Mapping[str, Any]], date: str) -> Iterable[str]:
    yield "# The first run, which alone counts, and its review: valid, unfit, equivalent, harmless"
    yield "# or abstraction, with a reason; since: what notices a miss now."
    yield f'date = "{date}"'
    for at, row in enumerate(rows, 1):
        yield from ("", f"[edit.{at}]", f"caught = {str(bool(row['property'])).lower()}")
        yield from (f"by = {json.dumps(row['property'])}", f"run = {json.dumps(row['run'])}")
        yield from ('valid = "valid"', f"reason = {json.dumps(row['problem'])}", 'since = ""')


def _file(manifest: Manifest, number: int, suffix: str) -> Path:
    return manifest.folder / "blind" / f"round_{number}.{suffix}"
