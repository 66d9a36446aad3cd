"""Checkers for the negotiation of RWBP (RWBP-NG, section 4)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.rwbp.checkers import Context, Findings, judged, rule
from bentpipe_conformance.protocols.rwbp.checkers.going_on import (
    by_tcp,
    first_violation,
    goes_on,
    taken,
)
from bentpipe_conformance.protocols.rwbp.codec import (
    KIND,
    LENGTH,
    MSS,
    SACK_PERMITTED,
    SMALLEST_UNIT,
    TIMESTAMPS,
    VERSION,
    WINDOW_SCALE,
    Rwbp,
    RwbpOption,
)
from bentpipe_conformance.protocols.rwbp.replay.events import (
    Arrival,
    Call,
    Reply,
    Segment,
    Sent,
    Why,
    after,
)
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.codec import ACK, CWR, ECE, MODULUS, RST, SYN

ANSWERED_S = 0.5
"""An answer to a SYN that comes later has been delayed."""

SYN_S = 4.0
"""Within this time a SYN-ACK has been repeated at least once."""

AE = 1
"""The lowest of the four bits behind the data offset."""

PLAIN = (
    "SNR-SS-001", "SNR-SS-002", "SNR-WIN-001", "SNR-WIN-002", "SNR-RCV-003", "SNR-RCV-004",
    "SNR-RCV-005", "SNR-RCV-006", "SNR-RCV-018", "SNR-OPT-001", "SNR-OPT-002", "SNR-OPT-003",
    "SNR-OPT-004", "SNR-OPT-005", "SNR-OPT-006", "SNR-OPT-009", "SNR-CON-034", "SNR-CON-035",
    "SNR-CON-037", "SNR-RTO-007", "SNR-RTO-009", "SNR-FR-001", "SNR-FR-002", "SNR-RCV-025",
)  # fmt: skip
"""What of TCP a connection without RWBP shows soonest: congestion control, windows in octets,
acknowledgments of every second segment, options as negotiated, and that it carries a stream."""

CALLED = ("SNR-CON-030", "SNR-CON-034", "SNR-WIN-001", "SNR-WIN-002", "SNR-SS-001", "SNR-OPT-004",
          "SNR-OPT-005", "SNR-RCV-003", "SNR-RCV-004", "SNR-RCV-006",
          "SNR-RCV-018")  # fmt: skip
"""The same for a call that was answered without RWBP."""


def _kinds(tcp: Rwbp, kind: int) -> int:
    return sum(found == kind for found, _ in tcp.options)


def _offers_once(tcp: Rwbp) -> bool:
    """Whether a SYN has one RWBP option that counts, one MSS and one SACK-Permitted option."""
    single = len(tcp.rwbp) == _kinds(tcp, MSS) == _kinds(tcp, SACK_PERMITTED) == 1
    return single and tcp.offers


def _said(tcp: Rwbp) -> str:
    kinds = ", ".join(str(kind) for kind, _ in tcp.options) or "none"
    return f"options of kinds {kinds}, {len(tcp.rwbp)} of them RWBP's"


@rule("RWBP-NG-001")
def calls_offer(flow: Flow, context: Context) -> Findings:
    """Every SYN of a call has RWBP, MSS and SACK-Permitted, and repeats them (section 4.2)."""
    # Exercised by every SYN of an implementation that calls, and by those that come again.
    if not flow.opening.iut_calls:
        return
    syns = [item for item in flow.opening.own if not item.tcp.flags & ACK]
    named = {MSS, SACK_PERMITTED, KIND}
    first = [item for item in syns[0].tcp.options if item[0] in named]
    for syn in syns:
        again = [item for item in syn.tcp.options if item[0] in named]
        yield judged(
            context, _offers_once(syn.tcp) and again == first, "a SYN was sent", syn,
            expected="one RWBP option, one MSS and one SACK-Permitted, the same in every SYN",
            actual=_said(syn.tcp) + ("" if again == first else ", other than at first"),
        )  # fmt: skip


@rule("RWBP-NG-002")
def option_is_well_formed(flow: Flow, context: Context) -> Findings:
    """The RWBP option is that of figure 1, its unit the MSS (section 4.1)."""
    # Exercised by every RWBP option that is sent.
    for own in flow.opening.own:
        for option in own.tcp.rwbp:
            met = (
                option.length == LENGTH and option.version == VERSION and not option.reserved
                and option.interval > 0 and option.unit == own.tcp.mss
                and option.unit >= SMALLEST_UNIT
            )  # fmt: skip
            yield judged(
                context, met, f"an RWBP option with interval {option.interval}", own,
                expected=f"length {LENGTH}, version {VERSION}, unit {own.tcp.mss}, the MSS",
                actual=f"length {option.length}, version {option.version}, reserved "
                f"{option.reserved}, interval {option.interval}, unit {option.unit}",
            )  # fmt: skip


@rule("RWBP-NG-003")
def offer_is_answered(flow: Flow, context: Context) -> Findings:
    """RWBP is answered with RWBP, and its absence with its absence (section 4.2)."""
    # Exercised by every SYN-ACK.
    offer = flow.opening.offer
    if flow.opening.iut_calls or offer is None:
        return
    for own in flow.opening.own:
        if offer.offers:
            met, wanted = _offers_once(own.tcp), "one RWBP option, one MSS and one SACK-Permitted"
        else:
            met, wanted = not own.tcp.rwbp, "no RWBP option"
        asked = "RWBP" if offer.offers else "no RWBP"
        yield judged(
            context, met, f"a SYN that offers {asked} was answered", own, flow.opening.theirs[0],
            expected=wanted, actual=_said(own.tcp),
        )  # fmt: skip


@rule("RWBP-NG-004")
def nothing_beside_rwbp(flow: Flow, context: Context) -> Findings:
    """A SYN-ACK with RWBP has no Window Scale, no Timestamps, no ECN (section 4.2)."""
    # Exercised by every SYN-ACK with RWBP; above all where the SYN offered the others.
    for own in flow.opening.own:
        tcp = own.tcp
        if not tcp.flags & ACK or not tcp.rwbp:
            continue
        bad = [name for kind, name in ((WINDOW_SCALE, "Window Scale"), (TIMESTAMPS, "Timestamps"))
               if _kinds(tcp, kind)]  # fmt: skip
        bad += _ecn(tcp)
        yield judged(
            context, not bad, "a SYN-ACK agreed to RWBP", own,
            expected="neither Window Scale nor Timestamps nor ECN", actual=", ".join(bad),
        )  # fmt: skip


def _ecn(tcp: Rwbp) -> list[str]:
    bits = ((tcp.flags & ECE, "ECE"), (tcp.flags & CWR, "CWR"), (tcp.reserved & AE, "AE"))
    return [name for bit, name in bits if bit]


@rule("RWBP-NG-005")
def call_goes_on_as_tcp(flow: Flow, context: Context) -> Findings:
    """A call that is answered without RWBP goes on as plain TCP (section 4.2)."""
    # Exercised by a SYN-ACK without an option that counts, or without SACK-Permitted.
    theirs = flow.opening.theirs
    if not flow.opening.iut_calls or flow.agreed or not theirs:
        return
    if theirs[0].tcp.flags & (SYN | ACK) != SYN | ACK:
        return
    yield from goes_on(flow, context, theirs[0], "a SYN-ACK without RWBP")
    # What a void option has changed violates RWBP-NG-006.
    void = theirs[0].tcp.rwbp and theirs[0].tcp.counting is None
    if flow.leaves_at_once(context.ics) and not void:
        yield from by_tcp(flow, context, *CALLED)


def _refused(flow: Flow, context: Context, first: Segment) -> Iterator[Finding]:
    """Whether the opening after the peer's first SYN or SYN-ACK was refused or delayed."""
    answer = next(after(flow.leaving, first.packet.number), None)
    if not flow.service and not flow.opening.iut_calls:
        return  # perhaps nobody serves that port
    if answer is not None and answer.tcp.flags & RST:
        yield context.violated(
            "the connection was refused", answer, first,
            expected="a connection, whatever the RWBP options say", actual="a RST",
        )  # fmt: skip
    elif answer is not None:
        late = answer.time - first.time
        yield judged(
            context, late <= ANSWERED_S + flow.slack or not flow.leaves_at_once(context.ics),
            "a SYN with a void RWBP option, or with several, was answered", answer, first,
            expected="an answer at once", actual=f"one after {late:.2f} s",
        )  # fmt: skip
    elif flow.packets[-1].time - first.time > SYN_S and flow.leaves_at_once(context.ics):
        yield context.violated(
            "a SYN with a void RWBP option, or with several, was not answered", first,
            expected="an answer", actual="none",
        )  # fmt: skip


