"""A finding: what one checker found about one requirement."""

from __future__ import annotations

from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.verdict import Verdict


@record
class Finding:
    """What was found about one requirement in one trace.

    Attributes:
        requirement: its permanent identifier.
        verdict: pass, fail, inconclusive or error.
        packets: frame numbers in the capture at the implementation's side (``iut.pcapng``), from
            1, the decisive one first.
        sentence: why, in one sentence.
        expected: what the requirement asks for here; empty when the sentence says it.
        actual: what the packets show; empty when the sentence says it.
        count: how many times it was found; passing findings of one flow are folded.
    """

    requirement: str
    verdict: Verdict
    packets: tuple[int, ...] = ()
    sentence: str = ""
    expected: str = ""
    actual: str = ""
    count: int = 1
