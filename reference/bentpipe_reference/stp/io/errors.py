"""Errors outside the protocol, each one sentence that names the remedy."""

from __future__ import annotations


class StpIoError(OSError):
    """An STP connection or its socket failed; the message is one sentence for the user."""


class StpRefused(StpIoError, ConnectionRefusedError):
    """The peer refused the connection."""


class StpNoAnswer(StpIoError, TimeoutError):
    """The peer did not answer, or stopped answering."""


class StpAborted(StpIoError, ConnectionAbortedError):
    """The connection ended before both streams did."""
