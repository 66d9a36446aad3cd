"""What an implementation asks for beyond its own files: the table ``[isolation]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_conformance.engine.lane import filled
from bentpipe_conformance.iut.attachment import AttachKind
from bentpipe_conformance.iut.table import Table

PACKAGES = "{packages}"
"""Stands for what bentpipe itself runs on: its interpreter's modules and packages."""

MOST_PROCESSES = 1024


@dataclass(frozen=True, slots=True)
class Isolation:
    """What an implementation asks for.

    Attributes:
        files: directories that it may read, and files; with placeholders.
        network: it wants the rights of an administrator over its own network namespace.
        privileged: it wants the rights of the user who runs bentpipe, and no isolation.
        processes: how many it wants to have at once; 0 for as many as are usual.
    """

    files: tuple[str, ...] = ()
    network: bool = False
    privileged: bool = False
    processes: int = 0

    def paths(self, values: Mapping[str, object]) -> list[Path]:
        """The directories and files, with the placeholders filled in."""
        found: list[str] = []
        for word in self.files:
            found += packages() if word == PACKAGES else [filled(word, values)]
        return [Path(os.path.abspath(path)) for path in dict.fromkeys(found)]

    def record(self, kind: AttachKind) -> dict[str, Any]:
        """What the plan says of it."""
        if kind == "in-process":
            return {"kind": "none", "because": "it is part of the tester's own simulation"}
        if kind == "ports":
            return {
                "kind": "none",
                "because": "it is a machine of its own: what it runs is unknown",
            }
        if kind == "address":
            return {
                "kind": "none",
                "because": "it is a machine of its own: what it runs is unknown, and a command "
                "that starts it runs with the rights of the tester",
            }
        if self.privileged:
            return {"kind": "none", "because": "its description asks for privileged = true"}
        asked: dict[str, Any] = {"kind": "isolated"}
        if self.files:
            asked["files"] = list(self.files)
        if self.network:
            asked["network"] = True
        if self.processes:
            asked["processes"] = self.processes
        return asked


def packages() -> list[str]:
    """The directories from which this interpreter takes modules."""
    home = Path(sys.prefix)
    found = [str(home), str(Path(os.__file__).parent), *sys.path]
    return [path for path in dict.fromkeys(found) if path and os.path.isdir(path)]


def read_isolation(table: Table, kind: AttachKind) -> Isolation:
    """Read ``[isolation]``.

    Raises:
        DescriptionError: it has a mistake.
    """
    table.only("files", "network", "privileged", "processes")
    if table.entries and kind in ("in-process", "address", "ports"):
        raise table.wrong(f"has no meaning for kind {kind!r}, which cannot be isolated")
    files = table.words("files")
    table.placeholders(files, ("here", "cache", "packages"))
    told = Isolation(
        files,
        table.take("network", bool, "true or false", False),
        table.take("privileged", bool, "true or false", False),
        table.take("processes", int, "a whole number", 0),
    )
    if told.privileged and (told.files or told.network or told.processes):
        named = "'files', 'network' and 'processes'"
        raise table.wrong(f"has no meaning for {named} with 'privileged'")
    if "processes" in table.entries and not 1 <= told.processes <= MOST_PROCESSES:
        wanted = f"a number from 1 to {MOST_PROCESSES}"
        raise table.wrong(f"needs {wanted} for 'processes', not {told.processes}")
    return told
