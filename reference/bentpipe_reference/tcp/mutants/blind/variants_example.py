"""Two variants that show how a round of what is permitted is written; they are in no round."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.blind import Variant
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.receiver import Receiver


class AcknowledgesAll(Receiver):
    """A part replaced by a subclass."""

    def should_ack_now(self, *, in_order: bool, gap: bool) -> bool:
        """See :class:`Receiver`."""
        return True


def three_segments(setup: Setup) -> Setup:
    """Settings changed."""
    return replace(setup, config=replace(setup.config, initial_window_segments=3))


VARIANTS = [
    Variant(
        "tcp-example-acknowledges-all", "acknowledges every segment at once",
        "RFC 5681 section 4.2", lambda setup: setup.with_part(AcknowledgesAll),
    ),
    Variant(
        "tcp-example-three-segments", "begins with three segments",
        "RFC 6928 section 2", three_segments, ics={"initial_window_segments": 3},
    ),
]  # fmt: skip
