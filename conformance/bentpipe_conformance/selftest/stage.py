"""A reference behind the simulated link on which the self-test runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles
from bentpipe_reference.common.subject import Drawn, Subject

from bentpipe_conformance.engine.encapsulation import IN_UDP, Encapsulation
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.iut.inprocess import lane_of

LINK = "geo"


def stage(
    reference: Subject, profile: str, setting: str, seed: int,
    configure: Callable[[Any], Any] = lambda setup: setup, link: LinkProfile | None = None,
) -> tuple[Lane, RunSettings]:  # fmt: skip
    """A lane with a reference on a simulated link, and how to run cases on it.

    Args:
        reference: what is set up.
        profile: a profile of its suite.
        setting: of the reference; empty for its usual one.
        seed: see :func:`~bentpipe_conformance.iut.inprocess.lane_of`.
        configure: turns the setup of the reference into a mutant's.
        link: the link, :data:`LINK` if None.
    """
    link = link or load_profiles()[LINK]
    host = set_up(reference, profile, setting)
    carried = IN_UDP
    if setting and (number := reference.settings[setting].ip_protocol):
        carried = Encapsulation("ip", number)
    lane = lane_of(reference, configure(host.setup), link, seed, host.latency_s)
    settings = RunSettings(profile, host.ics, link.round_trip_s, seed, encapsulation=carried)
    return lane, settings


def set_up(reference: Subject, profile: str, setting: str) -> Drawn:
    """A reference in a profile and a setting, and its conformance statement."""
    setup = reference.setups[profile]
    if not setting:
        return Drawn(setup, {**reference.ics}, profile)
    chosen = reference.settings[setting]
    ics = {**reference.ics, **chosen.ics}
    return Drawn(chosen.configure(setup), ics, profile, chosen.latency_s)
