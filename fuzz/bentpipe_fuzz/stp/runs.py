"""One run: a plan prepared, executed to its end and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.setup import Setup

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.attack import OffPath, OnPath
from bentpipe_fuzz.stp.disturbance import Disturbance, Injection
from bentpipe_fuzz.stp.metering import excess, weight
from bentpipe_fuzz.stp.network import Network, Node, Seen, address_of
from bentpipe_fuzz.stp.oracle import Call, Witness, judge
from bentpipe_fuzz.stp.plan import END_REPEATS_S, CallPlan, Plan
from bentpipe_fuzz.stp.users import User

_STEPS = 3_000_000
"""Of the simulation; a run that takes more does not terminate."""

_AFTER_S = 3 * END_REPEATS_S + 40.0
"""Seconds after the last end until nothing may be left: ENDs have been repeated."""

Configure = Callable[[Any], Any]
"""Turns the setup of the reference into a mutant's."""


@dataclass(slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        plan: of the run.
        violation: what must not have happened, None if all is well.
        disturbances: what disturbed it.
        log: the last packets.
        elapsed: seconds of its clock.
        packets: honest packets sent.
        succeeded, failed: outcomes that users were told.
        costliest: lines per unit of work of the costliest packet, where that was counted.
    """

    plan: Plan
    violation: Violation | None = None
    disturbances: list[Disturbance] = field(default_factory=list)
    log: list[Seen] = field(default_factory=list)
    elapsed: float = 0.0
    packets: int = 0
    succeeded: int = 0
    failed: int = 0
    costliest: float = 0.0


class Run:
    """A plan, prepared.

    Args:
        plan: what happens.
        given: disturbances to repeat, None to draw them.
        configure: for a mutant.
    """

    def __init__(
        self,
        plan: Plan,
        given: list[Disturbance] | None = None,
        configure: Configure | None = None,
    ) -> None:
        self.plan = plan
        self.network = Network(plan, given)
        self.witness = Witness(self.network)
        self.calls: list[Call] = []
        self._given = given
        self._waiting: dict[tuple[str, str, int, int], list[Call]] = {}
        for name, settings in plan.configs.items():
            setup = Setup(StpConfig(**settings))
            node = Node(
                self.network, name, setup if configure is None else configure(setup),
                partial(self._use, name),
            )  # fmt: skip
            node.metered = plan.attack is not None and plan.attack.metered
        for number, call in enumerate(plan.calls):
            self._plan_call(number, call)
        self.honest = self.calls[: plan.honest_calls]
        if plan.restarts is not None:
            name, when = plan.restarts
            self.network.at(when, partial(self._restart, name))
        if plan.attack is not None:
            self._plan_attack()

    def _plan_call(self, number: int, plan: CallPlan) -> None:
        nodes = self.network.nodes
        hostile = number >= self.plan.honest_calls
        near = User(self.network, nodes[plan.caller], plan.near, 2 * number + 1, 2 * number + 2,
                    honest=not hostile)  # fmt: skip
        far = User(self.network, nodes[plan.called], plan.far, 2 * number + 2, 2 * number + 1,
                   honest=not hostile)  # fmt: skip
        near.peer, far.peer = far, near
        call = Call(plan, near, far)
        self.calls.append(call)
        nodes[plan.called].listen(plan.port)
        self.network.at(plan.at, partial(self._call, call))

    def _call(self, call: Call) -> None:
        node, plan = call.near.node, call.plan
        peer = address_of(plan.called)
        if (peer, plan.port, plan.local_port) in node.endpoint.connections:
            return  # another connection occupies the ports, so there is no call
        connection = node.endpoint.connect(peer, plan.port, plan.local_port)
        connection.user = call.near
        key = (plan.called, plan.caller, plan.local_port, plan.port)
        self._waiting.setdefault(key, []).append(call)
        call.near.begin(connection)
        node.settle()

    def _use(self, name: str, connection: Connection, events: Events) -> None:
        if connection.user is None:
            self._accept(name, connection)
        if isinstance(connection.user, User):
            connection.user.on(events)
        else:
            connection.read()

    def _accept(self, name: str, connection: Connection) -> None:
        """Find the call of the plan that this is; forged ones belong to none."""
        identity = connection.identity
        key = (name, identity.peer[0], identity.peer_port, identity.local_port)
        connection.user = "forged"
        for call in self._waiting.get(key, []):
            near = call.near.connection
            if near is None or (call.far.connection is not None and not call.far.lost):
                continue
            if near.csn == connection.peer_csn:
                if call.far.lost:  # the call has begun anew with an endpoint that knows nothing
                    call.far = call.far.again()
                connection.user = call.far
                call.far.begin(connection)
                return

    def _restart(self, name: str) -> None:
        for call in self.calls:
            for user in call.users:
                if user.node.name == name and user.connection is not None and not user.ended_at:
                    user.lost = True
        self.network.nodes[name].restart()

    def _plan_attack(self) -> None:
        plan = self.plan
        assert plan.attack is not None
        call = plan.calls[-1]
        if self._given is not None:
            for one in self._given:
                if isinstance(one, Injection):
                    octets = bytes.fromhex(one.octets)
                    action = partial(self.network.forged, one.target, one.source, octets)
                    self.network.simulation.call_at(one.at, action)
        else:
            kind = OnPath if plan.mode == "on-path" else OffPath
            attacker = kind(self.network, plan.attack, plan.seed, (call.caller, call.called))
            self.network.on_sent = attacker.watch
            attacker.start(attacker.forge)
        if plan.mode == "on-path":
            # What remains of attacked connections is not judged, but they must go away.
            for victim in self.calls[plan.honest_calls :]:
                for user in victim.users:
                    self.network.at(plan.attack.ends + 1.0, user.abort)

    # Running

    def run(self) -> Outcome:
        """Run to the end and judge."""
        outcome = Outcome(self.plan)
        simulation, clock = self.network.simulation, self.plan.clock
        try:
            self._run_until_all_is_told()
            ended = max(
                [0.0] + [user.ended_at or 0.0 for call in self.calls for user in call.users]
            )
            rest = max(simulation.now, ended) + _AFTER_S
            if self.plan.attack is not None:
                rest = max(rest, clock + self.plan.attack.ends + _AFTER_S)
            simulation.run_until(rest)
            judge(self.honest, self.witness, clock + self.plan.limit())
            self._look_at_the_rest()
        except Violation as violation:
            outcome.violation = violation
        outcome.elapsed = simulation.now - clock
        outcome.disturbances = (
            list(self.network.disturbances) if self._given is None else self._given
        )
        outcome.log = list(self.network.log)
        outcome.packets = sum(self.network._ordinals.values())
        for call in self.calls:
            for user in call.users:
                outcome.succeeded += user.succeeded
                outcome.failed += user.ended_at is not None and not user.succeeded
        outcome.costliest = max(node.costliest for node in self.network.nodes.values())
        return outcome

    def _run_until_all_is_told(self) -> None:
        simulation = self.network.simulation
        limit = self.plan.clock + self.plan.limit()
        last_call = self.plan.clock + max(call.at for call in self.plan.calls)
        for _ in range(_STEPS):
            following = simulation.next_time()
            if following is None or following > limit:
                return
            if following > last_call and self._all_told():
                return
            simulation.step()
        raise Violation("STP-CC-009", "the run does not terminate", simulation.now)

    def _all_told(self) -> bool:
        return all(
            user.ended_at is not None or user.lost or user.connection is None
            for call in self.calls
            for user in call.users
        ) and not any(node.endpoint.connections for node in self.network.nodes.values())

    def _look_at_the_rest(self) -> None:
        for node in self.network.nodes.values():
            node.settle()
            if (told := excess(node.endpoint)) is not None:
                raise Violation("STP-SEC-003", f"endpoint {node.name}: {told}")
            left = weight(node.endpoint)
            if self.plan.mode == "on-path":
                # An attacker that sees the answers can open connections that then stay idle.
                left = sum(isinstance(one.user, User) for one in node.endpoint.connections.values())
            if left:
                raise Violation(
                    "STP-SEC-003",
                    f"endpoint {node.name} keeps {left} entries after the end, among them "
                    f"{len(node.endpoint.connections)} connections",
                )


def run(
    plan: Plan, given: list[Disturbance] | None = None, configure: Configure | None = None
) -> Outcome:
    """Run a plan; where an honest connection is attacked, it is compared with one that is not."""
    attacked = Run(plan, given, configure)
    outcome = attacked.run()
    if plan.attack is None or outcome.violation is not None:
        return outcome
    quiet = Run(replace(plan, attack=replace(plan.attack, metered=False)), [], configure)
    calm = quiet.run()
    if calm.violation is not None:
        return replace(calm, disturbances=[])
    try:
        for one, other in zip(attacked.honest, quiet.honest, strict=True):
            _compare(one, other, plan)
    except Violation as violation:
        outcome.violation = violation
    return outcome


def _compare(attacked: Call, quiet: Call, plan: Plan) -> None:
    """STP-SEC-005, STP-SEC-003: the same data, the same end, at most a round trip later."""
    for user, calm in zip(attacked.users, quiet.users, strict=True):
        where = f"{user.node.name} of the connection to port {attacked.plan.port}"
        if calm.ended_at is None or not calm.succeeded:
            raise Violation("STP-CC-009", f"{where} failed without an attack")
        if user.ended_at is None or not user.succeeded:
            told = "nothing" if user.connection is None else repr(user.connection.failure)
            raise Violation("STP-SEC-005", f"{where} was told {told} because of forged packets")
        if user.received != calm.received:
            raise Violation("STP-SEC-005", f"{where} read other octets because of forged packets")
        late = max(user.ended_at - calm.ended_at, user.last_octet_at - calm.last_octet_at)
        if late > plan.round_trip + 0.05:
            raise Violation(
                "STP-SEC-005",
                f"{where} was delayed by {late:.3f} s by forged packets; a round trip is "
                f"{plan.round_trip:.3f} s",
            )
