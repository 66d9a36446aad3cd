"""Cases: pytest tests that read as scripts, registered with what they target.

A case is a function in a module ``protocols/<protocol>/cases/test_<group>.py``::

    @case("SNR-FR-001", "SNR-FR-002")
    def test_established_third_duplicate_acknowledgment(peer: Peer) -> None:
        \"\"\"Fast retransmit starts at the third duplicate, not before.\"\"\"

Its identifier, here ``snr/<group>/established-third-duplicate-acknowledgment``, follows from the
names, so that inserting a case does not renumber others.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from bentpipe_conformance.engine.suite import Suite, suite_in, suite_named, suite_of

Script = Callable[[Any], None]
"""A function of the suite's scripted peer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        id: permanent identifier.
        title: first line of the docstring.
        purpose: the whole docstring.
        requirements: the requirements it targets; each needs a finding for a conclusive verdict.
        needs: conformance-statement items without which it cannot run.
        profiles: the profiles it belongs to.
        script: the function.
        extra: whether it runs only when asked for by name, because it takes long.
        lasts: seconds that it takes at least, where that is longer than cases usually do; on a wall
            clock it is given them.
    """

    id: str
    title: str
    purpose: str
    requirements: tuple[str, ...]
    needs: tuple[str, ...]
    profiles: tuple[str, ...]
    script: Script
    extra: bool = False
    lasts: float = 0.0

    @property
    def suite(self) -> Suite:
        """The suite it belongs to."""
        return suite_of(self.id)


_CASES: dict[str, Case] = {}

_Function = TypeVar("_Function", bound=Script)


def case(
    *requirements: str, needs: tuple[str, ...] = (), profiles: tuple[str, ...] | None = None,
    extra: bool = False, lasts: float = 0.0,
) -> Callable[[_Function], _Function]:  # fmt: skip
    """Register a test function as a :class:`Case`, of all its suite's profiles by default."""

    def register(script: _Function) -> _Function:
        suite = suite_in(script.__module__)
        purpose = inspect.getdoc(script)
        if not requirements or not purpose:
            raise ValueError(f"{script.__qualname__} needs requirements and a docstring")
        item = Case(
            identifier(script), purpose.splitlines()[0].rstrip("."), purpose, requirements, needs,
            suite.profiles if profiles is None else profiles, script, extra,
            lasts,
        )  # fmt: skip
        known = _CASES.get(item.id)
        # The same module may be imported again: pytest does, under a name of its own.
        if known and known.script.__code__.co_filename != script.__code__.co_filename:
            raise ValueError(f"two cases are called {item.id}")
        _CASES[item.id] = item
        return script

    return register


def identifier(script: Callable[..., object]) -> str:
    """The identifier of a case, from the names of its suite, module and function.

    Raises:
        UnknownSuite: the module is not in a protocol's folder.
    """
    group = script.__module__.rpartition(".test_")[2]
    name = script.__name__.removeprefix("test_")
    return f"{suite_in(script.__module__)}/{group}/{name}".replace("_", "-")


@cache
def load_cases(suite: str) -> Mapping[str, Case]:
    """Every case of a suite by identifier, in definition order.

    Raises:
        ValueError: one targets what is not a requirement of the suite.
    """
    record = suite_named(suite)
    package = importlib.import_module(record.cases)
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        if module.name.startswith("test_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    found = {item.id: item for item in _CASES.values() if item.id.startswith(f"{suite}/")}
    for item in found.values():
        check_targets(item, record.requirements())
    return found


def check_targets(item: Case, known: Collection[str]) -> None:
    """Refuse a case with an unknown target: nothing would be judged, and the run could pass.

    Raises:
        ValueError: it targets what is not among the known requirements.
    """
    for name in item.requirements:
        if name not in known:
            raise ValueError(f"the case {item.id} targets {name}, which is no requirement")
