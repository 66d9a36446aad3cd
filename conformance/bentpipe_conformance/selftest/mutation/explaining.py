"""Survivors that need no case: reviewed explanations, as data beside a reference's mutants.

``mutants/explained/MODULE.toml`` of a protocol has an entry for mutants of one line that survive
for one reason::

    [[explained]]
    ids = ["tcp.receiver:Receiver.free_room:minus-one:a5c4aa"]
    line = "return max(0, self.config.receive_buffer - self.buffer.unread)"
    class = "equivalent"
    reason = "The reassembly buffer never holds more than the receive buffer."
    reviewer = "..."

``clause`` names the clause that permits it, for the class ``permitted``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from bentpipe_conformance.selftest.mutation.scope import Scope, data_file

CLASSES: Mapping[str, str] = {
    "equivalent": "it behaves like the true reference",
    "invisible on the wire": "no packet can show it",
    "permitted": "the clause named permits it",
    "performance only": "it is slower or uses more memory, nothing else",
}

FOLDER = "explained"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a mutant need not be killed.

    Attributes:
        id: the mutant's.
        line: the source of its line, stripped.
        kind: one of :data:`CLASSES`.
        reason: in a sentence or two.
        reviewer: who has gone over it, apart from whoever wrote it; empty until then.
        clause: what permits it.
    """

    id: str
    line: str
    kind: str
    reason: str
    reviewer: str = ""
    clause: str = ""


def load_explanations(scope: Scope) -> dict[str, Explanation]:
    """The explanations of a protocol's mutants.

    Raises:
        ValueError: an entry is incomplete, doubled, of no known class or of another module.
    """
    found: dict[str, Explanation] = {}
    for path in sorted(data_file(scope.protocol, FOLDER, scope.root).glob("*.toml")):
        found |= read_explanations(path, path.stem, CLASSES)
    return found


def read_explanations(
    path: Path, module: str, classes: Mapping[str, str]
) -> dict[str, Explanation]:
    """The explanations in one file.

    Args:
        path: the file.
        module: the one that its mutants belong to.
        classes: what a survivor may be.

    Raises:
        ValueError: an entry is incomplete, doubled, of no known class or of another module.
    """
    found: dict[str, Explanation] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("explained", ()):
        for item in _read(entry, path, classes):
            if item.id in found:
                raise ValueError(f"{path}: {item.id} is explained twice")
            if item.id.split(":")[0] != module:
                raise ValueError(f"{path}: {item.id} belongs to another module's file")
            found[item.id] = item
    return found


def _read(entry: dict[str, Any], path: Path, classes: Mapping[str, str]) -> list[Explanation]:
    given = {"kind" if name == "class" else name: value for name, value in entry.items()}
    ids = given.pop("ids", None) or []
    who = f"{path}: the entry {', '.join(ids) or entry}"
    if not ids:
        raise ValueError(f"{who} lacks ids")
    known = {field.name for field in fields(Explanation)} - {"id"}
    if unknown := given.keys() - known:
        raise ValueError(f"{who} has {', '.join(sorted(unknown))}, which means nothing")
    for name in ("line", "kind", "reason"):
        if not given.get(name, "").strip():
            raise ValueError(f"{who} lacks {'class' if name == 'kind' else name}")
    if given["kind"] not in classes:
        raise ValueError(f"{who} is of the class {given['kind']!r}; give {', '.join(classes)}")
    if given["kind"] == "permitted" and not given.get("clause"):
        raise ValueError(f"{who} names no clause that permits it")
    return [Explanation(identifier, **given) for identifier in ids]


class Lined(Protocol):
    """A mutant, as far as an explanation has to fit.

    Attributes:
        id: the mutant's.
        text: the source of its line, stripped.
    """

    @property
    def id(self) -> str:
        """See the class."""

    @property
    def text(self) -> str:
        """See the class."""


def stale(
    explanations: Iterable[Explanation], mutants: Iterable[Lined], killed: Collection[str] = ()
) -> list[str]:
    """What is wrong with explanations, a sentence each.

    Args:
        explanations: to check.
        mutants: every mutant of the protocol.
        killed: identifiers of those that have been killed.
    """
    known = {item.id: item for item in mutants}
    problems = []
    for item in explanations:
        if item.id not in known:
            problems.append(f"{item.id} is explained, but no mutant: its line has changed or gone")
        elif known[item.id].text != item.line.strip():
            problems.append(f"{item.id} is explained for {item.line!r}, but the line has changed")
        elif item.id in killed:
            problems.append(f"{item.id} is explained as {item.kind}, but killed")
    return problems
