"""The links of the experiments: what a paper gives of one, as a profile."""

from __future__ import annotations

from bentpipe_reference.common.link.profile import Direction, LinkProfile

AMPLE = 1000
"""Packets: a queue that never fills."""


def link(
    name: str, source: str, rtt_ms: float, rate_bit_s: float | None = None,
    queue: int = AMPLE, return_queue: int = AMPLE,
) -> LinkProfile:  # fmt: skip
    """A link with one rate both ways and a round-trip propagation time of ``rtt_ms`` milliseconds.

    Args:
        name: its identifier.
        source: where it is described.
        rtt_ms: round-trip propagation time, milliseconds.
        rate_bit_s: rate; None for no limit.
        queue: packets that fit into the forward queue.
        return_queue: the same for the return queue.
    """
    delay = rtt_ms / 2000
    return LinkProfile(
        name, name, source,
        Direction(rate_bit_s=rate_bit_s, delay_s=delay, queue_packets=queue),
        Direction(rate_bit_s=rate_bit_s, delay_s=delay, queue_packets=return_queue),
    )  # fmt: skip
