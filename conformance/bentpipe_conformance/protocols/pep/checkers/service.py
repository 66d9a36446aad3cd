"""Whether a connection is served: what checkers of several groups ask."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import At, Context, watched
from bentpipe_conformance.protocols.pep.codec import Report
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Segment
from bentpipe_conformance.protocols.pep.replay.stream import Step
from bentpipe_conformance.protocols.tcp.codec import RST

SERVED_S = 30.0
"""Seconds in which octets pass any path that works."""


def ends_try(relay: Relay, number: int) -> bool:
    """Whether an end sends anything behind a packet."""
    return any(
        not it.outgoing and it.payload and it.packet.number > number
        for leg in (relay.client, *relay.calls) for it in leg.segments
    ) or relay.client.packets[0].number > number  # fmt: skip


def is_served(relay: Relay, since: Step | None, when: str, context: Context) -> Iterator[Finding]:
    """Whether a connection opens, and its streams are delivered."""
    if is_refused(relay) or relay.was_reset:
        return
    start = relay.client.began if since is None else max(since.time, relay.client.began)
    lacking = [
        stream for stream in relay.streams
        if stream.last is None or stream.last.relayed < stream.last.arrived
    ]  # fmt: skip
    where: tuple[At | Step | Segment, ...] = (At(relay.client.packets[0]),)
    if since is not None:
        where = (*where, since)
    ended = next(iter(relay.resets(relay.client, by_box=True)), None)
    if ended is not None:
        where = (ended, *where)
    if ended is not None and any(is_silent(leg, ended) for leg in relay.legs):
        return  # an end does not answer any more
    if relay.client.answered is not None and not lacking and ended is None:
        yield context.holds(f"a connection is served {when}", *where)
    elif (ended is not None and not relay.has_cause(ended)) or watched(relay, start, SERVED_S):
        yield context.violated(
            f"a connection is not served {when}", *where,
            expected="an open connection, and streams that are delivered",
            actual="a RST" if ended is not None else "streams that are not delivered"
            if relay.client.answered is not None else "no answer",
        )  # fmt: skip


def is_up(relay: Relay) -> bool:
    """Whether both ends have had the connection."""
    return relay.client.is_completed and (
        relay.server is not None and relay.server.answered is not None
    )


def is_refused(relay: Relay) -> bool:
    """Whether the server has refused it, or did not answer."""
    server = relay.server
    return server is not None and server.answered is None


def resets_of_box(relay: Relay) -> list[Segment]:
    """Resets of the box at both sides that count."""
    return [reset for leg in relay.legs for reset in relay.resets(leg, by_box=True)]


def is_silent(leg: Leg, until: Segment) -> bool:
    """Whether the end of a leg had left what the box had asked unanswered for 30 s."""
    before = [it for it in leg.segments if it.packet.number < until.packet.number]
    heard = max((it.time for it in before if not it.outgoing), default=leg.began)
    known = max((it.ack for it in before if not it.outgoing and it.ack is not None), default=0)
    asked = (
        it.time for it in before
        if it.outgoing and it.time > heard
        and (it.tcp.size or it.fin is not None or it.start < known)
    )  # fmt: skip
    return until.time - next(asked, until.time) > 30.0


def refusal_of(relay: Relay) -> Segment | None:
    """The RST that answers a call."""
    server = relay.server
    if server is None or server.answered is not None:
        return None
    resets = (it for it in server.segments if not it.outgoing and it.tcp.flags & RST and it.counts)
    return next(resets, None)


def report_of(relay: Relay) -> Report | None:
    """The ICMP message that answers a call."""
    server = relay.server
    if server is None or server.answered is not None:
        return None
    ends = server.ends
    found = relay.scene.reports
    return next(
        (it for it in found if not it.packet.outgoing and it.ends == ends and not it.too_big
         and it.seq == server.syn.seq),
        None,
    )  # fmt: skip
