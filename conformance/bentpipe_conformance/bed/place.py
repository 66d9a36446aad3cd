"""Where the bed runs: the best place that works here, or the one asked for."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from typing import Literal

from bentpipe_reference.common.link.profile import Direction, LinkProfile

from bentpipe_conformance.bed import check, netem, uml
from bentpipe_conformance.bed.check import BedReport
from bentpipe_conformance.bed.devices import open_tun
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.bed.kernel import Kernel, fetch_packaged, find_virtual
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.netlink import Netlink
from bentpipe_conformance.bed.progress import Progress, silent

PlaceName = Literal["uml-virtual", "uml", "host"]
PLACES: tuple[PlaceName, ...] = ("uml-virtual", "uml", "host")
"""From the most exact to the least."""
TRIAL_SECONDS = 60.0
CHECK_SECONDS = 120.0
NO_VIRTUAL_KERNEL = (
    "No kernel with a virtual clock is built yet; build it once with `bentpipe bed build`."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run's lanes are.

    Attributes:
        name: of the place.
        kernel: what it boots; None on the host.
        passed_over: for each better place, one sentence on why it was not chosen.
        report: what the check of the wanted link measured, if there was one.
    """

    name: PlaceName
    kernel: Kernel | None
    passed_over: tuple[str, ...] = ()
    report: BedReport | None = None

    @property
    def virtual(self) -> bool:
        """Whether its clock is virtual."""
        return self.name == "uml-virtual"

    @property
    def version(self) -> str:
        """Release of the kernel whose link, and whose TCP, is used."""
        return os.uname().release if self.kernel is None else self.kernel.version


def choose(
    wanted: str = "auto", profile: LinkProfile | None = None, progress: Progress = silent
) -> Place:
    """The place for a run: ``auto`` or one by name, checked with the link of the run if given.

    Raises:
        BedError: the wanted place, or every place, is impossible here, or one that works broke.
    """
    names = [name for name in PLACES if wanted in ("auto", name)]
    if not names:
        raise BedError(
            f"There is no bed {wanted!r}; choose auto, {', '.join(PLACES)} or simulation."
        )
    reasons: list[str] = []
    for name in names:
        place = None
        try:
            place = Place(name, _kernel(name, progress), tuple(reasons))
            return replace(place, report=attempt(place, profile))
        except BedError as error:
            if wanted != "auto":
                raise
            if place is not None and profile is not None and _runs(place):
                # Another bed would say something else, and nobody had asked for it.
                said = str(error).rstrip(".")
                raise BedError(
                    f"The bed {name} runs here, but broke in its check ({said}); repeat the "
                    "command, or choose another one with --bed."
                ) from None
            reasons.append(str(error))
    raise BedError(
        "No test bed works here: " + " ".join(reasons) + " Until then use `--bed simulation`."
    )


def _runs(place: Place) -> bool:
    """Whether User-Mode Linux works here at all."""
    try:
        attempt(place, None)
    except BedError:
        return False
    return place.kernel is not None


def _kernel(name: PlaceName, progress: Progress) -> Kernel | None:
    """What a place boots."""
    if name == "uml":
        # A kernel named by the user may support virtual time; here the wall clock is wanted.
        return replace(fetch_packaged(progress), virtual=False)
    if name == "host":
        return None
    kernel = find_virtual()
    if kernel is None:
        raise BedError(NO_VIRTUAL_KERNEL)
    return kernel


def attempt(place: Place, profile: LinkProfile | None) -> BedReport | None:
    """Try a place: check it with the wanted link, or only start it.

    Raises:
        BedError: it does not work here.
    """
    if place.kernel is None:
        _try_host()
    if profile is not None:
        return check_place(place, profile)
    if place.kernel is not None:
        # Booting fails for instance where tracing processes is forbidden.
        command, virtual = [sys.executable, "-IS", "-c", ""], place.virtual
        result = uml.run(
            place.kernel, command, virtual=virtual, memory_mib=128, timeout=TRIAL_SECONDS
        )
        if result.status:
            raise BedError(
                f"Python does not run inside User-Mode Linux (exit status {result.status}); "
                "choose another place with `--bed host`."
            )
    return None


def _try_host() -> None:
    """Lay out a link in a scratch namespace of this machine.

    Raises:
        BedError: it needs root, or the kernel lacks netem or TUN.
    """
    trial = Direction(rate_bit_s=1e6, delay_s=0.1, queue_packets=10)
    with (
        contextlib.ExitStack() as stack,
        NetworkNamespace() as namespace,
        namespace.entered(),
        Netlink() as netlink,
    ):
        stack.callback(os.close, open_tun("trial"))
        netlink.set_link("trial")
        try:
            netem.lay_out(netlink, "trial", trial, ethernet=False)
        except BedError as error:
            raise BedError(
                f"This machine's kernel has no netem ({str(error).rstrip('.')}); "
                "load it with `modprobe sch_netem` or use `--bed uml-virtual`."
            ) from None


def check_place(place: Place, profile: LinkProfile) -> BedReport:
    """Measure a link in a place; see :func:`bentpipe_conformance.bed.check.measure`.

    Raises:
        BedError: it cannot be laid out or measured there.
    """
    if place.kernel is None:
        return check.measure(profile)
    command = [sys.executable, "-m", check.__name__, json.dumps(asdict(profile))]
    result = uml.run(place.kernel, command, virtual=place.virtual, timeout=CHECK_SECONDS)
    if result.status:
        raise BedError(f"{last_line(result.stderr)}.")
    return BedReport(**json.loads(result.stdout))
