"""A lane on which the implementation is a box of its own, between interfaces of this machine.

A single box has two ports, a pair has four. The interfaces are borrowed and moved into one
namespace without an address, where nothing but this lane speaks. It is client and server, the
gateway that the boxes have at each port, and the satellite link, which it plays itself on the wall
clock: behind the server's port of a single box, between the satellite's ports of a pair. So it
needs neither netem nor a TUN device. The link delays a packet from when the kernel has received it,
so that only the moment of sending depends on how soon this process wakes.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation

from bentpipe_conformance.bed.arp import Resolver
from bentpipe_conformance.bed.borrowed import BorrowedInterface
from bentpipe_conformance.bed.capture import ETH_P_IP, SOL_PACKET, FacingCapture
from bentpipe_conformance.bed.closing import Closing
from bentpipe_conformance.bed.crossing import SERVER_ADDRESS, Callers
from bentpipe_conformance.bed.devices import await_running, clear_offloads
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.lanes import tester_address
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.bed.recording import Recorder
from bentpipe_conformance.bed.wiring import DEVICE_QUEUE, quieten
from bentpipe_conformance.engine.crossing import Inbox, PortPlace, Userless
from bentpipe_conformance.engine.lane import (
    CLIENT,
    SATELLITE_FAR,
    SATELLITE_NEAR,
    SERVER,
    Captured,
    LaneError,
)

ERROR_S = 0.05
"""Seconds by which a time may be wrong on a machine that is not idle. What is more shows in the
packets, but not where the link was altered: there the case is an error."""

MOST_CASES = 60_000
"""After which the tester's addresses are used again, about."""

_NETWORKS = {SERVER: b"\x0a\x4d", CLIENT: b"\x0a\x4e"}
"""How the tester's addresses begin, at either end."""
_BEYOND = {CLIENT: CLIENT, SATELLITE_NEAR: SERVER, SATELLITE_FAR: CLIENT, SERVER: SERVER}
"""Which end is reached through our end of a cable. A box that bridges may ask for it there."""
_PATH = {
    SATELLITE_NEAR: "satellite", SERVER: "server", SATELLITE_FAR: "satellite", CLIENT: "client",
}  # fmt: skip
"""Who is behind our ends of the cables, in the order in which a call and its answer reach them."""
_TOWARDS = {CLIENT: SERVER, SATELLITE_NEAR: CLIENT, SATELLITE_FAR: SERVER, SERVER: CLIENT}
"""Whither a packet travels that is sent to the box at a port."""
_MEMBERSHIP, _PROMISCUOUS = 1, 1


class _Cable(Closing):
    """Our end of one cable, in this thread's namespace.

    Args:
        place: the port at its other end.
        misplaced: told an address that is asked for here and belongs to another port.
    """

    def __init__(self, place: PortPlace, misplaced: Callable[[str, str], None]) -> None:
        self.place = place
        self.next_hop = b""
        self._misplaced = misplaced
        self._network = _NETWORKS[_BEYOND[place.side]]
        self._gateway = socket.inet_aton(place.gateway or "0.0.0.0")
        # One without a protocol receives nothing.
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            index = socket.if_nametoindex(place.interface)
            # A box that bridges sends us what is addressed to another of our ports.
            wanted = struct.pack("=iHH8s", index, _PROMISCUOUS, 0, b"")
            self._socket.setsockopt(SOL_PACKET, _MEMBERSHIP, wanted)
            self._socket.bind((place.interface, 0))
            self.resolver = Resolver(place.interface, place.gateway or "0.0.0.0", self._owns)
        except BaseException:
            self._socket.close()
            raise

    def send(self, packet: bytes) -> None:
        """Send the box a packet.

        Raises:
            BedError: the interface refuses it.
        """
        header = self.next_hop + self.resolver.mac + struct.pack("!H", ETH_P_IP)
        try:
            self._socket.send(header + packet)
        except OSError as error:
            raise BedError(
                f"The interface {self.place.interface} does not take a packet of {len(packet)} "
                f"octets ({error.strerror}); check the cable and that the box is on."
            ) from None

    def close(self) -> None:
        """Close the sockets."""
        self.resolver.close()
        self._socket.close()

    def _owns(self, address: bytes) -> bool:
        if address == self._gateway or address.startswith(self._network):
            return True
        self._misplaced(socket.inet_ntoa(address), self.place.interface)
        return False


