"""The TCP reference as the exam sees it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Call, Drawn, Setting, Station, Subject
from bentpipe_reference.common.users import Caller
from bentpipe_reference.tcp.config import VARIANTS, EndpointConfig
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.parts import InitialNumbers, Setup
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Segment
from bentpipe_reference.tcp.wire.sequence import MASK

ICS = {
    "sack": True,
    "sack_sender": True,
    "sack_receiver": True,
    "dsack": True,
    "timestamps": True,
    "window_scale": True,
    "limited_transmit": True,
    "fast_retransmit": True,
    "newreno": True,
    "rack": False,
    "tlp": False,
    "prr": False,
    "early_retransmit": False,
    "frto": False,
    "ecn": False,
    "byte_counting": "no",
    "congestion_control": "reno",
    "pacing": False,
    "outstanding_octets": 0,
    "slow_start_by_delay": False,
    "challenge_acks": True,
    "reset_at_held": False,
    "exact_edge": True,
    "active_open": True,
    "user_aborts": True,
    "repeats_offer": False,
    "patient_syn": True,
    "patient_syn_ack": True,
    "recalls_blocks": True,
    "daytime": True,
    "nagle": True,
    "keep_alive": False,
}
"""The conformance statement of :data:`SETUPS`."""

SOON_BITS = 16.0
"""The binary logarithm of the most octets before a wrap that :class:`SoonWrapping` draws."""

SOON_TICKS_BITS = 13.0
"""The same of the ticks of a timestamp clock: eight seconds."""

REMEMBERED = 1024
"""ISSs that :class:`SoonWrapping` does not draw again: more than a case has connections."""


class SoonWrapping(InitialNumbers):
    """ISSs of which half are random; the data of the others soon passes 2^32, or some of it 2^31.

    So do the timestamps. Nobody who draws either from the whole range ever gets to the wrap within
    a case. What is drawn depends on the peer's ISS, too: the cases all begin with a new host, but
    not with the same SYN.
    """

    def __init__(self, numbers: random.Random) -> None:
        """See :class:`InitialNumbers`."""
        super().__init__(numbers)
        self._recent: deque[int] = deque(maxlen=REMEMBERED)

    def draw(self, syn: Segment | None) -> int:
        """See :class:`InitialNumbers`; no two connections of a case begin alike (SNR-CON-046)."""
        number = soon_wrapping(super().draw(syn), syn, SOON_BITS)
        while number in self._recent:
            number = number - 1 & MASK
        self._recent.append(number)
        return number

    def draw_clock(self, syn: Segment | None) -> int:
        """See :class:`InitialNumbers`; the clock of a simulation begins at zero."""
        return soon_wrapping(super().draw_clock(syn), syn, SOON_TICKS_BITS)


class Wrapping(InitialNumbers):
    """ISSs 9000 octets before the numbers wrap; each connection begins an octet later."""

    before = MASK + 1 - 9000

    def draw(self, syn: Segment | None) -> int:  # noqa: ARG002
        """See :class:`InitialNumbers`."""
        self.before += 1
        return self.before - 1


class Halfway(Wrapping):
    """The same before they pass 2^31."""

    before = MASK // 2 + 1 - 9000


def soon_wrapping(drawn: int, syn: Segment | None, bits: float) -> int:
    """What was drawn, or a number at most 2^``bits`` before a wrap."""
    chance = random.Random(drawn if syn is None else drawn ^ syn.seq << 32)
    kind = chance.randrange(8)
    if kind > 3:
        return drawn
    before = int(2 ** chance.uniform(0, bits))
    return (MASK // 2 if kind == 0 else MASK) + 1 - before


SETUPS = {
    name: Setup(config).with_part(SoonWrapping)
    for name, config in {
        "rfc": EndpointConfig(variant="sack-newreno-rfc", dsack=True, nagle=True),
        "hk99": EndpointConfig(variant="sack-newreno-hk99", timestamps=True, nagle=True),
    }.items()
}


def _draw(numbers: random.Random, _link: LinkProfile) -> Drawn:
    """A host of either profile."""
    profile = numbers.choice(("rfc", "rfc", "rfc", "hk99"))
    rfc = profile == "rfc"
    mss = numbers.choice((1460, 1460, 1460, 1000, 536, 256, 4000, 9000))
    config = EndpointConfig(
        variant="sack-newreno-rfc" if rfc else "sack-newreno-hk99",
        mss=mss,
        sack=numbers.random() < 0.8,
        dsack=rfc and numbers.random() < 0.9,
        window_scale=numbers.random() < 0.8,
        timestamps=numbers.random() < 0.7,
        limited_transmit=numbers.random() < 0.8 if rfc else None,
        byte_counting=numbers.choice((1, 1, 2)) if rfc else 1,
        nagle=numbers.random() < 0.2,
        receive_buffer=numbers.choice((mss, 2 * mss, 8192, 65536, 240 * 1024, 1 << 24)),
        send_buffer=numbers.choice((16384, 240 * 1024, 1 << 24)),
        delayed_ack_timeout=numbers.choice((0.001, 0.01, 0.04, 0.2, 0.5)),
        initial_window_segments=numbers.choice((None, *range(1, 11))) if rfc else None,
        initial_rto=numbers.choice((1.0, 1.0, 3.0)),
        clock_granularity=numbers.choice((None, None, 0.01, 0.1, 0.5)),
    )
    ics = ICS | {
        **dict.fromkeys(("sack", "sack_sender", "sack_receiver"), config.uses_sack),
        "dsack": config.dsack and config.uses_sack,
        "timestamps": config.uses_timestamps,
        "window_scale": config.window_scale,
        "limited_transmit": config.uses_limited_transmit,
        "nagle": config.nagle,
        "byte_counting": "abc" if config.byte_counting > 1 else "no",
        "initial_window_segments": config.initial_segments,
    }
    return Drawn(Setup(config).with_part(SoonWrapping), ics, profile)


class User(Caller):
    """A user of a connection."""

    def run(self, connection: Connection, now: float, /) -> None:
        """Read, write, and end as the call says."""
        if self.reads(now):
            connection.read(self.call.reading)
        if connection.state in (State.ESTABLISHED, State.CLOSE_WAIT):
            self.go_on(connection, now, lambda: connection.abort("the user aborted", now), now)


def _call(simulation: Simulation, station: Station, host: TcpHost, remote: str, call: Call) -> None:
    """Let a host call; the user runs after each event of its connection, and when it wants to."""

    def begin(now: float) -> None:
        user = User(call)
        connection = host.connect(remote, call.port, user, now)

        def look(now: float) -> None:
            if connection.state is State.CLOSED:
                return
            host.run(connection, now)
            if (wake := user.wake(now)) is not None:
                simulation.call_at(wake, lambda: station.step(look))

        look(now)

    simulation.call_at(call.at, lambda: station.step(begin))


def _configured(
    ics: Mapping[str, Any], undecided: Iterable[str] = (), profiles: tuple[str, ...] = (),
    **changes: Any,
) -> Setting:  # fmt: skip
    return Setting(
        lambda setup: setup.configured(**changes), ics,
        profiles=profiles, undecided=frozenset(undecided),
    )  # fmt: skip


_WITHOUT_SACK = dict.fromkeys(
    ("sack", "sack_sender", "sack_receiver", "dsack", "recalls_blocks"), False
)

SETTINGS = {
    "mss-256": _configured(
        {}, ("SNR-LT-003", "SNR-REC-009", "SNR-SS-004", "SNR-TS-012", "SNR-WIN-002"), mss=256
    ),
    "mss-536": _configured({}, ("SNR-SS-004", "SNR-TS-012"), mss=536),
    # No segment of the tester's 1460 octets is full.
    "mss-9000": _configured({}, ("SNR-OPT-016", "SNR-RCV-004"), mss=9000),
    "one-segment": _configured(
        {"initial_window_segments": 1}, initial_window_segments=1, profiles=("rfc",)
    ),
    "small-window": _configured(
        {}, ("SNR-RCV-012", "SNR-SS-004"), receive_buffer=5840, send_buffer=5840
    ),
    "no-sack": _configured(_WITHOUT_SACK, sack=False, dsack=False),
    "no-timestamps": _configured({"timestamps": False}, timestamps=False),
    "no-window-scale": _configured({"window_scale": False}, ("SNR-RCV-012",), window_scale=False),
    "half-a-second": _configured({}, delayed_ack_timeout=0.5),
    "byte-counting": _configured({"byte_counting": "abc"}, byte_counting=2, profiles=("rfc",)),
    # The numbers of the sender wrap, and pass 2^31, within the first segments.
    "wrap": Setting(lambda setup: setup.with_part(Wrapping), {}),
    "half": Setting(lambda setup: setup.with_part(Halfway), {}),
}

SUBJECT = Subject(
    ics=ICS,
    setups=SETUPS,
    variants={
        **{name: Setup(EndpointConfig(variant=name)) for name in VARIANTS},
        **{setup.config.variant: setup for setup in SETUPS.values()},
    },
    make=lambda address, setup, seed: TcpHost(address, setup.config, seed, parts=setup.parts),
    draw=_draw,
    call=_call,
    settings=SETTINGS,
)
