"""How packets of a protocol that kernels do not know travel in IPv4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["udp", "ip"]
KINDS: tuple[Kind, ...] = get_args(Kind)

DEFAULT_UDP_PORT = 7253
"""UDP port of an implementation whose description does not name one, whatever its protocol."""

EXPERIMENTAL = (253, 254)
"""IP protocol numbers for experiments (RFC 3692), for protocols without their own."""


@dataclass(frozen=True, slots=True)
class Encapsulation:
    """What encloses every packet.

    Attributes:
        kind: ``udp`` (the whole payload of a datagram) or ``ip`` (directly in IPv4).
        port: the implementation's UDP port, for ``udp``.
        protocol: the IP protocol number, for ``ip``.
    """

    kind: Kind = "udp"
    port: int = DEFAULT_UDP_PORT
    protocol: int = EXPERIMENTAL[0]


IN_UDP = Encapsulation()
IN_IP = Encapsulation("ip")
