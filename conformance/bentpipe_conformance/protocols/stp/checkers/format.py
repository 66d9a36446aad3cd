"""STP-PF: types, lengths, tags, checksums and sizes of packets (section 3)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    discarded,
    many_before,
    observed,
)
from bentpipe_conformance.protocols.stp.checkers.opening import due_answer, replies_to
from bentpipe_conformance.protocols.stp.checkers.refusals import CALL_ANEW, MOST_ANEW, refusals
from bentpipe_conformance.protocols.stp.checkers.reserved import COOKIE, COOKIE_SIZES, options_of
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    NAMES,
    POLL,
    SDP,
    VERSION,
    R,
)
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, tag_of
from bentpipe_conformance.protocols.stp.replay.cookies import GOOD_S
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow

MTU = 1500
"""Octets of an IPv4 packet on the suite's links."""

LARGEST_PACKET = MTU - 20
"""Octets of an STP packet over IPv4 on these links; UDP takes 8 more."""


@checker("STP-PF-001")
def known_types_and_flags(flow: Flow, context: Context) -> Findings:
    """Only known types and flags are sent, and reserved fields are zero (section 3.1)."""
    for at in flow.sent:
        stp = at.stp
        if stp.type not in NAMES:
            yield context.violated(f"a packet of the unused type {stp.type} was sent", at)
        elif stp.reserved_flags:
            yield context.violated(
                f"{at.name} was sent with the reserved flags {stp.reserved_flags:#x}", at
            )
        elif any(stp.reserved):
            yield context.violated(f"{at.name} was sent with nonzero reserved fields", at)
        elif stp.type in (BGREJ, ENDAK) and stp.seq:
            yield context.violated(f"{at.name} was sent with the sequence {stp.seq}, not 0", at)
        elif not stp.fault:
            yield context.holds(f"{at.name} has only the flags and fields of its type", at)


@checker("STP-PF-002")
def exact_lengths(flow: Flow, context: Context) -> Findings:
    """Every packet sent has exactly the length of its type (section 3.1)."""
    for at in flow.sent:
        if at.stp.type in NAMES:
            yield judged(
                context, not at.stp.fault,
                f"{at.name} has exactly the length of its type",
                f"{at.name} has a wrong length: {at.stp.fault}", at,
            )  # fmt: skip


@checker("STP-PF-003")
def malformed_is_discarded(flow: Flow, context: Context) -> Findings:
    """A malformed packet is discarded (section 3.1)."""
    for at in flow.heard:
        if at.stp.fault and not at.stp.damaged:
            yield from discarded(flow, context, at, f"a malformed packet ({at.stp.fault})")
    for at in flow.heard_of(BEGIN):
        # The rest of one of another version is whatever that version says.
        due = due_answer(flow, at) if at.stp.version != VERSION else None
        if due is not None and not many_before(flow, at, (BEGIN,)):
            replies = [reply for reply in replies_to(flow, at) if due.is_met_by(reply)]
            yield from answered(flow, context, at, replies, due.about)


@checker("STP-PF-007")
def wrong_checksum_is_discarded(flow: Flow, context: Context) -> Findings:
    """A packet with a wrong checksum is discarded (section 3.2)."""
    for at in flow.heard:
        if at.stp.damaged:
            whose = "" if not at.stp.checksum_ok else " of UDP's"
            yield from discarded(flow, context, at, f"{at.name} with a wrong checksum{whose}")


@checker("STP-PF-005")
def tag_of_the_sender(flow: Flow, context: Context) -> Findings:
    """The tag is the low 16 bits of the sender's CSN, and zero in a BGREJ (section 3.1)."""
    for at in flow.sent:
        stp = at.stp
        if stp.fault or stp.type == ENDAK or (stp.type == END and stp.flags & R):
            continue
        if stp.type == BGREJ:
            wanted: int | None = 0
        elif stp.type in (BEGIN, BGAK, END, SDP, POLL):
            # They carry the CSN themselves, independent of the connection they are assigned to.
            wanted = tag_of(stp.csn or 0)
        else:
            wanted = tag_of(flow.iut_csn) if flow.iut_csn is not None else None
        named = stp.type in (BEGIN, BGAK, BGREJ, END)
        if wanted is None or (flow.established is None and not named):
            # Without a connection there is nothing to compare with.
            continue
        yield judged(
            context, stp.tag == wanted,
            f"{at.name} carries the tag {wanted:#06x}", f"{at.name} carries a wrong tag", at,
            expected=f"tag {wanted:#06x}", actual=f"tag {stp.tag:#06x}",
        )  # fmt: skip


@checker("STP-PF-006")
def right_checksum(flow: Flow, context: Context) -> Findings:
    """Every packet sent carries a right checksum, and so do the headers below it (section 3.2)."""
    for at in flow.sent:
        stp = at.stp
        if not stp.checksum_ok:
            problem = f"a wrong checksum {stp.checksum:#06x}"
        elif not stp.udp_checksum_ok:
            problem = "a wrong UDP checksum" if stp.udp_checksum else "no UDP checksum"
        else:
            problem = "" if stp.ip_checksum_ok else "a wrong checksum in its IPv4 header"
        yield judged(
            context, not problem, f"{at.name} has right checksums", f"{at.name} has {problem}", at
        )


