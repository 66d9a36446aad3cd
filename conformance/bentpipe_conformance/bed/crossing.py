"""A lane in a real kernel on which the implementation stands between two ends.

The box has a network namespace with two interfaces, ``client`` and ``server``, and routes between
them. Behind each is a namespace of ours with the tester's port, a TUN device; that towards the
server is the satellite and holds the link::

    tester == near == [client  the box  server] == far, with netem == tester

A pair of boxes has the satellite in a namespace between them::

    tester == near == [client  box  satellite] == netem == [satellite  box  server] == far == tester
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.bed import netem
from bentpipe_conformance.bed.capture import Capture, SidesCapture
from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.devices import await_running, clear_offloads, open_tun
from bentpipe_conformance.bed.lanes import (
    TESTERS,
    TESTERS_PREFIX,
    UNPRIVILEGED,
    Attachment,
    start_program,
    tester_address,
)
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.bed.port import TunPort
from bentpipe_conformance.bed.process import IutProcess
from bentpipe_conformance.bed.recording import Recorder
from bentpipe_conformance.bed.wiring import DEVICE_QUEUE, ROUTER, quieten
from bentpipe_conformance.engine.crossing import Userless
from bentpipe_conformance.engine.lane import (
    CLIENT,
    SATELLITE_FAR,
    SATELLITE_NEAR,
    SERVER,
    Captured,
)

SERVERS, SERVERS_PREFIX = "10.77.0.0", 16
SERVER_ADDRESS = "10.77.0.2"
"""Of the tester, the same in all cases."""
PREFIX = 24
_TESTERS_BEGIN = socket.inet_aton(TESTERS)[: TESTERS_PREFIX // 8]


@dataclass(frozen=True, slots=True)
class _Cable:
    """From a box to a namespace of ours.

    Attributes:
        side: of the box.
        name: of the box's interface there.
        network, prefix: the tester's addresses that are beyond it.
        box, bed: addresses of the box and of ours, IPv4 and Ethernet.
    """

    side: str
    name: str
    network: str
    prefix: int
    box: tuple[str, bytes]
    bed: tuple[str, bytes]


def _cable(number: int, side: str, name: str, network: str, prefix: int) -> _Cable:
    ours, theirs = (
        (f"10.79.{number}.{end}", bytes((2, 0, 0x0A, 0x4F, number, end))) for end in (1, 2)
    )
    return _Cable(side, name, network, prefix, theirs, ours)


_CLIENTS, _BEYOND = (TESTERS, TESTERS_PREFIX), (SERVERS, SERVERS_PREFIX)
NEAR, FAR = _cable(1, CLIENT, CLIENT, *_CLIENTS), _cable(2, SERVER, SERVER, *_BEYOND)
_UP, _DOWN = (
    _cable(3, SATELLITE_NEAR, "satellite", *_BEYOND),
    _cable(4, SATELLITE_FAR, "satellite", *_CLIENTS),
)


class Callers:
    """Addresses from which the tester has called, which tell packets of earlier cases apart.

    A box goes on with what a case has left behind, such as calls for clients that do not exist.
    """

    def __init__(self) -> None:
        self._now: set[bytes] = set()
        self._gone: set[bytes] = set()

    def begin(self, client: bytes) -> None:
        """A case begins, with a client at this address."""
        self._gone |= self._now
        self._now = {client}

    def note(self, packet: bytes) -> None:
        """The tester sends a packet at the client's side."""
        # Not one with the server's address, which is the same in all cases.
        if packet[12:14] == _TESTERS_BEGIN:
            self._now.add(packet[12:16])

    def belongs(self, packet: bytes) -> bool:
        """Whether a packet is not of a client of an earlier case alone."""
        ends = {packet[12:16], packet[16:20]}
        return not ends & self._gone or bool(ends & self._now)


class _NearPort(TunPort):
    """The tester's end at the client's side."""

    def __init__(self, fd: int, captures: Sequence[Capture], callers: Callers) -> None:
        super().__init__(fd, captures)
        self._callers = callers

    def send(self, packet: bytes) -> None:
        """See :class:`TunPort`."""
        self._callers.note(packet)
        super().send(packet)


