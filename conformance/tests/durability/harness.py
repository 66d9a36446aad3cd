"""Certifications that meet faults: at every system call that writes, by power cuts, by kills."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHIM = Path(__file__).with_name("faults.c")
CASES = ("snr/timestamps/timestamp-clock-wraps", "snr/timestamps/data-acknowledges-data")
MAKE, WRITE, SYNC, RENAME, FOLDER, REMOVE, CUT = range(1, 8)
HEAD = struct.Struct("=5Q")


def compile_shim(folder: Path) -> Path:
    """The library that is preloaded."""
    made = folder / "faults.so"
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", "-o", str(made), str(SHIM), "-ldl"], check=True
    )
    return made


def command(
    out: Path, *more: str, iut: str = "reference", only: Sequence[str] = CASES, jobs: int = 1
) -> list[str]:
    chosen = [word for name in only for word in ("--only", name)]
    words = ["certify", iut, *chosen, "--link", "lan", "--out", str(out), "--seed", "3"]
    words += ["--jobs", str(jobs)]
    return [sys.executable, "-m", "bentpipe_conformance.cli.main", *words, *more]


def run(
    root: Path, *more: str, iut: str = "reference", **environment: str
) -> subprocess.CompletedProcess[str]:
    """A certification into ``root/run`` whose temporary files are in ``root/tmp``."""
    (root / "tmp").mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "TMPDIR": str(root / "tmp"), **environment}
    return subprocess.run(
        command(root / "run", *more, iut=iut), env=env, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip


def faulty(root: Path, shim: Path, kind: str, at: int, journal: Path | None = None) -> Any:
    """A certification in which the system call of this number fails; how many there were."""
    count = root / "count"
    root.mkdir(parents=True, exist_ok=True)
    count.write_bytes(bytes(8))
    more = {"FAULT_JOURNAL": str(journal)} if journal else {}
    if journal:
        journal.touch()
    (root / "tmp").mkdir(exist_ok=True)
    done = run(
        root, LD_PRELOAD=str(shim), FAULT_BELOW=f"{root}/", FAULT_COUNT=str(count),
        FAULT_AT=str(at), FAULT_KIND=kind, **more,
    )  # fmt: skip
    return done, int.from_bytes(count.read_bytes(), "little")


def verdicts(out: Path) -> dict[str, str]:
    """The verdict of every case and requirement."""
    told = json.loads((out / "result.json").read_text())
    return {row["id"]: row["verdict"] for row in (*told["cases"], *told["requirements"])}


def left_over(root: Path) -> list[str]:
    """What a run has left outside its bundle."""
    return sorted(str(path) for path in (root / "tmp").rglob("*"))


@dataclass
class Disk:
    """What is on a disk: as the system sees it, and as a power cut would leave it.

    Content is on the disk once its file was synced, a name once its directory was. With ``names``
    a name is there at once, as file systems that write their journal early have it.
    """

    names: bool
    files: dict[str, list[bytes]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    kept: dict[str, list[bytes]] = field(default_factory=dict)
    kept_folders: set[str] = field(default_factory=set)

    def apply(self, what: int, path: str, data: bytes, at: int) -> None:
        if what == MAKE:
            held = self.files.setdefault(path, [b"", b""])
            if at:
                held[0] = b""
        elif what == WRITE and path in self.files:
            octets = self.files[path][0].ljust(at, b"\0")
            self.files[path][0] = octets[:at] + data + octets[at + len(data) :]
        elif what == SYNC and path in self.files:
            self.files[path][1] = self.files[path][0]
        elif what == SYNC:
            self.keep_names(path)
        elif what == RENAME:
            self.rename(path, data.decode())
        elif what == FOLDER:
            self.folders.add(path)
        elif what == REMOVE:
            self.files.pop(path, None)
            self.folders.discard(path)

    def rename(self, old: str, new: str) -> None:
        if old in self.files:
            self.files[new] = self.files.pop(old)
            return
        for path in [path for path in self.files if path.startswith(f"{old}/")]:
            self.files[new + path[len(old) :]] = self.files.pop(path)
        for path in [path for path in self.folders if path == old or path.startswith(f"{old}/")]:
            self.folders.remove(path)
            self.folders.add(new + path[len(old) :])

    def keep_names(self, folder: str) -> None:
        def inside(path: str) -> bool:
            return os.path.dirname(path) == folder

        self.kept = {path: held for path, held in self.kept.items() if not inside(path)}
        self.kept |= {path: held for path, held in self.files.items() if inside(path)}
        self.kept_folders = {path for path in self.kept_folders if not inside(path)}
        self.kept_folders |= {path for path in self.folders if inside(path)}

    def survives(self, root: str) -> dict[str, bytes | None]:
        """What a power cut leaves below a directory: content by name, None for a directory."""
        files = self.files if self.names else self.kept
        folders = self.folders if self.names else self.kept_folders
        # Nothing is in a directory that is not there.
        there = {root}
        for path in sorted(folders):
            if path.startswith(f"{root}/") and os.path.dirname(path) in there:
                there.add(path)
        found: dict[str, bytes | None] = {
            path: None for path in there if path.startswith(f"{root}/")
        }
        for path, held in files.items():
            if os.path.dirname(path) in there:
                found[path] = held[1]
        return found


def calls(journal: Path) -> Iterator[tuple[int, int, str, bytes, int]]:
    """The calls that a journal holds, in their order."""
    octets, place, found = journal.read_bytes(), 0, []
    while place < len(octets):
        number, what, first, second, at = HEAD.unpack_from(octets, place)
        place += HEAD.size
        path = os.path.normpath(octets[place : place + first].decode())
        data = octets[place + first : place + first + second]
        place += first + second
        found.append((number, what, path, data, at))
    yield from sorted(found)


def power_cuts(journal: Path, root: Path) -> list[dict[str, bytes | None]]:
    """Every state of a bundle that a power cut could leave, without repetitions."""
    seen: dict[str, dict[str, bytes | None]] = {}
    for names in (False, True):
        disk = Disk(names)
        for _, what, path, data, at in calls(journal):
            disk.apply(what, path, data, at)
            state = disk.survives(str(root))
            key = repr(sorted(state.items()))
            seen.setdefault(key, state)
    return list(seen.values())


def put_down(state: Mapping[str, bytes | None], old: Path, new: Path) -> None:
    """Make a state on the disk, in another place."""
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for path, octets in sorted(state.items()):
        place = new / Path(path).relative_to(old)
        if octets is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(octets)
