"""HK99-STP figure 9: split TCP against split STP, forward throughput and use of the return channel.

A host in the wide-area Internet sends to a user behind a satellite. A gateway splits the
connection: TCP in the Internet, where another connection competes, and TCP or STP over the
satellite.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import correlation

from bentpipe_reference.common.encapsulation import PROTOCOL
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.tcp.config import EndpointConfig, Variant
from bentpipe_reference.tcp.parts import Parts, Setup
from bentpipe_reference.tcp.path import Path

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
from bentpipe_experiments.split import MakeLeg, SplitFlow, stp_leg, tcp_leg
from bentpipe_experiments.statistics import clearly_below, paired_ratio, ratio, within
from bentpipe_experiments.verdicts import (
    NOT_MEASURED,
    altogether,
    band,
    less,
    number,
    pairs_of,
    ratios_of,
)
from bentpipe_experiments.web_traffic import WebTraffic

RATE_KB_S = 1300.0
OCTETS = 10 * 1024 * 1024
SEGMENT = 1000
BUFFER = 240 * 1024
QUEUE_S = 0.32
WIDE_RATE = 10_000_000
WIDE_RTT_S = 0.02
WIDE_QUEUE = 50
WEB_KB_S = 80.0
_VARIANT: Variant = "sack-newreno-hk99"
_SECTION = "HK99-STP section IV.A"
_ENDLESS = 1 << 40
_WARM_UP_S = 2.0
_LIMIT_S = 3600.0
_PACKET = SEGMENT + 40

TCP, STP = "tcp", "stp"
SHORTEST, LONGEST = 20.0, 600.0
REVERSE = "reverse_kb_s"
OVERHEAD = "forward_overhead"
FORWARD = "forward_kb_s"
LONG = 450.0
"""Milliseconds: a long round trip."""

LEAST_SAVING = 10.0
MOST_LOST = 0.10
MOST_CHANGE = 1.25
"""Highest by lowest return channel of STP over all rates: what still counts as independent."""

LEAST_SPAN = 4.0
"""Highest by lowest rate, below which nothing can be said."""

LEAST_R_SQUARED = 0.98
TOLERANCE = 0.20
TCP_SHARE = (0.017, 0.025)
_TCP_REVERSE = Published("TCP, as printed", 20.0, "section VI.B", None, TCP, REVERSE)


def satellite(rtt_ms: float, rate_kb_s: float = RATE_KB_S) -> LinkProfile:
    """The satellite link; its queue holds as much time at every rate."""
    rate = 1000 * rate_kb_s
    queue = max(1, round(QUEUE_S * rate / (8 * _PACKET)))
    return links.link(f"hk99-stp-{rtt_ms:g}-{rate_kb_s:g}", _SECTION, rtt_ms, rate, queue)


def wide_area(queue: int = WIDE_QUEUE) -> LinkProfile:
    """The Internet before the gateway: its first router, with a queue, is the bottleneck."""
    rtt_ms = 1000 * WIDE_RTT_S
    return links.link("hk99-stp-wide", _SECTION, rtt_ms, WIDE_RATE, queue, queue)


def tcp_setup(variant: Variant = _VARIANT, mss: int = SEGMENT, phase: float = 0.0) -> Setup:
    """HK99's hosts, with congestion control by the RFCs."""
    config = EndpointConfig(variant=variant, mss=mss, receive_buffer=BUFFER, send_buffer=BUFFER)
    return Setup(config, Parts(receiver=net3.heartbeat_receiver(phase)))


def stp_config() -> StpConfig:
    """STP/1 directly over IP, with the window, the segments and the first window of TCP."""
    return StpConfig(
        protocol=PROTOCOL,
        max_sd=SEGMENT,
        credit=BUFFER // SEGMENT,
        send_buffer=BUFFER,
        initial_window=1,
    )


def leg(name: str, phase: float) -> MakeLeg:
    """The satellite's part of the connection over ``tcp`` or ``stp``."""
    return tcp_leg(tcp_setup(phase=phase)) if name == TCP else stp_leg(stp_config(), BUFFER)


