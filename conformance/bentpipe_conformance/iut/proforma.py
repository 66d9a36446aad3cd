"""The conformance statement (ICS): the proforma's items, and a statement checked against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from bentpipe_spec.protocols import read_table

from bentpipe_conformance.engine.suite import Suite

Answer = bool | int | str

_KINDS = {
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "string": (str, "a text"),
}
"""The kinds of answers, each as Python's type and in words."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question of the proforma.

    Attributes:
        name: the key under ``[ics]``.
        kind: ``boolean``, ``integer`` or ``string``.
        default: the answer of a statement that leaves the item out.
        question: what is asked.
        choices: the permitted answers; empty when any of the kind is permitted.
    """

    name: str
    kind: str
    default: Answer
    question: str
    choices: tuple[str, ...] = ()

    def permits(self, answer: object) -> bool:
        """Whether this is an answer to the question."""
        # bool is a subclass of int, so isinstance would take true for a number.
        if type(answer) is not _KINDS[self.kind][0]:
            return False
        return not self.choices or answer in self.choices

    def wanted(self) -> str:
        """What an answer must be, for a sentence."""
        return f"one of {', '.join(self.choices)}" if self.choices else _KINDS[self.kind][1]


@cache
def load_proforma(suite: Suite) -> Mapping[str, Item]:
    """The proforma of a suite's specification by item name, in its order."""
    document = read_table(suite.folder, "ics.toml", "conformance statement proforma")
    return {
        name: Item(name, entry["type"], entry["default"], entry["question"],
                   tuple(entry.get("choices", ())))
        for name, entry in document["item"].items()
    }  # fmt: skip


def complete(statement: Mapping[str, object], proforma: Mapping[str, Item]) -> dict[str, Answer]:
    """The statement with the proforma's defaults for what it leaves out.

    Raises:
        ValueError: an unknown item or an answer of the wrong kind, as a sentence without subject
            (``has unknown ...``, ``needs ...``) for the caller to put the place before.
    """
    answers: dict[str, Answer] = {name: item.default for name, item in proforma.items()}
    for name, answer in statement.items():
        item = proforma.get(name)
        if item is None:
            raise ValueError(f"has unknown key {name!r}; allowed are {', '.join(proforma)}")
        if not item.permits(answer):
            raise ValueError(f"needs {item.wanted()} for {name!r}, not {answer!r}")
        assert isinstance(answer, bool | int | str)
        answers[name] = answer
    return answers
