"""Places a certification can run in, and the crews of workers that run there.

The decision which place to take is :mod:`bentpipe_conformance.bed.place`'s; this module starts
workers in it and opens a worker's lane from inside.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bentpipe_reference.common.link.profile import LinkProfile, load_profiles

from bentpipe_conformance.bed import place
from bentpipe_conformance.bed.check import BedReport
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.lanes import Attachment, KernelLane
from bentpipe_conformance.bed.progress import Progress, silent
from bentpipe_conformance.bed.supervised import Ending, Supervised
from bentpipe_conformance.bed.uml import Guest
from bentpipe_conformance.engine.execution import RunSettings
from bentpipe_conformance.engine.lane import Lane
from bentpipe_conformance.iut.build import built
from bentpipe_conformance.iut.description import IutDescription, load_iut
from bentpipe_conformance.run.worker import Assignment, Worker

WALL_CLOCK_LANES = 8
"""Lanes side by side where the clock is the wall's; the bed's measured error decides verdicts."""

CREW_TIMEOUT_S = 7200.0
"""Wall-clock bound on one worker or guest; hung cases are found long before."""


class Crew(Protocol):
    """Workers at work."""

    def alive(self) -> bool:
        """Whether any worker still runs."""
        ...

    def why(self) -> str:
        """How the first worker that failed ended, in a few words."""
        ...

    def stop(self) -> None:
        """End every worker and whatever it started."""
        ...


class Place(Protocol):
    """Somewhere to run.

    Attributes:
        name: ``simulation``, ``uml-virtual``, ``uml`` or ``host``.
        reason: why it was chosen, for the evidence.
        kernel: version of the kernel under the link, empty in simulation.
        report: what the bed's check measured; None in simulation, which is exact.
    """

    name: str
    reason: str
    kernel: str
    report: BedReport | None

    def start(self, assignment: Assignment, jobs: int | None) -> Crew:
        """Start workers on an assignment."""
        ...


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


def choose(
    bed: str, description: IutDescription, link: LinkProfile, progress: Progress = silent
) -> Place:
    """The place for an implementation, as asked for or the best this machine has, checked.

    Raises:
        BedError: the place asked for cannot be had on this machine, does not suit the
            implementation, or is too far from the link profile.
    """
    kind = description.attach.kind
    if kind == "in-process":
        if bed not in ("auto", "simulation"):
            raise BedError(f"{description.id} runs inside the simulation only; leave --bed out.")
        return LocalPlace("simulation", "the reference runs in virtual time", "")
    if bed == "simulation":
        raise BedError(
            f"{description.id} is no part of the simulation; choose --bed auto, uml-virtual, uml "
            "or host."
        )
    if kind == "address":
        if bed not in ("auto", "host"):
            raise BedError(
                f"{description.id} is at an address behind an interface of this machine; "
                "choose --bed host."
            )
        bed = "host"
    chosen = place.choose(bed, link, progress)
    if chosen.report is not None and (faults := chosen.report.faults()):
        raise BedError(faults[0])
    reason = _reason(chosen)
    if chosen.kernel is None:
        most = 1 if kind == "address" else WALL_CLOCK_LANES
        return LocalPlace("host", reason, chosen.version, chosen.report, most)
    return GuestPlace(chosen.name, reason, chosen.version, chosen.kernel, chosen.report)


def _reason(chosen: place.Place) -> str:
    if chosen.passed_over:
        return " ".join(chosen.passed_over)
    return "virtual time on a real kernel, the most exact" if chosen.virtual else "as asked for"


def check_place(bed: str, link: LinkProfile) -> tuple[str, str, dict[str, Any]]:
    """What ``bentpipe bed check`` prints: the place, why it was chosen, and the figures.

    Raises:
        BedError: there is no bed here, or it cannot be laid out.
    """
    chosen = place.choose(bed, link)
    report = chosen.report or place.check_place(chosen, link)
    return chosen.name, _reason(chosen), {**asdict(report), "faults": list(report.faults())}


def _worker_command(assignment: Path) -> list[str]:
    return [sys.executable, "-m", "bentpipe_conformance.run.worker", str(assignment)]


@dataclass
class LocalPlace:
    """Workers as processes of this machine: the simulation, or a host's own netem."""

    name: str
    reason: str
    kernel: str
    report: BedReport | None = None
    most: int = WALL_CLOCK_LANES
    """Lanes side by side, at most: there is only one of an implementation at an address."""

    def start(self, assignment: Assignment, jobs: int | None) -> Crew:
        """One process with a lane per job (simulation: a process per job)."""
        cores = os.cpu_count() or 1
        if self.name == "simulation":
            return ProcessCrew(assignment, min(jobs or cores, len(assignment.cases)), lanes=1)
        lanes = min(jobs or self.most, len(assignment.cases))
        if self.most == 1:
            lanes = 1
        return ProcessCrew(assignment, 1, lanes=lanes)


@dataclass
class GuestPlace:
    """Workers inside User-Mode Linux, with a virtual clock or the wall's."""

    name: str
    reason: str
    kernel: str
    image: Kernel
    report: BedReport | None = None

    def start(self, assignment: Assignment, jobs: int | None) -> Crew:
        """Virtual time: a guest per job, one lane each. Wall clock: one guest, many lanes."""
        if self.image.virtual:
            guests = min(jobs or os.cpu_count() or 1, len(assignment.cases))
            return GuestCrew(self.image, assignment, guests, lanes=1)
        return GuestCrew(
            self.image, assignment, 1, lanes=min(jobs or WALL_CLOCK_LANES, len(assignment.cases))
        )


