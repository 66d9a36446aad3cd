"""A bulk transfer between two endpoints over a link profile, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.transfer import Transferred
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.path import Path
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import EventSink, SenderCounters

CrossTraffic = Callable[[Path], None]
"""Called once before a transfer starts; plans flows of its own on the same path."""


@dataclass(slots=True, kw_only=True)
class TransferResult(Transferred):
    """What a transfer over TCP came to; see :class:`Transferred` for the rest.

    Attributes:
        sender: the sender's totals.
    """

    sender: SenderCounters


def transfer(
    profile: LinkProfile,
    setup: EndpointConfig | Setup,
    octets: int,
    *,
    seed: int = 0,
    drops: Iterable[int] = (),
    return_drops: Iterable[int] = (),
    limit_s: float = 3600.0,
    on_event: EventSink | None = None,
    cross_traffic: CrossTraffic | None = None,
    watch: Callable[[Sender], None] | None = None,
) -> TransferResult:
    """Send ``octets`` of the test pattern through ``profile`` and close.

    Args:
        profile: the link; data travels in its forward direction.
        setup: both ends; settings alone are those of the true reference.
        octets: length of the stream.
        seed: seed of the links' faults and the initial sequence numbers.
        drops: numbers of the forward packets to drop, the SYN being 1.
        return_drops: the same for the return direction, the SYN-ACK being 1.
        limit_s: virtual seconds after which the transfer is given up.
        on_event: called with the sender's protocol events.
        cross_traffic: other users of the same link.
        watch: called with the sender before it starts.
    """
    path = Path(profile, seed)
    path.forward.drops.update(drops)
    path.return_.drops.update(return_drops)
    flow = path.flow(octets, setup, on_event=on_event)
    if cross_traffic is not None:
        cross_traffic(path)
    if watch is not None:
        watch(flow.sending.sender)
    flow.start()
    path.simulation.run_while(flow.is_pending, limit_s)
    failure = None
    if flow.finished is None:
        failure = flow.failure or f"not finished within {limit_s:g} s"
    return TransferResult(
        octets=flow.read,
        intact=flow.intact and flow.read == octets,
        seconds=path.simulation.now if flow.finished is None else flow.finished,
        sender=flow.sending.sender.counters,
        forward=path.forward.counters,
        return_=path.return_.counters,
        failure=failure,
    )
