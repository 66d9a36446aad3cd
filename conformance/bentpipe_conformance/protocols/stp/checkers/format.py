"""STP-PF: the format of packets (section 3)."""

from __future__ import annotations

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answered,
    answers,
    answers_on_ports,
    discarded,
    is_idle,
    many_before,
    observed,
)
from bentpipe_conformance.protocols.stp.checkers.calling import CALL_ANEW, MOST_ANEW, refusals
from bentpipe_conformance.protocols.stp.checkers.opening import due_answer, replies_to
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
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, tag_of
from bentpipe_conformance.protocols.stp.replay.cookies import GOOD_S
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    ReportHeard,
    ReportSent,
    SdHeard,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow, State

MTU = 1500
"""Octets of an IPv4 packet on the suite's links."""

LARGEST_PACKET = MTU - 20
"""Octets of an STP packet over IPv4 on these links; UDP takes 8 more."""

LARGEST_MAX_STAT = 67
"""Elements of a STAT (section 8, MaxSTAT: 67, or less)."""

MAX_SD, COOKIE, COOKIE_SIZES = 1, 2, range(8, 33)
"""Kinds of the options, and octets that the value of a cookie may have (section 3.3)."""

RESERVED_S = 2.0
"""Seconds after which a packet that counts must have shown an effect."""

PARTS_S = 0.02
"""Seconds within which the parts of one list leave."""


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
        due = due_answer(flow, at)
        if at.stp.version != VERSION and due is not None and not many_before(flow, at, (BEGIN,)):
            replies = [reply for reply in replies_to(flow, at) if due.is_met_by(reply)]
            yield from answered(flow, context, at, replies, due.about)


@checker("STP-PF-007")
def wrong_checksum_is_discarded(flow: Flow, context: Context) -> Findings:
    """A packet with a wrong checksum is discarded (section 3.2)."""
    for at in flow.heard:
        if at.stp.damaged:
            whose = "" if not at.stp.checksum_ok else " of UDP's"
            yield from discarded(flow, context, at, f"{at.name} with a wrong checksum{whose}")


@checker("STP-PF-004")
def reserved_fields_are_ignored(flow: Flow, context: Context) -> Findings:
    """Reserved flags and fields that are set change nothing (section 3.1)."""
    for poll in flow.polls_heard:
        if not _reserved(poll.stp):
            continue
        if poll.answers:
            yield context.holds(f"{poll.name} with reserved bits set was answered", poll)
        elif observed(flow, poll):
            yield context.violated(f"{poll.name} with reserved bits set got no STAT", poll)
    for sd in flow.sds_heard:
        if _reserved(sd.stp) and not (sd.duplicate or sd.beyond):
            yield from _accepted(flow, context, sd)
    for at in flow.heard_of(BEGIN, END):
        if not _reserved(at.stp):
            continue
        what = f"{at.name} with reserved bits set"
        if at.stp.type == BEGIN:
            due = due_answer(flow, at)
            replies = [reply for reply in replies_to(flow, at) if due and due.is_met_by(reply)]
            if due is not None:
                many = due.rule == "STP-CC-019" and many_before(flow, at, (BEGIN,))
                yield from answered(flow, context, at, replies, what, excused=many)
        elif not at.stp.flags & R and flow.names(at) and flow.state_when(at) in _ENDABLE:
            yield from answered(flow, context, at, answers(flow, at, (ENDAK,)), what)
    yield from _reserved_in_strays(flow, context)
    yield from _reserved_for_callers(flow, context)
    for report in flow.reports_heard:
        if _reserved(report.stp) and report.wanted and not report.fault:
            yield from _retransmitted(flow, context, report)
    for at in flow.heard_of(ENDAK):
        if (
            _reserved(at.stp)
            and flow.state_when(at) == State.RELEASING
            and flow.is_recipient(at.stp)
        ):
            later = [
                end for end in flow.sent
                if end.time > at.time + DUE_S and end.stp.type == END and not end.stp.flags & R
            ]  # fmt: skip
            if later or flow.until - at.time > RESERVED_S:
                yield judged(
                    context, not later,
                    "an ENDAK with reserved bits set was taken",
                    "an ENDAK with reserved bits set was ignored", at, *later[:1],
                )  # fmt: skip


