"""Two faults that show how a round is written; they are in no round and do not count."""

from __future__ import annotations

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.pep.endpoint import End
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.relay import Relay


class NeverEnds(Relay):
    """A part replaced by a subclass."""

    def carry_end(self, source: End, sink: End, now: float) -> None:
        """See :class:`Relay`."""


def short_of_room(setup: Setup) -> Setup:
    """Settings changed."""
    return setup.endpoints(receive_buffer=4096)


FAULTS = [
    Fault(
        "pep-example-never-ends", "the end of a stream is not passed on", "PEP-RE-008",
        lambda setup: setup.with_part(NeverEnds),
    ),
    Fault(
        "pep-example-short-of-room", "holds less than it declares, if it opens early", "PEP-FB-001",
        short_of_room, setting="early",
    ),
]  # fmt: skip
