"""A lane: one implementation under test, one link, one tester port.

The suites see only these protocols, so that a case runs unchanged in the simulation, inside
User-Mode Linux and on a host's own netem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, Protocol

from bentpipe_reference.common.record import record

GATEWAY_ADDRESS = "10.78.255.254"
"""The tester's second address, the same in all cases: that of a device of the link which an
implementation is configured with. No case has it as the tester's own."""

NANO = 1_000_000_000
"""Nanoseconds in a second: the resolution of stored captures."""

LARGEST_PACKET = 1900
"""Octets of the largest packet that a script may send: what captures of the test bed have room for.

Those of more than a link's MTU are cut into fragments there.
"""


class LaneError(Exception):
    """The bed, not the implementation, failed; the case's verdict is *error*."""


Point = Literal["iut", "peer"]
"""Where a packet was captured: at the implementation's side of the link, or at the tester's."""

CLIENT, SERVER = "client", "server"
"""The sides of an implementation that stands between two ends, both of which the tester is."""
OTHER_SIDE = {CLIENT: SERVER, SERVER: CLIENT}

SATELLITE_NEAR, SATELLITE_FAR = "satellite-near", "satellite-far"
"""Where two such implementations have the satellite link between them: its end towards the client,
and that towards the server."""


class Port(Protocol):
    """The tester's end of the link; it carries plain IPv4 packets."""

    def now(self) -> float:
        """Seconds on a monotonic clock, shared with the captures' time base."""

    def send(self, packet: bytes) -> None:
        """Put one IPv4 packet on the link."""

    def receive(self, deadline: float) -> tuple[float, bytes] | None:
        """Block until a packet arrives or ``deadline`` (on :meth:`now`'s clock) passes."""


SIMULATION_ERROR_S = 1e-6
"""Timing error of the simulation, in seconds: rounding only."""


@record
class Captured:
    """One IPv4 packet seen at one capture point.

    Attributes:
        time: seconds since the case began.
        point: the capture point.
        outgoing: True when the packet travels from the implementation to the tester.
        data: the whole IPv4 packet.
        side: the port of an implementation that has more than one: :data:`CLIENT`,
            :data:`SERVER`, :data:`SATELLITE_NEAR` or :data:`SATELLITE_FAR`; else empty.
    """

    time: float
    point: Point
    outgoing: bool
    data: bytes
    side: str = ""


def nanoseconds(item: Captured) -> int:
    """The time of a packet as it is stored, in whole nanoseconds."""
    return round(item.time * NANO)


_PLACE = attrgetter("time", "point")


def as_recorded(captured: Iterable[Captured]) -> list[Captured]:
    """The packets as reading them back from a bundle gives them.

    Times are whole nanoseconds and packets are in time order. At equal times those at the
    implementation's side come first, and each point keeps its own order. A live verdict is given
    on these packets, so that judging the stored ones again gives the same.
    """
    rounded = [
        Captured(round(item.time * NANO) / NANO, item.point, item.outgoing, item.data, item.side)
        for item in captured
    ]
    return sorted(rounded, key=_PLACE)


PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""What stands for a value in a word of a command."""


def filled(word: str, values: Mapping[str, object]) -> str:
    """A word with these placeholders filled in; others stay."""
    return PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), word)


@dataclass(frozen=True, slots=True)
class Opening:
    """How an implementation is made to open a connection (the adapter command).

    Attributes:
        line: a line for its standard input, with ``{tester}``, ``{udp_port}``, ``{port}``,
            ``{service}`` and ``{octets}`` to be filled in; empty for a command.
        command: words of a command with the same placeholders; empty for a line. Neither: the
            lane asks the implementation itself.
        abort: a line for its standard input that has its user abort every connection which it
            has been made to open; empty when there is none.
        on_host: the command runs on the host, not in the bed's network namespace: it reaches the
            implementation through a port other than the one that is tested.
    """

    line: str = ""
    command: tuple[str, ...] = ()
    on_host: bool = False
    abort: str = ""

    def filled(self, values: Mapping[str, object]) -> Opening:
        """With the placeholders filled in."""
        words = tuple(filled(word, values) for word in self.command)
        return Opening(filled(self.line, values), words, self.on_host, self.abort)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What to open.

    Attributes:
        tester: the tester's IPv4 address.
        port: the tester's port in the protocol under test: 9 (discard: the implementation sends)
            or 19 (chargen: the implementation receives, until the tester closes).
        octets: how much to send at least, to port 9.
        udp_port: the tester's UDP port, 0 where the protocol travels directly in IP.
    """

    tester: str
    port: int
    octets: int
    udp_port: int = 0

    @property
    def service(self) -> str:
        """What the implementation does on the connection: ``chargen`` (send) or ``discard``."""
        return {9: "chargen", 19: "discard"}[self.port]


class Lane(Protocol):
    """One implementation under test behind one link, and the tester's port in front of it."""

    iut_address: str
    timing_error: float
    """Seconds by which the bed may be wrong about a time, as its own check measured."""

    @property
    def port(self) -> Port:
        """The tester's end of the link."""

    def begin(self) -> str:
        """Start a case with empty captures; return the tester address to use in it."""

    def open(self, request: OpenRequest) -> None:
        """Have the implementation open a connection to the tester; returns at once.

        Raises:
            LaneError: it cannot be asked to.
        """

    def abort(self) -> None:
        """Have the implementation's user abort what it was made to open; returns at once.

        Raises:
            LaneError: it cannot be asked to.
        """

    def end(self) -> list[Captured]:
        """Stop the case; return what was captured at both points, in time order."""

    def iut_alive(self) -> str | None:
        """None while the implementation runs, else one sentence on how it ended."""

    def close(self) -> None:
        """Take down everything the lane made."""


class Crossing(Lane, Protocol):
    """A lane on which the implementation stands between two ends, both of which the tester is.

    ``port`` is that of the client, ``iut_address`` an address of the server: the implementation
    has none.
    """

    @property
    def far(self) -> Port:
        """The server's port."""

    def receive(self, deadline: float) -> tuple[float, str, bytes] | None:
        """Block until a packet arrives at either port, or ``deadline`` passes.

        Returns:
            When it arrived, at which side, and the packet.
        """

    def alter_link(self, **changes: object) -> None:
        """Change both directions of the satellite link, see the fields of a profile's direction.

        What is not named is as the profile has it, whatever was changed before.
        """
