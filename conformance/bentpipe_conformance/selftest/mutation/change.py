"""A small change of a text, whatever language it is in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one module.

    Attributes:
        id: stable as long as the line stays where it is: module, what it is in, operator and a
            digest of the line, with a number where the same line has several.
        module: where it is.
        operator: what kind of change.
        line: where it begins.
        text: that line's source, stripped.
        start, end: the characters of the module's source that it replaces.
        code: by what.
    """

    id: str
    module: str
    operator: str
    line: int
    text: str
    start: int
    end: int
    code: str

    def applied(self, source: str) -> str:
        """The module's source with the change."""
        return source[: self.start] + self.code + source[self.end :]

    def changed(self, source: str) -> str:
        """The changed line or lines, stripped, on one line."""
        after = source[: self.start] + self.code + source[self.end :]
        begin = source.rfind("\n", 0, self.start) + 1
        stop = after.find("\n", self.start + len(self.code.rstrip("\n")))
        return " ".join(after[begin : stop if stop >= 0 else None].split())


def digest_of_line(text: str) -> str:
    """What stands for a line in an identifier."""
    return hashlib.blake2b(text.encode(), digest_size=3).hexdigest()


def fingerprint(source: str) -> bytes:
    """A digest of a source without its white space."""
    return hashlib.blake2b("".join(source.split()).encode(), digest_size=16).digest()
