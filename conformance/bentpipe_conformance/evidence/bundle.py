"""The bundle: the directory that a run leaves as evidence, written during the run.

Layout::

    DIR/run.json                     the plan (records.RunRecord), before the first case
    DIR/resumed-1.json ...           later sessions of an interrupted run (records.Session)
    DIR/cases/<id, / as __>/iut.pcapng, peer.pcapng, case.json
    DIR/cases/SUITE__found__<name>/  the same and replay.json: what a campaign found
    DIR/exploration.json             what that campaign did
    DIR/attempts/1/<id ...>/         what a later session tried again: errors, damaged cases
    DIR/result.json, junit.xml, report.html, certificate.html, manifest.sha256   when it is finished
    DIR/attestation.json             the signed statement about the manifest, if it was signed

Each file appears whole or not at all, and ``case.json`` is written last in its directory, so a case
is complete if and only if it has one. A writer killed at any moment leaves at most a temporary
file, which is never read and which `Bundle.seal` removes. The plan is never changed, and no case is
ever written again: each names the digest of the plan that it belongs to.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence import serialization
from bentpipe_conformance.evidence.captures import dump_captured, load_captured
from bentpipe_conformance.evidence.files import (
    BundleError,
    decoded,
    digest,
    explained,
    read,
    read_json,
    sync,
    write,
)
from bentpipe_conformance.evidence.frames import CaptureError
from bentpipe_conformance.evidence.layout import (
    ATTESTATION,
    CERTIFICATE,
    DERIVED,
    EXPLORATION,
    FORMAT,
    FORMER,
    MANIFEST,
    POINTS,
    REPLAY,
    SESSION,
    case_directory,
    check_vacant,
    files_of,
    names,
    remove_bundle,
    remove_other_rooms,
    take_lock,
)
from bentpipe_conformance.evidence.records import Bed, CaseRecord, RunRecord, Session

__all__ = [
    "MANIFEST",
    "POINTS",
    "Bundle",
    "BundleError",
    "Envelope",
    "case_directory",
    "remove_bundle",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Envelope:
    """What ties a case to its run.

    Attributes:
        run: SHA-256 of the ``run.json`` under which it ran.
        session: 0, or the number of the ``resumed-*.json``.
        sha256: of its captures, by file name.
    """

    run: str
    session: int
    sha256: dict[str, str]


class Bundle:
    """A bundle on disk, made by `create`, `resume` or `open`."""

    def __init__(
        self, directory: Path, run: RunRecord, identity: str, sessions: Sequence[Session] = ()
    ) -> None:
        """Used by the class methods."""
        self.directory = directory
        self.run = run
        self.identity = identity
        """SHA-256 of ``run.json``."""
        self.sessions = tuple(sessions)
        self._lock: int | None = None

    @classmethod
    def create(cls, directory: str | os.PathLike[str], run: RunRecord) -> Bundle:
        """Begin a new bundle in an empty or new directory, and lock it for this process.

        Raises:
            BundleError: the directory has other content, is in use, or cannot be written.
        """
        root = Path(directory)
        with explained(root):
            root.mkdir(parents=True, exist_ok=True)
            check_vacant(root)
            plan = dataclasses.replace(run, finished=None)
            octets = _document(plan, FORMAT)
            bundle = cls(root, plan, digest(octets))
            bundle._lock = take_lock(root)
            (root / "cases").mkdir()
            write(root / "run.json", octets, durable=True)
        return bundle

    @classmethod
    def resume(cls, directory: str | os.PathLike[str], run: RunRecord) -> Bundle:
        """Continue an interrupted run, and lock it for this process.

        The stored plan must be the same experiment as ``run``, and stays as it is. Cases that are
        damaged, or in which the bed or the suite broke, are moved to ``attempts``.

        Raises:
            BundleError: the stored run is another one, or it is in use.
        """
        root = Path(directory)
        if not (root / "run.json").exists():
            return cls.create(root, run)
        bundle = cls.open(root)
        if different := "; ".join(bundle.run.differences(run)):
            raise BundleError(
                f"{root} holds another run ({different}); choose another --out directory."
            )
        with explained(root):
            bundle._lock = take_lock(root)
            (root / "cases").mkdir(exist_ok=True)
            for name in (ATTESTATION, MANIFEST, *DERIVED):
                (root / name).unlink(missing_ok=True)
            session = Session(run.command, run.bed, run.started)
            number = len(bundle.sessions) + 1
            write(root / f"resumed-{number}.json", _document(session, FORMAT), durable=True)
            bundle.sessions = (*bundle.sessions, session)
            bundle._set_aside(number)
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
        octets = read(root / "run.json")
        run = _record(root / "run.json", octets, RunRecord)
        numbers = sorted(
            int(match[1]) for name in names(root) if (match := SESSION.fullmatch(name))
        )
        if numbers != list(range(1, len(numbers) + 1)):
            raise BundleError(f"{root} lacks the record of a session (resumed-*.json).")
        files = [root / f"resumed-{number}.json" for number in numbers]
        sessions = [_record(path, read(path), Session) for path in files]
        return cls(root, run, digest(octets), sessions)

    def close(self) -> None:
        """Release the lock; the files stay as they are."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def finished(self) -> bool:
        """Whether the run ended, so that the bundle has a manifest."""
        return (self.directory / MANIFEST).is_file()

    def bed(self, session: int) -> Bed:
        """The bed of a session.

        Raises:
            BundleError: there was none of that number.
        """
        beds = [self.run.bed, *(later.bed for later in self.sessions)]
        if not 0 <= session < len(beds):
            raise BundleError(f"{self.directory} has no session {session}.")
        return beds[session]

    def add_case(self, case: CaseRecord, captured: Sequence[Captured], replay: str = "") -> None:
        """Store a case and its captures; processes may add different cases concurrently.

        ``replay`` is the text of a replay file, for a conversation that a campaign found.

        Raises:
            BundleError: the ID is impossible, the case has its verdict, or the disk refuses.
        """
        folder = self._case_folder(case.id)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if (folder / "case.json").exists():
                raise BundleError(f"{folder} has its verdict already, which is never replaced.")
            digests = {}
            for point in POINTS:
                octets = dump_captured(captured, point, case.id, case.started)
                write(folder / f"{point}.pcapng", octets)
                digests[f"{point}.pcapng"] = digest(octets)
            if replay:
                write(folder / REPLAY, replay.encode())
            envelope = Envelope(self.identity, len(self.sessions), digests)
            document = {**serialization.encode(case), **serialization.encode(envelope)}
            write(folder / "case.json", serialization.dumps(document).encode())

    @property
    def exploration(self) -> dict[str, Any]:
        """What a campaign beside the cases did; empty when there was none.

        Raises:
            BundleError: it is damaged.
        """
        path = self.directory / EXPLORATION
        if not path.exists():
            return {}
        document = read_json(path)
        if not isinstance(document, dict):
            raise BundleError(f"{path} is damaged: it is no object.")
        if not isinstance(document.get("found", []), list):
            raise BundleError(f"{path} is damaged: what it has found is no list.")
        return document

    def explored(self, document: Mapping[str, Any]) -> None:
        """Store what a campaign beside the cases did.

        Raises:
            BundleError: the disk refuses.
        """
        with explained(self.directory):
            write(self.directory / EXPLORATION, serialization.dumps(dict(document)).encode())

    def has(self, case_id: str) -> bool:
        """Whether a case is stored."""
        return (self.directory / "cases" / case_directory(case_id) / "case.json").exists()

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
        found = (self._load(folder)[0] for folder in self._case_folders())
        return sorted(found, key=lambda case: case.id)

    def case(self, case_id: str) -> CaseRecord:
        """One stored case.

        Raises:
            BundleError: it is missing or damaged.
        """
        return self._load(self._case_folder(case_id))[0]

    def envelope(self, case_id: str) -> Envelope:
        """What ties a stored case to its run.

        Raises:
            BundleError: it is missing or damaged.
        """
        return self._load(self._case_folder(case_id))[1]

    def captured(self, case_id: str) -> list[Captured]:
        """What a stored case captured at both points, as `captures.as_recorded` orders it.

        Raises:
            BundleError: a capture is missing, damaged or not the one that was stored.
        """
        return self._captured(self._case_folder(case_id))

    def attempts(self) -> Iterator[tuple[Path, CaseRecord, Envelope, list[Captured]]]:
        """What was tried again, as far as it can be read: its directory, and what is there.

        Raises:
            BundleError: a directory cannot be read.
        """
        attempts = self.directory / "attempts"
        for session in names(attempts) if attempts.exists() else ():
            for name in names(attempts / session):
                folder = attempts / session / name
                try:
                    record, envelope = self._load(folder)
                    found = folder, record, envelope, self._captured(folder)
                except BundleError:
                    continue  # damaged, and therefore tried again
                yield found

    def seal(
        self, files: Mapping[str, str], certificate: Callable[[str], str] | None = None
    ) -> None:
        """Finish the run: write ``files`` (name -> text) and the manifest, and sync everything.

        ``certificate`` makes the text of the certificate from the digest of all other files.

        Raises:
            BundleError: the disk refuses.
        """
        with explained(self.directory):
            remove_other_rooms(self.directory)
            for path in self.directory.rglob(".*.tmp"):
                path.unlink()
            for name, text in files.items():
                write(self.directory / name, text.encode("utf-8", "replace"))
            if certificate is not None:
                text = certificate(self.contents_digest())
                write(self.directory / CERTIFICATE, text.encode("utf-8", "replace"))
            present = self.files()
            folders = {folder for path in present.values() for folder in path.parents}
            inside = {folder for folder in folders if folder.is_relative_to(self.directory)}
            for place in sorted(inside | {*present.values()}):
                sync(place)
            write(self.directory / MANIFEST, self._manifest().encode(), durable=True)

    def _manifest(self, *without: str) -> str:
        """The lines of the manifest, without those of some files."""
        present = sorted(self.files().items())
        lines = (f"{digest(read(path))}  {name}\n" for name, path in present if name not in without)
        return "".join(lines)

    def contents_digest(self) -> str:
        """SHA-256 of the manifest's lines but the certificate's, which the certificate shows."""
        return digest(self._manifest(CERTIFICATE).encode())

    def manifest_digest(self) -> str:
        """SHA-256 of the manifest, which stands for the whole bundle in an attestation."""
        return digest(read(self.directory / MANIFEST))

    def attest(self, envelope: Mapping[str, Any]) -> None:
        """Store the signed statement about a finished bundle.

        Raises:
            BundleError: the disk refuses.
        """
        octets = serialization.dumps(dict(envelope)).encode()
        write(self.directory / ATTESTATION, octets, durable=True)

    def check(self) -> None:
        """Compare every file with the manifest of a finished bundle.

        Raises:
            BundleError: a file is missing, changed or added, or the run was not finished.
        """
        present = self.files()
        if not self.finished:
            raise BundleError(
                f"{self.directory} holds a run that was not finished; finish it with --resume."
            )
        manifest = self.directory / MANIFEST
        listed = {}
        for line in read(manifest).decode("utf-8", "replace").removesuffix("\n").split("\n"):
            expected, _, name = line.partition("  ")
            if not re.fullmatch("[0-9a-f]{64}", expected) or not name or name in listed:
                raise BundleError(f"{manifest} is damaged: {line[:80]!r} is not a line of it.")
            listed[name] = expected
        for name in sorted(listed.keys() | present.keys()):
            path = self.directory / name
            if name not in present:
                raise BundleError(f"{path} is missing, although the manifest lists it.")
            if name not in listed:
                raise BundleError(f"{path} was added after the run; the manifest lacks it.")
            if digest(read(path)) != listed[name]:
                raise BundleError(f"{path} was changed after the run (SHA-256 differs).")

    def files(self) -> dict[str, Path]:
        """All files that the manifest covers, by their name relative to the bundle.

        Raises:
            BundleError: there is something that a bundle does not have.
        """
        return files_of(self.directory)

    def _case_folder(self, case_id: str) -> Path:
        return self.directory / "cases" / case_directory(case_id)

    def _case_folders(self) -> list[Path]:
        cases = self.directory / "cases"
        return [cases / name for name in names(cases) if (cases / name / "case.json").exists()]

    def _load(self, folder: Path) -> tuple[CaseRecord, Envelope]:
        path = folder / "case.json"
        document = read_json(path)
        with decoded(path):
            if not isinstance(document, dict):
                raise serialization.RecordError("it is no object")
            tied = {
                item.name: document.pop(item.name, None) for item in dataclasses.fields(Envelope)
            }
            envelope = serialization.decode(Envelope, tied)
            case = serialization.decode(CaseRecord, document)
            if case_directory(case.id) != folder.name:
                raise serialization.RecordError(f"it belongs to {case.id}, not to this directory")
            if envelope.run != self.identity:
                raise serialization.RecordError("it belongs to another run than run.json tells of")
        return case, envelope

    def _captured(self, folder: Path) -> list[Captured]:
        _, envelope = self._load(folder)
        octets = {}
        for point in POINTS:
            path = folder / f"{point}.pcapng"
            octets[point] = read(path)
            if envelope.sha256.get(path.name) != digest(octets[point]):
                raise BundleError(f"{path} has been changed since the case ran (SHA-256 differs).")
        try:
            return load_captured(octets, str(folder))
        except CaptureError as error:
            raise BundleError(str(error)) from error

    def _set_aside(self, session: int) -> None:
        """Move the cases that are to be tried again out of the way."""
        for name in names(self.directory / "cases"):
            folder = self.directory / "cases" / name
            if not self._stands(folder):
                aside = self.directory / "attempts" / str(session)
                aside.mkdir(parents=True, exist_ok=True)
                folder.rename(aside / name)

    def _stands(self, folder: Path) -> bool:
        """Whether a case has a verdict on the implementation."""
        try:
            record, _ = self._load(folder)
            self._captured(folder)
        except BundleError:
            return False
        violated = any(finding.verdict is Verdict.FAIL for finding in record.findings)
        return record.verdict is not Verdict.ERROR or violated


def _document(record: Any, form: str) -> bytes:
    document = {"format": form, **serialization.encode(record)}
    document.pop("finished", None)
    return serialization.dumps(document).encode()


def _record(path: Path, octets: bytes, kind: type[Any]) -> Any:
    with decoded(path):
        document = serialization.loads(octets.decode("utf-8"))
        form = document.pop("format", None) if isinstance(document, dict) else None
        if isinstance(form, str) and form in FORMER:
            raise BundleError(
                f"{path.parent} was made by bentpipe {str(document.get('bentpipe', ''))[:20]} "
                "before a run's plan was recorded; verify it with the release that made it, or "
                "certify again."
            )
        if form != FORMAT:
            raise serialization.RecordError(f"its format is not {FORMAT}")
        return serialization.decode(kind, document)
