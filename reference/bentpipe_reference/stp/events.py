"""What a connection reports to its user and to a trace."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any

from bentpipe_reference.stp.packets import Reason

TraceSink = Callable[[dict[str, Any]], None]
"""Takes one protocol event, see :mod:`bentpipe_reference.stp.tracing`."""


class Events(IntFlag):
    """What has happened on a connection since its user last asked."""

    NONE = 0
    ACCEPTED = auto()
    """A peer's call has been accepted; the connection is new to the user."""
    OPENED = auto()
    """Our call has been accepted."""
    READABLE = auto()
    """Data can be read."""
    WRITABLE = auto()
    """There is room again after a write that was taken only in part."""
    END_OF_STREAM = auto()
    """The peer's FIN has been delivered; what is readable is the last data (STP-CC-004)."""
    ENDED = auto()
    """Both streams are complete and acknowledged (STP-CC-005)."""
    FAILED = auto()
    """The connection failed; unacknowledged data may be lost (STP-CC-006)."""


class StreamError(Exception):
    """The stream takes no more data: its user has closed it, or the connection is over."""


_REFUSALS: dict[int, str] = {
    Reason.NOT_LISTENING: "nobody listens on the peer's port",
    Reason.VERSION: "the peer does not support version 2",
    Reason.RESOURCES: "the peer has no room for another connection",
    Reason.COOKIE: "the peer does not take the cookies that it gives",
}
_ENDS: dict[int, str] = {
    Reason.NONE: "the peer released the connection before both streams were through",
    Reason.NO_CONNECTION: "the peer no longer knows the connection",
    Reason.RESOURCES: "the peer ran out of room",
    Reason.NO_ANSWER: "the peer got no answers and gave up",
}


def refusal_text(reason: int) -> str:
    """Why a call was refused, from the reason of a BGREJ; others count as 1 (section 3.4)."""
    return _REFUSALS.get(reason, "the peer refused")


def abort_text(reason: int) -> str:
    """Why the peer ended a connection, from the reason of an END."""
    return _ENDS.get(reason, "the peer aborted the connection")
