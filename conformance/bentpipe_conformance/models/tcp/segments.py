"""The table of TCP SACK-NewReno: events in octets, a model that counts segments."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from bentpipe_conformance.models.binding import Binding, Form, Step, TraceProblem
from bentpipe_conformance.models.rejection import Module


class SegmentEncoder:
    """Numbers the octets of a trace by the segments they were first sent in.

    The model has no FIN: its octet, and what happens once all data is acknowledged, is left out.
    """

    def __init__(self, name: str, _binding: Binding) -> None:
        self._name = name
        self._edges = [0]  # where segments begin, and where the last one ends
        self._window: int | None = None
        self._ended = False  # a FIN has been sent
        self._done = False  # all data is acknowledged

    def steps(self, event: dict[str, Any], line: int) -> Iterable[Step]:
        """One step, or one for each segment that was sent as one."""
        kind: str = event["event"]
        if self._done and kind != "state":
            return []
        if kind == "send":
            return [_step(kind, at, line) for at in self._sent(event, line)]
        if kind == "ack":
            return [self._acknowledged(event, line)]
        if kind == "state":
            number = self._edge(event["snd_una"], line)
            return [_step(kind, number, line, flag=event["in_recovery"])]
        return [_step(kind, 0, line)]

    def _sent(self, event: dict[str, Any], line: int) -> range:
        fin = event.get("fin", False)
        if type(fin) is not bool:
            raise TraceProblem(f"{self._name}, line {line}: 'fin' is neither true nor false.")
        seq, end = event["seq"], event["seq"] + event["octets"] - fin
        self._ended |= fin
        if fin and seq >= end:
            return range(0)
        if seq == self._edges[-1]:
            self._edges.append(end)
        first = bisect_left(self._edges, seq)
        last = bisect_left(self._edges, end)
        if first < last < len(self._edges) and self._edges[last] == end:
            # A rescue retransmission (RFC 6675 section 4, rule 4) counts back from the end, so that
            # it may begin within a segment; what it repeats of that one does not count.
            return range(first, last)
        first = self._edge(seq, line)
        if first + 1 >= len(self._edges):
            return range(first, first + 1)
        return range(first, self._edge(end, line))

    def _acknowledged(self, event: dict[str, Any], line: int) -> Step:
        number = self._edge(event["ack"], line)
        self._done = self._ended and number == len(self._edges) - 1
        held = frozenset(
            at for block in event["sack"] for at in self._inside(block, line) if at >= number
        )
        repeats = bool(event["sack"]) and not held
        duplicate = event["bare"] and event["window"] == self._window and not repeats
        self._window = event["window"]
        return _step("ack", number, line, held, duplicate)

    def _inside(self, block: Any, line: int) -> range:
        try:
            left, right = (int(edge) for edge in block)
        except (TypeError, ValueError) as error:
            raise TraceProblem(
                f"{self._name}, line {line}: {block!r} is not a SACK block."
            ) from error
        first = bisect_left(self._edges, left)
        return range(first, max(first, bisect_left(self._edges, right)))

    def _edge(self, offset: int, line: int) -> int:
        if self._ended and offset == self._edges[-1] + 1:
            offset -= 1
        at = bisect_left(self._edges, offset)
        if at == len(self._edges) and offset > self._edges[-1]:
            return at  # of what was never sent: for the model to reject
        if self._edges[at] != offset:
            raise TraceProblem(
                f"{self._name}, line {line}: {offset} lies inside a segment; such a trace says "
                "too little for this model."
            )
        return at


def _step(
    kind: str, number: int, line: int, held: frozenset[int] = frozenset(), flag: bool = False
) -> Step:
    return Step(kind, {"n": number, "s": held, "d": flag}, line)


SACK_NEWRENO = Binding(
    protocol="sack-newreno",
    module=Module("sack-newreno", "TraceSackNewReno", "trace.cfg", "TraceLogs"),
    profiles={"hk99": {"Profile": '"hk99"'}, "rfc": {"Profile": '"rfc"'}},
    forms={
        "ack": Form({"ack": int, "window": int, "sack": list, "bare": bool}, ("Acknowledged",)),
        "send": Form({"seq": int, "octets": int}, ("SentAsDue", "SentInTurn", "SentByPipe")),
        "timeout": Form({}, ("TimedOut",)),
        "state": Form({"snd_una": int, "in_recovery": bool}, ("Observed",)),
    },
    encoder=SegmentEncoder,
    default=True,
)
