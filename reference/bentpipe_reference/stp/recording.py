"""Traces of STP transfers over the virtual link, ready for ``bentpipe trace-check``.

By hand: ``python -m bentpipe_reference.stp.recording --drops 5,9 > transfer.ndjson``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles
from bentpipe_reference.common.tracing import EventTrace
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
    profiles = load_profiles()
    parser = argparse.ArgumentParser(
        prog="python -m bentpipe_reference.stp.recording",
        description="Record the protocol events of an STP transfer over the virtual link.",
    )
    parser.add_argument("--link", choices=sorted(profiles), default="geo")
    parser.add_argument("--octets", type=_count, default=30_000)
    parser.add_argument("--credit", type=_count, default=TRACED_CREDIT, help="SDs")
    parser.add_argument(
        "--drops", type=_ordinals, default=(), help="forward packets, as in 5,9; the BEGIN is 1"
    )
    parser.add_argument("--return-drops", type=_ordinals, default=(), help="the first BGAK is 1")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if not EARLY_CREDIT <= given.credit <= MOST_CREDIT:
        parser.error(f"the credit is {EARLY_CREDIT} to {MOST_CREDIT} SDs")
    trace = record(
        profiles[given.link], StpConfig(credit=given.credit), given.octets, drops=given.drops,
        return_drops=given.return_drops, seed=given.seed,
    )  # fmt: skip
    sys.stdout.write(trace.lines())
    return 0


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _ordinals(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