@checker("STP-PF-009")
def within_the_peers_max_sd(flow: Flow, context: Context) -> Findings:
    """No BEGIN, SD or SDP carries more data than the peer's MaxSD (section 3.3)."""
    # A repeated SD is what it was, though the peer has lowered its MaxSD against STP-PF-010.
    first: dict[int, At] = {}
    for sd in flow.sds_sent:
        octets = len(sd.stp.data)
        most = _most_data(flow, first.setdefault(sd.number, sd))
        if octets and most is not None:
            yield judged(
                context, octets <= most,
                f"SD {sd.number} carries {octets} octets of at most {most}",
                f"SD {sd.number} carries {octets} octets, but MaxSD is {most}", sd,
            )  # fmt: skip


def _most_data(flow: Flow, sd: At) -> int | None:
    """The MaxSD that holds for an SD, None if it may have come before the trace.

    Where a BGREJ or BGAK brought none, one that came earlier may count.
    """
    if not flow.iut_calls:
        told = [] if flow.opener is None else [flow.opener.stp.max_sd]
    else:
        came = (at for at in flow.bgaks if not at.outgoing and at.frame < sd.frame)
        # One that opens nothing is discarded.
        bgak = next((at for at in came if at.time == flow.established), None)
        begin = next(at for at in flow.begins if at.outgoing)
        handed = flow.ledger.handed
        if bgak is not None and bgak.stp.max_sd is not None:
            told = [bgak.stp.max_sd]
        elif begin.stp.cookie is not None and begin.stp.cookie not in handed:
            return None
        else:
            brought = handed.get(begin.stp.cookie or b"")
            told = [brought.stp.max_sd] if brought is not None else []
            if told == [None]:
                told = [at.stp.max_sd for at in handed.values() if at.frame < sd.frame]
    return max([LEAST_MAX_SD, *(most for most in told if most is not None)])


@checker("STP-PF-010")
def max_sd_announced(flow: Flow, context: Context) -> Findings:
    """BEGIN, BGAK and BGREJ 6 carry MaxSD, at least 512 and never lowered (section 3.3)."""
    for at in flow.sent:
        most = at.stp.max_sd
        gives = at.stp.type == BGREJ and at.stp.reason == CALL_ANEW
        if at.stp.fault or not (gives or at.stp.type in (BEGIN, BGAK)):
            continue
        if most is None:
            yield context.violated(f"{at.name} carries no MaxSD option", at)
            continue
        higher = [
            given for given in flow.ledger.given.values()
            if given.frame < at.frame and at.time - given.time < GOOD_S - DUE_S
            and (given.stp.max_sd or 0) > most
        ]  # fmt: skip
        if higher and at.stp.type != BEGIN:
            yield context.violated(
                f"{at.name} lowers MaxSD to {most}", higher[0], at,
                expected=f"at least {higher[0].stp.max_sd}", actual=f"{most}",
            )  # fmt: skip
        else:
            yield judged(
                context, most >= LEAST_MAX_SD,
                f"{at.name} announces a MaxSD of {most}",
                f"{at.name} announces a MaxSD of only {most}", at,
            )  # fmt: skip


@checker("STP-PF-017")
def cookies_fit_the_option(flow: Flow, context: Context) -> Findings:
    """One cookie of 8 to 32 octets is given, and those of the peer are returned (section 3.3)."""
    for at in flow.sent:
        gives = at.stp.type == BGREJ and at.stp.reason == CALL_ANEW
        if at.stp.fault or not (gives or at.stp.type == BGAK):
            continue
        sizes = _cookie_sizes(at.stp.options)
        yield judged(
            context, len(sizes) == 1 and sizes[0] in COOKIE_SIZES,
            f"{at.name} carries a cookie of {sum(sizes)} octets",
            f"{at.name} carries no cookie that fits the option", at,
            expected="one Cookie option of 8 to 32 octets", actual=f"cookies of {sizes} octets",
        )  # fmt: skip
    for refusal in refusals(flow):
        cookie, anew = refusal.at.stp.cookie or b"", refusal.anew
        if anew is not None:
            yield judged(
                context, anew.stp.cookie == cookie,
                f"a cookie of {len(cookie)} octets was returned",
                f"a cookie of {len(cookie)} octets was not returned", refusal.at, anew,
                expected=cookie.hex(), actual=(anew.stp.cookie or b"").hex(),
            )  # fmt: skip
        elif refusal.place <= MOST_ANEW and observed(flow, refusal.at):
            yield context.violated(f"a cookie of {len(cookie)} octets was not accepted", refusal.at)


def _cookie_sizes(octets: bytes) -> list[int]:
    """Octets of the value of each Cookie option of a well-formed option field."""
    return [size for kind, size in options_of(octets) if kind == COOKIE]


@checker("STP-PF-016")
def packets_are_not_fragmented(flow: Flow, context: Context) -> Findings:
    """No packet with data exceeds the MTU, and none may be fragmented (section 3.6).

    What the MTU of a foreign path is, a capture does not tell.
    """
    for sd in flow.sds_sent if flow.whole else ():
        octets = len(sd.packet.data)
        yield judged(
            context, octets <= MTU and sd.stp.dont_fragment,
            f"{sd.name} of {octets} octets has the Don't Fragment bit",
            f"{sd.name} may be fragmented", sd,
            expected=f"at most {MTU} octets, and the Don't Fragment bit",
            actual=f"{octets} octets, {'with' if sd.stp.dont_fragment else 'without'} it",
        )  # fmt: skip
