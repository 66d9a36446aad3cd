"""The end of a conversation: what is left of it falls silent, and others are served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_conformance.engine.codec import MalformedPacket
from bentpipe_conformance.engine.lane import Port
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.probe import ECHO_TEXT, Interview

REFUSING_S = 1000.0
"""Seconds for which the tester, having forgotten a conversation, refuses what it gets of it: longer
than a retransmission timer or STP's keep-alive lasts and than a host waits in TIME-WAIT."""

LISTENING_S = 1000.0
"""Seconds after these in which nothing may come."""

MOST_REFUSED = 1000
"""Packets that are refused; after as many, the end without silence is certain."""

_TRIES = 3
"""How often a new connection is tried before the implementation is held not to serve."""


def not_quiet(
    port: Port, dissect: Callable[[bytes], Any], refuse: Callable[[Any], bytes | None]
) -> str:
    """What still comes long after the tester has refused everything; empty when nothing does."""
    deadline = port.now() + REFUSING_S
    for _ in range(MOST_REFUSED):
        item = port.receive(deadline)
        if item is None:
            break
        try:
            answer = refuse(dissect(item[1]))
        except MalformedPacket:
            continue
        if answer is not None:
            port.send(answer)
    late = port.receive(deadline + LISTENING_S)
    if late is None:
        return ""
    return f"a packet came {late[0] - deadline + REFUSING_S:.0f} s after the end of a conversation"


def not_served(interview: Interview[Any]) -> str:
    """Why a new connection is not served; empty when it is."""
    why = ""
    for _ in range(_TRIES):
        try:
            returned = interview.echo(interview.open("echo"))
        except NotReached as error:
            why = f"afterwards the echo service does not serve: {error}"
            continue
        return "" if returned == ECHO_TEXT else "afterwards the echo service sends other octets"
    return why