def measure(
    protocol: str,
    rtt_ms: float,
    seed: int,
    *,
    rate_kb_s: float = RATE_KB_S,
    octets: int = OCTETS,
    compete: bool = True,
    wide_queue: int = WIDE_QUEUE,
) -> Measurement:
    """Forward throughput of one transfer in kb/s, and what the user sent meanwhile.

    Args:
        protocol: ``tcp`` or ``stp`` over the satellite.
        rtt_ms: round-trip propagation time of the satellite, milliseconds.
        seed: seed of the starting time, the cross traffic and everything else random.
        rate_kb_s: rate of the satellite link.
        octets: length of the transfer.
        compete: whether another connection shares the wide-area Internet.
        wide_queue: packets that the first router there holds.

    Raises:
        RuntimeError: the transfer did not complete, or its octets are not those sent.
    """
    numbers = random.Random(seed)
    internet = Path(wide_area(wide_queue), numbers.getrandbits(32))
    simulation = internet.simulation
    link = satellite(rtt_ms, rate_kb_s)
    space = Path(link, numbers.getrandbits(32), simulation=simulation)
    phase = numbers.uniform(0, net3.HEARTBEAT)
    web = tcp_setup("reno", 1460)
    WebTraffic(WEB_KB_S / RATE_KB_S, numbers.getrandbits(32), web)(space)
    start = _WARM_UP_S + numbers.uniform(0, 1)
    way = leg(protocol, phase)(space, octets, numbers.getrandbits(32))
    wired = tcp_setup(mss=1460, phase=phase)
    if compete:
        internet.flow(_ENDLESS, wired).start()
    flow = SplitFlow(internet, wired, octets, way)
    simulation.call_at(start, flow.start)
    while way.finished is None:
        failure = flow.failure or way.failure
        if failure is None and simulation.now > _LIMIT_S:
            failure = f"not finished within {_LIMIT_S:g} s"
        if failure:
            raise RuntimeError(f"{protocol} at {rtt_ms:g} ms, seed {seed}: {failure}.")
        simulation.step()
    if not way.intact or way.read != octets:
        raise RuntimeError(
            f"{protocol} at {rtt_ms:g} ms, seed {seed}: the octets read are not those sent."
        )
    seconds = way.finished - start
    return Measurement(
        8 * octets / seconds / 1000,
        {
            REVERSE: 8 * way.reverse_octets / seconds / 1000,
            OVERHEAD: way.forward_octets / octets - 1,
            "dropped": space.forward.counters.dropped_by_queue,
            "wide_dropped": internet.forward.counters.dropped_by_queue,
            "gateway_most": flow.buffered_most,
        },
    )


