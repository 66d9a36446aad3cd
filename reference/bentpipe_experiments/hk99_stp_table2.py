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
from bentpipe_experiments.model import (
    Cells,
    Experiment,
    Judgment,
    Measurement,
    Panel,
    Published,
    Series,
)
from bentpipe_experiments.statistics import mean
from bentpipe_experiments.verdicts import NOT_MEASURED, less, number, pairs_of, within_all
from bentpipe_experiments.web_traffic import reply_octets

RATE = 1_300_000
REQUEST = 500
REQUESTS = (100.0, 300.0, 500.0, 700.0, 1000.0, 1400.0)
WINDOWS = (1.0, 4.0, 10.0)
"""Segments: the paper's initial window, what STP-CG-001 recommends, and the most it permits."""

SEGMENT = 1460
BATCH = 50
GEO = 600.0
PACKETS = "packets"
TCP, STP, FIRST = "tcp", "stp", "stp-first-call"
TCP_PARETO, STP_PARETO = "tcp-pareto", "stp-pareto"
NEARLY = 0.1
"""Seconds: far less than the round trip that a longer request may not cost."""

_PAUSE_S = 1.0
_PARETO_SHAPE, _PARETO_LEAST, _PARETO_MOST = 1.1, 1000, 100 * SEGMENT
_WHERE = "table II"
_NUMBERS = ((TCP, "TCP", 2.0, 12.3), (STP, "STP", 1.5, 9.1), ("", "T/TCP", 1.4, 7.3))
PUBLISHED = tuple(
    Published(f"{label}, as printed", value, _WHERE, GEO, series, note)
    for series, label, latency, packets in _NUMBERS
    for value, note in ((latency, None), (packets, PACKETS))
)
_QUANTITIES = ((None, "latency", 0.10, "s"), (PACKETS, PACKETS, 0.15, "packets"))
"""Note, name, tolerance of a printed number, and unit."""


def link(rtt_ms: float) -> LinkProfile:
    """The emulated link; one transfer at a time never fills its queue."""
    return links.link(f"hk99-stp-web-{rtt_ms:g}", "HK99-STP section VII.C", rtt_ms, RATE)


class _Transaction(Flow):
    """A request one way and a reply the other way over TCP.

    Attributes:
        answered: when the client had read the whole reply, None before that.
        reply: octets of it read so far.
    """

    def __init__(self, path: Path, setup: Setup, request: int, octets: int) -> None:
        flow = path.flow(request, setup)
        super().__init__(path, flow.sending, flow.receiving, request)
        self.reply = 0
        self.answered: float | None = None
        self._request = request
        self._expected = octets

    def _feed(self, endpoint: TcpConnection, now: float) -> None:
        if endpoint.sender.source is None and endpoint.state is State.ESTABLISHED:
            endpoint.write(pattern(0, self._request), now)
            endpoint.close(now)
        data = endpoint.read()
        self.intact = self.intact and data == pattern(self.reply, len(data))
        self.reply += len(data)
        if self.reply == self._expected and self.answered is None:
            self.answered = now

    def _drain(self, endpoint: TcpConnection, now: float) -> None:
        self.read += len(endpoint.read())
        if self.read == self._request and self.finished is None:
            self.finished = now
            endpoint.write(pattern(0, self._expected), now)
            endpoint.close(now)


def _over_tcp(
    rtt_ms: float, request: int, window: int, sizes: list[int], seed: int
) -> list[tuple[float, int]]:
    """Latency and packets of each transfer."""
    path = Path(link(rtt_ms), seed)
    numbers = random.Random(seed)
    found = []
    for octets in sizes:
        receiver = net3.heartbeat_receiver(numbers.uniform(0, net3.HEARTBEAT))
        config = EndpointConfig(
            variant="sack-newreno-hk99", mss=SEGMENT, initial_window_segments=window
        )
        setup = Setup(config, Parts(receiver=receiver))
        flow = _Transaction(path, setup, request, octets)
        found.append(_timed(path, flow.start, partial(getattr, flow, "answered")))
        if not flow.intact or flow.failure or flow.reply != octets:
            raise RuntimeError(f"a reply of {octets} octets over TCP failed: {flow.failure}.")
    return found


class _Dialogue:
    """Requests and replies over STP, one connection each, between the same two endpoints."""

    def __init__(self, rtt_ms: float, request: int, window: int, seed: int) -> None:
        config = StpConfig(protocol=PROTOCOL, initial_window=window)
        self.path = StpPath(link(rtt_ms), config, self._client, self._server, seed=seed)
        self.answered: float | None = None
        self.failure: str | None = None
        self._request = request
        self._asked = 0
        self._reply = bytearray()
        self._octets = 0

    def time(self, octets: int) -> tuple[float, int]:
        """Latency and packets of a transfer with a reply of so many octets."""
        found = _timed(self.path, partial(self._ask, octets), lambda: self.answered)
        if self.failure:
            raise RuntimeError(f"a reply of {octets} octets over STP failed: {self.failure}.")
        return found

    def _ask(self, octets: int) -> None:
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


