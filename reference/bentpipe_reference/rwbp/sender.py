"""The sending half: no congestion window, losses told by the order of transmission (section 8)."""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.outstanding import START, Outgoing, Outstanding
from bentpipe_reference.rwbp.rtt import RwbpEstimator
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack, Put

FALSE_LOSSES = 3
"""False losses after which the order counts as broken (RWBP-FF-002)."""

TIMEOUT_COPIES = 2
"""Copies that a timeout sends (RWBP-EC-007)."""


class RwbpSender(Sender):
    """The sending direction of a connection with RWBP; sequence numbers are unwrapped.

    It transmits nothing by itself: whoever schedules asks :meth:`can_send` and calls
    :meth:`use_turn`. What of TCP's variables has no meaning here stays as it was.

    Args:
        config: settings of this end.
        put: sends a segment.
        iss: initial send sequence number.
        estimator: the round-trip time.
        edge: SND.EDGE after the peer's SYN.

    Attributes:
        edge: SND.EDGE.
        segments: those that have not arrived.
        transmissions: TX.
        highest_first: F1, F2 and F3.
        threshold: K.
        false_losses: FALSE.
        backoff: BACKOFF.
        at_timeout: TX.TIMEOUT.
        fresh: whether the segment that is being put is transmitted for the first time.
    """

    def __init__(
        self,
        config: EndpointConfig,
        put: Put,
        iss: int,
        estimator: RttEstimator,
        edge: int,
    ) -> None:
        super().__init__(config, put, iss, estimator)
        self.edge = edge
        self.sack_ok = True
        self.segments = Outstanding()
        self.transmissions = 0
        self.highest_first = [0, 0, 0]
        self.threshold = 1
        self.false_losses = 0
        self.backoff = 0
        self.at_timeout = 0
        self.fresh = True

    def take_over(self, plain: Sender) -> None:
        """Send what the user has given to the sender that was there before agreement."""
        self.source = plain.source
        self.fin_queued = plain.fin_queued

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:  # noqa: ARG002
        """Take the outcome of the handshake; the peer's SYN has set the edge."""
        self.smss = smss

    @property
    def right_edge(self) -> int:
        """SND.EDGE."""
        return self.edge

    @property
    def buffered(self) -> int:
        """Octets that wait to be sent or to arrive; those of an endless source do not count."""
        end = self.data_end
        unsent = 0 if end is None else max(0, end - self.snd_nxt)
        return unsent + self.segments.octets

    # -- sending (section 8.2) ----------------------------------------------------------------

    def output(self, now: float) -> None:
        """There may be something new to send; see to the probe timer."""
        self.check_probe(now)

    def can_send(self) -> bool:
        """Whether a segment awaits retransmission, or the next one may be sent."""
        return self.segments.due() is not None or self.next_may_be_sent()

    def next_end(self) -> int | None:
        """END of the next segment, without a FIN that rides on data; None if nothing waits."""
        source = self.source
        if source is None and not self.fin_queued:
            return None
        start, end = self.snd_nxt, 0 if source is None else source.end()
        if end is not None:
            end += self.iss + 1
        if end is None or end - start >= self.smss:
            held = self.segments.octets
            if held and held + self.smss > self.config.send_buffer:
                return None  # an endless source waits for room, as a user does
            return start + self.segment_octets()
        if end > start:
            return end
        return start + 1 if self.fin_queued and end == start else None

    def segment_octets(self) -> int:
        """Octets that a segment is cut to when as many wait."""
        return self.smss

    def next_may_be_sent(self) -> bool:
        """Whether the next segment exists and lies below the edge (section 6.2)."""
        end = self.next_end()
        return end is not None and end <= self.edge

    def next_octets(self) -> int:
        """Octets of data of what :meth:`use_turn` would transmit."""
        due = self.segments.due()
        if due is not None:
            return len(due.payload)
        start, end, data_end = self.snd_nxt, self.next_end(), self.data_end
        assert end is not None
        return min(end, end if data_end is None else data_end) - start

    def use_turn(self, now: float) -> None:
        """Transmit one segment, a retransmission first; only while :meth:`can_send`."""
        segment = self.segments.due()
        if segment is None:
            segment = self._cut()
        else:
            self.counters.retransmissions += 1
            segment.copies -= 1
            if segment.suspect and segment.repaired is None:
                segment.repaired = now
        self._transmit_segment(segment, now)

    def _cut(self) -> Outgoing:
        """Cut the next segment from the stream; its data leaves the source."""
        start, end = self.snd_nxt, self.next_end()
        assert end is not None
        data_end = self.data_end if self.fin_queued else None
        last = data_end is not None and end >= data_end
        payload, source = b"", self.source
        if source is not None and (data_end is None or start < data_end):
            offset = start - self.iss - 1
            payload = source.read(offset, end - start)
            source.release(offset + end - start)
        fin = last and start + len(payload) + 1 <= self.edge
        segment = Outgoing(start, payload, fin)
        segment.first = self.transmissions + 1
        self.segments.add(segment)
        self.snd_nxt = self.snd_max = segment.end
        return segment

    def _transmit_segment(self, segment: Outgoing, now: float) -> None:
        self.transmissions += 1
        segment.latest = self.transmissions
        segment.sent = self.last_send = now
        self.segments.note_transmission(segment)
        if self.rto_deadline is None:
            self.start_rto(now)
        self.persist_deadline = None
        self.probes = 0
        self.fresh = segment.first == segment.latest
        self.put(segment.start, segment.payload, segment.fin, now)

    # -- acknowledgments (section 8.3) --------------------------------------------------------

    def on_ack(self, ack: Ack, now: float) -> None:
        """Process an acknowledgment that RWBP-EC-015 does not discard."""
        self.silent_timeouts = 0
        advanced = self.update_window(ack)
        if not (advanced or ack.blocks or ack.number > self.snd_una):
            return  # it tells nothing, as that of a segment with data usually does
        threshold, before = self.threshold, self.loss_bound()
        arrived = self.arrivals(ack)
        if ack.number > self.snd_una:
            self.snd_una = ack.number
            self.scoreboard.remove_below(ack.number)
        if arrived:
            self.on_arrivals(arrived, now)
        if self.threshold == threshold and self.loss_bound() > before:
            self.take_for_lost(now)
        self.check_probe(now)

    def update_window(self, ack: Ack) -> bool:
        """The edge never retreats (RWBP-WN-002)."""
        edge = ack.number + ack.window
        if edge <= self.edge:
            return False
        self.edge = edge
        return True

    def arrivals(self, ack: Ack) -> list[Outgoing]:
        """S: what the acknowledgment reports of the outstanding segments."""
        found = self.segments.below(ack.number) if ack.number > self.snd_una else []
        for left, right in ack.blocks:
            if self.accept_sack_block(left, right, ack):
                found += self._within(left, right)
        return found

    def _within(self, left: int, right: int) -> list[Outgoing]:
        found: list[Outgoing] = []
        for start, end in self.scoreboard.gaps(left, right):
            segments = self.segments.within(start, end)
            if segments:
                last = segments[-1]
                self.scoreboard.add(segments[0].start, last.end - last.fin)
                found += segments
        return found

    def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
        """Step 4: measure, look for false losses, move the right edge, release, start the timer."""
        highest = max(arrived, key=START)
        if self.may_measure(highest):
            self.estimator.sample(now - highest.sent)
        for segment in arrived:
            if segment.suspect and self.was_false(segment, now):
                self.on_false_loss()
        self.note_firsts(segment.first for segment in arrived)
        self.segments.remove(arrived)
        self.backoff = self.backoff_after_progress()
        self.restart_rto(now)

    def may_measure(self, highest: Outgoing) -> bool:
        """Whether the highest arrived segment yields a sample (RWBP-TM-002)."""
        return highest.first == highest.latest and highest.first > self.at_timeout

    def note_firsts(self, firsts: Iterable[int]) -> None:
        """FTs take their places among F1, F2 and F3."""
        self.highest_first = sorted([*self.highest_first, *firsts], reverse=True)[:3]

    def backoff_after_progress(self) -> int:
        """BACKOFF once a segment has arrived (RWBP-TM-004)."""
        return 0

    # -- losses (sections 8.3 and 8.5) --------------------------------------------------------

    def loss_bound(self) -> int:
        """H."""
        return self.highest_first[0 if self.threshold == 1 else 2]

    def take_for_lost(self, now: float) -> None:  # noqa: ARG002
        """Step 5: what was last transmitted before the right edge was first (RWBP-EC-002)."""
        for segment in self.segments.sent_before(self.loss_bound()):
            segment.suspect = True
            segment.repaired = None
            self.segments.ask_for(segment, 1)

    def was_false(self, segment: Outgoing, now: float) -> bool:
        """Whether a segment that was taken for lost arrived too soon for its repair."""
        if segment.repaired is None:
            return True
        assert isinstance(self.estimator, RwbpEstimator)
        smallest = self.estimator.smallest
        return smallest is not None and now - segment.repaired < smallest / 2

    def on_false_loss(self) -> None:
        """RWBP-FF-002 and RWBP-FF-003."""
        self.false_losses += 1
        if self.false_losses == FALSE_LOSSES:
            self.threshold = 3

    # -- timers (sections 8.4 and 6.3) --------------------------------------------------------

    def timeout_interval(self) -> float:
        """Seconds that the retransmission timer runs."""
        return min(self.estimator.rto * 2.0**self.backoff, self.config.max_rto)

    def start_rto(self, now: float) -> None:
        """Start the timer unless it runs."""
        if self.rto_deadline is None:
            self.rto_deadline = now + self.timeout_interval()

    def restart_rto(self, now: float) -> None:
        """Start the timer anew, or stop it when nothing is outstanding (RWBP-TM-003)."""
        self.rto_deadline = now + self.timeout_interval() if self.segments.count else None

    def on_timeout(self, now: float) -> None:
        """Two copies of the lowest outstanding segment, unless the link keeps one waiting."""
        lowest = self.segments.lowest()
        if self.segments.due() is None and lowest is not None:
            self.counters.timeouts += 1
            self.silent_timeouts += 1
            self.backoff += 1
            self.at_timeout = self.transmissions
            self.segments.ask_for(lowest, self.timeout_copies())
        self.restart_rto(now)

    def timeout_copies(self) -> int:
        """How often the lowest outstanding segment is then sent."""
        return TIMEOUT_COPIES

    def window_is_closed(self) -> bool:
        """The situation of RWBP-WN-008: something waits, nothing is outstanding, no room."""
        if self.segments.count:
            return False
        end = self.next_end()
        return end is not None and end > self.edge

    def check_probe(self, now: float) -> None:
        """Start the probe timer when its situation begins, stop it when that ends."""
        if self.window_is_closed():
            self.plan_probe(now)
        else:
            self.persist_deadline = None
            self.probes = 0

    def on_probe_due(self, now: float) -> None:
        """Send a segment without data below the next number (RWBP-WN-009)."""
        self.probes += 1
        self.silent_timeouts += 1
        self.put(self.snd_nxt - 1, b"", False, now)
        self.persist_deadline = None
        self.plan_probe(now)
