"""How a protocol's recorded events become steps of its model: one table per protocol.

A trace is NDJSON. Its first line is ``{"event": "begin", "protocol": ..., "profile": ...}``, with
the values of the table's ``bounds``; each further line is an event of the table. The table says
which fields an event has and which actions of the model follow it; the guards, in words, are in the
operator ``Guard`` of the trace module, next to their actions.

A trace module has a constant that takes the sequence of traces, each a sequence of records
``[k |-> event, field |-> value, ...]``; it follows one event per step and prints in every state
what :mod:`~bentpipe_conformance.models.rejection` reads. ``docs/howto/extend.rst`` has an
example. The tables of a protocol are ``BINDINGS`` of ``models.PROTOCOL``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bentpipe_conformance.models.rejection import Module
from bentpipe_conformance.models.values import Value, record_text

LARGEST = 2**31 - 1
"""TLC's numbers end here."""


class TraceProblem(Exception):
    """A trace cannot be read or says too little; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event as the model sees it, and the line of the trace it comes from."""

    kind: str
    fields: Mapping[str, Value]
    line: int

    def text(self) -> str:
        """The event as a record of TLA+."""
        return record_text({"k": self.kind, **self.fields})


def numbers(value: object, where: str) -> list[int]:
    """An array of numbers that TLC can hold.

    Raises:
        TraceProblem: it is not one; the message begins with ``where``.
    """
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise TraceProblem(f"{where} is not an array of numbers.")
    if any(abs(item) > LARGEST for item in value):
        raise TraceProblem(f"{where} exceeds {LARGEST}.")
    return value


class Encoder(Protocol):
    """Turns the events of one trace into steps, in order."""

    def steps(self, event: dict[str, Any], line: int) -> Iterable[Step]:
        """The steps of one event: none if the model ignores it, several if it splits it.

        Raises:
            TraceProblem: the event cannot be expressed in the model.
        """


class PlainEncoder:
    """For events whose fields the model takes unchanged; arrays become sets of numbers."""

    def __init__(self, name: str, binding: Binding) -> None:
        self._name = name
        self._forms = binding.forms

    def steps(self, event: dict[str, Any], line: int) -> Iterable[Step]:
        """One step per event, with the fields of its form."""
        kind = event["event"]
        values: dict[str, Value] = {}
        for field_name in self._forms[kind].fields:
            value = event[field_name]
            where = f"{self._name}, line {line}: {field_name!r}"
            if isinstance(value, list):
                values[field_name] = frozenset(numbers(value, where))
                continue
            if type(value) is int:
                numbers([value], where)
            values[field_name] = value
        return [Step(kind, values, line)]


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of event.

    Attributes:
        fields: its fields and their JSON types.
        actions: the actions of the trace module that follow it.
    """

    fields: Mapping[str, type]
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """The table of one protocol.

    Attributes:
        protocol: its name in ``begin``.
        module: the trace module.
        profiles: rule sets by name, each with the constants that select it in the module.
        forms: its events.
        bounds: fields of ``begin`` that hold numbers, and the constant each one sets.
        encoder: makes the encoder of one trace from its name; the plain one if omitted.
        default: whether a ``begin`` that names no protocol means this one.
    """

    protocol: str
    module: Module
    profiles: Mapping[str, Mapping[str, str]]
    forms: Mapping[str, Form]
    bounds: Mapping[str, str] = field(default_factory=dict)
    encoder: Callable[[str, Binding], Encoder] = PlainEncoder
    default: bool = False

    def constants(self, begin: Mapping[str, Any], name: str) -> dict[str, str]:
        """The module's constants for a trace with this ``begin``.

        Raises:
            TraceProblem: the profile is unknown, or a bound is missing.
        """
        profile = begin.get("profile")
        if not isinstance(profile, str) or profile not in self.profiles:
            raise TraceProblem(
                f"{name}, line 1: the profile {profile!r} is none of {', '.join(self.profiles)}; "
                "record the trace again with this version."
            )
        constants = dict(self.profiles[profile])
        for bound, constant in self.bounds.items():
            value = begin.get(bound)
            if type(value) is not int or not 0 <= value <= LARGEST:
                raise TraceProblem(f"{name}, line 1: 'begin' lacks {bound!r}, a number.")
            constants[constant] = str(value)
        return constants

    def check(self, event: Any, where: str) -> dict[str, Any]:
        """The event, if it is one of the table's.

        Raises:
            TraceProblem: it is not.
        """
        name = event.get("event") if isinstance(event, dict) else None
        if not isinstance(event, dict) or not isinstance(name, str) or name not in self.forms:
            known = ", ".join(["begin", *self.forms])
            raise TraceProblem(f"{where}: the event {name!r} is none of {known}.")
        for field_name, kind in self.forms[name].fields.items():
            if type(event.get(field_name)) is not kind:
                raise TraceProblem(
                    f"{where}: {name!r} lacks {field_name!r}, or it is not of type {kind.__name__}."
                )
        return dict(event)