def _over_stp(
    rtt_ms: float, request: int, window: int, sizes: list[int], seed: int
) -> list[tuple[float, int]]:
    """The same; a transfer before them gives the client its first cookie (STP-CC-040)."""
    dialogue = _Dialogue(rtt_ms, request, window, seed)
    dialogue.time(sizes[0])
    return [dialogue.time(octets) for octets in sizes]


def _first_calls(
    rtt_ms: float, request: int, window: int, sizes: list[int], seed: int
) -> list[tuple[float, int]]:
    """The same with a client each time that the server has never given a cookie."""
    numbers = random.Random(seed)
    return [
        _Dialogue(rtt_ms, request, window, numbers.getrandbits(32)).time(octets) for octets in sizes
    ]


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


def pareto_octets(uniform: float) -> int:
    """Size of a reply as others have modelled them: a bounded Pareto distribution, by inversion."""
    tail = (_PARETO_LEAST / _PARETO_MOST) ** _PARETO_SHAPE
    return int(_PARETO_LEAST * (1 - uniform * (1 - tail)) ** (-1 / _PARETO_SHAPE))


_TRANSFERS = {
    TCP: (_over_tcp, reply_octets),
    STP: (_over_stp, reply_octets),
    FIRST: (_first_calls, reply_octets),
    TCP_PARETO: (_over_tcp, pareto_octets),
    STP_PARETO: (_over_stp, pareto_octets),
}
"""How each series transfers, and the sizes of its replies."""


def measure(
    series: str,
    rtt_ms: float,
    seed: int,
    *,
    request: int = REQUEST,
    window: int = 1,
    batch: int = BATCH,
) -> Measurement:
    """Mean latency in seconds and mean number of packets of a batch of transfers.

    Args:
        series: the protocol, with the sizes of the replies.
        rtt_ms: round-trip propagation time, milliseconds.
        seed: seed of everything random.
        request: octets of a request.
        window: segments of the initial window.
        batch: transfers.
    """
    transfer, octets = _TRANSFERS[series]
    numbers = random.Random(seed)
    # One size from each of as many equal parts of the distribution: batches are alike.
    sizes = [octets((part + numbers.random()) / batch) for part in range(batch)]
    numbers.shuffle(sizes)
    found = transfer(rtt_ms, request, window, sizes, numbers.getrandbits(32))
    return Measurement(
        mean([latency for latency, _ in found]), {PACKETS: mean([count for _, count in found])}
    )


def measure_request(series: str, request: float, seed: int) -> Measurement:
    """The same at 600 ms, with requests of so many octets."""
    return measure(series, GEO, seed, request=int(request))


def measure_window(series: str, window: float, seed: int) -> Measurement:
    """The same at 600 ms, with an initial window of so many segments."""
    return measure(series, GEO, seed, window=int(window))


def judge(cells: Cells, _: int) -> list[Judgment]:
    """The printed numbers, and that STP is faster than TCP and needs fewer packets."""
    judgments = []
    for series, label, *_numbers in _NUMBERS[:2]:
        for note, name, tolerance, unit in _QUANTITIES:
            printed = [item for item in PUBLISHED if (item.series, item.note) == (series, note)]
            claim = f"{label}'s {name} at 600 ms ({_WHERE})"
            judgments.append(number(f"{series}-{name}", claim, cells, printed, tolerance, unit))
    faster = "STP answers faster than TCP at 600 ms (section VII.C)"
    fewer = "STP needs fewer packets than TCP at 600 ms (section VII.C)"
    first = "so does a client's first call, which has no cookie yet (STP/1)"
    names = ("STP", "TCP")
    return [
        *judgments,
        less("faster", faster, pairs_of(cells, STP, TCP, [GEO]), "s", names),
        less("faster-first", first, pairs_of(cells, FIRST, TCP, [GEO]), "s", names),
        less("fewer", fewer, pairs_of(cells, STP, TCP, [GEO], PACKETS), "packets", names),
    ]


def judge_requests(cells: Cells, _: int) -> list[Judgment]:
    """What table II says of small requests, whatever small means, up to a segment."""
    points = sorted({x for _, x in cells})
    names = ("STP", "TCP")
    faster = "STP answers faster than TCP, however long the request (section VII.C)"
    fewer = "STP needs fewer packets than TCP, however long the request (section VII.C)"
    return [
        less("faster", faster, pairs_of(cells, STP, TCP, points), "s", names),
        less("fewer", fewer, pairs_of(cells, STP, TCP, points, PACKETS), "packets", names),
        _level(cells, points),
    ]


def judge_windows(cells: Cells, _: int) -> list[Judgment]:
    """What table II says, with other initial windows and other sizes of replies than its own."""
    points = sorted({x for _, x in cells})
    names = ("STP", "TCP")
    faster = "STP answers faster than TCP with the same initial window"
    fewer = "STP needs fewer packets than TCP with the same initial window"
    pareto = ", with replies of Pareto sizes (section VII.C)"
    return [
        less("faster", f"{faster} (section VII.C)", pairs_of(cells, STP, TCP, points), "s", names),
        less(
            "fewer", f"{fewer} (section VII.C)", pairs_of(cells, STP, TCP, points, PACKETS),
            "packets", names,
        ),
        less(
            "faster-pareto", faster + pareto, pairs_of(cells, STP_PARETO, TCP_PARETO, points), "s",
            names,
        ),
        less(
            "fewer-pareto", fewer + pareto,
            pairs_of(cells, STP_PARETO, TCP_PARETO, points, PACKETS), "packets", names,
        ),
    ]  # fmt: skip


