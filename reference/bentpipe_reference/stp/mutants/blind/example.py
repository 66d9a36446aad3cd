"""Two faults that show how a round is written; they are in no round and do not count."""

from __future__ import annotations

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.setup import Setup


class CountsPollsTwice(Sender):
    """A part replaced by a subclass."""

    def take_poll(self) -> int:
        """See :class:`Sender`."""
        super().take_poll()
        return super().take_poll()


def impatient(setup: Setup) -> Setup:
    """A constant of a part changed, and a setting."""

    class Impatient(Polling):
        no_response_s = 5.0

    return setup.with_part(Impatient).configured(initial_window=2)


FAULTS = [
    Fault(
        "stp-example-poll-numbers", "counts every POLL twice", "STP-PL-006",
        lambda setup: setup.with_part(CountsPollsTwice),
    ),
    Fault(
        "stp-example-impatient", "gives a silent peer up after 5 s, on a limited rate",
        "STP-PL-008", impatient, setting="max-rate",
    ),
]  # fmt: skip
