"""STP-CC: half-close and release (sections 5.3 and 5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.checkers import Context, Findings, calling, judged
from bentpipe_conformance.protocols.stp.checkers.answers import (
    answers,
    discarded,
    ended_the_wait,
    observed,
)
from bentpipe_conformance.protocols.stp.numbers import ECHO, near
from bentpipe_conformance.protocols.stp.replay.echo import returned
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At
from bentpipe_conformance.protocols.stp.replay.flow import TAGGED, Flow, State
from bentpipe_conformance.protocols.stp.replay.reader import is_valid_end
from bentpipe_conformance.protocols.stp.replay.round_trip import first_wait

SOON_S = 2.0
"""For what is due, without a specified time, once the user has taken the data and closed."""

IDLE_S = 6.0
"""Longer than any time between POLLs of a sender whose POLLs are answered (STP-PL-001)."""

SHOWN_S = 0.3
"""Seconds after its completion in which an IUT shows that it leaves the release to the caller."""


def _ends_sent(flow: Flow) -> list[At]:
    """The ENDs without R flag by which the IUT ended this connection."""
    return [
        at for at in flow.sent
        if at.stp.type == codec.END and not at.stp.flags & codec.R and not at.stp.fault
        and at.stp.csn == flow.iut_csn and at.stp.peer_csn in (flow.tester_csn, 0)
    ]  # fmt: skip


def _release(flow: Flow) -> At | None:
    """The IUT's first END without A flag."""
    return next((at for at in _ends_sent(flow) if not at.stp.flags & codec.A), None)


@checker("STP-CC-004")
def fin_is_reported_after_the_data(flow: Flow, context: Context) -> Findings:
    """The peer's FIN, which a service answers by its own, is reported last (section 5.3)."""
    fin, own = context.prepared.completion.peers_fin, flow.own_fin
    if flow.sender is None or not flow.served:
        return
    yield from _fin_alone(flow, context)
    if own is None:  # a service that does not close at last is STP-DT-030's
        return
    if fin is None:
        if flow.opener is not None:
            yield context.violated("the service closed, though its peer had not", own)
        return
    heard = {sd.number for sd in flow.sds_heard if sd.frame < own.frame}
    if fin not in heard:
        return
    lacking = next((number for number in range(fin) if number not in heard), None)
    if lacking is not None:
        yield context.violated(
            f"the service closed before SD {lacking} arrived, though SD {fin} has the FIN", own
        )
    elif flow.service == ECHO:
        back = returned(flow, fin)
        if back is not None and back.right and back.octets == back.received:
            yield context.holds("the service closed after all data was delivered", own)
        # What it had before the FIN came, the FIN is no reason not to return (STP-DT-030).
        elif back is not None and back.right and not back.in_time:
            yield context.violated(
                "the service closed before all data was delivered", own,
                expected=f"{back.received} octets returned", actual=f"{back.octets} octets",
            )  # fmt: skip
    else:
        yield context.holds("the service closed after all SDs had arrived", own)


def _fin_alone(flow: Flow, context: Context) -> Findings:
    """Whether a BEGIN with the FIN flag and no data ends the stream: it takes a number (3.3)."""
    begin, bgak = flow.opener, next((at for at in flow.bgaks if at.outgoing), None)
    if begin is None or bgak is None or begin.stp.data or not begin.stp.flags & codec.FIN:
        return
    yield judged(
        context, bgak.stp.n_r != begin.stp.seq,
        "a BEGIN with the FIN flag and no data ended the stream",
        "the FIN flag of a BEGIN without data was overlooked", begin, bgak,
        expected="N(R) ISS + 1", actual="N(R) ISS",
    )  # fmt: skip


