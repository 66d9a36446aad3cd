"""One connection used by one program from its call to its end: what ``bentpipe stp`` runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from bentpipe_reference.common.services import DISCARD, ECHO
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.io.addresses import Place, SocketAddress
from bentpipe_reference.stp.io.node import Node, listening, towards
from bentpipe_reference.stp.io.transfers import Download, Transfer, Upload
from bentpipe_reference.stp.packets import Reason
from bentpipe_reference.stp.services import Service
from bentpipe_reference.stp.states import State

DEFAULT_PORT, DEFAULT_ECHO_PORT = DISCARD, ECHO
"""STP ports where none is given: a sender finds a discard service as well as a receiver."""

PATIENCE_S = 3.0
"""How long the END of a connection that failed may wait for its ENDAK: two transmissions.

One that succeeded stays until it is released, for the peer may still have to learn that: where the
peer has vanished, for the release wait (STP-CC-031) and five transmissions of the END.
"""


def serve_place(place: Place, config: StpConfig) -> Node:
    """A node that can be called at ``place``.

    Raises:
        StpIoError: the address is unknown, not ours, in use or forbidden.
    """
    return Node(config, listening(place, config))


def dial(place: Place, config: StpConfig, port: int) -> Program:
    """A program that calls the service port of ``place``, ``port`` if it names none.

    Raises:
        StpIoError: the name is unknown, there is no route, or root is required.
    """
    carrier = towards(place, config)
    program = Program(Node(config, carrier), place)
    program.call(carrier.peer, place.service_port or port)
    return program


@dataclass(frozen=True, slots=True)
class Result:
    """How a program's connection ended.

    Attributes:
        success: both streams were acknowledged to their ends.
        sentence: for people.
        interrupted: number of the signal that ended it, 0 for none.
        octets: of user data: acknowledged by the peer, or received.
        seconds: from the call to the end of the connection.
        sha256: of the data read from, or written to, the file; empty if there was none.
        reason: why it failed, empty if it did not.
        figures: SDs sent with how many of them were retransmissions, POLLs sent with SDPs among
            them, octets delivered to the user, the smoothed round-trip time in seconds (None before
            it was measured) and the congestion window in octets at the end.
    """

    success: bool
    sentence: str
    interrupted: int
    octets: int
    seconds: float
    sha256: str
    reason: str
    figures: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the figures at the same level as the rest."""
        told = asdict(self)
        del told["figures"]
        return told | self.figures


