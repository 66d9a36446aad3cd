"""Composition roots: records of the classes that a reference is made of."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


PartsT = TypeVar("PartsT", bound=_Record)


def with_part(parts: PartsT, part: type[Any]) -> PartsT:
    """``parts`` with ``part`` in place of the class it derives from.

    Args:
        parts: a dataclass of classes; its defaults are the true ones.
        part: a subclass of one of the defaults; it takes the place of the most derived of them.

    Raises:
        TypeError: it derives from none of them.
    """
    found = [
        (len(field.default.__mro__), field.name)
        for field in fields(parts)
        if isinstance(field.default, type) and issubclass(part, field.default)
    ]
    if found:
        return replace(parts, **{max(found)[1]: part})
    raise TypeError(f"{part.__name__} derives from no part of {type(parts).__module__}")


@dataclass(frozen=True, slots=True)
class Setup:
    """The user's settings and the parts; the self-test and the experiments change it stepwise.

    Attributes:
        config: a dataclass of settings.
        parts: a dataclass of classes; its defaults are the true ones.
    """

    config: Any
    parts: Any

    def configured(self, **settings: Any) -> Self:
        """The same with other settings."""
        return replace(self, config=replace(self.config, **settings))

    def with_part(self, part: type[Any]) -> Self:
        """The same with a subclass in place of the part that it derives from.

        Raises:
            TypeError: it derives from no part.
        """
        return replace(self, parts=with_part(self.parts, part))
