"""Links and calls drawn at random; a protocol's hosts are drawn by its reference."""

from __future__ import annotations

import random

from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.common.subject import Call

from bentpipe_conformance.engine.peer import STANDARD_SERVICES

_CHARGEN = STANDARD_SERVICES["chargen"]
_LOSSES = (0.0, 0.0, 0.002, 0.01, 0.03, 0.1)


def draw_link(numbers: random.Random) -> LinkProfile:
    """A link that may lose, delay, reorder and duplicate packets."""
    delay = numbers.choice((0.001, 0.02, 0.06, 0.15, 0.3))
    untidy = numbers.random() < 0.3
    return LinkProfile(
        "drawn", "drawn at random", "",
        forward=_draw_direction(numbers, delay, untidy),
        return_=_draw_direction(numbers, delay * numbers.choice((1.0, 1.0, 0.2)), untidy),
    )  # fmt: skip


def _draw_direction(numbers: random.Random, delay: float, untidy: bool) -> Direction:
    return Direction(
        rate_bit_s=numbers.choice((None, 6e4, 3e5, 1.3e6, 6e6)),
        delay_s=delay,
        queue_packets=numbers.choice((8, 25, 50, 200)),
        loss_probability=numbers.choice(_LOSSES),
        reorder_probability=numbers.choice((0.0, 0.02, 0.2)) if untidy else 0.0,
        reorder_delay_s=numbers.choice((0.001, 0.02, 0.1)) if untidy else 0.0,
        duplicate_probability=numbers.choice((0.0, 0.02)) if untidy else 0.0,
    )


def draw_calls(numbers: random.Random, until: float) -> list[Call]:
    """Up to three calls of one host."""
    calls = []
    for _ in range(numbers.choice((0, 1, 1, 2, 3))):
        at = numbers.uniform(0.0, until / 3)
        port = numbers.choice(tuple(STANDARD_SERVICES.values()))
        longest = 8.0 if port == _CHARGEN else until
        call = Call(
            at, port,
            octets=numbers.choice((0, 1, 300, 5000, 60_000, 250_000)),
            at_once=numbers.choice((1, 300, 20_000, 1 << 20)),
            reading=numbers.choice((2000, 1 << 20)),
            ends_at=at + numbers.uniform(0.2, longest),
            aborts=numbers.random() < 0.15, endless=port == _CHARGEN,
        )  # fmt: skip
        calls.append(call)
    return calls
