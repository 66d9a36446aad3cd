"""STP-CC: half-close and release (sections 5.4 and 5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.calling import left_alone, repetitions
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    answers,
    ends_sent,
    heard_packets,
    name,
    observed_long_enough,
    proven_at,
)
from bentpipe_conformance.protocols.stp.checkers.discarding import discarded
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
    A,
    R,
    Stp,
)
from bentpipe_conformance.protocols.stp.numbers import near, newer
from bentpipe_conformance.protocols.stp.ports import CHARGEN, DISCARD, ECHO
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.completion import (
    fin_acknowledged,
    peer_finished,
    peers_fin,
)
from bentpipe_conformance.protocols.stp.replay.flow import OPEN, RELEASING, Flow

SERVICES = (ECHO, DISCARD, CHARGEN)
"""They close after the peer's FIN (section 11)."""

SOON_S = 2.0
"""For what is due once the user has taken the data and closed, but without a time of its own."""

IDLE_S = 6.0
"""Longer than any time between POLLs of a sender whose POLLs are answered (STP-PL-001)."""

_DATA = (SD, SDP, POLL, STAT, USTAT)


def _own_fin(flow: Flow) -> At | None:
    """The first SD of the IUT with the FIN flag."""
    fin = flow.sender.fin if flow.sender is not None else None
    return next((At(sd.packet) for sd in flow.sds_sent if sd.number == fin), None)


@checker("STP-CC-004")
def fin_is_reported_after_the_data(flow: Flow, context: Context) -> Iterator[Finding]:
    """A service's own FIN tells that its peer's has been reported to it."""
    fin, own = peers_fin(flow), _own_fin(flow)
    if own is None or fin is None or flow.iut_calls or flow.service not in SERVICES:
        return
    heard = {sd.number for sd in flow.sds_heard if sd.packet.number < own.packet.number}
    if fin not in heard:
        return
    lacking = [number for number in range(fin) if number not in heard]
    if lacking:
        yield context.violated(
            f"the service closed before SD {lacking[0]} arrived, though SD {fin} has the FIN",
            own,
        )  # fmt: skip
    elif flow.service == ECHO and flow.receiver is not None and flow.sender is not None:
        data = [flow.sender.data.get(number) for number in range((flow.sender.fin or 0) + 1)]
        if any(part is None for part in data):
            return
        returned = b"".join(part or b"" for part in data)
        stream = bytes(flow.receiver.reception.stream)
        if returned == stream:
            yield context.holds("the service closed after all data was delivered", own)
        elif stream.startswith(returned) and flow.receiver.certain:
            yield context.violated(
                "the service closed before all data was delivered", own,
                expected=f"{len(stream)} octets returned", actual=f"{len(returned)} octets",
            )  # fmt: skip
    else:
        yield context.holds("the service closed after all SDs had arrived", own)


@checker("STP-CC-023")
def fin_closes_one_direction(flow: Flow, context: Context) -> Iterator[Finding]:
    """What the IUT sends after its peer's FIN, as long as its own stream has not ended."""
    finished, sender = peer_finished(flow), flow.sender
    if finished is None or sender is None:
        return
    acknowledged = fin_acknowledged(flow)
    if acknowledged is not None and acknowledged <= finished:
        return
    release = _first_end(flow)
    if release is not None and release.packet.time >= finished:
        stp = release.packet.content
        if stp is not None and not stp.flags & A and (
            acknowledged is None or acknowledged > release.packet.time
        ):  # fmt: skip
            yield context.violated(
                "after the peer's FIN the connection was released, though the IUT's own stream "
                "had not been acknowledged to its end",
                release,
            )
            return
    going_on = [
        At(event.packet) for event in (*flow.sds_sent, *flow.polls_sent) if event.time >= finished
    ]
    if going_on:
        yield context.holds("after the peer's FIN its own stream went on", going_on[0])
        return
    over = flow.ended if flow.ended is not None else flow.until
    if _has_to_go_on(flow, finished) and over - finished > IDLE_S:
        yield context.violated(
            f"nothing was sent for {over - finished:.1f} s after the peer's FIN, though the own "
            "stream had not ended",
            *(At(sd.packet) for sd in flow.sds_heard if sd.stp.flags & FIN),
        )  # fmt: skip


def _has_to_go_on(flow: Flow, finished: float) -> bool:
    """Whether something has to leave soon after the peer's FIN."""
    sender = flow.sender
    if sender is None or (not flow.iut_calls and proven_at(flow) is None):
        return False
    if sender.vt_a == sender.vt_s:
        # Its service closes; without credit only probes leave, ever less often (STP-DT-025).
        closes = flow.service in SERVICES and not flow.iut_calls
        return closes and sender.vt_s < sender.vt_ms
    # Silence makes POLLs rare (STP-PL-007); where they were being answered they are not.
    return any(
        report.is_stat and not report.fault and -IDLE_S / 3 <= report.time - finished <= 0
        for report in flow.reports_heard
    )


@checker("STP-CC-024")
def nothing_follows_the_fin(flow: Flow, context: Context) -> Iterator[Finding]:
    """SDs numbered above the first with the FIN flag."""
    own = _own_fin(flow)
    if own is None or flow.sender is None or flow.sender.fin is None:
        return
    above = [sd for sd in flow.sds_sent if sd.number > flow.sender.fin]
    if above:
        yield context.violated(
            f"SD {above[0].number} follows SD {flow.sender.fin}, which has the FIN flag",
            own, above[0],
        )  # fmt: skip
    elif flow.until - own.packet.time >= SOON_S or fin_acknowledged(flow) is not None:
        yield context.holds(f"no SD followed SD {flow.sender.fin} with its FIN", own)


