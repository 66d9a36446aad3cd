"""What makes runs of the model checker cheap, made once per Java and jar in a few seconds.

Small runs are mostly start-up. From an archive of its classes Java starts the model checker with a
sixth less CPU time; it is made by checking a module that uses what models use. And where Java has a
compiler, a small program lets one process check run after run (:mod:`.serving`).
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

_TIMEOUT_S = 60.0
_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
_SINCE = 315532800  # 1980, where the time of jars begins
_ABLE = re.compile(rb'version "(1[3-9]|[2-9][0-9])[."]')
"""Java 11 and 12, and what does not tell its version, have no archive of this kind."""
_MODULE = """---- MODULE Usual ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANT Last
VARIABLES count, sent
vars == <<count, sent>>
RECURSIVE Sum(_)
Sum(of) == IF of = <<>> THEN 0 ELSE Head(of).value + Sum(Tail(of))
Init == count = 0 /\\ sent = <<>>
Add == /\\ count < Last
       /\\ \\E value \\in 0 .. 1: sent' = Append(sent, [value |-> value, kind |-> "data"])
       /\\ count' = count + 1
Drop == /\\ sent # <<>> /\\ Cardinality({sent[i].value: i \\in DOMAIN sent}) < 3
        /\\ sent' = Tail(sent) /\\ UNCHANGED count
Next == Add \\/ Drop
Spec == Init /\\ [][Next]_vars /\\ WF_vars(Add) /\\ SF_vars(Drop)
Typed == Sum(sent) \\in Nat /\\ [value |-> 1] # [value |-> 2] /\\ (1 :> 2 @@ 2 :> 3)[1] = 2
Rises == [][count' >= count]_vars
Arrives == count = 1 ~> sent = <<>>
====
"""
_CONFIG = """SPECIFICATION Spec
CONSTANTS Last = 3
INVARIANT Typed
PROPERTIES Rises Arrives
CHECK_DEADLOCK FALSE
"""


def sharing(java: str, jar: Path, folder: Path) -> tuple[tuple[str, ...], Path | None]:
    """Options by which a Java loads the model checker from its archive, and the server's jar.

    Neither where that Java cannot have them; no server where it has no compiler.

    Args:
        java: the launcher.
        jar: the model checker.
        folder: where both are kept, and made if they are not there.
    """
    try:
        told = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S,
            check=True,
        ).stderr  # fmt: skip
        if not _ABLE.search(told):
            return (), None
        compiler = Path(java).resolve().with_name("javac")
        sources = [path.read_bytes() for path in _SOURCES] if compiler.is_file() else []
        known = jar.stat()
        key = f"{java}\0{jar}\0{known.st_size}\0{known.st_mtime_ns}\0".encode() + told
        digest = hashlib.blake2b(b"\0".join([key, *sources]), digest_size=8).hexdigest()
        archive = folder / f"{jar.stem}-{digest}.jsa"
        server = archive.with_suffix(".jar") if sources else None
        if not archive.is_file() or (server is not None and not server.is_file()):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".archive-", dir=folder) as scratch:
                if server is not None:
                    _compile(compiler, jar, server, Path(scratch))
                _make(java, jar, server, Path(scratch) / "archive")
                _put(Path(scratch) / "archive", archive)
    except (OSError, subprocess.SubprocessError):
        return (), None
    options = (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    return options, server


def _put(made: Path, to: Path) -> None:
    """Java crashes on half of an archive."""
    with made.open("rb") as whole:
        os.fsync(whole.fileno())
    os.replace(made, to)


def _compile(compiler: Path, jar: Path, server: Path, scratch: Path) -> None:
    """Make the server's jar; always with the same octets and time, which the archive remembers."""
    classes = scratch / "classes"
    subprocess.run(
        [str(compiler), "--release", "11", "-d", str(classes), "-cp", str(jar),
         *map(str, _SOURCES)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        timeout=_TIMEOUT_S, check=True,
    )  # fmt: skip
    made = scratch / "server.jar"
    with zipfile.ZipFile(made, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.writestr(
                zipfile.ZipInfo(path.relative_to(classes).as_posix()), path.read_bytes()
            )
    os.utime(made, (_SINCE, _SINCE))
    _put(made, server)


def _make(java: str, jar: Path, server: Path | None, archive: Path) -> None:
    """Check the usual module; Java writes the classes that it needed when it ends."""
    folder = archive.parent
    (folder / "Usual.tla").write_text(_MODULE, encoding="utf-8")
    (folder / "Usual.cfg").write_text(_CONFIG, encoding="utf-8")
    words = ["-tool", "-workers", "1", "-metadir", str(folder), "Usual"]
    main, told = ["tlc2.TLC", *words], b""
    if server is not None:
        main, told = ["TlcServer", "once"], request("", words)
    subprocess.run(
        [java, f"-XX:ArchiveClassesAtExit={archive}", "-XX:+UseSerialGC",
         "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}",
         "-cp", os.pathsep.join(str(path) for path in (jar, server) if path), *main],
        cwd=folder, input=told, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        timeout=_TIMEOUT_S, check=True,
    )  # fmt: skip


def request(searched: str, arguments: Sequence[str]) -> bytes:
    """What the server reads of a run: its search path for modules and the arguments of TLC.

    Java's own form of strings, which is UTF-8 but for NUL and what lies beyond 16 bits.
    """
    words = [word.encode() for word in (searched, *arguments)]
    head = struct.pack(">H", len(words))
    return head + b"".join(struct.pack(">H", len(word)) + word for word in words)
