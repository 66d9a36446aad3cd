"""Java's archive of the model checker's classes, from which each run starts sooner.

Small runs are mostly start-up: with the archive one takes a sixth less CPU time. It is made once
per Java and jar, in two seconds, by checking a module that uses what models use.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

_TIMEOUT_S = 60.0
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


def sharing(java: str, jar: Path, folder: Path) -> tuple[str, ...]:
    """Options by which a Java loads the model checker from its archive; none where it cannot.

    Args:
        java: the launcher.
        jar: the model checker.
        folder: where the archive is kept, and made if it is not there.
    """
    try:
        told = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S,
            check=True,
        ).stderr  # fmt: skip
        if not _ABLE.search(told):
            return ()
        known = jar.stat()
        key = f"{java}\0{jar}\0{known.st_size}\0{known.st_mtime_ns}\0".encode() + told
        archive = folder / f"{jar.stem}-{hashlib.blake2b(key, digest_size=8).hexdigest()}.jsa"
        if not archive.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".archive-", dir=folder) as scratch:
                _make(java, jar, Path(scratch) / "archive")
                with (Path(scratch) / "archive").open("rb") as whole:
                    os.fsync(whole.fileno())  # Java crashes on half of one
                    os.replace(whole.name, archive)
    except (OSError, subprocess.SubprocessError):
        return ()
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def _make(java: str, jar: Path, archive: Path) -> None:
    """Check the usual module; Java writes the classes that it needed when it ends."""
    folder = archive.parent
    (folder / "Usual.tla").write_text(_MODULE, encoding="utf-8")
    (folder / "Usual.cfg").write_text(_CONFIG, encoding="utf-8")
    subprocess.run(
        [java, f"-XX:ArchiveClassesAtExit={archive}", "-XX:+UseSerialGC",
         "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}", "-cp", str(jar), "tlc2.TLC",
         "-tool", "-workers", "1", "-metadir", str(folder), "Usual"],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        timeout=_TIMEOUT_S, check=True,
    )  # fmt: skip