class _Wire:
    """The tester's port on one side; see :class:`~bentpipe_conformance.engine.lane.Port`."""

    def __init__(self, lane: PortsLane, side: str) -> None:
        self._lane = lane
        self._side = side

    def now(self) -> float:
        """Seconds on the machine's monotonic clock."""
        return time.monotonic()

    def send(self, packet: bytes) -> None:
        """Put one IPv4 packet on the wire.

        Raises:
            BedError: the interface refuses it.
        """
        self._lane.send(self._side, packet)

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Block until a packet arrives here or ``deadline`` passes."""
        return self._lane.inbox.receive_at(self._side, deadline)


class _FarEnd:
    """What passes the tester's end of the link of a single box."""

    def __init__(self) -> None:
        self._records: list[tuple[int, bool, bytes]] = []

    def note(self, packet: bytes, *, outgoing: bool) -> None:
        """A packet passes, from the box or to it."""
        self._records.append((time.clock_gettime_ns(time.CLOCK_REALTIME), outgoing, packet))

    def clear(self) -> None:
        """Forget what has passed."""
        self._records = []

    def captured(self, begun: int) -> Iterable[Captured]:
        """What has passed, its times in seconds since ``begun``, in nanoseconds."""
        for at, outgoing, packet in self._records:
            yield Captured((at - begun) / 1e9, "peer", outgoing, packet)


