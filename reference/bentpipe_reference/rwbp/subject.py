"""The RWBP reference as the exam sees it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.subject import Drawn, Setting, Subject
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.rwbp.links import make_host
from bentpipe_reference.rwbp.parts import Setup
from bentpipe_reference.tcp.subject import SUBJECT as TCP
from bentpipe_reference.tcp.subject import SoonWrapping

GATEWAY_ADDRESS = "10.78.255.254"
"""Of the gateway, where the tester plays it."""

LINK_ADDRESS, LINK_RATE_BIT_S = "10.77.0.3", 2_000_000
"""On the link with a rate and a gateway: the address, and the rate."""

_TWO_LINKS = RwbpConfig(
    link_address=LINK_ADDRESS, link_rate_bit_s=float(LINK_RATE_BIT_S), gateway=GATEWAY_ADDRESS
)


def _stated(config: RwbpConfig) -> dict[str, Any]:
    """What the conformance statement says of settings."""
    rate = config.link_rate_bit_s
    items = "interval", "receive_buffer", "scheduler", "quantum", "ip_queue"
    return {item: getattr(config, item) for item in items} | {
        "gateway": config.gateway is not None,
        "link_rate": rate is not None,
        "link_rate_bps": int(rate or 0),
        "link_address": config.link_address or "",
    }


ICS: dict[str, Any] = {"active_open": True, "user_aborts": True} | _stated(_TWO_LINKS)
"""The conformance statement of :data:`SETUPS`."""

SETUPS = {"rwbp1": Setup(_TWO_LINKS).with_part(SoonWrapping)}

_ONE_LINK: dict[str, Any] = {"link_address": None, "link_rate_bit_s": None, "gateway": None}


def _draw(numbers: random.Random, _link: LinkProfile) -> Drawn:
    """A host of the only profile."""
    mss = numbers.choice((1460, 1460, 1460, 1000, 536, 256, 4000, 9000))
    buffer = max(4 * mss, numbers.choice((5840, 8192, 65536, 240 * 1024, 1 << 20)))
    interval = numbers.choice((8, 8, 8, 1, 2, 3, 16, 64, 255))
    config = RwbpConfig(
        mss=mss,
        interval=interval,
        receive_buffer=buffer,
        send_buffer=numbers.choice((16384, 240 * 1024, 1 << 20)),
        window_scale=numbers.random() < 0.5,
        timestamps=numbers.random() < 0.5,
        scheduler=numbers.choice(("round-robin", "round-robin", "drr")),
        quantum=max(1500, 40 + mss),
        ip_queue=numbers.choice((1, 2, 10, 10)),
        link_rate_bit_s=numbers.choice((None, None, None, 1e5, 1e6, 1e7)),
    )
    return Drawn(Setup(config).with_part(SoonWrapping), ICS | _stated(config), "rwbp1")


def _configured(undecided: Iterable[str] = (), **changes: Any) -> Setting:
    ics = _stated(replace(_TWO_LINKS, **changes))
    return Setting(lambda setup: setup.configured(**changes), ics, undecided=frozenset(undecided))


def _timed() -> Iterable[str]:
    """Requirements whose breach shows by when, or in answer to what, a segment leaves."""
    groups = {
        "AK": range(1, 9), "EC": (*range(2, 9), *range(10, 16)), "TM": range(1, 5), "FC": (3, 7),
        "FF": (2, 3), "WF": (7, 8), "WN": (1, 2, 3, 4, 7, 8, 9, 13), "CX": (2, 3), "NG": (5, 8),
    }  # fmt: skip
    return (f"RWBP-{group}-{one:03}" for group, numbers in groups.items() for one in numbers)


SETTINGS = {
    "mss-256": _configured(mss=256),
    # The tester's windows are too many such segments for the queue of the link to keep closed.
    "mss-48": _configured(("RWBP-WN-010", "RWBP-FC-007"), mss=48),
    "mss-9000": _configured(mss=9000),
    "four-units": _configured(receive_buffer=5840, send_buffer=5840),
    "interval-1": _configured(interval=1),
    "interval-64": _configured(interval=64),
    "plain-syn": _configured(window_scale=False, timestamps=False),
    "drr": _configured(scheduler="drr", quantum=1500),
    "one-place": _configured(ip_queue=1),
    # What waits for the only link leaves when it can, whatever has arrived meanwhile.
    "link-rate": _configured(_timed(), **_ONE_LINK | {"link_rate_bit_s": 1_000_000.0}),
    "gateway": _configured(_timed(), **_ONE_LINK | {"gateway": GATEWAY_ADDRESS}),
    # The numbers of the sender wrap, and pass 2^31, within the first segments.
    "wrap": _configured(iss=(1 << 32) - 9000),
    "half": _configured(iss=(1 << 31) - 9000),
}

SUBJECT = Subject(
    ics=ICS,
    setups=SETUPS,
    variants={"rwbp1": SETUPS["rwbp1"]},
    make=make_host,
    draw=_draw,
    call=TCP.call,
    settings=SETTINGS,
)
