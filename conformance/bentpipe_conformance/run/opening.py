"""Opening a lane on an implementation, from inside the place where the cases run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles

from bentpipe_conformance.bed.crossing import CrossingLane
from bentpipe_conformance.bed.jail import PROCESSES, Confinement
from bentpipe_conformance.bed.lanes import Attachment, KernelLane
from bentpipe_conformance.bed.ports import PortsLane
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.engine.settings import RunSettings
from bentpipe_conformance.iut.attachment import OF_BOXES
from bentpipe_conformance.iut.build import built
from bentpipe_conformance.iut.contents import Contents, contents_of
from bentpipe_conformance.iut.description import IutDescription
from bentpipe_conformance.iut.start import Start


def load_link(id_or_path: str) -> LinkProfile:
    """A link profile by identifier, or the first one of a TOML file.

    Raises:
        ValueError: there is none of that name, or the file has a mistake.
    """
    known = load_profiles()
    if id_or_path in known:
        return known[id_or_path]
    if id_or_path.endswith(".toml") or "/" in id_or_path:
        found = load_profiles(id_or_path)
        if not found:
            raise ValueError(f"{id_or_path}: holds no profile; add a table such as [my-link].")
        return next(iter(found.values()))
    raise ValueError(f"there is no link profile {id_or_path!r}; there are {', '.join(known)}.")


def drain_time(link: LinkProfile) -> float:
    """Seconds until a link whose queues are full has delivered everything."""
    queues = sum(
        direction.queue_packets * link.mtu * 8 / direction.rate_bit_s
        for direction in (link.forward, link.return_)
        if direction.rate_bit_s is not None
    )
    return queues + link.round_trip_s


def run_settings(
    description: IutDescription, link: LinkProfile, profile: str, seed: int
) -> RunSettings:
    """The settings of a run; ``profile`` is one of the suite's."""
    simulated = description.attach.kind == "in-process"
    return RunSettings(
        profile, description.ics, link.round_trip_s, seed, description.services,
        0.0 if simulated else drain_time(link), description.encapsulation,
    )  # fmt: skip


def open_lane(
    description: IutDescription, link: LinkProfile, seed: int, timing_error: float = 0.0,
    contents: Contents | None = None,
) -> Lane:  # fmt: skip
    """A lane on an implementation that was built before, if it needs to be.

    ``contents`` are its files, found here where they are not known.

    Raises:
        LaneError: it cannot be laid out.
    """
    attach, start = description.attach, description.start
    if attach.kind == "in-process":
        from bentpipe_conformance.iut import inprocess

        return inprocess.simulated_lane(description.suite, attach.variant, link, seed)
    if attach.kind == "ports":
        description.suite.driver.load()
        return PortsLane(link, attach.ports, timing_error=timing_error)
    values: dict[str, object] = {
        "here": description.path.parent,
        "udp_port": description.encapsulation.port,
        "protocol": description.encapsulation.protocol,
    }
    if start.build:
        # Built before on the host: inside a guest the toolchain would cost minutes.
        values["cache"] = built(start.build)
    place: dict[str, Any] = {"kind": attach.kind}
    if attach.kind == "address":
        place = asdict(attach)
        del place["variant"], place["ports"]
    attachment = Attachment(
        **_program(start, values), sysctls=description.sysctl, opening=description.opening,
        confinement=_confinement(description, contents), **place,
    )  # fmt: skip
    description.suite.driver.load()
    if attach.kind in OF_BOXES:
        far = (
            attachment if start.far is None else replace(attachment, **_program(start.far, values))
        )
        return CrossingLane(link, attachment, far, timing_error=timing_error)
    return KernelLane(link, attachment, timing_error=timing_error)


def _program(start: Start, values: Mapping[str, object]) -> dict[str, Any]:
    """What an attachment says of how a program is started."""
    return {
        "command": start.words(values), "ready": start.ready, "ready_port": start.ready_port,
        "setup": start.setup_words(values),
    }  # fmt: skip


def _confinement(description: IutDescription, contents: Contents | None) -> Confinement | None:
    """What an implementation may have; None for everything, or where it is not ours to say."""
    asked = description.isolation
    if asked.privileged or description.attach.kind == "address":
        return None
    found = contents_of(description) if contents is None else contents
    return Confinement(
        found.files, found.links, found.outermost, asked.network, asked.processes or PROCESSES
    )
