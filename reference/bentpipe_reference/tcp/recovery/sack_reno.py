"""TCP SACK-Reno (HK99 section 5.3): Reno's window with selective retransmission."""

from __future__ import annotations

from bentpipe_reference.tcp.recovery.selective import SelectiveRetransmission


class SackRenoSender(SelectiveRetransmission):
    """Each recovery phase ends with the first new ACK, so one burst can halve cwnd repeatedly."""
