"""When SDs and POLLs leave: window, pacing and POLL timer (STP/1 section 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bentpipe_reference.stp.config import LEAST_MAX_SD, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import Packet, Poll, Sd, Sdp, Stat, Ustat
from bentpipe_reference.stp.polling import Expiry, Need, Polling
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import PACKET_MASK

RIDE_S = 0.01
"""A POLL that is due waits this long for an SD to ride on (STP-PL-005)."""

Note = Callable[[str, float, dict[str, Any]], None]
"""Told of a step of the sender: its name, the time in seconds, what describes it."""

Affords = Callable[[int], bool]
"""Whether a packet of that many octets may be sent to the peer (STP-SEC-001)."""


class Outgoing:
    """The sending side of one direction, with all that decides when it sends.

    Attributes:
        header: ports and tag of the packets.
        sender, congestion, rtt, pacer, polling: the parts.
        on_step: called with every step when set.
        asks_at_once: a POLL is due now, regardless of the timer.
        unheard: POLLs continue until the peer is heard, even with nothing to send (STP-CC-030).
    """

    def __init__(
        self, config: StpConfig, header: tuple[int, int, int], rtt: RoundTrip,
        congestion: Congestion, sender: Sender, pacer: Pacer, polling: Polling,
    ) -> None:  # fmt: skip
        self.header = header
        self.rtt, self.congestion, self.sender = rtt, congestion, sender
        self.pacer, self.polling = pacer, polling
        self.on_step: Note | None = None
        self.asks_at_once = False
        self.unheard = False
        self._config = config
        self._paced = False  # an SD waits for the pacing
        self._unaffordable = False  # an SD waits for the peer's address to be proven
        self._riding = False  # a POLL waits for an SD
        self._bursting = False  # the last new SD did not ask, because another was to follow

    def learn(self, max_sd: int | None) -> None:
        """The peer's MaxSD option, None when it announced none (STP-PF-009)."""
        sender = self.sender
        if max_sd is not None:
            sender.max_sd = max(LEAST_MAX_SD, min(max_sd, self._config.own_max_sd))
        self.congestion.learn(sender.max_sd)

    def learn_credit(self, n_mr: int, n_r: int) -> None:
        """Credit and acknowledgment of a BGAK; impossible numbers are ignored (STP-SEC-003)."""
        sender = self.sender
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        if number > sender.vt_s:
            return
        sender.grant(n_mr, number)
        sender.acknowledge(number, Report(None, sender.flight))

    # Sending

    def transmit(self, now: float, put: Callable[[Packet], None], affords: Affords) -> None:
        """Send what may leave now: retransmissions, new SDs, a POLL."""
        sender = self.sender
        self._paced = self._unaffordable = False
        asks = False
        while True:
            entry = sender.awaiting()
            if entry is not None:
                if not self._may_repeat(entry, now, affords):
                    break
                self._repeat(entry, now, put)
                # STP-PL-003; a retransmission never brings about the POLL after the last SD.
                asks = self.congestion.low and not self.goes_on()
                continue
            if not sender.has_new or not self._may_send_new(now, affords):
                break
            asks = False
            self._send_new(now, put, affords)
        asks = asks or self.asks_after_burst()
        self._bursting = self._bursting and not asks
        polling = self.polling
        polling.require(self.need(), now)
        due = polling.due(now)
        self._riding = due and self.rides_soon(now)
        # STP-SEC-001: data that waits for the address to be proven asks for a STAT.
        unproven = self._unaffordable and not polling.unanswered
        if asks or self.asks_at_once or unproven or (due and not self._riding):
            self._send_poll(now, put, affords)

    def need(self) -> Need:
        """Section 7.1: why the POLL timer has to run."""
        sender = self.sender
        if sender.unacknowledged:
            return Need.DATA
        if self.unheard:
            return Need.HEARD
        if sender.has_new and not self._paced:
            return Need.PROBE
        return Need.IDLE if self._config.keep_alive else Need.NONE

    def _may_repeat(self, entry: SentSd, now: float, affords: Affords) -> bool:
        congestion = self.congestion
        room = congestion.first_retransmission or congestion.room(self.sender.flight, entry.size)
        return room and self._may_leave(len(entry.data), now, affords)

    def _may_leave(self, octets: int, now: float, affords: Affords) -> bool:
        """Whether pacing and STP-SEC-001 permit an SD with ``octets`` of user data."""
        if not self.pacer.ready(now):
            self._paced = True
            return False
        # An SD that leaves no octets for a POLL would have to wait indefinitely.
        affordable = affords(12 + octets + 20)
        self._unaffordable = not affordable
        return affordable

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        self.congestion.first_retransmission = False
        self.sender.retransmit(entry)
        self.pacer.sent(len(entry.data))
        put(Sd(*self.header, entry.fin, entry.number & PACKET_MASK, entry.data))
        self._note("retransmit", now, n=entry.number)

    def _may_send_new(self, now: float, affords: Affords) -> bool:
        sender = self.sender
        size = sender.next_size()
        room = sender.permitted() and self.congestion.room(sender.flight, size)
        return room and self._may_leave(size, now, affords)

    def _send_new(self, now: float, put: Callable[[Packet], None], affords: Affords) -> None:
        sender = self.sender
        if not sender.unacknowledged:
            self.polling.require(Need.DATA, now)
        entry = sender.take_new()
        data = entry.data
        self.pacer.sent(len(data))
        number = entry.number & PACKET_MASK
        asks = self.polling.due(now) or self.asks_after_new() or self.asks_at_once
        self._bursting = not asks
        if asks and self._config.piggyback:
            self._note("send", now, n=entry.number)
            n_ps, timestamp = self._take_poll(now)
            put(Sdp(*self.header, entry.fin, number, n_ps, timestamp, data))
            self._note("poll", now, n_s=sender.vt_s, n_ps=sender.vt_ps)
            return
        put(Sd(*self.header, entry.fin, number, data))
        self._note("send", now, n=entry.number)
        if asks:
            self._send_poll(now, put, affords)

    def asks_after_new(self) -> bool:
        """STP-PL-003, STP-PL-004: whether the SD just sent ends a burst or the stream."""
        return not self.sender.has_new or (self.congestion.low and not self.goes_on())

    def asks_after_burst(self) -> bool:
        """STP-PL-003: a burst also ends when its next SD has outgrown the window."""
        return self._bursting and self.congestion.low and not self.goes_on()

    def goes_on(self) -> bool:
        """Whether another SD could leave at once or as soon as the pacing allows."""
        sender, congestion = self.sender, self.congestion
        entry = sender.awaiting()
        if entry is not None:
            return congestion.room(sender.flight, entry.size)
        if not sender.has_new or not sender.permitted():
            return False
        return congestion.room(sender.flight, sender.next_size())

    def rides_soon(self, now: float) -> bool:
        """STP-PL-005: whether a new SD leaves soon enough to carry the POLL."""
        if not self._config.piggyback or not self._paced or self.sender.awaiting() is not None:
            return False
        return self.pacer.free_at <= now + RIDE_S and self.goes_on()

    def _take_poll(self, now: float) -> tuple[int, int]:
        self.asks_at_once = False
        number = self.sender.take_poll()
        self.rtt.polled(number, now)
        self.polling.polled(now)
        return number & PACKET_MASK, int(now * 1e6) & 0xFFFFFFFF

    def _send_poll(self, now: float, put: Callable[[Packet], None], affords: Affords) -> None:
        if not affords(20):
            self.asks_at_once = False
            self.polling.postpone(now)
            return
        n_ps, timestamp = self._take_poll(now)
        put(Poll(*self.header, 0, self.sender.vt_s & PACKET_MASK, n_ps, timestamp))
        self._note("poll", now, n_s=self.sender.vt_s, n_ps=self.sender.vt_ps)

    def _note(self, name: str, now: float, **values: Any) -> None:
        if self.on_step is not None:
            self.on_step(name, now, values)

    # Reports

    def on_stat(self, stat: Stat, now: float) -> bool:
        """Process a STAT; False when it is discarded."""
        sender = self.sender
        report = sender.on_stat(stat)
        if report is not None:
            n_ps = report.n_ps or 0
            self.rtt.answered(n_ps, now)
            self.polling.answered(now, outstanding=sender.vt_ps > n_ps)
            self.congestion.reported = self.congestion.reported or report.reported
            self._react(report)
        self._note_report("stat", now, stat, report, n_ps=stat.n_ps)
        return report is not None

    def on_ustat(self, ustat: Ustat, now: float) -> None:
        """Process a USTAT."""
        report = self.sender.on_ustat(ustat)
        if report is not None:
            self.polling.reported(now)
            self._react(report)
        self._note_report("ustat", now, ustat, report)

    def _note_report(
        self, name: str, now: float, packet: Stat | Ustat, report: Report | None, **values: int
    ) -> None:
        valid, elements = report is not None, list(packet.elements)
        self._note(
            name, now, n_r=packet.n_r, n_mr=packet.n_mr, **values, elements=elements, valid=valid
        )

    def _react(self, report: Report) -> None:
        congestion = self.congestion
        if report.new_loss:
            congestion.on_loss(report.flight, self.sender.serial)
        elif report.arrived:
            congestion.on_arrived(report.arrived)

    # Time

    def expire(self, now: float) -> bool:
        """Let the POLL timer expire if it is due; False when the peer is to be given up."""
        expiry = self.polling.expire(now)
        if expiry is Expiry.GIVE_UP:
            return False
        if expiry is Expiry.SECOND_SILENCE:
            self.congestion.on_second_silence(self.sender.flight, self.sender.serial)
        if expiry is not Expiry.NOTHING and not self.polling.due(now):
            self.asks_at_once = True
        return True

    def deadline(self) -> float:
        """When something may have to be sent without anything arriving."""
        if self._riding:
            return self.pacer.free_at
        return min(self.polling.deadline(), self.paced_until())

    def paced_until(self) -> float:
        """When pacing permits the next SD, infinity when none waits for it."""
        return self.pacer.free_at if self._paced else math.inf
