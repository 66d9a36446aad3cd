"""Implementation conformance statements (ICS): the proforma and answers to it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from bentpipe_spec.registry import SpecificationError

_TYPES = {"boolean": bool, "string": str, "integer": int}


@dataclass(frozen=True, slots=True)
class Item:
    """One question of the proforma.

    Attributes:
        name: key in a statement, and in a requirement's condition.
        type: ``boolean``, ``string`` or ``integer``.
        default: the answer of a statement that leaves the item out.
        question: the question itself.
        choices: allowed answers of a string item; empty when any will do.
    """

    name: str
    type: str
    default: bool | str | int
    question: str
    choices: tuple[str, ...] = ()


@cache
def load_proforma(protocol: str = "tcp") -> Mapping[str, Item]:
    """The questions for a protocol, in file order.

    Raises:
        SpecificationError: the file is malformed.
    """
    path = resources.files("bentpipe_spec") / "ics" / f"{protocol}.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    items = {}
    for name, entry in document["item"].items():
        kind = entry.get("type")
        if kind not in _TYPES or type(entry.get("default")) is not _TYPES[kind]:
            raise SpecificationError(f"{path.name}: item {name} has no default of its type")
        items[name] = Item(
            name, kind, entry["default"], entry["question"], tuple(entry.get("choices", ()))
        )
    return items


def complete(answers: Mapping[str, Any], where: str, protocol: str = "tcp") -> dict[str, Any]:
    """A whole statement: the answers given, defaults for the rest.

    Raises:
        SpecificationError: an item is unknown, of the wrong type or not among its choices.
    """
    proforma = load_proforma(protocol)
    for name, answer in answers.items():
        item = proforma.get(name)
        if item is None:
            raise SpecificationError(
                f"{where}: the conformance statement has no item {name!r}; "
                f"its items are {', '.join(proforma)}."
            )
        if type(answer) is not _TYPES[item.type]:
            raise SpecificationError(f"{where}: ICS item {name} must be a {item.type}.")
        if item.choices and answer not in item.choices:
            raise SpecificationError(
                f"{where}: ICS item {name} must be one of {', '.join(item.choices)}."
            )
    return {name: answers.get(name, item.default) for name, item in proforma.items()}
