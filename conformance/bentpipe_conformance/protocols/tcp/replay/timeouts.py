"""What the retransmission timer did, as far as an observer can be sure of it.

An *expiry* is a retransmission that no arrival explains. Not every one is a timeout: a tail loss
probe repeats the last segment (RFC 8985 section 7), and RACK's reordering timer repeats what SACK
blocks have shown lost (RFC 8985 section 6.2). Both need SACK; an expiry that could be either is not
*certain*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from bentpipe_conformance.protocols.tcp.codec import ACK, SYN
from bentpipe_conformance.protocols.tcp.replay.events import Ack, Arrival, Segment, Sent
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.option_list import options_length
from bentpipe_conformance.protocols.tcp.replay.order import count_before, latest_first
from bentpipe_conformance.protocols.tcp.replay.pacing import PACED_S
from bentpipe_conformance.protocols.tcp.replay.round_trips import measurements


@dataclass(slots=True, eq=False)
class Expiry:
    """A retransmission that a timer sent.

    Attributes:
        sent: the retransmission.
        certain: it can only be the retransmission timer's.
        tail: it repeats the last segment sent, as far as more options than that had leave room.
        rank: how many expiries in a row for this data since the last progress, from 1.
        interval: seconds since the certain expiry before it in that row; None for the first.
        since_transmission: seconds since its data was last sent.
        since_progress: seconds since data was newly acknowledged, or first became outstanding.
        progress: the acknowledgment of that progress, None when there was none.
        since_arrival: seconds since anything reached the implementation.
        flight: octets outstanding when the first of the row expired.
        samples, rtt, longest_rtt: number, smallest and largest of the round trips measured before.
    """

    sent: Sent
    certain: bool
    tail: bool
    rank: int
    interval: float | None
    since_transmission: float
    since_progress: float
    progress: Ack | None
    since_arrival: float
    flight: int
    samples: int
    rtt: float
    longest_rtt: float

    @property
    def head(self) -> bool:
        """Whether it repeats the earliest outstanding data."""
        return self.sent.start == self.sent.una


def read_expiries(flow: Flow, at_once: bool) -> tuple[Expiry, ...]:
    """The expiries of one flow, in order; probes of a closed window are left out.

    So is what is the first to use the window after such a probe, which has left in part before.

    ``at_once`` says that no pacing delays what an acknowledgment permits; else what follows an
    arrival within a round trip, or progress within :data:`PACED_S` where there are signs of a loss,
    is not certain to be a timeout.
    """
    measured = measurements(flow)
    found: list[Expiry] = []
    row: dict[int, list[Expiry]] = {}
    ending: Sent | None = None
    progress: Ack | None = None
    progressed = arrived = 0.0
    edge: int | None = None
    permitted = 0  # the end of what has left within the window
    transmitted: dict[int, float] = {}
    delivered = 0.0
    for event in flow.events:
        if isinstance(event, Ack | Arrival):
            arrived = event.time
        if isinstance(event, Ack) and event.acceptable:
            edge = event.window_edge
            if event.advance:
                progress, progressed, row = event, event.time, {}
                delivered = max(delivered, _forget(transmitted, event.ack))
        elif isinstance(event, Sent):
            edge = event.window_edge if edge is None else edge  # that of the SYN-ACK
            if event.max == event.una:
                progress, progressed, row = None, event.time, {}
            again = event.retransmission and event.start < permitted
            if again and event.timed and edge > event.una:
                same = row.setdefault(event.start, [])
                before = same[-1] if same and same[-1].certain else None
                last_sent = _last_sent(event, transmitted, flow, progressed)
                signs = bool(event.sacked or event.duplicates or last_sent < delivered)
                tail = _repeats_the_last(event, ending)
                probe = flow.handshake.sack and tail and not same
                trips = measured.before(event.packet.number)
                samples = measured.samples(event.packet.number)
                silent = event.time - arrived
                # RACK's timer is no longer than its reordering window, at most a smoothed round
                # trip; it needs signs that something sent later has been delivered.
                reordering = signs and (not samples or silent <= 1.5 * trips.largest)
                since_progress = event.time - progressed
                put_off = signs and since_progress < PACED_S
                paced = not at_once and (put_off or silent <= trips.largest)
                expiry = Expiry(
                    sent=event,
                    certain=event.start == event.una and not (probe or reordering or paced),
                    tail=tail,
                    rank=len(same) + 1,
                    interval=event.time - before.sent.time if before else None,
                    since_transmission=event.time - last_sent,
                    since_progress=since_progress,
                    progress=progress,
                    since_arrival=silent,
                    flight=same[0].flight if same else event.flight,
                    samples=samples,
                    rtt=trips.smallest,
                    longest_rtt=trips.largest,
                )
                same.append(expiry)
                found.append(expiry)
            elif event.start == event.una and event.retransmission:
                row = {}
            if event.start < edge:
                permitted = max(permitted, event.end)
            transmitted[event.start] = event.time
            if event.end >= event.max:
                ending = event
    return tuple(found)


def _forget(transmitted: dict[int, float], ack: int) -> float:
    """When what an acknowledgment covers was last sent, and leave it out from now on."""
    latest = 0.0
    for start in list(takewhile(lambda at: at < ack, transmitted)):
        latest = max(latest, transmitted.pop(start))
    return latest


def _last_sent(
    again: Sent, transmitted: Mapping[int, float], flow: Flow, otherwise: float
) -> float:
    """When the first octet of a retransmission was last sent, wherever that segment began."""
    if again.start in transmitted:
        return transmitted[again.start]
    earlier = latest_first(flow.sent, count_before(flow.sent, again.packet.number))
    covering = (item for item in earlier if item.start <= again.start < item.end)
    return next((item.time for item in covering), otherwise)


def _repeats_the_last(again: Sent, last: Sent | None) -> bool:
    """Whether a retransmission repeats the segment that ends the flight, but for further options.

    What reports data held takes room from the data (RFC 9293 section 3.7.1): the repetition, in a
    segment as long, ends sooner, and a queue cut anew may let it begin sooner.
    """
    if again.end >= again.max:
        return True
    if last is None or not again.start <= last.start < again.end:
        return False
    taken = options_length(again.packet) - options_length(last.packet)
    return taken > 0 and again.payload + taken >= last.payload


def timed_syn_acks(flow: Flow) -> list[Segment]:
    """The SYN-ACK and its repetitions, up to one that may answer a repeated SYN.

    Empty when the implementation opened the connection itself.
    """
    found: list[Segment] = []
    asked = 0
    opening = (item for item in flow.packets if item.content and item.content.flags & SYN)
    for segment in map(Segment, opening):
        flags = segment.tcp.flags
        if segment.packet.outgoing:
            if not flags & ACK:
                return []
            if found and asked > 1:
                break
            found.append(segment)
        elif found:
            break
        else:
            asked += 1
    return found
