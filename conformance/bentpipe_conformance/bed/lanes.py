"""Lanes in a real kernel: on a host as root, or inside User-Mode Linux.

Namespace ``sat`` holds the link: ``sat_a`` towards the implementation, ``sat_b`` (a TUN device)
towards the tester, netem on the way out of either, and a capture on both. All of it is held by file
descriptors of this process and vanishes with it. In the place of ``sat_a`` there may be an
interface of the host, or two, borrowed for as long as the lane is open.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.bed import clocks, netem
from bentpipe_conformance.bed.arp import Resolver
from bentpipe_conformance.bed.borrowed import BorrowedInterface
from bentpipe_conformance.bed.capture import Capture, Record
from bentpipe_conformance.bed.devices import await_running, clear_offloads, open_tun
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.bed.process import IutProcess, run_opening
from bentpipe_conformance.engine.lane import Captured, Opening, OpenRequest, Point

IUT_ADDRESS, GATEWAY, PREFIX = "10.77.0.2", "10.77.0.1", 24
TESTERS, TESTERS_PREFIX = "10.78.0.0", 16
IUT_MAC, GATEWAY_MAC = b"\x02\x00\x0a\x4d\x00\x02", b"\x02\x00\x0a\x4d\x00\x01"
DEVICE_QUEUE = 10_000
"""Packets a device may hold beyond netem, so that it never drops any."""
ROUTER = {
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}

Kind = Literal["namespace", "tun", "tap", "address"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """How an implementation is attached and started.

    Attributes:
        kind: ``namespace`` (its sockets in a namespace behind a veth), ``tun`` or ``tap`` (it
            inherits the file descriptor of a device that carries IP packets or Ethernet frames),
            ``address`` (it is elsewhere, behind an interface of this namespace).
        command: how to start it; ``{fd}``, ``{address}``, ``{gateway}``, ``{prefix}``, ``{mtu}``,
            ``{mac}`` and ``{gateway_mac}`` are filled in. Empty: nothing is started.
        ready: the line on its standard output that tells readiness.
        ready_timeout: seconds on the place's clock to wait for it.
        sysctls: kernel parameters of its namespace.
        env: its environment, ours if None.
        cwd: its working directory, ours if None.
        interface: what leads to it, for kind ``address``.
        address: its IPv4 address; only kind ``address`` has one of its own.
        gateway: the satellite's IPv4 address towards it.
        prefix: length of their common network's prefix.
        sends_on: for kind ``address``, the interface to which it sends if that is another one than
            ``interface``, by which it then only receives; empty for the same.
        sends_to: the satellite's IPv4 address there, with the length of the network's prefix.
        opening: how it is made to open a connection, None when it cannot be.
    """

    kind: Kind
    command: Sequence[str]
    ready: str | None = "ready"
    ready_timeout: float = 10.0
    sysctls: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    interface: str = "sat_a"
    address: str = IUT_ADDRESS
    gateway: str = GATEWAY
    prefix: int = PREFIX
    sends_on: str = ""
    sends_to: tuple[str, int] = ("", 0)
    opening: Opening | None = None


class TunPort:
    """The tester's end of the link: a TUN device read without ever polling the clock."""

    def __init__(self, fd: int) -> None:
        """Use the TUN device behind ``fd``."""
        self._fd = fd
        self._captures: tuple[_Point, ...] = ()
        self.address = b""
        os.set_blocking(fd, False)

    def now(self) -> float:
        """Seconds on the place's monotonic clock."""
        return time.monotonic()

    def send(self, packet: bytes) -> None:
        """Put one IPv4 packet on the link.

        Raises:
            BedError: the kernel takes it for no IPv4 packet.
        """
        try:
            os.write(self._fd, packet)
        except OSError as error:
            raise BedError(
                f"The kernel does not take a packet of {len(packet)} octets ({error.strerror})."
            ) from None

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Block until a packet for this case's address arrives or ``deadline`` passes."""
        while True:
            for point in self._captures:
                point.drain()
            try:
                packet = os.read(self._fd, 65536)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                select.select([self._fd], [], [], left)
                continue
            if len(packet) < 20 or packet[16:20] == self.address:
                return time.monotonic(), packet

    def watch(self, captures: Sequence[_Point]) -> None:
        """Empty these captures whenever the tester waits."""
        self._captures = tuple(captures)

    def discard(self) -> None:
        """Throw away what has arrived."""
        try:
            while os.read(self._fd, 65536):
                pass
        except BlockingIOError:
            pass


class _Point:
    """A capture and what it has gathered in this case."""

    def __init__(self, name: Point, interface: str, frames: int) -> None:
        self.name: Point = name
        self.capture = Capture(interface, frames)
        self.records: list[Record] = []

    def drain(self) -> None:
        self.records += self.capture.drain()

    def clear(self) -> None:
        self.capture.drain()
        self.records.clear()
        self.capture.lost()

    def finish(self) -> list[Record]:
        self.drain()
        lost = self.capture.lost()
        if lost:
            raise BedError(
                f"The capture on {self.capture.interface} lost {lost} packets; "
                "run fewer lanes side by side."
            )
        return self.records


