"""STP-DT: what a user of the standard services may expect (section 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.probe import chargen
from bentpipe_conformance.protocols.stp.checkers import Context, Findings
from bentpipe_conformance.protocols.stp.checkers.congestion import rate_gap
from bentpipe_conformance.protocols.stp.codec import BGAK, FIN
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, DISCARD, EARLY_CREDIT, ECHO
from bentpipe_conformance.protocols.stp.replay.echo import Echo, returned
from bentpipe_conformance.protocols.stp.replay.events import Event, ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow

SERVED_S, PACED_RTTS = 2.0, 3.0
"""Seconds and round trips after which a service with something to send, and nothing in flight, has
surely sent."""

CALLERS_OCTETS = 50_000
"""Octets that chargen surely has to send where it calls; the tester asks for twice as many."""

SERVICES = {ECHO: "echo", DISCARD: "discard", CHARGEN: "chargen"}


@checker("STP-DT-030")
def services_do_their_work(flow: Flow, context: Context) -> Findings:
    """Services send what they have to, as soon as credit permits (section 11)."""
    sender, service = flow.sender, _service(flow)
    name = SERVICES.get(service)
    if flow.established is None or sender is None or name is None:
        return
    longest = context.prepared.round_trips(context.ics).longest
    patience = SERVED_S + PACED_RTTS * longest + rate_gap(flow, context) + flow.timing_error
    ends = context.prepared.completion
    finished = ends.finished if ends.certain else None
    work = _Work(flow, service, math.inf if finished is None else finished)
    for event in flow.events:
        if not flow.established <= event.time <= flow.over:
            continue
        if work.since is not None and event.time - work.since.time > patience:
            break
        work.take(event)
    since = work.since
    if since is not None and flow.over - since.time > patience:
        yield context.violated(
            f"{name} sent nothing for {patience:.2g} s, though it had {work.has}",
            since, expected=f"an SD within {patience:.2g} s", actual="none",
        )  # fmt: skip
    if service == CHARGEN and not flow.iut_calls:
        yield from _pattern(flow, context)
    if service == ECHO:
        yield from _all_returned(flow, context)


def _all_returned(flow: Flow, context: Context) -> Findings:
    """Whether the echo returns all that it has received before the FIN, though it closes."""
    fin, own = context.prepared.completion.peers_fin, flow.own_fin
    back = None if fin is None else returned(flow, fin)
    if own is None or back is None or not back.right:
        return
    if back.octets == back.received:
        yield context.holds(f"echo returned all {back.octets} octets before it closed", own)
    elif back.in_time:
        yield context.violated(
            f"echo closed, though it had not returned SD {back.number}, received before the FIN",
            own,
            expected=f"{back.received} octets returned", actual=f"{back.octets} octets",
        )  # fmt: skip


def _service(flow: Flow) -> int:
    """What the IUT is on a connection: chargen as well where it calls discard; 0 for nothing."""
    if not flow.iut_calls:
        return flow.service
    return CHARGEN if flow.service == DISCARD else 0


def _pattern(flow: Flow, context: Context) -> Findings:
    assert flow.sender is not None
    offset, data = 0, flow.sender.data
    new = {sd.number: sd for sd in flow.sds_sent if sd.new}
    for number in range(flow.sender.vt_s):
        if number not in new:
            return
        octets = data[number]
        if octets != chargen(offset, len(octets)):
            yield context.violated(
                f"SD {number} of chargen holds other octets than those from offset {offset} on",
                new[number],
            )
            return
        offset += len(octets)
    if new:
        yield context.holds(f"{offset} octets of chargen are those of section 11", new[max(new)])


@dataclass
class _Work:
    """Whether a service must send something.

    Attributes:
        flow: the connection.
        service: what the IUT is.
        finished: when the peer's stream had arrived, seconds.
        since: the event since which it must; None if it need not.
        has: what it has to send.
    """

    flow: Flow
    service: int
    finished: float
    since: Event | None = None
    has: str = ""
    _echo: Echo = field(default_factory=Echo)
    _sent: int = 0
    _octets: int = 0
    _acknowledged: bool = True
    _ended: bool = False
    _credit: int = EARLY_CREDIT

    def __post_init__(self) -> None:
        begin = self.flow.opener
        if begin is not None and not self.flow.iut_calls:
            self._credit = max(self._credit, begin.stp.n_mr or 0)

    def take(self, event: Event) -> None:
        """Follow an event."""
        self._echo.take(event)
        if isinstance(event, SdSent):
            self._sent = max(self._sent, event.number + 1)
            self._octets += len(event.stp.data)
            self._acknowledged = False
            self._ended = self._ended or bool(event.stp.flags & FIN)
            self.since = None
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            self._acknowledged = event.acknowledges_all
            self._credit = event.credit
        self.has = self._has(event.time)
        must = self.has and self._acknowledged and self._sent < self._credit
        self.since = (self.since or event) if must else None

    def _has(self, now: float) -> str:
        if self._ended:
            return ""
        if now >= self.finished:
            return "to end its stream"
        if self.service == CHARGEN:
            return "data" if self._octets < CALLERS_OCTETS or not self.flow.iut_calls else ""
        return "data to return" if self.service == ECHO and self._echo.left else ""
