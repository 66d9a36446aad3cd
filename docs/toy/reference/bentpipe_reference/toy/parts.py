"""The composition root: which class plays which part of a connection."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_reference.toy.connection import Connection
from bentpipe_reference.toy.receiver import Receiver
from bentpipe_reference.toy.sender import Sender


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes of a connection; the defaults are the true ones, mutants replace one."""

    connection: type[Connection] = Connection
    sender: type[Sender] = Sender
    receiver: type[Receiver] = Receiver

    def make(self, ports: tuple[int, int], timeout_s: float, *, calls: bool) -> Connection:
        """A connection that nothing has happened to."""
        return self.connection(ports, self.sender(timeout_s, calls=calls), self.receiver())


TRUE_PARTS = Parts()
"""The reference itself."""
