"""Checkers of isolation and exhaustion (PEP-FI section 10, PEP-RX section 11)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    CROWD,
    At,
    Context,
    allowed,
    of_relay,
    of_scene,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import (
    SERVED_S,
    ends_try,
    is_refused,
    is_served,
    is_up,
)
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.stream import Step
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN

HANDSHAKE_S = 1.0
REUSED_S = 240.0
AFTER_FLOOD_S = 60.0


@of_scene("PEP-FI-001")
def stalled_holds_up_nobody(scene: Scene, context: Context) -> Iterator[Finding]:
    """A stalled connection holds up nobody."""
    # Exercised by a receiver that does not read, beside other connections.
    stalled = {relay: at for relay in scene.relays if (at := _stalled(relay)) is not None}
    if not stalled:
        return
    since = min(stalled.values(), key=lambda it: it.packet.number)
    for relay in scene.relays:
        if relay in stalled or not ends_try(relay, since.packet.number):
            continue
        if any(not it.outgoing and not it.counts for leg in relay.legs for it in leg.segments):
            continue  # what it does not take may have ended it
        yield from is_served(relay, since, "while a receiver of another one does not read", context)


@of_relay("PEP-FI-004")
def handshake_beside_bulk(relay: Relay, context: Context) -> Iterator[Finding]:
    """A handshake does not queue behind bulk."""
    # Exercised by a connection that opens while another one fills the link.
    busy = [other for other in relay.scene.relays if other is not relay and _is_bulk(other, relay)]
    answer = relay.client.answered
    crowded = relay.scene.most_at_once > CROWD
    if not busy or crowded or relay.is_whole or is_refused(relay):
        return
    most = HANDSHAKE_S + 2 * max(busy[0].crossing_s, 0.0)
    took = None if answer is None else answer.time - relay.client.began
    if took is None and relay.scene.until - relay.client.began <= most:
        return
    if (took is None or took > most) and (
        relay.client.began <= relay.scene.quiet_since or _was_lost(relay)
    ):
        return
    yield judged(
        context, took is not None and took <= most,
        f"a connection opens in {took if took is not None else 0:.2f} s beside another one",
        At(answer or relay.client.packets[0]), expected=f"at most {most:.2f} s",
        actual="never" if took is None else f"{took:.2f} s",
    )  # fmt: skip


@of_relay("PEP-FI-005")
def full_pool_refuses(relay: Relay, context: Context) -> Iterator[Finding]:
    """A full pool refuses, it does not stall."""
    # Exercised by more connections than the box serves at once.
    most = int(context.ics.get("connections", 0))
    earlier = [
        it for it in relay.scene.relays if it.client.began < relay.client.began and is_up(it)
    ]
    if not most or len(earlier) < most:
        return
    if relay.client.answered is None or relay.resets(relay.client, by_box=True):
        if relay.scene.until - relay.client.began > 2.0:
            yield context.holds("one too many is not opened", At(relay.client.packets[0]))
        return
    if not any(stream.last is not None and stream.last.arrived for stream in relay.streams):
        return
    yield from is_served(relay, None, "beyond the limit, which is open", context)


@of_scene("PEP-FI-006")
def admitted_are_served(scene: Scene, context: Context) -> Iterator[Finding]:
    """Who was admitted is served."""
    # Exercised by ten connections at once.
    up = [relay for relay in scene.relays if is_up(relay) and not relay.is_whole]
    if len(up) < 10:
        return
    for relay in up:
        for leg in relay.legs:
            size = (leg.own.first.mss or 536) if leg.own.first is not None else 536
            if leg.box.first is None:
                continue
            room = max((it.edge or 0 for it in leg.segments if it.outgoing), default=0)
            yield judged(
                context, room >= 2 * size, f"{room} octets are permitted the {leg.side}",
                At(leg.packets[0]), expected=f"room for two segments of {size}", actual=str(room),
            )  # fmt: skip


@of_scene("PEP-RX-001")
def flood_stops_nothing(scene: Scene, context: Context) -> Iterator[Finding]:
    """A flood of SYNs stops nothing that is open."""
    # Exercised by fifty SYNs that nobody completes, beside a connection that is open.
    flood = _flood(scene)
    if len(flood) < CROWD:
        return
    for relay in scene.relays:
        if relay in flood or relay.client.began > flood[0].client.began:
            continue
        begin = relay.up.first(
            it for it in relay.up.steps if it.packet.number > flood[0].client.packets[0].number
        )  # fmt: skip
        if begin is not None and ends_try(relay, begin.packet.number):
            yield from is_served(relay, begin, "during a flood of SYNs", context)


@of_scene("PEP-RX-002")
def opens_after_flood(scene: Scene, context: Context) -> Iterator[Finding]:
    """After a flood connections open again."""
    # Exercised by connections that are opened after fifty SYNs that nobody has completed.
    flood = _flood(scene)
    if len(flood) < CROWD:
        return
    # A box may repeat its SYN-ACKs long after the last SYN.
    end = flood[-1].client.began
    later = [it for it in scene.relays if it not in flood and it.client.began > end]
    opened = next((it for it in later if it.client.answered and not is_refused(it)), None)
    if opened is not None and opened.client.answered is not None:
        when = opened.client.answered.time - end
        yield judged(
            context, when <= AFTER_FLOOD_S + allowed(opened, 0.0),
            f"a connection opens {when:.0f} s after a flood", At(opened.client.answered),
            expected=f"at most {AFTER_FLOOD_S:.0f} s", actual=f"{when:.0f} s",
        )  # fmt: skip
    elif later and scene.until - end > AFTER_FLOOD_S + 5.0:
        yield context.violated(
            "no connection opens after a flood of SYNs", At(later[0].client.packets[0]),
            expected=f"within {AFTER_FLOOD_S:.0f} s", actual="none",
        )  # fmt: skip


@of_scene("PEP-RX-005")
def limit_is_reached(scene: Scene, context: Context) -> Iterator[Finding]:
    """The limit that is declared is reached."""
    # Exercised by as many connections at once as the box declares.
    most = int(context.ics.get("connections", 0))
    asked = [relay for relay in scene.relays if not is_refused(relay) and not relay.is_whole][:most]
    if len(asked) < most or not most or len(_flood(scene)) >= CROWD:
        return
    served = [it for it in asked if is_up(it) and not it.resets(it.client, by_box=True)]
    last = asked[-1]
    if len(served) == most or watched(last, last.client.began, SERVED_S):
        yield judged(
            context, len(served) == most, f"{len(served)} connections are served at once",
            At(last.client.packets[0]), expected=str(most), actual=str(len(served)),
        )  # fmt: skip


@of_relay("PEP-RX-006")
def ports_start_anew(relay: Relay, context: Context) -> Iterator[Finding]:
    """Ports used again start a new stream."""
    # Exercised by a connection with the ports of an earlier one that carries octets.
    if _earlier(relay) is None:
        return
    for stream in relay.streams:
        wrong = stream.differs[0] if stream.differs is not None else stream.beyond
        if wrong is not None:
            yield context.violated(
                "octets that are not of this connection are delivered in it", wrong,
                expected="octets of its own", actual="others",
            )  # fmt: skip
        elif stream.last is not None and stream.last.relayed:
            yield context.holds("the new streams are new", stream.last)


@of_relay("PEP-RX-007")
def ports_used_again(relay: Relay, context: Context) -> Iterator[Finding]:
    """Ports used again are not refused for ever."""
    # Exercised by a client that goes on to call with the ports of a connection that has ended on
    # both sides.
    earlier = _earlier(relay)
    if earlier is None or not _has_ended(earlier):
        return
    since = earlier.packets[-1].time
    answer = relay.client.answered
    if answer is not None and is_up(relay):
        yield judged(
            context, answer.time - since <= REUSED_S + allowed(relay, 0.0),
            f"ports are used again after {answer.time - since:.0f} s", At(answer),
            expected=f"at most {REUSED_S:.0f} s", actual=f"{answer.time - since:.0f} s",
        )  # fmt: skip
    elif relay.scene.until - since > REUSED_S + 30.0:
        yield context.violated(
            "a connection with the ports of an earlier one does not open",
            At(relay.client.packets[0]), expected=f"within {REUSED_S:.0f} s", actual="never",
        )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _stalled(relay: Relay) -> Step | None:
    """When a receiver had permitted no more while octets waited, never to go on for 5 s."""
    for stream in relay.streams:
        for step in stream.steps:
            closed = 0 < step.outlet <= step.relayed + 1 and step.arrived > step.outlet + 10_000
            if closed and stream.last is not None and stream.last.time - step.time > 5.0:
                return step
    return None


def _was_lost(relay: Relay) -> bool:
    """Whether the box has called the server more than once: a queue beyond it overflows."""
    server = relay.server
    return (
        server is not None
        and sum(
            packet.outgoing and bool(packet.content and packet.content.flags & SYN)
            for packet in server.packets
        )
        > 1
    )


def _is_bulk(other: Relay, relay: Relay) -> bool:
    """Whether a connection carries octets when another one opens, and for 2 s before."""
    at, times = relay.client.began, other.octet_times
    return _within(times, at - 2.5, at - 1.5) and _within(times, at, at + 1.0)


def _within(times: Sequence[float], start: float, end: float) -> bool:
    """Whether one of them lies between two others."""
    return bisect_right(times, start) < bisect_left(times, end)


def _flood(scene: Scene) -> list[Relay]:
    """Connections of which nobody has completed the opening."""
    return [
        relay for relay in scene.relays
        if not any(
            not it.outgoing and it.counts and it.tcp.flags & (SYN | ACK) == ACK
            for it in relay.client.segments
        ) and not relay.resets(relay.client, by_box=False)
        and not any(
            not it.outgoing and it.tcp.flags & RST for leg in relay.calls for it in leg.segments
        ) and sum(not it.outgoing for it in relay.client.packets) == 1
    ]  # fmt: skip


def _has_ended(relay: Relay) -> bool:
    """Whether a connection has ended on both sides, or has failed there."""
    legs = relay.client, *relay.calls
    return all(
        leg.answered is None or leg.has_ended
        or any(it.tcp.flags & RST and (it.counts or it.doubtful) for it in leg.segments)
        for leg in legs
    )  # fmt: skip


def _earlier(relay: Relay) -> Relay | None:
    """The connection before with the same ports."""
    found = [
        it for it in relay.scene.relays
        if it.client.ends == relay.client.ends and it.client.began < relay.client.began
    ]  # fmt: skip
    return found[-1] if found else None
