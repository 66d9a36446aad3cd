"""How long the retransmission timer ran since it may last have been restarted.

RFC 6298 section 5 starts it with the first data outstanding (5.1) and restarts it with each
acknowledgment of new data (5.3) and each timeout (5.6); RFC 6675 section 6 permits that for each
retransmission as well. Nothing else restarts it: no new data, no duplicate acknowledgment, no SACK
block, no window update and no data of the peer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.round_trips import INITIAL_TIMEOUT_S, MOST_DOUBLINGS
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment

SOONEST_S = 0.9
"""Timeouts are no less, but for the ticks of a clock (RFC 6298 rule 2.4)."""


@dataclass(slots=True, eq=False)
class Wait:
    """A time during which data was outstanding, the window open, and the timer ran.

    Attributes:
        since: what may last have restarted the timer.
        until: when data was retransmitted, or the end of what is known.
        ended: that retransmission, None at the end.
        timeout: seconds that the timer may take at most, by RFC 6298 and all samples permitted.
        doublings: how often that timeout has been backed off.
        amid: what arrived or left meanwhile and restarts no timer, the last of it; None if nothing.
        unanswered: seconds from the last acknowledgment of new data to ``until``.
    """

    since: Sent | Ack
    until: float
    ended: Sent | None
    timeout: float
    doublings: int
    amid: Sent | Ack | Arrival | None
    unanswered: float

    @property
    def lasted(self) -> float:
        """Seconds."""
        return self.until - self.since.time


class _Timer:
    """The latest that a permitted timer may expire.

    Attributes:
        base: seconds that it runs at most while it is not backed off.
        since: what may last have restarted it, None while it does not run.
        amid: what has arrived or left since and restarts no timer.
    """

    def __init__(self) -> None:
        self.base = INITIAL_TIMEOUT_S
        self._timeouts = 0
        self._fresh: int | None = None
        self.since: Sent | Ack | None = None
        self.amid: Sent | Ack | Arrival | None = None
        self._surely = 0.0

    def restart(self, event: Sent | Ack, *, sure: bool = True) -> None:
        """Restart it; unless ``sure``, it may run on all the same."""
        self.since, self.amid = event, None
        self._surely = event.time if sure else self._surely

    def stop(self) -> None:
        self.since = self.amid = None

    def transmitted(self, event: Sent) -> None:
        """Note a segment, which may have left because of a timeout."""
        if event.retransmission:
            # So late it may have been timed, whatever has just arrived, and though a single octet
            # that looks like a probe was taken for the end of the wait.
            late = event.time - self._surely >= SOONEST_S
            if event.timed or late:
                self._timeouts += 1
                self._surely = event.time
            self._fresh = None
        elif self._fresh is None:
            self._fresh = event.end

    def acknowledged(self, ack: Ack) -> None:
        """What was first sent since the last retransmission is a measurement for everyone."""
        if self._fresh is not None and ack.ack >= self._fresh:
            self._timeouts, self._fresh = 0, None

    def wait(self, until: float, ended: Sent | None, progress: float) -> Wait:
        assert self.since is not None
        doublings = min(self._timeouts, MOST_DOUBLINGS)
        timeout = float(self.base * 2**doublings)
        return Wait(self.since, until, ended, timeout, doublings, self.amid, until - progress)


def read_waits(flow: Flow, longest: Sequence[float]) -> tuple[Wait, ...]:
    """The waits of one flow that a retransmission or its end ended, in order.

    Args:
        flow: the flow.
        longest: the largest timeout of RFC 6298 after each event.
    """
    timer = _Timer()
    found: list[Wait] = []
    una = top = 0
    edge: int | None = None  # of the SYN's window at first
    progress = 0.0
    enough = largest_segment(flow)
    recover, partially = 0, False
    for event, timer.base in zip(flow.until_reset, longest, strict=False):
        if isinstance(event, Sent):
            edge = event.window_edge if edge is None else edge
            if event.retransmission and event.una >= recover:
                recover, partially = event.max, False
            top = max(event.max, event.end)
            if event.end > edge or (event.timed and event.payload == 1 and not event.fin):
                # A probe, of a window that may be closed although an older segment offers one
                # (RFC 9293 section 3.10.7.4, SND.WL1); it need not be measured.
                timer.stop()
                if event.retransmission:
                    timer.transmitted(event)
                continue
            if not event.flight:
                timer.restart(event)
                progress = event.time
            elif event.retransmission:
                if timer.since is not None:
                    found.append(timer.wait(event.time, event, progress))
                timer.transmitted(event)
                timer.restart(event, sure=False)
                continue
            else:
                timer.amid = event
            timer.transmitted(event)
        elif isinstance(event, Ack) and (event.acceptable or event.may_heed):
            sure = event.acceptable and not event.may_refuse
            una, edge = max(una, event.ack), event.window_edge
            if event.advance:
                timer.acknowledged(event)
                progress = event.time
            # What a closed window holds up is the persist timer's (RFC 9293 section 3.8.6.1).
            if una >= top or edge < min(una + enough, top):
                timer.stop()
            elif event.advance or not sure or timer.since is None:
                # Of the partial acknowledgments only the first need do so (RFC 6582 section 3.2).
                timer.restart(event, sure=event.advance > 0 and sure and not partially)
            else:
                timer.amid = event
            if event.advance:
                partially = una < recover
        elif isinstance(event, Ack | Arrival):
            timer.amid = event
    if timer.since is not None and flow.horizon > timer.since.time:
        found.append(timer.wait(flow.horizon, None, progress))
    return tuple(found)
