"""One connection through a box as NDJSON, for validation against the model ``split-connection``.

One JSON object per line, of what the box hears and says on its two sides. End 1 is the one at the
outer port, end 2 the one over the satellite; stream ``d`` comes from end ``d``. Octets are counted
from the beginning of their stream, the FIN not.

``begin``    ``protocol`` (``split-connection``), ``profile`` (``pep1``), ``buffer``: octets that
             the box holds of a stream
``permit``   ``d``, ``n``: the box has told the sender that it may send so many octets in all
``take``     ``d``, ``n``: so many have arrived in order, and will be or were acknowledged
``room``     ``d``, ``n``: the receiver has told the box the same
``deliver``  ``d``, ``n``: so many were sent on to the receiver
``probe``    ``d``, ``n``: octet ``n`` was sent on into a closed window
``confirm``  ``d``, ``n``: the receiver has acknowledged so many
``fin``      ``d``, ``n``: the sender's FIN is here, behind so many octets
``end``      ``d``, ``n``: a FIN was sent on, behind so many octets
``ackfin``   ``d``: the sender's FIN was acknowledged
``reset``    ``e``: an end has reset its connection
``fails``    ``e``: the box has given the side of an end up
``told``     ``e``: a RST was sent to an end
``over``     the box has forgotten the connection
``quiet``    nothing happens any more

The model knows no opening: a trace begins when both sides are open.
By hand: ``python -m bentpipe_experiments.box_trace --play both-end > box.ndjson``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.common.tracing import EventTrace
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import BoxConfig
from bentpipe_reference.pep.endpoint import End, Endpoint, RelayReceiver
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.segment import Flags, Segment

from bentpipe_experiments import links
from bentpipe_experiments.boxes import Network

_FIN, _SYN, _RST, _ACK = int(Flags.FIN), int(Flags.SYN), int(Flags.RST), int(Flags.ACK)
_MASK = 0xFFFFFFFF


class _Side:
    """What is known of one side of a box, by counts from the beginning of each stream."""

    def __init__(self, endpoint: Endpoint, end: int) -> None:
        receiver = endpoint.receiver
        assert isinstance(receiver, RelayReceiver)
        self.endpoint = endpoint
        self.receiver = receiver
        self.end = end
        self.open = True
        self.permitted = self.taken = self.room = self.delivered = self.confirmed = 0
        self.fin_taken = self.fin_sent = self.fin_acknowledged = False

    @property
    def arrived(self) -> int:
        """Octets that have arrived in order."""
        return self.receiver.buffer.rcv_nxt - self.receiver.irs - 1

    @property
    def acknowledged(self) -> int:
        """Octets that the peer has acknowledged."""
        sender = self.endpoint.sender
        return sender.snd_una - sender.iss - 1 - sender.fin_acknowledged

    @property
    def edge(self) -> int:
        """Octets that the peer permits."""
        sender = self.endpoint.sender
        return sender.right_edge - sender.iss - 1

    def sent(self, segment: Segment) -> int:
        """Octets up to the end of a segment of ours."""
        return ((segment.seq - self.endpoint.sender.iss - 1) & _MASK) + len(segment.payload)

    def acknowledging(self, segment: Segment) -> int:
        """Octets that a segment of ours acknowledges, a FIN counted."""
        return (segment.ack - self.receiver.irs - 1) & _MASK


class BoxTrace(EventTrace):
    """Collects the events of the first connection of one box, ``begin`` first.

    Args:
        buffer: octets that the box holds of one stream.
    """

    def __init__(self, buffer: int) -> None:
        begin = {"event": "begin", "protocol": "split-connection", "profile": "pep1"}
        super().__init__({**begin, "buffer": buffer})
        self._relay: Relay | None = None
        self._sides: dict[int, _Side] = {}
        self._reset_by: int | None = None

    def note(self, name: str, **values: int) -> None:
        """Take an event."""
        self.add({"event": name, **values})

    def listening(self, box: type[Box]) -> type[Box]:
        """The same box, which reports what it does."""
        trace = self

        class Traced(box):  # type: ignore[misc, valid-type]
            """Reports its events."""

            def receive_in(self, relay: Relay, port: int, segment: Segment, now: float) -> None:
                trace.hear(port, segment)
                super().receive_in(relay, port, segment, now)

            def settle(self, relay: Relay, now: float) -> None:
                trace.observe(relay)
                super().settle(relay, now)

            def collect(self, relay: Relay, port: int, endpoint: End, now: float) -> None:
                assert isinstance(endpoint, Endpoint)
                for segment in endpoint.transmit(now):
                    trace.say(relay, port, segment)
                    self.send(port, segment, relay.classes[1 - port])

            def _forget(self, relay: Relay, now: float) -> None:
                if relay is trace._relay:
                    trace.observe(relay)
                    trace.note("over")
                super()._forget(relay, now)

        return Traced

    def hear(self, port: int, segment: Segment) -> None:
        """A segment has arrived at a port."""
        self._reset_by = port if segment.flags & _RST else None

    def observe(self, relay: Relay) -> None:
        """Note what has changed by what has arrived, or by time."""
        if self._relay is None and not self._opened(relay):
            return
        if relay is self._relay:
            for port in (0, 1):
                self._observe(port)

    def _opened(self, relay: Relay) -> bool:
        ends = [each for each in map(relay.endpoint, (0, 1)) if isinstance(each, Endpoint)]
        if len(ends) < 2 or any(
            each.is_opening or each.failure or each.receiver is None for each in ends
        ):
            return False
        self._relay = relay
        for port, each in enumerate(ends):
            side = self._sides[port] = _Side(each, port + 1)
            self._permit(side, side.receiver.edge - side.receiver.irs - 1)
        return True

    def _observe(self, port: int) -> None:
        side, other = self._sides[port], 3 - self._sides[port].end
        endpoint = side.endpoint
        if side.edge != side.room:
            side.room = side.edge
            self.note("room", d=other, n=side.room)
        if side.acknowledged > side.confirmed:
            side.confirmed = side.acknowledged
            if side.confirmed > side.delivered:  # the octet of a probe has found room
                side.delivered = side.confirmed
                self.note("deliver", d=other, n=side.delivered)
            self.note("confirm", d=other, n=side.confirmed)
        if side.arrived > side.taken:
            side.taken = side.arrived
            self.note("take", d=side.end, n=side.taken)
        if endpoint.stream_has_ended and not side.fin_taken:
            side.fin_taken = True
            self.note("fin", d=side.end, n=side.taken)
        if endpoint.failure is not None and side.open:
            side.open = False
            self.note("reset" if self._reset_by == port else "fails", e=side.end)

    def say(self, relay: Relay, port: int, segment: Segment) -> None:
        """A segment leaves at a port."""
        if relay is not self._relay:
            return
        side = self._sides[port]
        if segment.flags & _RST:
            side.open = False
            self.note("told", e=side.end)
            return
        if segment.flags & _ACK and not segment.flags & _SYN:
            self._acknowledge(side, segment)
        self._deliver(side, segment)

    def _acknowledge(self, side: _Side, segment: Segment) -> None:
        octets = side.acknowledging(segment)
        if octets <= side.arrived:
            self._permit(side, octets + (segment.window << side.receiver.window_shift))
        elif not side.fin_acknowledged:
            side.fin_acknowledged = True
            self.note("ackfin", d=side.end)

    def _permit(self, side: _Side, octets: int) -> None:
        if octets != side.permitted and not side.fin_taken:
            side.permitted = octets
            self.note("permit", d=side.end, n=octets)

    def _deliver(self, side: _Side, segment: Segment) -> None:
        stream, octets = 3 - side.end, side.sent(segment)
        if segment.payload and octets > side.delivered:
            if octets == side.room + 1 and len(segment.payload) == 1:
                self.note("probe", d=stream, n=octets)
            else:
                side.delivered = octets
                self.note("deliver", d=stream, n=octets)
        if segment.flags & _FIN and not side.fin_sent:
            side.fin_sent = True
            self.note("end", d=stream, n=octets)


# -- what is recorded -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Act:
    """What an end does.

    Attributes:
        octets: that it sends.
        closes: whether it ends its stream behind them.
        stops: octets after which it does not read, None for never.
        resumes: when it reads again, seconds.
        aborts: octets after whose reading it resets the connection, None for never.
    """

    octets: int = 3000
    closes: bool = True
    stops: int | None = None
    resumes: float = 1e9
    aborts: int | None = None


@dataclass(frozen=True, slots=True)
class Play:
    """What both ends do, and what befalls them.

    Attributes:
        user: the end behind the satellite, which calls.
        server: the end in the Internet.
        loss: probability of a loss, on each link.
        cut: when both links go down for good, seconds; None for never.
    """

    user: Act = Act()
    server: Act = Act()
    loss: float = 0.0
    cut: float | None = None


PLAYS = {
    "both-end": Play(),
    "server-sends": Play(Act(200), Act(9000)),
    "user-sends": Play(Act(9000), Act(200)),
    "half-closed": Play(Act(100), Act(6000, stops=2000, resumes=30.0)),
    "stalled": Play(Act(100, closes=False, stops=1500), Act(12000)),
    "resumed": Play(Act(100, stops=1500, resumes=40.0), Act(12000)),
    "user-resets": Play(Act(4000, aborts=2000), Act(9000)),
    "server-resets": Play(Act(9000), Act(500, aborts=3000)),
    "lossy": Play(Act(4000), Act(9000), loss=0.05),
    "lossy-both": Play(Act(7000), Act(7000, stops=3000, resumes=20.0), loss=0.08),
    "cut": Play(Act(3000), Act(12000), cut=2.0),
    "nothing": Play(Act(0), Act(0)),
}
"""By name."""

_ENDS = EndpointConfig(mss=500, receive_buffer=2000, send_buffer=2000)
_BOX = EndpointConfig(mss=500, receive_buffer=2000, send_buffer=2000, max_retransmissions=4)
CONFIG = BoxConfig(outer=_BOX, inner=_BOX, paired=False)
"""A box whose buffers are full soon."""

_LASTS_S = 900.0


class _Actor:
    """A user that does what its act says."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self._left = act.octets
        self._read = 0

    def run(self, connection: Connection, now: float) -> None:
        """See :class:`bentpipe_reference.tcp.services.Service`."""
        act = self._act
        if connection.state in (State.SYN_SENT, State.SYN_RECEIVED):
            return
        if self._left:
            room = min(self._left, connection.write_room)
            self._left -= connection.write(pattern(act.octets - self._left, room), now)
        if not self._left and act.closes:
            connection.close(now)
        if act.stops is None or self._read < act.stops or now >= act.resumes:
            self._read += len(connection.read())
        if act.aborts is not None and self._read >= act.aborts:
            connection.abort("its user aborted", now)


