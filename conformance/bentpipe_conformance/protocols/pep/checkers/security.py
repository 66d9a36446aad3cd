"""Checkers of security considerations (PEP-SEC, section 12)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bentpipe_conformance.engine.context import judged
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.pep.checkers import (
    At,
    Context,
    Timed,
    allowed,
    of_relay,
    of_scene,
    watched,
)
from bentpipe_conformance.protocols.pep.checkers.service import ends_try, is_served, is_up
from bentpipe_conformance.protocols.pep.codec import Report
from bentpipe_conformance.protocols.pep.replay.flow import Relay, Scene
from bentpipe_conformance.protocols.pep.replay.leg import Packet, Segment
from bentpipe_conformance.protocols.tcp.codec import MODULUS, RST, SYN

ANSWERS_S = 10.0
"""Seconds within which a client is answered when its server has."""
GIVES_UP_S = 5.0
"""Seconds: a call that fails later has failed because nobody answered."""


@of_relay("PEP-SEC-001")
def guessed_reset(relay: Relay, context: Context) -> Iterator[Finding]:
    """A guessed reset ends nothing."""
    # Exercised by a RST whose number is not the next one, on either side.
    guesses = [
        it for leg in relay.legs for it in leg.segments
        if not it.outgoing and it.tcp.flags & RST and not it.counts and not it.doubtful
    ]  # fmt: skip
    yield from _ends_nothing(relay, guesses, "a RST with another number", context)


@of_relay("PEP-SEC-002")
def guessed_syn(relay: Relay, context: Context) -> Iterator[Finding]:
    """A guessed SYN ends nothing."""
    # Exercised by a SYN with another number on an open connection, on either side.
    guesses = [
        it for leg in relay.legs for it in leg.segments
        if not it.outgoing and it.tcp.flags & SYN and not it.counts
    ]  # fmt: skip
    yield from _ends_nothing(relay, guesses, "a SYN with another number", context)


@of_relay("PEP-SEC-003")
def guessed_data(relay: Relay, context: Context) -> Iterator[Finding]:
    """Guessed data is not relayed."""
    # Exercised by octets outside the window, or that come with an acknowledgment of the unsent.
    for stream in relay.streams:
        guesses = [
            it for it in stream.source.segments
            if not it.outgoing and it.payload and not it.counts and not it.tcp.flags & (SYN | RST)
        ]  # fmt: skip
        if not guesses:
            continue
        wrong = stream.differs[0] if stream.differs is not None else stream.beyond
        if wrong is not None:
            yield context.violated(
                "guessed octets are relayed", wrong, guesses[0],
                expected="octets of the stream only", actual="others",
            )  # fmt: skip
        elif relay.scene.until - guesses[-1].time > allowed(relay, 1.0):
            yield context.holds("guessed octets are not relayed", guesses[0])


@of_relay("PEP-SEC-004")
def guessed_message(relay: Relay, context: Context) -> Iterator[Finding]:
    """A guessed ICMP message ends nothing."""
    # Exercised by an ICMP message that quotes a number which is not outstanding.
    found = []
    shrunk: list[tuple[Report, str, Segment]] = []
    valid: dict[str, int] = {}
    for report in relay.scene.reports:
        for stream in relay.streams:
            sink = stream.sink
            if report.packet.outgoing or sink is None or report.packet.side != sink.side:
                continue
            ends = sink.ends if sink.side == "server" else (*sink.ends[2:], *sink.ends[:2])
            before = [it for it in sink.segments if it.packet.number < report.packet.number]
            first = sink.box.first
            if report.ends != ends or first is None or not before:
                continue
            # Linux takes the next number for one that is outstanding (tcp_v4_err).
            strict = context.ics.get("ends") != "linux"
            guess = sink.is_guess(report.seq, report.packet, strict=strict)
            if not guess and any(it.outgoing and it.tcp.seq == report.seq for it in sink.segments):
                if report.too_big:
                    valid[sink.side] = min(report.mtu, valid.get(sink.side, report.mtu))
                continue
            if guess:
                found.append(report)
            small = _shrunk(before, sink.segments, report.packet.number, report.mtu)
            if report.too_big and small is not None:
                shrunk.append((report, sink.side, small))
    for report, side, small in shrunk:
        # A message that counts, before it or after, may have asked for the same.
        if report.mtu < valid.get(side, report.mtu + 1):
            yield context.violated(
                "a guessed message makes packets smaller", small, report,
                expected="packets as before", actual="smaller ones",
            )  # fmt: skip
            return
    yield from _ends_nothing(
        relay, found, "an ICMP message about a number that was not sent", context
    )


@of_scene("PEP-SEC-007")
def no_packet_stops_the_box(scene: Scene, context: Context) -> Iterator[Finding]:
    """No packet stops the box."""
    # Exercised by packets that are malformed, beside a connection that is open.
    odd = [it for it in scene.packets if not it.outgoing and _is_malformed(it)]
    if not odd:
        return
    for relay in scene.relays:
        begin = relay.up.first(it for it in relay.up.steps if it.packet.number > odd[0].number)
        if begin is None or not ends_try(relay, begin.packet.number) or not is_up(relay):
            continue
        for finding in is_served(relay, begin, "after malformed packets", context):
            # What guesses have done to a connection other rules speak of.
            if finding.verdict is Verdict.PASS or not _is_guessed_at(relay):
                yield finding


@of_scene("PEP-SEC-008")
def numbers_are_drawn(scene: Scene, context: Context) -> Iterator[Finding]:
    """Numbers are not guessed from each other."""
    # Exercised by four connections.
    split = [
        relay for relay in scene.relays
        if relay.server is not None and not relay.is_whole and relay.client.box.first is not None
        and relay.server.own.first is not None
    ]  # fmt: skip
    same = next((it for it in scene.relays if it.is_whole and _is_split_though(it)), None)
    if same is not None:
        yield context.violated(
            "the box has the same sequence numbers on both sides", At(same.client.packets[0]),
            expected="numbers of its own", actual="the client's",
        )  # fmt: skip
        return
    if len(split) < 4:
        return
    up = {
        (relay.server.syn.seq - relay.client.syn.seq) % MODULUS for relay in split if relay.server
    }
    down = {
        (relay.client.box.first.seq - relay.server.own.first.seq) % MODULUS
        for relay in split
        if relay.server and relay.client.box.first and relay.server.own.first
    }
    yield judged(
        context, len(up) > 1 and len(down) > 1,
        f"the numbers of {len(split)} connections are at {min(len(up), len(down))} distances",
        At(split[0].client.packets[0]), expected="numbers that do not follow from each other",
        actual="a constant distance",
    )  # fmt: skip


# -- what several ask --------------------------------------------------------------------------


def _ends_nothing(
    relay: Relay, guesses: Sequence[Timed], what: str, context: Context
) -> Iterator[Finding]:
    """Whether a connection goes on behind guesses, until an end resets it."""
    # What follows the RST of an end, or may, finds no connection any more.
    valid = min(
        (it.packet.number for leg in relay.legs for it in leg.segments
         if not it.outgoing and it.tcp.flags & RST and (it.counts or it.doubtful)),
        default=1 << 62,
    )  # fmt: skip
    guesses = [it for it in guesses if it.packet.number < valid]
    if not guesses or relay.server is None:
        return
    first, last = guesses[0], guesses[-1]
    end = _first_end(relay, first)
    guess = max(
        (it for it in guesses if end is None or it.packet.number < end.packet.number),
        key=lambda it: it.packet.number,
    )
    if end is not None and (is_up(relay) or end.time - guess.time <= allowed(relay, GIVES_UP_S)):
        if _latest_odd(relay, end) <= guess.packet.number:  # else another rule speaks of that
            yield context.violated(
                f"{what} ends the connection", end, first,
                expected="a connection that goes on", actual=end.tcp.flag_names,
            )  # fmt: skip
        return
    answer = relay.server.answered
    if answer is not None and answer.number > guess.packet.number and relay.client.answered is None:
        odd = relay.was_reset or _latest_odd(relay) > last.packet.number
        if not odd and watched(relay, answer.time, ANSWERS_S):
            yield context.violated(
                f"the server answers, and the client is not answered after {what}", first,
                expected="a call that goes on", actual="no SYN-ACK",
            )  # fmt: skip
        return
    silent = [
        stream
        for stream in relay.streams
        if stream.last is not None and stream.last.relayed < stream.last.arrived
    ]
    if silent and not relay.was_reset and watched(relay, last.time, 20.0):
        if _latest_odd(relay) > last.packet.number:
            return  # that may be why, and another rule speaks of it
        yield context.violated(
            f"the connection does not go on after {what}", first,
            expected="streams that go on", actual="octets that are not relayed",
        )  # fmt: skip
    elif relay.scene.until - last.time > allowed(relay, 1.0):
        yield context.holds(f"{what} ends nothing", first)


def _is_guessed_at(relay: Relay) -> bool:
    """Whether packets that are well formed but none of its own come for a connection."""
    return any(
        not it.outgoing and not it.counts and not _is_malformed(it.packet)
        for leg in relay.legs for it in leg.segments
    )  # fmt: skip


def _first_end(relay: Relay, guess: Timed) -> Segment | None:
    """The first RST of the box behind a guess, or FIN that no end has sent, before a valid RST."""
    segments = sorted(
        ((it, leg.side) for leg in relay.legs for it in leg.segments),
        key=lambda item: item[0].packet.number,
    )
    for it, side in segments:
        reset = bool(it.tcp.flags & RST)
        if not it.outgoing and reset and (it.counts or it.doubtful):
            return None
        due = it.packet.number <= guess.packet.number or not (it.outgoing and it.counts)
        if not due and (reset or _undue(relay, side, it)):
            return it
    return None


def _latest_odd(relay: Relay, before: Segment | None = None) -> int:
    """Number of the last packet that its connection does not take, or -1.

    Args:
        relay: the connection.
        before: only such packets before that segment count, if there is one.
    """
    until = math.inf if before is None else before.packet.number
    return max(
        (it.packet.number for leg in relay.legs for it in leg.segments
         if not it.outgoing and not it.counts and it.packet.number < until),
        default=-1,
    )  # fmt: skip


def _undue(relay: Relay, side: str, segment: Segment) -> bool:
    """Whether a segment of the box is a FIN that no end has sent."""
    if segment.fin is None:
        return False
    other = next((leg for leg in relay.legs if leg.side != side), None)
    return other is None or other.own.fin is None


def _shrunk(
    before: list[Segment], segments: list[Segment], number: int, mtu: int
) -> Segment | None:
    """A segment behind a message that is as small as it asks for, though more was sent before."""
    largest = max((len(it.packet.data) for it in before if it.outgoing), default=0)
    later = [it for it in segments if it.outgoing and it.payload and it.packet.number > number]
    if largest <= mtu or len(later) < 10:
        return None
    return later[-2] if all(len(it.packet.data) <= mtu for it in later[2:]) else None


def _is_split_though(relay: Relay) -> bool:
    """Whether the numbers are the same at both sides, and yet the box has answered by itself."""
    answer, server = relay.client.answered, relay.server
    if answer is None or server is None:
        return False
    return server.answered is None or server.answered.number > answer.number


def _is_malformed(packet: Packet) -> bool:
    """Whether it is TCP that cannot be, or has no flags or all of them."""
    data, tcp = packet.data, packet.content
    if len(data) < 20 or data[0] >> 4 != 4 or data[9] != 6:
        return False
    if int.from_bytes(data[6:8], "big") & 0x3FFF:
        return False
    return tcp is None or not tcp.offset_ok or not tcp.options_ok or tcp.flags & 0x3F in (0, 0x3F)
