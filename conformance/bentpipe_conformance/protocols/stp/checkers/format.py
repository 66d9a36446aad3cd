"""STP-PF: the format of packets (section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.common import (
    At,
    answers,
    heard_packets,
    name,
    observed_long_enough,
    sent_packets,
)
from bentpipe_conformance.protocols.stp.checkers.discarding import discarded
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    NAMES,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, tag_of
from bentpipe_conformance.protocols.stp.replay.events import ReportSent, SdHeard
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LARGEST_PACKET = 1500 - 20
"""Octets of an STP packet over IPv4 on the suite's links, whose MTU is 1,500; UDP takes 8 more."""

LARGEST_MAX_STAT = 67
"""Elements of a STAT (section 8, MaxSTAT: 67, or less)."""

PARTS_S = 0.02
"""Seconds within which the parts of one list leave."""


@checker("STP-PF-001")
def known_types_and_flags(flow: Flow, context: Context) -> Iterator[Finding]:
    """Types, flags and reserved fields of everything the IUT sends."""
    for at, stp in sent_packets(flow):
        if stp.type not in NAMES:
            yield context.violated(f"a packet of type {stp.type}, which is not used, was sent", at)
        elif stp.reserved_flags:
            yield context.violated(
                f"{name(stp)} was sent with the reserved flags {stp.reserved_flags:#x}", at
            )
        elif any(stp.reserved):
            yield context.violated(
                f"{name(stp)} was sent with reserved fields that are not zero", at
            )
        elif not stp.fault:
            yield context.holds(f"{name(stp)} has only the flags and fields of its type", at)


@checker("STP-PF-002")
def exact_lengths(flow: Flow, context: Context) -> Iterator[Finding]:
    """The length of everything the IUT sends."""
    for at, stp in sent_packets(flow):
        if stp.type not in NAMES:
            continue
        if stp.fault:
            yield context.violated(f"{name(stp)} has a wrong length: {stp.fault}", at)
        else:
            yield context.holds(f"{name(stp)} has exactly the length of its type", at)


@checker("STP-PF-003")
def malformed_is_discarded(flow: Flow, context: Context) -> Iterator[Finding]:
    """Malformed packets that reached the IUT."""
    for event in flow.others:
        if not event.packet.outgoing and event.stp.fault and event.stp.checksum_ok:
            yield from discarded(
                flow, context, At(event.packet), f"a malformed packet ({event.stp.fault})"
            )


@checker("STP-PF-007")
def wrong_checksum_is_discarded(flow: Flow, context: Context) -> Iterator[Finding]:
    """Packets with a wrong checksum that reached the IUT."""
    for event in flow.others:
        if not event.packet.outgoing and not event.stp.checksum_ok:
            what = f"{name(event.stp)} with a wrong checksum"
            yield from discarded(flow, context, At(event.packet), what)


@checker("STP-PF-004")
def reserved_fields_are_ignored(flow: Flow, context: Context) -> Iterator[Finding]:
    """POLLs, SDs and BEGINs that reached the IUT with reserved flags or fields set."""
    for poll in flow.polls_heard:
        if not _reserved(poll.stp) or not poll.open:
            continue
        if poll.answers:
            yield context.holds(f"{name(poll.stp)} with reserved bits set was answered", poll)
        elif observed_long_enough(flow, At(poll.packet)):
            yield context.violated(f"{name(poll.stp)} with reserved bits set got no STAT", poll)
    for sd in flow.sds_heard:
        if _reserved(sd.stp) and not (sd.duplicate or sd.beyond or sd.early):
            yield from _taken_in(flow, context, sd)
    for at, stp in heard_packets(flow):
        if (
            stp.type != BEGIN
            or not _reserved(stp)
            or not stp.wellformed
            or at.packet.number != (flow.packets[0].number)
        ):
            continue
        replies = answers(flow, at, (BGAK, BGREJ))
        if replies:
            yield context.holds("a BEGIN with reserved flags set was answered", at, replies[0])
        elif observed_long_enough(flow, at):
            yield context.violated("a BEGIN with reserved flags set was not answered", at)


def _reserved(stp: Stp) -> bool:
    return bool(stp.reserved_flags) or any(stp.reserved)


def _taken_in(flow: Flow, context: Context, sd: SdHeard) -> Iterator[Finding]:
    """Whether the first STAT after an SD knows of it."""
    for report in flow.reports_sent:
        # Up to then the IUT may not have looked at the SD.
        if not report.is_stat or report.poll is None or report.poll.time <= sd.time:
            continue
        runs = zip(report.elements[::2], report.elements[1::2], strict=False)
        missing = any(first <= sd.number < second for first, second in runs)
        bound = report.elements[-1] if report.elements else report.n_r
        if missing or (sd.number >= bound and report.certain):
            yield context.violated(
                f"SD {sd.number} with reserved bits set is reported missing", sd, report
            )
        elif sd.number < bound:
            yield context.holds(f"SD {sd.number} with reserved bits set was taken in", sd, report)
        return


