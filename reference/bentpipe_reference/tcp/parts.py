"""Everything a host is made from: settings, and which class plays which part."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_reference.common import parts as common
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import ConnectionParts
from bentpipe_reference.tcp.wire import Segment, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.refusal import reset_for


class InitialNumbers:
    """Draws the initial sequence numbers of a host's connections, and where their clocks begin.

    Args:
        numbers: what they are drawn from.
    """

    def __init__(self, numbers: random.Random) -> None:
        self._numbers = numbers

    def draw(self, syn: Segment | None) -> int:  # noqa: ARG002
        """The ISS of a new connection, opened by ``syn`` or, without one, by this host."""
        return self._numbers.getrandbits(32)

    def draw_clock(self, syn: Segment | None) -> int:  # noqa: ARG002
        """The offset of its timestamp clock (RFC 7323 section 5.4), in ticks."""
        return self._numbers.getrandbits(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(ConnectionParts):
    """The classes and functions a host is composed of; the defaults are the true ones.

    Attributes:
        connection: one connection.
        numbers: draws initial sequence numbers.
        parse: reads an IPv4 packet.
        emit: makes an IPv4 packet.
        refuse: the answer to a segment for no connection, None for none.
    """

    connection: type[Connection] = Connection
    numbers: type[InitialNumbers] = InitialNumbers
    parse: Callable[[bytes], Segment] = parse_packet
    emit: Callable[[Segment], bytes] = emit_packet
    refuse: Callable[[Segment], Segment | None] = reset_for


TRUE_PARTS = Parts()
"""The reference itself."""


@dataclass(frozen=True, slots=True)
class Setup(common.Setup):
    """The user's settings and the parts; the self-test and the experiments change it stepwise."""

    config: EndpointConfig
    parts: Parts = TRUE_PARTS
