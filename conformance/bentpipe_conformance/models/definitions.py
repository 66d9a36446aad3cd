"""The definitions of modules by their text: what stands where, and what needs what.

For what the parser's tree is not needed, and for modules that no longer exist as files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_BEGIN = re.compile(r"^(?:LOCAL\s+)?(\w+)\s*(?:\([^)]*\)|\[[^\]]*\])?\s*==", re.MULTILINE)
_END = re.compile(
    r"^(?:-{4,}|={4,}|RECURSIVE\b|CONSTANTS?\b|VARIABLES?\b|ASSUME\b|\(\*)", re.MULTILINE
)
_COMMENT = re.compile(r"\(\*.*?\*\)|\\\*[^\n]*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_VARIABLES = re.compile(r"^VARIABLES?\b(.*?)^\s*$", re.MULTILINE | re.DOTALL)
_PRIMED = re.compile(r"\b([A-Za-z_]\w*)'")


@dataclass(frozen=True, slots=True)
class Text:
    """A definition.

    Attributes:
        name: what is defined.
        source: its text, comments included.
        code: the same without comments and with single spaces.
    """

    name: str
    source: str
    code: str

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        return frozenset(_NAME.findall(self.code))

    @property
    def assigned(self) -> frozenset[str]:
        """The variables that stand primed in it."""
        return frozenset(_PRIMED.findall(self.code))


def definitions_of(module: str) -> dict[str, Text]:
    """The definitions at the top of a module's source, by name."""
    starts = list(_BEGIN.finditer(module))
    stops = sorted([*(item.start() for item in starts), *(m.start() for m in _END.finditer(module)),
                    len(module)])  # fmt: skip
    found = {}
    for item in starts:
        stop = next(at for at in stops if at > item.start())
        source = module[item.start() : stop].rstrip()
        found[item[1]] = Text(item[1], source, " ".join(_COMMENT.sub(" ", source).split()))
    return found


def defined_at(module: str, line: int) -> str:
    """The definition that a line of a module's source belongs to; empty where none does."""
    for name, item in definitions_of(module).items():
        first = module[: module.index(item.source)].count("\n") + 1
        if first <= line <= first + item.source.count("\n"):
            return name
    return ""


def variables_of(module: str) -> frozenset[str]:
    """The variables that a module declares."""
    return frozenset(
        name
        for block in _VARIABLES.findall(_COMMENT.sub(" ", module) + "\n\n")
        for name in _NAME.findall(block)
    )


def dependents(of: Collection[str], known: Mapping[str, Text]) -> frozenset[str]:
    """Names whose definitions need one of these, at whatever remove, and these themselves."""
    found = set(of)
    while more := {
        name for name, item in known.items() if name not in found and item.names & found
    }:
        found |= more
    return frozenset(found)


def needed(by: Iterable[str], known: Mapping[str, Text]) -> frozenset[str]:
    """Names of definitions that these need, at whatever remove, and these themselves."""
    found: set[str] = set()
    todo = [name for name in by if name in known]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for other in known[name].names if other in known]
    return frozenset(found)
