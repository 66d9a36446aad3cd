"""The nonsense probe: is the adapter telling the truth, before any verdict is given?

An adapter that answers everything with success would pass every case; one that reaches nothing
would make everything inconclusive. The probe therefore asks for things that must work *and* for
one that must not, and compares the declared conformance statement with the handshake.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bentpipe_conformance.checking import HANDSHAKE_ITEMS
from bentpipe_conformance.lane import Lane
from bentpipe_conformance.peer import Connection, NotReached, Peer
from bentpipe_conformance.running import RunSettings
from bentpipe_conformance.wire import ACK, SYN

UNUSED_PORT = 47
"""A TCP port no upper tester serves (reserved, IANA service name registry)."""

ROLES = ("sack_sender", "sack_receiver")
"""Items that say how a negotiated option is used."""

ECHO_TEXT = b"bentpipe asks for these very octets back: 3.14159 2.71828 1.41421 ~!@#\r\n"


@dataclass(frozen=True, slots=True)
class Probe:
    """What the probe found.

    Attributes:
        problem: one sentence when the adapter cannot be trusted, else empty.
        observed: conformance-statement items as seen in the handshake.
        disagreements: sentences on items where the statement and the handshake differ.
    """

    problem: str = ""
    observed: dict[str, Any] = field(default_factory=dict)
    disagreements: tuple[str, ...] = ()


def probe(lane: Lane, settings: RunSettings) -> Probe:
    """Probe the implementation behind a lane."""
    address = lane.begin()
    peer = Peer(
        lane.port, address, lane.iut_address, rtt=settings.rtt, seed=settings.seed,
        services={**settings.services, "unused": UNUSED_PORT},
    )  # fmt: skip
    try:
        echo = _open(peer, "echo")
        observed = {
            item: getattr(echo.syn_ack, known.attribute) not in (None, False)
            for item, known in HANDSHAKE_ITEMS.items()
        }
        _echoes(echo)
        _generates(_open(peer, "chargen"))
        _takes(_open(peer, "discard"))
        _refuses_nonsense(peer)
    except NotReached as error:
        died = lane.iut_alive()
        cause = f"; the implementation ended: {died}" if died else ""
        return Probe(problem=f"{error}{cause}")
    finally:
        peer.finish()
        lane.end()
    disagreements = tuple(
        f"the conformance statement says {item} = {str(claimed).lower()}, "
        f"the handshake says {str(seen).lower()}"
        for item, seen in observed.items()
        for claimed in (bool(settings.ics.get(item, False)),)
        # What is negotiated need not be used in both roles; what is not negotiated cannot be.
        if (claimed and not seen) or (seen and not claimed and item not in ROLES)
    )
    return Probe(observed=observed, disagreements=disagreements)


def _open(peer: Peer, service: str) -> Connection:
    try:
        return peer.connect(service, timestamps=True)
    except NotReached as error:
        raise NotReached(f"the {service} service cannot be opened: {error}") from error


def _echoes(connection: Connection) -> None:
    connection.send(ECHO_TEXT)
    returned = bytearray()

    def complete() -> bool:
        return connection.delivered >= len(ECHO_TEXT)

    try:
        while not complete():
            segment = connection.expect(what="the echoed octets")
            if segment.start == len(returned):
                returned += segment.tcp.payload
            connection.hold(segment)
            connection.ack()
    except NotReached as error:
        raise NotReached(f"the echo service returned nothing: {error}") from error
    if bytes(returned) != ECHO_TEXT:
        raise NotReached("the echo service returned other octets than were sent")


def _generates(connection: Connection) -> None:
    try:
        connection.receive(3)
    except NotReached as error:
        raise NotReached(f"the chargen service sends no data: {error}") from error


def _takes(connection: Connection) -> None:
    connection.send(ECHO_TEXT)
    try:
        connection.expect(
            lambda segment: segment.ack >= len(ECHO_TEXT), what="an acknowledgment of the data"
        )
    except NotReached as error:
        raise NotReached(f"the discard service takes no data: {error}") from error


def _refuses_nonsense(peer: Peer) -> None:
    try:
        answer = peer.connect("unused").syn_ack
    except NotReached:
        return
    flags = answer.flags if answer is not None else 0
    if flags & (SYN | ACK) == SYN | ACK:
        raise NotReached(
            f"port {UNUSED_PORT}, which nothing serves, accepted a connection, so a success of "
            "this adapter means nothing"
        )
