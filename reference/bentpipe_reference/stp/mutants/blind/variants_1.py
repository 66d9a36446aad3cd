"""Twenty variations of STP/1 that are right: other choices where stp.txt leaves one."""

from __future__ import annotations

import math
from dataclasses import replace

from bentpipe_reference.common.blind import Variant
from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import EARLY_CREDIT
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.idle import Idle
from bentpipe_reference.stp.outgoing import RIDE_S, Outgoing
from bentpipe_reference.stp.pacing import Bucket, Pacer
from bentpipe_reference.stp.packets import Sdp, Type, Ustat
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import CSN_MASK, PACKET_MASK
from bentpipe_reference.stp.setup import Setup
from bentpipe_reference.stp.states import State

# Sending SDs


class CutsUnevenly(Sender):
    """Two SDs of three hold two thirds of MaxSD; the others, and a BEGIN, are full."""

    def _cut(self):
        return self.max_sd if self.vt_s % 3 == 0 else self.max_sd * 2 // 3

    def next_size(self):
        return min(len(self._unsent), self._cut()) or 1

    def take_new(self, most=None):
        return super().take_new(self._cut() if most is None else most)


class HighestFirst(Sender):
    """Of the SDs that await retransmission the highest goes first."""

    def awaiting(self):
        kept = self._kept
        self._queue = sorted(n for n in set(self._queue) if n in kept and kept[n].queued)
        return kept[self._queue[-1]] if self._queue else None


class FinAlone(Sender):
    """The FIN always travels in an empty SD after the data."""

    def take_new(self, most=None):
        entry = super().take_new(most)
        if entry.fin and entry.data:
            entry.fin, self.fin_number = 0, None
        return entry


class NoEarlySds(Connection):
    """Before the BGAK nothing is sent but the BEGIN with its data."""

    def send_data(self, now):
        if self.state is State.READY:
            super().send_data(now)


class OneByOneBucket(Bucket):
    """Lets the next SD through when the one before has been paid for."""

    def has_room(self, largest):
        return self._filled <= self.rate * 1e-9

    def half_free_at(self, largest):
        return -math.inf if self._filled <= 0 else self._at + self._filled / self.rate


class EvenPacer(Pacer):
    """No bursts: SDs leave one by one at the pacing rate."""

    def __init__(self, config, congestion, rtt):
        super().__init__(config, congestion, rtt)
        self._window = OneByOneBucket()


class Cautious(Congestion):
    """Slow start grows by half of what has arrived, congestion avoidance by one SMSS."""

    def slow_start_growth(self, octets):
        return octets / 2

    def avoidance_growth(self):
        return self.smss


# Polling


class RidesEarly(Outgoing):
    """A POLL rides on the first new SD from 0.6 poll intervals after the POLL before."""

    def asks_with(self, entry, now):
        polling = self.polling
        early = now >= polling._polled_at + 0.6 * polling.poll_interval()
        return early or super().asks_with(entry, now)


class RidesSeldom(Outgoing):
    """A POLL rides only if it is due within 0.01 s, however long pacing holds the next SD."""

    def asks_with(self, entry, now):
        if self.asks_at_once or entry.fin:
            return True
        polling = self.polling
        due = polling.poll_at(stopped=not self.goes_on())
        return polling.may_poll(now) and due <= now + RIDE_S


class RepeatsWithPoll(Outgoing):
    """The SD with the highest number is sent again as an SDP, if a POLL may leave."""

    def _repeat(self, entry, now, put):
        newest = entry.number == self.sender.vt_s - 1
        if not (newest and self.polls and (self.asks_at_once or self.polling.may_poll(now))):
            super()._repeat(entry, now, put)
            return
        self.congestion.first_retransmission = False
        self.sender.retransmit(entry)
        self._sent(entry, now)
        number = entry.number & PACKET_MASK
        put(Sdp(*self.header, entry.fin, number, *self.take_poll(now), entry.data))
        self._note("retransmit", now, n=entry.number)
        self._note("poll", now, n_s=self.sender.vt_s, n_ps=self.sender.vt_ps)


class StopsThenAsks(Polling):
    """A sender that has to stop polls 15 ms after the interval has passed."""

    def poll_at(self, *, stopped):
        due = super().poll_at(stopped=False)
        if stopped and self.is_due:
            return min(due, self._polled_at + self.poll_interval() + 0.015)
        return due


class CoarseClock(Outgoing):
    """Timestamps are whole seconds."""

    def take_poll(self, now):
        number, _, csn = super().take_poll(now)
        return number, int(now) & CSN_MASK, csn


# Reports and credit


