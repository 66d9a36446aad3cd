"""Lanes in a real kernel: on a host as root, or inside User-Mode Linux.

A network namespace, the satellite, holds the link: ``sat_a`` towards the implementation, ``sat_b``
(a TUN device) towards the tester, netem on the way out of either, and a capture on both. All of it
is held by file descriptors of this process and vanishes with it. Instead of ``sat_a`` there may be
one or two interfaces of the host, borrowed for as long as the lane is open.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.bed import netem
from bentpipe_conformance.bed.arp import Resolver
from bentpipe_conformance.bed.borrowed import BorrowedInterface
from bentpipe_conformance.bed.capture import Capture
from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.devices import await_running, clear_offloads, open_tun
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.jail import Confinement
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.bed.port import TunPort
from bentpipe_conformance.bed.process import IutProcess, run_beside
from bentpipe_conformance.bed.recording import Recorder
from bentpipe_conformance.bed.wiring import DEVICE_QUEUE, ROUTER, lay_out_host, quieten
from bentpipe_conformance.engine.lane import GATEWAY_ADDRESS, Captured, Opening, OpenRequest

IUT_ADDRESS, GATEWAY, PREFIX = "10.77.0.2", "10.77.0.1", 24
TESTERS, TESTERS_PREFIX = "10.78.0.0", 16
IUT_MAC, GATEWAY_MAC = b"\x02\x00\x0a\x4d\x00\x02", b"\x02\x00\x0a\x4d\x00\x01"

UNPRIVILEGED = {"net.ipv4.ip_unprivileged_port_start": "0"}
"""In a namespace of its own an implementation needs no right to serve the usual ports."""

Kind = Literal["namespace", "tun", "tap", "address", "between", "pair"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """How an implementation is attached and started.

    Attributes:
        kind: ``namespace`` (its sockets in a namespace behind a veth), ``tun`` or ``tap`` (it
            inherits the file descriptor of a device that carries IP packets or Ethernet frames),
            ``address`` (it is elsewhere, behind an interface of this namespace), ``between`` (its
            sockets in a namespace with an interface towards each of two ends) or ``pair`` (two
            such namespaces with the link between them; for both see
            :class:`~bentpipe_conformance.bed.crossing.CrossingLane`).
        command: how to start it; ``{fd}``, ``{address}``, ``{gateway}``, ``{prefix}``, ``{mtu}``,
            ``{mac}``, ``{gateway_mac}`` and ``{lan}`` are filled in. Empty: nothing is started.
        ready: the line on its standard output by which it reports that it is ready.
        ready_port: instead of a line, the TCP port at which it then listens; 0 for a line.
        setup: commands that are run beside it, with its rights, once it is ready.
        ready_timeout: seconds on the place's clock to wait for it.
        sysctls: kernel parameters of its namespace.
        env: its environment, ours if None.
        cwd: its working directory, ours if None.
        interface: the interface towards it, for kind ``address``.
        address: its IPv4 address; only kind ``address`` has one of its own.
        gateway: the satellite's IPv4 address towards it.
        prefix: length of the prefix of their network.
        sends_on: for kind ``address``, the interface at which its packets arrive if that is not
            ``interface``, through which it then only receives; empty for the same.
        sends_to: the satellite's IPv4 address there, and the length of that network's prefix.
        opening: how it is made to open a connection, None when it cannot be.
        confinement: what it may have, None for the rights of this process; not for kind
            ``address``.
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
    confinement: Confinement | None = None
    ready_port: int = 0
    setup: Sequence[Sequence[str]] = ()


def tester_address(case: int) -> str:
    """The tester's address in a case, counted from 1.

    A new one has no TCP metrics, and tells late packets of earlier cases apart.
    """
    high, low = divmod(case % 64_516 or 1, 254)
    return f"10.78.{high}.{low + 1}"


