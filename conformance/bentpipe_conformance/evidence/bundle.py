"""The bundle: the directory that a run leaves as evidence, written during the run.

Layout::

    DIR/run.json                     the run (records.RunRecord)
    DIR/cases/<id, / as __>/iut.pcapng, peer.pcapng, case.json
    DIR/result.json, junit.xml, report.html, manifest.sha256      when the run is finished

Each file appears whole or not at all (written under another name, then renamed), and ``case.json``
is written last in its directory, so a case is complete if and only if it has one. A writer killed
at any moment leaves at most a temporary file, which is never read and which `Bundle.seal` removes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from bentpipe_conformance.engine.lane import Captured, Point
from bentpipe_conformance.evidence import serialization
from bentpipe_conformance.evidence.captures import dump_captured, load_captured
from bentpipe_conformance.evidence.frames import CaptureError
from bentpipe_conformance.evidence.records import CaseRecord, RunRecord

POINTS: tuple[Point, ...] = get_args(Point)
MANIFEST = "manifest.sha256"
FORMAT = "bentpipe-bundle/1"

_MAX_TEXT = 256 << 20
_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+=,\[\]-]*(_[A-Za-z0-9.+=,\[\]-]+)*")


class BundleError(Exception):
    """A bundle cannot be written or trusted; the message is one sentence."""


def case_directory(case_id: str) -> str:
    """The name of a case's directory in a bundle.

    Raises:
        BundleError: the ID has characters a file name should not have.
    """
    parts = case_id.split("/")
    if not all(_COMPONENT.fullmatch(part) for part in parts) or len(case_id) > 200:
        raise BundleError(f"{case_id!r} cannot be a case ID; write it like snr/recovery/exit.")
    return "__".join(parts)


class Bundle:
    """A bundle on disk, made by `create`, `resume` or `open`."""

    def __init__(self, directory: Path, run: RunRecord) -> None:
        """Used by the class methods."""
        self.directory = directory
        self.run = run
        self._lock: int | None = None

    @classmethod
    def create(cls, directory: str | os.PathLike[str], run: RunRecord) -> Bundle:
        """Begin a new bundle in an empty or new directory, and lock it for this process.

        Raises:
            BundleError: the directory has other content, is in use, or cannot be written.
        """
        root = Path(directory)
        with _explained(root):
            root.mkdir(parents=True, exist_ok=True)
            if any(entry.name != ".lock" for entry in root.iterdir()):
                what = "a run" if (root / "run.json").exists() else "other files"
                remedy = "add --resume or --fresh, or choose" if what == "a run" else "choose"
                raise BundleError(f"{root} already holds {what}; {remedy} another --out directory.")
            bundle = cls(root, run)
            bundle._take_lock()
            (root / "cases").mkdir()
            bundle._write_run()
        return bundle

    @classmethod
    def resume(cls, directory: str | os.PathLike[str], run: RunRecord) -> Bundle:
        """Continue an interrupted run, or extend a finished one, and lock it for this process.

        The stored run must be the same experiment as ``run``; its start time is kept.

        Raises:
            BundleError: there is no such run, it is another one, or it is in use.
        """
        root = Path(directory)
        if not (root / "run.json").exists():
            return cls.create(root, run)
        bundle = cls.open(root)
        if different := "; ".join(bundle.run.differences(run)):
            raise BundleError(
                f"{root} holds another run ({different}); choose another --out directory."
            )
        with _explained(root):
            bundle._take_lock()
            (root / "cases").mkdir(exist_ok=True)
            (root / MANIFEST).unlink(missing_ok=True)
            bundle.run = dataclasses.replace(run, started=bundle.run.started, finished=None)
            bundle._write_run()
        return bundle

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Bundle:
        """Open a bundle to read it, or to add cases from a worker process.

        Raises:
            BundleError: there is no bundle, or its ``run.json`` is damaged.
        """
        root = Path(directory)
        if not root.is_dir():
            raise BundleError(f"{root} is not a directory, so it is not a bundle.")
        document = _read_json(root / "run.json")
        with _decoded(root / "run.json"):
            if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
                raise serialization.RecordError(f"its format is not {FORMAT}")
            return cls(root, serialization.decode(RunRecord, document))

    def close(self) -> None:
        """Release the lock; the files stay as they are."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def finished(self) -> bool:
        """Whether the run ended, so that the bundle has a manifest."""
        return (self.directory / MANIFEST).is_file()

    def add_case(self, case: CaseRecord, captured: Sequence[Captured]) -> None:
        """Store a case and its captures; processes may add different cases concurrently.

        Raises:
            BundleError: the ID is impossible or the disk refuses.
        """
        folder = self._case_folder(case.id)
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            digests = {}
            for point in POINTS:
                octets = dump_captured(captured, point, case.id, case.started)
                _write(folder / f"{point}.pcapng", octets)
                digests[f"{point}.pcapng"] = _digest(octets)
            document = {**serialization.encode(case), "sha256": digests}
            _write(folder / "case.json", serialization.dumps(document).encode())

    def completed(self) -> tuple[str, ...]:
        """The IDs of all stored cases, sorted.

        Raises:
            BundleError: a ``case.json`` is damaged.
        """
        return tuple(case.id for case in self.cases())

    def cases(self) -> list[CaseRecord]:
        """All stored cases in the order of their IDs.

        Raises:
            BundleError: a ``case.json`` is damaged.
        """
        with _explained(self.directory):
            folders = [path.parent for path in self.directory.glob("cases/*/case.json")]
        return sorted((self._load(folder)[0] for folder in folders), key=lambda case: case.id)

    def case(self, case_id: str) -> CaseRecord:
        """One stored case.

        Raises:
            BundleError: it is missing or damaged.
        """
        return self._load(self._case_folder(case_id))[0]

    def captured(self, case_id: str) -> list[Captured]:
        """What a stored case captured at both points, as `captures.as_recorded` orders it.

        Raises:
            BundleError: a capture is missing, damaged or not the one that was stored.
        """
        folder = self._case_folder(case_id)
        _, digests = self._load(folder)
        octets = {}
        for point in POINTS:
            path = folder / f"{point}.pcapng"
            octets[point] = _read(path)
            if digests.get(path.name) != _digest(octets[point]):
                raise BundleError(f"{path} has been changed since the case ran (SHA-256 differs).")
        try:
            return load_captured(octets, str(folder))
        except CaptureError as error:
            raise BundleError(str(error)) from error

    def seal(self, files: Mapping[str, str], finished: float) -> None:
        """Finish the run: write ``files`` (name -> text), ``run.json`` and the manifest.

        Raises:
            BundleError: the disk refuses.
        """
        with _explained(self.directory):
            for path in self.directory.rglob(".*.tmp"):
                path.unlink()
            for name, text in files.items():
                _write(self.directory / name, text.encode("utf-8", "replace"))
            self.run = dataclasses.replace(self.run, finished=finished)
            self._write_run()
            files_now = sorted(self._files().items())
            lines = (f"{_digest(_read(path))}  {name}\n" for name, path in files_now)
            _write(self.directory / MANIFEST, "".join(lines).encode())

    def check(self) -> None:
        """Compare every file with the manifest of a finished bundle.

        Raises:
            BundleError: a file is missing, changed or added, or the run was not finished.
        """
        if not self.finished:
            raise BundleError(
                f"{self.directory} holds a run that was not finished; finish it with --resume."
            )
        manifest = self.directory / MANIFEST
        present = self._files()
        listed = {}
        for line in _read(manifest).decode("utf-8", "replace").splitlines():
            digest, _, name = line.partition("  ")
            if not re.fullmatch("[0-9a-f]{64}", digest) or not name:
                raise BundleError(f"{manifest} is damaged: {line[:80]!r} is not a line of it.")
            listed[name] = digest
        for name in sorted(listed.keys() | present.keys()):
            path = self.directory / name
            if name not in present:
                raise BundleError(f"{path} is missing, although the manifest lists it.")
            if name not in listed:
                raise BundleError(f"{path} was added after the run; the manifest lacks it.")
            if _digest(_read(path)) != listed[name]:
                raise BundleError(f"{path} was changed after the run (SHA-256 differs).")

    def _case_folder(self, case_id: str) -> Path:
        return self.directory / "cases" / case_directory(case_id)

    def _load(self, folder: Path) -> tuple[CaseRecord, dict[str, str]]:
        path = folder / "case.json"
        document = _read_json(path)
        with _decoded(path):
            if not isinstance(document, dict) or not isinstance(document.get("sha256"), dict):
                raise serialization.RecordError("it lacks the digests of its captures")
            digests = document.pop("sha256")
            case = serialization.decode(CaseRecord, document)
            if case_directory(case.id) != folder.name:
                raise serialization.RecordError(f"it belongs to {case.id}, not to this directory")
        return case, digests

    def _files(self) -> dict[str, Path]:
        """All files the manifest covers, by their name relative to the bundle."""
        found = {}
        with _explained(self.directory):
            for path in self.directory.rglob("*"):
                name = path.relative_to(self.directory).as_posix()
                if path.is_symlink():
                    raise BundleError(f"{path} is a symbolic link; a bundle has none.")
                if path.is_file() and name not in (MANIFEST, ".lock"):
                    found[name] = path
        return found

    def _write_run(self) -> None:
        document = {"format": FORMAT, **serialization.encode(self.run)}
        _write(self.directory / "run.json", serialization.dumps(document).encode())

    def _take_lock(self) -> None:
        self._lock = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise BundleError(
                f"{self.directory} is in use by another bentpipe; wait for it or choose another "
                "--out directory."
            ) from error


def _digest(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()


def _write(path: Path, octets: bytes) -> None:
    # The process ID separates the temporary files of two writers; the rename is atomic.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _explained(path):
        try:
            temporary.write_bytes(octets)
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    with _explained(path), path.open("rb") as file:
        octets = file.read(_MAX_TEXT + 1)
    if len(octets) > _MAX_TEXT:
        raise BundleError(f"{path} is larger than a bundle's files can be.")
    return octets


def _read_json(path: Path) -> serialization.Json:
    octets = _read(path)
    with _decoded(path):
        return serialization.loads(octets.decode("utf-8"))


@contextlib.contextmanager
def _decoded(path: Path) -> Iterator[None]:
    try:
        yield
    except (serialization.RecordError, UnicodeDecodeError) as error:
        raise BundleError(f"{path} is damaged: {error}.") from error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "; make room and go on with --resume" if full else ""
        raise BundleError(f"{path}: {error.strerror or error}{remedy}.") from error
    except (CaptureError, ValueError, TypeError, OverflowError) as error:
        raise BundleError(f"{path} cannot be written: {str(error).rstrip('.')}.") from error
