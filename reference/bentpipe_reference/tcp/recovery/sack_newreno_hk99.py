"""TCP SACK-NewReno as specified in the appendix of HK99: rules 1 to 7.

Where the paper is silent, RFC 5681 and RFC 6298 apply: initial and loss window, growth outside
recovery, the timeout. Rule 4 has a partial ACK deflate cwnd and call tcp_output(); rule 6 says
what each ACK of the recovery phase sends, so with SACK the output of a partial ACK is rule 6's:
one eligible retransmission or, failing that, one more segment of inflation and new data.
"""

from __future__ import annotations

from bentpipe_reference.tcp.recovery.newreno import NewRenoSender
from bentpipe_reference.tcp.recovery.selective import SelectiveRetransmission


class SackNewRenoHk99Sender(SelectiveRetransmission, NewRenoSender):
    """NewReno's window (rules 1 to 4) with selective retransmission (rules 5 to 7)."""

    def enter_recovery(self, now: float) -> None:
        """Rule 2; nothing of the new episode has been retransmitted yet.

        With SACK, only rule 6 retransmits; new data follows what has been sent. Resuming where a
        timeout had set snd_nxt back would retransmit segments before they are eligible, and again
        afterwards (rule 5). The paper does not say so; the model shows it.
        """
        self.high_rxt = self.snd_una
        super().enter_recovery(now)
        if self.sack_ok:
            self.snd_nxt = self.snd_max

    def on_partial_ack(self, acked: int, now: float) -> None:
        """Rule 4, and rule 6 in place of the unconditional retransmission."""
        if not self.sack_ok:
            super().on_partial_ack(acked, now)
            return
        self.cwnd = self.cwnd_after_partial_ack(acked)
        self.emit("partial_ack", now, acked=acked)
        self._ack_used = self.use_ack(now)
        if not self._ack_used:
            self.inflate()

    def sends_after_ack(self) -> bool:
        """Rule 6: an ACK that caused a retransmission sends nothing else."""
        used, self._ack_used = self._ack_used, False
        return not used
