"""TOML tables read key by key: whatever is wrong gives one sentence that names file and key."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from bentpipe_conformance.engine.lane import PLACEHOLDER

_Value = TypeVar("_Value")
_Choice = TypeVar("_Choice", bound=str)


class DescriptionError(ValueError):
    """A description cannot be used; the message is one sentence that names file and key."""


class Table:
    """One table of a file.

    Every method raises :class:`DescriptionError` for a value that is not what it returns.

    Attributes:
        entries: its content.
        where: file and table, the beginning of every sentence.
    """

    def __init__(self, entries: Mapping[str, object], file: str, name: str = "") -> None:
        self.entries = entries
        self.where = f"{file}: [{name}]" if name else f"{file}: the file"
        self._file = file
        self._name = name

    def wrong(self, sentence: str) -> DescriptionError:
        """The error to raise; ``sentence`` goes on after file and table."""
        return DescriptionError(f"{self.where} {sentence}")

    def only(self, *allowed: str) -> None:
        """Refuse every other key."""
        for key in self.entries:
            if key not in allowed:
                raise self.wrong(f"has unknown key {key!r}; allowed are {', '.join(allowed)}")

    def take(self, key: str, kind: type[_Value], wanted: str, default: _Value) -> _Value:
        """The value of an optional key.

        Args:
            key: which.
            kind: what Python makes of the right TOML type.
            wanted: what it must be, in words.
            default: the value when the key is missing.
        """
        value = self.entries.get(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"needs {wanted} for {key!r}, not {value!r}")
        return value

    def table(self, key: str) -> Table:
        """A table of this table, empty when missing."""
        entries = self.take(key, dict, "a table", {})
        return Table(entries, self._file, f"{self._name}.{key}".lstrip("."))

    def text(self, key: str, default: str | None = None) -> str:
        """A text, which must not be empty; required when there is no default."""
        if key not in self.entries:
            if default is None:
                raise self.wrong(f"lacks {key!r}")
            return default
        value = self.take(key, str, "a text", "")
        if not value.strip():
            raise self.wrong(f"needs a text for {key!r}, not an empty one")
        return value

    def choice(
        self, key: str, choices: Sequence[_Choice], default: _Choice | None = None
    ) -> _Choice:
        """One of several texts; required when there is no default."""
        asked = self.text(key, default)
        for one in choices:
            if one == asked:
                return one
        raise self.wrong(f"needs one of {', '.join(choices)} for {key!r}, not {asked!r}")

    def words(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when missing."""
        words = self.take(key, list, "a list of words", [])
        for word in words:
            if not isinstance(word, str):
                raise self.wrong(f"needs a list of words for {key!r}, and {word!r} is not a text")
        return tuple(words)

    def commands(self, key: str) -> tuple[tuple[str, ...], ...]:
        """A list of commands, each a list of texts, empty when missing."""
        found = self.take(key, list, "a list of commands", [])
        for command in found:
            if (
                not isinstance(command, list)
                or not command
                or not all(isinstance(word, str) for word in command)
            ):
                raise self.wrong(
                    f"needs a list of commands, each a list of words, for {key!r}, and {command!r} "
                    "is none"
                )
        return tuple(map(tuple, found))

    def port(self, key: str, default: int) -> int:
        """A port number other than 0."""
        port = self.take(key, int, "a port number", default)
        if not 0 < port < 65536:
            raise self.wrong(f"needs a port number from 1 to 65535 for {key!r}, not {port}")
        return port

    def address(self, key: str) -> ipaddress.IPv4Address:
        """An IPv4 address; required."""
        return self._parsed(key, ipaddress.IPv4Address, f"an IPv4 address for {key!r}")

    def interface(self, key: str, example: str) -> ipaddress.IPv4Interface:
        """An IPv4 address with the prefix length of its network; required."""
        wanted = f"an IPv4 address with a prefix length for {key!r}, such as {example}"
        return self._parsed(key, ipaddress.IPv4Interface, wanted)

    def _parsed(self, key: str, parse: Callable[[str], _Value], wanted: str) -> _Value:
        text = self.text(key)
        try:
            return parse(text)
        except ValueError:
            raise self.wrong(f"needs {wanted}, not {text!r}") from None

    def placeholders(
        self, words: Iterable[str], allowed: Sequence[str], where: str = ""
    ) -> set[str]:
        """The placeholders that ``words`` name, all of them ``allowed``."""
        named = {name for word in words for name in PLACEHOLDER.findall(word)}
        if unknown := sorted(named - set(allowed)):
            known = ", ".join(allowed)
            raise self.wrong(
                f"has unknown placeholder {{{unknown[0]}}}{where}; allowed are {known}"
            )
        return named