class KernelLane(Closing):
    """One implementation behind one link laid out by this kernel; see :class:`lane.Lane`."""

    def __init__(
        self,
        profile: LinkProfile,
        attachment: Attachment,
        *,
        timing_error: float = 0.0,
        capture_frames: int = 4096,
    ) -> None:
        """Lay out the link and start the implementation.

        ``timing_error`` (seconds) comes from the bed's check; each capture holds
        ``capture_frames`` packets until it is drained.

        Raises:
            BedError: the kernel cannot lay it out or the implementation does not start.
        """
        self.iut_address = attachment.address
        self.timing_error = timing_error
        self.profile = profile
        self._cases = 0
        self._held = contextlib.ExitStack()
        self._process: IutProcess | None = None
        self._resolver: Resolver | None = None
        self._opening = attachment.opening
        self._confined = attachment.confinement is not None
        self._iut_mac = IUT_MAC
        self._satellite = self._held.enter_context(NetworkNamespace())
        self.iut_namespace: NetworkNamespace | None = None
        try:
            self._lay_out(attachment, capture_frames)
        except BaseException:
            self.close()
            raise

    def _lay_out(self, attachment: Attachment, frames: int) -> None:
        satellite = self._satellite
        ports = [name for name in (attachment.interface, attachment.sends_on) if name]
        wants_rights = attachment.confinement is not None and attachment.confinement.network
        if attachment.kind == "namespace":
            self.iut_namespace = self._held.enter_context(NetworkNamespace(apart=wants_rights))
        borrowed: list[BorrowedInterface] = []
        if attachment.kind == "address":
            if attachment.command:
                self._process = start_program(attachment, self.profile, ())
            borrowed = [
                self._held.enter_context(BorrowedInterface(name, satellite)) for name in ports
            ]
        with contextlib.ExitStack() as near:
            # Closed here once the implementation has them: else the device would outlive it.
            fds: list[int] = []
            with satellite.entered(), Netlink() as netlink:
                far = open_tun("sat_b")
                self._held.callback(os.close, far)
                if self.iut_namespace is not None:
                    fd, mtu = self.iut_namespace.fd, self.profile.mtu
                    netlink.add_veth(ports[0], "eth0", fd, mtu, DEVICE_QUEUE)
                    clear_offloads(ports[0])
                elif not borrowed:
                    fds = [open_tun(ports[0], ethernet=attachment.kind == "tap")]
                    near.callback(os.close, fds[0])
                self._lay_out_link(netlink, attachment, borrowed)
                captures = [
                    *(self._held.enter_context(Capture("iut", name, frames)) for name in ports),
                    self._held.enter_context(Capture("peer", "sat_b", frames)),
                ]
                self._recorder = Recorder(captures)
            satellite.set_sysctls(ROUTER)
            iut = self.iut_namespace or satellite
            if self.iut_namespace is not None:
                with iut.entered():
                    quieten("eth0")
                lay_out_host(iut, (IUT_ADDRESS, IUT_MAC), (GATEWAY, GATEWAY_MAC), PREFIX)
            with satellite.entered():
                await_running(*ports, "sat_b")
            if attachment.kind == "namespace" and attachment.confinement is not None:
                iut.set_sysctls(UNPRIVILEGED)
            iut.set_sysctls(attachment.sysctls)
            if attachment.command and attachment.kind != "address":
                if wants_rights and self.iut_namespace is None:
                    iut = near.enter_context(NetworkNamespace(apart=True))
                with iut.entered():
                    self._process = start_program(attachment, self.profile, fds)
        self.port = TunPort(far, captures)

    def _lay_out_link(
        self, netlink: Netlink, attachment: Attachment, borrowed: Sequence[BorrowedInterface]
    ) -> None:
        """Addresses, routes and netem of the satellite's interfaces."""
        profile = self.profile
        name = attachment.interface
        ethernet = attachment.kind in ("namespace", "tap")
        mac = GATEWAY_MAC if ethernet else None
        quieten(name, "sat_b")
        netlink.set_link(name, mtu=profile.mtu, queue=DEVICE_QUEUE, address=mac)
        netlink.set_link("sat_b", mtu=profile.mtu, queue=DEVICE_QUEUE)
        netlink.add_address(name, attachment.gateway, attachment.prefix)
        if borrowed:
            clear_offloads(name)
            if borrowed[0].resolves:
                # Before netem is laid out, which would delay it.
                await_running(name)
                self._resolver = self._held.enter_context(Resolver(name, attachment.gateway))
                self._iut_mac = self._resolver.resolve(attachment.address)
                ethernet = True
        if ethernet:
            netlink.add_neighbour(name, attachment.address, self._iut_mac)
        netlink.add_route(TESTERS, TESTERS_PREFIX, "sat_b")
        netem.lay_out(netlink, "sat_b", profile.forward, ethernet=False)
        netem.lay_out(netlink, name, profile.return_, ethernet=ethernet)
        if name := attachment.sends_on:
            # Where the implementation sends, the satellite only receives, and answers ARP.
            quieten(name)
            netlink.set_link(name, mtu=profile.mtu, queue=DEVICE_QUEUE)
            netlink.add_address(name, *attachment.sends_to)
            clear_offloads(name)

    def begin(self) -> str:
        """Start a case; see :class:`lane.Lane`."""
        self._cases += 1
        address = tester_address(self._cases)
        self.port.address = bytes(map(int, address.split(".")))
        self.port.discard()
        if self._resolver is not None:
            self._resolver.announce(self.iut_address, self._iut_mac)
        self._recorder.begin()
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
        elif opening.on_host:
            run_beside(opening.command)
        elif self._process is not None and self._confined:
            self._process.call(opening.command)
        else:
            with (self.iut_namespace or self._satellite).entered():
                run_beside(opening.command)

    def abort(self) -> None:
        """Have the implementation's user abort its calls; see :class:`lane.Lane`.

        Raises:
            BedError: the description does not say how.
        """
        if self._opening is None or not self._opening.abort:
            raise BedError(
                "The implementation's user cannot be made to abort; add 'abort' to [open] in its "
                "TOML file, or declare user_aborts = false."
            )
        assert self._process is not None
        self._process.tell(self._opening.abort)

    def end(self) -> list[Captured]:
        """Stop the case; see :class:`lane.Lane`.

        Raises:
            BedError: the captures are not complete or the clock was set meanwhile.
        """
        owners = {self.port.address, socket.inet_aton(GATEWAY_ADDRESS)}
        return self._recorder.end(lambda data: not owners.isdisjoint((data[12:16], data[16:20])))

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
        self._held.close()


