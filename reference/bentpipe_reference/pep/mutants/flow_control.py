"""Mutants of flow control and of recovery on each side (PEP-FB, PEP-LR, PEP-PC)."""

from __future__ import annotations

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver, tcp
from bentpipe_reference.pep.mutants import mutant, mutant_setting
from bentpipe_reference.pep.passing import Report
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender as Sender
from bentpipe_reference.tcp.sender import Sender as AnySender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment

IDLE_S = 600.0


@mutant("pep-buffers-everything", "free_room", breaks="PEP-FB-001")
def buffers_everything(self: RelayReceiver) -> int:
    """What waits in the box takes no room."""
    return min(self.config.receive_buffer, 0xFFFF << self.window_shift)


@mutant("pep-promises-too-much", "window_field", breaks="PEP-FB-002", setting="single")
def promises_too_much(self: RelayReceiver) -> int:
    """The window is always as large as it was at first."""
    RelayReceiver.window_field(self)
    return min(self.config.receive_buffer >> self.window_shift, 0xFFFF)


@mutant("pep-shrinks-its-window", "window_field", breaks="PEP-FB-003")
def shrinks(self: RelayReceiver) -> int:
    """While octets wait in the box the window is half of what was permitted."""
    field = RelayReceiver.window_field(self)
    return field // 2 if self.buffer.unread > 20_000 else field


@mutant("pep-closed-stays-closed", "update_edge", breaks="PEP-FB-004")
def closed_stays_closed(self: RelayReceiver) -> None:
    """A window that was closed stays so."""
    if self.edge - self.rcv_nxt > 0 or self.rcv_nxt == self.irs + 1:
        Receiver.update_edge(self)


@mutant("pep-probes-unheard", "_receive_unacceptable", breaks="PEP-FB-005")
def probes_unheard(
    self: Endpoint, segment: Segment, seq: int, receiver: Receiver, now: float
) -> None:
    """A probe of the closed window is not answered."""
    if not segment.payload or receiver.edge > receiver.rcv_nxt:
        Endpoint._receive_unacceptable(self, segment, seq, receiver, now)


@mutant("pep-does-not-probe", "plan_probe", breaks="PEP-FB-006")
def does_not_probe(self: Sender, now: float) -> None:
    """A closed window is not probed."""
    self.persist_deadline = None


@mutant("pep-tires-of-probing", "advance", breaks="PEP-FB-006")
def tires_of_probing(self: Endpoint, now: float) -> None:
    """An end whose window stays closed is given up."""
    Endpoint.advance(self, now)
    if self.sender.probes > 5:
        self.abort("its window stays closed", now)


@mutant("pep-silly-windows", "update_edge", breaks="PEP-FB-009")
def silly_windows(self: RelayReceiver) -> None:
    """The window opens by a few octets."""
    gain = self._gain()
    if gain > 0:
        self.edge += min(gain, 64) if self.edge - self.rcv_nxt < 500 else gain


@mutant("pep-outlet-unused", "update_window", breaks="PEP-FB-010")
def outlet_unused(self: Sender, ack: Ack) -> bool:
    """A window that opens without new acknowledgments is not noticed."""
    if ack.number <= self.snd_una and self.snd_wnd == 0:
        return False
    return AnySender.update_window(self, ack)


mutant_setting(
    "pep-no-window-scale", "Windows are not scaled, though the buffer is large.",
    lambda setup: setup.endpoints(window_scale=False), breaks="PEP-FB-011",
)  # fmt: skip


