"""The true reference of each suite and profile, its settings, and what it claims under each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.engine.encapsulation import IN_UDP, Encapsulation
from bentpipe_conformance.engine.suite import Suite
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.iut.inprocess import REFERENCES, SimulatedLane, stp_lane

SNR_ICS: Mapping[str, Any] = {
    "sack": True,
    "sack_sender": True,
    "sack_receiver": True,
    "dsack": True,
    "timestamps": True,
    "window_scale": True,
    "limited_transmit": True,
    "fast_retransmit": True,
    "newreno": True,
    "congestion_control": "reno",
    "pacing": False,
}


Configure = Callable[[Any], Any]
"""Turns the configuration of a true reference into another setting's, or a mutant's."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Another way to set the true reference up, under which it has to be as right as ever.

    Attributes:
        configure: turns its usual configuration into this one.
        ics: what its conformance statement then answers differently.
    """

    configure: Configure
    ics: Mapping[str, Any]


STP_RATE_BPS = 600_000
STP_SETTINGS: Mapping[str, Setting] = {
    "max-rate": Setting(
        lambda config: replace(config, max_rate=STP_RATE_BPS),
        {"rate_limit": True, "rate_limit_bps": STP_RATE_BPS},
    ),
    "reordering": Setting(lambda config: replace(config, fifo=False), {"fifo": False}),
    "vbdc": Setting(lambda config: replace(config, path_class="vbdc"), {"path_class": "vbdc"}),
    "initial-window-10": Setting(
        lambda config: replace(config, initial_window=10), {"initial_window_sds": 10}
    ),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """The true reference of a suite.

    Attributes:
        ics: its conformance statement.
        lane: a lane with the reference of a profile on a link, from a seed; ``configure`` turns
            its configuration into a mutant's.
        encapsulation: how its packets travel.
        settings: other settings, by name.
    """

    ics: Mapping[str, Any]
    lane: Callable[[str, Configure | None, LinkProfile, int], SimulatedLane]
    encapsulation: Encapsulation = IN_UDP
    settings: Mapping[str, Setting] = field(default_factory=dict)


def _snr_lane(
    profile: str, configure: Configure | None, link: LinkProfile, seed: int
) -> SimulatedLane:
    config = REFERENCES[profile]
    return SimulatedLane(configure(config) if configure else config, link, seed)


def reference_of(suite: Suite) -> Reference:
    """The true reference of a suite."""
    if suite.name == "snr":
        return Reference(SNR_ICS, _snr_lane)
    assert suite.name == "stp"
    description = load_iut("stp-reference-simulated")
    return Reference(description.ics, stp_lane, description.encapsulation, STP_SETTINGS)
