"""Protocol events of a sender as NDJSON, for validation against the model ``rwbp-recovery``.

One JSON object per line. Segments, which keep their boundaries, are numbered in the order of their
first transmission; times are seconds.

``begin``    ``protocol`` (``rwbp-recovery``), ``profile`` (``rwbp1``)
``ack``      ``n``: the first segment not acknowledged cumulatively, ``held``: those in true blocks
``send``     ``n``: a new segment was transmitted
``again``    ``n``: a segment was transmitted once more
``timeout``  the retransmission timer expired, and two copies are due
``state``    ``edge``: the highest segment that has arrived, -1 for none, ``lost``: those that are
             taken for lost and await retransmission, once an ``ack`` is processed

The model knows no order that is not kept: a trace ends before the acknowledgment that raises the
threshold. By hand: ``python -m bentpipe_reference.rwbp.tracing --drops 5,9 > transfer.ndjson``.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles
from bentpipe_reference.common.tracing import EventTrace, recording_options
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.parts import TRUE_PARTS, Parts, Setup
from bentpipe_reference.rwbp.sender import FALSE_LOSSES, RwbpSender
from bentpipe_reference.tcp.path import Path
from bentpipe_reference.tcp.sending.variables import Ack


class RecoveryTrace(EventTrace):
    """Collects the events of one sender, ``begin`` first; a sender without one pays nothing."""

    def __init__(self) -> None:
        super().__init__({"event": "begin", "protocol": "rwbp-recovery", "profile": "rwbp1"})
        self._ends: list[int] = []
        self._data_ends: list[int] = []
        self._starts: list[int] = []
        self._over = False

    def listening(self, sender: type[RwbpSender]) -> type[RwbpSender]:
        """The same sender, which reports what it does."""
        trace = self

        class Traced(sender):  # type: ignore[misc, valid-type]
            """Reports its events."""

            def on_ack(self, ack: Ack, now: float) -> None:
                at = len(trace.events)
                trace.on_ack(self, ack, now)
                super().on_ack(ack, now)
                if self.false_losses >= FALSE_LOSSES:
                    trace.end(at)
                trace.on_processed(self, now)

            def on_timeout(self, now: float) -> None:
                timeouts = self.counters.timeouts
                super().on_timeout(now)
                if self.counters.timeouts > timeouts:
                    trace.note("timeout", now)

            def _transmit_segment(self, segment: Outgoing, now: float) -> None:
                super()._transmit_segment(segment, now)
                trace.on_transmission(segment, now)

        return Traced

    def end(self, at: int) -> None:
        """Let the trace end before its event number ``at``."""
        if not self._over:
            self._over = True
            del self.events[at:]

    def note(self, name: str, now: float, **values: Any) -> None:
        """Take an event, unless the trace is over."""
        if not self._over:
            self.add({"event": name, "time": round(now, 9), **values})

    def on_transmission(self, segment: Outgoing, now: float) -> None:
        """A segment was transmitted."""
        again = bool(self._ends) and segment.start < self._ends[-1]
        if not again:
            self._starts.append(segment.start)
            self._ends.append(segment.end)
            self._data_ends.append(segment.end - segment.fin)
        self.note("again" if again else "send", now, n=self._number(segment))

    def on_ack(self, sender: RwbpSender, ack: Ack, now: float) -> None:
        """An acknowledgment is about to be processed."""
        held = {
            number
            for left, right in ack.blocks
            if sender.accept_sack_block(left, right, ack)
            for number in range(len(self._ends))
            if left <= self._starts[number] < self._data_ends[number] <= right
        }
        self.note("ack", now, n=bisect_right(self._ends, ack.number), held=sorted(held))

    def on_processed(self, sender: RwbpSender, now: float) -> None:
        """The acknowledgment has been processed."""
        segments = sender.segments.below(sender.snd_nxt)
        lost = [self._number(each) for each in segments if each.copies and each.suspect]
        outstanding = {self._number(each) for each in segments}
        arrived = (n for n in reversed(range(len(self._ends))) if n not in outstanding)
        self.note("state", now, edge=next(arrived, -1), lost=lost)

    def _number(self, segment: Outgoing) -> int:
        return bisect_right(self._starts, segment.start) - 1


def record(
    link: LinkProfile,
    config: RwbpConfig,
    octets: int,
    *,
    drops: Iterable[int] = (),
    return_drops: Iterable[int] = (),
    parts: Parts = TRUE_PARTS,
    seed: int = 0,
    limit_s: float = 600.0,
) -> RecoveryTrace:
    """Transfer ``octets`` over ``link`` in virtual time and collect the sender's events.

    Args:
        link: the link; data travels in its forward direction.
        config: settings of both ends.
        octets: length of the stream.
        drops: numbers of the forward packets to drop, the SYN being 1.
        return_drops: the same for the return direction, the SYN-ACK being 1.
        parts: what both ends are composed of.
        seed: seed of the links' faults and the initial sequence numbers.
        limit_s: virtual seconds after which the transfer is given up.
    """
    trace = RecoveryTrace()
    path = Path(link, seed)
    path.forward.drops.update(drops)
    path.return_.drops.update(return_drops)
    flow = path.flow(octets, Setup(config, parts))
    flow.sending.parts = replace(parts, rwbp_sender=trace.listening(parts.rwbp_sender))
    flow.start()
    path.simulation.run_while(flow.is_pending, limit_s)
    return trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the trace of one transfer to the standard output; 0, or 2 for wrong usage."""
    given = recording_options("rwbp.tracing", "the SYN", "the SYN-ACK").parse_args(arguments)
    trace = record(
        load_profiles()[given.link], RwbpConfig(), given.octets, drops=given.drops,
        return_drops=given.return_drops, seed=given.seed,
    )  # fmt: skip
    sys.stdout.write(trace.lines())
    return 0


if __name__ == "__main__":
    sys.exit(main())
