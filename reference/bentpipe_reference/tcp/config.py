"""What a TCP endpoint is configured to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Variant = Literal["reno", "newreno", "sack-reno", "sack-newreno-hk99", "sack-newreno-rfc"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """Settings of one TCP endpoint. Times are seconds, sizes octets unless said otherwise.

    ``None`` in ``sack``, ``limited_transmit``, ``initial_window_segments``, ``timestamps`` and
    ``clock_granularity`` selects the variant's own behavior: only ``sack-newreno-rfc`` uses limited
    transmit (RFC 3042), timestamps (RFC 7323) and ten segments to start with (RFC 6928); the
    older ones start with one segment, as HK99's systems did, and ``reno`` and ``newreno`` do not
    use SACK.

    Attributes:
        variant: how losses are recovered.
        mss: largest segment to receive, and to send at most.
        sack: offer and accept SACK (RFC 2018).
        dsack: as receiver, report duplicates (RFC 2883).
        window_scale: offer and accept window scaling (RFC 7323).
        timestamps: offer and accept the Timestamps option (RFC 7323).
        limited_transmit: send new data on the first two duplicate ACKs (RFC 3042).
        initial_window_segments: initial window in segments.
        byte_counting: segments that one ACK may add in slow start: 1 for RFC 5681's equation 2,
            2 for appropriate byte counting (L of RFC 3465 section 2.3).
        nagle: hold small segments while data is outstanding (RFC 9293 section 3.7.4).
        initial_rto: retransmission timeout before a measurement.
        min_rto: its lower bound.
        max_rto: its upper bound, also after back-off and for zero window probes.
        clock_granularity: G of RFC 6298; 4.4BSD's half-second ticks for the older variants, since
            with finer ones the queue grows faster in slow start than the timeout, else 1 ms.
        receive_buffer: room for data the application has not read.
        send_buffer: room for data the application has written and the peer not acknowledged.
        delayed_ack_timeout: longest delay of an ACK.
        ack_every: full-sized segments per ACK.
        max_retransmissions: consecutive unanswered timeouts after which the connection is given
            up.
        max_syn_retransmissions: the same for SYN and SYN-ACK; eight take more than the three
            minutes of RFC 9293 section 3.8.3 (MUST-23).
        time_wait: how long TIME-WAIT lasts (2 MSL of RFC 9293, shortened for the simulation).
        iss: initial send sequence number; a random one for each connection when None.
    """

    variant: Variant = "sack-newreno-rfc"
    mss: int = 1460
    sack: bool | None = None
    dsack: bool = False
    window_scale: bool = True
    timestamps: bool | None = None
    limited_transmit: bool | None = None
    initial_window_segments: int | None = None
    byte_counting: int = 1
    nagle: bool = False
    initial_rto: float = 1.0
    min_rto: float = 1.0
    max_rto: float = 60.0
    clock_granularity: float | None = None
    receive_buffer: int = 240 * 1024
    send_buffer: int = 240 * 1024
    delayed_ack_timeout: float = 0.2
    ack_every: int = 2
    max_retransmissions: int = 12
    max_syn_retransmissions: int = 8
    time_wait: float = 60.0
    iss: int | None = None

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(
                f"there is no variant {self.variant!r}; choose from {', '.join(VARIANTS)}."
            )
        if not 1 <= self.mss <= 65495:
            raise ValueError(f"mss is {self.mss}; give octets from 1 to 65495.")

    @property
    def uses_sack(self) -> bool:
        """Whether SACK is offered and accepted."""
        return self.variant.startswith("sack-") if self.sack is None else self.sack

    @property
    def uses_timestamps(self) -> bool:
        """Whether the Timestamps option is offered and accepted."""
        return self._is_current if self.timestamps is None else self.timestamps

    @property
    def uses_limited_transmit(self) -> bool:
        """Whether the first two duplicate ACKs clock out new data."""
        return self._is_current if self.limited_transmit is None else self.limited_transmit

    @property
    def granularity(self) -> float:
        """G of RFC 6298, seconds."""
        if self.clock_granularity is not None:
            return self.clock_granularity
        return 0.001 if self._is_current else 0.5

    @property
    def initial_segments(self) -> int:
        """Initial window, segments."""
        if self.initial_window_segments is not None:
            return self.initial_window_segments
        return 10 if self._is_current else 1

    @property
    def _is_current(self) -> bool:
        return self.variant == "sack-newreno-rfc"
