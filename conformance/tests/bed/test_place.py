"""Choosing the place, with stand-ins for what works on this machine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed import place as places
from bentpipe_conformance.bed.check import BedReport
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.place import Place, choose
from bentpipe_conformance.bed.progress import Progress
from bentpipe_reference.common.link.profile import LinkProfile, load_profiles

VIRTUAL = Kernel(Path("/built/linux"), True, "6.1.1")
PACKAGED = Kernel(Path("/usr/bin/linux.uml"), False, "6.1.0")
On = Callable[..., "Machine"]


@dataclass
class Machine:
    """A machine on which some places work."""

    built: bool = True
    package: Kernel | None = PACKAGED
    broken: tuple[str, ...] = ()
    killed: bool = False
    measured: BedReport | None = None
    tried: list[str] = field(default_factory=list)

    def find_virtual(self) -> Kernel | None:
        return VIRTUAL if self.built else None

    def fetch_packaged(self, progress: Progress) -> Kernel:
        del progress
        if self.package is None:
            raise BedError("No package.")
        return self.package

    def attempt(self, place: Place, profile: LinkProfile | None) -> BedReport | None:
        self.tried.append(place.name)
        if place.name in self.broken or (profile is not None and self.killed):
            raise BedError(f"{place.name} is broken.")
        return self.measured


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    """Makes this machine one on which some places work."""

    def on(**traits: Any) -> Machine:
        machine = Machine(**traits)
        for name in ("find_virtual", "fetch_packaged", "attempt"):
            monkeypatch.setattr(places, name, getattr(machine, name))
        return machine

    return on


def test_everything_works_auto_takes_virtual_time(on: On) -> None:
    machine = on()
    chosen = choose()
    assert (chosen.name, chosen.kernel, chosen.virtual) == ("uml-virtual", VIRTUAL, True)
    assert chosen.passed_over == ()
    assert machine.tried == ["uml-virtual"]


def test_kernel_not_built_auto_takes_the_package_and_says_why(on: On) -> None:
    on(built=False)
    chosen = choose()
    assert (chosen.name, chosen.kernel, chosen.virtual) == ("uml", PACKAGED, False)
    assert chosen.passed_over == (places.NO_VIRTUAL_KERNEL,)


def test_user_mode_linux_does_not_run_auto_takes_the_host(on: On) -> None:
    on(broken=("uml-virtual", "uml"))
    chosen = choose()
    assert (chosen.name, chosen.kernel) == ("host", None)
    assert chosen.passed_over == ("uml-virtual is broken.", "uml is broken.")


def test_bed_that_works_and_breaks_in_its_check_is_an_error_and_no_other_bed(on: On) -> None:
    machine = on(killed=True)
    with pytest.raises(BedError, match=r"uml-virtual runs here, but broke .*--bed"):
        choose("auto", load_profiles()["lan"])
    assert machine.tried == ["uml-virtual", "uml-virtual"]


def test_nothing_works_auto_gives_every_reason(on: On) -> None:
    on(built=False, package=None, broken=("host",))
    with pytest.raises(BedError) as caught:
        choose()
    for reason in (places.NO_VIRTUAL_KERNEL, "No package.", "host is broken.", "simulation"):
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("uml-virtual", "bentpipe bed build"),
        ("uml", "No package."),
        ("host", "host is broken."),
    ],
)
def test_forced_place_is_impossible_gives_its_reason_alone(
    on: On, wanted: str, reason: str
) -> None:
    on(built=False, package=None, broken=("host",))
    with pytest.raises(BedError, match=f"^[^:]*{reason}"):
        choose(wanted)


def test_forced_place_works_nothing_better_is_tried(on: On) -> None:
    machine = on()
    assert choose("host").name == "host"
    assert machine.tried == ["host"]


def test_wall_clock_is_wanted_of_a_kernel_that_knows_both(on: On) -> None:
    on(package=VIRTUAL)
    chosen = choose("uml")
    assert chosen.kernel is not None
    assert (chosen.kernel.path, chosen.kernel.virtual) == (VIRTUAL.path, False)


def test_unknown_place_names_the_choices(on: On) -> None:
    on()
    with pytest.raises(BedError, match="auto, uml-virtual, uml, host or simulation"):
        choose("qemu")


def test_link_given_place_keeps_what_the_check_measured(on: On) -> None:
    report = BedReport("uml", "lan", 1, 1, 0, 0, None, None, None, None, 1, 0, False, 0.25)
    on(measured=report)
    assert choose("auto", load_profiles()["lan"]).report is report
