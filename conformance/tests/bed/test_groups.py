"""Where control groups for implementations can be made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bentpipe_conformance.bed import groups


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine whose process is in ``/user.slice/session.scope``; nothing is mounted."""
    monkeypatch.delenv(groups.GROUP_VARIABLE, raising=False)
    monkeypatch.setattr(groups, "MEMBERSHIP", tmp_path / "cgroup")
    monkeypatch.setattr(groups, "MOUNTS", tmp_path / "mountinfo")
    (tmp_path / "cgroup").write_text("4:memory:/user\n0::/user.slice/session.scope\n")
    (tmp_path / "mountinfo").write_text("")
    groups._parent.cache_clear()
    yield tmp_path
    groups._parent.cache_clear()


def unified(machine: Path, **enabled: str) -> Path:
    """Mount cgroup2, with what each directory enables for those below it."""
    top = machine / "fs"
    places = {"top": top, "slice": top / "user.slice", "scope": top / "user.slice/session.scope"}
    for name, place in places.items():
        place.mkdir()
        (place / "cgroup.subtree_control").write_text(enabled.get(name, ""))
    told = f"30 20 0:26 / {top} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    (machine / "mountinfo").write_text(told)
    return top


def test_nearest_directory_that_limits_memory_and_processes_is_taken(machine: Path) -> None:
    top = unified(machine, top="cpu memory pids", slice="memory pids", scope="")
    ((parent, limits),) = groups.limiting_groups(256, 64).items()
    assert parent == top / "user.slice"
    assert limits == {
        "memory.max": 256, "memory.oom.group": 1, "pids.max": 64, "memory.swap.max": 0,
    }  # fmt: skip


def test_directory_that_limits_memory_only_is_passed_over(machine: Path) -> None:
    top = unified(machine, top="memory pids", slice="memory")
    assert list(groups.limiting_groups(256, 64)) == [top]


def test_cgroup2_without_controllers_leaves_nothing(machine: Path) -> None:
    unified(machine)
    assert groups.limiting_groups(256, 64) == {}


def test_directory_outside_what_is_mounted_is_not_looked_for(machine: Path) -> None:
    top = unified(machine, top="memory pids")
    (machine / "mountinfo").write_text(f"30 20 0:26 /other {top} rw - cgroup2 cgroup2 rw\n")
    assert groups.limiting_groups(256, 64) == {}


def test_first_version_limits_memory_in_the_process_s_own_directory(machine: Path) -> None:
    folder = machine / "memory" / "user"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").touch()
    told = f"30 20 0:26 / {machine / 'memory'} rw - cgroup cgroup rw,memory\n"
    (machine / "mountinfo").write_text(told)
    assert groups.limiting_groups(256, 64) == {folder: {"memory.limit_in_bytes": 256}}


def test_directory_that_a_guest_names_is_taken(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(groups.GROUP_VARIABLE, str(machine))
    assert list(groups.limiting_groups(256, 64)) == [machine]
    monkeypatch.setenv(groups.GROUP_VARIABLE, str(machine / "absent"))
    assert groups.limiting_groups(256, 64) == {}
