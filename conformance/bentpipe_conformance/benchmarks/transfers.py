"""What a bulk transfer over the virtual link costs, and how that grows."""

from __future__ import annotations

import math

from bentpipe_reference.common.link import load_profiles
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.transfer import stp_transfer as run_stp_transfer
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.transfer import transfer as run_transfer

from bentpipe_conformance.benchmarks.model import Figure, Report, below, cpu_seconds, median_of

MEGABYTE = 1_000_000
SECONDS = 1.5
GROWTH = 1.15
"""Largest exponent of packets that still passes for linear."""

_SIZES = (5, 10, 20)


def transfer(repeat: int) -> Report:
    """One SACK-NewReno transfer of 10 MB at 1.3 Mb/s and 600 ms."""
    seconds = median_of(repeat, lambda: cpu_seconds(lambda: _transfer(10)))
    packets = _transfer(10)
    return Report(
        "one SACK-NewReno (rfc) transfer of 10 MB over the link profile geo in virtual time; CPU "
        "time of the process",
        (
            below("CPU seconds", seconds, SECONDS),
            Figure("microseconds per packet", 1e6 * seconds / packets),
        ),
    )


def stp_transfer(repeat: int) -> Report:
    """One STP transfer of 10 MB at 1.3 Mb/s and 600 ms."""
    seconds = median_of(repeat, lambda: cpu_seconds(_stp_transfer))
    return Report(
        "one STP transfer of 10 MB over the link profile geo in virtual time; CPU time of the "
        "process",
        (
            below("CPU seconds", seconds, SECONDS),
            Figure("microseconds per packet", 1e6 * seconds / _stp_transfer()),
        ),
    )


def linearity(repeat: int) -> Report:
    """Transfers of 5, 10 and 20 MB."""
    cost = {
        size: median_of(repeat, lambda size=size: cpu_seconds(lambda: _transfer(size)))  # type: ignore[misc]
        for size in _SIZES
    }
    packets = {size: _transfer(size) for size in _SIZES}
    first, last = _SIZES[0], _SIZES[-1]
    exponent = math.log(cost[last] / cost[first]) / math.log(packets[last] / packets[first])
    each = [
        Figure(f"microseconds per packet, {size} MB", 1e6 * cost[size] / packets[size])
        for size in _SIZES
    ]
    return Report(
        "the same transfer with 5, 10 and 20 MB; CPU time per packet on either link, and the "
        "exponent of packets by which the cost grows",
        (below("exponent (1 is linear)", exponent, GROWTH), *each),
    )


def _transfer(megabytes: int) -> int:
    """Run one transfer; return the packets offered to both links."""
    result = run_transfer(load_profiles()["geo"], EndpointConfig(), megabytes * MEGABYTE)
    if not result.intact:
        raise RuntimeError(f"the transfer failed: {result.failure or 'wrong octets'}.")
    return result.forward.offered + result.return_.offered


def _stp_transfer() -> int:
    """Run one STP transfer; return the packets offered to both links."""
    result = run_stp_transfer(load_profiles()["geo"], StpConfig(), 10 * MEGABYTE)
    if not result.intact:
        raise RuntimeError(f"the transfer failed: {result.failure or 'wrong octets'}.")
    return result.forward.offered + result.return_.offered
