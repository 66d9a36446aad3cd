"""A minimal corpus: each packet reaches, in the codecs, a step between lines that no other does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

CODECS = ("codec", "credit", "wire", "option", "options", "passing", "encapsulation", "ipv4")
"""Modules, or packages, whose lines count."""

Step = tuple[CodeType, int, int]
"""In a function, from the line of the first number to that of the second."""


def minimal(packets: Iterable[bytes], read: Callable[[bytes], object]) -> list[bytes]:
    """Of these packets those, small ones first, that reach what the ones before do not."""
    reached: set[Step] = set()
    kept = []
    for packet in sorted(set(packets), key=lambda packet: (len(packet), packet)):
        fresh = steps_of(packet, read) - reached
        if fresh:
            reached |= fresh
            kept.append(packet)
    return kept


def steps_of(packet: bytes, read: Callable[[bytes], object]) -> set[Step]:
    """The steps that reading a packet takes in the codecs."""
    found: set[Step] = set()

    def enter(frame: FrameType, _event: str, _about: Any) -> Any:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("bentpipe_fuzz") or not set(name.split(".")) & set(CODECS):
            return None
        last = 0

        def line(inner: FrameType, event: str, _about: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((inner.f_code, last, inner.f_lineno))
                last = inner.f_lineno
            return line

        return line

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        read(packet)
    finally:
        sys.settrace(before)
    return found
