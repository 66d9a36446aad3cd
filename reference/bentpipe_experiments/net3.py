"""The TCP of HK99's hosts: the paper's four recoveries in the frame of 4.4BSD-Lite (Net/3).

Section 5.2.1: BSD/OS 3.0, whose TCP derives from 4.4BSD-Lite. What that frame did differently
from the RFCs of today belongs to the experiments and not to the reference, whose variants must
be conformant:

* congestion avoidance adds SMSS*SMSS/cwnd per ACK, and an eighth of a segment on top
  ("extra additive constant", RFC 2525; Brakmo and Peterson, reference 8 of the paper);
* a delayed acknowledgment waits for the next beat of a 200 ms clock, 100 ms on average, as
  section 5.4 of the paper has it.
"""

from __future__ import annotations

from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import (
    NewRenoSender,
    RenoSender,
    SackNewRenoHk99Sender,
    SackRenoSender,
)
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.congestion import CongestionRules

HEARTBEAT = 0.2
"""Period of the clock that releases delayed acknowledgments, seconds."""


class Rfc2001Growth(CongestionRules):
    """Congestion avoidance per ACK (RFC 2001): half a segment per round trip with delayed ACKs."""

    def in_slow_start(self) -> bool:
        """Up to and including ssthresh."""
        return self.cwnd <= self.ssthresh

    def congestion_avoidance_increase(self, acked: int) -> int:  # noqa: ARG002
        """SMSS*SMSS/cwnd for each ACK."""
        return self.smss * self.smss // self.cwnd


class Net3Growth(Rfc2001Growth):
    """Net/3 adds an eighth of a segment to that."""

    def congestion_avoidance_increase(self, acked: int) -> int:
        """SMSS*SMSS/cwnd + SMSS/8 for each ACK."""
        return super().congestion_avoidance_increase(acked) + self.smss // 8


def _hosts(growth: type[CongestionRules]) -> dict[str, type[Sender]]:
    """The paper's four recoveries with this growth, by the reference's variant name."""
    recoveries: dict[str, type[Sender]] = {
        "reno": RenoSender,
        "newreno": NewRenoSender,
        "sack-reno": SackRenoSender,
        "sack-newreno-hk99": SackNewRenoHk99Sender,
    }
    return {
        name: type(sender.__name__, (growth, sender), {}) for name, sender in recoveries.items()
    }


NET3 = _hosts(Net3Growth)
"""The senders of BSD/OS 3.0."""

RFC2001 = _hosts(Rfc2001Growth)
"""The same recoveries with the growth of RFC 2001."""


def heartbeat_receiver(phase: float) -> type[Receiver]:
    """A receiver whose delayed acknowledgments wait for a beat at ``phase + n * HEARTBEAT``."""

    class HeartbeatReceiver(Receiver):
        """Sends a delayed acknowledgment at the next beat."""

        _arrived = 0.0

        def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
            """Note when, for the beat."""
            self._arrived = now
            super().on_text(seq, payload, fin, now)

        def delayed_ack_interval(self) -> float:
            """Seconds to the next beat."""
            return HEARTBEAT - (self._arrived - phase) % HEARTBEAT

    return HeartbeatReceiver
