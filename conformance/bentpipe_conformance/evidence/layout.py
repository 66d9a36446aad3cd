"""What a bundle's directory has: its files, its lock, and how it is removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from bentpipe_conformance.engine.lane import Point
from bentpipe_conformance.engine.locks import open_lock
from bentpipe_conformance.evidence.files import BundleError, explained, read_json

POINTS: tuple[Point, ...] = get_args(Point)
MANIFEST = "manifest.sha256"
LOCK = ".lock"
WORK = ".work"
"""What a run in progress needs; a run that was killed leaves it, the next one removes it."""
CERTIFICATE = "certificate.html"
"""Made of all the other files but the manifest."""
DERIVED = ("result.json", "junit.xml", "report.html", CERTIFICATE)
"""What is made of the cases when the run ends."""
EXPLORATION = "exploration.json"
"""What a campaign beside the cases did."""
REPLAY = "replay.json"
"""Beside the packets of a conversation that a campaign found: what to play again."""
ATTESTATION = "attestation.json"
"""The signed statement about the manifest, in a bundle that was signed."""
CASE_FILES = ("case.json", *(f"{point}.pcapng" for point in POINTS), REPLAY)
FORMAT = "bentpipe-bundle/2"
FORMER = frozenset({"bentpipe-bundle/1"})
SESSION = re.compile(r"resumed-([1-9][0-9]{0,3})\.json")

_TEMPORARY = re.compile(r"\..+\.tmp")
_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+=,\[\]-]*(_[A-Za-z0-9.+=,\[\]-]+)*")


def case_directory(case_id: str) -> str:
    """The name of a case's directory in a bundle.

    Raises:
        BundleError: the ID has characters a file name should not have.
    """
    parts = case_id.split("/")
    if len(case_id) > 200 or not all(_COMPONENT.fullmatch(part) for part in parts):
        raise BundleError(
            f"{case_id[:200]!r} cannot be a case ID; write it like snr/recovery/exit."
        )
    return "__".join(parts)


def names(folder: Path) -> list[str]:
    """What is in a directory, sorted.

    Raises:
        BundleError: it cannot be read.
    """
    with explained(folder):
        return sorted(os.listdir(folder))


def files_of(root: Path) -> dict[str, Path]:
    """All files that the manifest covers, by their name relative to the bundle.

    Raises:
        BundleError: there is something that a bundle does not have.
    """
    finished = (root / MANIFEST).exists()
    found = dict(_known(root, "", ("run.json", EXPLORATION, *DERIVED), finished))
    groups = [("cases", root / "cases")]
    if (attempts := root / "attempts").exists():
        _only_folders(attempts)
        groups += [(f"attempts/{name}", attempts / name) for name in names(attempts)]
    for label, group in groups:
        if group.exists() or finished:
            _only_folders(group)
            for folder in names(group):
                found.update(_known(group / folder, f"{label}/{folder}/", CASE_FILES, finished))
    return found


def _known(
    folder: Path, label: str, known: Sequence[str], finished: bool
) -> Iterator[tuple[str, Path]]:
    """The files of a directory, all of which have to be known."""
    for name in names(folder):
        path = folder / name
        if path.is_symlink():
            raise BundleError(f"{path} is a symbolic link; a bundle has none.")
        if not label and name == LOCK and (not path.is_file() or path.stat().st_size):
            raise BundleError(f"{path} is not the empty file that a lock is.")
        if not label and name in ("cases", "attempts", LOCK, MANIFEST, ATTESTATION):
            continue
        if not finished and (_TEMPORARY.fullmatch(name) or (not label and name == WORK)):
            continue
        if name not in known and not (not label and SESSION.fullmatch(name)):
            raise BundleError(f"{path} is no part of a bundle.")
        if not path.is_file():
            raise BundleError(f"{path} is not a regular file; a bundle has no others.")
        yield f"{label}{name}", path


def _only_folders(group: Path) -> None:
    for name in names(group):
        path = group / name
        if path.is_symlink():
            raise BundleError(f"{path} is a symbolic link; a bundle has none.")
        if not path.is_dir():
            raise BundleError(f"{path} is no part of a bundle.")


def check_vacant(root: Path) -> None:
    """Whether a new bundle can be made in a directory.

    Raises:
        BundleError: there is something in it.
    """
    if root.is_dir() and any(name not in (LOCK, WORK) for name in names(root)):
        what = "a run" if (root / "run.json").exists() else "other files"
        remedy = "add --resume or --fresh, or choose" if what == "a run" else "choose"
        raise BundleError(f"{root} already holds {what}; {remedy} another --out directory.")


@contextlib.contextmanager
def workroom(root: Path) -> Iterator[Path]:
    """A directory in a bundle for what a run in progress needs; gone at the end.

    Raises:
        BundleError: it cannot be made.
    """
    held = root / WORK
    with explained(root):
        root.mkdir(parents=True, exist_ok=True)
        held.mkdir(exist_ok=True)
        if held.is_symlink():
            raise BundleError(f"{held} is a symbolic link; a bundle has none.")
        room = held / secrets.token_hex(8)
        room.mkdir()
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)
        for place in (held, root):
            with contextlib.suppress(OSError):
                place.rmdir()


def remove_other_rooms(root: Path, own: Path | None = None) -> None:
    """Remove what killed runs have left; only for who holds the lock."""
    held = root / WORK
    if held.is_symlink():
        held.unlink()
    for path in held.iterdir() if held.is_dir() else ():
        if path != own:
            shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        held.rmdir()


def take_lock(root: Path) -> int:
    """Lock a bundle for this process; closing the descriptor releases it.

    Raises:
        BundleError: it is in use.
        OSError: the system refuses.
    """
    handle = open_lock(root / LOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise BundleError(
            f"{root} is in use by another bentpipe; wait for it or choose another --out directory."
        ) from error
    return handle


def remove_bundle(root: Path) -> None:
    """Remove a bundle, unless it is in use or holds anything that bentpipe has not made.

    Nothing happens where there is nothing, or an empty directory.

    Raises:
        BundleError: it holds something else, is in use, or cannot be removed.
    """
    if not root.is_symlink() and (not root.exists() or (root.is_dir() and not names(root))):
        return
    if root.is_dir() and not root.is_symlink() and set(names(root)) <= {LOCK, WORK}:
        return
    try:
        if root.is_symlink() or not root.is_dir():
            raise BundleError("it is no directory")
        document = read_json(root / "run.json")
        form = document.get("format") if isinstance(document, dict) else None
        if form != FORMAT and form not in FORMER:
            raise BundleError("its run.json is none of a bundle")
        files = files_of(root)
    except BundleError as error:
        why = str(error).rstrip(".")
        raise BundleError(
            f"{root} holds something other than a bundle; choose another --out ({why})."
        ) from error
    with explained(root):
        handle = take_lock(root)
        try:
            beside = (root / MANIFEST, root / ATTESTATION)
            remove_other_rooms(root)
            for path in (*files.values(), *root.rglob(".*.tmp"), *beside):
                path.unlink(missing_ok=True)
            inside = [Path(place) for place, _, _ in os.walk(root)]
            for folder in sorted(inside, reverse=True)[:-1]:
                folder.rmdir()
            (root / LOCK).unlink()
        finally:
            os.close(handle)
        root.rmdir()
