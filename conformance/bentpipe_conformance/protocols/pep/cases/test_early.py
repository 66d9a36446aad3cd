"""What a client does before its server answers, and what then becomes of it (PEP-OP, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.steps import HOP, quiet, unreachable
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Listener, Peer
from bentpipe_conformance.protocols.tcp.codec import build

PORT_UNREACHABLE = 3
LATE_S = 2.0
"""Seconds after which the server says something."""

OCTETS: Mapping[str, int] = {"nothing": 0, "little": 300, "much": 30_000}
THEN = "waits", "ends", "resets"
SERVERS = "accepts", "greets", "ends at once", "refuses", "cannot be reached"


@dataclass(frozen=True, slots=True)
class Early(Row):
    """Calls of clients that have said so much, and have done something then.

    Attributes:
        server: what it does in the end, once it was called again.
    """

    server: str = ""


def _answers(peer: Peer, listener: Listener, server: str) -> None:
    """The server says something, now or when it is called the next time."""
    if server == "cannot be reached":
        syn = listener.syns[-1]
        peer.send(SERVER, unreachable(build(syn), HOP, peer.address, PORT_UNREACHABLE))
    else:
        listener.answer = "refuse" if server == "refuses" else "accept"


def _call(peer: Peer, server: str, octets: int, then: str) -> None:
    def welcome(end: End) -> None:
        if server != "accepts":
            end.write(peer.octets(400))
        if server == "ends at once":
            end.close()

    port, listener = peer.listen("nothing", welcome=welcome)
    client = peer.call(port)
    peer.run(lambda: client.established and bool(listener.syns), peer.rtt + 1.0)
    client.write(peer.octets(octets))
    if then == "ends":
        client.close()
    elif then == "resets":
        peer.wait(0.3)
        client.reset()
    peer.wait(LATE_S)
    calls = len(listener.syns)
    if calls:
        _answers(peer, listener, server)
        if then == "resets" and listener.answer == "accept":
            # A SYN that the box has sent before may still be answered.
            peer.answer(listener, listener.syns[-1])
    peer.run(lambda: client.was_reset or len(listener.syns) > calls, 9.0)
    peer.wait(2 * peer.rtt + 2.0)
    ends = [client, *listener.ends[-1:]]
    if then == "resets" or any(end.was_reset for end in ends):
        return
    for end in ends:
        end.close()
    peer.run(lambda: all(end.is_over for end in ends), 40.0)


def _drive(peer: Peer, row: Early) -> None:
    for octets, then in product(OCTETS.values(), THEN):
        _call(peer, row.server, octets, then)
    quiet(peer)


def _rows() -> Iterator[Early]:
    failed = ("PEP-OP-008",)
    rules = {"accepts": ("PEP-OP-009", "PEP-OP-011"), "greets": ("PEP-OP-009", "PEP-OP-011"),
             "ends at once": ("PEP-OP-009", "PEP-RE-017"), "refuses": failed,
             "cannot be reached": failed}  # fmt: skip
    for number, server in enumerate(SERVERS, 1):
        yield Early(
            f"opening-early-{number}",
            f"Clients that have said nothing, little or much, and wait, have ended or have reset, "
            f"before the server {server}.",
            rules[server], needs=("opening=early",), server=server,
        )  # fmt: skip


each(globals(), _rows(), _drive)
