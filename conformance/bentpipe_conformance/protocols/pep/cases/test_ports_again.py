"""Ports used again, whatever has become of the connection before (PEP-RX-006, PEP-RX-007)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.lane import SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.steps import (
    DEAF,
    HOP,
    both_ways,
    let_go,
    quiet,
    settle,
    unreachable,
)
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Answer, Peer, Through
from bentpipe_conformance.protocols.tcp.codec import MODULUS, build

PATIENCE_S = 250.0
"""Seconds in which ports can be used again."""
HELD = 20_000
DISTANCES = (1_000_000, 50_000, 2_000_000_000)
"""Of initial sequence numbers of connections with the same ports, the last of them backwards."""


def _port(through: Through) -> tuple[int, int]:
    return through.client.local[1], through.server.local[1]


def _filled(peer: Peer) -> Through:
    """A connection whose ends both do not read what waits for them."""
    through = peer.connect(DEAF, DEAF)
    for end in (through.client, through.server):
        end.stop()
        end.write(peer.octets(HELD))
    peer.wait(2 * peer.rtt + 2.0)
    return through


def _both_end(peer: Peer) -> tuple[int, int]:
    through = peer.connect()
    both_ways(peer, through, 2000)
    for end in (through.client, through.server):
        end.close()
    peer.run(lambda: through.client.is_over and through.server.is_over, 20.0)
    return _port(through)


def _client_resets(peer: Peer) -> tuple[int, int]:
    through = _filled(peer)
    through.client.reset()
    settle(peer, through.server)
    return _port(through)


def _server_resets(peer: Peer) -> tuple[int, int]:
    through = _filled(peer)
    through.server.reset()
    settle(peer, through.client)
    return _port(through)


def _called(peer: Peer, answer: Answer) -> tuple[End, int]:
    port, listener = peer.listen(answer)
    client = peer.call(port)
    peer.run(lambda: bool(listener.syns), 5.0)
    return client, port


def _refuses(peer: Peer) -> tuple[int, int]:
    client, port = _called(peer, "refuse")
    settle(peer, client)
    return client.local[1], port


def _cannot_be_reached(peer: Peer) -> tuple[int, int]:
    client, port = _called(peer, "nothing")
    for syn in peer.listener(port).syns[:1]:
        peer.send(SERVER, unreachable(build(syn), HOP, peer.address, 3))
    settle(peer, client)
    return client.local[1], port


def _gives_up(peer: Peer) -> tuple[int, int]:
    client, port = _called(peer, "nothing")
    client.reset()
    listener = peer.listener(port)
    listener.answer = "accept"
    peer.wait(peer.rtt + 6.0)
    let_go(*listener.ends)
    return client.local[1], port


BEFORE: Mapping[str, Callable[[Peer], tuple[int, int]]] = {
    "both have ended at once": _both_end, "the client has reset": _client_resets,
    "the server has reset": _server_resets, "the server has refused": _refuses,
    "the server could not be reached": _cannot_be_reached, "the client has given up": _gives_up,
}  # fmt: skip
"""What has become of a connection; gives the ports of client and server."""


UNSPLIT = "the server has refused", "the server could not be reached"
"""After which a box may leave the next connection whole for a while (PEP-SEC-005)."""


@dataclass(frozen=True, slots=True)
class Again(Row):
    """Connections of the same ports, the first of which ends in some way."""

    before: str = ""


def _drive(peer: Peer, row: Again) -> None:
    own, port = BEFORE[row.before](peer)
    peer.wait(1.0)
    listener = peer.listener(port)
    listener.answer = "accept"
    number = peer.random.getrandbits(32)
    for distance in DISTANCES:
        number = (number + distance) % MODULUS
        made = len(listener.ends)
        client = peer.call(port, Offer(number=number), own_port=own)

        def opened(it: End = client, before: int = made) -> bool:
            return it.established and len(listener.ends) > before

        if not peer.run(opened, PATIENCE_S):
            break
        server = listener.ends[-1]
        for end in (client, server):
            end.write(peer.octets(3000))
        peer.run(lambda a=client, b=server: len(a.got) >= 3000 and len(b.got) >= 3000, 20.0)  # type: ignore[misc]
        client.reset()
        settle(peer, server)
        peer.wait(1.0)
    quiet(peer, 40.0)


def _rows() -> Iterator[Again]:
    for number, before in enumerate(BEFORE, 1):
        yield Again(
            f"closed-ports-again-{number}",
            f"A client calls thrice with ports with which {before} before.",
            ("PEP-RX-007",) if before in UNSPLIT else ("PEP-RX-006", "PEP-RX-007"),
            before=before,
        )  # fmt: skip


each(globals(), _rows(), _drive)
