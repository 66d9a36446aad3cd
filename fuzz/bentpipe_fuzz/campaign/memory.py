"""How much memory a host in this process holds on to."""

from __future__ import annotations

import gc
import sys
from itertools import repeat
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

_OUTSIDE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
"""Code, which belongs to nobody in particular."""

MOST_OBJECTS = 200_000
"""As many are counted; no host of a conversation has as many."""


def footprint(host: object) -> int:
    """Octets of all objects that can be reached from a host, its code left out."""
    held = {id(host): host}
    level: list[object] = [host]
    while level and len(held) < MOST_OBJECTS:
        found = {id(item): item for item in gc.get_referents(*level)}
        level = [
            item for key, item in found.items()
            if key not in held and not isinstance(item, _OUTSIDE)
        ]  # fmt: skip
        held.update((id(item), item) for item in level)
    return sum(map(sys.getsizeof, held.values(), repeat(0)))
