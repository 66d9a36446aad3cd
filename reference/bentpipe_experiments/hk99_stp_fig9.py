"""HK99-STP figure 9: split TCP against split STP, forward throughput and use of the return channel.

A host in the wide-area Internet sends to a user behind a satellite. A gateway splits the
connection: TCP in the Internet, where another connection competes, and TCP or STP over the
satellite.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

from bentpipe_reference.common.encapsulation import PROTOCOL
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.tcp.config import EndpointConfig, Variant
from bentpipe_reference.tcp.parts import Parts, Setup
from bentpipe_reference.tcp.path import Path

from bentpipe_experiments import links, net3
from bentpipe_experiments.model import Cell, Cells, Experiment, Judgment, Measurement, Panel, Series
from bentpipe_experiments.split import MakeLeg, SplitFlow, stp_leg, tcp_leg
from bentpipe_experiments.statistics import at_least, clearly_below, ratio
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
LEAST_SAVING = 5.0
MOST_LOST = 0.10
MOST_CHANGE = 1.25


def satellite(rtt_ms: float, rate_kb_s: float = RATE_KB_S) -> LinkProfile:
    """The satellite link; its queue holds as much time at every rate."""
    rate = 1000 * rate_kb_s
    queue = max(1, round(QUEUE_S * rate / (8 * _PACKET)))
    return links.link(f"hk99-stp-{rtt_ms:g}-{rate_kb_s:g}", _SECTION, rtt_ms, rate, queue)


def wide_area() -> LinkProfile:
    """The Internet before the gateway: its first router is the bottleneck."""
    rtt_ms = 1000 * WIDE_RTT_S
    return links.link("hk99-stp-wide", _SECTION, rtt_ms, WIDE_RATE, WIDE_QUEUE, WIDE_QUEUE)


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
) -> Measurement:
    """Forward throughput of one transfer in kb/s, and what the user sent meanwhile.

    Args:
        protocol: ``tcp`` or ``stp`` over the satellite.
        rtt_ms: round-trip propagation time of the satellite, milliseconds.
        seed: seed of the starting time, the cross traffic and everything else random.
        rate_kb_s: rate of the satellite link.
        octets: length of the transfer.
        compete: whether another connection shares the wide-area Internet.

    Raises:
        RuntimeError: the transfer did not complete, or its octets are not those sent.
    """
    numbers = random.Random(seed)
    internet = Path(wide_area(), numbers.getrandbits(32))
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
            "forward_overhead": way.forward_octets / octets - 1,
            "dropped": space.forward.counters.dropped_by_queue,
            "wide_dropped": internet.forward.counters.dropped_by_queue,
            "gateway_most": flow.buffered_most,
        },
    )


def measure_at_rate(protocol: str, rate_kb_s: float, seed: int) -> Measurement:
    """The use of the return channel in kb/s at one rate of the satellite link, at 600 ms."""
    found = measure(protocol, LONGEST, seed, rate_kb_s=rate_kb_s, compete=False)
    return Measurement(found.notes[REVERSE], {**found.notes, "forward_kb_s": found.value})


def judge(cells: Cells, _: int) -> list[Judgment]:
    """What section VII.C says of figure 9."""
    return [_sparing(cells), _as_fast(cells), _falling(cells)]


def _sparing(cells: Cells) -> Judgment:
    claim = "at 600 ms STP uses at most a fifth of TCP's return bandwidth (figure 9b)"
    if (TCP, LONGEST) not in cells or (STP, LONGEST) not in cells:
        return Judgment("reverse-fifth", claim, None, "600 ms was not measured for both")
    tcp, stp = (cells[name, LONGEST].of(REVERSE) for name in (TCP, STP))
    value, margin = ratio(tcp.values, stp.values)
    sentence = (
        f"TCP {tcp.mean:.1f}, STP {stp.mean:.2f} kb/s: TCP uses {value:.1f} times as much "
        f"(95 % interval {value - margin:.1f} to {value + margin:.1f})"
    )
    return Judgment("reverse-fifth", claim, at_least(value, margin, LEAST_SAVING), sentence)


def _as_fast(cells: Cells) -> Judgment:
    claim = "at every round-trip time STP is within 10 % of SACK-NewReno (figure 9a)"
    points = both(cells)
    if not points:
        return Judgment("forward-tenth", claim, None, "no round-trip time was measured for both")
    kept = {x: ratio(cells[STP, x].values, cells[TCP, x].values) for x in points}
    found = [at_least(value, margin, 1 - MOST_LOST) for value, margin in kept.values()]
    holds = False if False in found else None if None in found else True
    if holds and not {SHORTEST, LONGEST} <= set(points):
        holds = None
    sentence = "STP reaches " + ", ".join(
        f"{100 * value:.1f} ± {100 * margin:.1f} % at {x:g} ms"
        for x, (value, margin) in kept.items()
    )
    return Judgment("forward-tenth", claim, holds, sentence)


def _falling(cells: Cells) -> Judgment:
    claim = "STP's use of the return channel falls as the round-trip time grows (figure 9b)"
    points = both(cells)
    if not {SHORTEST, LONGEST} <= set(points):
        return Judgment("reverse-falls", claim, None, "20 and 600 ms were not both measured")
    use = {x: cells[STP, x].of(REVERSE) for x in points}
    sentence = ", ".join(f"{cell.mean:.2f} at {x:g} ms" for x, cell in use.items()) + " kb/s"
    pairs = [(use[longer], use[shorter]) for shorter, longer in pairwise(points)]
    holds = all(longer.mean < shorter.mean for longer, shorter in pairs)
    apart = clearly_below(use[LONGEST].values, use[SHORTEST].values)
    return Judgment("reverse-falls", claim, holds if apart or not holds else None, sentence)


def judge_rates(cells: Cells, _: int) -> list[Judgment]:
    """Section VII.C: the return bandwidth is independent of the forward throughput."""
    rates = both(cells)
    claims = {
        STP: "STP's use of the return channel does not depend on the forward rate: from the "
        "lowest to the highest it changes by at most a quarter (section VII.C)",
        TCP: "TCP's grows with the forward rate, at least half as much (section VI.B)",
    }
    if len(rates) < 2:
        few = "fewer than two rates were measured for both"
        return [Judgment(f"{name}-rates", claims[name], None, few) for name in claims]
    return [
        _independent(claims[STP], {x: cells[STP, x] for x in rates}),
        _proportional(claims[TCP], cells, rates),
    ]


def _independent(claim: str, use: Mapping[float, Cell]) -> Judgment:
    most = max(use.values(), key=lambda cell: cell.mean)
    least = min(use.values(), key=lambda cell: cell.mean)
    value, margin = ratio(most.values, least.values)
    holds = at_least(-value, margin, -MOST_CHANGE) if max(use) >= 2 * min(use) else None
    sentence = (
        f"{_told(use)}; the most is {value:.2f} ± {margin:.2f} times the least, while the rate "
        f"grows {max(use) / min(use):g} times"
    )
    return Judgment("stp-rates", claim, holds, sentence)


def _proportional(claim: str, cells: Cells, rates: Sequence[float]) -> Judgment:
    use = {x: cells[TCP, x] for x in rates}
    value, margin = ratio(use[rates[-1]].values, use[rates[0]].values)
    forward = [cells[TCP, x].of("forward_kb_s").mean for x in (rates[0], rates[-1])]
    grown = forward[1] / forward[0]
    sentence = (
        f"{_told(use)}: {value:.1f} ± {margin:.1f} times as much at the highest rate, where the "
        f"throughput is {grown:.1f} times that at the lowest"
    )
    return Judgment("tcp-rates", claim, at_least(value, margin, grown / 2), sentence)


def _told(use: Mapping[float, Cell]) -> str:
    return ", ".join(f"{cell.mean:.2f} at {x:g}" for x, cell in use.items()) + " kb/s"


def both(cells: Cells) -> list[float]:
    """The points measured for TCP and for STP, rising."""
    return sorted(x for name, x in cells if name == STP and (TCP, x) in cells)


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
        "the satellite (section V.A); it begins two to three seconds before"
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
        panels=(Panel(REVERSE, "return channel (kb/s)"),),
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
        panels=(Panel("forward_kb_s", "forward throughput (kb/s)"),),
    ),
)