@dataclass
class ProcessCrew:
    """Worker processes of this machine."""

    assignment: Assignment
    processes: int
    lanes: int
    _folder: Path = field(init=False)
    _running: list[Supervised] = field(init=False, default_factory=list)
    _logs: list[Path] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="bentpipe-crew-"))
        order = self._folder / "assignment.json"
        replace(self.assignment, lanes=self.lanes).dump(order)
        for number in range(self.processes):
            log = self._folder / f"worker-{number}.log"
            self._logs.append(log)
            self._running.append(
                Supervised(
                    _worker_command(order),
                    env=os.environ,
                    cwd=Path.cwd(),
                    console=log,
                    timeout=CREW_TIMEOUT_S,
                    # When we are killed, nobody else removes these.
                    keep=(str(self._folder), self.assignment.claims),
                )
            )

    def alive(self) -> bool:
        """Whether any worker still runs."""
        return any(process.running() for process in self._running)

    def why(self) -> str:
        """The last line a failed worker wrote, or its status."""
        for process, log in zip(self._running, self._logs, strict=True):
            if process.running():
                continue
            ending = process.wait()
            if ending.status != 0:
                return _last_line(log) or _ended(ending)
        return "it was stopped"

    def stop(self) -> None:
        """Kill every worker with all it started and forget the logs."""
        for process in self._running:
            process.close()
        self._running.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass
class GuestCrew:
    """Workers inside User-Mode Linux guests."""

    image: Kernel
    assignment: Assignment
    guests: int
    lanes: int
    _folder: Path = field(init=False)
    _running: list[Guest] = field(init=False, default_factory=list)
    _why: str = field(init=False, default="it was stopped")

    def __post_init__(self) -> None:
        self._folder = Path(self.assignment.claims).parent / f"crew-{os.urandom(6).hex()}"
        self._folder.mkdir()
        order = self._folder / "assignment.json"
        replace(self.assignment, lanes=self.lanes).dump(order)
        try:
            for _ in range(self.guests):
                self._running.append(
                    Guest(
                        self.image,
                        _worker_command(order),
                        virtual=self.image.virtual,
                        timeout=CREW_TIMEOUT_S,
                    )
                )
        except BaseException:
            self.stop()
            raise

    def alive(self) -> bool:
        """Whether any guest still runs; a guest that ended tells how."""
        living = False
        for guest in list(self._running):
            if guest.running():
                living = True
                continue
            self._running.remove(guest)
            self._end(guest)
        return living

    def _end(self, guest: Guest) -> None:
        try:
            result = guest.wait()
            if result.status:
                lines = result.stderr.strip().splitlines()
                self._why = lines[-1] if lines else f"exit status {result.status}"
        except BedError as error:
            self._why = str(error)
        finally:
            guest.close()

    def why(self) -> str:
        """How the first guest that failed ended."""
        return self._why

    def stop(self) -> None:
        """Kill every guest."""
        for guest in self._running:
            guest.close()
        self._running.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _ended(ending: Ending) -> str:
    if ending.status is None:
        return ending.ending
    return f"signal {-ending.status}" if ending.status < 0 else f"exit status {ending.status}"


# -- inside the place


def drain_time(link: LinkProfile) -> float:
    """Seconds until a link whose queues are full has delivered everything."""
    queues = sum(
        direction.queue_packets * link.mtu * 8 / direction.rate_bit_s
        for direction in (link.forward, link.return_)
        if direction.rate_bit_s is not None
    )
    return queues + link.round_trip_s


def open_worker(assignment: Assignment, number: int) -> Worker:
    """The worker of an assignment, ready to open its lane in the place it runs in."""
    description = load_iut(assignment.iut)
    link = load_link(assignment.link)
    settings = RunSettings(
        profile=assignment.profile,
        suite=description.suite,
        encapsulation=description.encapsulation,
        ics=description.ics,
        rtt=link.round_trip_s,
        seed=assignment.seed,
        services=description.services,
        drain=0.0 if assignment.place == "simulation" else drain_time(link),
    )

    def open_lane() -> Lane:
        return _open_lane(description, link, assignment.seed, assignment.timing_error)

    return Worker(assignment, settings, link, open_lane, number)


def _open_lane(
    description: IutDescription, link: LinkProfile, seed: int, timing_error: float = 0.0
) -> Lane:
    kind = description.attach.kind
    if kind == "in-process":
        from bentpipe_conformance.iut import inprocess

        return inprocess.simulated_lane(description.suite, description.attach.variant, link, seed)
    values: dict[str, object] = {
        "here": description.path.parent,
        "udp_port": description.encapsulation.port,
        "protocol": description.encapsulation.protocol,
    }
    if description.start.build:
        # Built before on the host: inside a guest the toolchain would cost minutes.
        values["cache"] = built(description.start.build)
    attach = description.attach
    attachment = Attachment(
        kind=kind,
        command=description.start.words(values),
        ready=description.start.ready,
        sysctls=description.sysctl,
        opening=description.opening,
    )
    if kind == "address":
        attachment = replace(
            attachment,
            interface=attach.interface,
            address=attach.address,
            gateway=attach.gateway,
            prefix=attach.prefix,
            sends_on=attach.sends_on,
            sends_to=attach.sends_to,
        )
    return KernelLane(link, attachment, timing_error=timing_error)


def simulated_lane(iut: str, link: str, profile: str | None) -> tuple[Lane, RunSettings]:
    """A lane and settings for the reference in this very process (the pytest plugin's)."""
    description, link_profile = load_iut(iut), load_link(link)
    settings = RunSettings(
        description.suite, description.suite.profile(profile), description.ics,
        link_profile.round_trip_s, seed=1, encapsulation=description.encapsulation,
    )  # fmt: skip
    return _open_lane(description, link_profile, 1), settings
