"""Workplaces: where the workers of a certification run, and how many lanes fit there.

Which bed this machine has is decided by :mod:`bentpipe_conformance.bed.place`.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile

from bentpipe_conformance.bed import place, ports
from bentpipe_conformance.bed.check import BedReport
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.engine.lane import SIMULATION_ERROR_S
from bentpipe_conformance.iut.description import IutDescription
from bentpipe_conformance.run.assignment import Assignment
from bentpipe_conformance.run.crew import Crew, guest_crew, process_crew

_OTHER_BEDS = re.compile(r"(,? or use|; run inside User-Mode Linux with) `--bed uml-virtual`")

WALL_CLOCK_LANES = 8
"""Lanes side by side where the clock is the wall's; the bed's measured error decides verdicts."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Somewhere to run cases.

    Attributes:
        name: ``simulation``, ``uml-virtual``, ``uml`` or ``host``.
        reason: why it was chosen, for the evidence.
        kernel: version of the kernel under the link, empty in simulation.
        report: what the bed's check measured; None in simulation, which is exact.
        image: the User-Mode Linux to boot; None where workers are processes of this machine.
        single: whether only one lane fits: there is one of an implementation at an address.
        unmeasured: seconds by which times may be wrong where there is no report.
    """

    name: str
    reason: str
    kernel: str = ""
    report: BedReport | None = None
    image: Kernel | None = None
    single: bool = False
    unmeasured: float = SIMULATION_ERROR_S

    @property
    def timing_error(self) -> float:
        """Seconds by which a time taken there may be wrong."""
        return self.unmeasured if self.report is None else self.report.timing_error

    @property
    def virtual(self) -> bool:
        """Whether its clock is virtual."""
        return self.name == "simulation" or (self.image is not None and self.image.virtual)

    def start(self, assignment: Assignment, jobs: int | None) -> Crew:
        """Start workers on an assignment, ``jobs`` side by side (None: as many as fit).

        On a virtual clock each job is a process or guest with one lane; on the wall's there is
        one process or guest with a lane per job.

        Raises:
            BedError: a guest cannot be started.
        """
        most = (os.cpu_count() or 1) if self.virtual else WALL_CLOCK_LANES
        side_by_side = 1 if self.single else min(jobs or most, len(assignment.cases))
        size, lanes = (side_by_side, 1) if self.virtual else (1, side_by_side)
        order = replace(assignment, lanes=lanes)
        if self.image is None:
            return process_crew(order, size)
        return guest_crew(self.image, order, size)


def choose_workplace(bed: str, description: IutDescription, link: LinkProfile) -> Workplace:
    """The workplace for an implementation, as asked for or the best this machine has, checked.

    Raises:
        BedError: the place asked for cannot be had on this machine, does not suit the
            implementation, or is too far from the link profile.
    """
    kind = description.attach.kind
    if kind == "in-process":
        if bed not in ("auto", "simulation"):
            raise BedError(f"{description.id} runs inside the simulation only; leave --bed out.")
        return Workplace("simulation", "the reference runs in virtual time")
    if bed == "simulation":
        remedy = "choose --bed auto, uml-virtual, uml or host."
        raise BedError(f"{description.id} is not part of the simulation; {remedy}")
    if kind in ("address", "ports"):
        if bed not in ("auto", "host"):
            where = "behind interfaces of this machine"
            raise BedError(f"{description.id} is {where}; choose --bed host.")
        bed = "host"
    if kind == "ports":
        return _between_ports(description)
    try:
        chosen = place.choose(bed, link)
    except BedError as error:
        if kind != "address":
            raise
        # The remedies of other implementations lead back here.
        reason = _OTHER_BEDS.sub("", str(error))
        raise BedError(
            f"{description.id} is at an address, so that only this machine's own kernel can lay "
            f"out the link: {reason}"
        ) from None
    if chosen.report is not None and (faults := chosen.report.faults()):
        raise BedError(faults[0])
    found = chosen.version, chosen.report, chosen.kernel
    return Workplace(chosen.name, _reason(chosen), *found, single=kind == "address")


def _between_ports(description: IutDescription) -> Workplace:
    """This machine, as the place of a tester that plays the link itself.

    Raises:
        BedError: this process may not take interfaces.
    """
    try:
        NetworkNamespace().close()
    except BedError:
        raise BedError(
            f"{description.id} is behind interfaces of this machine, and taking them needs root; "
            "run the command as root, or inside `unshare -Urn` where the interfaces are made there."
        ) from None
    reason = "the tester plays the link itself, between the box's ports"
    return Workplace("host", reason, os.uname().release, single=True, unmeasured=ports.ERROR_S)


def check_place(bed: str, link: LinkProfile) -> tuple[str, str, dict[str, Any]]:
    """What ``bentpipe bed check`` prints: the place, why it was chosen, and the figures.

    Raises:
        BedError: there is no bed here, or it cannot be laid out.
    """
    chosen = place.choose(bed, link)
    report = chosen.report or place.check_place(chosen, link)
    return chosen.name, _reason(chosen), {**asdict(report), "faults": list(report.faults())}


def _reason(chosen: place.Place) -> str:
    if chosen.passed_over:
        return " ".join(chosen.passed_over)
    return "virtual time on a real kernel, the most exact" if chosen.virtual else "as asked for"
