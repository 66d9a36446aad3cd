"""The variables of a connection (STP/1 section 4); what they mean is decided elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.cookies import Ticket
from bentpipe_reference.stp.events import Events, TraceSink
from bentpipe_reference.stp.memory import Share
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Begin, End, Packet
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sequence import TAG_MASK
from bentpipe_reference.stp.states import State

Address = tuple[Any, ...]
"""A peer's address below STP, in the driver's own form: it is only compared."""


class Identity(NamedTuple):
    """What distinguishes connections (section 4).

    Attributes:
        peer: the peer's address below STP.
        peer_port: the peer's STP port.
        local_port: our STP port.
    """

    peer: Address
    peer_port: int
    local_port: int


@dataclass(eq=False, repr=False, kw_only=True)
class Variables:
    """State only: guards read it, actions and the connection change it. Times are in seconds.

    Attributes:
        config: settings.
        identity: which connection it is.
        csn, iss: our numbers; a call anew has others (STP-CC-037).
        outgoing: our stream.
        share: the credit that may be given.
        trace: takes the protocol events, None for no trace.
        state: see section 4.
        peer_csn: the peer's CSN, None while it is unknown.
        receiver: the peer's stream, None while its ISS is unknown.
        was_called: the peer called, so the peer releases (STP-CC-031).
        failure: why the connection failed, one clause; None if it did not.
        reason: the reason code of the failure.
        succeeded: both streams are complete and acknowledged (STP-CC-005).
        events: what the user has not been told yet.
        outbox: packets not yet taken by the endpoint.
        ticket: the cookie of our call, None while it has none.
        made, begun: the numbers of the first BEGIN of our call and of the last one among those of
            the endpoint (STP-CC-039).
        calls_anew: how often the call has begun anew (STP-CC-037).
        begin: our BEGIN, None before it is sent.
        release: our END, None before it is sent.
        transmissions: how often the BEGIN or END has been sent.
        timer_cc: when Timer_CC expires.
        asked_at: when the BEGIN left, None unless it was sent once and is unanswered.
        release_at: when a complete connection stops waiting for the caller's END (STP-CC-031).
        wants_room: the user waits for room in the send buffer.
        handled: the packet that arrived last.
        handled_at: when it arrived.
        untold: packets sent since the last event of the trace.
    """

    config: StpConfig
    identity: Identity
    csn: int
    iss: int
    outgoing: Outgoing
    share: Share
    trace: TraceSink | None = None
    state: State = State.IDLE
    peer_csn: int | None = None
    receiver: Receiver | None = None
    was_called: bool = False
    failure: str | None = None
    reason: int = 0
    succeeded: bool = False
    events: Events = Events.NONE
    outbox: list[Packet] = field(default_factory=list)
    ticket: Ticket | None = None
    made: int = 0
    begun: int = 0
    calls_anew: int = 0
    begin: Begin | None = None
    release: End | None = None
    transmissions: int = 0
    timer_cc: float = math.inf
    asked_at: float | None = None
    release_at: float = math.inf
    wants_room: bool = False
    handled: Packet | None = None
    handled_at: float = 0.0
    untold: list[Packet] = field(default_factory=list)

    @property
    def incoming(self) -> Receiver:
        """The peer's stream, once its ISS is known."""
        assert self.receiver is not None
        return self.receiver

    @property
    def header(self) -> tuple[int, int, int]:
        """Ports and tag of every packet that we send."""
        return self.outgoing.header

    @property
    def tag(self) -> int:
        """The tag of our packets."""
        return self.csn & TAG_MASK

    @property
    def is_over(self) -> bool:
        """Whether the user has been told how the connection ended."""
        return self.succeeded or self.failure is not None
