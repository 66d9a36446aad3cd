"""Checkers for the Timestamps option and PAWS (SNR-TS)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context
from bentpipe_conformance.protocols.tcp.codec import MODULUS, RST, SYN
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    acknowledging,
    first_reply,
    refusals,
    soon,
    still_receiving,
)
from bentpipe_conformance.protocols.tcp.replay.direction import older
from bentpipe_conformance.protocols.tcp.replay.flow import REACTION_S, Arrival, Flow, Reply

_CLOCK_SPAN_S = 2.0
"""The slowest clock allowed ticks at least once in this time, whatever its phase."""


class _At:
    def __init__(self, packet: Packet) -> None:
        self.packet = packet


@checker("SNR-TS-001")
def echoes_ts_recent(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every acknowledgment with a timestamp."""
    for reply in flow.replies:
        tcp = reply.packet.content
        if tcp is None or tcp.tsecr is None or not reply.echoes:
            continue
        if tcp.tsecr in reply.echoes:
            yield context.holds("TSecr is TS.Recent", reply)
            continue
        where = (reply,) if reply.last_arrival is None else (reply, reply.last_arrival)
        wanted = " or ".join(str(value) for value in sorted(reply.echoes))
        yield context.violated(
            f"TSecr is {tcp.tsecr}, but TS.Recent is {wanted}",
            *where,
            expected=f"TSecr {wanted}",
            actual=f"TSecr {tcp.tsecr}",
        )


