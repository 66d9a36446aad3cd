"""The packets of an exchange between two sides, as text and for a drawing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rung:
    """One packet on its way.

    Attributes:
        sent: when it left, seconds.
        arrived: when it arrived, None if it was lost.
        forward: whether it went from the left side to the right one.
        what: kind and numbers.
    """

    sent: float
    arrived: float | None
    forward: bool
    what: str


@dataclass(frozen=True, slots=True)
class Ladder:
    """An exchange; times count from its first packet.

    Attributes:
        title: one line.
        left, right: names of the sides.
        rungs: the packets in the order in which they left.
    """

    title: str
    left: str
    right: str
    rungs: tuple[Rung, ...]

    def text(self) -> str:
        """A line for each packet: when it left, which way, what it is, when it arrived."""
        width = max(len(rung.what) for rung in self.rungs)
        lines = [self.title, f"  {'sent':>7}  {self.left} -> {self.right}"]
        for rung in self.rungs:
            arrow = "->" if rung.forward else "<-"
            end = "lost" if rung.arrived is None else f"{1000 * rung.arrived:.0f} ms"
            lines.append(f"  {1000 * rung.sent:4.0f} ms  {arrow} {rung.what:{width}}  {end:>7}")
        return "\n".join(lines) + "\n"