def measure_at_rate(protocol: str, rate_kb_s: float, seed: int) -> Measurement:
    """The use of the return channel in kb/s at one rate of the satellite link, at 600 ms."""
    found = measure(protocol, LONGEST, seed, rate_kb_s=rate_kb_s, compete=False)
    return Measurement(found.notes[REVERSE], {**found.notes, FORWARD: found.value})


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What sections VI.B and VII.C say of figure 9."""
    points = sorted({x for _, x in cells})
    whole = points if {SHORTEST, LONGEST} <= set(points) else []
    slow = [x for x in whole if x >= LONG]
    printed = [replace(_TCP_REVERSE, point=x) for x in whole]
    return [
        band(
            "reverse-tenth",
            "at 600 ms STP uses an order of magnitude less of the return channel (figure 9b): a "
            "tenth of TCP's at most",
            ratios_of(cells, TCP, STP, [LONGEST], REVERSE), LEAST_SAVING, unit=" times",
        ),
        band(
            "forward-tenth",
            "at every round-trip time STP is within 10 % of SACK-NewReno (figure 9a)",
            ratios_of(cells, STP, TCP, whole), 1 - MOST_LOST, 1 + MOST_LOST, scale=100, unit=" %",
        ),
        less(
            "slower", "at long round trips STP is slightly slower than TCP (section VII.C)",
            pairs_of(cells, STP, TCP, slow), "kb/s", ("STP", "TCP"),
        ),
        _falling(cells, whole),
        less(
            "overhead", "STP adds less to the forward channel than TCP (section VII.C)",
            pairs_of(cells, STP, TCP, whole, OVERHEAD), "of the octets", ("STP", "TCP"),
        ),
        number(
            "tcp-reverse",
            "TCP's acknowledgments take roughly 20 kb/s, whatever the round trip (section VI.B)",
            cells, printed, TOLERANCE, "kb/s",
        ),
        band(
            "tcp-share",
            "that is roughly 2 % of the forward throughput with segments of 1000 octets (section "
            "VI.B): 1.7 to 2.5 %",
            _shares(cells, TCP, whole), *TCP_SHARE, scale=100, unit=" %",
        ),
    ]  # fmt: skip


def _shares(cells: Cells, name: str, points: Sequence[float]) -> dict[float, tuple[float, float]]:
    """The return channel as a share of the forward throughput, by point."""
    if any((name, x) not in cells for x in points):
        return {}
    found = {x: cells[name, x] for x in points}
    return {x: paired_ratio(cell.of(REVERSE).values, cell.values) for x, cell in found.items()}


def _falling(cells: Cells, points: Sequence[float]) -> Judgment:
    claim = "STP's use of the return channel falls as the round-trip time grows (figure 9b)"
    if not points or any((STP, x) not in cells for x in points):
        return Judgment("reverse-falls", claim, None, NOT_MEASURED)
    use = {x: cells[STP, x].of(REVERSE) for x in points}
    sentence = ", ".join(f"{cell.mean:.2f} at {x:g} ms" for x, cell in use.items()) + " kb/s"
    verdicts = []
    for shorter, longer in pairwise(points):
        less_, more = use[longer].values, use[shorter].values
        risen = clearly_below(more, less_)
        verdicts.append(False if risen else True if clearly_below(less_, more) else None)
    return Judgment("reverse-falls", claim, altogether(verdicts), sentence)


def judge_rates(cells: Cells, _: int) -> list[Judgment]:
    """Sections VI.B and VII.C: TCP's return channel follows the forward throughput, STP's not."""
    rates = sorted({x for _, x in cells})
    whole = rates if len(rates) > 1 and max(rates) >= LEAST_SPAN * min(rates) else []
    complete = all((name, x) in cells for name in (TCP, STP) for x in whole)
    return [
        _independent(cells, whole if complete else []),
        _linear(cells, whole if complete else []),
    ]


def _independent(cells: Cells, rates: Sequence[float]) -> Judgment:
    claim = (
        "STP's use of the return channel does not depend on the forward rate (section VII.C): over "
        "all rates it changes by at most a quarter"
    )
    if not rates:
        return Judgment("stp-rates", claim, None, NOT_MEASURED)
    use = [cells[STP, x] for x in rates]
    most, least = (pick(use, key=lambda cell: cell.mean) for pick in (max, min))
    value, margin = ratio(most.values, least.values)
    tcp, _ = ratio(cells[TCP, rates[-1]].values, cells[TCP, rates[0]].values)
    sentence = (
        f"STP {_told(cells, STP, rates)}: the most is {value:.2f} ± {margin:.2f} times the least; "
        f"TCP's grows {tcp:.2f} times"
    )
    return Judgment("stp-rates", claim, within(value, margin, -math.inf, MOST_CHANGE), sentence)


def _linear(cells: Cells, rates: Sequence[float]) -> Judgment:
    claim = (
        "TCP's is linear in the forward throughput (section VI.B): R squared of all runs is at "
        f"least {LEAST_R_SQUARED:g}"
    )
    if not rates:
        return Judgment("tcp-rates", claim, None, NOT_MEASURED)
    found = [(cells[TCP, x].of(FORWARD).values, cells[TCP, x].values) for x in rates]
    forward = [value for values, _ in found for value in values]
    back = [value for _, values in found for value in values]
    squared = correlation(forward, back) ** 2
    sentence = f"{_told(cells, TCP, rates)}; R squared is {squared:.4f}"
    return Judgment("tcp-rates", claim, squared >= LEAST_R_SQUARED, sentence)


def _told(cells: Cells, name: str, rates: Sequence[float]) -> str:
    return ", ".join(f"{cells[name, x].mean:.2f} at {x:g}" for x in rates) + " kb/s"


_SETTINGS = {
    "transfer": (
        "10 MB from a host in the Internet to a user behind the satellite, timed from the host's "
        "SYN to the last octet the user reads (section V.A)"
    ),
    "satellite": "1.3 Mb/s of IP packets both ways, no bit errors (section IV.A)",
    "satellite queue": (
        "50 packets, tail drop, 0.32 s. The paper gives none; it is the interface queue of 4.4BSD "
        "and the default of ns, the two systems it used"
    ),
    "Internet": (
        "20 ms and 10 Mb/s to the gateway: the path of the competing connection (figure 4) and the "
        "transit Ethernet of section IV.A; a queue of 50 packets"
    ),
    "competition": (
        "one endless SACK-NewReno connection over the same 20 ms and 10 Mb/s, which does not cross "
        "the satellite (section V.A); it begins two to three seconds before. It takes what the "
        "transfer leaves of the 10 Mb/s, and the results are the same without it"
    ),
    "cross traffic": (
        "Web-like short transfers over the satellite, 80 kb/s (section V.A): without it, losses "
        "fall in step with the windows"
    ),
    "gateway": (
        "buffers 240 KB from the Internet (TCP's receive buffer) and 240 KB for the satellite "
        "(written and not yet acknowledged), within section VI.A's 200 to 500 KB; when both are "
        "full it stops reading"
    ),
    "segments": (
        "1000 octets over the satellite: section VI.B gives TCP's return channel for these; 1460 "
        "in the Internet, the packets of an Ethernet"
    ),
    "windows": (
        "240 KB (section IV.A); for STP 245 SDs of 1000 octets. TCP and STP begin with one segment"
    ),
    "congestion control": (
        "TCP's SACK-NewReno of the appendix with the growth of RFC 5681, and STP/1's: the paper "
        "compares identical policies, so 4.4BSD's faster growth is left out"
    ),
    "acknowledgments": (
        "TCP's every second segment, else at the next beat of a 200 ms clock; STP's on three POLLs "
        "in a round trip (section VII.C; STP-PL-001)"
    ),
    "encapsulation": "STP directly over IP, as the paper's kernel has it",
    "return channel": (
        "all IP octets that the user's end sends, from the opening to the last octet read"
    ),
}
_RATES_SETTINGS = {
    **_SETTINGS,
    "satellite": "600 ms; the rate, both ways, is what varies",
    "satellite queue": (
        "0.32 s at every rate, 50 packets at 1.3 Mb/s, so that the round-trip time stays the same"
    ),
    "competition": "none: the satellite is the bottleneck at every rate",
    "cross traffic": "Web-like short transfers over the satellite, 6 % of its rate",
}
_SERIES = (Series(TCP, "split TCP (SACK-NewReno)"), Series(STP, "split STP"))
_SOURCE = "HK99-STP (IEEE JSAC 17(2), 1999) figure 9, sections IV.A, V.A, VI.B and VII.C"

EXPERIMENTS = (
    Experiment(
        id="hk99-stp-fig9",
        title="Split TCP and split STP",
        source=_SOURCE,
        series=_SERIES,
        x_label="round-trip propagation time of the satellite (ms)",
        y_label="forward throughput (kb/s)",
        points=(20.0, 80.0, 160.0, 300.0, 450.0, 600.0),
        runs=12,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        panels=(
            Panel(REVERSE, "return channel (kb/s)"),
            Panel(OVERHEAD, "forward overhead (share of the octets)"),
        ),
        published=(_TCP_REVERSE,),
    ),
    Experiment(
        id="hk99-stp-fig9-rates",
        title="Return channel and forward rate, 600 ms",
        source=_SOURCE,
        series=_SERIES,
        x_label="rate of the satellite link (kb/s)",
        y_label="return channel (kb/s)",
        points=(325.0, 650.0, 1300.0, 2600.0),
        runs=6,
        settings=_RATES_SETTINGS,
        measure=measure_at_rate,
        judge=judge_rates,
        panels=(Panel(FORWARD, "forward throughput (kb/s)"),),
    ),
)
