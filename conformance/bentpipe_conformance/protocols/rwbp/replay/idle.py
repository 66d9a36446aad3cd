"""When nothing waits in the IP queue of a link, for there is credit, and the link is free."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.replay import AT_ONCE_S
from bentpipe_conformance.protocols.rwbp.replay.account import Account
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.link import Link, Passed, Told

Span = tuple[float, float]
"""From when until when, in seconds."""


def read_idle(link: Link[Flow], rate: float, slack: float, *, gateway: bool) -> list[Span]:
    """The times in order during which the queue is surely empty, and so what enters it leaves.

    Args:
        link: the link.
        rate: its rate in bit/s; 0 if there is none.
        slack: seconds by which the order of an arrival and a departure may be wrong.
        gateway: whether credit is needed.
    """
    account = Account(slack, lenient=False)
    events: list[Told | Passed[Flow]] = [*link.told, *link.passed]
    events.sort(key=lambda item: item.packet.number)
    spans: list[Span] = []
    free_at, credit_since = link.began, None if gateway else link.began
    for at, event in enumerate(events):
        now = event.packet.time
        until = events[at + 1].packet.time if at + 1 < len(events) else link.ended
        if isinstance(event, Told):
            account.hear(event)
        else:
            account.take(event)
            free_at = now + (8 * len(event.packet.data) / rate if rate else 0.0)
        if gateway:
            if not account.permits(now):
                credit_since = None
                continue
            credit_since = now if credit_since is None else credit_since
            until = min(until, account.fresh_until())
        assert credit_since is not None
        begin = max(now, credit_since + AT_ONCE_S + slack, free_at + AT_ONCE_S + slack)
        if begin < until:
            if spans and spans[-1][1] == begin:
                spans[-1] = spans[-1][0], until
            else:
                spans.append((begin, until))
        if gateway and until >= account.fresh_until():
            credit_since = None
    return spans
