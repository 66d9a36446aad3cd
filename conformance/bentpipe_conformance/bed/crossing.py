"""A lane in a real kernel on which the implementation stands between two ends.

The box has a network namespace with two interfaces, ``client`` and ``server``, and routes between
them. Behind each is a namespace of ours with the tester's port, a TUN device; that towards the
server is the satellite and holds the link::

    tester == near == [client  the box  server] == far, with netem == tester
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
from bentpipe_conformance.engine.lane import CLIENT, SERVER, Captured

SERVERS, SERVERS_PREFIX = "10.77.0.0", 16
SERVER_ADDRESS = "10.77.0.2"
"""Of the tester, the same in all cases."""
PREFIX = 24
_TESTERS_BEGIN = socket.inet_aton(TESTERS)[: TESTERS_PREFIX // 8]


@dataclass(frozen=True, slots=True)
class _Side:
    """A side of the box.

    Attributes:
        name: of the side, and of the box's interface there.
        network, prefix: where the tester's addresses are.
        box, bed: addresses of the box and of the namespace before it, IPv4 and Ethernet.
    """

    name: str
    network: str
    prefix: int
    box: tuple[str, bytes]
    bed: tuple[str, bytes]


NEAR = _Side(
    CLIENT, TESTERS, TESTERS_PREFIX,
    ("10.79.1.2", b"\x02\x00\x0a\x4f\x01\x02"), ("10.79.1.1", b"\x02\x00\x0a\x4f\x01\x01"),
)  # fmt: skip
FAR = _Side(
    SERVER, SERVERS, SERVERS_PREFIX,
    ("10.79.2.2", b"\x02\x00\x0a\x4f\x02\x02"), ("10.79.2.1", b"\x02\x00\x0a\x4f\x02\x01"),
)  # fmt: skip


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


class CrossingLane(Userless, Closing):
    """One box between two ends; see :class:`~bentpipe_conformance.engine.lane.Crossing`."""

    def __init__(
        self,
        profile: LinkProfile,
        attachment: Attachment,
        *,
        timing_error: float = 0.0,
        capture_frames: int = 4096,
    ) -> None:
        """Lay out both sides and start the box.

        ``timing_error`` (seconds) comes from the bed's check; each capture holds
        ``capture_frames`` packets until it is drained.

        Raises:
            BedError: the kernel cannot lay it out or the box does not start.
        """
        self.iut_address = SERVER_ADDRESS
        self.timing_error = timing_error
        self.profile = profile
        self._cases = 0
        self._altered = False
        self._callers = Callers()
        self._held = contextlib.ExitStack()
        self._process: IutProcess | None = None
        try:
            self._lay_out(attachment, capture_frames)
        except BaseException:
            self.close()
            raise

    def _lay_out(self, attachment: Attachment, frames: int) -> None:
        confined = attachment.confinement
        wants_rights = confined is not None and confined.network
        self._box = box = self._held.enter_context(NetworkNamespace(apart=wants_rights))
        with box.entered(), Netlink() as netlink:
            netlink.set_link("lo")
        self._far = self._held.enter_context(NetworkNamespace())
        near = self._held.enter_context(NetworkNamespace())
        fds = [self._lay_out_side(NEAR, near), self._lay_out_side(FAR, self._far)]
        with self._far.entered(), Netlink() as netlink:
            _lay_out_link(netlink, self.profile)
            peer = self._held.enter_context(Capture("peer", "tester", frames))
        with box.entered():
            own = self._held.enter_context(SidesCapture({CLIENT: CLIENT, SERVER: SERVER}, frames))
        self._recorder = Recorder([own, peer])
        self.port: TunPort = _NearPort(fds[0], [own, peer], self._callers)
        self.far = TunPort(fds[1], [own, peer])
        self.far.address = socket.inet_aton(SERVER_ADDRESS)
        box.set_sysctls({**ROUTER, **UNPRIVILEGED, **attachment.sysctls})
        with box.entered():
            self._process = start_program(attachment, self.profile, ())

    def _lay_out_side(self, side: _Side, space: NetworkNamespace) -> int:
        """One side; the descriptor of the tester's port."""
        mtu = self.profile.mtu
        with space.entered(), Netlink() as netlink:
            fd = open_tun("tester")
            self._held.callback(os.close, fd)
            netlink.add_veth("box", side.name, self._box.fd, mtu, DEVICE_QUEUE)
            clear_offloads("box")
            quieten("box", "tester")
            netlink.set_link("box", mtu=mtu, queue=DEVICE_QUEUE, address=side.bed[1])
            netlink.set_link("tester", mtu=mtu, queue=DEVICE_QUEUE)
            netlink.add_address("box", side.bed[0], PREFIX)
            netlink.add_neighbour("box", *side.box)
            netlink.add_route(side.network, side.prefix, "tester")
            netlink.add_route("0.0.0.0", 0, "box", side.box[0])
        space.set_sysctls(ROUTER)
        with self._box.entered(), Netlink() as netlink:
            quieten(side.name)
            clear_offloads(side.name)
            netlink.set_link(side.name, address=side.box[1])
            netlink.add_address(side.name, side.box[0], PREFIX)
            netlink.add_neighbour(side.name, *side.bed)
            netlink.add_route(side.network, side.prefix, side.name, side.bed[0])
            await_running(side.name)
        with space.entered():
            await_running("box", "tester")
        return fd

    def begin(self) -> str:
        """Start a case; see :class:`~bentpipe_conformance.engine.lane.Lane`."""
        self._cases += 1
        address = tester_address(self._cases)
        self.port.address = socket.inet_aton(address)
        self._callers.begin(self.port.address)
        if self._altered:
            self._set_link(self.profile)
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
        self._set_link(self.profile.altered(**changes))

    def _set_link(self, profile: LinkProfile) -> None:
        with self._far.entered(), Netlink() as netlink:
            _lay_out_link(netlink, profile)

    def iut_alive(self) -> str | None:
        """None while the box runs, else one sentence on how it ended."""
        return None if self._process is None else self._process.ended()

    def close(self) -> None:
        """Take down everything the lane made."""
        if self._process is not None:
            self._process.close()
            self._process = None
        self._held.close()


def _lay_out_link(netlink: Netlink, profile: LinkProfile) -> None:
    """Both directions of the satellite link, anew or as a change of what there is."""
    netem.lay_out(netlink, "tester", profile.forward, ethernet=False)
    netem.lay_out(netlink, "box", profile.return_, ethernet=True)
