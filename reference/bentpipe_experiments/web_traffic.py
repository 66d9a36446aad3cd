"""Web-like cross traffic: many short TCP connections in parallel with the one that is measured.

HK99 section 5.3 adds HTTP generators driven by Mah's traces, about a tenth of the channel's
forward rate. The traces are not at hand; the sizes drawn here are those that explain the minima,
medians and means that HK99's Table 2 gives of latencies (``test_web_traffic.py``). Replies of more
than 100 segments are left out: the paper drops them for its Table 2 as bulk transfers, and with
them the cross traffic would congest the link on its own.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean

from bentpipe_reference.tcp.parts import Setup
from bentpipe_reference.tcp.path import Path

_MSS = 1460
_MEDIAN, _SIGMA = 2200, 1.3
"""Of the logarithm's normal distribution."""

_SMALLEST, _LARGEST = 60, 100 * _MSS
_NORMAL = NormalDist(math.log(_MEDIAN), _SIGMA)
_LARGEST_SHARE = _NORMAL.cdf(math.log(_LARGEST))
_HEADERS = 40
_SYN = 48
_SAMPLES = 20_000


@dataclass(frozen=True, slots=True)
class WebTraffic:
    """Replies that start at random (a Poisson process) and share the forward direction.

    Attributes:
        share: mean load as a share of the forward rate, headers and handshakes included.
        seed: seed of the starting times and sizes.
        setup: both ends of the connections.
    """

    share: float
    seed: int
    setup: Setup

    def __call__(self, path: Path) -> None:
        """Plan the replies on ``path``, always only the next one."""
        rate = path.forward.direction.rate_bit_s
        if rate is None:
            raise ValueError("cross traffic is a share of a rate, but the link has none.")
        interval = 8 * mean_packet_octets() / (self.share * rate)
        numbers = random.Random(self.seed)

        def reply() -> None:
            path.flow(reply_octets(numbers.random()), self.setup).start()
            plan()

        def plan() -> None:
            path.simulation.call_after(numbers.expovariate(1 / interval), reply)

        plan()


def reply_octets(uniform: float) -> int:
    """Size of a reply: a bounded lognormal distribution, by inversion of ``uniform`` in (0, 1)."""
    share = max(uniform, 1e-12) * _LARGEST_SHARE
    return max(_SMALLEST, int(math.exp(_NORMAL.inv_cdf(share))))


def packet_octets(reply: int) -> int:
    """What a reply puts on the forward link: SYN, data with the FIN, and two bare ACKs."""
    segments = -(-reply // _MSS)
    return _SYN + reply + _HEADERS * (segments + 2)


@cache
def mean_packet_octets() -> float:
    """Mean of :func:`packet_octets` over the sizes of replies."""
    return fmean(packet_octets(reply_octets((i + 0.5) / _SAMPLES)) for i in range(_SAMPLES))
