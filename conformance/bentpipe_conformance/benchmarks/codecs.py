"""Build and dissect rates: a codec of this project beside Scapy, on the same packets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bentpipe_conformance.benchmarks.model import Figure, Report, at_least, cpu_seconds

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from scapy.layers.inet import IP

SOURCE, DESTINATION = 0x0A4D0002, 0x0A4E0001
"""Addresses of the packets: 10.77.0.2 and 10.78.0.1."""
COUNT = 200
"""Packets in one pass."""
TARGET = 20
_ROUNDS = 20
"""Passes of a fast codec over the packets for each pass of Scapy, because of the clock's grain."""


@dataclass(frozen=True, slots=True)
class Load:
    """The packets that codecs are compared on.

    Attributes:
        unit: what one of them is called.
        described: the packets, a clause after "the same 200".
        layers: for each of them, a function that makes it of Scapy's layers.
    """

    unit: str
    described: str
    layers: list[Callable[[], Any]]

    def compared(self, codec: str, repeat: int, ours: Callable[[], object]) -> Report:
        """Measure ``ours``, a pass of ``codec`` over the packets, and Scapy in turns."""

        def many() -> None:
            for _ in range(_ROUNDS):
                ours()

        def scapy() -> None:
            for layers in self.layers:
                IP(bytes(layers()))

        mine, theirs = [], []
        for _ in range(repeat):
            mine.append(cpu_seconds(many) / (_ROUNDS * COUNT))
            theirs.append(cpu_seconds(scapy) / COUNT)
        ratios = [other / own for own, other in zip(mine, theirs, strict=True)]
        return Report(
            f"{codec} and Scapy build and dissect the same {COUNT} {self.described}; CPU time, in "
            "turns",
            (
                at_least("times Scapy's rate", median(ratios), TARGET),
                Figure(f"microseconds per {self.unit}", 1e6 * median(mine)),
                Figure(f"microseconds per {self.unit} in Scapy", 1e6 * median(theirs)),
            ),
        )
