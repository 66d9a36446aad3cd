"""The cost of a bulk transfer over the virtual link, and its growth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from bentpipe_reference.common.link.profile import load_profiles
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.transfer import StpTransferResult
from bentpipe_reference.stp.transfer import stp_transfer as run_stp_transfer
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.transfer import TransferResult
from bentpipe_reference.tcp.transfer import transfer as run_transfer

from bentpipe_conformance.benchmarks.model import Figure, Report, below, cpu_seconds, median_of

MEGABYTE = 1_000_000
SECONDS = 1.5
GROWTH = 1.15
"""Largest exponent of packets that still passes for linear."""

_SIZES = (5, 10, 20)


def transfer(repeat: int) -> Report:
    """One SACK-NewReno transfer of 10 MB at 1.3 Mb/s and 600 ms."""
    return _measured("SACK-NewReno (rfc)", repeat, _transfer)


def stp_transfer(repeat: int) -> Report:
    """One STP transfer of 10 MB at 1.3 Mb/s and 600 ms."""
    return _measured("STP", repeat, _stp_transfer)


def _measured(name: str, repeat: int, carry: Callable[[], int]) -> Report:
    seconds = median_of(repeat, lambda: cpu_seconds(carry))
    return Report(
        f"one {name} transfer of 10 MB over the link profile geo in virtual time; CPU time of the "
        "process",
        (
            below("CPU seconds", seconds, SECONDS),
            Figure("microseconds per packet", 1e6 * seconds / carry()),
        ),
    )


def linearity(repeat: int) -> Report:
    """Transfers of 5, 10 and 20 MB."""
    carry = {size: partial(_transfer, size) for size in _SIZES}
    cost = {size: median_of(repeat, partial(cpu_seconds, carry[size])) for size in _SIZES}
    packets = {size: carry[size]() for size in _SIZES}
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


def _transfer(megabytes: int = 10) -> int:
    """Run one TCP transfer; return the packets offered to both links."""
    geo = load_profiles()["geo"]
    return _offered(run_transfer(geo, EndpointConfig(), megabytes * MEGABYTE))


def _stp_transfer() -> int:
    """Run one STP transfer; return the packets offered to both links."""
    return _offered(run_stp_transfer(load_profiles()["geo"], StpConfig(), 10 * MEGABYTE))


def _offered(result: TransferResult | StpTransferResult) -> int:
    if not result.intact:
        raise RuntimeError(f"the transfer failed: {result.failure or 'wrong octets'}.")
    return result.forward.offered + result.return_.offered
