"""A satellite gateway and the link behind it, in virtual time; errors come after serialisation."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_reference.common.sim import Alarm, Simulation
from bentpipe_reference.rwbp.credit import CreditFrame
from bentpipe_reference.rwbp.gateway import Gateway
from bentpipe_reference.tcp.path import Delivery


@dataclass(slots=True)
class SpaceCounters:
    """What has passed the gateway.

    Attributes:
        packets: packets that the link has carried, errors included.
        octets: their octets.
        erroneous: those of them that were lost.
        frames: credit frames sent.
    """

    packets: int = 0
    octets: int = 0
    erroneous: int = 0
    frames: int = 0


class Space:
    """The forward direction of a satellite link, with its gateway.

    A packet that is lost by a bit error has occupied the link, unlike those of
    :class:`bentpipe_reference.common.link.virtual.VirtualLink`, which are lost before the queue.

    Args:
        simulation: the clock.
        gateway: the queues.
        delay_s: propagation delay, seconds.
        ber: bit error rate.
        seed: seed of the errors.

    Attributes:
        gateway: the queues.
        on_credit: takes the gateway's frames; None when nobody listens.
    """

    def __init__(
        self,
        simulation: Simulation,
        gateway: Gateway[Delivery],
        delay_s: float,
        ber: float,
        seed: int,
    ) -> None:
        self._counters = SpaceCounters()
        self.gateway = gateway
        self.on_credit: Callable[[CreditFrame], None] | None = None
        self._simulation = simulation
        self._delay = delay_s
        self._good = 1.0 - ber
        self._random = random.Random(seed).random
        self._alarm = Alarm(simulation, self._settle)

    @property
    def counters(self) -> SpaceCounters:
        """What has happened."""
        self._settle()
        return self._counters

    def send(self, item: Delivery, size: int) -> None:
        """A packet of low priority arrives."""
        gateway = self.gateway
        gateway.take(item, size, self._simulation.now)
        if not gateway.waiting:  # it is the first one on an idle link
            self._settle()

    def send_high(self, item: Delivery, size: int) -> None:
        """A packet of high priority arrives."""
        self.gateway.take_high(item, size, self._simulation.now)
        self._settle()

    def grant(self, on_credit: Callable[[CreditFrame], None]) -> None:
        """Send credit frames from now on."""
        self.on_credit = on_credit
        self._settle()

    def _settle(self) -> None:
        """Plan the arrival of what has left, and send a frame if one is due.

        To be called before what has left arrives; each packet needs no moment of its own.
        """
        now, counters, delay = self._simulation.now, self._counters, self._delay
        plan, good = self._simulation.call_at, self._good
        for left, item, size in self.gateway.departures(now):
            counters.packets += 1
            counters.octets += size
            if good == 1.0 or self._random() < good ** (8 * size):
                plan(left + delay, item)
            else:
                counters.erroneous += 1
        frame = self.gateway.frame_due(now)
        if frame is not None and self.on_credit is not None:
            counters.frames += 1
            self.on_credit(frame)
        self._alarm.set(min(self.gateway.frame_deadline(), now + delay))