@dataclass(frozen=True, slots=True)
class _Link:
    """Where the satellite link is.

    Attributes:
        space: the namespace that holds it.
        forward, back: the interface by which either direction leaves, and whether it is Ethernet.
    """

    space: NetworkNamespace
    forward: tuple[str, bool]
    back: tuple[str, bool]

    def set(self, profile: LinkProfile) -> None:
        """Lay out both directions, anew or as a change of what there is."""
        ways = ((self.forward, profile.forward), (self.back, profile.return_))
        with self.space.entered(), Netlink() as netlink:
            for (name, ethernet), direction in ways:
                netem.lay_out(netlink, name, direction, ethernet=ethernet)


class CrossingLane(Userless, Closing):
    """A box between two ends, or a pair; see :class:`~bentpipe_conformance.engine.lane.Crossing`.

    Args:
        profile: the link; ``forward`` leads to the server.
        attachment: of kind ``between`` or ``pair``, how the box is started.
        far: of a pair, how the box at the server is started; None for the same.
        timing_error: seconds, from the bed's check.
        capture_frames: packets that each capture holds until it is drained.
    """

    def __init__(
        self,
        profile: LinkProfile,
        attachment: Attachment,
        far: Attachment | None = None,
        *,
        timing_error: float = 0.0,
        capture_frames: int = 4096,
    ) -> None:
        """Lay out both sides and start the box, or both.

        Raises:
            BedError: the kernel cannot lay it out or a box does not start.
        """
        self.iut_address = SERVER_ADDRESS
        self.timing_error = timing_error
        self.profile = profile
        self._cases = 0
        self._altered = False
        self._callers = Callers()
        self._held = contextlib.ExitStack()
        self._boxes: list[NetworkNamespace] = []
        self._processes: list[IutProcess] = []
        try:
            if attachment.kind == "pair":
                self._lay_out_pair(attachment, far or attachment, capture_frames)
            else:
                self._lay_out(attachment, capture_frames)
        except BaseException:
            self.close()
            raise

    def _lay_out(self, attachment: Attachment, frames: int) -> None:
        """A single box: the link lies behind its server's port."""
        box = self._new_box(attachment)
        (_, near), (satellite, far) = self._lay_out_end(NEAR, box), self._lay_out_end(FAR, box)
        self._link = _Link(satellite, ("tester", False), ("box", True))
        self._finish((near, far), [(attachment, box, (NEAR, FAR))], frames)

    def _lay_out_pair(self, near: Attachment, far: Attachment, frames: int) -> None:
        """Two boxes: the link lies between them."""
        boxes = self._new_box(near), self._new_box(far)
        fds = [
            self._lay_out_end(cable, box)[1] for cable, box in zip((NEAR, FAR), boxes, strict=True)
        ]
        satellite = self._held.enter_context(NetworkNamespace())
        ends = ((_UP, boxes[0], "near", _CLIENTS), (_DOWN, boxes[1], "far", _BEYOND))
        for cable, box, name, behind in ends:
            self._connect(cable, satellite, name, box)
            with satellite.entered(), Netlink() as netlink:
                netlink.add_route(*behind, name, cable.box[0])
        satellite.set_sysctls(ROUTER)
        with satellite.entered():
            await_running("near", "far")
        self._link = _Link(satellite, ("far", True), ("near", True))
        cabled = [(near, boxes[0], (NEAR, _UP)), (far, boxes[1], (_DOWN, FAR))]
        self._finish(fds, cabled, frames)

    def _new_box(self, attachment: Attachment) -> NetworkNamespace:
        confined = attachment.confinement
        wants_rights = confined is not None and confined.network
        box = self._held.enter_context(NetworkNamespace(apart=wants_rights))
        with box.entered(), Netlink() as netlink:
            netlink.set_link("lo")
        self._boxes.append(box)
        return box

    def _lay_out_end(self, cable: _Cable, box: NetworkNamespace) -> tuple[NetworkNamespace, int]:
        """One end: its namespace, and the descriptor of the tester's port in it."""
        space = self._held.enter_context(NetworkNamespace())
        with space.entered(), Netlink() as netlink:
            fd = open_tun("tester")
            self._held.callback(os.close, fd)
            quieten("tester")
            netlink.set_link("tester", mtu=self.profile.mtu, queue=DEVICE_QUEUE)
            netlink.add_route(cable.network, cable.prefix, "tester")
        self._connect(cable, space, "box", box)
        with space.entered(), Netlink() as netlink:
            netlink.add_route("0.0.0.0", 0, "box", cable.box[0])
        space.set_sysctls(ROUTER)
        with space.entered():
            await_running("box", "tester")
        return space, fd

    def _connect(
        self, cable: _Cable, space: NetworkNamespace, name: str, box: NetworkNamespace
    ) -> None:
        """Lay a cable between the interface ``name`` of a namespace and a box."""
        mtu = self.profile.mtu
        with space.entered(), Netlink() as netlink:
            netlink.add_veth(name, cable.name, box.fd, mtu, DEVICE_QUEUE)
            clear_offloads(name)
            quieten(name)
            netlink.set_link(name, mtu=mtu, queue=DEVICE_QUEUE, address=cable.bed[1])
            netlink.add_address(name, cable.bed[0], PREFIX)
            netlink.add_neighbour(name, *cable.box)
        with box.entered(), Netlink() as netlink:
            quieten(cable.name)
            clear_offloads(cable.name)
            netlink.set_link(cable.name, address=cable.box[1])
            netlink.add_address(cable.name, cable.box[0], PREFIX)
            netlink.add_neighbour(cable.name, *cable.bed)
            netlink.add_route(cable.network, cable.prefix, cable.name, cable.bed[0])
            await_running(cable.name)

    def _finish(
        self, fds: Sequence[int],
        boxes: Sequence[tuple[Attachment, NetworkNamespace, tuple[_Cable, _Cable]]], frames: int,
    ) -> None:  # fmt: skip
        """Lay out the link, capture, and start what is in the boxes."""
        self._link.set(self.profile)
        with self._link.space.entered():
            peer = self._held.enter_context(Capture("peer", self._link.forward[0], frames))
        captures: list[Capture] = []
        for _, box, cables in boxes:
            with box.entered():
                sides = {cable.name: cable.side for cable in cables}
                captures.append(self._held.enter_context(SidesCapture(sides, frames)))
        captures.append(peer)
        self._recorder = Recorder(captures)
        self.port: TunPort = _NearPort(fds[0], captures, self._callers)
        self.far = TunPort(fds[1], captures)
        self.far.address = socket.inet_aton(SERVER_ADDRESS)
        for attachment, box, cables in boxes:
            box.set_sysctls({**ROUTER, **UNPRIVILEGED, **attachment.sysctls})
            lan = next(cable.name for cable in cables if cable in (NEAR, FAR))
            with box.entered():
                self._processes.append(start_program(attachment, self.profile, lan=lan))

    def begin(self) -> str:
        """Start a case; see :class:`~bentpipe_conformance.engine.lane.Lane`."""
        self._cases += 1
        address = tester_address(self._cases)
        self.port.address = socket.inet_aton(address)
        self._callers.begin(self.port.address)
        if self._altered:
            self._link.set(self.profile)
            self._altered = False
        for port in (self.port, self.far):
            port.discard()
        self._recorder.begin()
        return address

    def end(self) -> list[Captured]:
        """Stop the case; see :class:`~bentpipe_conformance.engine.lane.Lane`.

        Where the link was altered, what the tester's side captured is left out: by it, the error of
        the bed would be measured against a link that there was not.

        Raises:
            BedError: the captures are not complete or the clock was set meanwhile.
        """
        found = self._recorder.end(self._callers.belongs)
        return [item for item in found if item.point == "iut" or not self._altered]

    def receive(self, deadline: float) -> tuple[float, str, bytes] | None:
        """What arrives next at either port; see :class:`Crossing`."""
        ports = ((CLIENT, self.port), (SERVER, self.far))
        while True:
            for side, port in ports:
                while (packet := port.take()) is not None:
                    if len(packet) < 20 or self._callers.belongs(packet):
                        return time.monotonic(), side, packet
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            select.select([port.fd for _, port in ports], [], [], left)

    def alter_link(self, **changes: object) -> None:
        """Change both directions of the satellite link.

        Raises:
            BedError: the kernel cannot do that.
        """
        self._altered = True
        self._link.set(self.profile.altered(**changes))

    def iut_alive(self) -> str | None:
        """None while each box runs, else one sentence on how one ended."""
        return next(filter(None, (process.ended() for process in self._processes)), None)

    def close(self) -> None:
        """Take down everything the lane made."""
        while self._processes:
            self._processes.pop().close()
        self._held.close()
