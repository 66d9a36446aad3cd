"""Configuration files of the model checker: read, vary, write."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe_conformance.models.tool import ToolProblem

_SECTIONS = {
    "SPECIFICATION": "specification",
    "CONSTANT": "constants",
    "CONSTANTS": "constants",
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "CHECK_DEADLOCK": "check_deadlock",
}
_COMMENT = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a run of the model checker is told: bounds and what to check.

    Attributes:
        specification: name of the temporal formula that is the specification.
        constants: values by name, as text; ``<- Name`` replaces a definition.
        invariants: names of state predicates.
        properties: names of action or temporal properties.
        check_deadlock: whether a state without successor is an error.
    """

    specification: str
    constants: Mapping[str, str]
    invariants: tuple[str, ...]
    properties: tuple[str, ...]
    check_deadlock: bool

    def varied(
        self,
        constants: Mapping[str, str],
        replaced: Mapping[str, str],
        checks: Sequence[str],
        invariants: Sequence[str],
    ) -> Configuration:
        """The same run with other constants and definitions, and only ``checks`` if any are named.

        A check counts as an invariant if ``invariants`` or this configuration says so, else as a
        property.
        """
        changed = {**self.constants, **constants}
        changed.update({name: f"<- {other}" for name, other in replaced.items()})
        result = replace(self, constants=changed)
        if not checks:
            return result
        predicates = {*self.invariants, *invariants}
        return replace(
            result,
            invariants=tuple(name for name in checks if name in predicates),
            properties=tuple(name for name in checks if name not in predicates),
        )

    def text(self) -> str:
        """The configuration as a file of the model checker."""
        lines = [f"SPECIFICATION {self.specification}"]
        if self.constants:
            lines.append("CONSTANTS")
        for name, value in self.constants.items():
            lines.append(f"    {name} {value if value.startswith('<-') else f'= {value}'}")
        lines += [f"INVARIANT {name}" for name in self.invariants]
        lines += [f"PROPERTY {name}" for name in self.properties]
        lines.append(f"CHECK_DEADLOCK {str(self.check_deadlock).upper()}")
        return "\n".join(lines) + "\n"


def read_configuration(path: Path) -> Configuration:
    """Read a configuration file.

    Raises:
        ToolProblem: the file is missing or says something this reader does not know.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolProblem(f"{path} cannot be read: {error.strerror}.") from error
    words: dict[str, list[str]] = {}
    section = ""
    for word in _COMMENT.sub("", text).split():
        if word in _SECTIONS:
            section = _SECTIONS[word]
            words.setdefault(section, [])
        elif (section and not word.isupper()) or section in ("constants", "check_deadlock"):
            words[section].append(word)
        else:
            raise ToolProblem(
                f"{path.name}: {word!r} is none of {', '.join(sorted(_SECTIONS))}, the sections "
                "that 'bentpipe model' understands."
            )
    if len(words.get("specification", [])) != 1:
        raise ToolProblem(f"{path.name} must name one SPECIFICATION.")
    return Configuration(
        specification=words["specification"][0],
        constants=_constants(words.get("constants", []), path),
        invariants=tuple(words.get("invariants", ())),
        properties=tuple(words.get("properties", ())),
        check_deadlock=words.get("check_deadlock", ["TRUE"]) == ["TRUE"],
    )


def _constants(words: list[str], path: Path) -> dict[str, str]:
    starts = [at - 1 for at, word in enumerate(words) if word in ("=", "<-")]
    if not words:
        return {}
    if not starts or starts[0] != 0:
        raise ToolProblem(f"{path.name}: a constant is written NAME = VALUE, with blanks around =.")
    found: dict[str, str] = {}
    for at, end in zip(starts, [*starts[1:], len(words)], strict=True):
        sign = "<- " if words[at + 1] == "<-" else ""
        found[words[at]] = sign + " ".join(words[at + 2 : end])
    return found
