"""A current standards-track sender: RFC 6675 where SACK was negotiated, else RFC 6582.

Choices of this project where the RFCs leave one: a timeout clears the scoreboard (RFC 2018
section 8; RFC 6675 section 5.1 does not change that), so a receiver that reneges costs one
timeout and no data; the retransmission timer restarts with every cumulative ACK (RFC 6298 rule
5.3); cwnd stays at ssthresh when recovery ends; what SACK reports as held after a timeout is not
retransmitted.
"""

from __future__ import annotations

from bentpipe_reference.tcp.recovery.rfc6582 import Rfc6582Sender
from bentpipe_reference.tcp.recovery.selective import SelectiveRetransmission
from bentpipe_reference.tcp.sending.variables import Ack


class SackNewRenoRfcSender(SelectiveRetransmission, Rfc6582Sender):
    """Pipe-controlled loss recovery (RFC 6675, section 5).

    Attributes:
        rescued: whether this episode has made its rescue retransmission. RescueRxt of the RFC is
            RecoveryPoint then, above which HighACK does not rise before the episode ends.
    """

    rescued: bool

    # -- what counts as evidence --------------------------------------------------------------

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        """RFC 6675 section 2: with SACK, an ACK that reports octets as held for the first time."""
        if not self.sack_ok:
            return super().is_duplicate_ack(ack, newly_held)
        return ack.number == self.snd_una and newly_held > 0

    def loss_edge(self) -> int:
        """Missing octets below this number are lost (IsLost of section 4)."""
        runs = self.duplicate_threshold()
        edge = self.scoreboard.loss_edge(runs, (runs - 1) * self.smss)
        return self.snd_una if edge is None else edge

    def loss_detected(self) -> bool:
        """Section 5, steps 1 and 2: enough duplicates, or the next octet counts as lost.

        "At least", as after a timeout the count may pass the threshold before ``recover`` permits
        an episode.
        """
        if not self.sack_ok:
            return super().loss_detected()
        return self.dupacks >= self.duplicate_threshold() or self.snd_una < self.loss_edge()

    # -- the recovery phase -------------------------------------------------------------------

    def may_enter_recovery(self) -> bool:
        """With SACK, everything sent before the last timeout or episode is acknowledged.

        The careful test of RFC 6582 guards against duplicates that SACK distinguishes anyway.
        """
        return self.snd_una > self.recover if self.sack_ok else super().may_enter_recovery()

    def enter_recovery(self, now: float) -> None:
        """Section 5, step 4."""
        self.rescued = False
        self.high_rxt = self.snd_una
        super().enter_recovery(now)
        if self.sack_ok:
            self.output(now)

    def cwnd_entering_recovery(self) -> int:
        """Step 4.2: ssthresh; the pipe, not an inflated window, counts what left the network."""
        return self.ssthresh if self.sack_ok else super().cwnd_entering_recovery()

    def on_duplicate_in_recovery(self, now: float) -> None:
        """Steps B and C: the scoreboard is up to date, so send what the pipe allows."""
        if self.sack_ok:
            self.output(now)
        else:
            super().on_duplicate_in_recovery(now)

    def on_partial_ack(self, acked: int, now: float) -> None:
        """With SACK a partial ACK only updates the scoreboard; step C follows in output."""
        if not self.sack_ok:
            super().on_partial_ack(acked, now)

    def exit_window(self) -> int:
        """Step A: with SACK, cwnd is ssthresh already."""
        return self.cwnd if self.sack_ok else super().exit_window()

    def restarts_timer(self, ack: Ack) -> bool:
        """With SACK every cumulative ACK restarts the timer."""
        return self.sack_ok or super().restarts_timer(ack)

    # -- pipe and NextSeg ---------------------------------------------------------------------

    def pipe(self) -> int:
        """SetPipe of section 4: octets that the sender believes to be in the network."""
        edge = self.loss_edge()
        return sum(
            max(0, right - max(left, edge)) + max(0, min(right, self.high_rxt) - left)
            for left, right in self.scoreboard.gaps(self.snd_una, self.snd_max)
        )

    def next_segment(self) -> tuple[int, int] | None:
        """NextSeg of section 4: the range to send next, None when nothing qualifies."""
        return (
            self.lost_segment()
            or self.new_segment()
            or self.speculative_segment()
            or self.rescue_segment()
        )

    def lost_segment(self) -> tuple[int, int] | None:
        """Rule 1: the lowest missing range, not retransmitted yet, that counts as lost."""
        return self._missing_below(self.loss_edge())

    def new_segment(self) -> tuple[int, int] | None:
        """Rule 2: data not sent before, if the offered window has room."""
        octets = self.sendable(self.snd_max, min(self.right_edge - self.snd_max, self.smss))
        return (self.snd_max, self.snd_max + octets) if octets else None

    def speculative_segment(self) -> tuple[int, int] | None:
        """Rule 3: a missing range below the highest held octet, not counted as lost yet."""
        return self._missing_below(self.scoreboard.highest)

    def rescue_segment(self) -> tuple[int, int] | None:
        """Rule 4: once per episode, the end of the outstanding data.

        A SHOULD. Not followed where the end has arrived and the highest missing range has been
        retransmitted: another retransmission would be spurious.
        """
        if self.rescued:
            return None
        gaps = self.scoreboard.gaps(self.snd_una, self.snd_max)
        if not gaps or gaps[-1][1] <= self.high_rxt:
            return None
        left, right = gaps[-1]
        return max(left, right - self.smss), right

    def _missing_below(self, edge: int) -> tuple[int, int] | None:
        hole = self.scoreboard.first_gap(max(self.high_rxt, self.snd_una), edge)
        if hole is None:
            return None
        return hole[0], min(hole[1], hole[0] + self.segment_limit(hole[0]))

    def output(self, now: float) -> None:
        """Step C during recovery, else the ordinary window."""
        if not (self.in_recovery and self.sack_ok):
            super().output(now)
            return
        pipe = self.pipe()
        while self.cwnd - pipe >= self.smss and (chosen := self.next_segment()) is not None:
            self.send_chosen(chosen, now)
            pipe += chosen[1] - chosen[0]

    def send_chosen(self, chosen: tuple[int, int], now: float) -> None:
        """Send the range NextSeg chose and record it (steps C.2 and C.3)."""
        left, right = chosen
        if left < self.snd_max:
            if right <= self.scoreboard.highest:
                self.high_rxt = right
            else:
                self.rescued = True
        self.transmit(left, right, now)

    # -- before and after recovery ------------------------------------------------------------

    def limited_transmit(self, now: float) -> None:
        """Section 5, step 3: new data as the pipe allows.

        Not while a timeout is repaired: its retransmissions are in the network, but not in a pipe
        with HighRxt at HighACK.
        """
        if not self.sack_ok:
            super().limited_transmit(now)
            return
        if not self.config.uses_limited_transmit or self.repairs_timeout():
            return
        self.high_rxt = self.snd_una
        pipe = self.pipe()
        while self.cwnd - pipe >= self.smss and (chosen := self.new_segment()) is not None:
            self.transmit(*chosen, now)
            pipe += chosen[1] - chosen[0]
            self.limited_transmit_octets += chosen[1] - chosen[0]

    def on_duplicate_ack(self, now: float) -> None:
        """After a timeout, a new SACK report can also make room to send."""
        super().on_duplicate_ack(now)
        if self.sack_ok and not self.in_recovery and self.repairs_timeout():
            self.output(now)

    def repairs_timeout(self) -> bool:
        """Whether what was sent before a timeout is not all acknowledged yet."""
        return self.snd_una <= self.recover

    def send_window(self) -> int:
        """After a timeout, what the receiver holds does not occupy the network.

        It still occupies the receiver's window (RFC 9293 section 3.8.6), so it makes room in the
        congestion window only.
        """
        if not self.repairs_timeout():
            return super().send_window()
        return min(self.cwnd + self.scoreboard.overlap(self.snd_una, self.snd_nxt), self.snd_wnd)