@checker("SNR-TS-002")
def tsval_does_not_decrease(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment after the first with a timestamp, RST excepted."""
    previous: Packet | None = None
    for packet in flow.packets:
        tcp = packet.content
        if not packet.outgoing or tcp is None or tcp.tsval is None or tcp.flags & RST:
            continue
        if (
            previous is not None
            and previous.content is not None
            and previous.content.tsval is not None
        ):
            if older(tcp.tsval, previous.content.tsval):
                yield context.violated(
                    f"TSval went back from {previous.content.tsval} to {tcp.tsval}",
                    _At(packet),
                    _At(previous),
                    expected=f"at least {previous.content.tsval}",
                    actual=str(tcp.tsval),
                )
                return
            yield context.holds("TSval did not decrease", _At(packet))
        previous = packet


@checker("SNR-TS-003")
def clock_rate(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by timestamps of one connection at least two seconds apart."""
    stamped = [
        (packet, packet.content.tsval)
        for packet in flow.packets
        if packet.outgoing
        and packet.content is not None
        and packet.content.tsval is not None
        and not packet.content.flags & RST
    ]
    if not stamped:
        return
    (first, begin), (last, end) = stamped[0], stamped[-1]
    span = last.time - first.time
    if span < _CLOCK_SPAN_S:
        return
    ticks = (end - begin) % MODULUS
    slowest = float(context.permitted("slowest_ticks_per_s", 1))
    fastest = float(context.permitted("fastest_ticks_per_s", 1000))
    low = slowest * (span - context.timing_error) - 1
    # A clock of 1 ms is often a timer interrupt's, a little faster or slower than it says.
    high = fastest * (span + context.timing_error) * 1.01 + 2
    if low <= ticks <= high:
        yield context.holds(f"{ticks} ticks passed in {span:.1f} s", _At(last), _At(first))
    else:
        yield context.violated(
            f"{ticks} ticks passed in {span:.1f} s",
            _At(last),
            _At(first),
            expected=f"between {max(0.0, low):.0f} and {high:.0f} ticks",
            actual=f"{ticks} ticks",
        )


def _old_but_fitting(arrival: Arrival) -> bool:
    """Whether nothing but its old timestamp speaks against a segment with new data."""
    fits = arrival.start < arrival.window_edge and arrival.end > arrival.expected
    new = all(right <= arrival.start or arrival.end <= left for left, right in arrival.held)
    return arrival.paws_rejected and fits and new and arrival.payload > 0


@checker("SNR-TS-004")
def old_timestamp_is_dropped(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by new data with an old timestamp that is answered."""
    for refusal in refusals(flow, _old_but_fitting):
        if refusal.accepted:
            yield context.violated(
                f"data from offset {refusal.arrival.start} was accepted with an old timestamp",
                refusal.reply,
                refusal.arrival,
                expected="the segment dropped",
                actual=f"an acknowledgment up to offset {refusal.reply.ack}",
            )
        else:
            yield context.holds(
                "data with an old timestamp was dropped", refusal.reply, refusal.arrival
            )


@checker("SNR-TS-005")
def old_timestamp_is_acknowledged(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every data segment with an old timestamp."""
    for arrival in still_receiving(flow):
        if not arrival.paws_rejected:
            continue
        reply = first_reply(flow, arrival)
        timely = soon(flow, arrival, reply, LONGEST_DELAY_S, context.timing_error)
        if timely == "in time" and reply is not None:
            yield context.holds("data with an old timestamp was answered", reply, arrival)
        elif timely == "unclear":
            yield context.unclear("answered, but the bed is too coarse", arrival)
        elif timely == "late":
            yield context.violated(
                "data with an old timestamp was not answered",
                arrival,
                expected=f"an acknowledgment within {LONGEST_DELAY_S} s",
                actual="none",
            )


@checker("SNR-TS-006")
def reset_is_exempt(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by a RST at the next expected octet with an old timestamp, or without one."""
    if not flow.handshake.timestamps:
        return
    reset = next((packet for packet in flow.resets if not packet.outgoing), None)
    if reset is None or reset.content is None or flow.resets[0] is not reset:
        return
    replies = [reply for reply in flow.replies if reply.packet.number < reset.number]
    if not replies or not _exact(flow, replies[-1], reset):
        return
    tsval = reset.content.tsval
    if tsval is not None and not all(older(tsval, known) for known in replies[-1].echoes):
        return
    settled = reset.time + REACTION_S + context.timing_error
    later = [
        item for item in flow.packets if item.number > reset.number and item.content is not None
    ]
    for item in later:
        assert item.content is not None
        if item.outgoing and not item.content.flags & RST and item.time > settled:
            yield context.violated(
                "the connection goes on after a RST with an old timestamp",
                _At(item),
                _At(reset),
                expected="the connection reset",
                actual=f"a segment with flags {item.content.flag_names}",
            )
            return
    # A segment after the RST shows whether there still is a connection.
    asked = [item for item in later if not item.outgoing and item.content and item.content.length]
    if asked:
        yield context.holds("a RST with an old timestamp reset the connection", _At(reset))


def _exact(flow: Flow, last: Reply, reset: Packet) -> bool:
    """Whether a RST stands exactly at the octet the IUT expects."""
    assert reset.content is not None and last.packet.content is not None
    between = [a for a in flow.arrivals if last.packet.number < a.packet.number < reset.number]
    return (
        not between and last.ack == last.expected and reset.content.seq == last.packet.content.ack
    )


@checker("SNR-TS-007")
def wrapped_timestamp_is_accepted(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by the first in-order data after the tester's timestamps wrapped."""
    before: int | None = None
    for arrival in still_receiving(flow):
        tsval = arrival.packet.content.tsval if arrival.packet.content else None
        if tsval is None or arrival.may_be_stale or not flow.handshake.timestamps:
            continue
        wrapped = before is not None and tsval < before and not older(tsval, before)
        before = tsval
        if not wrapped or not arrival.in_order or arrival.end > arrival.window_edge:
            continue
        reply = first_reply(flow, arrival, acknowledging(arrival.end))
        timely = soon(flow, arrival, reply, LONGEST_DELAY_S, context.timing_error)
        if timely == "in time" and reply is not None:
            yield context.holds("data was accepted across the wrap of TSval", reply, arrival)
        elif timely == "late":
            yield context.violated(
                "data was not accepted across the wrap of TSval",
                arrival,
                expected=f"an acknowledgment up to offset {arrival.end}",
                actual="none in time",
            )


def _bare(arrival: Arrival) -> bool:
    fits = arrival.start < arrival.window_edge and arrival.end > arrival.expected
    return arrival.lacks_timestamp and fits and arrival.payload > 0


@checker("SNR-TS-008")
def missing_timestamp_does_not_abort(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by a segment without the negotiated option, once anything else follows."""
    if not flow.handshake.timestamps:
        return
    bare: Packet | None = None
    latest: Packet | None = None
    for packet in flow.packets:
        tcp = packet.content
        if tcp is None:
            continue
        if not packet.outgoing:
            if tcp.flags & RST:
                return
            latest = packet
            if tcp.tsval is None and not tcp.flags & SYN:
                bare = packet
            continue
        if bare is None:
            continue
        if tcp.flags & RST and latest is not bare:
            return
        if tcp.flags & RST:
            yield context.violated(
                "a segment without the negotiated Timestamps option reset the connection",
                _At(packet),
                _At(bare),
                expected="the segment dropped, or processed",
                actual="a RST",
            )
            return
        yield context.holds("the connection outlives a missing timestamp", _At(packet), _At(bare))
        bare = None


@checker("SNR-TS-009")
def missing_timestamp_is_dropped(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by new data without the negotiated option, once an acknowledgment follows."""
    for refusal in refusals(flow, _bare):
        if refusal.accepted:
            yield context.violated(
                f"data from offset {refusal.arrival.start} was accepted without its timestamp",
                refusal.reply,
                refusal.arrival,
                expected="the segment silently dropped",
                actual=f"an acknowledgment up to offset {refusal.reply.ack}",
            )
        else:
            yield context.holds(
                "data without its timestamp was dropped", refusal.reply, refusal.arrival
            )