def start_program(
    attachment: Attachment, profile: LinkProfile, inherited: Sequence[int] = (), lan: str = ""
) -> IutProcess:
    """Start the implementation in this thread's namespace.

    ``lan`` is the interface of a box of a pair that is not towards the satellite.

    Raises:
        BedError: it does not start.
    """
    values = {
        "address": attachment.address,
        "gateway": attachment.gateway,
        "prefix": attachment.prefix,
        "mtu": profile.mtu,
        "mac": IUT_MAC.hex(":"),
        "gateway_mac": GATEWAY_MAC.hex(":"),
        "python": sys.executable,
        "fd": inherited[0] if inherited else "",
        "lan": lan,
    }
    process = IutProcess(
        Opening(command=tuple(attachment.command)).filled(values).command,
        ready=None if attachment.ready_port else attachment.ready,
        ready_timeout=attachment.ready_timeout,
        env=attachment.env,
        cwd=attachment.cwd,
        inherited=inherited,
        listens=attachment.opening is not None and bool(attachment.opening.line),
        confinement=attachment.confinement if attachment.kind != "address" else None,
        own_network=attachment.kind in ("tun", "tap")
        and not (attachment.confinement is not None and attachment.confinement.network),
    )
    try:
        if attachment.ready_port:
            process.await_listening(attachment.ready_port, attachment.ready_timeout)
        for command in attachment.setup:
            process.call(Opening(command=tuple(command)).filled(values).command, "[start] setup")
    except BaseException:
        process.close()
        raise
    return process
