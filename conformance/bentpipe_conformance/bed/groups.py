"""Control groups, which bound what all processes of an implementation take together.

In a guest they are made ready below a directory that is named in `GROUP_VARIABLE`. On this machine
a place is looked for: with cgroup2 the nearest directory above this process that limits memory
and processes, as systemd's slices and delegated ones do; with cgroup v1 the one of this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

GROUP_VARIABLE = "BENTPIPE_GROUP"
"""Names the directory of cgroup2 below which implementations get groups of their own."""

MEMBERSHIP, MOUNTS = Path("/proc/self/cgroup"), Path("/proc/self/mountinfo")


def limiting_groups(memory: int, processes: int) -> dict[Path, Mapping[str, int]]:
    """Where to make groups, with the limits to set there; none where this is impossible.

    ``memory`` is in octets.
    """
    parent, unified = _parent(os.environ.get(GROUP_VARIABLE, ""))
    if parent is None:
        return {}
    if not unified:
        return {parent: {"memory.limit_in_bytes": memory}}
    # All end together: on a virtual clock one that wants memory would never rest, so that
    # nobody else could give any back.
    limits = {"memory.max": memory, "memory.oom.group": 1, "pids.max": processes}
    return {parent: {**limits, "memory.swap.max": 0}}


@cache
def _parent(named: str) -> tuple[Path | None, bool]:
    """Below which directory groups can be made, and whether it is of cgroup2."""
    if named:
        return (Path(named), True) if os.path.isdir(named) else (None, True)
    for folder, top in _own("cgroup2", ""):
        for place in (folder, *folder.parents):
            if _limits(place):
                return place, True
            if place == top:
                break
    for folder, _ in _own("cgroup", "memory"):
        if os.access(folder, os.W_OK) and (folder / "memory.limit_in_bytes").exists():
            return folder, False
    return None, False


def _limits(folder: Path) -> bool:
    """Whether groups below a directory of cgroup2 can have limits."""
    try:
        enabled = (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
    except OSError:
        return False
    return {"memory", "pids"} <= set(enabled) and os.access(folder, os.W_OK)


def _own(kind: str, controller: str) -> Iterator[tuple[Path, Path]]:
    """This process's directory in a hierarchy, and the directory where that is mounted."""
    paths: dict[str, str] = {}
    for line in MEMBERSHIP.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    for line in MOUNTS.read_text(encoding="utf-8").splitlines():
        words = line.split()
        told = words[words.index("-") + 1 :]
        if told[0] == kind and (not controller or controller in told[2].split(",")):
            root, mounted = words[3], words[4]
            below = os.path.relpath(paths.get(controller, "/"), root)
            if not below.startswith(".."):
                yield Path(os.path.normpath(f"{mounted}/{below}")), Path(mounted)