@checker("STP-PF-008")
def unknown_options_are_ignored(flow: Flow, context: Context) -> Iterator[Finding]:
    """BEGINs with an option of unknown kind, and what follows the option."""
    for at, stp in heard_packets(flow):
        if stp.type != BEGIN or not stp.wellformed or stp.csn != flow.tester_csn:
            continue
        if not _unknown_kinds(stp.options) or at.packet.number != flow.packets[0].number:
            continue
        replies = answers(flow, at, (BGAK, BGREJ))
        if not replies:
            if observed_long_enough(flow, at):
                yield context.violated("a BEGIN with an unknown option was not answered", at)
            continue
        large = next(
            (sd for sd in flow.sds_sent
             if stp.max_sd is not None and len(sd.stp.data) > stp.max_sd), None
        )  # fmt: skip
        small = (
            stp.max_sd is None
            or stp.max_sd <= LEAST_MAX_SD
            or any(len(sd.stp.data) > LEAST_MAX_SD for sd in flow.sds_sent)
        )
        if large is not None:
            yield context.violated(
                f"SD {large.number} exceeds the MaxSD behind an unknown option", at, large
            )
        elif not small and len(flow.sds_sent) >= 2:
            yield context.violated(
                "the MaxSD behind an unknown option was not used", at, flow.sds_sent[0],
                expected=f"SDs of up to {stp.max_sd} octets",
                actual=f"SDs of up to {max(len(sd.stp.data) for sd in flow.sds_sent)} octets",
            )  # fmt: skip
        else:
            yield context.holds("a BEGIN with an unknown option was processed", at, replies[0])


def _unknown_kinds(octets: bytes) -> list[int]:
    """Kinds in a well-formed option field that section 3.3 does not name."""
    found, at = [], 0
    while at < len(octets):
        if octets[at] == 0:
            at += 1
            continue
        if octets[at] != 1:
            found.append(octets[at])
        at += octets[at + 1]
    return found


@checker("STP-PF-005")
def tag_of_the_sender(flow: Flow, context: Context) -> Iterator[Finding]:
    """The tag of everything the IUT sends."""
    for at, stp in sent_packets(flow):
        if stp.fault or (stp.type == END and stp.flags & R):
            continue
        if stp.type == BGREJ:
            wanted: int | None = 0
        elif stp.type in (BEGIN, BGAK, END):
            # They name the CSN themselves, whatever connection they are taken to belong to.
            wanted = tag_of(stp.csn or 0)
        else:
            wanted = tag_of(flow.iut_csn) if flow.iut_csn is not None else None
        if wanted is None or (flow.established is None and stp.type not in (BEGIN, BGAK, BGREJ)):
            # Without a connection there is no CSN to compare with.
            continue
        if stp.tag == wanted:
            yield context.holds(f"{name(stp)} carries the tag {wanted:#06x}", at)
        else:
            yield context.violated(
                f"{name(stp)} carries a wrong tag", at,
                expected=f"tag {wanted:#06x}", actual=f"tag {stp.tag:#06x}",
            )  # fmt: skip


@checker("STP-PF-006")
def right_checksum(flow: Flow, context: Context) -> Iterator[Finding]:
    """The checksum of everything the IUT sends."""
    for at, stp in sent_packets(flow):
        if stp.checksum_ok:
            yield context.holds(f"{name(stp)} has a right checksum", at)
        else:
            yield context.violated(f"{name(stp)} has a wrong checksum {stp.checksum:#06x}", at)


@checker("STP-PF-009")
def within_the_peers_max_sd(flow: Flow, context: Context) -> Iterator[Finding]:
    """User data of BEGIN, SD and SDP against what the tester announced before."""
    for sd in flow.sds_sent:
        octets = len(sd.stp.data)
        begins_before_the_answer = sd.stp.type == BEGIN
        announced = None if begins_before_the_answer else _announced_before(flow, sd.time)
        most = LEAST_MAX_SD if announced is None else announced
        if octets > most:
            told = "no MaxSD was received" if announced is None else f"MaxSD is {announced}"
            yield context.violated(f"SD {sd.number} carries {octets} octets, but {told}", sd)
        elif octets:
            yield context.holds(f"SD {sd.number} carries {octets} octets of at most {most}", sd)