class _Repeats(Endpoint):
    """Octets that have been acknowledged are sent again."""

    sent: Segment | None = None
    arrived = 0

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        super().receive(segment, now)
        self.arrived += 1
        if self.sent is not None and self.arrived % 20 == 0 and self.state is State.ESTABLISHED:
            self._outbox.append(self.sent)

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`Endpoint`."""
        segments = super().transmit(now)
        for segment in segments:
            if segment.payload and self.sent is None:
                self.sent = segment
        return segments


mutant("pep-repeats-what-is-acknowledged", breaks="PEP-LR-002")(_Repeats)

mutant_setting(
    "pep-acknowledges-late", "Acknowledgments are delayed by almost a second.",
    lambda setup: setup.endpoints(delayed_ack_timeout=0.9, ack_every=1000), breaks="PEP-LR-006",
)  # fmt: skip


@mutant("pep-acknowledges-twice", "transmit", breaks="PEP-LR-007")
def acknowledges_twice(self: Endpoint, now: float) -> list[Segment]:
    """Each acknowledgment is sent twice."""
    segments = Endpoint.transmit(self, now)
    pure = [it for it in segments if it.flags == int(Flags.ACK) and not it.payload]
    return [*segments, *pure]


mutant_setting(
    "pep-gives-up-soon", "A connection is given up after three timeouts.",
    lambda setup: setup.endpoints(max_retransmissions=3), breaks="PEP-PC-001",
)  # fmt: skip


@mutant("pep-stops-repeating", "on_timeout", breaks="PEP-PC-002")
def stops_repeating(self: Sender, now: float) -> None:
    """What is lost four times is not sent again."""
    AnySender.on_timeout(self, now)
    if self.consecutive_timeouts > 3:
        self.rto_deadline = None


@mutant("pep-cannot-wait", "_take_ack", breaks="PEP-PC-003")
def cannot_wait(self: Endpoint, segment: Segment, seq: int, now: float) -> bool:
    """A connection is ended when the round trip takes a second and a half."""
    found = Endpoint._take_ack(self, segment, seq, now)
    sent = segment.timestamps
    if sent is not None and self.handshake.timestamps_ok:
        age = (self._timestamp(now) - sent[1] & 0xFFFFFFFF) / 1000
        if 1.4 < age < 100 and self.sender.snd_una < self.sender.snd_max:
            self.abort("it takes too long", now)
    return found


mutant_setting(
    "pep-sends-into-a-pool", "What waits for the link takes no room.",
    lambda setup: setup.endpoints(send_buffer=1 << 24), breaks="PEP-PC-004",
)  # fmt: skip


@mutant("pep-keeps-its-size", "fit", breaks="PEP-PC-005")
def keeps_its_size(self: Endpoint, mtu: int, now: float) -> None:
    """Packets that are too big stay so."""


@mutant("pep-passes-messages-on", "_receive_report", breaks="PEP-PC-007")
def passes_messages_on(self: Box, port: int, report: Report, packet: bytes, now: float) -> None:
    """A message about a packet of the box is passed on as well."""
    Box._receive_report(self, port, report, packet, now)
    self.forward(port, packet)


@mutant("pep-one-size-for-both", "take_report", breaks="PEP-PC-007")
def one_size_for_both(self: Box, endpoint: Endpoint, report: Report, now: float) -> None:
    """A message about packets to one end makes those to the other smaller, too."""
    Box.take_report(self, endpoint, report, now)
    if report.mtu is not None:
        for relay in self.relays:
            for each in relay.endpoints:
                tcp(each).fit(report.mtu, now)


class _Idle(Endpoint):
    """A connection that is quiet for ten minutes is ended."""

    heard = 0.0

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        self.heard = now
        super().receive(segment, now)

    def next_deadline(self) -> float | None:
        """See :class:`Endpoint`."""
        due = super().next_deadline()
        if self.state is not State.ESTABLISHED:
            return due
        return self.heard + IDLE_S if due is None else min(due, self.heard + IDLE_S)

    def advance(self, now: float) -> None:
        """See :class:`Endpoint`."""
        super().advance(now)
        if self.state is State.ESTABLISHED and now >= self.heard + IDLE_S:
            self.abort("it is quiet", now)


mutant("pep-ends-the-quiet", breaks="PEP-PC-008")(_Idle)


@mutant("pep-stalls-with-one", "settle", breaks="PEP-FI-001")
def stalls_with_one(self: Box, relay: Relay, now: float) -> None:
    """While one receiver does not read nobody is served."""
    for other in self.relays:
        near = other.near
        if near is None or other is relay:
            continue
        for source, sink in ((near, other.far), (other.far, near)):
            if source.readable and not sink.write_room and tcp(sink).sender.snd_wnd == 0:
                return
    Box.settle(self, relay, now)
