"""The sending half of a connection: what may be sent, and how ACKs and timers are processed.

Loss recovery is left to the subclasses in :mod:`bentpipe_reference.tcp.recovery`. Every rule is
one small method, named after the rule, so that a variant or a mutant overrides exactly one.
"""

from __future__ import annotations

import math

from bentpipe_reference.common.sim import earliest
from bentpipe_reference.tcp.sending.congestion import CongestionRules
from bentpipe_reference.tcp.sending.variables import Ack


class Sender(CongestionRules):
    """Sliding window, duplicate ACKs, timeouts and window probes."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        """Take the outcome of the handshake: segment size, first window, and whether SACK is on."""
        self.smss = smss
        self.sack_ok = sack_ok
        self.snd_wnd = self.max_snd_wnd = self.last_window = window
        self.snd_wl1, self.snd_wl2 = seq, self.snd_una
        self.cwnd = self.initial_window()

    # -- sending ------------------------------------------------------------------------------

    def send_window(self) -> int:
        """Octets that may be outstanding: the smaller of congestion and offered window."""
        return min(self.cwnd, self.snd_wnd)

    def outstanding(self) -> int:
        """Octets that count against :meth:`send_window`."""
        return self.snd_nxt - self.snd_una

    def output(self, now: float) -> None:
        """Send what the window allows."""
        self.restart_after_idle(now)
        while self.send_next(now):
            pass
        self.check_probe(now)

    def send_next(self, now: float) -> bool:
        """Send one segment at ``snd_nxt`` if the window and RFC 9293 3.8.6.2.1 allow one."""
        self.skip_held()
        seq = self.snd_nxt
        octets = self.sendable(seq, self.send_window() - self.outstanding())
        if not octets:
            return False
        self.transmit(seq, seq + octets, now)
        return True

    def skip_held(self) -> None:
        """Let ``snd_nxt`` pass data the receiver holds; without SACK none is known."""

    def repeat_end(self, seq: int) -> int | None:  # noqa: ARG002
        """Where a retransmission from ``seq`` must end, None when anywhere."""
        return None

    def sendable(self, seq: int, usable: int) -> int:
        """Sequence numbers of the segment to send from ``seq`` given a usable window.

        A segment shorter than SMSS leaves only when it is all there is or at least half the largest
        window ever offered, and Nagle's rule allows it.
        """
        limit = self.segment_limit(seq)
        end = self.sending_end
        wanted = limit if end is None else min(limit, end - seq)
        if seq < self.snd_max and (stop := self.repeat_end(seq)) is not None:
            wanted = min(wanted, stop - seq)
        octets = min(wanted, usable)
        # Nagle's rule holds new data only, and nothing more is written that could join a FIN's.
        held = self.config.nagle and self.flight_size and seq >= self.snd_max
        held = held and not self.fin_queued
        fits = octets == wanted or 2 * octets >= self.max_snd_wnd
        return octets if octets >= self.smss or (fits and not held) else 0

    def segment_limit(self, seq: int) -> int:
        """Most sequence numbers in one segment from ``seq``: SMSS, and one more for a FIN."""
        data_end = self.data_end
        if self.fin_queued and data_end is not None and data_end - seq <= self.smss:
            return data_end + 1 - seq
        return self.smss

    def transmit(self, seq: int, end: int, now: float) -> None:
        """Put the sequence numbers from ``seq`` to ``end`` into a segment."""
        data_end = self.data_end
        fin = self.fin_queued and data_end is not None and end > data_end
        stop = end - fin
        payload = b""
        if self.source is not None and stop > seq:
            payload = self.source.read(seq - self.iss - 1, stop - seq)
        repeated = seq < self.snd_max
        if repeated:
            self.counters.retransmissions += 1
            self.forget_measurement()
        else:
            self.start_measuring(end, now)
        if seq <= self.snd_nxt:
            self.snd_nxt = max(self.snd_nxt, end)
        self.snd_max = max(self.snd_max, end)
        self.last_send = now
        self.persist_deadline = None
        self.probes = 0
        self.start_rto(now)
        self.put(seq, payload, bool(fin), now)
        if self.on_event is not None:
            name = "retransmit" if repeated else "send"
            self.emit(name, now, seq=seq - self.iss, octets=end - seq)

    def retransmit(self, seq: int, now: float) -> int:
        """Retransmit one segment from ``seq``; return where it ends."""
        stop = self.repeat_end(seq)
        end = min(self.snd_max if stop is None else stop, seq + self.segment_limit(seq))
        self.transmit(seq, end, now)
        return end

    # -- acknowledgments ----------------------------------------------------------------------

    def on_ack(self, ack: Ack, now: float) -> None:
        """Process an acknowledgment not beyond ``snd_max``."""
        self.silent_timeouts = 0
        if ack.number < self.snd_una:
            return
        newly_held = self.take_sack(ack)
        duplicate = self.is_duplicate_ack(ack, newly_held)
        self.last_window = ack.window  # whether it counts or not (RFC 5681 section 2, e)
        before = self.snd_wnd
        moved = self.update_window(ack)
        if before and not self.snd_wnd:
            # Planned for a small window; a closed one is probed a timeout after it has closed.
            self.persist_deadline = None
        if ack.number > self.snd_una:
            self.on_new_ack(ack, now)
        elif duplicate:
            self.dupacks += 1
            self.emit("duplicate_ack", now, ack=ack.number - self.iss)
            self.on_duplicate_ack(now)
        elif moved or self.persist_deadline is not None:
            self.output(now)

    def take_sack(self, ack: Ack) -> int:
        """Record the SACK blocks; return how many octets they newly report as held."""
        if not self.sack_ok or not ack.blocks:
            return 0
        blocks = ack.blocks[1:] if self.is_duplicate_report(ack) else ack.blocks
        return sum(
            self.scoreboard.add(left, right)
            for left, right in blocks
            if self.accept_sack_block(left, right, ack)
        )

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        """Whether a block can be true: not empty, above the ACK, and of data that was sent."""
        return max(ack.number, self.snd_una) < left < right <= self.snd_max

    def is_duplicate_report(self, ack: Ack) -> bool:
        """Whether the first block is a D-SACK (RFC 2883 section 4), which reports no loss."""
        left, right = ack.blocks[0]
        if right <= ack.number:
            return True
        if any(end > self.snd_max for _, end in ack.blocks[1:2]):
            return False  # the block around it is of data that the peer holds
        return any(outer <= left and right <= end for outer, end in ack.blocks[1:2])

    def is_duplicate_ack(self, ack: Ack, newly_held: int) -> bool:
        """The five conditions of RFC 5681 section 2, and no report of a duplicate.

        The octet of a window probe does not count as outstanding: the peer refuses it each time.
        """
        return (
            ack.number == self.snd_una
            and self.flight_size > 0
            and not self.probes
            and ack.bare
            and ack.window == self.last_window
            and not (
                self.sack_ok and ack.blocks and not newly_held and self.is_duplicate_report(ack)
            )
        )

    def update_window(self, ack: Ack) -> bool:
        """Take the offered window from a segment that is not older (RFC 9293 section 3.10.7.4).

        An old segment can still acknowledge new data, when the peer retransmits it; then the right
        edge stays where it is, as in 4.4BSD, instead of moving with ``snd_una``.
        """
        fresh = self.snd_wl1 < ack.seq or (self.snd_wl1 == ack.seq and self.snd_wl2 <= ack.number)
        if not fresh:
            self.snd_wnd = max(0, self.right_edge - ack.number)
            return False
        moved = ack.number + ack.window != self.right_edge
        self.snd_wnd = ack.window
        self.snd_wl1, self.snd_wl2 = ack.seq, ack.number
        self.max_snd_wnd = max(self.max_snd_wnd, ack.window)
        return moved

    def on_new_ack(self, ack: Ack, now: float) -> None:
        """Advance ``snd_una``, then grow cwnd or proceed with recovery, then send."""
        acked = ack.number - self.snd_una
        if (rtt := self.measured_rtt(ack, now)) is not None:
            self.estimator.sample(rtt)
        self.snd_una = ack.number
        self.snd_nxt = max(self.snd_nxt, self.snd_una)
        self.scoreboard.remove_below(self.snd_una)
        if self.source is not None:
            data_end = self.data_end
            edge = self.snd_una if data_end is None else min(self.snd_una, data_end)
            self.source.release(edge - self.iss - 1)
        self.consecutive_timeouts = self.probes = 0
        self.dupacks = self.limited_transmit_octets = 0
        if self.restarts_timer(ack):
            self.restart_rto(now)
        if self.in_recovery:
            self.on_ack_in_recovery(acked, now)
        else:
            self.cwnd += self.growth_on_ack(acked)
        self.emit("ack", now, ack=ack.number - self.iss, acked=acked)
        if self.sends_after_ack():
            self.output(now)

    def restarts_timer(self, ack: Ack) -> bool:  # noqa: ARG002
        """Rule 5.3 of RFC 6298: every ACK of new data restarts the timer."""
        return True

    def sends_after_ack(self) -> bool:
        """Whether an ACK of new data is followed by what the window allows."""
        return True

    # -- loss detection; recovery is left to the variant --------------------------------------

    def duplicate_threshold(self) -> int:
        """Duplicate ACKs that mean a loss (RFC 5681 section 3.2)."""
        return 3

    def on_duplicate_ack(self, now: float) -> None:
        """Enter recovery at the threshold, inflate within it, limited transmit before it."""
        if self.in_recovery:
            self.on_duplicate_in_recovery(now)
        elif self.loss_detected() and self.may_enter_recovery():
            self.counters.fast_recoveries += 1
            self.enter_recovery(now)
            self.emit("enter_recovery", now)
        elif self.dupacks < self.duplicate_threshold():
            self.limited_transmit(now)

    def loss_detected(self) -> bool:
        """Whether this duplicate ACK is the one that shows a loss."""
        return self.dupacks == self.duplicate_threshold()

    def may_enter_recovery(self) -> bool:
        """Whether a loss found now begins a new episode."""
        return True

    def enter_recovery(self, now: float) -> None:
        """Reduce the window and retransmit the missing segment."""
        raise NotImplementedError

    def on_duplicate_in_recovery(self, now: float) -> None:
        """A further duplicate ACK during recovery."""
        raise NotImplementedError

    def on_ack_in_recovery(self, acked: int, now: float) -> None:
        """An ACK of ``acked`` new octets during recovery; ``snd_una`` has advanced."""
        raise NotImplementedError

    def limited_transmit(self, now: float) -> None:
        """RFC 3042: one new segment for each of the first two duplicate ACKs."""
        if not self.config.uses_limited_transmit or self.snd_nxt < self.snd_max:
            return
        allowance = self.cwnd + 2 * self.smss
        usable = min(allowance, self.snd_wnd) - self.flight_size
        octets = self.sendable(self.snd_max, min(usable, self.smss))
        if octets:
            self.transmit(self.snd_max, self.snd_max + octets, now)
            self.limited_transmit_octets += octets

    # -- timers -------------------------------------------------------------------------------

    def has_given_up(self, now: float) -> bool:
        """Whether a timer expires after as many unanswered ones as the configuration allows."""
        due = now >= (self.next_deadline() or math.inf)
        return due and self.silent_timeouts >= self.config.max_retransmissions

    def on_timer(self, now: float) -> None:
        """Process the timers that have expired."""
        if self.rto_deadline is not None and now >= self.rto_deadline:
            self.on_timeout(now)
        if self.persist_deadline is not None and now >= self.persist_deadline:
            self.on_probe_due(now)

    def on_timeout(self, now: float) -> None:
        """Rules 5.4 to 5.6 of RFC 6298, RFC 5681 section 3.1; resume sending at ``snd_una``."""
        self.counters.timeouts += 1
        self.ssthresh = self.ssthresh_after_timeout(self.consecutive_timeouts > 0)
        self.consecutive_timeouts += 1
        self.silent_timeouts += 1
        self.cwnd = self.cwnd_after_timeout()
        self.estimator.back_off()
        self.on_timeout_in_recovery()
        self.in_recovery = False
        self.dupacks = self.limited_transmit_octets = 0
        self.scoreboard.clear()  # the receiver may have reneged (RFC 2018 section 8)
        self.snd_nxt = self.snd_una
        self.rto_deadline = None
        self.emit("timeout", now, rto=self.estimator.rto)
        self.retransmit(self.snd_una, now)

    def on_timeout_in_recovery(self) -> None:
        """What the variant records about the loss episode at a timeout."""

    def check_probe(self, now: float) -> None:
        """Plan a window probe when data is pending, none may be sent and no timer runs."""
        end = self.sending_end
        if (end is None or end > self.snd_nxt) and self.rto_deadline is None:
            self.plan_probe(now)
        else:
            self.persist_deadline = None

    def on_probe_due(self, now: float) -> None:
        """Send one octet beyond a closed window, or what a window too small to use allows.

        The latter is data like any other (RFC 9293 section 3.8.6.2.1, the override timeout); a
        probe neither starts the retransmission timer nor moves ``snd_nxt``. What opens the window
        comes soon after it, so that idleness has to be noticed here (RFC 5681 section 4.1).
        """
        self.restart_after_idle(now)
        probes = self.probes + 1
        octets = max(1, min(self.snd_wnd, self.smss))
        end = self.sending_end
        if end is not None:
            octets = min(octets, end - self.snd_una)
        self.transmit(self.snd_una, self.snd_una + octets, now)
        if self.snd_wnd:
            return
        self.emit("window_probe", now, probes=probes)
        self.silent_timeouts += 1
        self.rto_deadline = None
        self.snd_nxt = self.snd_una
        self.forget_measurement()
        self.probes = probes
        self.plan_probe(now)

    # -- round-trip measurement, and when the timers run --------------------------------------

    def start_measuring(self, end: int, now: float) -> None:
        """Time the segment that ends at ``end`` unless another is being timed."""
        if self.timed is None:
            self.timed = end, now

    def forget_measurement(self) -> None:
        """Karn's rule (RFC 6298 section 3): do not measure retransmitted segments."""
        self.timed = None

    def measured_rtt(self, ack: Ack, now: float) -> float | None:
        """The round-trip time measured by ``ack``, which acknowledges new data; None for none.

        With timestamps every such ACK does (RFC 7323 section 4.1), else one that covers the
        segment being timed.
        """
        if ack.ts_ecr_age is not None:
            return ack.ts_ecr_age
        if self.timed is None or ack.number < self.timed[0]:
            return None
        rtt = now - self.timed[1]
        self.timed = None
        return rtt

    def start_rto(self, now: float) -> None:
        """Rule 5.1 of RFC 6298: sending data starts the timer unless it runs."""
        if self.rto_deadline is None:
            self.rto_deadline = now + self.estimator.rto

    def restart_rto(self, now: float) -> None:
        """Rules 5.2 and 5.3: restart the timer, or stop it when nothing is outstanding."""
        self.rto_deadline = now + self.estimator.rto if self.flight_size else None

    def restart_after_idle(self, now: float) -> None:
        """Return to the restart window after an RTO without sending (RFC 5681 section 4.1)."""
        idle = self.last_send is not None and now - self.last_send > self.estimator.rto
        if idle and not self.flight_size:
            self.cwnd = self.restart_window()
            self.octets_acked = 0

    def zero_window_probe_interval(self, probes: int) -> float:
        """Seconds until the next probe after ``probes`` unanswered ones (RFC 9293 3.8.6.1)."""
        return min(self.estimator.rto * 2.0**probes, self.config.max_rto)

    def plan_probe(self, now: float) -> None:
        """Start the persist timer unless it runs."""
        if self.persist_deadline is None:
            self.persist_deadline = now + self.zero_window_probe_interval(self.probes)

    def next_deadline(self) -> float | None:
        """When the earlier of the two timers expires, None when both are off."""
        if self.persist_deadline is None:
            return self.rto_deadline
        return earliest(self.rto_deadline, self.persist_deadline)