@rule("RWBP-NG-006")
def void_is_absent(flow: Flow, context: Context) -> Findings:
    """Void options are absent ones; of several the first that is not void counts (section 4.2)."""
    # Exercised by a SYN or SYN-ACK with a void RWBP option or with several.
    theirs = flow.opening.theirs
    if not theirs:
        return
    options = theirs[0].tcp.rwbp
    counting = theirs[0].tcp.counting
    others = list(options)
    if counting is not None:
        others.remove(counting)
    if not others:
        return
    yield from _refused(flow, context, theirs[0])
    void = counting is None
    for own in flow.opening.own if void or theirs[0].tcp.offers else ():
        if own.tcp.flags & ACK and bool(own.tcp.rwbp) is void:
            yield context.violated(
                "a void option was answered" if void else "an option that counts was not answered",
                own, theirs[0], expected="no RWBP option" if void else "an RWBP option",
                actual=_said(own.tcp),
            )  # fmt: skip
    if void:
        if flow.opening.iut_calls and flow.leaves_at_once(context.ics):
            yield from by_tcp(flow, context, *CALLED)
    elif theirs[0].tcp.offers:
        for option in others:
            yield from first_violation(_adopted(flow, context, theirs[0], option))


def _adopted(flow: Flow, context: Context, where: Segment, option: RwbpOption) -> Iterator[Finding]:
    """Whether the unit or the interval of an option that does not count is used."""
    number, sender, receiver = where.packet.number, flow.sender, flow.receiver
    size = min(sender.smss, max(1, option.unit))
    for sent in flow.sent:
        if sent.packet.number < number or sent.why is not Why.NEW or not sent.payload:
            continue
        whole = sent.available is not None and sent.available >= sender.smss
        if option.unit > sender.unit and sent.end > sent.edge:
            yield _misled(context, sent, where, f"octets up to {sent.end}, beyond {sent.edge}")
        elif size < sender.smss and whole and sent.payload == size:
            yield _misled(context, sent, where, f"segments of {size} octets")
    for stall in sender.stalls if flow.leaves_at_once(context.ics) else ():
        last = next(
            (a for a in reversed(flow.acks) if a.counts and a.time <= stall.until), None
        )  # fmt: skip
        named = last.ack + last.tcp.window * option.unit if last is not None else 0
        if stall.since.packet.number >= number and stall.nxt + stall.octets > named:
            yield _misled(context, stall.since, where, "nothing more, although there was room")
    for due in receiver.late if flow.leaves_at_once(context.ics) else ():
        counts = due.call is Call.COUNT and option.interval > receiver.interval
        if due.arrival.packet.number > number and counts:
            yield _misled(context, due.arrival, where, "no acknowledgment of N segments")
    counted = 0
    for event in flow.events if flow.leaves_at_once(context.ics) else ():
        if isinstance(event, Arrival) and event.orderly:
            counted += 1
        elif isinstance(event, Reply) and event.pure:
            early = 0 < counted == option.interval < receiver.interval
            if event.packet.number > number and early and event.calls is None:
                yield _misled(context, event, where, f"an acknowledgment after {counted} segments")
            counted = 0
    used = next(after(flow.events, number), None)
    if used is not None:
        yield context.holds("the option that does not count had no effect", used, where)