def _level(cells: Cells, points: list[float]) -> Judgment:
    claim = (
        f"from the shortest request to the longest STP's latency grows by less than {NEARLY:g} s, "
        "known client or not (STP/1)"
    )
    if len(points) < 2 or any((name, x) not in cells for name in (STP, FIRST) for x in points):
        return Judgment("level", claim, None, NOT_MEASURED)
    means = {name: [cells[name, x].mean for x in points] for name in (STP, FIRST)}
    margin = max(cells[name, x].half_width for name in means for x in points)
    grown = {name: max(found) - min(found) for name, found in means.items()}
    sentence = ", ".join(
        f"{label} {min(means[name]):.3f} to {max(means[name]):.3f} s"
        for name, label in ((STP, "with a cookie"), (FIRST, "first call"))
    )
    return Judgment("level", claim, within_all(grown.values(), margin, 0.0, NEARLY), sentence)


_SERIES = (
    Series(TCP, "TCP"), Series(STP, "STP, with a cookie"), Series(FIRST, "STP, first call"),
)  # fmt: skip
_SETTINGS = {
    "transfers": (
        "20 runs of 50, one after the other: the 1000 of table II, the same sizes for all"
    ),
    "pattern": (
        f"the client sends a request of {REQUEST} octets and ends its stream; the server sends the "
        "reply and ends its own. Latency is from the call to the last octet of the reply; packets "
        "are all of both ends until the connection is gone"
    ),
    "sizes": (
        "lognormal, median 2200 octets, sigma 1.3, from 60 octets to 100 segments: Mah's traces "
        "are not at hand; these sizes explain 44 of the 48 minima, medians and means that HK99's "
        "Table 2 derives from them. Each run takes one size from each fiftieth of them"
    ),
    "link": "1.3 Mb/s both ways, as elsewhere; table II gives only the 600 ms",
    "segments": "1460 octets; STP's 1456, so that an SDP fits into a packet of 1500",
    "initial window": "one segment (section VII.C)",
    "TCP": (
        "SACK-NewReno; delayed acknowledgments at the beats of a 200 ms clock; data and FIN leave "
        "in segments of their own when the window lets them"
    ),
    "STP": (
        "directly over IP. With a cookie from an earlier connection the request travels in the "
        "BEGIN and is answered at once (STP-CC-040); without one, the client is given a cookie and "
        "calls anew (STP-CC-037)"
    ),
    "T/TCP": "its printed values only: the reference has none",
}
_SOURCE = "HK99-STP (IEEE JSAC 17(2), 1999) table II, section VII.C"

EXPERIMENTS = (
    Experiment(
        id="hk99-stp-table2",
        title="Web transfers over TCP and STP",
        source=_SOURCE,
        series=_SERIES,
        x_label="round-trip propagation time (ms)",
        y_label="average latency (s)",
        points=(80.0, 300.0, 600.0),
        runs=20,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(Panel(PACKETS, "average packets"),),
        published=PUBLISHED,
    ),
    Experiment(
        id="hk99-stp-table2-requests",
        title="Web transfers and the length of the request, 600 ms",
        source=_SOURCE,
        series=_SERIES,
        x_label="octets of the request",
        y_label="average latency (s)",
        points=REQUESTS,
        runs=20,
        settings={
            **_SETTINGS,
            "requests": (
                "the paper calls them small; here from a line to what fits into one packet"
            ),
        },
        measure=measure_request,
        judge=judge_requests,
        panels=(Panel(PACKETS, "average packets"),),
    ),
    Experiment(
        id="hk99-stp-table2-windows",
        title="Web transfers and the initial window, 600 ms",
        source=_SOURCE,
        series=(
            *_SERIES,
            Series(TCP_PARETO, "TCP, Pareto sizes"),
            Series(STP_PARETO, "STP, with a cookie, Pareto sizes"),
        ),
        x_label="initial window (segments)",
        y_label="average latency (s)",
        points=WINDOWS,
        runs=20,
        settings={
            **_SETTINGS,
            "initial window": (
                "one segment, as in the paper; four, which STP/1 recommends; ten, the most that it "
                "permits (STP-CG-001) and that RFC 6928 permits TCP"
            ),
            "Pareto sizes": (
                "bounded Pareto, shape 1.1, from 1000 octets to 100 segments, as often assumed of "
                "the Web: a third of the replies fit into one segment, and none into one of 500 "
                "octets, which HK99's Table 2 excludes"
            ),
        },
        measure=measure_window,
        judge=judge_windows,
        panels=(Panel(PACKETS, "average packets"),),
    ),
)
