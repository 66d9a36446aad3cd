"""Choosing the place, with stand-ins for what works on this machine."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bentpipe_conformance.bed import place as places
from bentpipe_conformance.bed.check import BedReport
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.place import Means, Place, choose
from bentpipe_conformance.bed.progress import Progress
from bentpipe_reference.common.link.profile import LinkProfile, load_profiles

VIRTUAL = Kernel(Path("/built/linux"), True, "6.1.1")
PACKAGED = Kernel(Path("/usr/bin/linux.uml"), False, "6.1.0")


@dataclass
class Machine:
    """A machine on which some places work."""

    built: bool = True
    packaged: bool = True
    broken: tuple[str, ...] = ()
    tried: list[str] = field(default_factory=list)

    def means(self) -> Means:
        def packaged(progress: Progress) -> Kernel:
            if not self.packaged:
                raise BedError("No package.")
            return PACKAGED

        def attempt(place: Place, profile: LinkProfile | None) -> BedReport | None:
            self.tried.append(place.name)
            if place.name in self.broken:
                raise BedError(f"{place.name} is broken.")
            return None

        return Means(lambda: VIRTUAL if self.built else None, packaged, attempt)


def test_everything_works_auto_takes_virtual_time() -> None:
    machine = Machine()
    chosen = choose(means=machine.means())
    assert (chosen.name, chosen.kernel, chosen.virtual) == ("uml-virtual", VIRTUAL, True)
    assert chosen.passed_over == ()
    assert machine.tried == ["uml-virtual"]


def test_kernel_not_built_auto_takes_the_package_and_says_why() -> None:
    chosen = choose(means=Machine(built=False).means())
    assert (chosen.name, chosen.kernel, chosen.virtual) == ("uml", PACKAGED, False)
    assert chosen.passed_over == (places.NO_VIRTUAL_KERNEL,)


def test_user_mode_linux_does_not_run_auto_takes_the_host() -> None:
    chosen = choose(means=Machine(broken=("uml-virtual", "uml")).means())
    assert (chosen.name, chosen.kernel) == ("host", None)
    assert chosen.passed_over == ("uml-virtual is broken.", "uml is broken.")


def test_nothing_works_auto_gives_every_reason() -> None:
    machine = Machine(built=False, packaged=False, broken=("host",))
    with pytest.raises(BedError) as caught:
        choose(means=machine.means())
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
def test_forced_place_is_impossible_gives_its_reason_alone(wanted: str, reason: str) -> None:
    machine = Machine(built=False, packaged=False, broken=("host",))
    with pytest.raises(BedError, match=reason):
        choose(wanted, means=machine.means())


def test_forced_place_works_nothing_better_is_tried() -> None:
    machine = Machine()
    assert choose("host", means=machine.means()).name == "host"
    assert machine.tried == ["host"]


def test_wall_clock_is_wanted_of_a_kernel_that_knows_both() -> None:
    means = Means(lambda: VIRTUAL, lambda progress: VIRTUAL, lambda place, profile: None)
    chosen = choose("uml", means=means)
    assert chosen.kernel is not None
    assert (chosen.kernel.path, chosen.kernel.virtual) == (VIRTUAL.path, False)


def test_unknown_place_names_the_choices() -> None:
    with pytest.raises(BedError, match="auto, uml-virtual, uml, host or simulation"):
        choose("qemu", means=Machine().means())


def test_link_given_place_keeps_what_the_check_measured() -> None:
    report = BedReport("uml", "lan", 1, 1, 0, 0, None, None, None, None, 1, 0, False, 0.25)
    means = Means(lambda: VIRTUAL, lambda progress: PACKAGED, lambda place, profile: report)
    chosen = choose("auto", load_profiles()["lan"], means=means)
    assert chosen.report is report
