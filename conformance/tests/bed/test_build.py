"""The whole build, with a toy in place of the kernel's source."""

import fcntl
import json
import os
import tarfile
import threading
from collections import namedtuple
from io import BytesIO
from pathlib import Path

import pytest
from bentpipe_conformance.bed import build, kernel
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.progress import Step

MAKEFILE = """\
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
linux:
\t@echo "  CC      init/main.o"; touch main.o
\t@test "$(ARCH)" = um
\t@test ! -e ../fail || { echo "main.c:3:1: error: no luck" >&2; exit 2; }
\t@printf '#!/bin/sh\\necho 9.9.9 time-travel=inf-cpu\\n' > linux; chmod 755 linux
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(kernel.KERNEL_VARIABLE, raising=False)
    monkeypatch.setenv(build.SOURCE_VARIABLE, str(archive(tmp_path, MAKEFILE)))
    monkeypatch.setattr(build, "TOOLS", {})  # the toy needs none
    return tmp_path / "bentpipe" / "kernel"


def archive(folder: Path, makefile: str) -> Path:
    path = folder / "linux-9.9.tar.xz"
    with tarfile.open(path, "w:xz") as file:
        for name, text in (("Makefile", makefile), ("drivers/usb/core.c", "unused")):
            member = tarfile.TarInfo(f"linux-9.9/{name}")
            member.size = len(text)
            file.addfile(member, BytesIO(text.encode()))
    return path


def test_build_succeeds_kernel_is_described_and_found(cache: Path) -> None:
    steps: list[Step] = []
    built = build.build(steps.append)
    assert (built.version, built.virtual) == ("9.9.9 time-travel=inf-cpu", True)
    assert kernel.find_virtual() == built
    phases = list(dict.fromkeys(step.phase for step in steps))
    assert phases == ["unpack", "configure", "compile", "install"]
    description = json.loads(built.path.with_name(kernel.DESCRIPTION).read_text(encoding="utf-8"))
    assert description["config"] == kernel.config_hash()
    assert description["sha256"] == kernel.digest(built.path)
    assert "gcc" in description["compiler"]


@pytest.mark.slow
def test_machine_lacks_a_tool_it_is_downloaded_and_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A program that no machine has, in the place of the real one; its package comes from Debian.
    monkeypatch.setattr(build, "TOOLS", {"m4-of-nobody": ("m4",)})
    steps: list[Step] = []
    built = build.build(steps.append)
    assert "download" in {step.phase for step in steps}
    assert sorted(path.name for path in cache.parent.iterdir()) == ["apt.log", "kernel"]
    assert built.path.exists()


def test_build_succeeded_only_the_kernel_is_left(cache: Path) -> None:
    built = build.build()
    assert sorted(path.name for path in cache.iterdir()) == sorted(
        ["build.lock", built.path.parent.name]
    )


def test_kernel_is_built_already_nothing_is_done(cache: Path) -> None:
    first = build.build()
    steps: list[Step] = []
    assert build.build(steps.append) == first
    assert steps == []


def test_kernel_is_built_already_its_source_is_not_needed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build.build()
    monkeypatch.delenv(build.SOURCE_VARIABLE)
    monkeypatch.setenv("PATH", str(cache))
    assert build.build() == first


def test_compilation_fails_its_error_is_quoted_and_it_goes_on_later(cache: Path) -> None:
    steps: list[Step] = []

    def fail_once(step: Step) -> None:
        steps.append(step)
        if step.phase == "configure" and not any(cache.glob("work/*/fail")):
            next(cache.glob("work/*")).joinpath("fail").touch()

    with pytest.raises(BedError, match=r"main.c:3:1: error: no luck.*bentpipe bed build"):
        build.build(fail_once)
    assert kernel.find_virtual() is None
    next(cache.glob("work/*/fail")).unlink()
    again: list[Step] = []
    build.build(again.append)
    assert "unpack" in {step.phase for step in steps}
    assert "unpack" not in {step.phase for step in again}
    assert next(step for step in again if step.phase == "compile").done > 1


def test_unpacking_was_interrupted_it_is_done_again(cache: Path) -> None:
    steps: list[Step] = []

    def stop(step: Step) -> None:
        if step.phase == "unpack":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.build(stop)
    build.build(steps.append)
    assert steps[0].phase == "unpack"


def test_parts_not_needed_are_not_unpacked(cache: Path) -> None:
    found: list[list[Path]] = []

    def look(step: Step) -> None:
        if step.phase == "configure":
            found.append(list(cache.glob("work/*/tree/**/*.c")))

    build.build(look)
    assert found == [[]]


def test_source_offers_no_virtual_clock_it_is_refused(cache: Path, tmp_path: Path) -> None:
    archive(tmp_path, MAKEFILE.replace("cp $(KCONFIG_ALLCONFIG)", "echo >"))
    with pytest.raises(BedError, match="does not offer CONFIG_UML_TIME_TRAVEL_SUPPORT"):
        build.build()


def test_archive_is_damaged_says_so(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "linux-9.9.tar.xz").write_bytes(b"not an archive")
    with pytest.raises(BedError, match="source could not be unpacked"):
        build.build()


def test_named_source_is_missing_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(build.SOURCE_VARIABLE, "/nowhere/linux.tar.xz")
    with pytest.raises(BedError, match="is not a file"):
        build.build()


def test_disk_is_full_says_how_much_is_needed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(9, 9, 10**8))
    with pytest.raises(BedError, match=r"needs 2.1 GB.*0.1 GB are free.*XDG_CACHE_HOME"):
        build.build()


def test_another_build_runs_this_one_waits_for_it(cache: Path) -> None:
    cache.mkdir(parents=True)
    handle = os.open(cache / "build.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    phases: list[str] = []

    def release(step: Step) -> None:
        phases.append(step.phase)
        if step.phase == "wait":
            fcntl.flock(handle, fcntl.LOCK_UN)

    worker = threading.Thread(target=build.build, args=(release,))
    worker.start()
    worker.join(60)
    os.close(handle)
    assert phases[0] == "wait"
    assert phases[-1] == "install"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_lock_is_no_regular_file_it_is_refused(cache: Path, tmp_path: Path, kind: str) -> None:
    cache.mkdir(parents=True)
    thesis = tmp_path / "thesis.tex"
    if kind == "link":
        (cache / "build.lock").symlink_to(thesis)
    else:
        os.mkfifo(cache / "build.lock")
    with pytest.raises(BedError, match="could not be built in"):
        build.build()
    assert not thesis.exists()
