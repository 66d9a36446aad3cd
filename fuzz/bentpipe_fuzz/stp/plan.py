"""What a run consists of, drawn from its mode and seed alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bentpipe_reference.stp.config import KEEP_ALIVE_S, LEAST_KEEP_ALIVE_S, NO_RESPONSE_S
from bentpipe_reference.stp.polling import MOST_SILENCE_S

Mode = Literal["unlucky", "vanish", "restart", "off-path", "on-path"]
"""``unlucky``: a bad link that recovers. ``vanish``: from some moment on everything is lost.
``restart``: one endpoint loses its state and calls or is called again. ``off-path``: forged packets
that guess wrong. ``on-path``: forged packets of an attacker who sees everything."""

MODES: tuple[Mode, ...] = get_args(Mode)

TURNS: tuple[Mode, ...] = (*("unlucky", "vanish", "unlucky", "restart") * 4, "off-path", "on-path")
"""The modes in turn: an attacked run costs as much as ten others."""

END_REPEATS_S = 31.0
"""From the first END, or BEGIN, until the last repetition has gone unanswered (STP-CC-026)."""


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """What one direction does to packets, until :attr:`Plan.faults_until`.

    Attributes:
        delay: seconds, always.
        loss, twice, corrupt: probabilities of a packet.
        burst: probability that a burst of losses begins with a packet.
        burst_length: packets lost in one, at most.
        late: probability that a packet takes longer, and so is overtaken.
        late_by: longest additional delay, seconds.
        blackouts: pairs of seconds between which everything is lost.
        gone_from: seconds from which on everything is lost.
    """

    delay: float
    loss: float = 0.0
    twice: float = 0.0
    corrupt: float = 0.0
    burst: float = 0.0
    burst_length: int = 0
    late: float = 0.0
    late_by: float = 0.0
    blackouts: tuple[tuple[float, float], ...] = ()
    gone_from: float | None = None


@dataclass(frozen=True, slots=True)
class UserPlan:
    """What the user of one end of a connection does.

    Attributes:
        octets: length of its stream.
        chunk: octets it writes at once.
        pause: seconds from one write to the next.
        starts: seconds after it has the connection until the first.
        reads: octets it reads at once, None for all that there is.
        read_pause: seconds from one read to the next, with ``reads``.
        reads_from: seconds after it has the connection until it reads at all.
        closes_last: it closes only when the peer has closed.
        aborts: seconds after it has the connection, None for never.
    """

    octets: int
    chunk: int = 65536
    pause: float = 0.0
    starts: float = 0.0
    reads: int | None = None
    read_pause: float = 0.0
    reads_from: float = 0.0
    closes_last: bool = False
    aborts: float | None = None

    def takes(self, peer_octets: int) -> float:
        """Seconds that this user needs on its own, regardless of the link."""
        writing = self.starts + self.pause * (self.octets / self.chunk + 1)
        reads = 0 if self.reads is None else peer_octets / self.reads + 1
        return writing + self.reads_from + reads * self.read_pause


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One connection.

    Attributes:
        at: seconds when it is called.
        caller, called: names of the nodes.
        port: STP port of the called, its own for every call.
        local_port: STP port of the caller.
        near, far: the users of caller and called.
    """

    at: float
    caller: str
    called: str
    port: int
    local_port: int
    near: UserPlan
    far: UserPlan

    def takes(self) -> float:
        """Seconds that the users need for themselves."""
        return self.near.takes(self.far.octets) + self.far.takes(self.near.octets)


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """When forged packets come.

    Attributes:
        begins, ends: seconds.
        rate: packets per second.
        metered: the work of every packet is counted (slow).
    """

    begins: float
    ends: float
    rate: float
    metered: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        mode: see :data:`Mode`.
        seed: of everything random in it.
        clock: seconds at which the run's clock starts; all other times count from there.
        configs: settings of the endpoints, by node.
        links: by ``from>to``.
        calls: connections, in the order of their times.
        faults_until: seconds from which on the links lose nothing.
        restarts: node that loses its state, and when.
        attack: for the hostile modes.
    """

    mode: Mode
    seed: int
    clock: float
    configs: dict[str, dict[str, Any]]
    links: dict[str, LinkPlan]
    calls: tuple[CallPlan, ...]
    faults_until: float = 0.0
    restarts: tuple[str, float] | None = None
    attack: AttackPlan | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def honest_calls(self) -> int:
        """How many calls, from the first, can be disturbed only by faults or guesses."""
        return 1 if self.mode == "on-path" else len(self.calls)

    @property
    def round_trip(self) -> float:
        """The links' delays there and back, seconds; the longest pair."""
        delays = [link.delay for link in self.links.values()]
        return 2 * max(delays)

    def limit(self) -> float:
        """STP-CC-009: seconds by which every user must have been told an outcome.

        From the moment when links and users do no more harm: the longest wait of Timer_SILENCE,
        then the time after which a silent peer is given up, that of a call, of one anew and of a
        release, and a round trip with a POLL for every SD, at the slowest.
        """
        quiet = max(
            [self.faults_until]
            + [call.at + call.takes() for call in self.calls]
            + ([self.restarts[1]] if self.restarts else [])
        )
        smallest = min(512, *(config.get("send_buffer", 512) for config in self.configs.values()))
        gone = any(link.gone_from is not None for link in self.links.values())
        sds = (
            0.0
            if gone
            else sum((call.near.octets + call.far.octets) / smallest + 8 for call in self.calls)
        )
        keep_alive: float = max(config["keep_alive"] for config in self.configs.values())
        timers = NO_RESPONSE_S + 4 * END_REPEATS_S
        timers += 0.0 if gone else MOST_SILENCE_S
        return quiet + timers + 2 * keep_alive + sds * (2 * self.round_trip + 0.5)