@checker("STP-CC-023")
def fin_closes_one_direction(flow: Flow, context: Context) -> Findings:
    """After the peer's FIN the IUT's stream continues to its end (section 5.3)."""
    ends = context.prepared.completion
    finished, acknowledged = ends.finished, ends.acknowledged
    if finished is None or not ends.certain or flow.sender is None:
        return
    if acknowledged is not None and acknowledged.time <= finished:
        return
    acknowledged_at = math.inf if acknowledged is None else acknowledged.time
    for release in _ends_sent(flow)[:1]:
        # An END with A flag is an abort.
        if finished <= release.time < acknowledged_at and not release.stp.flags & codec.A:
            yield context.violated(
                "after the peer's FIN the connection was released, though the IUT's own stream "
                "had not been acknowledged to its end",
                release,
            )
            return
    going_on = [event for event in (*flow.sds_sent, *flow.polls_sent) if event.time >= finished]
    silence = flow.over - finished
    if going_on:
        yield context.holds("after the peer's FIN the IUT's stream continued", going_on[0])
    elif silence > IDLE_S and ends.taken and _has_to_go_on(flow, context, finished):
        yield context.violated(
            f"nothing was sent for {silence:.1f} s after the peer's FIN, though the IUT's stream "
            "had not ended",
            *(sd for sd in flow.sds_heard if sd.stp.flags & codec.FIN),
        )


def _has_to_go_on(flow: Flow, context: Context, finished: float) -> bool:
    """Whether something must have left soon after the peer's FIN."""
    sender = flow.sender
    if sender is None:
        return False
    if sender.vt_a == sender.vt_s:
        # Without credit only probes leave, ever less often (STP-DT-025). A service that has nothing
        # more to send, and does not close, is no matter of the stream (STP-DT-030).
        return flow.served and sender.vt_s < sender.vt_ms and _echo_is_left(flow)
    # Silence makes POLLs rare (STP-PL-007); where they were being answered they are not.
    reports = [report for report in flow.reports_heard if not report.fault]
    answers = [item.time for item in reports if item.is_stat and item.time <= finished]
    if not answers or answers[-1] < finished - IDLE_S / 3:
        return False
    # Each report starts Timer_SILENCE again, and may have made the silence time longer.
    trips = context.prepared.round_trips(context.ics)
    started = [item.time for item in reports if item.time >= answers[-1]]
    return any(
        end > start + trips.silence(start)[1] + flow.timing_error + SOON_S
        for start, end in pairwise([*started, flow.over])
    )


def _echo_is_left(flow: Flow) -> bool:
    """Whether an echo has received more than it has returned."""
    if flow.service != ECHO or flow.sender is None or flow.receiver is None:
        return False
    returned = sum(len(data) for data in flow.sender.data.values())
    return flow.receiver.certain and returned < len(flow.receiver.reception.stream)


@checker("STP-CC-024")
def nothing_follows_the_fin(flow: Flow, context: Context) -> Findings:
    """No SD is numbered above the one with the FIN flag (section 5.3)."""
    own = flow.own_fin
    if own is None:
        return
    fin = own.number
    above = [sd for sd in flow.sds_sent if sd.number > fin]
    if above:
        yield context.violated(
            f"SD {above[0].number} follows SD {fin}, which has the FIN flag", own, above[0]
        )
    elif flow.until - own.time >= SOON_S or context.prepared.completion.acknowledged is not None:
        yield context.holds(f"no SD followed SD {fin} with its FIN", own)


@checker("STP-CC-025")
def caller_releases(flow: Flow, context: Context) -> Findings:
    """A caller sends its END within 0.1 s after completion, not before (section 5.4)."""
    release, done = _release(flow), context.prepared.completion
    if release is not None:
        early = done.certain and (done.time is None or release.time < done.time - flow.timing_error)
        if early or (flow.receiver is not None and done.peers_fin is None):
            yield context.violated(
                "an END without A flag left before both streams had ended", release
            )
            return
        if flow.receiver is not None and done.peers_fin is not None:
            above = done.peers_fin + 1
            stp, csn = release.stp, flow.tester_csn
            n_r = near(stp.seq, flow.receiver.iss, above)
            yield judged(
                context, n_r == above and not stp.reason and stp.peer_csn == csn,
                f"an END with N(R) {n_r}, just above the peer's FIN, was sent",
                "the END of a complete endpoint is wrong", release,
                expected=f"N(R) {above}, reason 0, CSN of the recipient {csn}",
                actual=f"N(R) {n_r}, reason {stp.reason}, CSN of the recipient {stp.peer_csn}",
            )  # fmt: skip
    if not done.certain or done.time is None or done.acknowledged is None:
        return
    due = done.time + flow.due_s
    aborts = [
        at for at in _ends_sent(flow)
        if at.stp.flags & codec.A and at.time >= done.time and at.frame > done.acknowledged.frame
        # A user may abort before it is told, and give a reason of its own.
        and (flow.served or at.time > due or at.stp.reason not in (1, 7))
    ]  # fmt: skip
    if aborts:
        yield context.violated("a complete connection was aborted", done.acknowledged, aborts[0])
        return
    if not flow.iut_calls:
        return
    if release is not None and release.time <= due:
        yield context.holds("the caller released its complete connection at once", release)
    elif flow.over > due:
        late = [release] if release is not None else []
        yield context.violated(
            "a caller did not release its complete connection in time", done.acknowledged, *late,
            expected=f"an END within {DUE_S:g} s",
            actual=f"after {late[0].time - done.time:.2f} s" if late else "none",
        )  # fmt: skip


