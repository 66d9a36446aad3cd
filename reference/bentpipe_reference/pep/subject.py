"""The reference of PEP/1 as the exam sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from bentpipe_reference.common.subject import Setting, Subject
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import BoxConfig
from bentpipe_reference.pep.over_rwbp import RwbpBox
from bentpipe_reference.pep.over_stp import StpBox
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.rwbp.config import RwbpConfig
from bentpipe_reference.tcp.config import EndpointConfig

_TCP = EndpointConfig(receive_buffer=1 << 16, send_buffer=1 << 16)

PAIR = Setup(BoxConfig(outer=_TCP, inner=_TCP))
"""Two boxes with TCP between them; a confirmed end comes from end to end."""

OVER_RWBP = PAIR.configured(
    inner=RwbpConfig(receive_buffer=1 << 16, send_buffer=1 << 16)
).with_part(RwbpBox)
"""Two boxes with RWBP/1 between them, its proxies; an end is confirmed from box to box."""

OVER_STP = PAIR.with_part(StpBox)
"""Two boxes with STP/1 between them; an end is confirmed from box to box, likewise."""

ICS: Mapping[str, Any] = {
    "addressing": "transparent",
    "opening": "late",
    "end": "confirmed",
    "satellite": "tcp",
    "ends": "rfc",
    "reserved": False,
    "strangers": "forward",
    "buffer": PAIR.config.buffer,
    "connections": PAIR.config.most_relays,
    "idle_s": 0,
    "drain": False,
    "drain_s": 0,
    "restart": False,
}
"""The conformance statement of :data:`PAIR`."""


def make_boxes(setup: Setup, seed: int) -> list[Box]:
    """A box, or a pair."""
    boxes = 1 + setup.config.paired
    return [setup.parts.box(setup.config, setup.parts, seed + number) for number in range(boxes)]


def _no_host(*_: object) -> NoReturn:
    raise ValueError("a box is no host: it cannot be called, and calls nobody by itself")


def _configured(
    ics: Mapping[str, Any], undecided: Iterable[str] = (), **changes: Any
) -> Setting:  # fmt: skip
    return Setting(
        lambda setup: setup.configured(**changes), ics, undecided=frozenset(undecided)
    )  # fmt: skip


def _ends(undecided: Iterable[str] = (), **changes: Any) -> Setting:
    """A setting of TCP at all ends."""
    buffer = PAIR.endpoints(**changes).config.buffer
    return Setting(
        lambda setup: setup.endpoints(**changes), {"buffer": buffer},
        undecided=frozenset(undecided),
    )  # fmt: skip


_SINGLE = {"satellite": "none", "buffer": PAIR.configured(paired=False).config.buffer}

_SMALL = {"receive_buffer": 8192, "send_buffer": 8192}

_PLAIN = {"window_scale": False, "timestamps": False, "sack": False, **_SMALL}


def _with_sack_inside(setup: Setup) -> Setup:
    return setup.configured(inner=replace(setup.config.inner, sack=True))


SETTINGS = {
    "single": _configured(_SINGLE, paired=False),
    "early": _configured({"opening": "early"}, opening="early"),
    "early-single": _configured(_SINGLE | {"opening": "early"}, paired=False, opening="early"),
    "local": _configured({"end": "local"}, end="local"),
    "rwbp": Setting(
        lambda setup: replace(OVER_RWBP, parts=replace(setup.parts, box=RwbpBox)),
        {"satellite": "rwbp", "reserved": True, "end": "local"},
    ),
    "stp": Setting(
        lambda setup: replace(setup, parts=replace(setup.parts, box=StpBox)),
        {"satellite": "own", "end": "local"},
    ),
    "strangers-reset": _configured({"strangers": "reset"}, strangers="reset"),
    # Nothing is too big for a link that carries 1000 octets.
    "mss-536": _ends(("PEP-PC-005", "PEP-PC-007"), mss=536),
    "small-buffers": _ends(("PEP-FB-011",), **_SMALL),
    "plain-syn": Setting(
        # Over the satellite SACK is used nevertheless (PEP-LR-005).
        lambda setup: _with_sack_inside(setup.endpoints(**_PLAIN)),
        {"buffer": PAIR.endpoints(**_PLAIN).config.buffer},
        undecided=frozenset({"PEP-FB-011", "PEP-TR-008", "PEP-TR-009", "PEP-TR-010"}),
    ),
    "wrap": _ends(iss=(1 << 32) - 9000),
}

SUBJECT = Subject(
    ics=ICS,
    setups={"pep1": PAIR},
    variants={
        "pair": PAIR,
        "single": PAIR.configured(paired=False),
        "rwbp": OVER_RWBP,
        "stp": OVER_STP,
    },
    make=_no_host,
    draw=_no_host,
    call=_no_host,
    settings=SETTINGS,
    boxes=make_boxes,
)
