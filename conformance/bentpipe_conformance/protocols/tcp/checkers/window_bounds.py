"""Whether what is in the network keeps to the largest window that RFC 5681 permits."""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.checkers import Context, Findings, at_most
from bentpipe_conformance.protocols.tcp.replay.bounds import Bound, Phase
from bentpipe_conformance.protocols.tcp.replay.flow import Flow
from bentpipe_conformance.protocols.tcp.replay.moments import acts_at_once
from bentpipe_conformance.protocols.tcp.replay.users import largest_segment

BEYOND = ("rack", "tlp", "prr", "frto", "early_retransmit", "ecn")
"""What moves the window otherwise, for who claims it."""


def follows_rfc_5681(context: Context) -> bool:
    """Whether the statement claims nothing by which the window may be another."""
    ics = context.ics
    plain = ics.get("congestion_control") == "reno" and acts_at_once(ics)
    counted = ics.get("byte_counting") in ("no", "abc")
    return plain and counted and not any(ics.get(item, True) for item in BEYOND)


def exceeded(flow: Flow, context: Context, *phases: Phase) -> Findings:
    """The first segment in some phases by which more is in the network than any window permits."""
    if not follows_rfc_5681(context):
        return
    growth = 2 if context.ics.get("byte_counting") == "abc" else 1
    segment = largest_segment(flow)
    last: Bound | None = None
    for bound in context.prepared.bounds(growth):
        if bound.phase not in phases:
            continue
        last = bound
        # One segment of tolerance: some implementations count windows in whole segments.
        limit = bound.limit + segment
        if bound.network > limit:
            where = (bound.sent,) if bound.since is None else (bound.sent, bound.since)
            sentence = f"{bound.network} octets were in the network {bound.phase}"
            yield at_most(context, bound.network, limit, sentence, *where)
            return
    if last is not None:
        yield context.holds(f"the window was kept {last.phase}", last.sent)
