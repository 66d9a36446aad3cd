"""The rtnetlink messages that a lane needs.

Importing pyroute2 would cost every worker inside User-Mode Linux 0.8 s, as much as several cases.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.errors import BedError

NETLINK_ROUTE = 0
SOL_NETLINK, NETLINK_EXT_ACK = 270, 11
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP, NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x1, 0x4, 0x300, 0x100, 0x200
CREATE, REPLACE = 0x600, 0x500
"""Flags of a request to make something: NLM_F_CREATE with NLM_F_EXCL or with NLM_F_REPLACE."""
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLMSGERR_ATTR_MSG = 1
RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_GETADDR = 16, 17, 20, 22
RTM_NEWROUTE, RTM_GETROUTE, RTM_NEWNEIGH, RTM_NEWQDISC = 24, 26, 28, 36
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU = 1, 3, 4
IFLA_TXQLEN, IFLA_LINKINFO, IFLA_NET_NS_FD = 13, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_DST, RTA_OIF, RTA_GATEWAY = 1, 4, 5
NDA_DST, NDA_LLADDR, NUD_PERMANENT = 1, 2, 0x80
TCA_KIND, TCA_OPTIONS = 1, 2
TC_H_ROOT = 0xFFFFFFFF
IFA_F_PERMANENT = 0x80
RT_TABLE_MAIN, RTPROT_KERNEL, RTPROT_STATIC = 254, 2, 4
RT_SCOPE_UNIVERSE, RT_SCOPE_LINK, RTN_UNICAST = 0, 253, 1
IFF_UP = 1


def attribute(kind: int, value: bytes) -> bytes:
    """One netlink attribute, padded to four octets."""
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def text(kind: int, value: str) -> bytes:
    """A netlink attribute holding a zero-terminated string."""
    return attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    """A netlink attribute holding an unsigned 32-bit number."""
    return attribute(kind, struct.pack("=I", value))


Address = bytes
"""The body of the message in which the kernel described an address of an interface."""


class Route:
    """A route as the kernel described it."""

    def __init__(self, body: bytes) -> None:
        """Keep the body of the kernel's message."""
        self._body = body
        self._at = next((at for at, _, kind in _attributes(body, 12) if kind == RTA_OIF), 0)
        self.default = body[1] == 0
        self.scope = body[6]

    @property
    def interface(self) -> int:
        """Index of its interface; 0 when it names none."""
        return int(struct.unpack_from("=I", self._body, self._at + 4)[0]) if self._at else 0

    @property
    def configured(self) -> bool:
        """Whether it was configured in the main table, not made by the kernel."""
        return (self._body[4], self._body[7]) == (RT_TABLE_MAIN, RTN_UNICAST) and (
            self._body[5] != RTPROT_KERNEL
        )

    def through(self, index: int) -> bytes:
        """The body of the message that restores it through an interface."""
        return self._body[: self._at + 4] + struct.pack("=I", index) + self._body[self._at + 8 :]


