"""The STP reference as the exam sees it."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from bentpipe_reference.common.encapsulation import PROTOCOL
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.sim import Simulation
from bentpipe_reference.common.subject import Call, Drawn, Setting, Station, Subject
from bentpipe_reference.common.users import Caller
from bentpipe_reference.stp.config import LEAST_MAX_SD, StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.csn import CsnGenerator
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.sequence import PACKET_MASK
from bentpipe_reference.stp.setup import Setup

TICK_S = 0.5
"""How often a user checks a connection without events, seconds."""

MEMORY_OCTETS = 400_000
"""In the setting ``small-over-ip``: what is not given back is missed by the thirtieth call."""

RATE_BPS = 600_000
"""Bits per second in the setting ``max-rate``."""


SOON_SDS = 64
"""The numbers below 2^24 at which every other stream begins, so that it wraps in most cases."""

IN_A_ROW = 4
"""Of so many ISSs at least one lies far from the wrap, whatever comes."""

FAR_SDS = (PACKET_MASK + 1) // 8
"""How far that is, to either side: half of it is what eight numbers from the whole range take at
least, but for once in 30 million times."""


class SoonWrapping(CsnGenerator):
    """ISSs of which half are random, and half random among the last ones before the wrap.

    Nobody who draws them from the whole range ever gets to the wrap within a case.
    """

    def __init__(self, *begin: Any) -> None:
        """See :class:`CsnGenerator`."""
        super().__init__(*begin)
        self._recent: deque[int] = deque(maxlen=SOON_SDS // 2)
        self._near = 0

    def iss(self) -> int:
        """STP-CC-011, but for those that wrap soon; a call anew has a new one (STP-CC-037)."""
        number = super().iss()
        if self._near >= IN_A_ROW - 1:
            number = FAR_SDS + number % (PACKET_MASK - 2 * FAR_SDS)
        elif not number & 1:
            number = PACKET_MASK - (number >> 1) % SOON_SDS
        while number in self._recent:
            number = number - 1 & PACKET_MASK
        self._recent.append(number)
        # Random ones near the wrap look like those that wrap soon.
        far = FAR_SDS <= number <= PACKET_MASK - FAR_SDS
        self._near = 0 if far else self._near + 1
        return number


USUAL = Setup().with_part(SoonWrapping)
"""What all cases are run on."""


def _draw(numbers: random.Random, link: LinkProfile) -> Drawn:
    reorders = any(way.reorder_probability > 0 for way in (link.forward, link.return_))
    rate = numbers.choice((0, 0, 0, 100_000, 700_000))
    mtu = numbers.choice((1500, 1500, 1280, 576, 9000))
    config = StpConfig(
        path_class=numbers.choice(("geo", "leo", "vbdc")),
        mtu=mtu,
        max_sd=numbers.choice((None, None, LEAST_MAX_SD)),
        credit=numbers.choice((4, 5, 8, 40, 256, 2048)),
        send_buffer=numbers.choice((512, 4096, 65536, 1 << 18, 1 << 24)),
        send_window=numbers.choice((4, 64, 1 << 14, 1 << 14)),
        initial_window=numbers.randint(1, 10),
        max_rate=rate or None,
        fifo=not reorders and numbers.random() < 0.8,
        keep_alive=numbers.choice((15, 60, 600, 7200)),
        max_stat=numbers.choice((3, 7, 67, 67)),
    )
    ics = {
        "active_open": True,
        "fifo": config.fifo,
        "rate_limit": rate > 0,
        "rate_limit_bps": rate,
        "initial_window_sds": config.initial_window,
        "keep_alive_s": int(config.keep_alive),
        "path_class": config.path_class,
    }
    latency = numbers.choice((0.0, 0.0, 0.001, 0.005))
    return Drawn(Setup(config), ics, "stp1e2", latency_s=latency)


class User(Caller):
    """A user of a connection."""

    def __init__(self, call: Call, simulation: Simulation) -> None:
        super().__init__(call)
        self._simulation = simulation

    def run(self, connection: Connection) -> None:
        """Read, write, and end as the call says."""
        now = self._simulation.now
        if self.reads(now):
            connection.read(self.call.reading)
        if not connection.is_over and not connection.has_closed:
            self.go_on(connection, now, lambda: connection.abort(now))


def _call(simulation: Simulation, station: Station, host: StpHost, remote: str, call: Call) -> None:
    def begin(_: float) -> None:
        user = User(call, simulation)
        connection = host.connect(remote, call.port, user)

        def look(_: float) -> None:
            user.run(connection)
            if not connection.is_over:
                simulation.call_at(simulation.now + TICK_S, lambda: station.step(look))

        look(simulation.now)

    simulation.call_at(call.at, lambda: station.step(begin))


SUBJECT = Subject(
    ics={
        "active_open": True,
        "user_aborts": True,
        "fifo": True,
        "rate_limit": False,
        "rate_limit_bps": 0,
        "initial_window_sds": 4,
        "keep_alive_s": 600,
        "path_class": "geo",
    },
    setups={"stp1e2": USUAL},
    variants={"stp1e2": USUAL},
    make=lambda address, setup, seed: setup.make(address, seed),
    draw=_draw,
    call=_call,
    settings={
        "max-rate": Setting(
            lambda setup: setup.configured(max_rate=RATE_BPS),
            {"rate_limit": True, "rate_limit_bps": RATE_BPS},
            bounds=frozenset(("stp.pacing",)),
        ),
        "reordering": Setting(
            lambda setup: setup.configured(fifo=False),
            {"fifo": False},
            bounds=frozenset(("stp.receiver",)),
        ),
        "vbdc": Setting(lambda setup: setup.configured(path_class="vbdc"), {"path_class": "vbdc"}),
        "small-over-ip": Setting(
            lambda setup: setup.configured(
                protocol=PROTOCOL, max_connections=8, receive_memory=MEMORY_OCTETS
            ),
            {},
            ip_protocol=PROTOCOL,
            bounds=frozenset(("stp.endpoint", "stp.memory", "stp.cookies", "stp.packets")),
        ),
        # Too little to show a window, or to rise to.
        "credit-8": Setting(
            lambda setup: setup.configured(credit=8),
            {},
            undecided=frozenset(("STP-CG-010", "STP-PF-012")),
        ),
        "max-sd-512": Setting(lambda setup: setup.configured(max_sd=LEAST_MAX_SD), {}),
        # A credit that does not grow, of which 16 SDs are less than half.
        "mtu-576-credit-40": Setting(
            lambda setup: setup.configured(mtu=576, credit=40),
            {},
            undecided=frozenset(("STP-PF-012",)),
            bounds=frozenset(("stp.receiver",)),
        ),
        "latency": Setting(lambda setup: setup, {}, latency_s=0.005),
        "initial-window-10": Setting(
            lambda setup: setup.configured(initial_window=10), {"initial_window_sds": 10}
        ),
    },
)
