"""Everything a host is made from: settings, and which class plays which part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.connection import Halves, RwbpConnection
from bentpipe_reference.rwbp.credit import CreditFrame, read_packet
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.rtt import RwbpEstimator
from bentpipe_reference.tcp import parts as tcp
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Halves):
    """The classes and functions a host is composed of; the defaults are the true ones.

    What it has of TCP's serves connections on which RWBP is not agreed, and the handshake both.

    Attributes:
        read_credit: reads a credit frame from an IPv4 packet.
    """

    handshake: type[Handshake] = RwbpHandshake
    estimator: type[RttEstimator] = RwbpEstimator
    connection: type[Connection] = RwbpConnection
    read_credit: Callable[[bytes, int, int], CreditFrame] = read_packet


TRUE_PARTS = Parts()
"""The reference itself."""


@dataclass(frozen=True, slots=True)
class Setup(tcp.Setup):
    """The user's settings and the parts; the self-test and the experiments change it stepwise."""

    config: RwbpConfig
    parts: Parts = TRUE_PARTS