_ENDABLE = (State.OPEN, State.RELEASING)
"""States in which an END with both CSNs is valid."""


def _reserved_in_strays(flow: Flow, context: Context) -> Findings:
    """Whether packets of no connection with reserved bits set are answered (section 5.5)."""
    for at in flow.heard_of(BGAK, END, SDP, POLL):
        ends_nothing = at.stp.type == END and at.stp.flags & R
        if not _reserved(at.stp) or ends_nothing or not is_idle(flow, at):
            continue
        replies = answers_on_ports(flow, at, (ENDAK if at.stp.type == END else END,))
        many = many_before(flow, at, (BGAK, END, SDP, POLL))
        what = f"{at.name} without a connection and with reserved bits set"
        yield from answered(flow, context, at, replies, what, excused=many)


def _reserved_for_callers(flow: Flow, context: Context) -> Findings:
    """Whether a caller has minded a BGAK and a BGREJ with reserved bits set."""
    for refusal in refusals(flow):
        if _reserved(refusal.at.stp) and refusal.place <= MOST_ANEW:
            replies = [refusal.anew] if refusal.anew is not None else []
            what = "a BGREJ with reserved bits set"
            yield from answered(flow, context, refusal.at, replies, what)
    for at in flow.bgaks:
        if _reserved(at.stp) and not at.outgoing and at.time == flow.established:
            again = [begin for begin in flow.begins if begin.time > at.time + flow.due_s]
            if again or flow.until - at.time > RESERVED_S:
                yield judged(
                    context, not again,
                    "a BGAK with reserved bits set was taken",
                    "a BGAK with reserved bits set was ignored", at, *again[:1],
                )  # fmt: skip


def _retransmitted(flow: Flow, context: Context, report: ReportHeard) -> Findings:
    """Whether a report has had the SDs sent again that it made await retransmission."""
    soon = [sd for sd in report.responses if sd.time <= report.time + RESERVED_S]
    if soon:
        yield context.holds(f"{report.name} with reserved bits set was taken", report, soon[0])
    elif flow.over > report.time + RESERVED_S:
        yield context.violated(f"{report.name} with reserved bits set was ignored", report)


def _reserved(stp: Stp) -> bool:
    return bool(stp.reserved_flags) or any(stp.reserved)


def _accepted(flow: Flow, context: Context, sd: SdHeard) -> Findings:
    """Whether the first STAT after an SD knows of it."""
    for report in flow.reports_sent:
        # An earlier STAT may have left before the SD was read.
        if not report.is_stat or report.poll is None or report.poll.time <= sd.time:
            continue
        what = f"SD {sd.number} with reserved bits set"
        if report.misses(sd.number) or (sd.number >= report.bound and report.certain):
            yield context.violated(f"{what} is reported missing", sd, report)
        elif sd.number < report.bound:
            yield context.holds(f"{what} was accepted", sd, report)
        return


@checker("STP-PF-008")
def unknown_options_are_ignored(flow: Flow, context: Context) -> Findings:
    """An option of unknown kind is skipped, and what follows it is processed (section 3.3)."""
    yield from _unknown_to_callers(flow, context)
    for at in flow.heard_of(BEGIN):
        max_sd, due = at.stp.max_sd, due_answer(flow, at)
        if due is None or due.kind == END or not _has_unknown_kinds(at.stp.options):
            continue
        replies = [reply for reply in replies_to(flow, at) if due.is_met_by(reply)]
        if not replies or at is not flow.opener:
            yield from answered(flow, context, at, replies, "a BEGIN with an unknown option")
            continue
        largest = max(flow.sds_sent, key=lambda sd: len(sd.stp.data), default=None)
        most = 0 if largest is None else len(largest.stp.data)
        if largest is not None and max_sd is not None and most > max_sd:
            large = next(sd for sd in flow.sds_sent if len(sd.stp.data) > max_sd)
            yield context.violated(
                f"SD {large.number} exceeds the MaxSD behind an unknown option", at, large
            )
        elif _keeps_to_the_least(flow, max_sd, most):
            yield context.violated(
                "the MaxSD behind an unknown option was not used", at, flow.sds_sent[0],
                expected=f"SDs of up to {max_sd} octets", actual=f"SDs of up to {most} octets",
            )  # fmt: skip
        else:
            yield context.holds("a BEGIN with an unknown option was processed", at, replies[0])


