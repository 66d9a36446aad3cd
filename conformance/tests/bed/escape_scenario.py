"""Starts escapes.py in isolation, here and now, once for each attempt; prints what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bentpipe_conformance.bed.groups import limiting_groups
from bentpipe_conformance.bed.jail import Confinement
from bentpipe_conformance.bed.jail_init import FIRST_USER
from bentpipe_conformance.bed.namespaces import NetworkNamespace
from bentpipe_conformance.bed.process import IutProcess
from bentpipe_conformance.iut.contents import contents_of
from bentpipe_conformance.iut.description import parse_description

ATTEMPTS = (
    "host-files", "evidence", "other-lanes", "tester", "clock", "kernel", "hostfs", "limits",
    "fork-bomb", "memory-bomb", "memory-bomb-by-many", "files", "output", "administration",
)  # fmt: skip
ESCAPES = Path(__file__).with_name("escapes.py")


def outcome(attempt: str, folder: Path) -> dict[str, object]:
    """How the implementation fared, and what it had the tester store."""
    secret = folder / "secret"
    secret.write_text("of the tester")
    words = ["{python}", "-IS", str(ESCAPES), attempt, f"@{secret}", f"@{folder}", str(os.getpid())]
    document = {
        "id": "escape", "name": "It", "attach": {"kind": "tun"},
        "start": {"command": [*words, "{fd}"]},
    }  # fmt: skip
    contents = contents_of(parse_description(document, folder / "escape.toml"))
    network = attempt == "administration"
    confinement = Confinement(contents.files, contents.links, contents.outermost, network)
    before = used()
    command = [word.replace("{python}", sys.executable).replace("{fd}", "") for word in words]
    with NetworkNamespace(apart=network) as namespace, namespace.entered():
        process = IutProcess(
            command, ready="ready", confinement=confinement, own_network=not network
        )
    said, deadline = "", time.monotonic() + 60
    while time.monotonic() < deadline:
        ended = process.ended()
        said = process._quoted_stderr()
        if ended or "refused" in said:
            break
        time.sleep(0.02)
    grown = used() - before
    world = process._process.pid
    user, groups = FIRST_USER + world, limiting_groups(0, 0)
    process.close()
    left = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == user:
                left.append(name)
    left += [str(group) for parent in groups if (group := parent / f"bentpipe-{world}").exists()]
    return {
        "ended": ended, "said": said, "grown": grown, "left": len(left),
        "folder": sorted(os.listdir(folder)),
    }  # fmt: skip


def used() -> int:
    """Octets of memory that the tester has."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    asked = sys.argv[1:] or list(ATTEMPTS)
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps({attempt: outcome(attempt, Path(place)) for attempt in asked}))