SIZES = (0, 0, 1, 10, 512, 513, 3000, 20_000, 60_000, 150_000)
DELAYS = (0.0005, 0.01, 0.05, 0.3, 0.3, 0.7, 1.5)
_WRAPS = (None, None, (1 << 24) - 1, (1 << 24) - 3, (1 << 24) - 40, 1 << 23, 0)
_CSN_WRAPS = (None, None, (1 << 32) - 1, (1 << 32) - 20, 1 << 31)


def draw(mode: Mode, seed: int) -> Plan:
    """The plan of a run."""
    return _DRAW[mode](mode, seed, random.Random(f"plan {mode} {seed}"))


def _config(numbers: random.Random) -> dict[str, Any]:
    config: dict[str, Any] = {
        "path_class": numbers.choice(["geo", "geo", "vbdc"]),
        "credit": numbers.choice([4, 5, 16, 64, 2048]),
        "max_sd": numbers.choice([512, 513, 1000, None]),
        "send_buffer": numbers.choice([100, 5000, 1 << 18, 1 << 18]),
        "initial_window": numbers.choice([1, 4, 10]),
        "fifo": numbers.random() < 0.6,
        "piggyback": numbers.random() < 0.8,
        "max_stat": numbers.choice([3, 5, 67]),
        "iss": numbers.choice(_WRAPS),
        "csn": numbers.choice(_CSN_WRAPS),
        "keep_alive": LEAST_KEEP_ALIVE_S,
    }
    if numbers.random() < 0.1:
        config["max_rate"] = 1e6
    return config


