"""Silence times by other rules than STP-PL-007's, and by other measurements than STP-PL-009's.

These only name a fault, where a timer departs from what is right: if one of these explains it, that
says whether the rule or the measurements are wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bentpipe_conformance.protocols.stp.codec import BGAK
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import (
    DEVIATIONS,
    Pair,
    RoundTrips,
    Rule,
    calls,
    discarded,
    measured_calls,
    measured_polls,
    poll_interval,
    smoothed,
)

WRONG_RULES: tuple[Rule, ...] = (
    lambda srtt, _: srtt,
    lambda srtt, _: 2 * srtt,
    lambda srtt, _: srtt + poll_interval(srtt),
    lambda srtt, deviation: srtt + DEVIATIONS * deviation,
    lambda srtt, deviation: srtt + DEVIATIONS * deviation + poll_interval(srtt),
    *(
        lambda srtt, deviation, times=times: srtt + max(times * deviation, poll_interval(srtt))
        for times in (1, 2, 3, 6, 8)
    ),
)
"""What a silence time might be taken for."""


def misreadings(flow: Flow, initial: float) -> list[RoundTrips]:
    """The smoothed round-trip times by other measurements, for an initial interval in seconds."""
    polls, begins = list(measured_polls(flow)), list(measured_calls(flow))
    right = set(polls + begins)
    found = [(*begins, *pairs) for pairs in _of_polls(flow, polls)]
    found += [(*pairs, *polls) for pairs in _of_calls(flow)]
    return [smoothed(flow, initial, pairs) for pairs in found if set(pairs) != right]


def _of_polls(flow: Flow, polls: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    yield [(poll, answer) for poll in flow.polls_sent for answer in poll.answers]
    yield [*polls, *discarded(flow)]
    # From the last POLL that has left, whichever the STAT answers, and whether it answers one.
    frames = [poll.frame for poll in flow.polls_sent]
    reports = [at for at in flow.reports_heard if not at.fault and at.stp.type != BGAK]
    for heard in (
        [answer for _, answer in polls],
        [at for at in reports if at.is_stat],
        reports,
    ):
        asked = ((bisect_left(frames, at.frame), at) for at in heard)
        yield [(flow.polls_sent[count - 1], at) for count, at in asked if count]
    # Not those that were under way when another POLL asked for the same (RFC 6298 section 3).
    times = [poll.frame for poll, again in pairwise(flow.polls_sent) if poll.vt_s == again.vt_s]
    yield [(poll, answer) for poll, answer in polls if poll.frame not in times]


def _of_calls(flow: Flow) -> Iterator[Sequence[Pair]]:
    answered = list(calls(flow))
    if not answered:
        return
    yield []
    yield [(begins[0], answer) for begins, answer in answered]
    yield [(begins[-1], answer) for begins, answer in answered]
    first = answered[0][0][0]
    yield [(first, answer) for _, answer in answered]
    yield [(first, answered[-1][1])]
