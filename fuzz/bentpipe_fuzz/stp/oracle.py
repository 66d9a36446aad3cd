"""What must hold at the end of a connection, and why it may have failed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bentpipe_reference.stp.config import NO_RESPONSE_S
from bentpipe_reference.stp.events import abort_text
from bentpipe_reference.stp.packets import Bgak, Packet, Reason, Stat, Ustat
from bentpipe_reference.stp.sequence import below

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.network import Network
from bentpipe_fuzz.stp.plan import CallPlan
from bentpipe_fuzz.stp.users import User

_TIMERS_MARGIN_S = 0.5


@dataclass(slots=True)
class Call:
    """A connection of the plan and what has become of it.

    Attributes:
        plan: of the connection.
        near: the caller's user.
        far: the user of the called; it may never get a connection.
    """

    plan: CallPlan
    near: User
    far: User

    @property
    def users(self) -> tuple[User, User]:
        """Both."""
        return self.near, self.far

    def other(self, user: User) -> User:
        """The peer of a user."""
        return self.far if user is self.near else self.near


class Witness:
    """Notes which honest packets have arrived intact, to tell whether a failure has a reason."""

    def __init__(self, network: Network) -> None:
        self._stats: dict[tuple[str, int, int], list[tuple[int, float]]] = {}
        self._acknowledged: dict[tuple[str, int, int], int] = {}
        self._bgaks: dict[tuple[str, int], float] = {}
        network.on_delivered = self.delivered

    def delivered(self, source: str, target: str, packet: Packet, sent: float, now: float) -> None:
        """A packet has arrived."""
        del source, sent
        if isinstance(packet, Stat | Ustat):
            key = (target, packet.dport, packet.sport)
            highest = self._acknowledged.setdefault(key, packet.n_r)
            if below(packet.n_r, highest):
                return  # STP-DT-023: not a valid report
            self._acknowledged[key] = packet.n_r
            stats = self._stats.setdefault(key, [])
            n_ps = packet.n_ps if isinstance(packet, Stat) else 0
            newest = stats[-1][0] if stats else 0
            # STP-DT-007: a STAT that has been overtaken is not valid.
            if n_ps == 0 or newest == 0 or not below(n_ps, newest):
                stats.append((n_ps or newest, now))
        elif isinstance(packet, Bgak):
            self._bgaks.setdefault((target, packet.peer_csn), now)

    def called(self, user: User) -> bool:
        """Whether a BGAK for a caller had arrived when its user was told the outcome."""
        assert user.connection is not None and user.ended_at is not None
        came = self._bgaks.get((user.node.name, user.connection.csn), math.inf)
        return came < user.ended_at  # at the same moment, the timer was first

    def silence(self, user: User) -> float:
        """Seconds without a report when the user was told the outcome."""
        assert user.connection is not None and user.ended_at is not None
        identity = user.connection.identity
        key = (user.node.name, identity.local_port, identity.peer_port)
        times = [time for _, time in self._stats.get(key, []) if time < user.ended_at]
        return user.ended_at - max(times, default=user.began_at)


def judge(calls: list[Call], witness: Witness, deadline: float) -> None:
    """Judge every connection at the end of a run.

    Args:
        calls: the honest connections.
        witness: of the whole run.
        deadline: seconds of the run's clock by which every user must have been told an outcome.

    Raises:
        Violation: what must not have happened.
    """
    for call in calls:
        for user in call.users:
            if user.connection is None or user.lost:
                continue
            who = f"the user at {user.node.name} of the connection to port {call.plan.port}"
            if user.ended_at is None:
                raise Violation(
                    "STP-CC-009",
                    f"{who} was told no outcome; its connection is in state "
                    f"{int(user.connection.state)}",
                )
            if user.ended_at > deadline:
                late = f"{who} was told the outcome {user.ended_at - deadline:.1f} s too late"
                raise Violation("STP-CC-009", late, user.ended_at)
            if user.succeeded:
                _judge_success(call, user)
            else:
                _judge_failure(call, user, witness)


def _judge_success(call: Call, user: User) -> None:
    other = call.other(user)
    where = f"{user.node.name} of the connection to port {call.plan.port}"
    if other.connection is None:
        raise Violation("STP-CC-005", f"success at {where}, which the peer never accepted")
    if other.lost:
        return
    if user.aborted:
        raise Violation("STP-CC-006", f"success at {where}, which aborted")
    if not user.closed or not other.closed:
        raise Violation("STP-CC-005", f"success at {where} before both streams had ended")
    if other.received != user.written:
        raise Violation(
            "STP-CC-005",
            f"success at {where}, but {other.received} of {user.written} octets arrived",
        )
    if user.received != other.written:
        raise Violation(
            "STP-CC-005",
            f"success at {where}, which had {user.received} of its peer's {other.written} octets",
        )


def _judge_failure(call: Call, user: User, witness: Witness) -> None:
    connection, other = user.connection, call.other(user)
    assert connection is not None
    reason = connection.reason
    if reason == Reason.ABORTED:
        # A caller that has lost its state may call again between the same ports (STP-CC-041); a
        # call without answer ends as if it had been aborted (section 5.1).
        unanswered = other.connection is not None and other.connection.reason == Reason.NO_ANSWER
        explained = user.aborted or other.aborted or other.lost or unanswered
    elif reason == Reason.NO_CONNECTION:
        explained = other.ended_at is not None or other.lost or other.connection is None
    elif reason == Reason.NO_ANSWER:
        explained = _no_answer(call, user, witness)
    else:
        explained = False
    if not explained:
        raise Violation(
            "STP-CC-009",
            f"{user.node.name} was told {connection.failure!r} of the connection to port "
            f"{call.plan.port}, without a reason for it",
        )


def _no_answer(call: Call, user: User, witness: Witness) -> bool:
    other = call.other(user)
    assert user.connection is not None
    if user.connection.failure == abort_text(Reason.NO_ANSWER):
        return other.connection is not None and other.connection.reason == Reason.NO_ANSWER
    if not user.opened and user is call.near:
        return not witness.called(user)
    return witness.silence(user) > NO_RESPONSE_S - _TIMERS_MARGIN_S
