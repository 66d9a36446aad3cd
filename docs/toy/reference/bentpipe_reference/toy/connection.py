"""One connection: packets and time in, packets out."""

from __future__ import annotations

from bentpipe_reference.toy.codec import Kind, Packet
from bentpipe_reference.toy.receiver import Receiver
from bentpipe_reference.toy.sender import Sender


class Connection:
    """Also the ``Stream`` of the services and users above it.

    Args:
        ports: the own port and the peer's.
        sender: the sending side.
        receiver: the receiving side.

    Attributes:
        is_over: whether nothing more happens.
    """

    def __init__(self, ports: tuple[int, int], sender: Sender, receiver: Receiver) -> None:
        self.is_over = False
        self._ports = ports
        self._sender = sender
        self._receiver = receiver
        self._outbox: list[Packet] = []

    @property
    def readable(self) -> int:
        """See :class:`~bentpipe_reference.common.services.Stream`."""
        return len(self._receiver.octets)

    @property
    def write_room(self) -> int:
        """See :class:`~bentpipe_reference.common.services.Stream`."""
        return 0 if self.is_over or self._sender.closing else self._sender.buffer.room

    @property
    def peer_has_closed(self) -> bool:
        """See :class:`~bentpipe_reference.common.services.Stream`."""
        return self._receiver.ended

    def read(self, octets: int | None = None) -> bytes:
        """See :class:`~bentpipe_reference.common.services.Stream`."""
        held = self._receiver.octets
        taken = bytes(held[:octets])
        del held[: len(taken)]
        return taken

    def write(self, data: bytes, *_: object) -> int:
        """See :class:`~bentpipe_reference.common.services.Stream`."""
        return self._sender.buffer.write(data) if self.write_room else 0

    def close(self, *_: object) -> None:
        """See :class:`~bentpipe_reference.common.services.Stream`."""
        self._sender.closing = True

    def abort(self) -> None:
        """End at once, and tell the peer."""
        if not self.is_over:
            self._say(Kind.ABORT)
            self.is_over = True

    def receive(self, packet: Packet) -> None:
        """Process a packet of this connection."""
        match packet.kind:
            case Kind.OPEN:
                self.answer_open()
            case Kind.ACCEPT:
                self._sender.accepted()
            case Kind.REFUSE if self._sender.calling:
                self.is_over = True
            case Kind.ABORT:
                self.is_over = True
            case Kind.ACK:
                self._sender.acknowledge(packet.bit)
            case Kind.DATA | Kind.CLOSE if not self._sender.calling:
                if self._receiver.take(packet):
                    self._say(Kind.ACK, packet.bit)
        self.is_over = self.is_over or (self._sender.finished and self._receiver.ended)

    def answer_open(self) -> None:
        """An OPEN has arrived, the first one or a repeated one."""
        if not self._sender.calling:
            self._say(Kind.ACCEPT)

    def transmit(self, now: float) -> list[Packet]:
        """The packets to send at ``now``."""
        while not self.is_over and (message := self._sender.message(now)) is not None:
            self._say(*message)
        if self._sender.gave_up:
            self.abort()
        outbox, self._outbox = self._outbox, []
        return outbox

    def next_deadline(self) -> float | None:
        """When the timer expires, None when it does not run."""
        return self._sender.deadline

    def _say(self, kind: Kind, bit: int = 0, data: bytes = b"") -> None:
        self._outbox.append(Packet(*self._ports, kind, bit, data))
