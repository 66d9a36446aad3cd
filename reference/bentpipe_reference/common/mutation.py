"""Mutants: small subclasses of the reference, each breaking exactly one requirement.

The self-test runs every case against every mutant, and each must fail on the requirement it
breaks. A module of a protocol's package ``mutants`` lists its mutants in ``MUTANTS``, or the
package lists those of all its modules.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar, get_type_hints

import bentpipe_reference


@dataclass(frozen=True, slots=True)
class Mutant:
    """One deliberate defect.

    Attributes:
        id: permanent identifier, such as ``snr-two-duplicates-suffice``.
        breaks: the requirement whose checker must notice.
        title: the defect in one sentence.
        configure: turns the setup of the true reference into the mutant's.
        profile: the profile whose reference it mutates, such as ``stp1e2``.
        setting: of the reference that is mutated, such as ``max-rate``; empty for its usual one.
    """

    id: str
    breaks: str
    title: str
    configure: Callable[[Any], Any]
    profile: str
    setting: str = ""


Part = TypeVar("Part", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Declarations:
    """The mutants of one profile's reference, each declared where its defect is written.

    The setup of the reference has ``configured``, ``with_part`` and ``parts``, a dataclass.

    Attributes:
        profile: the profile.
        mutants: every mutant, in the order of declaration.
    """

    profile: str
    mutants: list[Mutant] = field(default_factory=list)

    def mutant(
        self, identifier: str, method: str = "", *, breaks: str, part: str = "parse",
        setting: str = "", **settings: Any,
    ) -> Callable[[Part], Part]:  # fmt: skip
        """Declare a mutant: a method, a subclass of a part, or a function in the place of a part.

        Its title is the first line of the docstring.

        Args:
            identifier: permanent, such as ``rwbp-one-copy``.
            method: what a function replaces of the class that its ``self`` is annotated with.
            breaks: the requirement whose checker must notice.
            part: the name of the part that a function replaces.
            setting: the setting of the reference that is mutated; empty for its usual one.
            settings: configuration that the defect takes.
        """

        def declare(mutated: Part) -> Part:
            title = (mutated.__doc__ or "").partition("\n")[0]
            kind: object = mutated
            if method:
                owner = get_type_hints(mutated)["self"]
                kind = type(f"{owner.__name__}Mutant", (owner,), {method: mutated})

            def configure(setup: Any) -> Any:
                setup = setup.configured(**settings)
                if isinstance(kind, type):
                    return setup.with_part(kind)
                change: dict[str, Any] = {part: mutated}
                return replace(setup, parts=replace(setup.parts, **change))

            self.of_setup(identifier, title, configure, breaks=breaks, setting=setting)
            return mutated

        return declare

    def of_setup(
        self, identifier: str, title: str, configure: Callable[[Any], Any], *, breaks: str,
        setting: str = "",
    ) -> None:  # fmt: skip
        """Declare a mutant that is the true reference with another setup."""
        self.mutants.append(Mutant(identifier, breaks, title, configure, self.profile, setting))


@cache
def load_mutants() -> Mapping[str, Mutant]:
    """Every mutant of every protocol by identifier.

    Raises:
        ValueError: two mutants share an identifier.
    """
    found: dict[str, Mutant] = {}
    for mutant in _listed():
        if mutant.id in found:
            raise ValueError(f"two mutants have the identifier {mutant.id}")
        found[mutant.id] = mutant
    return found


def _listed() -> Iterator[Mutant]:
    for protocol in pkgutil.iter_modules(bentpipe_reference.__path__):
        name = f"{bentpipe_reference.__name__}.{protocol.name}.mutants"
        if importlib.util.find_spec(name) is None:
            continue
        package = importlib.import_module(name)
        for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
            found = importlib.import_module(f"{name}.{module.name}")
            yield from getattr(found, "MUTANTS", ())
        yield from getattr(package, "MUTANTS", ())
