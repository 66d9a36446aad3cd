"""Checkers for the use of TCP options (SNR-OPT)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.tcp.checkers import Context
from bentpipe_conformance.protocols.tcp.codec import RST, SYN, Tcp
from bentpipe_conformance.protocols.tcp.replay import Packet
from bentpipe_conformance.protocols.tcp.replay.answers import (
    LONGEST_DELAY_S,
    acknowledging,
    first_reply,
    soon,
)
from bentpipe_conformance.protocols.tcp.replay.flow import MAX_WINDOW_SHIFT, ODD_MSS, Flow

ETHERNET_MTU = 1500
"""A longer packet on a link of this size shows the sender's segmentation offload."""

UNASSIGNED_KINDS = frozenset({*range(35, 69), *range(80, 172), *range(175, 253)})
"""Option kinds the IANA has not assigned, so that no implementation knows them."""

_ANSWERED_S = 1.0
"""Seconds a live implementation needs at most to answer one of several segments."""


class _At:
    """A packet as something a finding can point at."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet


def option_octets(packet: Packet) -> bytes:
    """The octets of a TCP segment's option list, padding included."""
    header = (packet.data[0] & 0xF) * 4
    return packet.data[header + 20 : header + (packet.data[header + 12] >> 4) * 4]


def option_kinds(packet: Packet) -> list[int]:
    """The kinds of a well-formed option list, in order, without padding."""
    octets, at, kinds = option_octets(packet), 0, []
    while at < len(octets) and octets[at]:
        if octets[at] == 1:
            at += 1
            continue
        kinds.append(octets[at])
        if at + 1 >= len(octets) or octets[at + 1] < 2:
            break
        at += octets[at + 1]
    return kinds


def _leaving(flow: Flow) -> Iterator[tuple[Packet, Tcp]]:
    for packet in flow.packets:
        if packet.outgoing and packet.content is not None:
            yield packet, packet.content


def _arriving(flow: Flow) -> Iterator[tuple[Packet, Tcp]]:
    for packet in flow.packets:
        if not packet.outgoing and packet.content is not None:
            yield packet, packet.content


def _never(
    flow: Flow, context: Context, name: str, situation: str, wrong: Callable[[Tcp], bool]
) -> Iterator[Finding]:
    """One finding: no segment of the IUT is ``wrong``, or the first that is."""
    last = None
    for packet, tcp in _leaving(flow):
        if wrong(tcp):
            yield context.violated(
                f"a segment carries {name} {situation}",
                _At(packet),
                expected=f"no {name} {situation}",
                actual=f"{name} in a segment with flags {tcp.flag_names}",
            )
            return
        last = packet
    if last is not None:
        yield context.holds(f"no segment carries {name} {situation}", _At(last))


def _answered_syn(flow: Flow) -> bool:
    handshake = flow.handshake
    return handshake.tester is not None and handshake.iut is not None and not handshake.iut_opens


