"""How much memory a host in this process holds on to."""

from __future__ import annotations

import gc
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

_OUTSIDE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
"""Code, which belongs to nobody in particular."""

MOST_OBJECTS = 200_000
"""As many are counted; no host of a conversation has as many."""


def footprint(host: object) -> int:
    """Octets of all objects that can be reached from a host, its code left out."""
    seen = {id(host)}
    left = [host]
    total = 0
    while left and len(seen) < MOST_OBJECTS:
        item = left.pop()
        total += sys.getsizeof(item, 0)
        for held in gc.get_referents(item):
            if not isinstance(held, _OUTSIDE) and id(held) not in seen:
                seen.add(id(held))
                left.append(held)
    return total
