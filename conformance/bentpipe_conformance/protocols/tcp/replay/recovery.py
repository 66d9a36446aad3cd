"""Loss-recovery episodes inferred from what an implementation sent.

The sender's variables are hidden; an episode is what an observer can be sure of: it starts with a
retransmission, and ends when everything outstanding at that moment is acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from bentpipe_conformance.protocols.tcp.codec import SYN
from bentpipe_conformance.protocols.tcp.replay.flow import Ack, Flow, Sent

PROMPT_S = 0.0003
"""A timer that expires by chance this soon after an arrival is unlikely: one in thirty, when a
satellite link delivers an acknowledgment every 9 ms."""


class Cause(StrEnum):
    """Why an episode's first retransmission left."""

    ACK = "acknowledgment"
    TIMEOUT = "timeout"
    REORDER_TIMER = "reordering timer"
    """RACK's reordering timer (RFC 8985 section 6.2 step 5): timed, but short."""
    PROBE_OR_TIMEOUT = "probe or timeout"
    """Only one segment was outstanding: a tail loss probe and a timeout look alike."""


@dataclass(slots=True, eq=False)
class Episode:
    """One loss-recovery episode.

    Attributes:
        cause: what started it.
        first: its first retransmission.
        trigger: the acknowledgment that started it, None for timers.
        flight: octets outstanding when it started (RFC 5681 FlightSize).
        recover: snd_max when it started; the episode ends when this is acknowledged.
        sent: what the IUT sent from ``first`` until the end.
        acks: acknowledgments that arrived after the trigger, the ending one included.
        end: the acknowledgment that reached ``recover``; None when the trace or a timeout ended it.
        interrupted: the timeout that cut it short.
        nested: it started while an earlier episode was not over.
    """

    cause: Cause
    first: Sent
    trigger: Ack | None
    flight: int
    recover: int
    nested: bool
    sent: list[Sent] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    end: Ack | None = None
    interrupted: Episode | None = None

    @property
    def fast(self) -> bool:
        """Whether acknowledgments (or RACK's timer), not a timeout, started it."""
        return self.cause in (Cause.ACK, Cause.REORDER_TIMER)

    @property
    def retransmissions(self) -> list[Sent]:
        """The retransmissions in it."""
        return [item for item in self.sent if item.retransmission]

    @property
    def partial_acks(self) -> list[Ack]:
        """Acknowledgments of new data below ``recover`` (RFC 6582 section 3.2)."""
        return [item for item in self.acks if item.advance and item.ack < self.recover]


def first_stamped(flow: Flow) -> dict[int, float]:
    """When each TSval of the IUT's first left; empty where timestamps were not negotiated."""
    found: dict[int, float] = {}
    if flow.handshake.timestamps:
        for packet in flow.packets:
            if packet.outgoing and packet.content is not None and packet.content.tsval is not None:
                found.setdefault(packet.content.tsval, packet.time)
    return found


@lru_cache(maxsize=2)
def minimum_rtt(flow: Flow) -> float:
    """The smallest round-trip time the IUT could measure, in seconds; 0.0 when unknown.

    Remembered for the flow at hand, because many checkers ask.

    Taken from the handshake, from data segments never retransmitted (Karn's rule) and from echoed
    timestamps.
    """
    samples = []
    established = flow.handshake.established
    opened = [p.time for p in flow.packets if p.outgoing and p.content and p.content.flags & SYN]
    # A repeated SYN or SYN-ACK does not tell which copy was answered.
    if established is not None and len(opened) == 1:
        samples.append(established - opened[0])
    first_sent: dict[int, float] = {}
    spoiled: set[int] = set()
    stamped = first_stamped(flow)
    for event in flow.events:
        if isinstance(event, Sent):
            if event.retransmission:
                spoiled.add(event.end)
            else:
                first_sent[event.end] = event.time
        elif isinstance(event, Ack) and event.advance:
            sent_at = first_sent.get(event.ack)
            if sent_at is not None and event.ack not in spoiled:
                samples.append(event.time - sent_at)
            echoed = event.packet.content.tsecr if event.packet.content is not None else None
            if echoed is not None and echoed in stamped:
                samples.append(event.time - stamped[echoed])
    return min(samples, default=0.0)


def read_episodes(flow: Flow) -> list[Episode]:
    """The recovery episodes of one flow, in order.

    A retransmission while an episode is running belongs to it, except that a timeout ends it and
    starts another. A tail loss probe (RFC 8985 section 7) of a segment that is not the earliest
    outstanding one starts none.
    """
    rtt = minimum_rtt(flow)
    episodes: list[Episode] = []
    current: Episode | None = None
    progress = news = 0.0
    last_sent: dict[int, float] = {}
    for event in flow.events:
        if isinstance(event, Ack):
            if event.advance:
                progress = event.time
            if event.advance or event.newly_sacked:
                news = event.time
            if current is not None:
                current.acks.append(event)
                if event.acceptable and event.ack >= current.recover:
                    current.end = event
                    current = None
        elif isinstance(event, Sent):
            if event.retransmission:
                cause = _cause(event, rtt, progress, news, last_sent.get(event.start, progress))
                timeout = cause in (Cause.TIMEOUT, Cause.PROBE_OR_TIMEOUT)
                starts = cause is not None and (current is None or timeout)
                if cause is not None and starts:
                    episode = Episode(
                        cause,
                        event,
                        event.cause,
                        event.flight,
                        event.max,
                        nested=current is not None,
                    )
                    if current is not None:
                        current.interrupted = episode
                    episodes.append(episode)
                    current = episode
            last_sent[event.start] = event.time
            if current is not None:
                current.sent.append(event)
    return episodes


def _may_have_met_an_arrival(sent: Sent) -> bool:
    """Whether it left late after an arrival that reports nothing, so that a timer may have sent it.

    On a busy connection something has always just arrived.
    """
    ack = sent.cause
    if ack is None or sent.start != sent.una or sent.since_arrival <= PROMPT_S:
        return False
    return not (ack.advance or ack.newly_sacked or ack.duplicate)


def _cause(
    sent: Sent, rtt: float, progress: float, news: float, sent_before: float
) -> Cause | None:
    expired = _may_have_met_an_arrival(sent) and sent.time - max(progress, sent_before) >= rtt > 0
    if not sent.timed and not expired:
        return Cause.ACK
    if sent.start != sent.una:
        return None
    # A retransmission timeout is never shorter than a round trip from the last transmission and
    # from the last progress; RACK's timer is at most a round trip after the report that set it.
    waited = sent.time - max(progress, sent_before)
    if sent.sacked and (waited < rtt or sent.time - news <= rtt / 4 + 0.01):
        return Cause.REORDER_TIMER
    if sent.end >= sent.max:
        return Cause.PROBE_OR_TIMEOUT
    return Cause.TIMEOUT
