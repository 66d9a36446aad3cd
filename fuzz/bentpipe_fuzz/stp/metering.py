"""How much state an endpoint keeps, and how much work it does."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from bentpipe_reference.stp.config import EARLY_CREDIT, MOST_CREDIT
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint

_TIMERS_SLACK = 65
"""Entries that the heap of timers may have in addition to four for every alarm."""


def weight(endpoint: StpEndpoint) -> int:
    """Entries of everything that could grow with what peers send, except cookies."""
    return sum(
        len(kept)
        for kept in (
            endpoint.connections, endpoint._timers, endpoint._alarms,
            endpoint._active, endpoint._outbox, endpoint._eventful,
        )
    )  # fmt: skip


def excess(endpoint: StpEndpoint) -> str | None:
    """What the endpoint keeps too much of (STP-SEC-003); None if it does not."""
    config = endpoint.config
    connections = endpoint.connections
    held = len(connections)
    bounds = (
        ("alarms", len(endpoint._alarms), held),
        ("timers", len(endpoint._timers), 4 * held + _TIMERS_SLACK),
        ("used cookies", len(endpoint._cookies), config.used_cookies),
        ("addresses with void cookies", len(endpoint._cookies._void), config.used_cookies),
        ("cookies for calls", len(endpoint._machine.actions._jar), 8 * config.kept_cookies),
        ("connections with events", len(endpoint._eventful), 2 * config.max_connections),
    )
    for what, count, bound in bounds:
        if count > bound:
            return f"{count} {what} are kept, {bound} at most"
    for connection in connections.values():
        if (told := excess_of(connection)) is not None:
            return told
    return None


def excess_of(connection: Connection) -> str | None:
    """What a connection keeps beyond its windows and buffers; None if nothing."""
    config, sender, receiver = connection.config, connection.outgoing.sender, connection.receiver
    bounds = [
        ("SDs in flight", len(sender._kept), min(MOST_CREDIT, sender.vt_s - sender.vt_a)),
        ("SDs beyond the credit", sender.vt_s, max(sender.vt_ms, sender.iss + EARLY_CREDIT)),
        ("octets to send", sender.unsent, config.send_buffer),
        ("retransmissions", len(sender._queue), 4 * len(sender._kept) + 64),
        ("POLLs to measure", len(connection.outgoing.rtt._sent), 4096),
    ]
    if receiver is not None:
        bounds += [
            ("SDs held", len(receiver._held), config.credit),
            ("SDs held for the user", len(receiver._chunks), config.credit),
            ("SDs held altogether", len(receiver._held) + len(receiver._chunks), config.credit),
            ("numbers permitted", receiver.vr_mr - receiver.vr_r, config.credit),
            ("runs missing", len(receiver._starts), config.credit),
            ("USTATs waiting", len(receiver._waiting), config.credit),
        ]
    for what, count, bound in bounds:
        if count > bound:
            return f"a connection in state {int(connection.state)} has {count} {what} of {bound}"
    return None


def units(endpoint: StpEndpoint) -> int:
    """What the work for one packet may be proportional to: SDs in flight and held, and runs."""
    total = 0
    for connection in endpoint.connections.values():
        total += len(connection.outgoing.sender._kept)
        if connection.receiver is not None:
            total += len(connection.receiver._held) + len(connection.receiver._starts)
            total += len(connection.receiver._waiting)
    return total


class Meter:
    """Counts the lines of Python that are executed within it.

    A loop costs at least a line per turn, so that work which grows with a number named in a packet
    shows, on any machine alike.
    """

    def __init__(self) -> None:
        self.lines = 0
        self._before: Any = None

    def __enter__(self) -> Meter:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _enter(self, _frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._count

    def _count(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        self.lines += event == "line"
        return self._count


LINES_PER_PACKET, LINES_PER_UNIT = 3000, 60
"""Several times of what the costliest packet of long campaigns has taken, see the tests."""


def too_costly(lines: int, packets: int, units: int) -> bool:
    """STP-SEC-004: whether the work is out of proportion to the packets, in and out."""
    return lines > LINES_PER_PACKET + LINES_PER_UNIT * (units + 10 * packets)