def _announced_before(flow: Flow, time: float) -> int | None:
    """The MaxSD the tester had announced by then."""
    for packet in (*flow.begins, *flow.bgaks):
        stp = packet.content
        if packet.outgoing or packet.time > time or stp is None or not stp.wellformed:
            continue
        if stp.csn == flow.tester_csn and stp.max_sd is not None:
            return stp.max_sd
    return None


@checker("STP-PF-010")
def max_sd_announced(flow: Flow, context: Context) -> Iterator[Finding]:
    """The MaxSD option of BEGIN and BGAK."""
    for at, stp in sent_packets(flow):
        if stp.type not in (BEGIN, BGAK) or stp.fault:
            continue
        if stp.max_sd is None:
            yield context.violated(f"{name(stp)} carries no MaxSD option", at)
        elif stp.max_sd < LEAST_MAX_SD:
            yield context.violated(f"{name(stp)} announces a MaxSD of only {stp.max_sd}", at)
        else:
            yield context.holds(f"{name(stp)} announces a MaxSD of {stp.max_sd}", at)


@checker("STP-PF-011")
def well_formed_list(flow: Flow, context: Context) -> Iterator[Finding]:
    """The list of every STAT the IUT sends."""
    for report in flow.reports_sent:
        if not report.is_stat:
            continue
        listed = report.elements
        problem = ""
        if len(listed) == 1:
            problem = "has a single element"
        elif listed and listed[0] < report.n_r:
            problem = f"begins at {listed[0]}, below N(R) {report.n_r}"
        elif any(second <= first for first, second in pairwise(listed)):
            problem = "does not rise strictly"
        elif listed and listed[-1] > report.n_mr:
            problem = f"has the bound {listed[-1]}, above N(MR) {report.n_mr}"
        if problem:
            yield context.violated(f"the list {_shown(listed)} of a STAT {problem}", report)
        elif listed:
            yield context.holds(f"the list {_shown(listed)} of a STAT is well formed", report)


@checker("STP-PF-012")
def long_list_is_cut(flow: Flow, context: Context) -> Iterator[Finding]:
    """STATs with long lists, and the parts of one list."""
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
        elif _continues(before, report):
            assert before is not None
            largest = len(before.elements)
            if largest % 2 == 0:
                yield context.violated(
                    f"a list was cut after {largest} elements, an even number", before, report
                )
            elif size > largest:
                yield context.violated(
                    f"a part of {largest} elements is followed by one of {size}", before, report
                )
            else:
                yield context.holds(
                    f"a list goes on in a second STAT with its last element {report.elements[0]}",
                    before, report,
                )  # fmt: skip
        elif before is not None and _repeats_poll(before, report) and _torn(before, report):
            yield context.violated(
                "a list goes on in a second STAT, but not with the last element of the first",
                before, report,
                expected=f"a list that begins with {before.elements[-1]}",
                actual=f"a list that begins with {report.elements[0]}",
            )  # fmt: skip
        before = report


def _repeats_poll(before: ReportSent, report: ReportSent) -> bool:
    """Whether two STATs are parts of one list; STP-DT-024 repeats N(PS) too, but later."""
    same = before.stp.n_ps == report.stp.n_ps and before.stp.timestamp == report.stp.timestamp
    together = before.n_r == report.n_r and report.time - before.time <= PARTS_S
    return (
        same
        and together
        and before.poll is report.poll
        and bool(before.elements and report.elements)
    )


def _continues(before: ReportSent | None, report: ReportSent) -> bool:
    if before is None or not _repeats_poll(before, report):
        return False
    return report.elements[0] == before.elements[-1]


def _torn(before: ReportSent, report: ReportSent) -> bool:
    """Whether a second STAT to one POLL speaks of what lies above the first."""
    return report.elements[0] > before.elements[-1]


@checker("STP-PF-013")
def one_run(flow: Flow, context: Context) -> Iterator[Finding]:
    """The run of every USTAT the IUT sends."""
    for report in flow.reports_sent:
        if report.is_stat:
            continue
        first, second = report.elements
        if report.n_r <= first < second <= report.n_mr:
            yield context.holds(f"a USTAT reports the run {first}..{second}", report)
        else:
            yield context.violated(
                f"a USTAT reports {first}..{second} with N(R) {report.n_r} and N(MR) {report.n_mr}",
                report,
            )


def _shown(listed: tuple[int, ...]) -> str:
    texts = [*map(str, listed)]
    if len(texts) > 10:
        texts[4:-2] = ["..."]
    return ", ".join(texts) or "(empty)"
