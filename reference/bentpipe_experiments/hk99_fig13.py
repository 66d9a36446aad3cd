"""HK99 figure 13: four TCP variants, one bulk transfer each, round-trip times of LEO to GEO."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.tcp.config import EndpointConfig, Variant
from bentpipe_reference.tcp.parts import Parts, Setup
from bentpipe_reference.tcp.path import Path
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.transfer import transfer

from bentpipe_experiments import links, net3
from bentpipe_experiments.model import Cells, Experiment, Judgment, Measurement, Series
from bentpipe_experiments.statistics import at_least, clearly_below, ratio
from bentpipe_experiments.web_traffic import WebTraffic

RATE = 1_300_000
OCTETS = 10 * 1024 * 1024
WINDOW = 240 * 1024
QUEUE = 50
SHARE = 0.1

BEST = "sack-newreno-hk99"
ORDER: tuple[Variant, ...] = ("reno", "newreno", "sack-reno", "sack-newreno-hk99")
"""Worst first at 600 ms."""
LABELS = {
    "reno": "Reno",
    "newreno": "NewReno",
    "sack-reno": "SACK-Reno",
    BEST: "SACK-NewReno",
}
SHORTEST, LONGEST = 20.0, 600.0
MOST_LOST = 0.10
_CONTROL_SECONDS = 300.0

_SETTINGS = {
    "transfer": (
        "10 MB, timed from the SYN to the last octet read. The paper's units are binary: its "
        "largest window of 240 KB is 4.4BSD's socket buffer limit, 246,723 octets"
    ),
    "link": "1.3 Mb/s of IP packets both ways, no bit errors (section 5.2.1)",
    "segments": "1460 octets: the 1500-octet packets of the Ethernets in section 5.2.1",
    "receiver window": "240 KB (section 5.2.1)",
    "queue": (
        "50 packets, tail drop. The paper gives none. It is the interface queue of 4.4BSD and the "
        "default of ns, the two systems it used, and the longest queue of its own section 4.2.3; "
        "with it NewReno needs over half a minute and SACK-NewReno under two seconds to repair "
        "the slow-start overshoot at 600 ms, as section 5.3.1 reports"
    ),
    "cross traffic": (
        "Web-like short transfers over the same link and queue, 10 % of the forward rate "
        "(section 5.3; the journal version says 80 kb/s)"
    ),
    "delayed acknowledgments": "every second segment, else at the next beat of a 200 ms clock",
}
_GROWTH = {
    "net3": "SMSS*SMSS/cwnd + SMSS/8 per ACK, as in 4.4BSD-Lite, from which section 5.2.1 derives "
    "the hosts' TCP",
    "rfc2001": "SMSS*SMSS/cwnd per ACK, as in RFC 2001, which the appendix cites",
}


def link(rtt_ms: float) -> LinkProfile:
    """The link with a round-trip propagation time of ``rtt_ms`` milliseconds."""
    return links.link(f"hk99-{rtt_ms:g}", "HK99 section 5.2.1", rtt_ms, RATE, QUEUE)


def measure(
    senders: Mapping[str, type[Sender]],
    variant: str,
    rtt_ms: float,
    seed: int,
    *,
    octets: int = OCTETS,
    share: float = SHARE,
) -> Measurement:
    """Throughput of one transfer in kb/s.

    Args:
        senders: sender class of each variant.
        variant: one of :data:`ORDER`.
        rtt_ms: round-trip propagation time, milliseconds.
        seed: seed of the cross traffic, the clocks' phases and the sequence numbers.
        octets: length of the transfer.
        share: cross traffic as a share of the forward rate.

    Raises:
        RuntimeError: the transfer did not complete, or its octets are not those sent.
    """
    numbers = random.Random(seed)
    receiver = net3.heartbeat_receiver(numbers.uniform(0, net3.HEARTBEAT))
    config = _configuration(senders, variant, receiver)
    background = _background(senders, share, numbers.getrandbits(32)) if share else None
    result = transfer(
        link(rtt_ms), config, octets, seed=numbers.getrandbits(32), cross_traffic=background
    )
    if result.failure or not result.intact:
        problem = result.failure or "the octets read are not those sent"
        raise RuntimeError(f"{variant} at {rtt_ms:g} ms, seed {seed}: {problem}.")
    sender = result.sender
    return Measurement(
        result.throughput_bit_s / 1000,
        {
            "timeouts": sender.timeouts,
            "fast_recoveries": sender.fast_recoveries,
            "retransmissions": sender.retransmissions,
            "dropped": result.forward.dropped_by_queue,
        },
    )


def _configuration(
    senders: Mapping[str, type[Sender]], variant: str, receiver: type[Receiver]
) -> Setup:
    names: dict[str, Variant] = {name: name for name in ORDER}
    config = EndpointConfig(variant=names[variant], receive_buffer=WINDOW, send_buffer=WINDOW)
    return Setup(config, Parts(sender=senders[variant], receiver=receiver))


def _background(senders: Mapping[str, type[Sender]], share: float, seed: int) -> WebTraffic:
    receiver = net3.heartbeat_receiver(0.0)
    return WebTraffic(share, seed, _configuration(senders, "reno", receiver))


def control(senders: Mapping[str, type[Sender]], rtt_ms: float, seed: int) -> tuple[float, int]:
    """The cross traffic alone: its share of the forward rate, and how many packets it lost."""
    path = Path(link(rtt_ms), seed)
    _background(senders, SHARE, seed)(path)
    path.simulation.run_until(_CONTROL_SECONDS)
    counters = path.forward.counters
    return 8 * counters.offered_octets / (_CONTROL_SECONDS * RATE), counters.dropped_by_queue


def judge(senders: Mapping[str, type[Sender]], cells: Cells, seed: int) -> list[Judgment]:
    """The premise and the two published claims."""
    points = sorted({point for _, point in cells})
    return [_premise(senders, points, seed), _flatness(cells, points), _order(cells)]


def _premise(senders: Mapping[str, type[Sender]], points: Sequence[float], seed: int) -> Judgment:
    alone = [control(senders, point, seed) for point in points]
    lost = sum(drops for _, drops in alone)
    shares = [share for share, _ in alone]
    return Judgment(
        "background",
        "the cross traffic takes about a tenth of the link and does not congest it by itself "
        "(section 5.3)",
        not lost and all(0.05 <= share <= 0.15 for share in shares),
        f"alone for {_CONTROL_SECONDS:g} s at each RTT it offers {100 * min(shares):.1f} to "
        f"{100 * max(shares):.1f} % of the rate and loses {lost} packets",
    )


def _flatness(cells: Cells, points: Sequence[float]) -> Judgment:
    """Open when the estimate misses the published bound by less than its own uncertainty."""
    claim = "from 20 to 600 ms SACK-NewReno loses at most 10 % of its throughput (section 7)"
    first = cells.get((BEST, SHORTEST))
    if first is None or (BEST, LONGEST) not in cells:
        return Judgment("sack-newreno-flat", claim, None, "20 and 600 ms were not both measured")
    kept = {
        point: ratio(cells[BEST, point].values, first.values)
        for point in points
        if SHORTEST < point <= LONGEST
    }
    worst = min(kept, key=lambda point: kept[point][0])
    value, margin = kept[worst]
    sentence = (
        f"it keeps least at {worst:g} ms: {cells[BEST, worst].mean:.0f} of {first.mean:.0f} kb/s, "
        f"{100 * value:.1f} % (95 % interval {100 * (value - margin):.1f} to "
        f"{100 * (value + margin):.1f} %)"
    )
    return Judgment("sack-newreno-flat", claim, at_least(value, margin, 1 - MOST_LOST), sentence)


def _order(cells: Cells) -> Judgment:
    claim = (
        "at 600 ms Reno is worst, then NewReno, SACK-Reno and, best, SACK-NewReno "
        "(figure 13, section 5.3.1)"
    )
    at = {name: cells[name, LONGEST] for name in ORDER if (name, LONGEST) in cells}
    if len(at) < len(ORDER):
        return Judgment("order", claim, None, "600 ms was not measured for all four")
    pairs = list(pairwise(ORDER))
    sentence = " < ".join(f"{LABELS[name]} {at[name].mean:.0f}" for name in ORDER) + " kb/s"
    holds = all(at[lower].mean < at[higher].mean for lower, higher in pairs)
    if not holds:
        found = sorted(ORDER, key=lambda name: at[name].mean)
        sentence = " < ".join(f"{LABELS[name]} {at[name].mean:.0f}" for name in found) + " kb/s"
    close = [
        f"{LABELS[lower]} and {LABELS[higher]}"
        for lower, higher in pairs
        if holds and not clearly_below(at[lower].values, at[higher].values)
    ]
    if close:
        sentence += f"; the intervals do not separate {', '.join(close)}"
    return Judgment("order", claim, holds, sentence)


def _experiment(
    name: str, title: str, growth: str, senders: Mapping[str, type[Sender]]
) -> Experiment:
    return Experiment(
        id=name,
        title=title,
        source="HK99 (UCB/CSD-99-1083) figure 13, sections 5.2.1, 5.3 and 5.3.1",
        series=tuple(Series(variant, LABELS[variant]) for variant in reversed(ORDER)),
        x_label="round-trip propagation time (ms)",
        y_label="throughput (kb/s)",
        points=(20.0, 40.0, 80.0, 160.0, 300.0, 400.0, 600.0),
        runs=20,
        settings={**_SETTINGS, "congestion avoidance": _GROWTH[growth]},
        measure=partial(measure, senders),
        judge=partial(judge, senders),
    )


EXPERIMENTS = (
    _experiment("hk99-fig13", "Bulk transfer throughput of four TCP variants", "net3", net3.NET3),
    _experiment(
        "hk99-fig13-rfc2001",
        "The same with the window growth of RFC 2001",
        "rfc2001",
        net3.RFC2001,
    ),
)
