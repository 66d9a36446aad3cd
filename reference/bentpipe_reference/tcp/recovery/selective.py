"""Rules 5 to 7 of HK99's appendix: which data is retransmitted with SACK."""

from __future__ import annotations

from bentpipe_reference.tcp.recovery.reno import RenoSender


class SelectiveRetransmission(RenoSender):
    """Layer over Reno or NewReno; without negotiated SACK it changes nothing.

    Attributes:
        high_rxt: one past the highest number retransmitted in this loss episode. Missing data is
            retransmitted lowest first, so this number tells what has been retransmitted.
    """

    high_rxt = 0
    _ack_used = False

    def first_retransmission(self, now: float) -> int:
        """Fast retransmit, recording what has been retransmitted."""
        end = super().first_retransmission(now)
        self.high_rxt = max(self.high_rxt, end)
        return end

    def next_missing(self) -> int | None:
        """The lowest number neither held nor retransmitted in this episode."""
        hole = self.scoreboard.first_gap(max(self.high_rxt, self.snd_una), self.snd_max)
        return None if hole is None else hole[0]

    def eligibility_distance(self) -> int:
        """Rule 5: octets from a segment to the one three beyond it."""
        return 3 * self.smss

    def next_retransmission(self) -> int | None:
        """The segment rule 6 retransmits next, None when none is eligible by rule 5.

        Three duplicate ACKs ask for an eligible one, or the receiver holds data of a segment at
        least three beyond it.
        """
        seq = self.next_missing()
        if seq is None:
            return None
        asked_for = seq == self.snd_una and self.dupacks >= self.duplicate_threshold()
        passed = self.scoreboard.highest > seq + self.eligibility_distance()
        return seq if asked_for or passed else None

    def use_ack(self, now: float) -> bool:
        """Rule 6: one eligible retransmission for this ACK, or none and False."""
        seq = self.next_retransmission()
        if seq is None:
            return False
        self.high_rxt = self.retransmit(seq, now)
        return True

    def on_duplicate_in_recovery(self, now: float) -> None:
        """Rule 6: retransmit one segment, or else inflate and send new data."""
        if not self.sack_ok:
            super().on_duplicate_in_recovery(now)
        elif not self.use_ack(now):
            self.inflate()
            self.output(now)

    def skip_held(self) -> None:
        """Rule 7: skip what the receiver reports as held."""
        if self.sack_ok and self.snd_nxt < self.snd_max:
            hole = self.scoreboard.first_gap(self.snd_nxt, self.snd_max)
            self.snd_nxt = self.snd_max if hole is None else hole[0]

    def repeat_end(self, seq: int) -> int | None:
        """Rule 7: a retransmission ends where the receiver's data begins."""
        hole = self.scoreboard.first_gap(seq, self.snd_max)
        return hole[1] if hole is not None and hole[1] < self.snd_max else None


class SackRenoSender(SelectiveRetransmission):
    """TCP SACK-Reno (HK99 section 5.3): Reno's window with selective retransmission.

    Each recovery phase ends with the first new ACK, so one burst can halve cwnd repeatedly.
    """

    def on_timeout_in_recovery(self) -> None:
        """After a timeout everything may be retransmitted again."""
        self.high_rxt = self.snd_una
