"""Link profiles as netem queueing disciplines."""

from __future__ import annotations

import struct

from bentpipe_reference.common.link.profile import Direction

from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.netlink import Netlink, attribute

TCA_NETEM_REORDER, TCA_NETEM_RATE, TCA_NETEM_RATE64, TCA_NETEM_LATENCY64 = 3, 6, 8, 10
TCA_NETEM_PRNG_SEED = 14
"""Since Linux 6.6; older kernels pass over it and draw numbers of their own."""
IN_FLIGHT = 100_000
"""Packets the delay line may hold: more than any profile's bandwidth times delay."""
ETHERNET_HEADER = 14
DELAY_LINE, BOTTLENECK, REORDERING = 0x10000, 0x20000, 0x30000


def lay_out(
    netlink: Netlink, name: str, direction: Direction, *, ethernet: bool, seed: int | None = None
) -> None:
    """Lay one direction of a link on an interface's way out.

    A delay line holds what is in flight, and below it the bottleneck holds what waits for the
    rate. The order of the two makes no difference to what comes out and when, but one netem doing
    both would count packets in flight against the queue. ``ethernet``: the interface's packets
    carry an Ethernet header, which the rate must not count. ``seed``: of what is random, 64 bits;
    the kernel's own if None.

    Raises:
        BedError: netem is missing or cannot do this.
    """
    if direction.ber or direction.reorder_probability:
        raise BedError(
            "netem cannot lay out bit errors or this profile's reordering exactly; "
            "run it with `--bed simulation`."
        )
    loss, dup = direction.loss_probability, direction.duplicate_probability
    line = options(limit=IN_FLIGHT, delay_s=direction.delay_s, loss=loss, duplicate=dup, seed=seed)
    netlink.add_qdisc(name, "netem", line, DELAY_LINE)
    if direction.rate_bit_s is not None:
        bottleneck = options(
            # netem counts the packet being serialised as one of its queue.
            limit=direction.queue_packets + 1,
            rate_bit_s=direction.rate_bit_s,
            overhead=-ETHERNET_HEADER if ethernet else 0,
        )
        netlink.add_qdisc(name, "netem", bottleneck, BOTTLENECK, parent=DELAY_LINE | 1)


def add_reordering(
    netlink: Netlink, name: str, direction: Direction, seed: int | None = None
) -> None:
    """Let a share of the packets of a direction already laid out take longer, behind its rate.

    For runs in which no times are judged: packets that wait here count against the queue of the
    bottleneck, and their transit times cannot be calculated.

    Raises:
        BedError: the direction has no rate. Without one, packets come here several at a time, and
            netem would turn the order of those that do not wait.
    """
    if direction.rate_bit_s is None:
        raise BedError("netem reorders only behind a rate; give the direction a rate_bit_s.")
    # netem's own reordering is that a share of the packets does not wait.
    delay, at_once = direction.reorder_delay_s, 1.0 - direction.reorder_probability
    waiting = options(limit=IN_FLIGHT, delay_s=delay, at_once=at_once, seed=seed)
    netlink.add_qdisc(name, "netem", waiting, REORDERING, parent=BOTTLENECK | 1)


def options(
    *,
    limit: int,
    delay_s: float = 0.0,
    loss: float = 0.0,
    duplicate: float = 0.0,
    rate_bit_s: float | None = None,
    overhead: int = 0,
    at_once: float | None = None,
    seed: int | None = None,
) -> bytes:
    """The options of one netem: a fixed structure, then attributes for what it cannot say."""
    gap = 0 if at_once is None else 1
    packed = struct.pack("=IIIIII", 0, limit, _share(loss), gap, _share(duplicate), 0)
    if at_once is not None:
        packed += attribute(TCA_NETEM_REORDER, struct.pack("=II", _share(at_once), 0))
    if seed is not None:
        packed += attribute(TCA_NETEM_PRNG_SEED, struct.pack("=Q", seed))
    packed += attribute(TCA_NETEM_LATENCY64, struct.pack("=q", round(delay_s * 1e9)))
    if rate_bit_s is not None:
        octets = round(rate_bit_s / 8)
        rate = struct.pack("=IiIi", min(octets, 0xFFFFFFFF), overhead, 0, 0)
        packed += attribute(TCA_NETEM_RATE, rate)
        if octets > 0xFFFFFFFF:
            packed += attribute(TCA_NETEM_RATE64, struct.pack("=Q", octets))
    return packed


def _share(probability: float) -> int:
    return round(probability * 0xFFFFFFFF)
