"""HK99 figures 20, 23 and 24: a bulk transfer to a satellite beside a connection of 20 ms.

A host in the wide-area Internet sends to a user behind a satellite, and the first router is shared
with one connection of a short round trip that does not cross the satellite. End to end the transfer
keeps little of its throughput; split at the gateway it keeps its share.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import correlation, stdev

from bentpipe_reference.tcp.path import Delivery, Flow, Path
from bentpipe_reference.tcp.wire.segment import Segment

from bentpipe_experiments import hk99_stp_fig9 as split
from bentpipe_experiments import net3
from bentpipe_experiments.model import (
    Cell,
    Cells,
    Experiment,
    Judgment,
    Measurement,
    Panel,
    Published,
    Series,
)
from bentpipe_experiments.verdicts import NOT_MEASURED, band, less, number, pairs_of, ratios_of
from bentpipe_experiments.web_traffic import WebTraffic

OCTETS = split.OCTETS
ROUTER = 150
"""Packets."""

ALONE, BESIDE, SPLIT = "alone", "beside", "split"
SHORTEST, LONGEST = 20.0, 600.0
REVERSE, FORWARD = split.REVERSE, split.FORWARD
TIMEOUTS, RECOVERIES = "timeouts", "recoveries_per_mb"

MOST_KEPT = 0.5
LEAST_AT_FIRST = 0.8
MOST_RANK = -0.9
LEAST_VARIABLE = 3.0
LEAST_RECOVERIES = 2.0
MOST_WITH_TIMEOUTS = 0.15
"""Share of the transfers: three of twenty."""

LEAST_OF_ALONE = 0.85
LEAST_GAIN = 1.7
SHARE = (0.017, 0.025)
TOLERANCE = 0.20
LEAST_R_SQUARED = 0.98

_ENDLESS = 1 << 40
_WARM_UP_S = 2.0
_LIMIT_S = 3600.0


class EndToEnd(Flow):
    """A flow through the wide-area Internet and then over the satellite.

    Args:
        internet: the first path; its first router is where queues build up.
        space: the second one, on the same clock.
        octets: length of the stream.
        phase: of the clock of its delayed acknowledgments, seconds.
    """

    def __init__(self, internet: Path, space: Path, octets: int, phase: float) -> None:
        flow = space.flow(octets, split.tcp_setup(phase=phase))
        super().__init__(space, flow.sending, flow.receiving, octets)
        self.reverse_octets = 0
        self._wide = internet

    def _send(self, segment: Segment, octets: int) -> None:
        arrive: Delivery = partial(self._arrive, segment)
        self._wide.forward.send(partial(self._forward.send, arrive, octets), octets)

    def _answer(self, segment: Segment, octets: int) -> None:
        self.reverse_octets += octets
        arrive: Delivery = partial(self._sender.receive, segment)
        self._return.send(partial(self._wide.return_.send, arrive, octets), octets)


def measure(
    series: str, rtt_ms: float, seed: int, *, octets: int = OCTETS, router: int = ROUTER
) -> Measurement:
    """Forward throughput of one transfer in kb/s.

    Args:
        series: end to end, :data:`ALONE` or :data:`BESIDE` the other connection, or :data:`SPLIT`
            and beside it.
        rtt_ms: round-trip propagation time of the satellite, milliseconds.
        seed: seed of the starting time, the cross traffic and everything else random.
        octets: length of the transfer.
        router: packets that the first router holds.

    Raises:
        RuntimeError: the transfer did not complete, or its octets are not those sent.
    """
    if series == SPLIT:
        return split.measure(split.TCP, rtt_ms, seed, octets=octets, wide_queue=router)
    numbers = random.Random(seed)
    internet = Path(split.wide_area(router), numbers.getrandbits(32))
    simulation = internet.simulation
    space = Path(split.satellite(rtt_ms), numbers.getrandbits(32), simulation=simulation)
    phase = numbers.uniform(0, net3.HEARTBEAT)
    web = split.tcp_setup("reno", 1460)
    WebTraffic(split.WEB_KB_S / split.RATE_KB_S, numbers.getrandbits(32), web)(space)
    start = _WARM_UP_S + numbers.uniform(0, 1)
    if series == BESIDE:
        internet.flow(_ENDLESS, split.tcp_setup(mss=1460, phase=phase)).start()
    flow = EndToEnd(internet, space, octets, phase)
    simulation.call_at(start, flow.start)
    simulation.run_while(flow.is_pending, _LIMIT_S)
    if flow.finished is None or not flow.intact or flow.read != octets:
        problem = flow.failure or f"not all octets as sent within {_LIMIT_S:g} s"
        raise RuntimeError(f"{series} at {rtt_ms:g} ms, seed {seed}: {problem}.")
    seconds = flow.finished - start
    counters = flow.sending.sender.counters
    return Measurement(
        8 * octets / seconds / 1000,
        {
            REVERSE: 8 * flow.reverse_octets / seconds / 1000,
            TIMEOUTS: counters.timeouts,
            RECOVERIES: counters.fast_recoveries / (octets / 1e6),
            "dropped": space.forward.counters.dropped_by_queue,
            "wide_dropped": internet.forward.counters.dropped_by_queue,
        },
    )


def measure_with_router(series: str, router: float, seed: int) -> Measurement:
    """The same at 600 ms, over the packets that the first router holds."""
    return measure(series, LONGEST, seed, router=round(router))


def measure_return(series: str, rtt_ms: float, seed: int) -> Measurement:
    """Use of the return channel of the satellite in kb/s, and the forward throughput with it."""
    found = measure(series, rtt_ms, seed)
    return Measurement(found.notes[REVERSE], {FORWARD: found.value})


def measure_return_at_rate(series: str, rate_kb_s: float, seed: int) -> Measurement:
    """The same at 600 ms, over the rate of the satellite link."""
    assert series == SPLIT
    found = split.measure(split.TCP, LONGEST, seed, rate_kb_s=rate_kb_s, wide_queue=ROUTER)
    return Measurement(found.notes[REVERSE], {FORWARD: found.value})


# -- claims ---------------------------------------------------------------------------------------


def judge_competition(cells: Cells, _: int) -> list[Judgment]:
    """What section 5.3.2 says of figure 20."""
    points = sorted({x for _, x in cells})
    whole = points if {SHORTEST, LONGEST} <= set(points) else []
    return [
        band(
            "reduced",
            "one connection of 20 ms drastically reduces the throughput (figure 20): at 600 ms to "
            f"at most {100 * MOST_KEPT:g} %",
            ratios_of(cells, BESIDE, ALONE, [LONGEST]), high=MOST_KEPT, scale=100, unit=" %",
        ),
        _falling(cells, whole),
        band(
            "control",
            "a transfer of the same round trip is not reduced so: at 20 ms it keeps at least "
            f"{100 * LEAST_AT_FIRST:g} %",
            ratios_of(cells, BESIDE, ALONE, [SHORTEST]), LEAST_AT_FIRST, scale=100, unit=" %",
        ),
        _variable(cells, whole),
        _few_timeouts(cells, whole),
        _recovering(cells, whole),
    ]  # fmt: skip


def _pair(cells: Cells, points: Sequence[float]) -> tuple[Cell, Cell] | None:
    """Beside the other connection and alone, at the longest round trip."""
    if not points or any((name, LONGEST) not in cells for name in (BESIDE, ALONE)):
        return None
    return cells[BESIDE, LONGEST], cells[ALONE, LONGEST]


def _falling(cells: Cells, points: Sequence[float]) -> Judgment:
    claim = (
        "the longer the round trip, the less is kept (section 5.3.2): the rank correlation is at "
        f"most {MOST_RANK:g}"
    )
    kept = ratios_of(cells, BESIDE, ALONE, points)
    if len(kept) < 2:
        return Judgment("falls", claim, None, NOT_MEASURED)
    shares = [kept[x][0] for x in points]
    ordered = sorted(shares)
    places = [ordered.index(share) for share in shares]
    ranks = correlation(range(len(places)), places) if len(set(places)) > 1 else 0.0
    told = (f"{100 * share:.1f} % at {x:g}" for x, share in zip(points, shares, strict=True))
    sentence = f"{', '.join(told)}; it is {ranks:.2f}"
    return Judgment("falls", claim, ranks <= MOST_RANK, sentence)


def _variable(cells: Cells, points: Sequence[float]) -> Judgment:
    claim = (
        "it is much more variable (section 5.3.2): at 600 ms its standard deviation is at least "
        f"{LEAST_VARIABLE:g} times as much of its mean"
    )
    pair = _pair(cells, points)
    if pair is None or min(len(cell.values) for cell in pair) < 2:
        return Judgment("variable", claim, None, NOT_MEASURED)
    beside, alone = (stdev(cell.values) / cell.mean for cell in pair)
    sentence = f"{100 * beside:.1f} % beside the other connection, {100 * alone:.1f} % alone"
    return Judgment("variable", claim, beside >= LEAST_VARIABLE * alone, sentence)


def _few_timeouts(cells: Cells, points: Sequence[float]) -> Judgment:
    claim = (
        "timeouts were avoided in almost all of the transfers (section 5.3.2): at 600 ms "
        f"{100 * (1 - MOST_WITH_TIMEOUTS):g} % of them have none"
    )
    pair = _pair(cells, points)
    if pair is None:
        return Judgment("timeouts", claim, None, NOT_MEASURED)
    runs = pair[0].noted[TIMEOUTS]
    some = sum(count > 0 for count in runs)
    sentence = f"{some} of {len(runs)} transfers have one"
    return Judgment("timeouts", claim, some <= MOST_WITH_TIMEOUTS * len(runs), sentence)


def _recovering(cells: Cells, points: Sequence[float]) -> Judgment:
    claim = (
        "recurring fast retransmits are what reduces it (section 5.3.2): at 600 ms at least "
        f"{LEAST_RECOVERIES:g} times as many for each octet"
    )
    pair = _pair(cells, points)
    found = {} if pair is None else ratios_of(cells, BESIDE, ALONE, [LONGEST], RECOVERIES)
    return band("recoveries", claim, found, LEAST_RECOVERIES, unit=" times")


def judge_split(cells: Cells, _: int) -> list[Judgment]:
    """What section 6.2 says of figure 23."""
    points = sorted({x for _, x in cells})
    whole = points if {SHORTEST, LONGEST} <= set(points) else []
    return [
        band(
            "as-alone",
            "split at the gateway the transfer obtains its fair share (figure 23): at 600 ms at "
            f"least {100 * LEAST_OF_ALONE:g} % of what it has end to end without competition",
            ratios_of(cells, SPLIT, ALONE, [LONGEST]), LEAST_OF_ALONE, scale=100, unit=" %",
        ),
        band(
            "gain",
            "that is far more than end to end beside the other connection (figure 23): at 600 ms "
            f"at least {LEAST_GAIN:g} times as much",
            ratios_of(cells, SPLIT, BESIDE, [LONGEST]), LEAST_GAIN, unit=" times",
        ),
        less(
            "everywhere", "and more at every longer round trip than the shortest (figure 23)",
            pairs_of(cells, BESIDE, SPLIT, [x for x in whole if x > SHORTEST]), "kb/s",
            ("end to end", "split"),
        ),
    ]  # fmt: skip


_PRINTED = Published("split TCP, as printed", 20.0, "section 6.2", None, SPLIT)


def judge_return(cells: Cells, _: int) -> list[Judgment]:
    """What section 6.2 says of figure 24."""
    points = sorted({x for _, x in cells})
    whole = points if {SHORTEST, LONGEST} <= set(points) else []
    return [
        number(
            "return", "acknowledgments take roughly 20 kb/s (figure 24)",
            cells, [replace(_PRINTED, point=x) for x in whole], TOLERANCE, "kb/s",
        ),
        band(
            "share",
            "that is roughly 2 % of the forward throughput for segments of 1000 octets (section "
            "6.2): 1.7 to 2.5 %",
            _shares(cells, whole), *SHARE, scale=100, unit=" %",
        ),
    ]  # fmt: skip


def _shares(cells: Cells, points: Sequence[float]) -> dict[float, tuple[float, float]]:
    """The return channel as a share of the forward throughput, by point."""
    if any((SPLIT, x) not in cells for x in points):
        return {}
    both = {
        (name, x): cells[SPLIT, x].of(note)
        for x in points
        for name, note in (("return", None), ("forward", FORWARD))
    }
    return ratios_of(both, "return", "forward", points)


def judge_return_at_rates(cells: Cells, _: int) -> list[Judgment]:
    """Section 6.2: the use of the return channel scales linearly with the forward throughput."""
    claim = (
        "it scales linearly with the forward throughput (section 6.2): R squared of all runs is "
        f"at least {LEAST_R_SQUARED:g}"
    )
    rates = sorted({x for _, x in cells})
    if len(rates) < 2 or rates[-1] < split.LEAST_SPAN * rates[0]:
        return [Judgment("linear", claim, None, NOT_MEASURED)]
    back = [value for x in rates for value in cells[SPLIT, x].values]
    forward = [value for x in rates for value in cells[SPLIT, x].of(FORWARD).values]
    squared = correlation(forward, back) ** 2
    told = ", ".join(f"{cells[SPLIT, x].mean:.1f} at {x:g}" for x in rates)
    sentence = f"{told} kb/s; R squared is {squared:.4f}"
    return [
        Judgment("linear", claim, squared >= LEAST_R_SQUARED, sentence),
        band(
            "share", "at every rate it is roughly 2 % (section 6.2): 1.7 to 2.5 %",
            _shares(cells, rates), *SHARE, scale=100, unit=" %",
        ),
    ]  # fmt: skip


# -- what is run ----------------------------------------------------------------------------------

_SETTINGS = {
    "transfer": "10 MB, timed from the host's SYN to the last octet the user reads (section 5.3)",
    "satellite": (
        "1.3 Mb/s of IP packets both ways, no bit errors (section 5.2.1), and a queue of 50 "
        "packets, as in hk99-fig13"
    ),
    "Internet": (
        "20 ms and 10 Mb/s: the path of the competing connection and the transit Ethernet of "
        "section 5.2.1. The transfer crosses it before the satellite, so that its round trip is 20 "
        "ms longer than the satellite's"
    ),
    "first router": (
        f"{ROUTER} packets, tail drop. The paper gives none; hk99-fig20-routers has others. With "
        "50 each transfer meets timeouts, which the paper's avoided"
    ),
    "competition": (
        "one endless SACK-NewReno connection over the same 20 ms and 10 Mb/s with packets of 1500 "
        "octets, which does not cross the satellite (figure 20); it begins two to three seconds "
        "before"
    ),
    "cross traffic": "Web-like short transfers over the satellite, 80 kb/s, as in hk99-stp-fig9",
    "segments": (
        "1000 octets over the satellite (section 6.2), and so end to end; 1460 on a split "
        "connection's way through the Internet"
    ),
    "windows": "240 KB (section 5.2.1) at both ends and at the gateway",
    "congestion control": (
        "SACK-NewReno of the appendix with the growth of RFC 5681; with 4.4BSD's faster growth "
        "there are timeouts at 20 ms already"
    ),
    "acknowledgments": "every second segment, else at the next beat of a 200 ms clock",
}
_SPLIT_SETTINGS = {
    **_SETTINGS,
    "gateway": (
        "between the first router and the satellite; it buffers 240 KB from the Internet and 240 "
        "KB for the satellite, within section 6.1's 200 to 500 KB, and stops reading when both "
        "are full"
    ),
}
_RETURN_SETTINGS = {
    **_SPLIT_SETTINGS,
    "return channel": (
        "all IP octets that the user's end sends, from the opening to the last octet read: 40 for "
        "an acknowledgment, and more for one with SACK blocks"
    ),
}
_LABELS = {
    ALONE: "end to end, without competition",
    BESIDE: "end to end, beside 20 ms",
    SPLIT: "split, beside 20 ms",
}
_RTT_LABEL = "round-trip propagation time of the satellite (ms)"
_FORWARD_LABEL = "forward throughput (kb/s)"
_RETURN_LABEL = "return channel (kb/s)"


def _experiment(
    name: str, title: str, source: str, series: Sequence[str], *,
    measure: Callable[[str, float, int], Measurement],
    judge: Callable[[Cells, int], Sequence[Judgment]],
    x_label: str = _RTT_LABEL, y_label: str = _FORWARD_LABEL,
    points: Sequence[float] = (20.0, 80.0, 160.0, 300.0, 600.0), runs: int = 20,
    settings: dict[str, str] = _SETTINGS, panels: tuple[Panel, ...] = (),
    published: tuple[Published, ...] = (),
) -> Experiment:  # fmt: skip
    return Experiment(
        id=name, title=title, source=f"HK99 (UCB/CSD-99-1083) {source}",
        series=tuple(Series(item, _LABELS[item]) for item in series),
        x_label=x_label, y_label=y_label, points=tuple(points), runs=runs, settings=settings,
        measure=measure, judge=judge, panels=panels, published=published,
    )  # fmt: skip


def judge_routers(cells: Cells, _: int) -> list[Judgment]:
    """Whether what figure 20 shows depends on the choice that the paper leaves open."""
    routers = sorted({x for _, x in cells})
    return [
        band(
            "reduced",
            "whatever the first router holds, one connection of 20 ms drastically reduces the "
            f"throughput (section 5.3.2): to at most {100 * MOST_KEPT:g} %",
            ratios_of(cells, BESIDE, ALONE, routers), high=MOST_KEPT, scale=100, unit=" %",
        )
    ]  # fmt: skip


EXPERIMENTS = (
    _experiment(
        "hk99-fig20", "A satellite connection beside one of 20 ms",
        "figure 20, sections 5.2.1 and 5.3.2", (ALONE, BESIDE),
        measure=measure, judge=judge_competition, panels=(Panel(TIMEOUTS, "timeouts"),),
    ),
    _experiment(
        "hk99-fig20-routers", "The same, over the queue of the first router",
        "figure 20, section 5.3.2", (ALONE, BESIDE),
        measure=measure_with_router, judge=judge_routers,
        x_label="packets that the first router holds", points=(50.0, 100.0, 150.0, 200.0), runs=6,
        settings={**_SETTINGS, "satellite": "600 ms; else as in hk99-fig20"},
        panels=(Panel(TIMEOUTS, "timeouts"),),
    ),
    _experiment(
        "hk99-fig23", "A satellite connection beside one of 20 ms, split and end to end",
        "figure 23, sections 6.1 and 6.2", (ALONE, BESIDE, SPLIT),
        measure=measure, judge=judge_split, runs=10, settings=_SPLIT_SETTINGS,
    ),
    _experiment(
        "hk99-fig24", "Return channel of a split connection",
        "figure 24, section 6.2", (SPLIT,), measure=measure_return, judge=judge_return,
        y_label=_RETURN_LABEL, runs=10, settings=_RETURN_SETTINGS,
        panels=(Panel(FORWARD, _FORWARD_LABEL),), published=(_PRINTED,),
    ),
    _experiment(
        "hk99-fig24-rates", "Return channel of a split connection, over the satellite's rate",
        "section 6.2", (SPLIT,), measure=measure_return_at_rate, judge=judge_return_at_rates,
        x_label="rate of the satellite link (kb/s)", y_label=_RETURN_LABEL,
        points=(325.0, 650.0, 1300.0, 2600.0), runs=6,
        settings={**_RETURN_SETTINGS, "satellite": "600 ms; the rate, both ways, is what varies"},
        panels=(Panel(FORWARD, _FORWARD_LABEL),),
    ),
)  # fmt: skip
