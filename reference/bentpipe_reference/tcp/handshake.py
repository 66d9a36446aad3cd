"""The handshake: what the SYNs negotiate, and their retransmission."""

from __future__ import annotations

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.wire.options import MAXIMUM_OCTETS
from bentpipe_reference.tcp.wire.segment import Segment

DEFAULT_MSS = 536
"""Send MSS when the peer's SYN has no MSS option (RFC 9293 section 3.7.1)."""

LARGEST_SHIFT = 14
"""Larger shift counts are taken for this one (RFC 7323 section 2.3)."""

SMALLEST_MSS = 48
"""Lower bound of the send MSS: a smaller MSS option is an attack rather than a link.

RFC 9293 has no such bound; the figure is that of Linux.
"""

SACK_BLOCK_OCTETS = 8
SACK_OVERHEAD_OCTETS = 4
"""Kind and length of the SACK option with the padding before them."""

TIMESTAMP_OCTETS = 12
"""What the padded Timestamps option takes from each segment."""


def smallest_shift(buffer: int) -> int:
    """The smallest window scale that can advertise ``buffer`` octets."""
    shifts = range(LARGEST_SHIFT)
    return next((shift for shift in shifts if buffer <= 0xFFFF << shift), LARGEST_SHIFT)


class Handshake:
    """Options offered and agreed, and the timer of the SYN or SYN-ACK.

    Attributes:
        sack_ok: both ends do SACK.
        timestamps_ok: both ends do timestamps.
        send_shift: scale of the windows the peer advertises.
        receive_shift: scale of the windows this end advertises.
        deadline: when the SYN is retransmitted, None once it is acknowledged.
        attempts: SYNs (or SYN-ACKs) sent so far.
    """

    def __init__(self, config: EndpointConfig, estimator: RttEstimator) -> None:
        self._config = config
        self._estimator = estimator
        self.sack_ok: bool
        self.timestamps_ok: bool
        self.send_shift = 0
        self.receive_shift = 0
        self.deadline: float | None = None
        self.attempts = 0
        self._sent_at: float
        self._peer_mss = DEFAULT_MSS
        self._scaling = config.window_scale

    def take_options(self, syn: Segment) -> None:
        """Read the peer's SYN; an option counts only if this end offers it too."""
        config = self._config
        self._peer_mss = DEFAULT_MSS if syn.mss is None else max(SMALLEST_MSS, syn.mss)
        self.sack_ok = config.uses_sack and syn.sack_permitted
        self.timestamps_ok = config.uses_timestamps and syn.timestamps is not None
        scale = syn.window_scale if config.window_scale else None
        self._scaling = scale is not None
        if scale is not None:
            self.send_shift = min(scale, LARGEST_SHIFT)
            self.receive_shift = smallest_shift(config.receive_buffer)

    def offer(self, syn: Segment, *, answering: bool) -> None:
        """Put the options into an outgoing SYN; in an answer only what the peer offered."""
        syn.sack_permitted = self.sack_ok if answering else self._config.uses_sack
        if self._scaling:
            syn.window_scale = smallest_shift(self._config.receive_buffer)

    def offers_timestamps(self, *, answering: bool) -> bool:
        """Whether an outgoing SYN carries the Timestamps option."""
        return self.timestamps_ok if answering else self._config.uses_timestamps

    def smss(self) -> int:
        """Data octets per segment: the smaller MSS less the timestamps."""
        options = TIMESTAMP_OCTETS if self.timestamps_ok else 0
        return max(1, min(self._peer_mss, self._config.mss) - options)

    def sack_room(self, payload: int) -> int:
        """SACK blocks that fit beside ``payload`` octets and the timestamps (RFC 6691)."""
        options = min(MAXIMUM_OCTETS, min(self._peer_mss, self._config.mss) - payload)
        if self.timestamps_ok:
            options -= TIMESTAMP_OCTETS
        return max(0, (options - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS)

    def sent(self, now: float, *, repeated: bool) -> None:
        """A SYN was sent; ``repeated`` when a retransmission by the peer asked for it."""
        if self.attempts and not repeated:
            self._estimator.back_off()
        self.attempts += 1
        self._sent_at = now
        self.deadline = now + self._estimator.rto

    def complete(self, now: float) -> float | None:
        """The SYN is acknowledged; its round-trip time unless it was retransmitted (Karn)."""
        self.deadline = None
        if self.attempts == 1:
            return now - self._sent_at
        self._estimator.after_lost_syn()
        return None