def _misled(context: Context, what: Segment, where: Segment, actual: str) -> Finding:
    return context.violated(
        "an RWBP option that does not count was heeded", what, where,
        expected="the unit and the interval of the one that counts", actual=actual,
    )  # fmt: skip


@rule("RWBP-NG-007", once=True)
def option_in_syns_only(flow: Flow, context: Context) -> Findings:
    """No RWBP option stands, or counts, in a segment without SYN (section 4.2)."""
    # Exercised by every segment without SYN that is sent, and by such an option that arrives.
    for own in flow.leaving:
        if not own.tcp.flags & SYN:
            yield judged(
                context, not own.tcp.rwbp, "a segment without SYN was sent", own,
                expected="no RWBP option", actual=_said(own.tcp),
            )  # fmt: skip
    arrived = [item for item in flow.arriving if item.tcp.rwbp and not item.tcp.flags & SYN]
    for odd in arrived[:4]:
        yield from goes_on(flow, context, odd, "an RWBP option in a segment without SYN")
        if flow.agreed:
            for option in odd.tcp.rwbp:
                yield from first_violation(_adopted(flow, context, odd, option))
        else:
            yield from by_tcp(flow, context, "SNR-WIN-001", "SNR-CON-034", "SNR-RCV-018")


@rule("RWBP-NG-008")
def plain_tcp(flow: Flow, context: Context) -> Findings:
    """A connection without RWBP is one of TCP (section 4.3)."""
    # Exercised by every connection without RWBP on which data passes.
    if flow.agreed or not flow.opening.own or not flow.opening.theirs:
        return
    if not flow.leaves_at_once(context.ics):
        return  # what waits for the link is older than it seems
    yield from by_tcp(flow, context, *PLAIN)


