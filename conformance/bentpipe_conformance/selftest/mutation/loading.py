"""Instances of a reference of their own, with one module's source replaced.

The suites use some of the reference's common arithmetic themselves. A mutant must not change the
judge, so the whole tree ``bentpipe_reference`` is imported once more and kept out of
:data:`sys.modules` afterwards.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = "bentpipe_reference"
NOTHING: Mapping[str, object] = {}


class _Replaced(SourceFileLoader):
    """Loads a module from a source other than its file's."""

    def __init__(self, fullname: str, path: str, source: str, given: Mapping[str, object]) -> None:
        super().__init__(fullname, path)
        self._source = source
        self._given = given

    def exec_module(self, module: ModuleType) -> None:
        """See :class:`SourceFileLoader`."""
        vars(module).update(self._given)
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        """See :class:`SourceFileLoader`."""
        return compile(self._source, self.get_filename(fullname), "exec", dont_inherit=True)


class _Finder:
    """Finds the modules whose source is replaced."""

    def __init__(self, sources: Mapping[str, str], given: Mapping[str, object]) -> None:
        self._sources = sources
        self._given = given

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See :class:`importlib.abc.MetaPathFinder`."""
        if name not in self._sources:
            return None
        spec = PathFinder.find_spec(name, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Replaced(name, spec.origin, self._sources[name], self._given)
        return spec


@contextmanager
def own_tree(
    sources: Mapping[str, str], root: str = ROOT, given: Mapping[str, object] = NOTHING
) -> Iterator[None]:
    """Within it what is imported of ``root`` is new, and forgotten afterwards.

    Args:
        sources: other sources for modules, by their full names.
        root: name of the package.
        given: names that such modules find defined.
    """
    finder = _Finder(sources, given)
    kept = _taken(root)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _taken(root)
        sys.modules.update(kept)


def _taken(root: str) -> dict[str, ModuleType]:
    """The package and its modules, taken out of :data:`sys.modules`."""
    names = [name for name in sys.modules if name == root or name.startswith(f"{root}.")]
    return {name: sys.modules.pop(name) for name in names}


def load_subject(
    protocol: str, sources: Mapping[str, str], root: str = ROOT,
    given: Mapping[str, object] = NOTHING,
) -> Any:  # fmt: skip
    """The reference's ``SUBJECT`` from a tree of its own; see :func:`own_tree`."""
    with own_tree(sources, root, given):
        return importlib.import_module(f"{root}.{protocol}.subject").SUBJECT


def path_of(name: str) -> Path:
    """The file of a module, by its full name."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)
