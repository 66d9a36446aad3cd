"""The protocols that are specified: one folder each, with the same names inside.

``requirements/*.toml``; ``profiles.toml``, the sets of requirements; ``ics.toml``, the conformance
statement proforma; ``scenarios/*.json``, from the models; ``text.rst``, ``states.toml`` and
``vectors.json``. Every file but the requirements and their profiles is optional.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any


class SpecificationError(ValueError):
    """A specification file is missing, malformed or contradictory; the message is one sentence."""


@cache
def protocols() -> tuple[str, ...]:
    """The names of the protocols."""
    root = resources.files("bentpipe_spec")
    return tuple(sorted(path.name for path in root.iterdir() if (path / "profiles.toml").is_file()))


def files(folder: str, suffix: str) -> Iterator[Traversable]:
    """The files of a folder of every protocol, such as ``requirements``, by file name."""
    found = [
        path
        for name in protocols()
        if (room := file(name, folder)).is_dir()
        for path in room.iterdir()
        if path.name.endswith(suffix)
    ]
    yield from sorted(found, key=lambda path: path.name)


def file(protocol: str, *path: str) -> Traversable:
    """A file or folder of a protocol, which need not exist."""
    return resources.files("bentpipe_spec").joinpath(protocol, *path)


def read_text(protocol: str, name: str, what: str) -> str:
    """The text of a protocol's file.

    Args:
        protocol: the protocol.
        name: the file in its folder.
        what: what the file holds, for the message.

    Raises:
        SpecificationError: there is no such protocol or file.
    """
    found = file(protocol, name)
    if protocol not in protocols() or not found.is_file():
        those = ", ".join(other for other in protocols() if file(other, name).is_file())
        raise SpecificationError(f"there is no {what} called {protocol!r}; there is {those}")
    return found.read_text(encoding="utf-8")


@cache
def read_table(protocol: str, name: str, what: str) -> Mapping[str, Any]:
    """A protocol's TOML file; see :func:`read_text`."""
    return tomllib.loads(read_text(protocol, name, what))


@cache
def profiles() -> tuple[str, ...]:
    """Every profile of every protocol, each once."""
    found = [read_table(name, "profiles.toml", "list of profiles") for name in protocols()]
    return tuple(sorted({profile for table in found for profile in table["profile"]}))
