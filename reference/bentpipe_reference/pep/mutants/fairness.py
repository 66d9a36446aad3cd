"""Mutants of what connections share (PEP-FI-002, -003)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER
from bentpipe_reference.pep.endpoint import End, Endpoint
from bentpipe_reference.pep.mutants import mutant
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.output import Addresses


class _OneOrder(Box):
    """What one connection misses from the satellite all others wait for."""

    gaps = 0

    def carry(self, relay: Relay, source: End, sink: End, now: float) -> None:
        """See :meth:`Relay.carry_octets`."""
        others = (it for it in self.relays if it is not relay)
        if source is relay.endpoint(INNER) and any(_misses(it.endpoint(INNER)) for it in others):
            return
        Relay.carry_octets(relay, source, sink, now)

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        relay.carry_octets = partial(self.carry, relay)  # type: ignore[method-assign]
        super().settle(relay, now)
        before, self.gaps = self.gaps, sum(_misses(it.endpoint(INNER)) for it in self.relays)
        if self.gaps < before:
            for other in [it for it in self.relays if it is not relay]:
                super().settle(other, now)


def _misses(end: End | None) -> bool:
    receiver = end.receiver if isinstance(end, Endpoint) and not end.is_closed else None
    return receiver is not None and bool(receiver.buffer.blocks)


mutant("pep-one-order-for-all", breaks="PEP-FI-003")(_OneOrder)


@mutant("pep-later-ones-get-less", "make", breaks="PEP-FI-002")
def later_ones_get_less(self: Box, port: int, ends: Addresses, number: int) -> End:
    """Beside four connections others get a quarter of the buffer."""
    endpoint = Box.make(self, port, ends, number)
    if isinstance(endpoint, Endpoint) and len(self.relays) >= 4:
        sizes = endpoint.config.receive_buffer // 4, endpoint.config.send_buffer // 4
        endpoint.config = replace(
            endpoint.config, receive_buffer=sizes[0], send_buffer=sizes[1]
        )  # fmt: skip
    return endpoint
