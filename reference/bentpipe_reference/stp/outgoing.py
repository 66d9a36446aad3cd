"""When SDs and POLLs leave: window, pacing and timers (STP/1 section 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bentpipe_reference.stp.config import LEAST_MAX_SD, StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.pacing import Pacer
from bentpipe_reference.stp.packets import Packet, Poll, Sd, Sdp, Stat, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.rtt import RoundTrip
from bentpipe_reference.stp.sender import Report, Sender, SentSd
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_MASK, TAG_MASK, wrap_poll

RIDE_S = 0.01
"""A POLL that is due this soon after a new SD rides on it (STP-PL-005)."""

Note = Callable[[str, float, dict[str, Any]], None]
"""Told of a step of the sender: its name, the time in seconds, what describes it."""


class Outgoing:
    """The sending side of one direction, with all that decides when it sends.

    Attributes:
        ports: the STP ports of the packets, ours first.
        csn: our CSN.
        sender, congestion, rtt, pacer, polling: the parts.
        on_step: called with every step when set.
        polls: whether POLLs may leave: the connection is open (STP-CC-042).
        asks_at_once: a POLL is due now, regardless of Timer_POLL.
    """

    def __init__(
        self, config: StpConfig, ports: tuple[int, int], csn: int, rtt: RoundTrip,
        congestion: Congestion, sender: Sender, pacer: Pacer, polling: Polling,
    ) -> None:  # fmt: skip
        self.ports, self.csn = ports, csn
        self.rtt, self.congestion, self.sender = rtt, congestion, sender
        self.pacer, self.polling = pacer, polling
        self.on_step: Note | None = None
        self.polls = self.asks_at_once = False
        self._config = config
        self._paced = False  # an SD waits for the pacing
        self._stopped = False  # no SD can follow now (STP-PL-003)

    @property
    def header(self) -> tuple[int, int, int]:
        """Ports and tag of every packet."""
        return (*self.ports, self.csn & TAG_MASK)

    def restart(self, csn: int, iss: int) -> None:
        """STP-CC-037: the call begins anew, with these numbers."""
        self.csn = csn
        self.sender.restart(iss)

    def learn(self, max_sd: int | None) -> None:
        """The peer's MaxSD option, None when it announced none (STP-PF-009)."""
        sender = self.sender
        if max_sd is not None:
            sender.max_sd = max(LEAST_MAX_SD, min(max_sd, self._config.own_max_sd))
        self.congestion.learn(sender.max_sd)

    def open(self, now: float) -> None:
        """The connection is open: from now on POLLs may leave, and one is due (STP-CC-042)."""
        self.polls = True
        self.polling.heard(now)
        self.asks_at_once = self.sender.unacknowledged

    def learn_credit(self, n_mr: int, n_r: int) -> None:
        """Credit and acknowledgment of a BGAK, which are possible (STP-SEC-005)."""
        sender = self.sender
        number = sender.vt_a + (n_r - sender.vt_a & PACKET_MASK)
        sender.grant(n_mr, number)
        sender.acknowledge(number, Report(None, sender.flight))

    # Sending

    def transmit(self, now: float, put: Callable[[Packet], None]) -> None:
        """Send what may leave now: retransmissions, new SDs, a POLL."""
        sender = self.sender
        self._paced = False
        self.pacer.set_rates(now)
        while (entry := sender.awaiting()) is not None:
            if not self._may_repeat(entry):
                break
            self._repeat(entry, now, put)
        else:
            while sender.has_new and self._may_send_new():
                self._send_new(now, put)
        if not self.polls:
            return
        self._settle(now)
        self._stopped = not self.goes_on()
        if self.asks_at_once or self.polling.poll_at(stopped=self._stopped) <= now:
            self._send_poll(now, put)

    def _settle(self, now: float) -> None:
        """Stop the timers that nothing needs, and start Timer_SILENCE when data awaits credit."""
        polling = self.polling
        if self.sender.unacknowledged:
            return
        polling.stop()
        if self.is_closed():
            polling.start_silence(now)
        elif not polling.awaits_answer:
            polling.stop_silence()

    def is_closed(self) -> bool:
        """STP-DT-025: all is acknowledged, and data awaits credit."""
        sender = self.sender
        return not sender.unacknowledged and sender.has_new and not sender.permitted()

    def _may_repeat(self, entry: SentSd) -> bool:
        congestion = self.congestion
        room = congestion.first_retransmission or congestion.room(self.sender.flight, entry.size)
        return room and self._may_leave()

    def _may_send_new(self) -> bool:
        sender = self.sender
        room = sender.permitted() and self.congestion.room(sender.flight, sender.next_size())
        return room and self._may_leave()

    def _may_leave(self) -> bool:
        """Whether pacing permits an SD."""
        self._paced = not self.pacer.ready()
        return not self._paced

    def _repeat(self, entry: SentSd, now: float, put: Callable[[Packet], None]) -> None:
        self.congestion.first_retransmission = False
        self.sender.retransmit(entry)
        self._sent(entry, now)
        put(Sd(*self.header, entry.fin, entry.number & PACKET_MASK, entry.data))
        self._note("retransmit", now, n=entry.number)

    def _send_new(self, now: float, put: Callable[[Packet], None]) -> None:
        sender = self.sender
        entry = sender.take_new()
        self._sent(entry, now)
        self._note("send", now, n=entry.number)
        number = entry.number & PACKET_MASK
        asks = self.polls and self.asks_with(entry, now)
        if asks and self._config.piggyback:
            poll = self.take_poll(now)
            put(Sdp(*self.header, entry.fin, number, *poll, entry.data))
            self._note("poll", now, n_s=sender.vt_s, n_ps=sender.vt_ps)
        else:
            put(Sd(*self.header, entry.fin, number, entry.data))
            if asks:
                self._send_poll(now, put)

    def _sent(self, entry: SentSd, now: float) -> None:
        self.pacer.sent(len(entry.data))
        self.polling.sent(now)

    def asks_with(self, entry: SentSd, now: float) -> bool:
        """Whether a POLL goes with the new SD that leaves now.

        So it is if the stream ends with it (STP-PL-004), if the POLL is due (STP-PL-001,
        STP-PL-003), or if it will be soon, or before the next SD can leave (STP-PL-005).
        """
        if self.asks_at_once or entry.fin:
            return True
        polling = self.polling
        if not polling.may_poll(now):
            return False
        return polling.poll_at(stopped=not self.goes_on()) <= max(now + RIDE_S, self.pacer.free_at)

    def goes_on(self) -> bool:
        """STP-PL-003: whether another SD can follow as soon as the pacing permits."""
        sender, congestion = self.sender, self.congestion
        entry = sender.awaiting()
        if entry is not None:
            return congestion.room(sender.flight, entry.size)
        if not sender.has_new or not sender.permitted():
            return False
        return congestion.room(sender.flight, sender.next_size())

    def take_poll(self, now: float) -> tuple[int, int, int]:
        """N(PS), timestamp and CSN of the POLL that leaves now."""
        self.asks_at_once = False
        number = self.sender.take_poll()
        self.rtt.polled(number, now)
        self.polling.polled(now)
        return wrap_poll(number), int(now * 1e6) & CSN_MASK, self.csn

    def _send_poll(self, now: float, put: Callable[[Packet], None]) -> None:
        put(Poll(*self.header, 0, self.sender.vt_s & PACKET_MASK, *self.take_poll(now)))
        self._note("poll", now, n_s=self.sender.vt_s, n_ps=self.sender.vt_ps)

    def _note(self, name: str, now: float, **values: Any) -> None:
        if self.on_step is not None:
            self.on_step(name, now, values)

    # Reports

    def on_stat(self, stat: Stat, now: float) -> None:
        """Process a valid STAT."""
        closed = self.is_closed()
        report = self.sender.on_stat(stat)
        assert report is not None
        if report.n_ps is not None:
            self.rtt.answered(report.n_ps, now)
        self._react(report, now, closed=closed)
        self._note_report(stat, now)

    def on_ustat(self, ustat: Ustat, now: float) -> None:
        """Process a valid USTAT."""
        closed = self.is_closed()
        report = self.sender.on_ustat(ustat)
        assert report is not None
        self._react(report, now, closed=closed)
        self._note_report(ustat, now)

    def discard(self, packet: Stat | Ustat, now: float) -> None:
        """STP-DT-007, STP-DT-023: the trace tells of the report, and nothing else happens."""
        self._note_report(packet, now, valid=False)

    def _note_report(self, packet: Stat | Ustat, now: float, *, valid: bool = True) -> None:
        if self.on_step is None:
            return
        asked = {"n_ps": packet.n_ps} if isinstance(packet, Stat) else {}
        name, elements = "stat" if asked else "ustat", list(packet.elements)
        self._note(
            name, now, n_r=packet.n_r, n_mr=packet.n_mr, **asked, elements=elements, valid=valid
        )

    def _react(self, report: Report, now: float, *, closed: bool) -> None:
        congestion = self.congestion
        self.polling.reported(now, opens=not (closed and self.is_closed()))
        if report.new_loss:
            congestion.on_loss(self.sender.serial)
        elif congestion.is_used(report.flight):
            congestion.on_arrived(report.arrived)

    # Time

    def expire(self, now: float) -> bool:
        """Let the timers expire that are due; False when the peer is to be given up."""
        polling = self.polling
        if polling.is_hopeless(now):
            return False
        if polling.expire(now):
            self.asks_at_once = True
            if polling.silences == 2 and self.sender.unacknowledged:
                self.congestion.on_second_silence(self.sender.serial)
        return True

    def deadline(self) -> float:
        """When something may have to be sent without anything arriving."""
        polling = self.polling
        due = polling.poll_at(stopped=self._stopped)
        return min(polling.deadline(), due, self.paced_until())

    def paced_until(self) -> float:
        """When pacing permits the next SD, infinity when none waits for it."""
        return self.pacer.free_at if self._paced else math.inf
