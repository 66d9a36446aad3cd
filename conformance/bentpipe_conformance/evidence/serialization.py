"""Records to JSON and back; a document that bentpipe cannot have written is refused."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

Json = Any
"""What the json module reads and writes: None, bool, int, float, str, list, dict of these."""

_Record = TypeVar("_Record")


class RecordError(ValueError):
    """A JSON document does not fit its record; the message names the place."""


def encode(value: Any) -> Json:
    """A dataclass (or any value inside one) as JSON data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    return value


def decode(record: type[_Record], value: Json, where: str = "") -> _Record:
    """The record that ``value`` describes.

    Raises:
        RecordError: a member is unknown, missing (and has no default) or of the wrong type.
    """
    label = where or record.__name__
    if not isinstance(value, dict):
        raise RecordError(f"{label} must be an object, not {_name(value)}")
    hints = _hints(record)  # type: ignore[arg-type]
    fields = {f.name: f for f in dataclasses.fields(record)}  # type: ignore[arg-type]
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise RecordError(f"{label} has an unknown member {unknown[0][:40]!r}")
    arguments = {}
    for name, field in fields.items():
        if name in value:
            arguments[name] = _decode(hints[name], value[name], f"{label}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise RecordError(f"{label} lacks {name!r}")
    return record(**arguments)


@cache
def _hints(record: type) -> Mapping[str, Any]:
    """The types of a record's fields; to work them out takes longer than to decode one."""
    return typing.get_type_hints(record)


def _decode(hint: Any, value: Json, where: str) -> Any:
    origin = typing.get_origin(hint)
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        members = [member for member in typing.get_args(hint) if member is not types.NoneType]
        return None if value is None else _decode(members[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise RecordError(f"{where} must be an array, not {_name(value)}")
        (item, _) = typing.get_args(hint)
        return tuple(_decode(item, v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise RecordError(f"{where} must be an object, not {_name(value)}")
        (_, item) = typing.get_args(hint)
        return {key: _decode(item, v, f"{where}.{key}") for key, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast("type[Any]", hint), value, where)
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Json, where: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if value in [member.value for member in hint]:
            return hint(value)
        raise RecordError(f"{where} must be one of {', '.join(hint)}, not {str(value)[:40]!r}")
    if hint is float and type(value) in (int, float) and abs(value) < LARGEST:
        return float(value)
    if type(value) is not hint:
        raise RecordError(f"{where} must be {_NAMES[hint]}, not {_name(value)}")
    return value


LARGEST = 1e15
"""Beyond this no time or size of a record can be."""

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def _name(value: Json) -> str:
    if value is None:
        return "null"
    return {**_NAMES, list: "an array", dict: "an object"}[type(value)]


def dumps(value: Json) -> str:
    """JSON text with a final newline; equal input gives equal text.

    What holds no objects, and no arrays but of plain values, stands on one line. (The standard
    library indents by a Python loop over every value, this leaves the lines to its C encoder.)

    Raises:
        ValueError: a number is infinite or not a number.
    """
    return _laid_out(value, "\n") + "\n"


_on_one_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _laid_out(value: Json, margin: str) -> str:
    deeper = margin + " "
    if isinstance(value, dict) and any(map(_holds_more, value.values())):
        inside = (f"{_on_one_line(key)}: {_laid_out(v, deeper)}" for key, v in value.items())
        return f"{{{deeper}{f',{deeper}'.join(inside)}{margin}}}"
    if isinstance(value, list) and _holds_more(value):
        inside = (_laid_out(item, deeper) for item in value)
        return f"[{deeper}{f',{deeper}'.join(inside)}{margin}]"
    return _on_one_line(value)


def _holds_more(value: Json) -> bool:
    return bool(value) and (
        isinstance(value, dict)
        or (isinstance(value, list) and any(isinstance(item, dict | list) for item in value))
    )


def loads(text: str) -> Json:
    """JSON data of ``text``, without Python's extensions.

    Raises:
        RecordError: the text is not JSON, repeats a member, or is nested beyond reason.
    """

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise RecordError("an object has the same member twice")
        return found

    def constant(name: str) -> Json:
        raise RecordError(f"{name} is not a JSON number")

    try:
        found = json.loads(text, object_pairs_hook=unique, parse_constant=constant)
        _check_depth(found)
    except json.JSONDecodeError as error:
        raise RecordError(f"line {error.lineno} is not JSON ({error.msg})") from error
    except RecursionError as error:
        raise RecordError("it is nested too deeply") from error
    except RecordError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise RecordError("a number in it is too long") from error
    return found


MOST_DEEP = 40
"""Levels of nesting that a document may have; ours have at most eight."""


def _check_depth(value: Json) -> None:
    level = [value]
    for _ in range(MOST_DEEP):
        below: list[Json] = []
        for one in level:
            if isinstance(one, dict):
                below += one.keys()
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str) and not one.isascii():
                _check_text(one)
        if not below:
            return
        level = below
    raise RecordError("it is nested too deeply")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError("half a character stands in one of its strings") from error