class Program:
    """One connection, perhaps not called yet, with its files.

    Attributes:
        node: what it runs on.
        interrupted: the signal that ended it, 0 for none.
        transfer: the connection's user, None before it is called.
    """

    def __init__(self, node: Node, place: Place) -> None:
        self.node = node
        self.interrupted = 0
        self.transfer: Transfer | None = None
        self._place = place
        self._files: tuple[int, Callable[[], None]] | None = None
        self._started = node.loop.clock()
        self._ended: float | None = None
        self._patience_ends: float | None = None
        self._at_once = False
        self._trouble = ""

    @classmethod
    def called(cls, node: Node, port: int) -> Program:
        """Await one call to ``port``."""
        program = cls(node, node.place)
        node.listen(port, program._accept)
        return program

    def call(self, peer: SocketAddress, port: int) -> None:
        """Call ``port`` of ``peer``."""
        self._use(self.node.connect(peer, port))

    def _use(self, connection: Connection) -> Transfer:
        self._started = self.node.loop.clock()
        self.transfer = connection.user = Transfer(connection)
        self._download()
        return self.transfer

    def _accept(self, connection: Connection) -> Service:
        if self.transfer is not None:
            # Confirmed after another call had been accepted.
            return _Refusing(self.node)
        self.node.endpoint.unlisten(connection.identity.local_port)
        return self._use(connection)

    def upload_from(self, descriptor: int) -> None:
        """Send what is read from ``descriptor``, and end the stream with it."""
        assert self.transfer is not None
        self.transfer.upload = Upload(self.node.loop, descriptor, self.transfer.connection)

    def download_to(self, descriptor: int, finish: Callable[[], None]) -> None:
        """Write what arrives to ``descriptor``, and call ``finish`` once it is all there."""
        self._files = (descriptor, finish)
        self._download()

    def _download(self) -> None:
        transfer = self.transfer
        if transfer is None or self._files is None:
            return
        connection = transfer.connection
        descriptor, finish = self._files

        def done() -> None:
            finish()
            if transfer.upload is None:
                connection.close()

        transfer.download = Download(self.node.loop, descriptor, connection, done)

    @property
    def octets(self) -> int:
        """Octets of user data carried so far: acknowledged, or received."""
        transfer = self.transfer
        if transfer is None:
            return 0
        if transfer.upload is not None:
            return transfer.connection.acknowledged_octets
        return 0 if transfer.download is None else transfer.download.octets

    def run(self) -> Result:
        """Run until the connection is over and the peer knows it; SIGINT and SIGTERM abort it."""
        with self.node.loop.interruptible(self._interrupt):
            self.node.loop.run(self._done)
        return self._result()

    def close(self) -> None:
        """Close the socket, which is the program's own where it has called."""
        self.node.close()

    def _interrupt(self, number: int) -> None:
        self._at_once = bool(self.interrupted)
        self.interrupted = number
        self._abort(f"interrupted by signal {number}")

    def _abort(self, trouble: str) -> None:
        transfer = self.transfer
        if transfer is not None and not transfer.connection.is_over:
            self._trouble = trouble
            transfer.connection.abort(self.node.loop.clock())
            transfer.stop()

    def _done(self) -> bool:
        transfer = self.transfer
        if transfer is None or self._at_once:
            return bool(self.interrupted)
        connection, carrier = transfer.connection, self.node.carrier
        if not connection.is_over:
            if carrier.refused and connection.state is State.OUTGOING:
                self._abort(carrier.fault or "nobody is there")
            elif carrier.too_long:
                self._abort("a packet is longer than the path carries")
            return False
        now = self.node.loop.clock()
        if self._ended is None:
            self._ended = now
        if transfer.busy and not self.interrupted:
            return False
        if connection.state is State.IDLE or carrier.refused:
            return True
        if connection.succeeded:
            return False
        if self._patience_ends is None:
            self._patience_ends = now + PATIENCE_S
            self.node.loop.call_at(self._patience_ends, lambda: None)
        return now >= self._patience_ends

    # What is told

    def _result(self) -> Result:
        transfer = self.transfer
        if transfer is None:
            return Result(False, "interrupted before a call came", self.interrupted, 0, 0.0, "",
                          "interrupted", {})  # fmt: skip
        connection = transfer.connection
        sender = connection.outgoing.sender
        error = transfer.error
        success = connection.succeeded and error is None
        ended = self.node.loop.clock() if self._ended is None else self._ended
        seconds = ended - self._started
        told = f"{error.strerror or error}" if error else connection.failure or "interrupted"
        reason = "" if success else self._trouble or told
        return Result(
            success=success,
            sentence=self._success(seconds) if success else self._failure(transfer, reason),
            interrupted=self.interrupted,
            octets=self.octets,
            seconds=seconds,
            sha256=transfer.digest,
            reason=reason,
            figures={
                "sds": sender.serial,
                "retransmissions": sender.retransmissions,
                "polls": sender.vt_ps,
                "delivered": 0 if connection.receiver is None else connection.receiver.delivered,
                "srtt": connection.outgoing.rtt.srtt,
                "cwnd": connection.outgoing.congestion.cwnd,
            },
        )

    def _success(self, seconds: float) -> str:
        rate = 8 * self.octets / max(seconds, 1e-9) / 1e3
        return f"{self.octets} octets in {seconds:.1f} s, {rate:.0f} kb/s; acknowledged to the end."

    def _failure(self, transfer: Transfer, reason: str) -> str:
        place, connection = self._place, transfer.connection
        if transfer.error is not None:
            return f"The connection was aborted, as a file failed: {reason}; fix that and repeat."
        if self.node.carrier.refused and not connection.peer_csn:
            return f"{place} refused: {reason}; check the port, or start `bentpipe stp` there."
        if self.node.carrier.too_long:
            most = max(512, transfer.connection.config.own_max_sd // 2)
            return f"{place}: {reason}; give a smaller --max-sd, such as {most}."
        if connection.reason == Reason.NOT_LISTENING:
            return f"{place} refused: {reason}; start a service there or give another /SERVICEPORT."
        if connection.reason == Reason.NO_ANSWER and connection.peer_csn is None:
            return f"{place} does not answer; check address, port and what filters packets."
        word = "acknowledged" if transfer.upload is not None else "received"
        return (
            f"The connection with {place} failed: {reason}; {self.octets} octets had been {word}."
        )


class _Refusing:
    """Aborts a call that came too late."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def run(self, connection: Connection) -> None:
        """See :class:`Service`."""
        if not connection.is_over:
            connection.abort(self._node.loop.clock(), Reason.RESOURCES)
