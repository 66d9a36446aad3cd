"""The composition root: which class plays which part of a host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.output import ConnectionParts
from bentpipe_reference.tcp.wire.codec import parse_packet
from bentpipe_reference.tcp.wire.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(ConnectionParts):
    """The classes and functions a host is composed of; the defaults are the true ones.

    Attributes:
        connection: one connection.
        parse: reads an IPv4 packet.
    """

    connection: type[Connection] = Connection
    parse: Callable[[bytes], Segment] = parse_packet


TRUE_PARTS = Parts()
"""The reference itself."""