def _user(numbers: random.Random, *, may_abort: bool = True) -> UserPlan:
    octets = numbers.choice(SIZES)
    slow = numbers.random() < 0.3
    reads = numbers.choice([1000, 4000, 20_000]) if slow else None
    return UserPlan(
        octets=octets,
        chunk=numbers.choice([max(octets // 3, 1), 65536, max(octets // 10, 1)]),
        pause=numbers.choice([0.0, 0.0, 0.05, 1.0, 5.0]),
        starts=numbers.choice([0.0, 0.0, 0.0, 0.2, 3.0, 30.0]),
        reads=reads,
        read_pause=numbers.choice([0.01, 0.3, 1.0]) if slow else 0.0,
        reads_from=numbers.choice([0.0, 0.0, 0.0, 5.0, 100.0]),
        aborts=numbers.choice([0.0, 0.1, 1.0, 10.0, 40.0])
        if may_abort and numbers.random() < 0.1
        else None,
    )


def _bad_link(numbers: random.Random) -> LinkPlan:
    blackouts = tuple(
        (start, start + numbers.choice([0.5, 3.0, 10.0, 25.0, 50.0]))
        for start in sorted(numbers.uniform(0, 60) for _ in range(numbers.choice([0, 0, 0, 1, 2])))
    )

    def at_times(*values: float) -> float:
        return numbers.choice([0.0, 0.0, *values])

    return LinkPlan(
        delay=numbers.choice(DELAYS),
        loss=at_times(0.01, 0.1, 0.3),
        twice=at_times(0.05, 0.3),
        corrupt=at_times(0.01, 0.1),
        burst=at_times(0.01, 0.05),
        burst_length=numbers.choice([3, 10, 40]),
        late=at_times(0.02, 0.2, 0.5),
        late_by=numbers.choice([0.01, 0.4, 3.0]),
        blackouts=blackouts,
    )


def _calls(numbers: random.Random, *, waits: bool) -> tuple[CallPlan, ...]:
    calls = []
    at = 0.0
    for index in range(numbers.choice([1, 1, 1, 2, 3])):
        near, far = _user(numbers), _user(numbers)
        caller, called = ("a", "b") if numbers.random() < 0.8 else ("b", "a")
        if waits and numbers.random() < 0.5:
            far = UserPlan(octets=far.octets, reads_from=far.reads_from, closes_last=True)
        calls.append(CallPlan(at, caller, called, 100 + index, 5000 + index, near, far))
        at += numbers.choice([0.0, 0.5, 20.0, 60.0])
    return tuple(calls)


def _unlucky(mode: Mode, seed: int, numbers: random.Random) -> Plan:
    # Frequent keep-alive POLLs would hide that a closed window is not probed (STP-DT-025).
    keep_alive = LEAST_KEEP_ALIVE_S if seed % 4 else KEEP_ALIVE_S
    waits = numbers.random() < 0.3
    return Plan(
        mode,
        seed,
        clock=numbers.choice([0.0, 0.0, 4290.0]),
        configs={name: {**_config(numbers), "keep_alive": keep_alive} for name in "ab"},
        links={"a>b": _bad_link(numbers), "b>a": _bad_link(numbers)},
        calls=_calls(numbers, waits=waits),
        faults_until=numbers.choice([5.0, 30.0, 150.0]),
    )


def _vanish(mode: Mode, seed: int, numbers: random.Random) -> Plan:
    gone = numbers.choice([0.0, 0.3, 0.9, 2.0, 5.0, 20.0])
    which = numbers.choice([("a>b",), ("b>a",), ("a>b", "b>a")])
    links = {
        name: LinkPlan(numbers.choice(DELAYS), gone_from=gone if name in which else None)
        for name in ("a>b", "b>a")
    }
    return Plan(
        mode, seed, 0.0,
        configs={name: _config(numbers) for name in "ab"},
        links=links,
        calls=_calls(numbers, waits=True),
        faults_until=gone,
    )  # fmt: skip


def _restart(mode: Mode, seed: int, numbers: random.Random) -> Plan:
    when = numbers.choice([0.1, 0.5, 0.95, 1.5, 3.0, 12.0])
    delay = numbers.choice([0.01, 0.3])
    first = CallPlan(0.0, "a", "b", 100, 5000, _user(numbers), _user(numbers))
    again = CallPlan(
        when + numbers.choice([0.0, 0.01, 0.5, 3.0]), "a", "b", 100, 5000,
        _user(numbers, may_abort=False), _user(numbers, may_abort=False),
    )  # fmt: skip
    loss = numbers.choice([0.0, 0.0, 0.1])
    return Plan(
        mode, seed, 0.0,
        # Numbers given beforehand would be those of the connection before the restart.
        configs={
            name: {**_config(numbers), "iss": None, "csn": None} for name in "ab"
        },
        links={name: LinkPlan(delay, loss=loss) for name in ("a>b", "b>a")},
        calls=(first, again),
        faults_until=30.0,
        restarts=(numbers.choice("ab"), when),
    )  # fmt: skip


def _hostile_user(numbers: random.Random) -> UserPlan:
    slow = numbers.random() < 0.3
    return UserPlan(
        reads=2000 if slow else None,
        read_pause=0.2 if slow else 0.0,
        reads_from=numbers.choice([0.0, 0.0, 4.0]),
        octets=numbers.choice([10, 3000, 30_000, 100_000]),
        chunk=numbers.choice([1000, 10_000, 65536]),
        pause=numbers.choice([0.0, 0.1]),
    )


def _off_path(mode: Mode, seed: int, numbers: random.Random) -> Plan:
    delay = numbers.choice([0.02, 0.3])
    call = CallPlan(0.0, "a", "b", 100, 5000, _hostile_user(numbers), _hostile_user(numbers))
    configs = {name: {**_config(numbers), "iss": None, "csn": None} for name in "ab"}
    attack = AttackPlan(
        numbers.choice([0.0, 0.5, 1.3]), 20.0, numbers.choice([5.0, 50.0, 300.0])
    )  # fmt: skip
    clock = numbers.choice([0.0, 4290.0])  # at the later one, a cookie can have expired
    links = {name: LinkPlan(delay) for name in ("a>b", "b>a")}
    return Plan(mode, seed, clock, configs, links, calls=(call,), attack=attack)


def _on_path(mode: Mode, seed: int, numbers: random.Random) -> Plan:
    delay = numbers.choice([0.02, 0.3])
    user = _hostile_user
    # One after the other, since forged ENDs soon end a connection whose CSNs are known.
    victims = [
        CallPlan(1.5 + 2.0 * index, "a", "b", 200 + index, 6000, user(numbers), user(numbers))
        for index in range(5)
    ]
    calls = (CallPlan(0.0, "c", "b", 100, 5000, user(numbers), user(numbers)), *victims)
    bounds = {"max_connections": 16, "used_cookies": 64, "kept_cookies": 16}
    ways = ("a>b", "b>a", "c>b", "b>c")
    metered = numbers.random() < 0.25
    return Plan(
        mode, seed, 0.0,
        configs={name: {**_config(numbers), **bounds} for name in "abc"},
        links={name: LinkPlan(delay) for name in ways},
        calls=calls,
        attack=AttackPlan(1.5, 11.5, numbers.choice([20.0, 200.0]), metered),
    )  # fmt: skip


_DRAW: dict[Mode, Callable[[Mode, int, random.Random], Plan]] = {
    "unlucky": _unlucky,
    "vanish": _vanish,
    "restart": _restart,
    "off-path": _off_path,
    "on-path": _on_path,
}
