"""What is tested and by which rules, as digests that stand in the plan of a run."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.evidence.records import Implementation
from bentpipe_conformance.evidence.serialization import dumps, encode
from bentpipe_conformance.evidence.tool import file_digest
from bentpipe_conformance.iut.build import built
from bentpipe_conformance.iut.description import IutDescription, is_bundled


def requirements_digest(suite: Suite) -> str:
    """SHA-256 over the suite's requirements, with their texts, levels and conditions."""
    return hashlib.sha256(dumps(encode(suite.requirements())).encode()).hexdigest()


def implementation(description: IutDescription) -> Implementation:
    """What identifies an implementation: its description, statement, and the files that it runs.

    Of a box at an address there is nothing but its address. Shared libraries are not followed.
    """
    files = {}
    for path in _files(description):
        try:
            files[str(path)] = file_digest(path)
        except OSError as error:
            files[str(path)] = f"cannot be read: {error.strerror}"
    return Implementation(
        id=description.id, name=description.name, ics=dict(description.ics),
        bundled=is_bundled(description),
        attached={name: value for name, value in encode(asdict(description.attach)).items()
                  if value not in ("", 0, ["", 0])},
        files=dict(sorted(files.items())),
    )  # fmt: skip


def _files(description: IutDescription) -> Iterator[Path]:
    """The description, and every file that starting the implementation and making it call names."""
    if description.path.is_file():
        yield description.path
    start, opening = description.start, description.opening
    values: dict[str, object] = {"here": description.path.parent, "python": sys.executable}
    if start.build:
        folder = built(start.build)
        values["cache"] = folder
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    commands = [start.words(values)]
    if opening is not None:
        commands.append(list(opening.filled(values).command))
    for words in commands:
        for place, word in enumerate(words):
            found = shutil.which(word) if place == 0 else word
            if found and Path(found).is_file():
                yield Path(found).resolve()
