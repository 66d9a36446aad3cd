"""Mutants of what connections share over the satellite (PEP-FI-003)."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import INNER
from bentpipe_reference.pep.endpoint import Endpoint
from bentpipe_reference.pep.mutants import mutant_setting
from bentpipe_reference.pep.relay import Relay


class _Ordered(Relay):
    """Octets from the satellite wait while another connection misses some."""

    waits: Any = None

    def carry_octets(self, source: Any, sink: Any, now: float) -> None:
        """See :class:`Relay`."""
        if source is not self.endpoint(INNER) or self.waits is None or not self.waits(self):
            super().carry_octets(source, sink, now)


class _OneOrder(Box):
    """Everything that comes over the satellite is handed on in one order."""

    gaps = 0

    def waits(self, relay: Relay) -> bool:
        """Whether another connection misses something."""
        return any(it is not relay and _misses(it.endpoint(INNER)) for it in self.relays)

    def settle(self, relay: Relay, now: float) -> None:
        """See :class:`Box`."""
        assert isinstance(relay, _Ordered)
        relay.waits = self.waits
        super().settle(relay, now)
        before, self.gaps = self.gaps, sum(_misses(it.endpoint(INNER)) for it in self.relays)
        if self.gaps < before:
            for other in [it for it in self.relays if it is not relay]:
                super().settle(other, now)


def _misses(end: object) -> bool:
    receiver = end.receiver if isinstance(end, Endpoint) and not end.is_closed else None
    return receiver is not None and bool(receiver.buffer.blocks)


mutant_setting(
    "pep-one-order-for-all", "What one connection misses from the satellite all others wait for.",
    lambda setup: setup.with_part(_OneOrder).with_part(_Ordered), breaks="PEP-FI-003",
)  # fmt: skip
