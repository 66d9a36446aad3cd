"""The true reference of each suite and profile, and what it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bentpipe_reference.link.profile import LinkProfile

from bentpipe_conformance.encapsulation import IN_UDP, Encapsulation
from bentpipe_conformance.iut.description import load_iut
from bentpipe_conformance.iut.inprocess import REFERENCES, SimulatedLane, stp_lane
from bentpipe_conformance.suite import SNR, STP, Suite

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


@dataclass(frozen=True, slots=True)
class Reference:
    """The true reference of a suite.

    Attributes:
        ics: its conformance statement.
        lane: a lane with the reference of a profile on a link, from a seed; ``configure`` turns
            its configuration into a mutant's.
        encapsulation: how its packets travel.
    """

    ics: Mapping[str, Any]
    lane: Callable[[str, Configure | None, LinkProfile, int], SimulatedLane]
    encapsulation: Encapsulation = IN_UDP


Configure = Callable[[Any], Any]
"""Turns the configuration of a true reference into a mutant's."""


def _snr_lane(
    profile: str, configure: Configure | None, link: LinkProfile, seed: int
) -> SimulatedLane:
    config = REFERENCES[profile]
    return SimulatedLane(configure(config) if configure else config, link, seed)


def reference_of(suite: Suite) -> Reference:
    """The true reference of a suite."""
    if suite is SNR:
        return Reference(SNR_ICS, _snr_lane)
    assert suite is STP
    description = load_iut("stp-reference-simulated")
    return Reference(description.ics, stp_lane, description.encapsulation)
