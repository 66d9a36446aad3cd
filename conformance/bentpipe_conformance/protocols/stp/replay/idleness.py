"""SDs that left while lack of data or credit held the IUT back, and not its window (STP-CG-010).

Credit is seen on the wire. Data is seen where the IUT echoes: it cannot send what it has not
received. Where neither shows a lack, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from bentpipe_conformance.protocols.stp.ports import ECHO
from bentpipe_conformance.protocols.stp.replay.events import SdHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow


def idle_flights(flow: Flow) -> Mapping[int, int]:
    """Octets in flight with each SD sent once after which none could follow, by its count."""
    found: dict[int, int] = {}
    heard = _InOrder()
    echoed = 0
    for event in flow.events:
        if isinstance(event, SdHeard):
            heard.take(event.number, len(event.stp.data))
        elif isinstance(event, SdSent) and event.new:
            echoed += len(event.stp.data)
            no_data = flow.service == ECHO and not flow.iut_calls and echoed >= heard.octets
            if no_data or event.number + 1 >= event.vt_ms:
                found[event.number] = event.flight_with
        elif isinstance(event, SdSent):
            found.pop(event.number, None)
    return found


class _InOrder:
    """Octets received in sequence."""

    def __init__(self) -> None:
        self.octets = 0
        self._next = 0
        self._held: dict[int, int] = {}

    def take(self, number: int, octets: int) -> None:
        self._held.setdefault(number, octets)
        while self._next in self._held:
            self.octets += self._held[self._next]
            self._next += 1