@rule("RWBP-NG-009", agreed=True, once=True)
def no_scale_no_timestamps(flow: Flow, context: Context) -> Findings:
    """With RWBP nothing is scaled or stamped, and stamps that arrive are ignored (section 4.2)."""
    # Exercised by agreement to a SYN or SYN-ACK with Window Scale or Timestamps, and by
    # Timestamps options in other segments.
    for own in flow.leaving:
        if not own.tcp.flags & SYN and _kinds(own.tcp, TIMESTAMPS):
            yield context.violated(
                "a segment has a Timestamps option", own, expected="none with RWBP",
                actual=_said(own.tcp),
            )  # fmt: skip
    theirs = flow.opening.theirs[0]
    if _kinds(theirs.tcp, WINDOW_SCALE) or _kinds(theirs.tcp, TIMESTAMPS):
        yield from _unscaled(flow, context, theirs)
    stamped = [i for i in flow.arriving if not i.tcp.flags & SYN and _kinds(i.tcp, TIMESTAMPS)]
    yield from taken(flow, context, stamped, "a Timestamps option")


def _unscaled(flow: Flow, context: Context, theirs: Segment) -> Findings:
    """Whether the windows of a peer that offered to scale them are used as they stand."""
    scale = theirs.tcp.window_scale
    for sent in flow.sent:
        if sent.why is Why.NEW and sent.end > sent.edge and scale:
            yield context.violated(
                f"{sent.span} was sent", sent, theirs, expected=f"nothing beyond {sent.edge}",
                actual="a window that was scaled",
            )  # fmt: skip
    used = next((item for item in flow.events if isinstance(item, Sent | Reply)), None)
    if used is not None:
        yield context.holds("nothing was scaled or stamped", used, theirs)


@rule("RWBP-NG-010", agreed=True, once=True)
def no_ecn(flow: Flow, context: Context) -> Findings:
    """With RWBP no segment has a flag of ECN, and those that arrive are ignored (section 4.2)."""
    # Exercised by every segment that is sent, and by marks and flags that arrive.
    for own in flow.leaving:
        if own.tcp.flags & SYN and not (own.tcp.flags & ACK and own.tcp.ecn):
            continue
        found = _ecn(own.tcp) + (["a codepoint of ECN"] if own.tcp.ecn else [])
        yield judged(
            context, not found, "a segment was sent", own,
            expected="neither ECE nor CWR nor AE, and Not-ECT", actual=", ".join(found),
        )  # fmt: skip
    odd = [i for i in flow.arriving if not i.tcp.flags & SYN and (_ecn(i.tcp) or i.tcp.ecn)]
    yield from taken(flow, context, odd, "a flag or mark of ECN")


@rule("RWBP-NG-011")
def no_data_in_syns(flow: Flow, context: Context) -> Findings:
    """A SYN with RWBP has no data, and none is taken from it (section 4.2)."""
    # Exercised by every own SYN with RWBP, and by data in the tester's if RWBP is agreed.
    for own in flow.opening.own:
        if own.tcp.rwbp:
            yield judged(
                context, not own.tcp.size, "a SYN with RWBP was sent", own,
                expected="no data", actual=f"{own.tcp.size} octets",
            )  # fmt: skip
    theirs = flow.opening.theirs
    if not flow.agreed or not theirs[0].tcp.size:
        return
    number, wanted = theirs[0].packet.number, (theirs[0].tcp.seq + 1) % MODULUS
    later = (item for item in after(flow.leaving, number) if item.tcp.flags & ACK)
    answer = next(later, None)
    if answer is not None:
        yield judged(
            context, answer.tcp.ack == wanted, "a SYN with data was answered", answer, theirs[0],
            expected=f"acknowledgment number {wanted}", actual=str(answer.tcp.ack),
        )  # fmt: skip
    for reply in flow.replies:
        if reply.ack > reply.expected and not flow.slack:
            yield context.violated(
                "data in a SYN was taken", reply, theirs[0],
                expected=f"octets up to {reply.expected}", actual=f"up to {reply.ack}",
            )  # fmt: skip
            return
