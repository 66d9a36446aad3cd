"""Checkers of calls at the server's side (PEP-OP-003, -004, -010 and -011, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.checkers import (
    CROWD,
    HEARD_S,
    At,
    Context,
    allowed,
    of_relay,
    of_scene,
)
from bentpipe_conformance.protocols.pep.checkers.service import (
    SERVED_S,
    is_up,
    refusal_of,
    report_of,
)
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Packet, Segment
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN

WITHIN_S = 1.0
FIRST_S = (1.0, 3.0)
"""Seconds between the first two SYNs of a call."""
ALIKE = 5
"""Times of that length at most, before the time doubles."""
CAUSED_S = 0.5
"""Seconds in which a client's SYN may be the cause of a call."""
LONGEST_S = 60.0
"""The least that a timeout may be bounded by (RFC 6298 section 2, rule 2.5)."""
LEAST_CALLS = 3
"""SYNs of a client that goes on to call."""
TOLERANCE = 0.25
"""Of a time that doubles: clocks of kernels tick."""
QUEUES = 4.0
"""Seconds that a RST may take for the way, which no opening has shown."""


@of_relay("PEP-OP-003")
def one_call(relay: Relay, context: Context) -> Iterator[Finding]:
    """One connection for one connection."""
    # Exercised by a client that repeats its SYN, or whose call opens. One that has called with
    # these ports before may have to wait (PEP-RX-007).
    yield from _must_open(relay, context)
    first = relay.calls[0] if relay.calls else None
    syns = [
        packet for packet in relay.client.packets
        if packet.content and packet.content.flags & (SYN | ACK) == SYN and not packet.outgoing
    ]  # fmt: skip
    if first is None or (len(syns) < 2 and not is_up(relay)):
        return
    sent = [packet.data[20:] for packet in relay.client.packets if not packet.outgoing]
    again = next(
        (leg for leg in relay.calls[1:]
         if not _was_ended(relay, first, leg) and leg.packets[0].data[20:] not in sent),
        None,
    )  # fmt: skip
    if again is not None:
        yield context.violated(
            "the box calls the server twice for one connection", At(again.packets[0]),
            At(first.packets[0]), expected="one connection to the server", actual="two",
        )  # fmt: skip
    else:
        yield context.holds("one connection to the server for one of the client", At(syns[-1]))


def _must_open(relay: Relay, context: Context) -> Iterator[Finding]:
    """Whether a client that calls on and on gets its connection, where there is room for it."""
    client, scene = relay.client, relay.scene
    most = int(context.ics.get("connections", 0)) or CROWD
    if client.answered is not None or relay.is_whole or scene.most_at_once > min(most, CROWD):
        return
    asked = [it for it in client.packets if not it.outgoing]
    again = any(
        it.client.ends == client.ends and it.client.began < client.began for it in scene.relays
    )
    told = any(it.outgoing for it in client.packets) or any(
        it.packet.outgoing and it.packet.side == CLIENT for it in scene.reports
    )
    calls = all(it.content and it.content.flags & (SYN | ACK | RST | FIN) == SYN for it in asked)
    if again or told or not calls or len(asked) < LEAST_CALLS or _touched(relay):
        return
    server = relay.server
    if server is not None and server.answered is not None:
        what, since = "the server has answered, and its client is not", server.answered.time
    elif server is None:
        what, since = "a client calls again and again, and no server is called", client.began
    else:
        return
    begin = since if since > scene.quiet_since else max(since, scene.repaired_at)
    called = scene.until - asked[-1].time < SERVED_S
    if called and scene.until - begin > allowed(relay, SERVED_S):
        yield context.violated(
            what, At(asked[0]), At(asked[-1]), expected="one connection to the server, and an "
            "answer to the client", actual=f"neither, after {len(asked)} SYNs",
        )  # fmt: skip


def _touched(relay: Relay) -> bool:
    """Whether an end or a message has said that the call has failed."""
    return relay.was_reset or refusal_of(relay) is not None or report_of(relay) is not None


@of_scene("PEP-OP-004")
def nobody_for_nobody(scene: Scene, context: Context) -> Iterator[Finding]:
    """Nobody is called for nobody."""
    # Exercised by each call of the box.
    for leg in scene.orphans:
        yield context.violated(
            "the box calls a server for which no client has asked", At(leg.packets[0]),
            expected="no SYN without one of a client", actual="a SYN",
        )  # fmt: skip
    called = [leg for relay in scene.relays for leg in relay.calls]
    if called and not scene.orphans:
        yield context.holds("a client has asked for each server", At(called[0].packets[0]))


