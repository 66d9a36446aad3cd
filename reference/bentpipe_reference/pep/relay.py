"""A connection that is split: two of them, one for the other (PEP/1 sections 5 to 7)."""

from __future__ import annotations

from collections.abc import Callable

from bentpipe_reference.pep.config import INNER, BoxConfig
from bentpipe_reference.pep.endpoint import End
from bentpipe_reference.tcp.wire.segment import Segment

Make = Callable[[int], End]
"""Makes the endpoint of a relay at a port of the box."""


class Relay:
    """Accepts on one side of the box, and calls on the other.

    Args:
        caller: the port of the box at which the SYN arrived.
        syn: that SYN.
        make: makes the two endpoints.
        config: settings of the box.
        early: whether the caller is answered before whom it calls.

    Attributes:
        far: the endpoint that calls.
        near: the endpoint that the caller has, None while the caller has no answer.
        refused: whether the caller has to be refused, as the call has failed without an answer.
        classes: by port, the DSCP of what arrives there, in the place of the type of service.
        carried: by port, octets that have arrived there and been given to the other side.
    """

    def __init__(
        self, caller: int, syn: Segment, make: Make, config: BoxConfig, *, early: bool
    ) -> None:
        self.caller = caller
        self.syn = syn
        self.config = config
        self.far = make(1 - caller)
        self.near: End | None = None
        self.refused = False
        self.classes = [0, 0]
        self.carried = [0, 0]
        self._make = make
        self._early = early
        self._cancelled = False

    def endpoint(self, port: int) -> End | None:
        """The endpoint at a port of the box."""
        return self.near if port == self.caller else self.far

    @property
    def endpoints(self) -> tuple[End, ...]:
        """Those that there are."""
        return (self.far,) if self.near is None else (self.near, self.far)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return all(each.is_closed for each in self.endpoints)

    @property
    def only_waits(self) -> bool:
        """Whether both streams have ended, and what is left waits for late segments only."""
        return all(each.only_waits for each in self.endpoints)

    @property
    def was_refused(self) -> bool:
        """Whether whom it calls has failed before it has sent an octet."""
        return self.far.failure is not None and not self.far.has_heard

    @property
    def is_half_open(self) -> bool:
        """Whether the caller has not completed its handshake, so that it may never do so."""
        return self.near is None or self.near.awaits_caller

    def begin(self, now: float) -> None:
        """Call; with early opening, answer."""
        self.far.open(now)
        if self._early:
            self._answer(now)

    def repeat_syn(self, now: float) -> None:
        """The caller's SYN arrived again before it was answered (PEP-OP-003)."""

    def cancel(self, now: float) -> None:
        """The caller has given up before it was answered (PEP-OP-011)."""
        self._cancelled = True
        self.far.abort("the caller has given up", now)

    def step(self, now: float) -> None:
        """Open, move what there is and there is room for, and carry over ends and failures."""
        near, far = self.near, self.far
        if near is None:
            if far.failure is not None:
                self.refused = not self._cancelled
            elif not far.is_opening:
                self._answer(now)
            return
        self.move(near, far, now)
        self.move(far, near, now)

    def move(self, source: End, sink: End, now: float) -> None:
        """Relay one stream."""
        if source.failure is not None:
            self.carry_failure(source, sink, now)
            return
        if not sink.is_closed:
            self.carry_octets(source, sink, now)
            self.carry_end(source, sink, now)
        self.confirm(source, sink, now)

    def carry_failure(self, source: End, sink: End, now: float) -> None:  # noqa: ARG002
        """One side has failed, or was reset (PEP-RE-006, -007, -008)."""
        if not sink.is_closed:
            sink.abort("the connection that it relays has failed", now)

    def carry_octets(self, source: End, sink: End, now: float) -> None:
        """As many as there is room for, so that a full sink closes the source's window."""
        while (ready := source.readable) and (room := sink.write_room):
            octets = source.read(min(ready, room))
            self.carried[source is self.endpoint(1)] += len(octets)
            sink.write(octets, now)

    def carry_end(self, source: End, sink: End, now: float) -> None:
        """Behind the last octet, and for this direction only (PEP-RE-003, -004, -009)."""
        if source.stream_has_ended and not source.readable and not sink.is_opening:
            sink.close(now)

    def confirm(self, source: End, sink: End, now: float) -> None:
        """Acknowledge the source's FIN when it is true that all has arrived (PEP-RE-002).

        The sink's acknowledgment of our own FIN says so, also where the sink is another box: of
        octets it may say so before they have reached the end.
        """
        if source.stream_has_ended and (
            sink.end_is_acknowledged or self.ends_by_itself(source)
        ):  # fmt: skip
            source.confirm_end(now)

    def ends_by_itself(self, source: End) -> bool:
        """Whether a FIN is acknowledged at once, in the weaker mode.

        That of another box is not: what is left open between two boxes carries a reset over as
        long as either holds octets (PEP-RE-005, -006).
        """
        between = self.config.paired and source is self.endpoint(INNER)
        return self.config.end == "local" and not between

    def _answer(self, now: float) -> None:
        self.near = self._make(self.caller)
        self.near.accept(self.syn, now)
