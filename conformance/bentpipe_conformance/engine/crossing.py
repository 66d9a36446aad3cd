"""What all lanes have in common on which the implementation stands between two ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_conformance.engine.lane import LaneError, OpenRequest

Await = Callable[[Callable[[], bool], float], None]
"""Lets time pass until something is true, or a deadline has passed."""


@dataclass(frozen=True, slots=True)
class PortPlace:
    """One port of a box that has several.

    Attributes:
        side: which; see :class:`~bentpipe_conformance.engine.lane.Captured`.
        interface: of the host, at the other end of its cable.
        address: the box's IPv4 address there, empty where it bridges.
        gateway: the tester's address there, to which the box routes; empty likewise.
    """

    side: str
    interface: str
    address: str = ""
    gateway: str = ""


class Userless:
    """An implementation without a user: it forwards what others send."""

    def open(self, request: OpenRequest) -> None:
        """A box calls nobody by itself."""
        raise LaneError(f"a box cannot be made to call {request.tester}")

    def abort(self) -> None:
        """A box has no user."""
        raise LaneError("a box has no user that could abort")


class Inbox:
    """What has arrived at the tester's two ports, in order.

    Args:
        wait: of the lane.
    """

    def __init__(self, wait: Await) -> None:
        self._wait = wait
        self._arrived: deque[tuple[float, str, bytes]] = deque()

    def put(self, at: float, side: str, packet: bytes) -> None:
        """A packet arrives at this time, on the lane's clock."""
        self._arrived.append((at, side, packet))

    def clear(self) -> None:
        """Forget what nobody has received."""
        self._arrived.clear()

    def receive(self, deadline: float) -> tuple[float, str, bytes] | None:
        """What arrives next at either port."""
        self._wait(lambda: bool(self._arrived), deadline)
        return self._arrived.popleft() if self._arrived else None

    def receive_at(self, side: str, deadline: float) -> tuple[float, bytes] | None:
        """The same for one side; what arrives at the other one waits."""
        self._wait(lambda: any(at == side for _, at, _ in self._arrived), deadline)
        for item in self._arrived:
            if item[1] == side:
                self._arrived.remove(item)
                return item[0], item[2]
        return None