class Netlink(Closing):
    """A routing socket of the namespace in which it is made."""

    def __init__(self) -> None:
        """Open the socket in this thread's namespace."""
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self._socket.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._sequence += 1
        flags |= NLM_F_REQUEST
        header = struct.pack("=IHHII", 16 + len(body), kind, flags, self._sequence, 0)
        self._socket.send(header + body)

    def request(self, kind: int, flags: int, body: bytes, purpose: str) -> None:
        """Send one request and wait for the kernel's answer.

        ``kind`` is the message type ``RTM_...``, ``flags`` are those beyond request and
        acknowledgement, ``body`` is the family header with attributes.

        Raises:
            BedError: the kernel refused; the message quotes the kernel.
        """
        self._send(kind, NLM_F_ACK | flags, body)
        while True:
            answer = self._socket.recv(65536)
            _, reply, reply_flags, sequence, _ = struct.unpack_from("=IHHII", answer)
            if reply == NLMSG_ERROR and sequence == self._sequence:
                break
        code = -struct.unpack_from("=i", answer, 16)[0]
        if code:
            said = _extended_message(answer, reply_flags) or os.strerror(code)
            hint = "; this needs root" if code in (errno.EPERM, errno.EACCES) else ""
            raise BedError(f"The kernel could not {purpose}: {said.rstrip('.')}{hint}.")

    def dump(self, kind: int) -> list[bytes]:
        """The bodies of all the objects of one kind, with their family headers."""
        self._send(kind, NLM_F_DUMP, struct.pack("=B15x", socket.AF_UNSPEC))
        found: list[bytes] = []
        while True:
            answer = self._socket.recv(65536)
            at = 0
            while at < len(answer):
                length, reply, _, sequence, _ = struct.unpack_from("=IHHII", answer, at)
                if sequence == self._sequence:
                    if reply in (NLMSG_DONE, NLMSG_ERROR):
                        return found
                    found.append(answer[at + 16 : at + length])
                at += length + -length % 4

    def add_veth(self, name: str, peer: str, peer_namespace: int, mtu: int, queue: int) -> None:
        """A pair of Ethernet devices, the peer in the namespace held by ``peer_namespace``."""
        shape = number(IFLA_MTU, mtu) + number(IFLA_TXQLEN, queue)
        other = _link_header() + text(IFLA_IFNAME, peer) + shape
        other = attribute(VETH_INFO_PEER, other + number(IFLA_NET_NS_FD, peer_namespace))
        info = text(IFLA_INFO_KIND, "veth") + attribute(IFLA_INFO_DATA, other)
        body = _link_header() + text(IFLA_IFNAME, name) + shape + attribute(IFLA_LINKINFO, info)
        self.request(RTM_NEWLINK, CREATE, body, f"make the veth pair {name}")

    def set_link(
        self,
        name: str,
        *,
        mtu: int | None = None,
        queue: int | None = None,
        address: bytes | None = None,
        up: bool = True,
    ) -> None:
        """Set an interface's properties, then set it up, or leave it down."""
        body = _link_header(socket.if_nametoindex(name), IFF_UP if up else 0)
        if address is not None:
            body += attribute(IFLA_ADDRESS, address)
        if mtu is not None:
            body += number(IFLA_MTU, mtu)
        if queue is not None:
            body += number(IFLA_TXQLEN, queue)
        self.request(RTM_NEWLINK, 0, body, f"set the interface {name} {'up' if up else 'down'}")

    def move_link(self, name: str, namespace: int) -> None:
        """Move an interface into the namespace held by ``namespace``, where it is down and bare."""
        body = _link_header(socket.if_nametoindex(name)) + number(IFLA_NET_NS_FD, namespace)
        self.request(RTM_NEWLINK, 0, body, f"move the interface {name}")

    def addresses(self, index: int) -> list[Address]:
        """The configured addresses of an interface, to be restored later."""
        packed = struct.pack("=I", index)
        # Those not permanent, or of the scope of the link, the kernel made up itself.
        return [
            body for body in self.dump(RTM_GETADDR)
            if body[2] & IFA_F_PERMANENT and body[3] == RT_SCOPE_UNIVERSE and body[4:8] == packed
        ]  # fmt: skip

    def restore_address(self, name: str, address: Address) -> None:
        """Restore an address of an interface."""
        body = address[:4] + struct.pack("=I", socket.if_nametoindex(name)) + address[8:]
        self.request(RTM_NEWADDR, REPLACE, body, f"give {name} its address")

    def routes(self, index: int) -> list[Route]:
        """The configured routes through an interface, in an order to restore them."""
        found = [Route(body) for body in self.dump(RTM_GETROUTE)]
        mine = [route for route in found if route.interface == index and route.configured]
        # A gateway is known only by the route to its link.
        return sorted(mine, key=lambda route: route.scope, reverse=True)

    def restore_route(self, name: str, route: Route) -> None:
        """Restore a route."""
        body = route.through(socket.if_nametoindex(name))
        self.request(RTM_NEWROUTE, REPLACE, body, f"route through {name} again")

    def add_address(self, name: str, address: str, prefix: int) -> None:
        """Give an interface an IPv4 address."""
        packed, index = socket.inet_aton(address), socket.if_nametoindex(name)
        body = struct.pack("=BBBBI", socket.AF_INET, prefix, 0, RT_SCOPE_UNIVERSE, index)
        body += attribute(IFA_LOCAL, packed) + attribute(IFA_ADDRESS, packed)
        self.request(RTM_NEWADDR, CREATE, body, f"give {name} {address}")

    def add_route(self, network: str, prefix: int, name: str, gateway: str | None = None) -> None:
        """Route an IPv4 network through an interface, over ``gateway`` if given."""
        scope = RT_SCOPE_LINK if gateway is None else RT_SCOPE_UNIVERSE
        origin = RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST
        body = struct.pack("=BBBBBBBBI", socket.AF_INET, prefix, 0, 0, *origin, 0)
        if prefix:
            body += attribute(RTA_DST, socket.inet_aton(network))
        if gateway is not None:
            body += attribute(RTA_GATEWAY, socket.inet_aton(gateway))
        body += number(RTA_OIF, socket.if_nametoindex(name))
        self.request(RTM_NEWROUTE, CREATE, body, f"route {network}/{prefix} to {name}")

    def add_neighbour(self, name: str, address: str, link_address: bytes) -> None:
        """Fix the Ethernet address of an IPv4 neighbour, so that no ARP crosses the link."""
        index = socket.if_nametoindex(name)
        body = struct.pack("=BBHiHBB", socket.AF_INET, 0, 0, index, NUD_PERMANENT, 0, 0)
        body += attribute(NDA_DST, socket.inet_aton(address)) + attribute(NDA_LLADDR, link_address)
        self.request(RTM_NEWNEIGH, REPLACE, body, f"fix the neighbour {address}")

    def add_qdisc(
        self, name: str, kind: str, options: bytes, handle: int, parent: int = TC_H_ROOT
    ) -> None:
        """Attach a queueing discipline to an interface, or below another one."""
        body = struct.pack("=BBHiIII", 0, 0, 0, socket.if_nametoindex(name), handle, parent, 0)
        body += text(TCA_KIND, kind) + attribute(TCA_OPTIONS, options)
        self.request(RTM_NEWQDISC, REPLACE, body, f"lay out {kind} on {name}")


def _link_header(index: int = 0, flags: int = 0) -> bytes:
    return struct.pack("=BBHiII", 0, 0, 0, index, flags, flags)


def _attributes(octets: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Position, length and kind of each attribute from ``at`` on."""
    while at + 4 <= len(octets):
        length, kind = struct.unpack_from("=HH", octets, at)
        if length < 4:
            return
        yield at, length, kind
        at += length + -length % 4


def _extended_message(answer: bytes, flags: int) -> str | None:
    """The kernel's own words in an acknowledgement, if it gave any."""
    if not flags & NLM_F_ACK_TLVS:
        return None
    at = 16 + 4 + 16
    if not flags & NLM_F_CAPPED:
        at += max(0, struct.unpack_from("=I", answer, 20)[0] - 16)
    for start, length, kind in _attributes(answer, at):
        if kind == NLMSGERR_ATTR_MSG:
            return answer[start + 4 : start + length].rstrip(b"\0").decode(errors="replace")
    return None
