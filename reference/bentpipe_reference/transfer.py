"""A bulk transfer between two endpoints over a link profile, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bentpipe_reference.link.profile import Direction, LinkProfile
from bentpipe_reference.link.virtual import LinkCounters, VirtualLink
from bentpipe_reference.sim import Handle, Simulation
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Addresses, Endpoint
from bentpipe_reference.tcp.sending.variables import Event, EventSink, SenderCounters
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.stream import PatternSource, pattern
from bentpipe_reference.wire.segment import Segment, address_number

_SENDER_ADDRESS = address_number("10.77.0.2")
_RECEIVER_ADDRESS = address_number("10.78.0.2")


@dataclass(frozen=True, slots=True)
class TracePoint:
    """One data segment leaving the sender, or one acknowledgment arriving there.

    Attributes:
        time: seconds since the start.
        kind: ``send``, ``retransmit`` or ``ack``.
        offset: stream offset: of the segment's first octet, or the one acknowledged up to.
        octets: data octets of the segment, newly acknowledged ones of an acknowledgment.
    """

    time: float
    kind: str
    offset: int
    octets: int


@dataclass(slots=True)
class TransferResult:
    """What a transfer came to.

    Attributes:
        octets: octets the receiving application read.
        intact: whether each of them was right and none missing.
        seconds: from the SYN to the last octet read.
        sender: the sender's totals.
        forward: counters of the link that carried the data.
        return_: counters of the link that carried the acknowledgments.
        failure: why the transfer did not complete, None when it did.
        trace: the time-sequence trace, empty unless asked for.
    """

    octets: int
    intact: bool
    seconds: float
    sender: SenderCounters
    forward: LinkCounters
    return_: LinkCounters
    failure: str | None = None
    trace: list[TracePoint] = field(default_factory=list)

    @property
    def throughput_bit_s(self) -> float:
        """Application-level throughput, bits per second."""
        return 8 * self.octets / self.seconds if self.seconds else 0.0


class EndpointDriver:
    """Runs one endpoint on a simulation: timers, and segments onto a link."""

    def __init__(
        self,
        simulation: Simulation,
        endpoint: Endpoint,
        send: Callable[[Segment, int], None],
        serve: Callable[[Endpoint, float], None],
    ) -> None:
        self.endpoint = endpoint
        self._simulation = simulation
        self._send = send
        self._serve = serve
        self._alarm: Handle | None = None

    def receive(self, segment: Segment) -> None:
        """A segment arrived."""
        self.endpoint.receive(segment, self._simulation.now)
        self.settle()

    def settle(self) -> None:
        """Serve the application, send what is due and set the alarm."""
        now = self._simulation.now
        endpoint = self.endpoint
        self._serve(endpoint, now)
        for segment in endpoint.transmit(now):
            self._send(segment, segment.packet_octets)
        deadline = endpoint.next_deadline()
        alarm = self._alarm
        if deadline is None:
            return
        # A deadline that only moved back is not worth a new alarm: the old one finds it out.
        if alarm is None or alarm.action is None or deadline < alarm.time:
            if alarm is not None:
                alarm.cancel()
            self._alarm = self._simulation.call_at(deadline, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.endpoint.advance(self._simulation.now)
        self.settle()


def transfer(
    profile: LinkProfile,
    config: EndpointConfig,
    octets: int,
    *,
    seed: int = 0,
    receiver_config: EndpointConfig | None = None,
    drops: Iterable[int] = (),
    return_drops: Iterable[int] = (),
    limit_s: float = 3600.0,
    trace: bool = False,
    on_event: EventSink | None = None,
) -> TransferResult:
    """Send ``octets`` of the test pattern through ``profile`` and close.

    Args:
        profile: the link; data travels in its forward direction.
        config: settings of the sending endpoint.
        octets: length of the stream.
        seed: seed of the links' faults and the initial sequence numbers.
        receiver_config: settings of the receiving endpoint, ``config`` when omitted.
        drops: numbers of the forward packets to drop, the SYN being 1.
        return_drops: the same for the return direction, the SYN-ACK being 1.
        limit_s: virtual seconds after which the transfer is given up.
        trace: collect the time-sequence trace.
        on_event: called with the sender's protocol events.
    """
    run = _Transfer(profile, config, receiver_config or config, octets, seed, on_event)
    run.forward.drops.update(drops)
    run.return_.drops.update(return_drops)
    if trace:
        run.start_trace()
    return run.run(limit_s)


class _Transfer:
    def __init__(
        self,
        profile: LinkProfile,
        config: EndpointConfig,
        receiver_config: EndpointConfig,
        octets: int,
        seed: int,
        on_event: EventSink | None,
    ) -> None:
        numbers = random.Random(seed)
        self._octets = octets
        self._on_event = on_event
        self._simulation = simulation = Simulation()
        ends = Addresses(_SENDER_ADDRESS, 40000, _RECEIVER_ADDRESS, 9)
        other = Addresses(_RECEIVER_ADDRESS, 9, _SENDER_ADDRESS, 40000)
        make = config.endpoint_class or Endpoint
        answer = receiver_config.endpoint_class or Endpoint
        sending = make(config, ends, numbers.getrandbits(32), on_event=on_event)
        receiving = answer(receiver_config, other, numbers.getrandbits(32))
        self.forward = self._link(profile.forward, self._arrive, numbers)
        self.return_ = self._link(profile.return_, self._answer, numbers)
        self._sender = EndpointDriver(simulation, sending, self.forward.send, self._feed)
        self._receiver = EndpointDriver(simulation, receiving, self.return_.send, self._drain)
        self._read = 0
        self._intact = True
        self._finished: float | None = None
        self._trace: list[TracePoint] = []

    def _link(
        self, direction: Direction, deliver: Callable[[Segment], None], numbers: random.Random
    ) -> VirtualLink[Segment]:
        return VirtualLink(self._simulation, direction, deliver, numbers.getrandbits(32))

    def start_trace(self) -> None:
        """Collect the trace from the sender's events."""
        self._sender.endpoint.sender.on_event = self._record

    def _record(self, event: Event) -> None:
        values = event.values
        if event.name in ("send", "retransmit"):
            place, octets = values["seq"], values["octets"]
        elif event.name == "ack":
            place, octets = values["ack"], values["acked"]
        else:
            place = octets = None
        if isinstance(place, int) and isinstance(octets, int):
            self._trace.append(TracePoint(event.time, event.name, place - 1, octets))
        if self._on_event is not None:
            self._on_event(event)

    def _feed(self, endpoint: Endpoint, now: float) -> None:
        if endpoint.sender.source is None and endpoint.state is State.ESTABLISHED:
            endpoint.attach(PatternSource(self._octets), now)
            endpoint.close(now)

    def _drain(self, endpoint: Endpoint, now: float) -> None:
        data = endpoint.read()
        if data:
            self._intact = self._intact and data == pattern(self._read, len(data))
            self._read += len(data)
        if self._read >= self._octets and self._finished is None:
            self._finished = now
        if endpoint.peer_has_closed:
            endpoint.close(now)

    def _arrive(self, segment: Segment) -> None:
        receiving = self._receiver.endpoint
        if receiving.state is State.CLOSED and receiving.receiver is None and segment.flags & 2:
            receiving.accept(segment, self._simulation.now)
            self._receiver.settle()
        else:
            self._receiver.receive(segment)

    def _answer(self, segment: Segment) -> None:
        self._sender.receive(segment)

    def run(self, limit_s: float) -> TransferResult:
        """Run until the stream is through, or until the limit."""
        simulation = self._simulation
        sending = self._sender.endpoint
        sending.open(0.0)
        self._sender.settle()
        while self._finished is None and sending.failure is None:
            following = simulation.next_time()
            if following is None or following > limit_s:
                break
            simulation.step()
        failure = sending.failure or self._receiver.endpoint.failure
        if self._finished is None and failure is None:
            failure = f"not finished within {limit_s:g} s"
        return TransferResult(
            octets=self._read,
            intact=self._intact and self._read == self._octets,
            seconds=simulation.now if self._finished is None else self._finished,
            sender=sending.sender.counters,
            forward=self.forward.counters,
            return_=self.return_.counters,
            failure=None if self._finished is not None else failure,
            trace=self._trace,
        )
