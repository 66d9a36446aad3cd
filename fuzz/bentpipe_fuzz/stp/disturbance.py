"""What disturbs a run: faults of its links and forged packets, drawn or given, always recorded.

A run is repeated from its plan and its disturbances; fewer of them make a smaller example.
"""

from __future__ import annotations

import random
from dataclasses import astuple, dataclass
from typing import Any, Literal

from bentpipe_fuzz.stp.plan import LinkPlan

FaultKind = Literal["lost", "twice", "late", "corrupt"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one packet.

    Attributes:
        way: ``from>to``.
        ordinal: which of the packets offered there, from 1.
        kind: ``value`` is for ``twice`` and ``late`` the seconds that the copy or the packet takes
            longer, for ``corrupt`` the first bit times 2^16 plus fifteen bits to change.
    """

    way: str
    ordinal: int
    kind: FaultKind
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Injection:
    """A forged packet.

    Attributes:
        at: seconds, after those of the same time that are honest.
        target: node that gets it.
        source: the address it claims to come from.
        octets: hexadecimal.
    """

    at: float
    target: str
    source: str
    octets: str


Disturbance = Fault | Injection


def as_json(disturbance: Disturbance) -> list[Any]:
    """For a file."""
    return ["fault" if isinstance(disturbance, Fault) else "packet", *astuple(disturbance)]


def from_json(item: list[Any]) -> Disturbance:
    """From a file.

    Raises:
        ValueError: it is not a disturbance.
    """
    kind, *values = item
    if kind == "fault" and len(values) == 4:
        return Fault(*values)
    if kind == "packet" and len(values) == 4:
        return Injection(*values)
    raise ValueError(f"{item!r} is not a disturbance")


class DrawnFaults:
    """Faults of one direction, by chance."""

    def __init__(self, way: str, plan: LinkPlan, until: float, seed: str) -> None:
        self._way = way
        self._plan = plan
        self._until = until
        self._random = random.Random(f"faults {way} {seed}")
        self._burst = 0

    def of(self, ordinal: int, size: int, elapsed: float) -> list[Fault]:
        """What happens to a packet of ``size`` octets sent ``elapsed`` seconds after the start."""
        plan, numbers = self._plan, self._random
        lost = Fault(self._way, ordinal, "lost")
        if plan.gone_from is not None and elapsed >= plan.gone_from:
            return [lost]
        if elapsed >= self._until:
            return []
        if any(start <= elapsed < end for start, end in plan.blackouts):
            return [lost]
        if plan.burst and not self._burst and numbers.random() < plan.burst:
            self._burst = numbers.randint(1, plan.burst_length)
        if self._burst:
            self._burst -= 1
            return [lost]
        if plan.loss and numbers.random() < plan.loss:
            return [lost]
        faults = []
        if plan.corrupt and numbers.random() < plan.corrupt:
            bits = numbers.randrange(8 * size) << 16 | numbers.randrange(1, 1 << 15)
            faults.append(Fault(self._way, ordinal, "corrupt", bits))
        if plan.late and numbers.random() < plan.late:
            faults.append(Fault(self._way, ordinal, "late", numbers.uniform(0, plan.late_by)))
        if plan.twice and numbers.random() < plan.twice:
            longer = numbers.choice([0.0, numbers.uniform(0, 5.0)])
            faults.append(Fault(self._way, ordinal, "twice", longer))
        return faults


class GivenFaults:
    """Faults of one direction, as recorded."""

    def __init__(self, way: str, given: list[Disturbance]) -> None:
        self._faults: dict[int, list[Fault]] = {}
        for fault in given:
            if isinstance(fault, Fault) and fault.way == way:
                self._faults.setdefault(fault.ordinal, []).append(fault)

    def of(self, ordinal: int, size: int, elapsed: float) -> list[Fault]:  # noqa: ARG002
        """What happens to a packet."""
        return self._faults.get(ordinal, [])


def apply(faults: list[Fault], octets: bytes) -> list[tuple[float, bytes, bool]]:
    """What arrives in the place of a packet: seconds it takes longer, octets, whether intact."""
    longer, intact = 0.0, True
    copies = []
    for fault in faults:
        if fault.kind == "lost":
            return []
        if fault.kind == "corrupt":
            octets, intact = corrupted(octets, int(fault.value)), False
        elif fault.kind == "late":
            longer = fault.value
        else:
            copies.append(fault.value)
    return [(longer + more, octets, intact) for more in (0.0, *copies)]


def corrupted(octets: bytes, bits: int) -> bytes:
    """The octets with up to fifteen neighbouring bits changed: the checksum sees any of these."""
    at, mask = bits >> 16, bits & 0x7FFF
    changed = int.from_bytes(octets, "big") ^ mask << at % (8 * len(octets) - 15)
    return changed.to_bytes(len(octets), "big")