class KernelLane:
    """One implementation behind one link laid out by this kernel; see :class:`lane.Lane`."""

    def __init__(
        self,
        profile: LinkProfile,
        attachment: Attachment,
        *,
        timing_error: float = 0.0,
        capture_frames: int = 2048,
    ) -> None:
        """Lay out the link and start the implementation.

        Args:
            profile: the link.
            attachment: the implementation.
            timing_error: seconds, from the bed's check.
            capture_frames: packets each capture holds between two looks.

        Raises:
            BedError: the kernel cannot lay it out or the implementation does not start.
        """
        self.iut_address = attachment.address
        self.timing_error = timing_error
        self.profile = profile
        self._cases = 0
        self._start = (0, 0, 0)
        self._namespaces: list[NetworkNamespace] = []
        self._fds: list[int] = []
        self._points: list[_Point] = []
        self._process: IutProcess | None = None
        self._borrowed: BorrowedInterface | None = None
        self._borrowed_too: BorrowedInterface | None = None
        self._resolver: Resolver | None = None
        self._opening = attachment.opening
        self._iut_mac = IUT_MAC
        self.iut_namespace: NetworkNamespace | None = None
        try:
            self.port = self._lay_out(attachment, capture_frames)
        except BaseException:
            self.close()
            raise

    def _lay_out(self, attachment: Attachment, frames: int) -> TunPort:
        satellite = self._namespace()
        iut = satellite
        near: list[int] = []
        name = attachment.interface
        if attachment.kind == "namespace":
            iut = self.iut_namespace = self._namespace()
        elif attachment.kind == "address":
            if attachment.command:
                self._process = _start(attachment, self.profile, ())
            self._borrowed = BorrowedInterface(name, satellite)
            if attachment.sends_on:
                self._borrowed_too = BorrowedInterface(attachment.sends_on, satellite)
        with satellite.entered(), Netlink() as netlink:
            far = self._keep(open_tun("sat_b"))
            if attachment.kind == "namespace":
                netlink.add_veth(name, "eth0", iut.fd, self.profile.mtu, DEVICE_QUEUE)
                clear_offloads(name)
            elif self._borrowed is None:
                near.append(self._keep(open_tun(name, ethernet=attachment.kind == "tap")))
            self._lay_out_link(netlink, attachment)
            if self._borrowed_too is not None:
                self._lay_out_second_port(netlink, attachment)
            near_points = [_Point("iut", one, frames) for one in (name, attachment.sends_on) if one]
            self._points = [*near_points, _Point("peer", "sat_b", frames)]
        satellite.set_sysctls(ROUTER)
        if attachment.kind == "namespace":
            self._lay_out_iut(iut)
        with satellite.entered():
            await_running(*(one for one in (name, attachment.sends_on, "sat_b") if one))
        iut.set_sysctls(attachment.sysctls)
        if attachment.command and attachment.kind != "address":
            with iut.entered():
                self._process = _start(attachment, self.profile, near)
        for fd in near:
            # Kept open here, the device would outlive the implementation.
            os.close(fd)
            self._fds.remove(fd)
        port = TunPort(far)
        port.watch(self._points)
        return port

    def _lay_out_link(self, netlink: Netlink, attachment: Attachment) -> None:
        """Addresses, routes and netem of the satellite's two interfaces."""
        profile = self.profile
        name = attachment.interface
        ethernet = attachment.kind in ("namespace", "tap")
        mac = GATEWAY_MAC if ethernet else None
        _quieten(name, "sat_b")
        netlink.set_link(name, mtu=profile.mtu, queue=DEVICE_QUEUE, address=mac)
        netlink.set_link("sat_b", mtu=profile.mtu, queue=DEVICE_QUEUE)
        netlink.add_address(name, attachment.gateway, attachment.prefix)
        if self._borrowed is not None:
            clear_offloads(name)
            if self._borrowed.resolves:
                # Before netem is laid out, which would delay it.
                await_running(name)
                self._resolver = Resolver(name, attachment.gateway)
                self._iut_mac = self._resolver.resolve(attachment.address)
                ethernet = True
        if ethernet:
            netlink.add_neighbour(name, attachment.address, self._iut_mac)
        netlink.add_route(TESTERS, TESTERS_PREFIX, "sat_b")
        netem.lay_out(netlink, "sat_b", profile.forward, ethernet=False)
        netem.lay_out(netlink, name, profile.return_, ethernet=ethernet)

    def _lay_out_second_port(self, netlink: Netlink, attachment: Attachment) -> None:
        """Where the implementation sends: the satellite only receives there, and answers ARP."""
        name = attachment.sends_on
        _quieten(name)
        netlink.set_link(name, mtu=self.profile.mtu, queue=DEVICE_QUEUE)
        netlink.add_address(name, *attachment.sends_to)
        clear_offloads(name)

    def _lay_out_iut(self, namespace: NetworkNamespace) -> None:
        with namespace.entered(), Netlink() as netlink:
            _quieten("eth0")
            clear_offloads("eth0")
            netlink.set_link("lo")
            netlink.set_link("eth0", address=IUT_MAC)
            netlink.add_address("eth0", IUT_ADDRESS, PREFIX)
            netlink.add_neighbour("eth0", GATEWAY, GATEWAY_MAC)
            netlink.add_route("0.0.0.0", 0, "eth0", GATEWAY)
            await_running("eth0")

    def _namespace(self) -> NetworkNamespace:
        made = NetworkNamespace()
        self._namespaces.append(made)
        return made

    def _keep(self, fd: int) -> int:
        self._fds.append(fd)
        return fd

    def begin(self) -> str:
        """Start a case; see :class:`lane.Lane`."""
        # An address used once has no TCP metrics, and late packets of other cases are told apart.
        self._cases += 1
        high, low = divmod(self._cases % 64_516 or 1, 254)
        address = f"10.78.{high}.{low + 1}"
        self.port.address = bytes(map(int, address.split(".")))
        self.port.discard()
        if self._resolver is not None:
            self._resolver.announce(self.iut_address, self._iut_mac)
        for point in self._points:
            point.clear()
        self._start = clocks.look()
        return address

    def open(self, request: OpenRequest) -> None:
        """Have the implementation open a connection; see :class:`lane.Lane`.

        Raises:
            BedError: the description does not say how, or the command fails.
        """
        if self._opening is None:
            raise BedError(
                "The implementation cannot be made to open a connection; add [open] to its TOML "
                "file, or declare active_open = false."
            )
        values = {**asdict(request), "service": request.service, "python": sys.executable}
        opening = self._opening.filled(values)
        if opening.line:
            assert self._process is not None
            self._process.tell(opening.line)
            return
        if opening.on_host:
            run_opening(opening.command)
            return
        with (self.iut_namespace or self._namespaces[0]).entered():
            run_opening(opening.command)

    def end(self) -> list[Captured]:
        """Stop the case; see :class:`lane.Lane`.

        Raises:
            BedError: the captures are not complete or the clock was set meanwhile.
        """
        found = [
            Captured(
                (time_ns - self._start[1]) / 1e9, point.name, sent == (point.name == "peer"), data
            )
            for point in self._points
            for time_ns, sent, data in point.finish()
            if self._belongs(data)
        ]
        if clocks.was_set(self._start, clocks.look()):
            raise BedError("The host's clock was set during the case; run it again.")
        for point in self._points:
            point.clear()
        return sorted(found, key=lambda packet: packet.time)

    def _belongs(self, packet: bytes) -> bool:
        """Whether a packet is of this case, or too short to tell."""
        address = self.port.address
        return len(packet) < 20 or packet[12:16] == address or packet[16:20] == address

    def iut_alive(self) -> str | None:
        """None while the implementation runs, else one sentence on how it ended."""
        return None if self._process is None else self._process.ended()

    def close(self) -> None:
        """Take down everything the lane made and give back what it borrowed.

        Raises:
            BedError: a borrowed interface could not be put back.
        """
        if self._process is not None:
            self._process.close()
            self._process = None
        for point in self._points:
            point.capture.close()
        if self._resolver is not None:
            self._resolver.close()
            self._resolver = None
        for fd in self._fds:
            os.close(fd)
        borrowed = [one for one in (self._borrowed, self._borrowed_too) if one is not None]
        self._borrowed = self._borrowed_too = None
        try:
            with contextlib.ExitStack() as stack:
                for one in borrowed:
                    stack.callback(one.give_back)
        finally:
            for namespace in self._namespaces:
                namespace.close()
            self._points, self._fds, self._namespaces = [], [], []


def _start(attachment: Attachment, profile: LinkProfile, inherited: Sequence[int]) -> IutProcess:
    values = {
        "address": attachment.address,
        "gateway": attachment.gateway,
        "prefix": str(attachment.prefix),
        "mtu": str(profile.mtu),
        "mac": IUT_MAC.hex(":"),
        "gateway_mac": GATEWAY_MAC.hex(":"),
        "python": sys.executable,
        "fd": str(inherited[0]) if inherited else "",
    }
    command = []
    for word in attachment.command:
        for name, value in values.items():
            word = word.replace(f"{{{name}}}", value)
        command.append(word)
    return IutProcess(
        command,
        ready=attachment.ready,
        ready_timeout=attachment.ready_timeout,
        env=attachment.env,
        cwd=attachment.cwd,
        inherited=inherited,
        listens=attachment.opening is not None and bool(attachment.opening.line),
    )


def _quieten(*interfaces: str) -> None:
    """Switch IPv6 off, so that the kernel sends nothing of its own accord."""
    for name in interfaces:
        switch = f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
        if os.path.exists(switch):
            with open(switch, "w", encoding="ascii") as handle:
                handle.write("1\n")
