"""What the tester has received on a connection, and the STATs and USTATs that are right for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range

Elements = tuple[int, ...]
"""A STAT's list as counts from the sender's ISS."""


@dataclass
class Reception:
    """A receiver's variables, as counts from the sender's ISS.

    Attributes:
        vr_r: next SD to be delivered.
        vr_h: next highest expected.
        vr_mr: first SD that is not permitted.
        held: SDs held above ``vr_r``, with their data.
        stream: what was delivered, octets.
        fin: number of the SD that ended the stream, None before.
        seen: how often each SD has arrived, lost ones included.
        told: the highest ``vr_r`` that a STAT has reported.
    """

    vr_r: int = 0
    vr_h: int = 0
    vr_mr: int = 0
    held: dict[int, bytes] = field(default_factory=dict)
    stream: bytearray = field(default_factory=bytearray)
    fin: int | None = None
    seen: dict[int, int] = field(default_factory=dict)
    told: int = 0

    @property
    def ended(self) -> bool:
        """Whether everything up to the end of the stream has been delivered."""
        return self.fin is not None and self.vr_r > self.fin

    def note(self, number: int) -> int:
        """Count an arrival of an SD, lost or not; return how often it had arrived before."""
        before = self.seen.get(number, 0)
        self.seen[number] = before + 1
        return before

    def take(self, number: int, data: bytes, fin: bool) -> Range | None:
        """Take in an SD (section 6.2); return the gap that a USTAT has to report, if any."""
        if not self.vr_r <= number < self.vr_mr or number in self.held:
            return None
        gap = (self.vr_h, number) if number > self.vr_h else None
        self.vr_h = max(self.vr_h, number + 1)
        self.held[number] = data
        if fin:
            self.fin = number
        while self.vr_r in self.held:
            self.stream += self.held.pop(self.vr_r)
            self.vr_r += 1
        return gap

    def polled(self, n_s: int) -> None:
        """Take in a POLL's N(S) (section 6.3)."""
        if self.vr_h < n_s <= self.vr_mr and (self.fin is None or n_s <= self.fin + 1):
            self.vr_h = n_s

    def elements(self) -> Elements:
        """The whole list of a STAT sent now."""
        return tuple(_boundaries(self.vr_r, self.vr_h, self.held))


def _boundaries(vr_r: int, vr_h: int, held: dict[int, bytes]) -> Iterator[int]:
    """First missing, first held, ... and last the bound; nothing when nothing is missing."""
    if vr_r == vr_h:
        return
    yield vr_r
    missing = True
    for number in range(vr_r + 1, vr_h):
        if (number not in held) != missing:
            missing = not missing
            yield number
    yield vr_h


def cut(elements: Elements, most: int) -> list[Elements]:
    """The lists of the STATs that carry a list, each of at most ``most`` elements (STP-PF-012)."""
    parts = []
    while len(elements) > most:
        parts.append(elements[:most])
        elements = elements[most - 1 :]
    return [*parts, elements]
