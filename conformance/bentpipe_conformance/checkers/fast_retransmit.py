"""Checkers for entering fast retransmit (SNR-FR)."""

from __future__ import annotations

from collections.abc import Iterator

from bentpipe_conformance.analysis.flow import Flow
from bentpipe_conformance.analysis.recovery import Cause
from bentpipe_conformance.checking import Context, Finding, checker

DUPLICATE_THRESHOLD = 3
"""RFC 5681 section 3.2 step 2."""


@checker("SNR-FR-001")
def no_fast_retransmit_before_the_third_duplicate(
    flow: Flow, context: Context
) -> Iterator[Finding]:
    """Exercised by every duplicate below the threshold outside recovery."""
    in_recovery_until = -1
    for ack in flow.acks:
        for episode in context.episodes:
            if episode.trigger is ack:
                in_recovery_until = max(in_recovery_until, episode.recover)
        if not ack.duplicate or ack.una < in_recovery_until or flow.handshake.sack:
            continue
        if ack.duplicates >= DUPLICATE_THRESHOLD:
            continue
        early = [sent for sent in ack.responses if sent.retransmission]
        if early:
            yield context.violated(
                f"offset {early[0].start} was retransmitted on duplicate {ack.duplicates}",
                early[0],
                ack,
                expected="no retransmission before duplicate 3",
                actual=f"a retransmission on duplicate {ack.duplicates}",
            )
        else:
            yield context.holds(f"no retransmission on duplicate {ack.duplicates}", ack)


@checker("SNR-FR-002")
def third_duplicate_starts_fast_retransmit(flow: Flow, context: Context) -> Iterator[Finding]:
    """Exercised by every third duplicate outside recovery."""
    episodes = context.episodes
    for ack in flow.acks:
        if not ack.duplicate or ack.duplicates != DUPLICATE_THRESHOLD:
            continue
        before = [e for e in episodes if e.first.time < ack.time]
        # Outside recovery, and above the recover point of every earlier episode (the gate).
        if any(e.end is None or e.end.time >= ack.time for e in before):
            continue
        if any(ack.ack <= e.recover for e in before):
            continue
        first = next((sent for sent in ack.responses if sent.retransmission), None)
        if first is not None and first.start == ack.ack:
            yield context.holds(
                f"offset {first.start} was retransmitted on duplicate 3", first, ack
            )
            continue
        later = next((e for e in episodes if e.first.time >= ack.time), None)
        yield context.violated(
            f"the third duplicate for offset {ack.ack} started no fast retransmit",
            ack,
            *([first] if first else []),
            expected=f"a retransmission of offset {ack.ack}",
            actual="nothing was retransmitted"
            if later is None
            else f"offset {later.first.start} was retransmitted by {Cause(later.cause).value}",
        )
