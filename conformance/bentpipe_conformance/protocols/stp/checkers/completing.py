"""STP-CC: who releases a complete connection, and when (section 5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.engine.checking import checker
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.protocols.stp.checkers import Context
from bentpipe_conformance.protocols.stp.checkers.calling import EARLIEST, LATEST, TICK_S, TIMER_CC_S
from bentpipe_conformance.protocols.stp.checkers.common import (
    DUE_S,
    At,
    ends_sent,
    path_class,
    round_trips_of,
)
from bentpipe_conformance.protocols.stp.codec import A, Stp
from bentpipe_conformance.protocols.stp.numbers import near
from bentpipe_conformance.protocols.stp.replay.completion import Completion, completion, peers_fin
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import LEAST_SILENCE_S

SHOWN_S = 0.3
"""So long after its completion, an IUT that left the release to the caller has shown it."""


def _release(flow: Flow) -> tuple[At, Stp] | None:
    """The IUT's first END without A flag."""
    return next(((at, stp) for at, stp in ends_sent(flow) if not stp.flags & A), None)


@checker("STP-CC-025")
def caller_releases(flow: Flow, context: Context) -> Iterator[Finding]:
    """The END of a complete IUT: its contents, and with an IUT that called, its time."""
    release, done = _release(flow), completion(flow)
    if release is not None:
        if _is_early(flow, release[0], done):
            yield context.violated(
                "an END without A flag left before both streams were through", release[0]
            )
            return
        yield from _contents(flow, context, *release)
    if not flow.iut_calls or done is None or done.time is None or done.last is None:
        return
    due = done.time + DUE_S + flow.timing_error
    if release is not None and release[0].packet.time <= due:
        yield context.holds("the caller released its complete connection at once", release[0])
    elif _over(flow) > due:
        late = [release[0]] if release is not None else []
        yield context.violated(
            "a caller did not release its complete connection at once", At(done.last), *late,
            expected=f"an END within {DUE_S:g} s",
            actual=f"after {late[0].packet.time - done.time:.2f} s" if late else "none",
        )  # fmt: skip


def _is_early(flow: Flow, at: At, done: Completion | None) -> bool:
    if flow.receiver is not None and peers_fin(flow) is None:
        return True
    if done is None:
        return False
    return done.time is None or at.packet.time < done.time - flow.timing_error


def _contents(flow: Flow, context: Context, at: At, stp: Stp) -> Iterator[Finding]:
    receiver, fin = flow.receiver, peers_fin(flow)
    if receiver is None or fin is None:
        return
    n_r = near(stp.seq, receiver.iss, fin + 1)
    if n_r != fin + 1 or stp.reason:
        yield context.violated(
            "the END of a complete side is wrong", at,
            expected=f"N(R) {fin + 1}, reason 0", actual=f"N(R) {n_r}, reason {stp.reason}",
        )  # fmt: skip
    else:
        yield context.holds(f"an END with N(R) {n_r}, just above the peer's FIN, was sent", at)


def _over(flow: Flow) -> float:
    """Up to when the IUT had the connection and was watched."""
    return min(flow.until, flow.ended if flow.ended is not None else flow.until)


@checker("STP-CC-031")
def called_leaves_the_release(flow: Flow, context: Context) -> Iterator[Finding]:
    """What a complete IUT that was called does until its caller's END comes, or does not."""
    done = completion(flow)
    if flow.iut_calls or done is None or done.time is None or done.last is None:
        return
    least, most = _release_wait(flow, context, done.time)
    release = _release(flow)
    where = [At(done.last), *([release[0]] if release is not None else [])]
    waited = (release[0].packet.time if release is not None else _over(flow)) - done.time
    if release is not None and waited < least:
        yield context.violated(
            f"the one called released a complete connection after {max(waited, 0.0):.2f} s", *where,
            expected=f"not before {least:.2f} s",
        )  # fmt: skip
    elif waited > most:
        yield context.violated(
            "a complete connection that the caller leaves alone was not released", *where,
            expected=f"an END within {most:.2f} s",
        )  # fmt: skip
    elif release is not None:
        yield context.holds(
            f"the one called released the connection after {waited:.2f} s without the caller's END",
            *where,
        )  # fmt: skip
    elif waited >= SHOWN_S:
        yield context.holds("the release was left to the caller", *where)


def _release_wait(flow: Flow, context: Context, time: float) -> tuple[float, float]:
    """Between what the release wait that begins at ``time`` lies, seconds, timers being coarse."""
    round_trips, kind = round_trips_of(context), path_class(context)
    floor = max(LEAST_SILENCE_S, TIMER_CC_S.get(kind, TIMER_CC_S["vbdc"]))
    shortest, longest = round_trips.interval(time)
    bounds = round_trips.bounds(time)
    if bounds is not None:
        shortest += bounds[0]
    # Without a measurement the round-trip time that an IUT supposes is not said.
    longest += round_trips.with_deviation(time) or round_trips.initial
    return (
        EARLIEST * max(floor, shortest) - flow.timing_error,
        LATEST * max(floor, longest) + TICK_S + DUE_S + flow.timing_error,
    )