def record(
    play: Play, *, seed: int = 1, alter: Callable[[Setup], Setup] | None = None
) -> BoxTrace:  # fmt: skip
    """Let two ends play through a box at a gateway, and collect what the box does.

    Args:
        play: what happens.
        seed: seed of losses and initial sequence numbers.
        alter: changes the setup of the box, as mutants do.
    """
    setup = Setup(CONFIG) if alter is None else alter(Setup(CONFIG))
    ends = setup.config.outer
    trace = BoxTrace(ends.receive_buffer + ends.send_buffer)
    parts = replace(setup.parts, box=trace.listening(setup.parts.box))
    internet, satellite = (
        _with_losses(links.link(f"box-trace-{name}", "", rtt_ms, rate), play.loss)
        for name, rtt_ms, rate in (("internet", 60.0, 1e6), ("satellite", 600.0, 2e5))
    )
    network = Network(internet, satellite, _ENDS, setup.config, seed, parts=parts)
    simulation = network.simulation
    network.call(_Actor(play.user), partial(_Actor, play.server))
    for act in (play.user, play.server):
        simulation.call_at(min(act.resumes, _LASTS_S), network.poke)
    if play.cut is not None:
        simulation.call_at(play.cut, network.cut)
    simulation.run_until(_LASTS_S)
    if len(trace.events) > 1:
        trace.note("quiet")
    return trace


def _with_losses(link: LinkProfile, probability: float) -> LinkProfile:
    forward = replace(link.forward, loss_probability=probability)
    return replace(link, forward=forward, return_=forward)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a trace to the standard output; 0, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m bentpipe_experiments.box_trace",
        description="Record what a box that splits a connection hears and says.",
    )
    parser.add_argument("--play", choices=sorted(PLAYS), default="both-end")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    sys.stdout.write(record(PLAYS[given.play], seed=given.seed).lines())
    return 0


if __name__ == "__main__":
    sys.exit(main())
