"""Flow control as NDJSON, for validation against the model ``rwbp-flow``.

One JSON object per line, of an upstream proxy, its gateway and the users behind the satellite.
Flows are numbered from 1 in the order of opening; packets are counted, all of the same size.

``begin``    ``protocol`` (``rwbp-flow``), ``profile`` (``rwbp1``), ``flows``, and in packets
             ``receive_buffer`` and ``send_buffer`` of the proxy for a flow, ``ip_queue``,
             ``gateway_queue``, and ``window``, the downstream buffer of a flow
``receive``  ``f``, ``n``: so many packets have come into the receive buffer in all
``move``     ``f``, ``n``: so many were moved to the send buffer
``edge``     ``f``, ``n``: the sender may send so many packets in all
``report``   ``f``, ``n``: so many more have arrived, an acknowledgment says; of which ``awaited``
             awaited retransmission
``lost``     ``f``, ``n``: so many more await retransmission
``serve``    ``f``: a new packet of the flow has its turn
``again``    ``f``: a retransmission has
``control``  a packet without data enters the IP queue, which takes no turn
``pass``     a packet leaves the IP queue for the gateway
``credit``   ``n``: the gateway's limit, in packets passed in all
``leave``    the gateway begins to send a packet over the satellite
``consume``  ``f``, ``n``: the downstream user has taken so many

The model knows no timer, whose copies are a matter for ``rwbp-recovery``: a trace ends before one.
By hand: ``python -m bentpipe_experiments.flow_trace --flows 3 > proxies.ndjson``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.tracing import EventTrace
from bentpipe_reference.rwbp.credit import Credit, CreditFrame
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.rwbp.outstanding import Outgoing
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.path import Delivery
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Flags, Segment

from bentpipe_experiments import zb03
from bentpipe_experiments.chain import Chain, ConnectionHop
from bentpipe_experiments.wire import SourceHop
from bentpipe_experiments.zb03 import MSS, RWBP, Network, World

IP_QUEUE = 10
"""Packets, unless the network says otherwise."""

_FIN, _SYN = int(Flags.FIN), int(Flags.SYN)


class FlowTrace(EventTrace):
    """Collects the events of one network, ``begin`` first.

    Args:
        network: its parameters.
        flows: how many flows there are.
        receive: packets in the proxy's receive buffer of a flow.
    """

    def __init__(self, network: Network, flows: int, receive: int) -> None:
        rtt = zb03.SATELLITE_RTT_S
        super().__init__(
            {
                "event": "begin",
                "protocol": "rwbp-flow",
                "profile": "rwbp1",
                "flows": flows,
                "receive_buffer": receive,
                "send_buffer": zb03.buffer(network.peak, rtt, network.window) // MSS,
                "ip_queue": dict(network.middle).get("ip_queue", IP_QUEUE),
                "gateway_queue": network.queue,
                "window": zb03.buffer(network.peak, rtt, network.receive) // MSS,
            }
        )
        self.over = False
        self._flows: dict[int, int] = {}
        self._senders: dict[int, int] = {}
        self._edges: dict[int, int] = {}

    def note(self, name: str, **values: Any) -> None:
        """Take an event, unless the trace is over."""
        if not self.over:
            self.add({"event": name, **values})

    def number(self, port: int) -> int:
        """The flow with a port of the proxy's."""
        return self._flows.setdefault(port, len(self._flows) + 1)

    def begin(self, sender: RwbpSender, port: int) -> None:
        """A sender speaks RWBP; the peer's SYN has set its edge."""
        self._senders[id(sender)] = self.number(port)
        self.tell_edge(sender)

    def flow(self, sender: RwbpSender) -> int:
        """The flow of a sender, 0 before it has begun."""
        return self._senders.get(id(sender), 0)

    def tell_edge(self, sender: RwbpSender) -> None:
        """Note the edge of a sender if it has moved."""
        flow, edge = self.flow(sender), (sender.edge - sender.iss - 1) // MSS
        if flow and edge > self._edges.get(flow, 0):
            self._edges[flow] = edge
            self.note("edge", f=flow, n=edge)

    def attach(self, chain: Chain) -> None:
        """Follow the relays of a flow."""
        first, middle, _ = chain.hops
        assert isinstance(middle, ConnectionHop)
        flow = self.number(middle.sending.addresses.local_port)
        moved = consumed = 0
        put, take = middle.put, middle.take

        def on_put(data: bytes, now: float) -> None:
            nonlocal moved
            self.note("receive", f=flow, n=(moved + len(data) + first.readable) // MSS)
            moved += len(data)
            self.note("move", f=flow, n=moved // MSS)
            put(data, now)

        def on_take(octets: int, now: float) -> bytes:
            nonlocal consumed
            consumed += octets
            self.note("consume", f=flow, n=consumed // MSS)
            return take(octets, now)

        middle.put, middle.take = on_put, on_take  # type: ignore[method-assign]

    def listening(self, setup: Setup) -> Setup:
        """The same endpoints, which report what they do."""
        parts = setup.parts
        return replace(
            setup,
            parts=replace(
                parts,
                rwbp_sender=_sender(self, parts.rwbp_sender),
                connection=_connection(self, parts.connection),
                queue=_queue(self, parts.queue),
                credit=_credit(self, parts.credit),
            ),
        )


def _connection(trace: FlowTrace, connection: type[Connection]) -> type[Connection]:
    class Traced(connection):  # type: ignore[misc, valid-type]
        """Tells its sender which flow it is, and reports turns."""

        def serve(self, now: float) -> Segment:
            again = self.sender.counters.retransmissions
            segment: Segment = super().serve(now)
            repeated = self.sender.counters.retransmissions > again
            flow = trace.number(self.addresses.local_port)
            trace.note("again" if repeated else "serve", f=flow)
            return segment

        def receive(self, segment: Segment, now: float) -> None:
            super().receive(segment, now)
            sender = self.sender
            if isinstance(sender, RwbpSender) and segment.flags & _SYN:
                trace.begin(sender, self.addresses.local_port)

    return Traced


def _sender(trace: FlowTrace, sender: type[RwbpSender]) -> type[RwbpSender]:
    class Traced(sender):  # type: ignore[misc, valid-type]
        """Reports what acknowledgments tell it."""

        def update_window(self, ack: Ack) -> bool:
            advanced: bool = super().update_window(ack)
            trace.tell_edge(self)
            return advanced

        def on_arrivals(self, arrived: list[Outgoing], now: float) -> None:
            awaited = sum(bool(segment.copies) for segment in arrived)
            trace.note("report", f=trace.flow(self), n=len(arrived), awaited=awaited)
            super().on_arrivals(arrived, now)

        def take_for_lost(self, now: float) -> None:
            before = {id(each) for each in self.segments.below(self.snd_nxt) if each.copies}
            super().take_for_lost(now)
            after = [each for each in self.segments.below(self.snd_nxt) if each.copies]
            found = sum(id(each) not in before for each in after)
            if found:
                trace.note("lost", f=trace.flow(self), n=found)

        def on_timeout(self, now: float) -> None:
            trace.over = True
            super().on_timeout(now)

    return Traced


def _queue(trace: FlowTrace, queue: type[IpQueue]) -> type[IpQueue]:
    class Traced(queue):  # type: ignore[misc, valid-type]
        """Reports what takes no turn, and what leaves."""

        def put(self, packet: Segment) -> None:
            if not packet.payload and not packet.flags & _FIN:
                trace.note("control")
            super().put(packet)

        def next_to_leave(self, now: float) -> Segment | None:
            packet: Segment | None = super().next_to_leave(now)
            if packet is not None:
                trace.note("pass")
            return packet

    return Traced


def _credit(trace: FlowTrace, credit: type[Credit]) -> type[Credit]:
    class Traced(credit):  # type: ignore[misc, valid-type]
        """Reports the gateway's limits."""

        def on_frame(self, frame: CreditFrame, now: float) -> None:
            super().on_frame(frame, now)
            trace.note("credit", n=frame.limit)

    return Traced


def _gateway(trace: FlowTrace, gateway: type[Gateway[Delivery]]) -> type[Gateway[Delivery]]:
    class Traced(gateway):  # type: ignore[misc, valid-type]
        """Reports what leaves it."""

        def _serve(self, now: float) -> None:
            before = self._left
            super()._serve(now)
            for _ in range(self._left - before):
                trace.note("leave")

    return Traced


_RTT_S = 0.02


def record(
    network: Network,
    flows: int = 2,
    *,
    seed: int = 1,
    alter: Callable[[Setup], Setup] | None = None,
    gateway: type[Gateway[Delivery]] = Gateway,
    window: int | None = None,
    events: int = 150,
    limit_s: float = 60.0,
) -> FlowTrace:
    """Let flows without end begin at once, and collect what happens.

    Args:
        network: its parameters; terrestrial TCP is its window.
        flows: how many.
        seed: seed of errors and initial sequence numbers.
        alter: changes the setup of the upstream proxy, as mutants do.
        gateway: the class of the gateway.
        window: what servers take for their window, packets; None for what is offered.
        events: after so many the trace ends.
        limit_s: virtual seconds after which it ends.
    """
    trace = FlowTrace(network, flows, zb03.wire_buffer(network.peak, _RTT_S) // MSS)

    def listening(true: Setup) -> Setup:
        return trace.listening(true if alter is None else alter(true))

    world = World(network, seed, upstream=listening, gateway=_gateway(trace, gateway))
    chains = [world.chain(_RTT_S) for _ in range(flows)]
    for chain in chains:
        trace.attach(chain)
        first = chain.hops[0]
        if window is not None and isinstance(first, SourceHop):
            first.wire = replace(first.wire, window=window * MSS)
        chain.start()
    simulation = world.simulation
    simulation.run_while(lambda: len(trace.events) < events and not trace.over, limit_s)
    del trace.events[events:]
    return trace


NARROW = Network(
    protocol=RWBP, rate=600e3, peak=100e3, ber=3e-5, queue=6, wired_tcp=False,
    middle=(("ip_queue", 2),),
)  # fmt: skip
"""A chain in which every limit is met soon."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a trace of :data:`NARROW` to the standard output; 0, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m bentpipe_experiments.flow_trace",
        description="Record what an upstream proxy, its gateway and the users do.",
    )
    parser.add_argument("--flows", type=int, choices=range(1, 4), default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    sys.stdout.write(record(NARROW, given.flows, seed=given.seed).lines())
    return 0


if __name__ == "__main__":
    sys.exit(main())
