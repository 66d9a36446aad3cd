"""A specification as one text: the prose of ``PROTOCOL/text.rst`` with the requirements in place.

A requirement's text is in the registry only; the prose names it and this module prints it::

    .. requirements:: STP-PF-001 STP-PF-002
    .. state-table:: stp
    .. requirement-index:: stp
    .. vectors:: rwbp
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from bentpipe_spec.protocols import SpecificationError, file, protocols, read_table, read_text
from bentpipe_spec.registry import Requirement, load_requirements
from bentpipe_spec.vectors import packet_vectors

_WIDTH = 100
_SECTION = re.compile(r"(\d+(?:\.\d+)?)\. \S")
_REQUIREMENTS = ".. requirements::"
_STATE_TABLE = ".. state-table::"
_INDEX = ".. requirement-index::"
_VECTORS = ".. vectors::"


@dataclass(frozen=True, slots=True)
class Row:
    """What one packet does in one state, under one condition.

    Attributes:
        state: name of the state.
        packet: type of the packet.
        when: the condition; empty when no row above applies.
        do: what the endpoint does.
        next: the state afterwards.
        requirements: the rules behind it.
    """

    state: str
    packet: str
    when: str
    do: str
    next: str
    requirements: tuple[str, ...]


@cache
def state_table(name: str) -> tuple[Row, ...]:
    """Every row of a protocol's state table: by state, then by packet, in order of precedence.

    Raises:
        SpecificationError: there is no such table, or it has no entry for a packet in a state.
    """
    document = read_table(name, "states.toml", "state table")
    rows = []
    for state in document["states"]:
        for packet in document["packets"]:
            entries = document["cells"].get(state, {}).get(packet)
            if not entries:
                raise SpecificationError(f"{name}: state {state!r} has no entry for {packet}")
            rows += [
                Row(state, packet, entry["when"], entry["do"], entry["next"],
                    tuple(entry["requirements"]))
                for entry in entries
            ]  # fmt: skip
    return tuple(rows)


@cache
def specifications() -> tuple[str, ...]:
    """The protocols whose specification is a text of its own."""
    return tuple(name for name in protocols() if file(name, "text.rst").is_file())


def specification(name: str) -> str:
    """A whole specification as reStructuredText without directives, readable as it is.

    Raises:
        SpecificationError: there is no such specification, or it names an unknown requirement.
    """
    lines: list[str] = []
    for line in read_text(name, "text.rst", "specification").splitlines():
        if line.startswith(_REQUIREMENTS):
            for identifier in line.removeprefix(_REQUIREMENTS).split():
                lines += _rule(identifier)
        elif line.startswith(_STATE_TABLE):
            lines += _states(line.removeprefix(_STATE_TABLE).strip())
        elif line.startswith(_INDEX):
            lines += _index(line.removeprefix(_INDEX).strip())
        elif line.startswith(_VECTORS):
            lines += _vectors(line.removeprefix(_VECTORS).strip())
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _rule(identifier: str) -> Iterator[str]:
    requirement = load_requirements().get(identifier)
    if requirement is None:
        raise SpecificationError(f"the text names {identifier}, which is not a requirement")
    told = f"**{identifier}** *{requirement.title}.* {requirement.text}{_if(requirement)}"
    yield from _wrapped(told, "* ", "  ")


def _if(requirement: Requirement) -> str:
    return f" (If the ICS says *{requirement.condition}*.)" if requirement.condition else ""


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=others,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _states(name: str) -> Iterator[str]:
    """The state table; packets that do the same in a state stand together."""
    table: dict[str, dict[str, list[str]]] = {}
    for row in state_table(name):
        condition = f"if {row.when}: " if row.when else ""
        rules = ", ".join(row.requirements)
        then = f"; then *{row.next}*" if row.next != row.state else ""
        told = f"{condition}{row.do}{then}. [{rules}]"
        table.setdefault(row.state, {}).setdefault(row.packet, []).append(told)
    for state, cells in table.items():
        heading = f"In state *{state}*"
        yield from ("", heading, "~" * len(heading))
        alike: dict[tuple[str, ...], list[str]] = {}
        for packet, told_of in cells.items():
            alike.setdefault(tuple(told_of), []).append(packet)
        yield ""
        for same, packets in alike.items():
            for told in same:
                yield from _wrapped(f"**{', '.join(packets)}** {told}", "* ", "  ")
    yield ""


def _vectors(name: str) -> Iterator[str]:
    """The octets of every test vector, in words of 32 bits."""
    for vector in packet_vectors(name).values():
        octets = vector.octets
        told = " ".join(octets[at : at + 4].hex() for at in range(0, len(octets), 4))
        fault = f", malformed ({vector.malformed})" if vector.malformed else ""
        yield from _wrapped(f"{vector.name}{fault}: {told}", "* ", "  ")


def _index(name: str) -> Iterator[str]:
    """Every rule that the text states, by name, with the section in which it stands."""
    section = ""
    places: dict[str, dict[str, list[str]]] = {}
    for line in read_text(name, "text.rst", "specification").splitlines():
        if heading := _SECTION.match(line):
            section = heading[1]
        elif line.startswith(_REQUIREMENTS):
            for rule in line.removeprefix(_REQUIREMENTS).split():
                group, _, number = rule.rpartition("-")
                places.setdefault(group, {}).setdefault(section, []).append(number)
    for group, sections in sorted(places.items()):
        entries = (f"in {section} {', '.join(rules)}" for section, rules in sections.items())
        yield from _wrapped(f"{group}: {'; '.join(entries)}.", "* ", "  ")
