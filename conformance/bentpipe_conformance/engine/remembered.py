"""What is computed once for a connection, however many checkers ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")

_LATELY = 4
"""Answers that are remembered: checkers ask of one connection after the other."""

_forgetting: list[Callable[[], None]] = []


def remembered(function: Callable[_Asked, _Answer]) -> Callable[_Asked, _Answer]:
    """A function whose latest answers are remembered, until :func:`forget`."""
    known = lru_cache(maxsize=_LATELY)(function)
    _forgetting.append(known.cache_clear)
    return cast(Callable[_Asked, _Answer], known)


def forget() -> None:
    """Let go of the connections that were asked of: of a long one all packets hang on it."""
    for cleared in _forgetting:
        cleared()
