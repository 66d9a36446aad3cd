"""Records: frozen dataclasses that are quick to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True)
def record(described: type[_Class]) -> type[_Class]:
    """A dataclass that the type checker holds frozen, with slots and a hash of its values.

    A frozen dataclass sets each field by a call; making packets, captures, contexts and findings
    took an eighth of a campaign's time that way. Only for what is made by the million.
    """
    return dataclass(slots=True, unsafe_hash=True)(described)
