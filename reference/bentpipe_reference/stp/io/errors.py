"""What goes wrong outside the protocol, each as one sentence with the mend."""

from __future__ import annotations


class StpIoError(OSError):
    """An STP connection or its socket failed; the message is one sentence for the user."""


class StpRefused(StpIoError, ConnectionRefusedError):
    """The peer answered that it does not take the connection."""


class StpNoAnswer(StpIoError, TimeoutError):
    """The peer did not answer, or answers no longer."""


class StpAborted(StpIoError, ConnectionAbortedError):
    """The connection ended before both streams did."""
