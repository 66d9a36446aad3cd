"""Links and settings drawn at random: everything an implementation is free to choose."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.tcp.config import EndpointConfig

_LOSSES = (0.0, 0.0, 0.002, 0.01, 0.03, 0.1)


def draw_link(numbers: random.Random) -> LinkProfile:
    """A link that may lose, delay, reorder and double packets."""
    delay = numbers.choice((0.001, 0.02, 0.06, 0.15, 0.3))
    untidy = numbers.random() < 0.3
    return LinkProfile(
        "drawn", "drawn at random", "",
        forward=_draw_direction(numbers, delay, untidy),
        return_=_draw_direction(numbers, delay * numbers.choice((1.0, 1.0, 0.2)), untidy),
    )  # fmt: skip


def _draw_direction(numbers: random.Random, delay: float, untidy: bool) -> Direction:
    return Direction(
        rate_bit_s=numbers.choice((None, 6e4, 3e5, 1.3e6, 6e6)),
        delay_s=delay,
        queue_packets=numbers.choice((8, 25, 50, 200)),
        loss_probability=numbers.choice(_LOSSES),
        reorder_probability=numbers.choice((0.0, 0.02, 0.2)) if untidy else 0.0,
        reorder_delay_s=numbers.choice((0.001, 0.02, 0.1)) if untidy else 0.0,
        duplicate_probability=numbers.choice((0.0, 0.02)) if untidy else 0.0,
    )


@dataclass(frozen=True, slots=True)
class Drawn:
    """One host's configuration, and what its conformance statement says of it.

    Attributes:
        config: of the reference.
        ics: answers.
        profile: a profile of the suite.
    """

    config: Any
    ics: Mapping[str, Any]
    profile: str


def draw_stp(numbers: random.Random, link: LinkProfile) -> Drawn:
    """An STP host."""
    reorders = any(way.reorder_probability > 0 for way in (link.forward, link.return_))
    rate = numbers.choice((0, 0, 0, 100_000, 700_000))
    config = StpConfig(
        path_class=numbers.choice(("geo", "leo", "vbdc")),
        mtu=numbers.choice((1500, 1500, 1280, 576)),
        credit=numbers.choice((8, 40, 256, 2048)),
        send_buffer=numbers.choice((4096, 65536, 1 << 18)),
        initial_window=numbers.randint(1, 10),
        max_rate=rate or None,
        fifo=not reorders and numbers.random() < 0.8,
        keep_alive=numbers.random() < 0.1,
    )
    ics = {
        "active_open": True,
        "fifo": config.fifo,
        "rate_limit": rate > 0,
        "rate_limit_bps": rate,
        "initial_window_sds": config.initial_window,
        "remembers_peers": True,
        "path_class": config.path_class,
    }
    return Drawn(config, ics, "stp1")


def draw_tcp(numbers: random.Random, _link: LinkProfile) -> Drawn:
    """A TCP host of either profile."""
    profile = numbers.choice(("rfc", "rfc", "rfc", "hk99"))
    config = EndpointConfig(
        variant="sack-newreno-rfc" if profile == "rfc" else "sack-newreno-hk99",
        mss=numbers.choice((1460, 1460, 1000, 536)),
        sack=numbers.random() < 0.8,
        dsack=profile == "rfc",
        window_scale=numbers.random() < 0.9,
        timestamps=numbers.random() < 0.8,
        limited_transmit=numbers.random() < 0.8 if profile == "rfc" else None,
        nagle=numbers.random() < 0.2,
        receive_buffer=numbers.choice((8192, 65536, 240 * 1024)),
        send_buffer=numbers.choice((16384, 240 * 1024)),
        delayed_ack_timeout=numbers.choice((0.04, 0.2, 0.5)),
        initial_window_segments=numbers.choice((None, 2, 4)) if profile == "rfc" else None,
    )
    ics = {
        "sack": config.uses_sack,
        "sack_sender": config.uses_sack,
        "sack_receiver": config.uses_sack,
        "dsack": config.dsack and config.uses_sack,
        "timestamps": config.uses_timestamps,
        "window_scale": config.window_scale,
        "limited_transmit": config.uses_limited_transmit,
        "fast_retransmit": True,
        "newreno": True,
        "congestion_control": "reno",
        "pacing": False,
        "initial_window_segments": config.initial_segments,
    }
    return Drawn(config, ics, profile)


Draw = Callable[[random.Random, LinkProfile], Drawn]
"""Draws one host for a link."""
