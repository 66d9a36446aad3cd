"""What the echo service has left to send back (section 11), as far as the packets show."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_conformance.protocols.stp.numbers import ECHO
from bentpipe_conformance.protocols.stp.replay.events import Event, ReportSent, SdHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow


def echoes(flow: Flow) -> bool:
    """Whether the IUT sends back what it receives on a connection."""
    return flow.service == ECHO and not flow.iut_calls


@dataclass(frozen=True, slots=True)
class Returned:
    """What the echo had sent back when it closed, and what it had received by then.

    Attributes:
        octets, received: how much of which.
        right: whether it returned what it had received, if perhaps not all.
        number: the tester's SD with the first octet that it did not return, None if there is none.
        in_time: whether everything up to that SD arrived in order, and before the SD with the FIN.
    """

    octets: int
    received: int
    right: bool
    number: int | None
    in_time: bool


def returned(flow: Flow, fin: int) -> Returned | None:
    """What the echo had returned when it closed, ``fin`` being the tester's SD with the FIN flag.

    None if the packets do not show all of it.
    """
    sender, receiver, own = flow.sender, flow.receiver, flow.own_fin
    if sender is None or receiver is None or own is None:
        return None
    if not all(number in sender.data for number in range(own.number + 1)):
        return None
    sent = b"".join(sender.data[number] for number in range(own.number + 1))
    stream = bytes(receiver.reception.stream)
    right = sent == stream or (stream.startswith(sent) and receiver.certain)
    first: dict[int, SdHeard] = {}
    for sd in flow.sds_heard:
        if sd.frame < own.frame and not (sd.beyond or sd.misfit):
            first.setdefault(sd.number, sd)
    octets, latest, in_order = 0, 0, fin in first
    for number in range(fin + 1):
        if number not in first:
            break
        frame = first[number].frame
        in_order = in_order and latest <= frame < first[fin].frame
        octets, latest = octets + len(first[number].stp.data), frame
        if octets > len(sent):
            return Returned(len(sent), len(stream), right, number, in_order)
    return Returned(len(sent), len(stream), right, None, False)


@dataclass(slots=True)
class Echo:
    """Octets that the IUT has received in sequence, and octets that it has sent first.

    ``sure`` turns False with an SD that it may have discarded; what it has acknowledged since, it
    has received all the same.
    """

    heard: int = 0
    echoed: int = 0
    sure: bool = True
    _acknowledged: int = 0
    _below: int = 0
    _following: int = 0
    _sizes: dict[int, int] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Count an event of the connection."""
        if isinstance(event, SdHeard):
            if event.beyond or event.misfit:
                self.sure = False
                return
            self._sizes.setdefault(event.number, len(event.stp.data))
            while self._following in self._sizes:
                self.heard += self._sizes[self._following]
                self._following += 1
        elif isinstance(event, SdSent) and event.new:
            self.echoed += len(event.stp.data)
        elif isinstance(event, ReportSent):
            while self._below < min(event.n_r, self._following):
                self._acknowledged += self._sizes[self._below]
                self._below += 1

    @property
    def left(self) -> bool:
        """Whether something surely awaits being sent back."""
        return self.echoed < (self.heard if self.sure else self._acknowledged)

    @property
    def done(self) -> bool:
        """Whether surely nothing does, of what has arrived."""
        return self.sure and 0 < self.heard <= self.echoed
