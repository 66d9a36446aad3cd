"""The users of a connection: what they write and read, and which outcome they see."""

from __future__ import annotations

from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events, StreamError

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.network import Network, Node
from bentpipe_fuzz.stp.plan import UserPlan

_SALT = 7919


def stream(number: int, offset: int, octets: int) -> bytes:
    """Octets of the stream of that number; no two streams begin alike."""
    return pattern(_SALT * number + offset, octets)


class User:
    """The user of one end of a connection.

    Args:
        network: of the run.
        node: where it is.
        plan: what it does.
        writes, expects: numbers of its stream and of its peer's.
        honest: whether what it reads must be its peer's stream.

    Attributes:
        connection: None until it has one.
        peer: whose stream it reads.
        opened: whether the connection was ever open.
        written, received: octets.
        closed, aborted: whether it has done so.
        ended_at: when it was told the outcome, None before; ``succeeded`` says which.
        lost: its endpoint has lost its state, so that it will be told nothing.
        last_octet_at: when it read the last octet so far.
    """

    def __init__(
        self,
        network: Network,
        node: Node,
        plan: UserPlan,
        writes: int,
        expects: int,
        *,
        honest: bool = True,
    ) -> None:
        self.connection: Connection | None = None
        self.node = node
        self.plan = plan
        self.opened = False
        self.written = self.received = 0
        self.closed = self.aborted = self.succeeded = self.lost = False
        self.ended_at: float | None = None
        self.last_octet_at = 0.0
        self.began_at = 0.0
        self._network = network
        self._writes, self._expects = writes, expects
        self._honest = honest
        self._reads = self._waits = False
        self.peer = self

    def again(self) -> User:
        """Another user with the same plan, who knows nothing of this one."""
        user = User(
            self._network, self.node, self.plan, self._writes, self._expects, honest=self._honest
        )
        user.peer, self.peer.peer = self.peer, user
        return user

    def begin(self, connection: Connection) -> None:
        """Use this connection."""
        self.connection = connection
        self.began_at = self._network.now
        plan = self.plan
        if plan.starts:
            self._after(plan.starts, self._write)
        else:
            self._write()  # a caller's first octets travel in its BEGIN
        self._after(plan.reads_from, self._begin_to_read)
        if plan.aborts is not None:
            self._after(plan.aborts, self.abort)

    def on(self, events: Events) -> None:
        """Something has happened on the connection."""
        connection = self.connection
        assert connection is not None
        now = self._network.now
        if self.ended_at is not None and events & (Events.ENDED | Events.FAILED):
            raise Violation("STP-CC-009", f"{self.node.name} is told the outcome twice", now)
        if events & (Events.OPENED | Events.ACCEPTED):
            self.opened = True
        if self._reads and self.plan.reads is None:
            self._read(None)
        if events & Events.WRITABLE:
            self._write()
        if connection.peer_has_closed and self.plan.closes_last:
            self._close_if_written()
        if events & (Events.ENDED | Events.FAILED):
            self._end(now)

    def _end(self, now: float) -> None:
        connection = self.connection
        assert connection is not None
        if connection.succeeded == (connection.failure is not None):
            raise Violation(
                "STP-CC-006", f"{self.node.name} is told both outcomes, or neither", now
            )
        self.ended_at = now
        self.succeeded = connection.succeeded
        # What was delivered can be read even now; it counts.
        self._read(None)

    def abort(self) -> None:
        """Abort, if nothing has ended yet."""
        connection = self.connection
        if self.lost or connection is None or connection.is_over:
            return
        self.aborted = True
        connection.abort(self._network.now)
        self.node.settle()

    # Its own actions

    def _after(self, seconds: float, action: object) -> None:
        assert callable(action)

        def act() -> None:
            if not self.lost:
                action()
                self.node.settle()

        self._network.simulation.call_after(seconds, act)

    def _write(self) -> None:
        connection, plan = self.connection, self.plan
        assert connection is not None
        if connection.is_over or self.closed:
            return
        count = min(plan.chunk, plan.octets - self.written)
        while count:
            try:
                taken = connection.write(stream(self._writes, self.written, count))
            except StreamError as error:
                raise Violation(
                    "STP-CC-009", f"{self.node.name}: {error}, without a notification"
                ) from error
            self.written += taken
            if taken < count:
                connection.ask_for_room()
                return
            count = 0 if plan.pause else min(plan.chunk, plan.octets - self.written)
        if self.written == plan.octets:
            self._close_if_written()
        elif not self._waits:
            self._waits = True
            self._after(plan.pause, self._write_again)

    def _write_again(self) -> None:
        self._waits = False
        self._write()

    def _close_if_written(self) -> None:
        connection = self.connection
        assert connection is not None
        if self.closed or connection.is_over or self.written < self.plan.octets:
            return
        if self.plan.closes_last and not connection.peer_has_closed:
            return
        self.closed = True
        connection.close()

    def _begin_to_read(self) -> None:
        self._reads = True
        self._read_some()

    def _read_some(self) -> None:
        connection, plan = self.connection, self.plan
        assert connection is not None
        self._read(plan.reads)
        if plan.reads is not None and self.ended_at is None:
            self._after(plan.read_pause, self._read_some)

    def _read(self, octets: int | None) -> None:
        connection = self.connection
        assert connection is not None
        data = connection.read(octets)
        if not data:
            return
        now = self._network.now
        if self._honest:
            right = stream(self._expects, self.received, len(data))
            if data != right:
                at = next(i for i in range(len(data)) if data[i] != right[i])
                raise Violation(
                    "STP-DT-012",
                    f"octet {self.received + at} that {self.node.name} read is not its peer's",
                    now,
                )
            if self.received + len(data) > self.peer.written:
                raise Violation(
                    "STP-DT-012", f"{self.node.name} read more than its peer wrote", now
                )
        self.received += len(data)
        self.last_octet_at = now