class LateStats(Actions):
    """A POLL is answered after 30 ms, with what is true then."""

    def _answer(self, v, n_s, n_ps, timestamp, now):
        receiver = v.incoming
        receiver.raise_highest(receiver.vr_r + (n_s - receiver.vr_r & PACKET_MASK))
        v.due_stats.append((now + 0.03, n_s, n_ps, timestamp))

    def send_stats(self, v, now, until):
        while v.due_stats and v.due_stats[0][0] <= until:
            _, *asked = v.due_stats.pop(0)
            super()._answer(v, *asked, now)

    def send_end(self, v, end, now):
        self.send_stats(v, now, math.inf)
        super().send_end(v, end, now)


class KeepsStats(Connection):
    """Sends the STATs of :class:`LateStats` when their time has come."""

    def __post_init__(self):
        super().__post_init__()
        self.due_stats = []

    def receive(self, packet, now):
        if packet.type in (Type.BEGIN, Type.END):
            self.machine.actions.send_stats(self, now, math.inf)
        return super().receive(packet, now)

    def transmit(self, now):
        if self.state is State.READY:
            self.machine.actions.send_stats(self, now, now)
        return super().transmit(now)

    def next_deadline(self):
        due = self.due_stats[0][0] if self.due_stats else math.inf
        return min(due, super().next_deadline())


class UstatKeepsCredit(Actions):
    """A USTAT repeats the credit last announced; only STATs raise it."""

    def _send_ustat(self, v, run):
        receiver = v.incoming
        receiver._closed = receiver.vr_mr <= receiver.vr_h
        n_r, n_mr = receiver.vr_r & PACKET_MASK, receiver.vr_mr & PACKET_MASK
        first, end = (edge & PACKET_MASK for edge in run)
        self.put(v, Ustat(*v.header, 0, n_r, n_mr, (first, end)))


class LeastCredit(Actions):
    """BEGIN and BGAK permit four SDs; the first report brings the rest."""

    def repeat_begin(self, v, now):
        if v.transmissions == 0:
            v.begin = replace(v.begin, n_mr=EARLY_CREDIT)
        super().repeat_begin(v, now)

    def _learn_peer(self, v, iss, max_sd):
        super()._learn_peer(v, iss, max_sd)
        v.incoming.vr_mr = v.incoming.iss + EARLY_CREDIT


