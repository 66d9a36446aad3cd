"""Checkers of opening, as far as the client sees it (PEP-OP, section 5; PEP-SEC-005)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.pep.checkers import (
    CROWD,
    At,
    Context,
    all_octets,
    allowed,
    of_relay,
    soon,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import refusal_of, report_of
from bentpipe_conformance.protocols.pep.codec import Report
from bentpipe_conformance.protocols.pep.replay.flow import Relay
from bentpipe_conformance.protocols.pep.replay.leg import Segment
from bentpipe_conformance.protocols.tcp.codec import RST, SYN

WITHIN_S = 1.0
EARLY_S = 0.1
FINAL = (2, 3, 9, 10, 13)
"""Codes of "unreachable" that end a call: protocol, port, and three ways of being prohibited."""


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


@of_relay("PEP-OP-005")
def refusal_reaches_client(relay: Relay, context: Context) -> Iterator[Finding]:
    """A refusal reaches the client."""
    # Exercised by a server that refuses a connection.
    refusal = refusal_of(relay)
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
    report = report_of(relay)
    if report is None or any(it.packet.number < report.packet.number for it in _own_resets(relay)):
        return  # or there is nobody to be told
    told = _reset_of_client(relay, report)
    same = [
        it for it in relay.scene.reports
        if it.packet.outgoing and it.kind == report.kind and it.packet.side == "client"
    ]  # fmt: skip
    if told or same:
        yield context.holds("the client is told", told or same[0], report)
    elif _may_go_on(relay, report):
        yield context.holds("the message leaves hope, and the box goes on with the call", report)
    elif watched(relay, report.time, 5.0):
        yield context.violated(
            "the server cannot be reached, and the client is not told", report,
            expected="a RST, or the ICMP message", actual="nothing",
        )  # fmt: skip


@of_relay("PEP-OP-008")
def failed_call_resets(relay: Relay, context: Context) -> Iterator[Finding]:
    """A failed call resets an early connection."""
    # Exercised by a server that refuses when the client's connection is open.
    cause = refusal_of(relay) or report_of(relay)
    answer = relay.client.answered
    if cause is None or answer is None or answer.number > cause.packet.number:
        return
    if any(it.packet.number < cause.packet.number for it in _own_resets(relay)):
        return  # there is nobody to be told
    if isinstance(cause, Report) and _may_go_on(relay, cause):
        return
    ended = next((it for it in relay.client.segments if it.outgoing and it.fin is not None), None)
    if ended is not None and ended.packet.number < cause.packet.number:
        return  # the box had given the call up before, which is another fault (PEP-RE-003)
    what = "cannot be reached" if isinstance(cause, Report) else "has refused"
    if ended is not None:
        yield context.violated(
            f"the server {what}, and the client gets a FIN", ended, cause,
            expected="a RST and no FIN", actual="a FIN",
        )  # fmt: skip
        return
    if isinstance(cause, Report) and _calls_on(relay, cause):
        return  # that the call fails by a message is advice (PEP-OP-007)
    yield from soon(
        cause, _reset_of_client(relay, cause), "a RST", WITHIN_S, relay, context,
        good="the client gets a RST",
        bad=f"the server {what}, and the client's connection is left open",
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


@of_relay("PEP-OP-012")
def data_on_syn(relay: Relay, context: Context) -> Iterator[Finding]:
    """Data on a SYN is not lost."""
    # Exercised by a client whose SYN has octets, or a server whose answer has.
    for stream in relay.streams:
        syn = next(
            (it for it in stream.source.segments
             if not it.outgoing and it.tcp.flags & SYN and it.payload and it.counts),
            None,
        )  # fmt: skip
        if syn is None or stream.last is None or stream.source.answered is None:
            continue
        steps = (
            it
            for it in stream.steps
            if it.inlet and it.by_box and it.packet.number > syn.packet.number
        )
        first = next(steps, None)
        taken = 0 if first is None else first.taken
        if stream.differs or stream.beyond:
            at = stream.differs[0] if stream.differs else stream.beyond
            assert at is not None
            yield context.violated(
                "the octets of the SYN are lost or doubled", at, syn,
                expected="the stream from its first octet on", actual="other octets",
            )  # fmt: skip
        elif first and stream.last.relayed < taken and watched(relay, first.time, 5.0):
            yield context.violated(
                "octets of the SYN are acknowledged and not relayed", first, syn,
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


def _was_refused_before(relay: Relay) -> bool:
    """Whether a call of the same server and port was refused in the minute before."""
    for other in relay.scene.relays:
        refusal = refusal_of(other)
        same = other.client.ends[2:] == relay.client.ends[2:]
        if other is not relay and same and refusal is not None:
            since = relay.client.began - refusal.time
            if 0 < since < 60.0 and since > allowed(other, 0.0):
                return True
    return False