def _keeps_to_the_least(flow: Flow, max_sd: int | None, most: int) -> bool:
    """Whether the SDs are as long as without a MaxSD, though the IUT itself takes longer ones."""
    longer = max_sd is not None and LEAST_MAX_SD < max_sd <= (flow.iut_max_sd or 0)
    return longer and most == LEAST_MAX_SD and len(flow.sds_sent) >= 2


def _unknown_to_callers(flow: Flow, context: Context) -> Findings:
    """Whether a caller has minded the cookie behind an unknown option of a BGREJ."""
    for refusal in refusals(flow):
        if _has_unknown_kinds(refusal.at.stp.options) and refusal.place <= MOST_ANEW:
            replies = [refusal.anew] if refusal.anew is not None else []
            what = "a BGREJ with an unknown option"
            yield from answered(flow, context, refusal.at, replies, what)


def _has_unknown_kinds(octets: bytes) -> bool:
    """Whether a well-formed option field holds a kind that section 3.3 does not name."""
    return any(kind > COOKIE for kind, _ in _options(octets))


def _options(octets: bytes) -> list[tuple[int, int]]:
    """Kind, and octets of the value, of each option of a well-formed option field."""
    found, at = [], 0
    while at < len(octets):
        if octets[at]:
            found.append((octets[at], octets[at + 1] - 2))
        at += octets[at + 1] if octets[at] else 1
    return found


@checker("STP-PF-018")
def odd_options_are_ignored(flow: Flow, context: Context) -> Findings:
    """Options of a wrong length are skipped, and of several of a kind the first counts (3.3)."""
    for refusal in refusals(flow):
        at, anew = refusal.at, refusal.anew
        if _has_odd_options(at.stp.options) and refusal.place <= MOST_ANEW:
            right = anew is not None and anew.stp.cookie == at.stp.cookie
            if anew is not None or observed(flow, at):
                yield judged(
                    context, right,
                    "a BGREJ with odd options was taken as it is to be",
                    "a BGREJ with odd options was not taken as it is to be",
                    at, *([anew] if anew else []),
                )  # fmt: skip
    for at in flow.heard_of(BEGIN):
        due = due_answer(flow, at)
        if due is None or not _has_odd_options(at.stp.options):
            continue
        replies = [reply for reply in replies_to(flow, at) if due.is_met_by(reply)]
        yield from answered(flow, context, at, replies, "a BEGIN with odd options")
    opened = flow.opener or next((at for at in flow.bgaks if at.time == flow.established), None)
    if opened is None or opened.outgoing or not _has_odd_options(opened.stp.options):
        return
    most = max(opened.stp.max_sd or 0, LEAST_MAX_SD)
    large = [sd for sd in flow.sds_sent if sd.frame > opened.frame and len(sd.stp.data) > most]
    if large and opened.stp.max_sd is not None:
        yield context.violated(
            f"{large[0].name} exceeds the MaxSD that counts among odd options", opened, large[0],
            expected=f"at most {most} octets", actual=f"{len(large[0].stp.data)} octets",
        )  # fmt: skip


def _has_odd_options(octets: bytes) -> bool:
    """Whether MaxSD or Cookie has a length that it cannot have, or is there twice."""
    sizes = {MAX_SD: range(2, 3), COOKIE: COOKIE_SIZES}
    known = [(kind, size) for kind, size in _options(octets) if kind in sizes]
    kinds = [kind for kind, _ in known]
    return len(set(kinds)) < len(kinds) or any(size not in sizes[kind] for kind, size in known)


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
    for sd in flow.sds_sent:
        octets = len(sd.stp.data)
        most = _most_data(flow, sd)
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
        bgak = next((at for at in flow.bgaks if not at.outgoing and at.frame < sd.frame), None)
        begin = next(at for at in flow.begins if at.outgoing)
        handed = flow.ledger.handed
        if bgak is not None and bgak.time == flow.established and bgak.stp.max_sd is not None:
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
    return [size for kind, size in _options(octets) if kind == COOKIE]


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


