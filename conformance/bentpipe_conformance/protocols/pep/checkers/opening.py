"""Checkers of opening (PEP-OP, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.checkers import (
    CROWD,
    At,
    Context,
    all_octets,
    allowed,
    of_relay,
    of_scene,
    soon,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import SERVED_S, is_up
from bentpipe_conformance.protocols.pep.codec import Report
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Leg, Packet, Segment
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN

WITHIN_S = 1.0
EARLY_S = 0.1
FIRST_S = (1.0, 3.0)
"""Seconds between the first two SYNs of a call."""
ALIKE = 5
"""Times of that length at most, before the time doubles."""
LONGEST_S = 60.0
"""The least that a timeout may be bounded by (RFC 6298 section 2, rule 2.5)."""
LEAST_CALLS = 3
"""SYNs of a client that goes on to call."""
FINAL = (2, 3, 9, 10, 13)
"""Codes of "unreachable" that end a call: protocol, port, and three ways of being prohibited."""
TOLERANCE = 0.25
"""Of a time that doubles: clocks of kernels tick."""


@of_relay("PEP-OP-001")
def server_answers_first(relay: Relay, context: Context) -> Iterator[Finding]:
    """The server answers before the box does."""
    # Exercised by a client whose SYN is answered, with a server that answers, too.
    answer, server = relay.client.answered, relay.server
    if answer is None or relay.is_whole or server is None or server.answered is None:
        return
    yield judged(
        context, answer.number > server.answered.number,
        "the client's SYN is answered " + (
            "after the server's answer" if answer.number > server.answered.number
            else "before the server has answered"
        ), At(answer), expected="no SYN-ACK before that of the server", actual="an earlier one",
    )  # fmt: skip


@of_relay("PEP-OP-002")
def early_answer(relay: Relay, context: Context) -> Iterator[Finding]:
    """An early answer is early."""
    # Exercised by each connection that opens. In a flood a pair may lose calls for want of room,
    # which looks like a refusal of the server to the box that has answered for it.
    answer = relay.client.answered
    if relay.scene.most_at_once > CROWD:
        return
    again = any(
        it.client.ends == relay.client.ends and it.client.began < relay.client.began
        for it in relay.scene.relays
    )
    if answer is None or relay.is_whole or again or _was_refused_before(relay):
        return
    after = answer.time - relay.client.began
    yield judged(
        context, after <= EARLY_S + context.timing_error,
        f"the client is answered after {after:.3f} s", At(answer),
        expected=f"a SYN-ACK within {EARLY_S} s", actual=f"{after:.3f} s",
    )  # fmt: skip


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
    if watched(relay, since, SERVED_S) and scene.until - asked[-1].time < SERVED_S:
        yield context.violated(
            what, At(asked[0]), At(asked[-1]), expected="one connection to the server, and an "
            "answer to the client", actual=f"neither, after {len(asked)} SYNs",
        )  # fmt: skip


def _touched(relay: Relay) -> bool:
    """Whether an end or a message has said that the call has failed."""
    return relay.was_reset or _refusal(relay) is not None or _report(relay) is not None


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


@of_relay("PEP-OP-005")
def refusal_reaches_client(relay: Relay, context: Context) -> Iterator[Finding]:
    """A refusal reaches the client."""
    # Exercised by a server that refuses a connection.
    refusal = _refusal(relay)
    if refusal is None or relay.client.answered is not None:
        return
    yield from soon(
        refusal, _reset_of_client(relay, refusal), "a RST", WITHIN_S, relay, context,
        good="the client gets a RST",
        bad="the server has refused the connection, and the client is not told",
    )  # fmt: skip


@of_relay("PEP-OP-006")
def silence_is_no_answer(relay: Relay, context: Context) -> Iterator[Finding]:
    """Silence is not an answer."""
    # Exercised by a server that does not answer for 2 s.
    server = relay.server
    if server is None or any(not packet.outgoing for packet in server.packets):
        return
    answer = relay.client.answered
    if answer is not None:
        yield context.violated(
            "the client gets a SYN-ACK, and the server has not answered", At(answer),
            expected="no answer but a RST or an ICMP message", actual="a SYN-ACK",
        )  # fmt: skip
    elif relay.scene.until - relay.client.began > 2.0:
        yield context.holds("the client gets no SYN-ACK", At(server.packets[0]))


@of_relay("PEP-OP-007")
def unreachable_is_reported(relay: Relay, context: Context) -> Iterator[Finding]:
    """Unreachable servers are reported."""
    # Exercised by an ICMP message that answers the SYN of the box.
    report = _report(relay)
    if report is None:
        return
    told = _reset_of_client(relay, report)
    same = [
        it for it in relay.scene.reports
        if it.packet.outgoing and it.kind == report.kind and it.packet.side == "client"
    ]  # fmt: skip
    if told or same:
        yield context.holds("the client is told", told or same[0], report)
    elif watched(relay, report.time, 5.0) and not _may_go_on(relay, report):
        yield context.violated(
            "the server cannot be reached, and the client is not told", report,
            expected="a RST, or the ICMP message", actual="nothing",
        )  # fmt: skip


@of_relay("PEP-OP-008")
def failed_call_resets(relay: Relay, context: Context) -> Iterator[Finding]:
    """A failed call resets an early connection."""
    # Exercised by a server that refuses when the client's connection is open.
    cause = _refusal(relay) or _report(relay)
    answer = relay.client.answered
    if cause is None or answer is None or answer.number > cause.packet.number:
        return
    if any(it.packet.number < cause.packet.number for it in _own_resets(relay)):
        return  # there is nobody to be told
    if isinstance(cause, Report) and _may_go_on(relay, cause):
        return
    ended = next((it for it in relay.client.segments if it.outgoing and it.fin is not None), None)
    if ended is not None:
        yield context.violated(
            "the server has refused, and the client gets a FIN", ended, cause,
            expected="a RST and no FIN", actual="a FIN",
        )  # fmt: skip
        return
    yield from soon(
        cause, _reset_of_client(relay, cause), "a RST", WITHIN_S, relay, context,
        good="the client gets a RST",
        bad="the server has refused, and the client's connection is left open",
    )  # fmt: skip


@of_relay("PEP-OP-009")
def octets_before_the_answer(relay: Relay, context: Context) -> Iterator[Finding]:
    """What comes before the server answers is kept."""
    # Exercised by octets that the box acknowledges before the server has answered.
    server, stream = relay.server, relay.up
    if server is None or server.answered is None or stream.last is None or relay.is_whole:
        return
    number = server.answered.number
    before = [it for it in stream.steps if it.packet.number < number and it.taken]
    if not before or relay.was_reset:
        return
    taken = before[-1]
    yield from all_octets(
        stream.last.relayed, taken.taken, taken, context,
        missed=watched(relay, server.answered.time, 5.0),
        good="what came before the answer is relayed",
        bad=f"{taken.taken} octets were acknowledged before the server answered, and "
        f"{stream.last.relayed} are relayed",
    )  # fmt: skip


@of_relay("PEP-OP-010")
def server_is_called_again(relay: Relay, context: Context) -> Iterator[Finding]:
    """The server is called again."""
    # Exercised by a server that does not answer for 8 s.
    server = relay.server
    if server is None or relay.is_whole:
        return
    answered = [packet.time for packet in server.packets if not packet.outgoing]
    # Who has told the client that it has given up calls no more (PEP-OP-006).
    given_up = [reset.time for reset in relay.resets(relay.client, by_box=True)]
    until = min([relay.scene.until, *answered, *given_up])
    syns = [
        packet for packet in server.packets
        if packet.outgoing and packet.content and packet.content.flags & SYN
    ]  # fmt: skip
    pressed = relay.scene.most_at_once > CROWD
    if pressed or until - server.began < 8.0 or _report(relay) or relay.was_reset:
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
    if not told and _passes(relay, server.answered):
        refused = _refused_by_client(relay, server, server.answered)
        if refused is not None:
            yield context.holds("the client refuses it itself", At(refused), resets[0])
        return
    if told and told[0].time - server.answered.time <= allowed(relay, WITHIN_S):
        yield context.holds("the server gets a RST", told[0], resets[0])
    elif told or relay.scene.until - server.answered.time > WITHIN_S + QUEUES:
        yield context.violated(
            "the client has given up, and the server's connection is left open",
            At(server.answered), resets[0], expected="a RST", actual="none",
        )  # fmt: skip


QUEUES = 4.0
"""Seconds that a RST may take for the way, which no opening has shown."""


@of_relay("PEP-OP-012")
def data_on_syn(relay: Relay, context: Context) -> Iterator[Finding]:
    """Data on a SYN is not lost."""
    # Exercised by a client whose SYN has octets.
    answer, stream = relay.client.answered, relay.up
    syn = next((it for it in relay.client.segments if not it.outgoing and it.tcp.flags & SYN), None)
    if answer is None or relay.is_whole or syn is None or not syn.payload or stream.last is None:
        return
    steps = [it for it in stream.steps if it.packet.number >= answer.number and it.inlet]
    taken = steps[0].taken if steps else 0
    if stream.differs or stream.beyond:
        at = stream.differs[0] if stream.differs else stream.beyond
        assert at is not None
        yield context.violated(
            "the octets of the SYN are lost or doubled", at, syn,
            expected="the stream from its first octet on", actual="other octets",
        )  # fmt: skip
    elif taken and stream.last.relayed < taken and watched(relay, answer.time, 5.0):
        yield context.violated(
            "octets of the SYN are acknowledged and not relayed", At(answer), syn,
            expected=f"{taken} octets", actual=f"{stream.last.relayed}",
        )  # fmt: skip
    elif stream.last.relayed >= len(syn.payload):
        yield context.holds("the octets of the SYN are relayed", syn)


@of_relay("PEP-OP-013")
def server_speaks_first(relay: Relay, context: Context) -> Iterator[Finding]:
    """A server that speaks first is heard."""
    # Exercised by a server that sends before the client has.
    stream = relay.down
    if stream is None or stream.last is None or relay.is_whole or relay.client.answered is None:
        return
    first = stream.first(it for it in stream.steps if it.arrived)
    said = relay.up.first(it for it in relay.up.steps if it.arrived)
    if first is None or (said is not None and said.packet.number < first.packet.number):
        return
    if relay.was_reset:
        return
    yield from all_octets(
        stream.last.relayed, first.arrived, first, context,
        missed=watched(relay, first.time, 5.0) and stream.last.outlet > 0,
        good="the client gets what the server has said first",
        bad="the server has spoken first, and the client does not get it",
    )  # fmt: skip


@of_relay("PEP-SEC-005")
def scanner_learns_once(relay: Relay, context: Context) -> Iterator[Finding]:
    """A scanner learns nothing twice."""
    # Exercised by a second client that calls a port which has been refused in the last minute.
    if not _was_refused_before(relay):
        return
    answer, server = relay.client.answered, relay.server
    if answer is None:
        if relay.scene.until - relay.client.began > 0.5:
            yield context.holds("the second caller is not answered", At(relay.client.packets[0]))
        return
    late = server is not None and server.answered is not None
    after = late and server is not None and server.answered is not None and (
        answer.number > server.answered.number
    )  # fmt: skip
    yield judged(
        context, bool(after), "a port that has been refused is answered", At(answer),
        expected="no SYN-ACK before that of the server", actual="an early one",
    )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _own_resets(relay: Relay) -> list[Segment]:
    """Resets of the client that count, or may."""
    return [
        it for it in relay.client.segments
        if not it.outgoing and it.tcp.flags & RST and (it.counts or it.doubtful)
    ]  # fmt: skip


def _refusal(relay: Relay) -> Segment | None:
    """The RST that answers a call."""
    server = relay.server
    if server is None or server.answered is not None:
        return None
    resets = (it for it in server.segments if not it.outgoing and it.tcp.flags & RST and it.counts)
    return next(resets, None)


def _report(relay: Relay) -> Report | None:
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


def _reset_of_client(relay: Relay, cause: Segment | Report) -> Segment | None:
    resets = relay.resets(relay.client, by_box=True)
    return next((it for it in resets if it.packet.number > cause.packet.number), None)


def _may_go_on(relay: Relay, report: Report) -> bool:
    """Whether the box goes on with a call that a message leaves hope for (RFC 9293, 3.9.2.2)."""
    return report.kind[1] not in FINAL and _calls_on(relay, report)


def _calls_on(relay: Relay, report: Report) -> bool:
    """Whether the box goes on with the call, or calls again without being asked again."""
    asked = [
        packet.number for packet in relay.client.packets
        if not packet.outgoing and packet.number > report.packet.number
    ]  # fmt: skip
    return any(
        packet.outgoing and report.packet.number < packet.number < min(asked, default=1 << 62)
        for leg in relay.calls for packet in leg.packets
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
    report = _report(relay)
    if report is not None and report.packet.number < later.packets[0].number:
        return True
    ends = [it for it in first.segments if it.tcp.flags & RST]
    # A SYN that has crossed the refusal of its predecessor is a new call.
    ends += relay.resets(relay.client, by_box=True)
    return any(it.packet.number < later.packets[0].number for it in ends)


def _was_refused_before(relay: Relay) -> bool:
    """Whether a call of the same server and port was refused in the minute before."""
    for other in relay.scene.relays:
        refusal = _refusal(other)
        same = other.client.ends[2:] == relay.client.ends[2:]
        if other is not relay and same and refusal is not None:
            since = relay.client.began - refusal.time
            if 0 < since < 60.0 and since > allowed(other, 0.0):
                return True
    return False


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
