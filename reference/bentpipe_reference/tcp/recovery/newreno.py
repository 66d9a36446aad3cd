"""TCP NewReno as HK99 has it: rules 1 to 4 of its appendix, without SACK.

This is the "Less Careful, Slow-but-Steady" variant of RFC 2582 (HK99 section 5.3). The paper
does not say whether a timeout changes ``snd_recover``; here it does not. ``recover`` is its
``snd_recover``: the number *after* the highest one sent when the loss episode began.
"""

from __future__ import annotations

from bentpipe_reference.tcp.recovery.reno import RenoSender


class NewRenoSender(RenoSender):
    """One window reduction per loss episode; partial ACKs are answered at once."""

    def initial_recover(self) -> int:
        """Rule 1: snd_una at the start."""
        return self.snd_una

    def may_enter_recovery(self) -> bool:
        """Rule 2: not for duplicates that an earlier episode covers."""
        return self.snd_una >= self.recover

    def recovery_point(self) -> int:
        """Rule 2: snd_max when the episode begins."""
        return self.snd_max

    def enter_recovery(self, now: float) -> None:
        """Rule 2: record where the episode ends, then fast retransmit."""
        self.recover = self.recovery_point()
        super().enter_recovery(now)

    def on_ack_in_recovery(self, acked: int, now: float) -> None:
        """Rules 3 and 4: a full ACK ends recovery, a partial one continues it."""
        if self.ends_recovery():
            self.leave_recovery(now)
        else:
            self.on_partial_ack(acked, now)

    def ends_recovery(self) -> bool:
        """Rule 3: everything sent before the episode began is acknowledged."""
        return self.snd_una >= self.recover

    def exit_window(self) -> int:
        """Rule 3: ssthresh, or what is outstanding plus one segment if that is less."""
        return min(self.ssthresh, self.flight_size + self.smss)

    def on_partial_ack(self, acked: int, now: float) -> None:
        """Rule 4: retransmit the next missing segment and deflate; :meth:`on_ack` then sends."""
        self.first_retransmission(now)
        self.cwnd = self.cwnd_after_partial_ack(acked)
        self.emit("partial_ack", now, acked=acked)

    def cwnd_after_partial_ack(self, acked: int) -> int:
        """Rule 4: deflate by the data acknowledged, add back one segment.

        Inflation can be smaller than what one ACK covers, so the result is kept at one segment.
        """
        return max(self.cwnd - acked + self.smss, self.smss)