class CreditInBlocks(Receiver):
    """Credit rises by a quarter of the buffer or not at all, unless the window is closed."""

    def credit(self):
        most = super().credit()
        gained = most - self.vr_mr
        closed = self.vr_mr <= self.vr_h
        if gained >= (min(16, self._credit // 2) if closed else self._credit // 4):
            return most
        return self.vr_mr


class DataFirst(Connection):
    """SDs and POLLs that leave at the same moment leave before STATs and USTATs."""

    def transmit(self, now):
        if self.state is State.READY and not self.is_over:
            reports = [p for p in self.outbox if p.type in (Type.STAT, Type.USTAT)]
            if reports:
                self.outbox = [p for p in self.outbox if p.type not in (Type.STAT, Type.USTAT)]
                self.send_data(now)
                self.outbox += reports
        return super().transmit(now)


# Opening and releasing


class LateBgak(Actions):
    """The BGAK leaves 40 ms after the BEGIN, or when anything else arrives."""

    def take_call(self, v, begin, now):
        super().take_call(v, begin, now)
        v.held_until = now + 0.04


class KeepsBgak(Connection):
    """Holds everything back until the BGAK leaves."""

    def __post_init__(self):
        super().__post_init__()
        self.held_until = -math.inf

    def receive(self, packet, now):
        self.held_until = min(self.held_until, now)
        return super().receive(packet, now)

    def transmit(self, now):
        if self.state is State.READY and now < self.held_until:
            return []
        if self.held_until > -math.inf:
            n_r = self.incoming.vr_r & PACKET_MASK
            self.outbox = [replace(p, n_r=n_r) if p.type is Type.BGAK else p for p in self.outbox]
        self.held_until = -math.inf
        return super().transmit(now)

    def next_deadline(self):
        if self.state is State.READY and self.held_until > -math.inf:
            return self.held_until
        return super().next_deadline()


class LateEnd(Actions):
    """The caller releases 60 ms after it has become complete."""

    def release_wait(self, v):
        return super().release_wait(v) if v.was_called else 0.06


class BothWait(Guards):
    """See :class:`LateEnd`."""

    def awaits_release(self, v):
        return True


def cookie_first(packet):
    """The Cookie option before MaxSD."""
    options = ((2, packet.cookie), (1, packet.max_sd.to_bytes(2, "big")))
    return replace(packet, max_sd=None, cookie=None, options=options)


class BgakCookieFirst(Actions):
    """See :func:`cookie_first`."""

    def bgak(self, v, now):
        return cookie_first(super().bgak(v, now))


class BgrejCookieFirst(Idle):
    """See :func:`cookie_first`."""

    def bgrej(self, begin, reason, cookie=None):
        packet = super().bgrej(begin, reason, cookie)
        return packet if cookie is None else cookie_first(packet)


def parts(*kinds):
    """Put several parts in."""

    def configure(setup: Setup) -> Setup:
        for kind in kinds:
            setup = setup.with_part(kind)
        return setup

    return configure


VARIANTS = (
    Variant("stp-v1-late-stats", "answers a POLL after 30 ms, with the state of that moment",
          "STP-DT-017 within 0.1 s; STP-DT-018 as they are when it is sent",
          parts(LateStats, KeepsStats)),
    Variant("stp-v1-coarse-timestamps", "counts timestamps in whole seconds",
          "section 3.5 in units of its own; STP-PL-009", parts(CoarseClock)),
    Variant("stp-v1-late-bgak", "sends the BGAK after 40 ms, or when the next packet arrives",
          "STP-CC-012 within 0.1 s", parts(LateBgak, KeepsBgak)),
    Variant("stp-v1-late-end", "sends the caller's END 60 ms after it is complete",
          "STP-CC-025 within 0.1 s", parts(LateEnd, BothWait)),
    Variant("stp-v1-repeats-as-sdp", "sends the newest SD again as an SDP",
          "STP-PL-006 only the SD with the highest number is sent as an SDP; STP-PL-002",
          parts(RepeatsWithPoll)),
    Variant("stp-v1-highest-first", "retransmits the highest missing SD first",
          "STP-DT-009 names no order among SDs that await retransmission", parts(HighestFirst)),
    Variant("stp-v1-uneven-sds", "cuts the stream into SDs of two sizes",
          "section 6.1 SDs of at most MaxSD octets; boundaries mean nothing; STP-DT-016",
          parts(CutsUnevenly)),
    Variant("stp-v1-fin-alone", "sends the FIN in an empty SD of its own",
          "STP-CC-004; STP-DT-016; section 5.3 an empty SD with FIN; 6.1 boundaries mean nothing", parts(FinAlone)),
    Variant("stp-v1-data-first", "sends SDs and POLLs before the STATs that are due at once",
          "STP-DT-017 within 0.1 s; section 5.4 orders answers before an END only",
          parts(DataFirst)),
    Variant("stp-v1-credit-in-blocks", "raises the credit by a quarter of the buffer at a time",
          "STP-DT-021; STP-DT-024; section 6.5 rises as the user takes data",
          parts(CreditInBlocks)),
    Variant("stp-v1-stops-then-asks", "polls 15 ms after a stop has made a POLL due",
          "STP-PL-003 within 0.02 s", parts(StopsThenAsks)),
    Variant("stp-v1-even-pacing", "sends SDs one by one, without any burst",
          "STP-CG-008 MUST NOT exceed", parts(EvenPacer)),
    Variant("stp-v1-rides-early", "lets a POLL ride on an SD from 0.6 intervals after the last on",
          "STP-PL-002 half a poll interval; STP-PL-001 no later than", parts(RidesEarly)),
    Variant("stp-v1-rides-seldom", "sends a POLL apart unless it is due within 10 ms",
          "STP-PL-005 within 0.01 s", parts(RidesSeldom)),
    Variant("stp-v1-least-credit", "grants four SDs in BEGIN and BGAK, more with the first report",
          "STP-CC-029 at least four", parts(LeastCredit)),
    Variant("stp-v1-ustat-keeps-credit", "raises the credit in STATs only, not in USTATs",
          "section 3.5 N(MR) of a report is VR(MR); STP-DT-020; STP-DT-021",
          parts(UstatKeepsCredit)),
    Variant("stp-v1-short-stats", "cuts lists after three elements",
          "STP-PF-012 MaxSTAT at least 3; section 8: 67, or less",
          lambda setup: setup.configured(max_stat=3)),
    Variant("stp-v1-no-early-sds", "sends no SD between BEGIN and BGAK",
          "STP-CC-002 not more than four; section 5.1 SDs may follow", parts(NoEarlySds)),
    Variant("stp-v1-cautious", "grows cwnd by half of what CG-003 and CG-004 permit",
          "STP-CG-003; STP-CG-004 MUST NOT grow by more than", parts(Cautious)),
    Variant("stp-v1-cookie-first", "puts the Cookie option before MaxSD in BGAK and BGREJ",
          "STP-PF-010; STP-PF-017; section 3.3 options are a sequence",
          parts(BgakCookieFirst, BgrejCookieFirst)),
)  # fmt: skip