def _first_end(flow: Flow) -> At | None:
    return next((at for at, _ in ends_sent(flow)), None)


@checker("STP-CC-026")
def end_is_repeated_by_timer(flow: Flow, context: Context) -> Iterator[Finding]:
    """The times of an unanswered END's transmissions."""
    sent = [at.packet for at, _ in ends_sent(flow)]
    if not sent:
        return
    # What ends the wait may have come, or another call, or the peer's CSN to begin anew with.
    kinds = (END, ENDAK, BEGIN) if flow.established is not None else (END, ENDAK, BEGIN, BGAK)
    over = [
        at.packet.time for at, stp in heard_packets(flow)
        if stp.type in kinds and at.packet.time >= sent[0].time - DUE_S
        and not (stp.type == ENDAK and stp.peer_csn != flow.iut_csn)
        and not (stp.type == BEGIN and stp.csn == flow.tester_csn)
    ]  # fmt: skip
    yield from repetitions(flow, context, sent, min(over, default=_displaced(flow)))
    done = _release_answered(flow)
    if done is not None:
        yield from left_alone(flow, context, sent, done)
    for at, stp in heard_packets(flow):
        stray = stp.type == ENDAK and stp.wellformed and stp.peer_csn != flow.iut_csn
        if stray and flow.state_before.get(at.packet.number) == RELEASING:
            yield from discarded(flow, context, at, "an ENDAK for another connection")


def _release_answered(flow: Flow) -> At | None:
    """The ENDAK, or the valid END, that the IUT's END was waiting for."""
    return next(
        (at for at, stp in heard_packets(flow)
         if stp.wellformed and stp.peer_csn == flow.iut_csn
         and (stp.type == ENDAK or (stp.type == END and stp.csn == flow.tester_csn))
         and flow.state_before.get(at.packet.number) == RELEASING), None
    )  # fmt: skip


def _displaced(flow: Flow) -> float | None:
    """When another connection took the ports."""
    later = [
        other.packets[0].time for other in flow.neighbours
        if other.incarnation.ends == flow.incarnation.ends
        and other.incarnation.start > flow.incarnation.start
    ]  # fmt: skip
    return min(later, default=None)


@checker("STP-CC-027")
def premature_end_is_an_abort(flow: Flow, context: Context) -> Iterator[Finding]:
    """Valid ENDs without A flag at an IUT that is not complete; what its user hears is hidden."""
    for at, stp in heard_packets(flow):
        if not _is_premature(flow, at, stp):
            continue
        acknowledgments = answers(flow, at, (ENDAK,))
        after = [packet for packet in _data_after(flow, at) if packet.time > _due(flow, at)]
        if not acknowledgments:
            if observed_long_enough(flow, at):
                yield context.violated("a premature END was not acknowledged", at)
        elif after:
            yield context.violated(
                "the connection went on after a premature END", at, acknowledgments[0],
                At(after[0]),
            )  # fmt: skip
        else:
            yield context.holds("a premature END ended the connection", at, acknowledgments[0])
        return


def _due(flow: Flow, at: At) -> float:
    return at.packet.time + DUE_S + flow.timing_error


def _data_after(flow: Flow, at: At) -> list[Packet]:
    return [
        packet for packet in flow.packets
        if packet.outgoing and packet.number > at.packet.number and packet.content is not None
        and packet.content.type in _DATA
    ]  # fmt: skip


def _is_premature(flow: Flow, at: At, stp: Stp) -> bool:
    if stp.type != END or stp.flags & (A | R) or not stp.wellformed:
        return False
    if flow.state_before.get(at.packet.number) != OPEN:
        return False
    if (stp.csn, stp.peer_csn) != (flow.tester_csn, flow.iut_csn) or flow.sender is None:
        return False
    own = _own_fin(flow)
    if own is None or own.packet.number > at.packet.number or flow.sender.fin is None:
        return True
    # The END of a peer that had taken everything up to the FIN names the number above it.
    return near(stp.seq, flow.sender.iss, flow.sender.vt_a) <= flow.sender.fin


@checker("STP-CC-028")
def silence_after_the_release(flow: Flow, context: Context) -> Iterator[Finding]:
    """Data, POLLs and reports after the IUT's END, and what it must discard then (section 9)."""
    release = _first_end(flow)
    if release is None:
        return
    # A packet of the next connection on the ports carries another tag.
    after = _data_after(flow, release)
    if after:
        found = after[0].content
        assert found is not None
        yield context.violated(f"{name(found)} was sent after an END", release, At(after[0]))
        return
    if flow.until - release.packet.time > DUE_S:
        yield context.holds("nothing but ENDs followed an END", release)
    for at, stp in heard_packets(flow):
        if flow.state_before.get(at.packet.number) != RELEASING or not stp.wellformed:
            continue
        if stp.type == BGAK and flow.established is None:
            # It may tell the peer's CSN for the first time (section 5.5).
            continue
        if stp.type in (*_DATA, BGAK, BGREJ) or _is_stale_begin(flow, stp):
            yield from discarded(flow, context, at, f"{name(stp)} while ENDAK was awaited")


def _is_stale_begin(flow: Flow, stp: Stp) -> bool:
    if stp.type != BEGIN or stp.version != 1 or stp.csn is None or flow.tester_csn is None:
        return False
    return not newer(stp.csn, flow.tester_csn)
