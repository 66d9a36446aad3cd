"""Two faults that show how a round is written; they are in no round and do not count."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Segment


class ForgetsEveryTenth(Connection):
    """A part replaced by a subclass, with a state of its own."""

    _sent = 0

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`Connection`."""
        segments = super().transmit(now)
        for segment in segments:
            self._sent += 1
            if self._sent % 10 == 0:
                segment.window = 0
        return segments


def small_buffer(setup: Setup) -> Setup:
    """Settings changed, and a part that ignores them."""

    class Generous(Receiver):
        def free_room(self) -> int:
            return 1 << 20

    small = replace(setup.config, receive_buffer=8192)
    return replace(setup, config=small).with_part(Generous)


FAULTS = [
    Fault(
        "tcp-example-closed-window", "every tenth segment announces a window of zero",
        "RFC 9293 section 3.8.6", lambda setup: setup.with_part(ForgetsEveryTenth),
    ),
    Fault(
        "tcp-example-generous", "announces more room than there is, in the older profile",
        "RFC 9293 section 3.8.6.2.2", small_buffer, profile="hk99",
    ),
]  # fmt: skip
