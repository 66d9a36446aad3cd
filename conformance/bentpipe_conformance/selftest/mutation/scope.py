"""Which modules of a reference count, as data beside its mutants.

``mutants/modules.toml`` of a protocol names every module of the protocol and of ``common``: those
whose mutants count under ``[counted]`` with what they do, the others, or patterns of them, under
``[left_out]`` with the reason. A name with a colon leaves out a function or a pattern of functions,
such as ``tcp.config:EndpointConfig.*``; with that of a class what is written in the class directly.
"""

from __future__ import annotations

import fnmatch
import pkgutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe_conformance.selftest.mutation.loading import ROOT, path_of
from bentpipe_conformance.selftest.mutation.sites import Mutant, mutants_of_source


@dataclass(frozen=True, slots=True)
class Limits:
    """What a whole run must reach.

    Attributes:
        score: the least part of the unexplained mutants that is killed.
        explained: the largest part of all mutants that may be explained.
        sampled: the least part that must be killed, or explained, in a sampled run.
    """

    score: float
    explained: float
    sampled: float


@dataclass(frozen=True, slots=True)
class Scope:
    """The modules of one protocol's reference.

    Attributes:
        protocol: the name of its folder.
        counted: what each module does whose mutants count.
        left_out: why modules, classes and functions do not count.
        silent: functions that only trace, and attributes that only count for a reader.
        limits: see :class:`Limits`.
        root: the package.
    """

    protocol: str
    counted: Mapping[str, str]
    left_out: Mapping[str, str]
    silent: frozenset[str]
    limits: Limits
    root: str = ROOT

    def full_name(self, module: str) -> str:
        """The name by which a module is imported."""
        return f"{self.root}.{module}"

    def source(self, module: str) -> str:
        """A module's source."""
        return path_of(self.full_name(module)).read_text(encoding="utf-8")

    def mutants(self) -> list[Mutant]:
        """Every mutant that counts, module by module."""
        found = []
        for module in self.counted:
            within = f"{module}:"
            left_out = {n.removeprefix(within) for n in self.left_out if n.startswith(within)}
            found += mutants_of_source(module, self.source(module), self.silent, left_out)
        return found

    def unlisted(self) -> list[str]:
        """Modules of the reference that are neither counted nor left out."""
        package = path_of(self.root).parent
        found = []
        for folder in (self.protocol, "common"):
            for item in pkgutil.walk_packages([str(package / folder)], f"{folder}."):
                left_out = any(fnmatch.fnmatchcase(item.name, name) for name in self.left_out)
                if not left_out and item.name not in self.counted:
                    found.append(item.name)
        return found


def load_scope(protocol: str, root: str = ROOT) -> Scope:
    """What a protocol's data says.

    Raises:
        ValueError: there is no such file, or it lacks something.
    """
    path = data_file(protocol, "modules.toml", root)
    if not path.exists():
        raise ValueError(f"which modules count is not said; write {path}")
    data: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        return Scope(
            protocol, data["counted"], data["left_out"], frozenset(data["silent"]),
            Limits(**data["limits"]), root,
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is incomplete: {error}") from error


def data_file(protocol: str, name: str, root: str = ROOT) -> Path:
    """A data file beside the mutants of a protocol's reference."""
    return path_of(root).parent / protocol / "mutants" / name
