"""The one exception of the bed."""

from __future__ import annotations

from bentpipe_conformance.engine.lane import LaneError


class BedError(LaneError):
    """The bed, not the implementation under test, failed.

    The message is one sentence for the user that says what is wrong and, where one exists, the
    command that mends it.
    """