@of_relay("PEP-OP-010")
def server_is_called_again(relay: Relay, context: Context) -> Iterator[Finding]:
    """The server is called again."""
    # Exercised by a server that does not answer for 8 s.
    server = relay.server
    if server is None or relay.is_whole:
        return
    answered = [packet.time for packet in server.packets if not packet.outgoing]
    # Who has told the client that it has given up calls no more (PEP-OP-006), not even who has told
    # it so by a FIN, which is another fault (PEP-RE-003).
    given_up = [
        it.time for it in relay.client.segments
        if it.outgoing and it.counts and (it.tcp.flags & RST or it.fin is not None)
    ]  # fmt: skip
    until = min([relay.scene.until, *answered, *given_up])
    syns = [
        packet for packet in server.packets
        if packet.outgoing and packet.content and packet.content.flags & SYN
    ]  # fmt: skip
    pressed = relay.scene.most_at_once > CROWD
    if pressed or until - server.began < 8.0 or report_of(relay) or relay.was_reset:
        return
    times = [packet.time for packet in syns]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    waited = until - times[-1]
    overdue = waited > (2 * gaps[-1] if gaps else FIRST_S[1]) * (1 + TOLERANCE)
    good = bool(gaps) and _near(gaps[0], *FIRST_S) and _backs_off(gaps)
    waiting = until - times[0]
    shown = ", ".join(f"{gap:.1f}" for gap in gaps)
    yield judged(
        context, good and not overdue, f"the SYN is sent {len(times)} times in {waiting:.1f} s",
        *map(At, syns[:4]),
        expected=f"again after 1 s to 3 s, and the time doubling, at the latest after {ALIKE}",
        actual=f"after {shown or 'no'} s",
    )  # fmt: skip


@of_relay("PEP-OP-011")
def client_gives_up(relay: Relay, context: Context) -> Iterator[Finding]:
    """A client that gives up ends the call."""
    # Exercised by a client that resets before the server has answered.
    server = relay.server
    resets = relay.resets(relay.client, by_box=False)
    if server is None or server.answered is None or not resets:
        return
    if resets[0].packet.number > server.answered.number:
        return
    told = relay.resets(server, by_box=True)
    passes = _passes(relay, server.answered)
    if not told and passes:
        refused = _refused_by_client(relay, server, server.answered)
        if refused is not None:
            yield context.holds("the client refuses it itself", At(refused), resets[0])
        return
    again = None if passes else _answers_anew(relay, resets[0], context)
    if again is not None and (not told or again.number < told[0].packet.number):
        yield context.violated(
            "the client has given up, and its call is answered", At(again), resets[0],
            expected="nothing for the client, and a RST for the server", actual="a SYN-ACK",
        )  # fmt: skip
    elif told and told[0].time - server.answered.time <= allowed(relay, WITHIN_S):
        yield context.holds("the server gets a RST", told[0], resets[0])
    elif told or relay.scene.until - server.answered.time > WITHIN_S + QUEUES:
        yield context.violated(
            "the client has given up, and the server's connection is left open",
            At(server.answered), resets[0], expected="a RST", actual="none",
        )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _answers_anew(relay: Relay, reset: Segment, context: Context) -> Packet | None:
    """The SYN-ACK that a client gets, not before its RST can have been heard."""
    heard = reset.time + HEARD_S + context.timing_error
    return next(
        (it for it in relay.client.packets
         if it.outgoing and it.time > heard and it.content and it.content.flags & SYN),
        None,
    )  # fmt: skip


def _passes(relay: Relay, answer: Packet) -> bool:
    """Whether the box has no such call any more, and the server's answer goes to the client."""
    return any(
        it.outgoing and it.side == CLIENT and it.number > answer.number
        and it.data[20:] == answer.data[20:]
        for it in relay.scene.packets
    )  # fmt: skip


def _refused_by_client(relay: Relay, server: Leg, answer: Packet) -> Packet | None:
    """The RST of the client that has passed to the server behind an answer of that."""
    ends = server.ends
    return next(
        (it for it in relay.scene.packets
         if it.outgoing and it.side == SERVER and it.number > answer.number
         and it.content is not None and it.content.flags & RST
         and (it.content.src, it.content.sport, it.content.dst, it.content.dport) == ends),
        None,
    )  # fmt: skip


def _was_ended(relay: Relay, first: Leg, later: Leg) -> bool:
    """Whether a call had ended when another one began."""
    report = report_of(relay)
    if report is not None and report.packet.number < later.packets[0].number:
        return True
    ends = [it for it in first.segments if it.tcp.flags & RST]
    if later.ends == first.ends and first.answered is None:
        began = later.packets[0].time
        asked = any(
            not it.outgoing and began - CAUSED_S < it.time <= began for it in relay.client.packets
        )
        if began - first.began >= FIRST_S[1] and not asked:
            return True  # it was given up, and is tried anew
    # A SYN that has crossed the refusal of its predecessor is a new call.
    ends += relay.resets(relay.client, by_box=True)
    return any(it.packet.number < later.packets[0].number for it in ends)


def _backs_off(gaps: Sequence[float]) -> bool:
    """Whether times double, the first at most :data:`ALIKE` times staying the same.

    They need not become longer than :data:`LONGEST_S`.
    """
    alike = 1
    while alike < len(gaps) and _near(gaps[alike], gaps[0], gaps[0]):
        alike += 1
    return alike <= ALIKE and all(
        _near(later, min(2 * earlier, max(earlier, LONGEST_S)), 2 * earlier)
        for earlier, later in pairwise(gaps[alike - 1 :])
    )


def _near(gap: float, least: float, most: float) -> bool:
    return least * (1 - TOLERANCE) <= gap <= most * (1 + TOLERANCE)
