"""Connection states and what moves a connection between them (RFC 9293 section 3.3.2)."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The states of RFC 9293; LISTEN belongs to the host, which creates an endpoint per SYN."""

    CLOSED = "CLOSED"
    SYN_SENT = "SYN-SENT"
    SYN_RECEIVED = "SYN-RECEIVED"
    ESTABLISHED = "ESTABLISHED"
    FIN_WAIT_1 = "FIN-WAIT-1"
    FIN_WAIT_2 = "FIN-WAIT-2"
    CLOSE_WAIT = "CLOSE-WAIT"
    CLOSING = "CLOSING"
    LAST_ACK = "LAST-ACK"
    TIME_WAIT = "TIME-WAIT"

    __hash__ = object.__hash__  # each state is one object; Enum's own hashes its name every time


class Happening(Enum):
    """What can move a connection to another state."""

    ACTIVE_OPEN = "active open"
    PASSIVE_OPEN = "SYN for a service"
    SYN_CROSSED = "SYN without ACK of ours"
    SYN_ACKNOWLEDGED = "ACK of our SYN"
    CLOSE = "close by the application"
    FIN_RECEIVED = "FIN in sequence"
    FIN_ACKNOWLEDGED = "ACK of our FIN"
    QUIET_TIME_OVER = "end of TIME-WAIT"
    ENDED = "reset, abort or give-up"


TRANSITIONS: dict[tuple[State, Happening], State] = {
    (State.CLOSED, Happening.ACTIVE_OPEN): State.SYN_SENT,
    (State.CLOSED, Happening.PASSIVE_OPEN): State.SYN_RECEIVED,
    (State.SYN_SENT, Happening.SYN_CROSSED): State.SYN_RECEIVED,
    (State.SYN_SENT, Happening.SYN_ACKNOWLEDGED): State.ESTABLISHED,
    (State.SYN_SENT, Happening.CLOSE): State.CLOSED,
    (State.SYN_RECEIVED, Happening.SYN_ACKNOWLEDGED): State.ESTABLISHED,
    (State.ESTABLISHED, Happening.CLOSE): State.FIN_WAIT_1,
    (State.ESTABLISHED, Happening.FIN_RECEIVED): State.CLOSE_WAIT,
    (State.CLOSE_WAIT, Happening.CLOSE): State.LAST_ACK,
    (State.FIN_WAIT_1, Happening.FIN_ACKNOWLEDGED): State.FIN_WAIT_2,
    (State.FIN_WAIT_1, Happening.FIN_RECEIVED): State.CLOSING,
    (State.FIN_WAIT_2, Happening.FIN_RECEIVED): State.TIME_WAIT,
    (State.CLOSING, Happening.FIN_ACKNOWLEDGED): State.TIME_WAIT,
    (State.LAST_ACK, Happening.FIN_ACKNOWLEDGED): State.CLOSED,
    (State.TIME_WAIT, Happening.QUIET_TIME_OVER): State.CLOSED,
} | {(state, Happening.ENDED): State.CLOSED for state in State}
"""A pair that is missing leaves the state as it is.

A close in SYN-RECEIVED waits for ESTABLISHED (RFC 9293 section 3.10.4 permits queueing it).
"""

RECEIVES_DATA = {State.ESTABLISHED, State.FIN_WAIT_1, State.FIN_WAIT_2}
SENDS_DATA = {State.ESTABLISHED, State.CLOSE_WAIT, State.FIN_WAIT_1, State.CLOSING, State.LAST_ACK}


def transitions() -> tuple[tuple[str, str, str], ...]:
    """State, next state and happening of every transition, as a diagram shows them.

    Without :attr:`Happening.ENDED`, which leads from every state to CLOSED.
    """
    return tuple(
        (state.value, following.value, happening.value)
        for (state, happening), following in TRANSITIONS.items()
        if happening is not Happening.ENDED
    )
