"""Values of TLA+: those the model checker prints are read, those it is given are written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A record of TLA+, a message for example."""

    fields: tuple[tuple[str, int | bool | str], ...]

    def text(self) -> str:
        """The record in TLA+."""
        return record_text(dict(self.fields))


Value = (
    int | bool | str | frozenset[int] | Mapping[int, int] | Record | tuple[Record, ...] | list[Any]
)
"""What can be written. A mapping becomes a function (the module has to extend TLC), several records
become a set of them, a list of values or of pairs a sequence."""


def record_text(fields: Mapping[str, Value]) -> str:
    """A record of TLA+ with these fields."""
    return f"[{', '.join(f'{name} |-> {value_text(value)}' for name, value in fields.items())}]"


def value_text(value: Value) -> str:
    """A value in TLA+."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Record):
        return value.text()
    if isinstance(value, list):
        return f"<<{', '.join(map(value_text, value))}>>"
    if isinstance(value, tuple):
        return f"{{{', '.join(record.text() for record in value)}}}"
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(str, sorted(value)))}}}"
    if isinstance(value, Mapping):
        pairs = " @@ ".join(f"{number} :> {value[number]}" for number in sorted(value))
        return f"({pairs})" if pairs else "<<>>"
    return str(value)


_TOKEN = re.compile(r'\s*(<<|>>|\|->|:>|@@|\.\.|[\[\](){},]|"(?:[^"\\]|\\.)*"|-?\d+|\w+)')


class NotAValue(ValueError):
    """The text is not a value of TLA+."""


def parse_value(text: str) -> Any:
    """Read one printed value.

    Sequences become tuples, sets frozensets, records and functions dicts (as tuples of pairs inside
    a set), strings and model values str.

    Raises:
        NotAValue: the text is something else.
    """
    tokens = _tokens(text)
    value, rest = _value(tokens, 0)
    if rest != len(tokens):
        raise NotAValue(f"{text!r} goes on after a value")
    return value


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotAValue(f"{text[at : at + 20]!r} does not begin a value")
        found.append(match[1])
        at = match.end()
    return found


def _value(tokens: list[str], at: int) -> tuple[Any, int]:
    if at >= len(tokens):
        raise NotAValue("the text ends inside a value")
    token = tokens[at]
    if token == "<<":
        items, at = _items(tokens, at + 1, ">>")
        return tuple(items), at
    if token == "{":
        items, at = _items(tokens, at + 1, "}")
        return frozenset(map(_frozen, items)), at
    if token == "[":
        return _record(tokens, at + 1)
    if token == "(":
        return _function(tokens, at + 1)
    if token.startswith('"'):
        return token[1:-1], at + 1
    if token in ("TRUE", "FALSE"):
        return token == "TRUE", at + 1
    if token.lstrip("-").isdigit():
        if tokens[at + 1 : at + 2] == [".."]:
            return frozenset(range(int(token), int(tokens[at + 2]) + 1)), at + 3
        return int(token), at + 1
    if token[0].isalpha():
        return token, at + 1
    raise NotAValue(f"{token!r} does not begin a value")


def _items(tokens: list[str], at: int, close: str) -> tuple[list[Any], int]:
    items: list[Any] = []
    while at < len(tokens) and tokens[at] != close:
        if items:
            at = _expect(tokens, at, ",")
        item, at = _value(tokens, at)
        items.append(item)
    return items, _expect(tokens, at, close)


def _record(tokens: list[str], at: int) -> tuple[dict[Any, Any], int]:
    fields: dict[Any, Any] = {}
    while at < len(tokens) and tokens[at] != "]":
        if fields:
            at = _expect(tokens, at, ",")
        name = tokens[at]
        fields[name], at = _value(tokens, _expect(tokens, at + 1, "|->"))
    return fields, _expect(tokens, at, "]")


def _function(tokens: list[str], at: int) -> tuple[dict[Any, Any], int]:
    mapping: dict[Any, Any] = {}
    while at < len(tokens) and tokens[at] != ")":
        if mapping:
            at = _expect(tokens, at, "@@")
        key, at = _value(tokens, at)
        mapping[_frozen(key)], at = _value(tokens, _expect(tokens, at, ":>"))
    return mapping, _expect(tokens, at, ")")


def _expect(tokens: list[str], at: int, token: str) -> int:
    if at >= len(tokens) or tokens[at] != token:
        raise NotAValue(f"{token!r} is missing")
    return at + 1


def _frozen(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, dict) else value
