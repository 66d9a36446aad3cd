"""Traces of STP transfers over the virtual link, ready for ``bentpipe trace-check``.

By hand: ``python -m bentpipe_reference.stp.recording --drops 5,9 > transfer.ndjson``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles
from bentpipe_reference.common.tracing import EventTrace, count, recording_options
from bentpipe_reference.stp.config import EARLY_CREDIT, MOST_CREDIT, StpConfig
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.transfer import stp_transfer

TRACED_CREDIT = 32
"""SDs; keeps the model's sets small, and lists within one STAT (STP-PF-012)."""


def record(
    link: LinkProfile,
    config: StpConfig,
    octets: int,
    *,
    drops: Iterable[int] = (),
    return_drops: Iterable[int] = (),
    parts: Parts = TRUE_PARTS,
    seed: int = 0,
    limit_s: float = 600.0,
) -> EventTrace:
    """Transfer ``octets`` over ``link`` in virtual time and collect the events of both endpoints.

    The first event, ``begin``, has ``protocol`` (``stp-data``), ``profile`` (``stp1e2``) and
    ``window``, the receiver's credit in SDs.

    Args:
        link: the link; data travels in its forward direction.
        config: settings of both endpoints.
        octets: length of the stream.
        drops: numbers of the forward packets to drop, the BEGIN being 1.
        return_drops: the same for the return direction, the first BGAK being 1.
        parts: the classes of both endpoints.
        seed: seed of the endpoints' numbers and the link's faults.
        limit_s: virtual seconds after which the transfer is given up.
    """
    trace = EventTrace(
        {"event": "begin", "protocol": "stp-data", "profile": "stp1e2", "window": config.credit}
    )
    stp_transfer(
        link, config, octets, parts=parts, seed=seed, drops=drops, return_drops=return_drops,
        limit_s=limit_s, trace=trace.add,
    )  # fmt: skip
    return trace


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the trace of one transfer to the standard output; 0, or 2 for wrong usage."""
    parser = recording_options("stp.recording", "the BEGIN", "the first BGAK")
    parser.add_argument("--credit", type=count, default=TRACED_CREDIT, help="SDs")
    given = parser.parse_args(arguments)
    if not EARLY_CREDIT <= given.credit <= MOST_CREDIT:
        parser.error(f"the credit is {EARLY_CREDIT} to {MOST_CREDIT} SDs")
    trace = record(
        load_profiles()[given.link], StpConfig(credit=given.credit), given.octets,
        drops=given.drops, return_drops=given.return_drops, seed=given.seed,
    )  # fmt: skip
    sys.stdout.write(trace.lines())
    return 0


if __name__ == "__main__":
    sys.exit(main())