@checker("STP-PF-011")
def well_formed_list(flow: Flow, context: Context) -> Findings:
    """A STAT's list is empty, or rises strictly from N(R) to at most N(MR) (section 3.5)."""
    for report in flow.reports_sent:
        if report.is_stat and report.elements:
            problem = report.list_fault()
            what = f"the list {_shown(report.elements)} of a STAT"
            yield judged(
                context, not problem, f"{what} is well-formed", f"{what} {problem}", report
            )


@checker("STP-PF-012")
def long_list_is_cut(flow: Flow, context: Context) -> Findings:
    """A list longer than MaxSTAT is cut at an odd element, repeated next (section 3.5)."""
    before = None
    for report in flow.reports_sent:
        if not report.is_stat:
            continue
        size = len(report.elements)
        octets = len(report.stp.octets) + (8 if report.stp.udp_dport else 0)
        if size > LARGEST_MAX_STAT:
            yield context.violated(f"a STAT has {size} elements, more than MaxSTAT can be", report)
        elif octets > LARGEST_PACKET:
            yield context.violated(f"a STAT of {octets} octets does not fit the path", report)
        elif before is not None and _repeats_poll(before, report):
            yield from _continued(context, before, report)
        before = report
    for said in context.prepared.statements:
        # A part of a list that is all there is: what follows was due at once. It may have been all
        # before the packet arrived that made the list longer.
        last = said.parts[-1]
        part = said.certain and not (said.complete or said.true)
        if part and flow.over > last.time + flow.due_s:
            yield context.violated(
                f"a list of {len(said.elements)} elements ends before everything is said", last,
                expected=f"another STAT that begins with {last.elements[-1]}", actual="none",
            )  # fmt: skip


def _continued(context: Context, before: ReportSent, report: ReportSent) -> Findings:
    """Whether the second part of a list continues the first."""
    largest, size = len(before.elements), len(report.elements)
    last, first = before.elements[-1], report.elements[0]
    if first > last:
        yield context.violated(
            "a list continues in a second STAT, but not with the last element of the first",
            before, report,
            expected=f"a list that begins with {last}", actual=f"a list that begins with {first}",
        )  # fmt: skip
    elif first < last:
        return
    elif largest % 2 == 0:
        yield context.violated(
            f"a list was cut after {largest} elements, an even number", before, report
        )
    else:
        yield judged(
            context, size <= largest,
            f"a list continues in a second STAT with its last element {first}",
            f"a part of {largest} elements is followed by one of {size}", before, report,
        )  # fmt: skip


def _repeats_poll(before: ReportSent, report: ReportSent) -> bool:
    """Whether two STATs are parts of one list; STP-DT-024 repeats N(PS) too, but later."""
    same = before.stp.n_ps == report.stp.n_ps and before.stp.timestamp == report.stp.timestamp
    together = before.n_r == report.n_r and report.time - before.time <= PARTS_S
    listed = bool(before.elements and report.elements)
    return same and together and before.poll is report.poll and listed


@checker("STP-PF-013")
def one_run(flow: Flow, context: Context) -> Findings:
    """A USTAT reports one run between N(R) and N(MR) (section 3.5)."""
    for report in flow.reports_sent:
        if not report.is_stat:
            first, second = report.elements
            run = f"{first}..{second}"
            yield judged(
                context, report.n_r <= first < second <= report.n_mr,
                f"a USTAT reports the run {run}",
                f"a USTAT reports {run} with N(R) {report.n_r} and N(MR) {report.n_mr}", report,
            )  # fmt: skip


def _shown(listed: tuple[int, ...]) -> str:
    texts = [*map(str, listed)]
    if len(texts) > 10:
        texts[4:-2] = ["..."]
    return ", ".join(texts)
