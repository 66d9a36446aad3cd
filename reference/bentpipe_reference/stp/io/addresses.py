"""Addresses as people write them: ``HOST:UDPPORT/SERVICEPORT``, and what they resolve to."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Any

from bentpipe_reference.stp.io.errors import StpIoError

SocketAddress = tuple[Any, ...]
"""As the kernel has it: (host, port), or (host, port, flow, scope) in IPv6."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an endpoint is, or shall be.

    Attributes:
        host: name or address, without brackets; empty for every address of this host.
        udp_port: 0 where STP runs directly over IP, or any port will do.
        service_port: STP port, None when not given.
    """

    host: str
    udp_port: int = 0
    service_port: int | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether the host is given by its address, so that no name has to be looked up."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        text = f"{host}:{self.udp_port}" if self.udp_port else host
        return text if self.service_port is None else f"{text}/{self.service_port}"


def parse_place(text: str, *, ports: bool, any_port: bool = False) -> Place:
    """Read ``HOST:UDPPORT[/SERVICEPORT]``, or without ``ports`` ``HOST[/SERVICEPORT]``.

    An IPv6 address stands in brackets, which may be left out where no UDP port follows.

    Args:
        text: what the user wrote.
        ports: whether there is a UDP port.
        any_port: whether that may be 0, for any port that is free.

    Raises:
        ValueError: it cannot be read so; the message is one sentence.
    """
    rest, slash, service = text.partition("/")
    service_port = _port(service, text, "STP port") if slash else None
    if not ports:
        host = rest.removeprefix("[").removesuffix("]")
        if not host or (":" in host and not _is_v6(host)):
            raise ValueError(f"{text!r} is not an address; write HOST/STPPORT, without a UDP port.")
        return Place(host, 0, service_port)
    host, colon, port = rest.rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} has no UDP port; write HOST:UDPPORT, such as 192.0.2.1:4000.")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r} has an IPv6 address without brackets; write [HOST]:UDPPORT.")
    if not host:
        raise ValueError(f"{text!r} has no host; write HOST:UDPPORT.")
    if any_port and port == "0":
        return Place(host, 0, service_port)
    return Place(host, _port(port, text, "UDP port"), service_port)


def _port(text: str, whole: str, what: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= 65535:
        raise ValueError(f"{whole!r} has the {what} {text!r}; give a number from 1 to 65535.")
    return int(text)


def _is_v6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return False
    return True


def resolve(place: Place, *, passive: bool = False) -> tuple[int, SocketAddress]:
    """Address family and socket address of a place, the first that the resolver gives.

    Args:
        place: name or address; ``*`` and the empty name mean every IPv4 address of this host.
        passive: for listening.

    Raises:
        StpIoError: the name is not known.
    """
    host: str | None = place.host
    if passive and host in ("", "*"):
        host = "0.0.0.0"
    try:
        found = socket.getaddrinfo(
            host,
            place.udp_port,
            type=socket.SOCK_DGRAM,
            flags=socket.AI_PASSIVE if passive else 0,
        )
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else "not a name"
        raise StpIoError(
            f"{place.host} is not found ({reason}); correct the name or give an address."
        ) from None
    family, _, _, _, address = found[0]
    return family, address
