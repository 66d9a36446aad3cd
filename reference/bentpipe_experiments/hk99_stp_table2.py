"""HK99-STP table II: short requests and replies over TCP and over STP.

A client asks for something of the size of a Web page's parts and gets it. What counts is how long
the client waits, and how many packets cross the link for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from bentpipe_reference.common.encapsulation import PROTOCOL
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.transfer import StpPath
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.connection import Connection as TcpConnection
from bentpipe_reference.tcp.parts import Parts, Setup
from bentpipe_reference.tcp.path import Flow, Path
from bentpipe_reference.tcp.states import State

from bentpipe_experiments import links, net3
from bentpipe_experiments.model import Cells, Experiment, Judgment, Measurement, Panel, Series
from bentpipe_experiments.statistics import half_width, mean
from bentpipe_experiments.web_traffic import reply_octets

RATE = 1_300_000
REQUEST, SHORT_REQUEST = 500, 300
SEGMENT = 1460
BATCH = 50
GEO = 600.0
PACKETS = "packets"
TCP, STP, STP_SHORT = "tcp", "stp", "stp-short"
_PAUSE_S = 1.0


def link(rtt_ms: float) -> LinkProfile:
    """The emulated link; one transfer at a time never fills its queue."""
    return links.link(f"hk99-stp-web-{rtt_ms:g}", "HK99-STP section VII.C", rtt_ms, RATE)


class _Transaction(Flow):
    """A request one way and a reply the other way over TCP.

    Attributes:
        answered: when the client had read the whole reply, None before that.
        reply: octets of it read so far.
    """

    def __init__(self, path: Path, setup: Setup, octets: int) -> None:
        flow = path.flow(REQUEST, setup)
        super().__init__(path, flow.sending, flow.receiving, REQUEST)
        self.reply = 0
        self.answered: float | None = None
        self._expected = octets

    def _feed(self, endpoint: TcpConnection, now: float) -> None:
        if endpoint.sender.source is None and endpoint.state is State.ESTABLISHED:
            endpoint.write(pattern(0, REQUEST), now)
            endpoint.close(now)
        data = endpoint.read()
        self.intact = self.intact and data == pattern(self.reply, len(data))
        self.reply += len(data)
        if self.reply == self._expected and self.answered is None:
            self.answered = now

    def _drain(self, endpoint: TcpConnection, now: float) -> None:
        self.read += len(endpoint.read())
        if self.read == REQUEST and self.finished is None:
            self.finished = now
            endpoint.write(pattern(0, self._expected), now)
            endpoint.close(now)


def _over_tcp(rtt_ms: float, sizes: list[int], seed: int) -> list[tuple[float, int]]:
    """Latency and packets of each transfer."""
    path = Path(link(rtt_ms), seed)
    numbers = random.Random(seed)
    found = []
    for octets in sizes:
        receiver = net3.heartbeat_receiver(numbers.uniform(0, net3.HEARTBEAT))
        setup = Setup(
            EndpointConfig(variant="sack-newreno-hk99", mss=SEGMENT), Parts(receiver=receiver)
        )
        flow = _Transaction(path, setup, octets)
        found.append(_timed(path, flow.start, partial(getattr, flow, "answered")))
        if not flow.intact or flow.failure or flow.reply != octets:
            raise RuntimeError(f"a reply of {octets} octets over TCP failed: {flow.failure}.")
    return found


class _Dialogue:
    """Requests and replies over STP, one connection each, between the same two endpoints."""

    def __init__(self, rtt_ms: float, request: int, seed: int) -> None:
        config = StpConfig(protocol=PROTOCOL, max_sd=SEGMENT, initial_window=1)
        self.path = StpPath(link(rtt_ms), config, self._client, self._server, seed=seed)
        self.answered: float | None = None
        self.failure: str | None = None
        self._request = request
        self._asked = 0
        self._reply = bytearray()
        self._octets = 0

    def ask(self, octets: int) -> None:
        """Call, with the request; the reply is to have so many octets."""
        self._octets, self._reply, self._asked = octets, bytearray(), 0
        self.answered = None
        connection = self.path.connect()
        connection.write(pattern(0, self._request))
        connection.close()
        self.path.near.settle()

    def _client(self, connection: Connection, events: Events, now: float) -> None:
        self._reply += connection.read()
        if len(self._reply) == self._octets and self.answered is None:
            self.answered = now
        self.failure = self.failure or connection.failure
        if events & Events.ENDED and bytes(self._reply) != pattern(0, self._octets):
            self.failure = "the octets read are not those sent"

    def _server(self, connection: Connection, _: Events, __: float) -> None:
        data = connection.read()
        self._asked += len(data)
        if data and self._asked == self._request:
            connection.write(pattern(0, self._octets))
            connection.close()
        self.failure = self.failure or connection.failure


def _over_stp(rtt_ms: float, sizes: list[int], seed: int, request: int) -> list[tuple[float, int]]:
    """The same; a transfer before them makes the client known to the server (STP-CC-003)."""
    dialogue = _Dialogue(rtt_ms, request, seed)
    found = []
    for octets in [sizes[0], *sizes]:
        start = partial(dialogue.ask, octets)
        found.append(_timed(dialogue.path, start, lambda: dialogue.answered))
        if dialogue.failure:
            raise RuntimeError(f"a reply of {octets} octets over STP failed: {dialogue.failure}.")
    return found[1:]


def _timed(
    path: Path | StpPath, start: Callable[[], None], answered: Callable[[], float | None]
) -> tuple[float, int]:
    """Run one transfer to the end of its connection: seconds to the reply, packets both ways."""
    simulation = path.simulation
    simulation.run_until(simulation.now + _PAUSE_S)
    began, before = simulation.now, _packets(path)
    start()
    simulation.run()
    at = answered()
    if at is None:
        raise RuntimeError("a reply never came.")
    return at - began, _packets(path) - before


def _packets(path: Path | StpPath) -> int:
    return path.forward.counters.offered + path.return_.counters.offered


def measure(protocol: str, rtt_ms: float, seed: int, *, batch: int = BATCH) -> Measurement:
    """Mean latency in seconds and mean number of packets of a batch of transfers."""
    numbers = random.Random(seed)
    sizes = [reply_octets(numbers.random()) for _ in range(batch)]
    more = numbers.getrandbits(32)
    if protocol == TCP:
        found = _over_tcp(rtt_ms, sizes, more)
    else:
        request = REQUEST if protocol == STP else SHORT_REQUEST
        found = _over_stp(rtt_ms, sizes, more, request)
    return Measurement(
        mean([latency for latency, _ in found]), {PACKETS: mean([count for _, count in found])}
    )


def judge(cells: Cells, _: int) -> list[Judgment]:
    """STP is faster than TCP and needs fewer packets, at 600 ms."""
    faster = "STP answers faster than TCP at 600 ms (table II: 1.5 and 2.0 s)"
    short = f"it does so with requests of {SHORT_REQUEST} octets as well"
    fewer = "STP needs fewer packets than TCP at 600 ms (table II: 9.1 and 12.3)"
    return [
        _less("faster", faster, cells, STP, None, "s"),
        _less("faster-short", short, cells, STP_SHORT, None, "s"),
        _less("fewer", fewer, cells, STP, PACKETS, "packets"),
    ]


def _less(name: str, claim: str, cells: Cells, which: str, note: str | None, unit: str) -> Judgment:
    if (TCP, GEO) not in cells or (which, GEO) not in cells:
        return Judgment(name, claim, None, "600 ms was not measured for both")
    tcp, stp = (cells[protocol, GEO].of(note) for protocol in (TCP, which))
    # Both meet the same sizes in the same run, so the difference varies less than either.
    saved = [a - b for a, b in zip(tcp.values, stp.values, strict=True)]
    least, margin = mean(saved), half_width(saved)
    sentence = (
        f"STP {stp.mean:.2f}, TCP {tcp.mean:.2f} {unit}; STP saves {least:.2f} ± {margin:.2f} "
        f"{unit} in transfers of the same sizes"
    )
    holds = None if abs(least) <= margin else least > 0
    return Judgment(name, claim, holds, sentence)


EXPERIMENTS = (
    Experiment(
        id="hk99-stp-table2",
        title="Web transfers over TCP and STP",
        source="HK99-STP (IEEE JSAC 17(2), 1999) table II, section VII.C",
        series=(
            Series(TCP, "TCP"),
            Series(STP, "STP"),
            Series(STP_SHORT, f"STP, requests of {SHORT_REQUEST} octets"),
        ),
        x_label="round-trip propagation time (ms)",
        y_label="average latency (s)",
        points=(80.0, 300.0, 600.0),
        runs=20,
        settings={
            "transfers": (
                "20 runs of 50, one after the other: the 1000 of table II, the same sizes for both"
            ),
            "pattern": (
                "the client sends a request of 500 octets and ends its stream; the server sends "
                "the reply and ends its own. Latency is from the call to the last octet of the "
                "reply; packets are all of both ends until the connection is gone"
            ),
            "requests": (
                "the paper calls them small. With 500 octets the server may answer at once with "
                "one full segment; after 300 it may not before the client's address is proven "
                "(STP-SEC-001, three times the octets received; the paper has no such rule)"
            ),
            "sizes": (
                "a bounded Pareto distribution from 1000 octets to 100 segments, as for the cross "
                "traffic of hk99-fig13: Mah's traces are not public"
            ),
            "link": "1.3 Mb/s both ways, as elsewhere; table II gives only the 600 ms",
            "segments": "1460 octets",
            "initial window": "one segment (section VII.C)",
            "TCP": (
                "SACK-NewReno; delayed acknowledgments at the beats of a 200 ms clock; data and "
                "FIN leave in segments of their own when the window lets them"
            ),
            "STP": (
                "directly over IP; the server knows the client from an earlier connection, so the "
                "request travels in the BEGIN and is answered at once (STP-CC-003)"
            ),
            "T/TCP": "left out: the reference has none",
        },
        measure=measure,
        judge=judge,
        panels=(Panel(PACKETS, "average packets"),),
    ),
)
