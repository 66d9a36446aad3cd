"""Driving boxes: client and server, and how the nonsense probe asks its questions.

What serves is the tester itself; the questions show that connections pass the box, and that nothing
else answers in the server's place.
"""

from __future__ import annotations

from typing import Any, cast

from bentpipe_conformance.engine.lane import Crossing, Lane
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.engine.probe import ECHO_TEXT
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.engine.suite import Driver
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through


class Interview:
    """How a box is asked the questions of the probe."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def open(self, service: str | int) -> Through:
        """A connection through the box; to a number, one that the server refuses."""
        peer = self._peer
        if isinstance(service, str):
            through = peer.connect()
            if service == "echo":
                through.server.on_data = _echo
            return through
        port, _ = peer.listen("refuse", port=service)
        caller = peer.call(port)
        # A box that answers early has to take that back; whether it does so rightly, cases judge.
        peer.run(lambda: caller.was_reset or caller.ended, peer.patience)
        if caller.was_reset or caller.ended or not caller.established:
            raise NotReached("the connection was refused")
        return Through(caller, caller)

    def observed(self, _: Through) -> dict[str, Any]:
        """Nothing of the statement shows in a handshake."""
        return {}

    def echo(self, through: Through) -> bytes:
        """Send :data:`ECHO_TEXT`; return what comes back."""
        client = through.client
        client.write(ECHO_TEXT)
        self._peer.until(lambda: len(client.got) >= len(ECHO_TEXT), "the echoed octets")
        return bytes(client.got)

    def generate(self, through: Through) -> str:
        """The server sends."""
        octets = self._peer.octets(5000)
        through.server.write(octets)
        got = through.client.got
        self._peer.until(lambda: len(got) >= len(octets), "the server's octets")
        return "" if bytes(got) == octets else "the client got other octets than the server sent"

    def take(self, through: Through) -> None:
        """Send :data:`ECHO_TEXT` and wait until it has arrived."""
        through.client.write(ECHO_TEXT)
        got = through.server.got
        self._peer.until(lambda: bytes(got) == ECHO_TEXT, "the octets at the server")


def _echo(end: End) -> None:
    end.write(bytes(end.got[len(end.written) :]))


def _peer(lane: Lane, address: str, settings: RunSettings, seed: int) -> Peer:
    return Peer(
        cast(Crossing, lane), address, settings.rtt, seed, settings.ics.get("connections", 0),
        settings.ics.get("buffer", 0),
    )  # fmt: skip


def _improvise(peer: Peer) -> None:
    from bentpipe_conformance.protocols.pep.improvised import improvise

    improvise(peer)


DRIVER = Driver(peer=_peer, interview=Interview, improvise=_improvise)