@checker("SNR-OPT-001")
def sack_permitted_only_if_offered(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every SYN without SACK-permitted that is answered."""
    if _answered_syn(flow) and not flow.handshake.offered("sack_permitted"):
        yield from _never(
            flow, context, "SACK-permitted", "though the SYN does not offer it",
            lambda tcp: tcp.sack_permitted,
        )  # fmt: skip


@checker("SNR-OPT-002")
def window_scale_only_if_offered(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every SYN without Window Scale that is answered."""
    if _answered_syn(flow) and not flow.handshake.offered("window_scale"):
        yield from _never(
            flow, context, "Window Scale", "though the SYN does not offer it",
            lambda tcp: tcp.window_scale is not None,
        )  # fmt: skip


@checker("SNR-OPT-003")
def timestamps_only_if_offered(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every SYN without Timestamps that is answered."""
    if _answered_syn(flow) and not flow.handshake.offered("tsval"):
        yield from _never(
            flow, context, "Timestamps", "though the SYN does not offer them",
            lambda tcp: tcp.tsval is not None,
        )  # fmt: skip


@checker("SNR-OPT-004")
def timestamps_in_every_segment(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment after a handshake that negotiated timestamps."""
    if not flow.handshake.timestamps:
        return
    last = None
    for packet, tcp in _leaving(flow):
        if tcp.flags & (SYN | RST):
            continue
        if tcp.tsval is None:
            yield context.violated(
                "a segment lacks the Timestamps option that was negotiated",
                _At(packet),
                expected="Timestamps in every segment but a RST",
                actual=f"none in a segment with flags {tcp.flag_names}",
            )
            return
        last = packet
    if last is not None:
        yield context.holds("every segment carries Timestamps", _At(last))


@checker("SNR-OPT-005")
def no_sack_without_negotiation(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised once data is held out of sequence on a connection without SACK."""
    handshake = flow.handshake
    if handshake.tester is None or handshake.offered("sack_permitted"):
        return
    if any(reply.held or reply.blocks for reply in flow.replies):
        yield from _never(
            flow, context, "a SACK option", "without SACK-permitted from the peer",
            lambda tcp: bool(tcp.sack),
        )  # fmt: skip


@checker("SNR-OPT-006")
def handshake_options_only_in_syn(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment without SYN."""
    if not flow.replies:
        return

    def wrong(tcp: Tcp) -> bool:
        present = tcp.mss is not None or tcp.window_scale is not None or tcp.sack_permitted
        return present and not tcp.flags & SYN

    yield from _never(flow, context, "a handshake option", "in a segment without SYN", wrong)


@checker("SNR-OPT-007")
def shift_of_at_most_14(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every Window Scale option the IUT sends."""
    for packet, tcp in _leaving(flow):
        if tcp.window_scale is None or not tcp.flags & SYN:
            continue
        if tcp.window_scale > MAX_WINDOW_SHIFT:
            yield context.violated(
                f"the Window Scale option names a shift of {tcp.window_scale}",
                _At(packet),
                expected=f"a shift of at most {MAX_WINDOW_SHIFT}",
                actual=f"a shift of {tcp.window_scale}",
            )
        else:
            yield context.holds(f"the shift is {tcp.window_scale}", _At(packet))


@checker("SNR-OPT-008")
def received_shift_counts_as_14(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by a sender that fills more than half of a window scaled by 14."""
    tester = flow.handshake.tester
    if not flow.handshake.window_scale or tester is None or tester.content is None:
        return
    shift = tester.content.window_scale or 0
    if shift > MAX_WINDOW_SHIFT:
        yield from _within_window(flow, context, 0, f"a shift of {shift} taken as 14")


@checker("SNR-OPT-015")
def window_scale_outside_handshake(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by a sender that fills more than half of the window after such an option."""
    for packet, tcp in _arriving(flow):
        if tcp.window_scale is not None and not tcp.flags & SYN:
            known = "the Window Scale option of a segment without SYN ignored"
            yield from _within_window(flow, context, packet.number, known)
            return


def _within_window(flow: Flow, context: Context, after: int, how: str) -> Iterator[Finding]:
    filled = None
    for sent in flow.sent:
        if sent.packet.number <= after:
            continue
        # One octet beyond a closed window is a probe (RFC 9293 section 3.8.6.1).
        if sent.end > sent.window_edge + 1:
            yield context.violated(
                f"octets up to {sent.end} were sent into a window that ends at {sent.window_edge}",
                sent,
                expected=f"nothing beyond offset {sent.window_edge}, with {how}",
                actual=f"a segment up to offset {sent.end}",
            )
            return
        if sent.end - sent.una > (sent.window_edge - sent.una) // 2 > 0:
            filled = sent
    if filled is not None:
        yield context.holds(f"the window was used and kept, with {how}", filled)


def _segment_sizes(flow: Flow, context: Context, limit: int, what: str) -> Iterator[Finding]:
    data = [sent for sent in flow.sent if sent.payload]
    # A capture of the sender's own may show segments before its network card cuts them.
    offloaded = any(
        len(sent.packet.data) > ETHERNET_MTU
        or (sent.payload > limit and sent.payload % (limit - _overhead(sent.packet) or 1) == 0)
        for sent in data
    )
    for sent in data:
        size = sent.payload + _overhead(sent.packet)
        if size <= limit:
            continue
        if offloaded:
            yield context.unclear("the capture shows segments before segmentation offload", sent)
        else:
            yield context.violated(
                f"{sent.payload} octets of data and {size - sent.payload} of options were sent",
                sent,
                expected=f"at most {limit} octets together, {what}",
                actual=f"{size} octets",
            )
        return
    if data:
        largest = max(data, key=lambda sent: sent.payload)
        yield context.holds(f"no segment exceeds {limit} octets, {what}", largest)


def _overhead(packet: Packet) -> int:
    return len(option_octets(packet))


@checker("SNR-OPT-009")
def segments_within_mss(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every data segment to a peer that named its MSS."""
    tester = flow.handshake.tester
    if tester is None or tester.content is None or not tester.content.mss:
        return
    limit = max(tester.content.mss, context.permitted("smallest_octets", 0))
    yield from _segment_sizes(flow, context, limit, f"the peer's MSS being {tester.content.mss}")


@checker("SNR-OPT-010")
def default_mss(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every data segment to a peer that named no MSS."""
    tester = flow.handshake.tester
    if tester is not None and tester.content is not None and tester.content.mss is None:
        yield from _segment_sizes(flow, context, 536, "the peer having named no MSS")


@checker("SNR-OPT-011")
def tiny_mss(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by an accepted connection with an MSS option below 64 octets."""
    tester = flow.handshake.tester
    if tester is None or tester.content is None or flow.handshake.iut is None:
        return
    mss = tester.content.mss
    if mss is None or mss >= ODD_MSS:
        return
    yield from _survives(flow, context, flow.handshake.iut, f"an MSS option of {mss}")


@checker("SNR-OPT-012")
def unknown_options_in_syn(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by a SYN with unassigned options to a port that accepts connections later."""
    syns = [packet for packet, tcp in _arriving(flow) if tcp.flags & SYN and tcp.options_ok]
    if not syns or not flow.listening or flow.handshake.iut_opens:
        return
    unknown = sorted(UNASSIGNED_KINDS.intersection(option_kinds(syns[0])))
    if not unknown:
        return
    answer = flow.handshake.iut
    refusal = next((packet for packet in flow.resets if packet.outgoing), None)
    if answer is not None:
        yield context.holds(f"the SYN with option {unknown[0]} was accepted", _At(answer))
    elif refusal is not None:
        yield context.violated(
            f"a SYN with the unknown option {unknown[0]} was refused",
            _At(refusal),
            _At(syns[0]),
            expected="a SYN-ACK, as to other SYNs to this port",
            actual="a RST",
        )
    elif syns[-1].time - syns[0].time > _ANSWERED_S + context.timing_error:
        yield context.violated(
            f"a SYN with the unknown option {unknown[0]} was not answered",
            _At(syns[0]),
            expected="a SYN-ACK, as to other SYNs to this port",
            actual=f"nothing, though the SYN came {len(syns)} times",
        )


@checker("SNR-OPT-013")
def unknown_options_in_data(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by acceptable in-order data with unassigned options."""
    for arrival in flow.arrivals:
        tcp = arrival.packet.content
        if not arrival.in_order or arrival.end > arrival.window_edge or tcp is None:
            continue
        unknown = sorted(UNASSIGNED_KINDS.intersection(option_kinds(arrival.packet)))
        if not unknown or not tcp.options_ok:
            continue
        reply = first_reply(flow, arrival, acknowledging(arrival.end))
        verdict = soon(flow, arrival, reply, LONGEST_DELAY_S, context.timing_error)
        refusal = next((item for item in flow.resets if item.number > arrival.packet.number), None)
        if verdict == "in time" and reply is not None:
            yield context.holds(f"data with option {unknown[0]} was accepted", reply, arrival)
        elif refusal is not None and refusal.outgoing and reply is None:
            yield context.violated(
                f"data with the unknown option {unknown[0]} reset the connection",
                _At(refusal),
                arrival,
                expected="an acknowledgment",
                actual="a RST",
            )
        elif verdict == "late":
            yield context.violated(
                f"data with the unknown option {unknown[0]} was not acknowledged in time",
                arrival,
                expected=f"an acknowledgment up to offset {arrival.end} within {LONGEST_DELAY_S} s",
                actual="none",
            )


@checker("SNR-OPT-014")
def illegal_option_length(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every segment whose option list cannot be walked to its end."""
    for packet, tcp in _arriving(flow):
        if not tcp.options_ok:
            yield from _survives(flow, context, packet, "an illegal option length")


def _survives(flow: Flow, context: Context, odd: Packet, what: str) -> Iterator[Finding]:
    """Whether the IUT still says anything on the connection after ``odd``."""
    later = [item for item in flow.packets if item.number > odd.number and item.content is not None]
    for item in later:
        if item.outgoing:
            yield context.holds(f"the implementation lives after {what}", _At(item), _At(odd))
            return
    unanswered = [item for item in later if item.content is not None and item.content.length]
    if unanswered and unanswered[-1].time - unanswered[0].time > _ANSWERED_S + context.timing_error:
        yield context.violated(
            f"nothing was heard any more after {what}",
            _At(odd),
            _At(unanswered[0]),
            expected="an acknowledgment or a RST",
            actual=f"{len(unanswered)} later segments were not answered",
        )