@checker("STP-CC-031")
def called_leaves_the_release(flow: Flow, context: Context) -> Findings:
    """A complete endpoint that was called waits for its caller's END first (section 5.4)."""
    done = context.prepared.completion
    if flow.iut_calls or not done.certain or done.time is None or done.acknowledged is None:
        return
    least, most = _release_wait(flow, context, done.time)
    release = _release(flow)
    where = [done.acknowledged, *([release] if release is not None else [])]
    waited = (release.time if release is not None else flow.over) - done.time
    if release is not None and waited < least:
        yield context.violated(
            f"the called endpoint released after {max(waited, 0.0):.2f} s", *where,
            expected=f"not before {least:.2f} s",
        )  # fmt: skip
    elif waited > most:
        yield context.violated(
            "a complete connection was released by neither side in time", *where,
            expected=f"an END within {most:.2f} s",
        )  # fmt: skip
    elif release is not None:
        yield context.holds(
            f"the called endpoint released after {waited:.2f} s without the caller's END",
            *where,
        )
    elif waited >= SHOWN_S:
        yield context.holds("the release was left to the caller", *where)


def _release_wait(flow: Flow, context: Context, time: float) -> tuple[float, float]:
    """Bounds of the release wait that begins at ``time``, seconds, timers being coarse."""
    floor = first_wait(context.ics)
    shortest, longest = context.prepared.round_trips(context.ics).silence(time)
    return (
        calling.EARLIEST * max(floor, shortest) - flow.timing_error,
        calling.latest(max(floor, longest)) + flow.due_s,
    )


@checker("STP-CC-026")
def end_is_repeated_by_timer(flow: Flow, context: Context) -> Findings:
    """An unanswered END is repeated by Timer_CC, an answered one is not (section 5.4)."""
    sent = _ends_sent(flow)
    if not sent:
        return
    over = [
        at.time for at in flow.heard_of(codec.END, codec.ENDAK)
        if at.time >= sent[0].time - DUE_S and _ends_the_wait(flow, at)
    ]  # fmt: skip
    # A BEGIN that opens nothing ends no wait: that it did is STP-CC-041's, or STP-CC-028's.
    begins = (at for at in flow.heard_of(codec.BEGIN) if at.stp.version == codec.VERSION)
    over += [at.time for at in begins if ended_the_wait(flow, context, at)]
    # Another connection between the same ports takes its place.
    over += [other.passed[0].time for other in flow.same_ports if other.start > flow.start]
    yield from calling.repetitions(flow, context, sent, min(over, default=None))
    for again in sent[1:]:
        if again.stp.octets != sent[0].stp.octets:
            yield context.violated(
                "an END was repeated with other contents", sent[0], again,
                expected=sent[0].stp.octets.hex(), actual=again.stp.octets.hex(),
            )  # fmt: skip
    yield from _gone_at_last(flow, context, sent)
    acknowledging = flow.heard_of(codec.ENDAK, codec.END)
    acknowledging = [at for at in acknowledging if flow.state_when(at) == State.RELEASING]
    for at in acknowledging:
        if _ends_the_wait(flow, at):
            yield from calling.left_alone(flow, context, sent, at)
            break
    for at in acknowledging:
        if at.stp.type == codec.ENDAK and at.stp.peer_csn != flow.iut_csn:
            yield from discarded(flow, context, at, "an ENDAK for another connection")