class PortsLane(Userless, Closing):
    """One box, or a pair, behind its ports; it is a :class:`Crossing`.

    Args:
        profile: the link; ``forward`` leads to the server.
        places: the ports, two or four.
        timing_error: seconds by which a time may be wrong.
        capture_frames: packets that are held until they are drained.
    """

    def __init__(
        self, profile: LinkProfile, places: Sequence[PortPlace], *, timing_error: float = ERROR_S,
        capture_frames: int = 4096,
    ) -> None:  # fmt: skip
        """Borrow the interfaces and find the box.

        Raises:
            BedError: there is no such interface, no permission, or nothing answers.
        """
        self.iut_address = SERVER_ADDRESS
        self.timing_error = timing_error
        self.profile = profile
        # A box remembers the addresses of earlier lanes, such as the probe's.
        self._cases = int(time.time()) % MOST_CASES
        self._altered = False
        self._late = 0.0
        self._swapped = ""
        self._heard: set[str] = set()
        self._callers = Callers()
        self.inbox = Inbox(self._run)
        self._client = b""
        self._simulation = Simulation()
        self._simulation.run_until(time.monotonic())
        self._places = {place.side: place for place in places}
        self.port, self.far = _Wire(self, CLIENT), _Wire(self, SERVER)
        self._held = contextlib.ExitStack()
        try:
            self._cables = self._lay_out(capture_frames)
            self._ways = self._laid_link()
            self._find()
        except BaseException:
            self.close()
            raise

    def _lay_out(self, frames: int) -> dict[str, _Cable]:
        space = self._held.enter_context(NetworkNamespace())
        names = {place.interface: side for side, place in self._places.items()}
        for name in names:
            borrowed = self._held.enter_context(BorrowedInterface(name, space))
            if not borrowed.resolves:
                raise BedError(
                    f"{name} is no Ethernet interface; name one, with a cable to a port."
                )
        cables = {}
        with space.entered(), Netlink() as netlink:
            quieten(*names)
            for name in names:
                clear_offloads(name)
                netlink.set_link(name, mtu=self.profile.mtu, queue=DEVICE_QUEUE)
            for name, side in names.items():
                try:
                    await_running(name)
                except BedError:
                    raise BedError(
                        f"Nothing is connected to {name}; check the cable and that the box is on."
                    ) from None
                cable = _Cable(self._places[side], self._is_misplaced)
                cables[side] = self._held.enter_context(cable)
            self._capture = self._held.enter_context(FacingCapture(names, frames))
        space.set_sysctls({"net.ipv4.ip_forward": "0"})
        self._link_end = _FarEnd()
        self._recorder = Recorder([self._capture, self._link_end])
        return cables

    def _laid_link(self) -> tuple[VirtualLink[bytes], VirtualLink[bytes]]:
        pair = SATELLITE_FAR in self._cables
        beyond = partial(self._cross, SATELLITE_FAR if pair else "")
        back = partial(self._cross, SATELLITE_NEAR if pair else SERVER)
        directions = self.profile.forward, self.profile.return_
        forward, return_ = (
            VirtualLink(self._simulation, direction, deliver, seed)
            for seed, (direction, deliver) in enumerate(
                zip(directions, (beyond, back), strict=True)
            )
        )
        return forward, return_

    def _find(self) -> None:
        """Learn the Ethernet address of the next hop at each port."""
        macs = {side: cable.resolver.mac for side, cable in self._cables.items()}
        for side, cable in self._cables.items():
            address = cable.place.address
            cable.next_hop = self._resolved(cable) if address else macs[_TOWARDS[side]]

    def _resolved(self, cable: _Cable) -> bytes:
        place = cable.place
        try:
            return cable.resolver.resolve(place.address)
        except BedError:
            for other in self._cables.values():
                with contextlib.suppress(BedError):
                    if other is not cable and other.resolver.resolve(place.address):
                        raise LaneError(
                            f"{place.address} answers behind {other.place.interface}, not behind "
                            f"{place.interface}: the ports are swapped, exchange the cables."
                        ) from None
            raise

    # -- the case -------------------------------------------------------------------------------

    def begin(self) -> str:
        """Start a case; see :class:`~bentpipe_conformance.engine.lane.Lane`."""
        self._cases += 1
        address = tester_address(self._cases)
        self._client = socket.inet_aton(address)
        self._callers.begin(self._client)
        if self._altered:
            self._set_link(self.profile)
            self._altered = False
        for cable in self._cables.values():
            if cable.place.address:
                cable.resolver.announce(cable.place.address, cable.next_hop)
        self._pump()
        self.inbox.clear()
        self._late = 0.0
        self._recorder.begin()
        return address

    def end(self) -> list[Captured]:
        """Stop the case; see :class:`~bentpipe_conformance.engine.lane.Lane`.

        Where the link was altered, what passed the tester's end of it is left out: by it, the error
        would be measured against a link that there was not.

        Raises:
            BedError: the captures are not complete, the clock was set, or the link was late.
        """
        self._pump()
        found = self._recorder.end(self._is_evidence)
        if self._altered and self._late > self.timing_error:
            raise BedError(
                f"This machine was too busy: a packet left the link {1000 * self._late:.0f} ms "
                "late; run it again with nothing beside it."
            )
        return [item for item in found if item.point == "iut" or not self._altered]

    def silent(self) -> str:
        """Where nothing has ever come from, and what may be wrong; empty if from everywhere."""
        if self._swapped:
            return self._swapped
        for side, who in _PATH.items():
            if side in self._places and side not in self._heard:
                place = self._places[side]
                begin = socket.inet_ntoa(_NETWORKS[_BEYOND[side]] + bytes(2))
                route = f" and routes {begin}/16 to {place.gateway}" if place.gateway else ""
                return (
                    f"nothing has come from the box to {place.interface}, where the {who} is; "
                    f"check that it forwards{route}"
                )
        return ""

    def receive(self, deadline: float) -> tuple[float, str, bytes] | None:
        """What arrives next at either port; see :class:`Crossing`."""
        return self.inbox.receive(deadline)

    def send(self, side: str, packet: bytes) -> None:
        """Send as client or server.

        Raises:
            BedError: the interface refuses it.
        """
        self._pump()
        if side == CLIENT:
            self._callers.note(packet)
        if side == SERVER and SATELLITE_FAR not in self._cables:
            self._link_end.note(packet, outgoing=False)
            self._ways[1].send(packet, len(packet))
        else:
            self._cables[side].send(packet)

    def alter_link(self, **changes: object) -> None:
        """Change both directions of the satellite link."""
        self._pump()
        self._altered = True
        self._set_link(self.profile.altered(**changes))

    def iut_alive(self) -> str | None:
        """None: nobody knows but by its packets."""
        return None

    def close(self) -> None:
        """Give back what was borrowed.

        Raises:
            BedError: an interface could not be put back.
        """
        self._held.close()

    # -- the link -------------------------------------------------------------------------------

    def _set_link(self, profile: LinkProfile) -> None:
        for way, direction in zip(self._ways, (profile.forward, profile.return_), strict=True):
            way.direction = direction

    def _run(self, arrived: Callable[[], bool], deadline: float) -> None:
        fds = [self._capture.fd, *(cable.resolver.fd for cable in self._cables.values())]
        while True:
            self._pump()
            now = time.monotonic()
            if arrived() or now >= deadline:
                return
            due = self._simulation.next_time()
            left = (deadline if due is None else min(due, deadline)) - now
            select.select(fds, [], [], max(0.0, left))

    def _pump(self) -> None:
        """Take in what has arrived, and do what is due."""
        for cable in self._cables.values():
            cable.resolver.serve()
        self._capture.drain()
        arrived, self._capture.arrived = self._capture.arrived, []
        ahead = time.monotonic() - time.time()
        for at, side, packet in arrived:
            self._simulation.run_until(at + ahead)
            self._late = max(self._late, self._simulation.now - at - ahead)
            self._arrive(side, packet)
        self._simulation.run_until(time.monotonic())

    def _arrive(self, side: str, packet: bytes) -> None:
        """A packet of the box has arrived at one of our interfaces."""
        self._heard.add(side)
        if side == SATELLITE_FAR:
            self._ways[1].send(packet, len(packet))
        elif side == SATELLITE_NEAR or (side == SERVER and SATELLITE_FAR not in self._cables):
            self._ways[0].send(packet, len(packet))
        else:
            self._deliver(side, packet)

    def _cross(self, side: str, packet: bytes) -> None:
        """A packet has crossed the link, to a port of the box or to the server."""
        self._late = max(self._late, time.monotonic() - self._simulation.now)
        if side:
            self._cables[side].send(packet)
        else:
            self._link_end.note(packet, outgoing=True)
            self._deliver(SERVER, packet)

    def _deliver(self, side: str, packet: bytes) -> None:
        wanted = self._client if side == CLIENT else socket.inet_aton(SERVER_ADDRESS)
        short = len(packet) < 20
        if short or (packet[16:20] == wanted and self._callers.belongs(packet)):
            self.inbox.put(time.monotonic(), side, packet)

    def _is_evidence(self, packet: bytes) -> bool:
        """Whether a packet is of this case, and not what the box has to say to others."""
        ours = any(
            packet[at : at + 2] == network for at in (12, 16) for network in _NETWORKS.values()
        )
        return ours and self._callers.belongs(packet)

    def _is_misplaced(self, address: str, interface: str) -> None:
        """Somebody asks for an address at a port that does not have it."""
        for place in self._places.values():
            if place.gateway == address and place.interface != interface:
                self._swapped = (
                    f"the box asks for {address} at {interface}, and its gateway is at "
                    f"{place.interface}: the ports are swapped, exchange the cables"
                )
