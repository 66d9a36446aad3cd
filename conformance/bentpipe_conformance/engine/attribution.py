"""Which requirement names a fault: it stands first, and its consequences under it.

A defect often violates several requirements: what is sent wrongly once is answered, and the answer
answered. Within a case the finding whose decisive packet comes first is the cause, as later packets
cannot bring about earlier ones. Across cases the requirement that is the cause most often names the
fault; cases that it explains are set aside, and what is left is attributed in the same way. A
requirement that rests on another, as it speaks of a quantity that the other defines, yields to it
where the other is violated as well. What fails alone in most of its cases brings nothing about, and
is not the cause where other requirements fail beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class CaseFindings:
    """What was found in one case.

    Attributes:
        id: the case.
        targets: the requirements it targets.
        findings: all of its findings.
    """

    id: str
    targets: Sequence[str]
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class Attribution:
    """A requirement that names a fault.

    Attributes:
        requirement: its identifier.
        cases: where it is the cause.
        consequences: requirements that fail in these cases only, the most frequent first.
    """

    requirement: str
    cases: tuple[str, ...]
    consequences: tuple[str, ...]


YIELDS = 4
"""How many times as often as what it rests on fails a requirement may be the cause, and yield."""

_NOTHING: Mapping[str, Collection[str]] = MappingProxyType({})


def attribute(
    cases: Iterable[CaseFindings], rests_on: Mapping[str, Collection[str]] = _NOTHING
) -> list[Attribution]:
    """The requirements that name what is wrong, the most telling first; empty if nothing fails.

    Args:
        cases: what was found in each.
        rests_on: by requirement, those that define what it speaks of.
    """
    failing = {
        item.id: (item, found)
        for item in cases
        if (found := [it for it in item.findings if it.verdict is Verdict.FAIL])
    }
    spread = Counter(
        name for _, found in failing.values() for name in {it.requirement for it in found}
    )
    alone = Counter(
        found[0].requirement for _, found in failing.values()
        if len({it.requirement for it in found}) == 1
    )  # fmt: skip
    lone = {name for name, count in alone.items() if 2 * count > spread[name]}
    causes = {name: _cause(item, found, spread, lone) for name, (item, found) in failing.items()}
    votes = Counter(causes.values())
    for case, name in causes.items():
        bases = [base for base in rests_on.get(name, ()) if votes[name] <= YIELDS * spread[base]]
        if bases:
            causes[case] = max(bases, key=lambda base: spread[base])
    named: list[Attribution] = []
    while causes:
        votes = Counter(causes.values())
        first = min(votes, key=lambda name: (-votes[name], spread[name], name))
        mine = tuple(case for case, name in causes.items() if name == first)
        causes = {case: name for case, name in causes.items() if name != first}
        # Of those that fail as often the first stands first, in each process alike.
        here = Counter(
            name for case in mine
            for name in dict.fromkeys(it.requirement for it in failing[case][1])
        )  # fmt: skip
        known = {item.requirement for item in named} | {first} | set(causes.values())
        rest = (name for name, _ in here.most_common() if name not in known)
        told = {name for item in named for name in item.consequences}
        named.append(Attribution(first, mine, tuple(name for name in rest if name not in told)))
    return named


def _cause(
    item: CaseFindings, found: Sequence[Finding], spread: Counter[str], lone: Collection[str]
) -> str:  # fmt: skip
    """The requirement of the finding that comes first, of those that bring others about if any."""

    def place(finding: Finding) -> tuple[bool, float, bool, int]:
        name = finding.requirement
        at = finding.packets[0] if finding.packets else math.inf
        return name in lone, at, name not in item.targets, -spread[name]

    return min(found, key=place).requirement


def ranks(stored: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Where requirements stand, by the ``attribution`` of a result.

    The first number is that of what names the fault, the second 0 for it and more for what fails
    in its wake.
    """
    found: dict[str, tuple[int, int]] = {}
    for number, item in enumerate(stored):
        for place, name in enumerate((item["requirement"], *item["consequences"])):
            found.setdefault(name, (number, place))
    return found