def _gone_at_last(flow: Flow, context: Context, sent: Sequence[At]) -> Findings:
    """Whether the connection is gone when the transmissions of its END are used up."""
    if len(sent) < calling.MAX_CC or flow.displaced_by is not None:
        return
    wait = first_wait(context.ics) * 2.0 ** (calling.MAX_CC - 1)
    gone = sent[calling.MAX_CC - 1].time + calling.latest(wait) + flow.timing_error
    for at in flow.heard_of(codec.POLL, codec.SDP):
        if at.time <= gone:
            continue
        told = [
            end for end in answers(flow, at, (codec.END,))
            if end.stp.flags & codec.R and end.stp.peer_csn == at.stp.csn
        ]  # fmt: skip
        if told:
            yield context.holds("after the last END the connection was gone", sent[-1], at, told[0])
        elif observed(flow, at):
            yield context.violated(
                "the connection was there when the transmissions of its END were used up",
                sent[-1], at,
            )  # fmt: skip


def _ends_the_wait(flow: Flow, at: At) -> bool:
    """Whether an END or ENDAK ends state 4 (section 9)."""
    if at.stp.type == codec.ENDAK:
        return flow.is_recipient(at.stp)
    return is_valid_end(flow, at.stp, known=flow.established is not None)


@checker("STP-CC-027")
def premature_end_is_an_abort(flow: Flow, context: Context) -> Findings:
    """A premature END without A flag is acknowledged, and ends the connection (section 5.4).

    What the IUT's user is told is hidden.
    """
    ends = (at for at in flow.heard_of(codec.END) if _is_premature(flow, context, at))
    at = next(ends, None)
    if at is None:
        return
    acknowledgments = answers(flow, at, (codec.ENDAK,))
    after = [item for item in _tagged_after(flow, at) if item.time > at.time + flow.due_s]
    if acknowledgments:
        yield judged(
            context, not after,
            "a premature END ended the connection",
            "the connection continued after a premature END",
            at, acknowledgments[0], *after[:1],
        )  # fmt: skip
    elif observed(flow, at):
        yield context.violated("a premature END was not acknowledged", at)


def _tagged_after(flow: Flow, at: At) -> list[At]:
    """What belongs to data transfer and left the IUT after a packet."""
    return [item for item in flow.sent if item.frame > at.frame and item.stp.type in TAGGED]


def _is_premature(flow: Flow, context: Context, at: At) -> bool:
    """Whether the IUT's FIN is not covered, or the peer's surely has not been delivered."""
    stp, sender, own = at.stp, flow.sender, flow.own_fin
    if stp.flags & (codec.A | codec.R) or sender is None or not flow.names(at):
        return False
    if flow.state_when(at) != State.OPEN:
        return False
    if own is None or own.frame > at.frame:
        return True
    # The END of a peer that had taken everything up to the FIN names the number above it.
    if near(stp.seq, sender.iss, sender.vt_a) <= own.number:
        return True
    done = context.prepared.completion
    return done.certain and (done.finished is None or done.finished > at.time)


@checker("STP-CC-028")
def silence_after_the_release(flow: Flow, context: Context) -> Findings:
    """After its END an endpoint sends nothing of data transfer (sections 5.4 and 9)."""
    release = next(iter(_ends_sent(flow)), None)
    if release is None:
        return
    # A packet of the next connection on the ports carries another tag.
    after = _tagged_after(flow, release)
    if after:
        yield context.violated(f"{after[0].name} was sent after an END", release, after[0])
        return
    if flow.until - release.time > DUE_S:
        yield context.holds("nothing but ENDs followed an END", release)
    for at in flow.heard:
        if flow.state_when(at) != State.RELEASING or not at.stp.wellformed:
            continue
        ignored = at.stp.type in (*TAGGED, codec.BGAK, codec.BGREJ)
        if ignored or _is_stale_begin(flow, at.stp):
            yield from discarded(flow, context, at, f"{at.name} while ENDAK was awaited")


def _is_stale_begin(flow: Flow, stp: codec.Stp) -> bool:
    """Whether it is a BEGIN of the connection that has been ended."""
    return stp.type == codec.BEGIN and stp.version == codec.VERSION and flow.is_of_peer(stp)
