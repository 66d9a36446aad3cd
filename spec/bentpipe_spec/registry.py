"""The requirement registry: typed records loaded from ``PROTOCOL/requirements/*.toml``.

A requirement's identifier is permanent; its text is in the TOML file and nowhere else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any, Literal, Self, get_args

from bentpipe_spec.protocols import SpecificationError, files
from bentpipe_spec.protocols import profiles as known_profiles

Level = Literal["MUST", "SHOULD", "MAY"]
Testability = Literal["wire", "model", "review"]

_ID = re.compile(r"[A-Z]{3,4}-[A-Z]{2,4}-\d{3}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One numbered requirement.

    Attributes:
        id: permanent identifier, such as ``SNR-REC-003``.
        title: a short name for lists.
        level: RFC 2119 level.
        text: the requirement itself.
        source: paper sections, RFC sections, or ``project decision: reason``.
        testability: ``wire`` when it is judged on packets, ``model`` when it is shown by model
            checking only, ``review`` when a person has to look.
        profiles: the profiles it belongs to.
        condition: the conformance-statement item it depends on, or ``item=one|another`` for the
            answers it depends on; empty when unconditional.
        difference: where paper and RFC disagree, and what that means here.
        conditions: per profile, a further condition, where not every answer is specified there.
        alternatives: per profile, the permitted alternatives as named values.
        rests_on: requirements that define quantities it speaks of: where one of them is violated
            too, a violation of this one may be its consequence.
        fundamental: all others rest on it: a packet that violates it may be discarded, and all
            that it says is missing.
    """

    id: str
    title: str
    level: Level
    text: str
    source: tuple[str, ...]
    testability: Testability
    profiles: tuple[str, ...]
    condition: str = ""
    difference: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rests_on: tuple[str, ...] = ()
    fundamental: bool = False

    def condition_in(self, profile: str) -> str:
        """What a conformance statement has to claim for it to apply in ``profile``."""
        both = self.condition, self.conditions.get(profile, "")
        return ", ".join(part for part in both if part)

    def permitted(self, profile: str, name: str, default: Any = None) -> Any:
        """The permitted alternative ``name`` in ``profile``, or ``default``."""
        return self.alternatives.get(profile, {}).get(name, default)

    def permitting(self, profile: str, further: Mapping[str, Any]) -> Self:
        """The same with further alternatives in ``profile``, which has no others then."""
        permitted = {**self.alternatives.get(profile, {}), **further}
        return replace(self, alternatives={profile: permitted})


_FIELDS = {
    "id": str,
    "title": str,
    "level": str,
    "text": str,
    "source": list,
    "testability": str,
    "profiles": list,
}
_OPTIONAL = {
    "condition": str,
    "difference": str,
    "conditions": dict,
    "alternatives": dict,
    "rests_on": list,
    "fundamental": bool,
}


def parse_requirement(entry: Mapping[str, Any], where: str) -> Requirement:
    """Build a record from one TOML table.

    Raises:
        SpecificationError: a key is missing, unknown, of the wrong type or out of range.
    """
    name = entry.get("id", "a requirement without id")
    kinds = {**_FIELDS, **_OPTIONAL}
    if unknown := set(entry) - set(kinds):
        raise SpecificationError(f"{where}: {name} has unknown key {sorted(unknown)[0]!r}")
    for key in _FIELDS:
        if key not in entry:
            raise SpecificationError(f"{where}: {name} lacks {key!r}")
    for key, value in entry.items():
        if not isinstance(value, kinds[key]):
            raise SpecificationError(f"{where}: {name}: {key!r} must be a {kinds[key].__name__}")
    if not _ID.fullmatch(entry["id"]):
        raise SpecificationError(f"{where}: {name!r} is not of the form AAA-BBB-000")
    for key, allowed in (("level", get_args(Level)), ("testability", get_args(Testability))):
        if entry[key] not in allowed:
            raise SpecificationError(
                f"{where}: {name}: {key} {entry[key]!r} is not one of {', '.join(allowed)}"
            )
    profiles = tuple(entry["profiles"])
    if not profiles or set(profiles) - set(known_profiles()):
        known = ", ".join(known_profiles())
        raise SpecificationError(f"{where}: {name}: profiles must be among {known}")
    if not entry["source"]:
        raise SpecificationError(f"{where}: {name} names no source")
    for key in ("alternatives", "conditions"):
        if extra := set(entry.get(key, {})) - set(profiles):
            raise SpecificationError(
                f"{where}: {name}: {key} for {sorted(extra)[0]!r}, which is not its profile"
            )
    folded = {key: " ".join(entry.get(key, "").split()) for key in ("text", "difference")}
    listed = {key: tuple(entry.get(key, ())) for key in ("source", "rests_on")}
    return Requirement(**{**entry, **folded, **listed, "profiles": profiles})


def load_file(path: Traversable) -> list[Requirement]:
    """Every requirement of one TOML file, in file order."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpecificationError(f"{path.name}: {error}") from error
    if set(document) - {"requirement"}:
        raise SpecificationError(f"{path.name}: only [[requirement]] tables are allowed")
    return [parse_requirement(entry, path.name) for entry in document.get("requirement", [])]


@cache
def load_requirements() -> Mapping[str, Requirement]:
    """All requirements of the distribution by identifier.

    Raises:
        SpecificationError: a file is malformed or an identifier is used twice.
    """
    found: dict[str, Requirement] = {}
    for path in files("requirements", ".toml"):
        for requirement in load_file(path):
            if requirement.id in found:
                raise SpecificationError(f"{path.name}: {requirement.id} is defined twice")
            found[requirement.id] = requirement
    return found
