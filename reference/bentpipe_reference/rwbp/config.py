"""What an RWBP endpoint is configured to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bentpipe_reference.tcp.config import EndpointConfig

SchedulerName = Literal["round-robin", "drr"]

ACKNOWLEDGMENT_DELAY = 0.1
"""Seconds after which a tail is acknowledged (RWBP-AK-002)."""

LARGEST_WINDOW = 1 << 30
"""Octets that the edge may be ahead (section 6.1; RFC 7323 section 2.3)."""

SMALLEST_UNIT = 48
"""Octets (section 4.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RwbpConfig(EndpointConfig):
    """Settings of one endpoint; those of TCP hold for connections on which RWBP is not agreed.

    ``mss`` is the unit, too (section 4.1), and ``receive_buffer`` BUF of section 2.

    Attributes:
        rwbp: whether the interface is configured for RWBP (RWBP-SEC-001).
        interval: N that the peer is asked to use.
        scheduler: whether a turn is one packet or a quantum of octets (section 9.2).
        quantum: QUANTUM, octets of IP packets.
        ip_queue: IPQ, packets.
        link_rate_bit_s: rate at which packets leave the IP queue, None for no bound.
        gateway: dotted address of the gateway whose credit is obeyed, None for no gateway.
        link_address: dotted address of the host on the link with the rate and the gateway, which
            then do not matter for its other address; None for a host at one link.
    """

    rwbp: bool = True
    interval: int = 8
    scheduler: SchedulerName = "round-robin"
    quantum: int = 1500
    ip_queue: int = 10
    link_rate_bit_s: float | None = None
    gateway: str | None = None
    link_address: str | None = None

    def __post_init__(self) -> None:
        EndpointConfig.__post_init__(self)
        if self.scheduler not in get_args(SchedulerName):
            raise ValueError(
                f"there is no scheduler {self.scheduler!r}; "
                f"choose from {', '.join(get_args(SchedulerName))}."
            )
        if not 1 <= self.interval <= 255:
            raise ValueError(f"interval is {self.interval}; give segments from 1 to 255.")
        if self.ip_queue < 1:
            raise ValueError(f"ip_queue is {self.ip_queue}; give packets, at least 1.")
        if not self.offers_rwbp:
            return
        if self.mss < SMALLEST_UNIT:
            raise ValueError(f"mss is {self.mss}; with RWBP give at least {SMALLEST_UNIT} octets.")
        if self.receive_buffer < 4 * self.mss:
            raise ValueError(
                f"receive_buffer is {self.receive_buffer}; "
                f"with RWBP give at least four times the mss, {4 * self.mss} octets."
            )

    @property
    def offers_rwbp(self) -> bool:
        """Whether RWBP is offered and accepted; it is nothing without SACK."""
        return self.rwbp and self.uses_sack
