"""What is fuzzed: each target takes octets, says in a word what became of them, and raises nothing.

What a file of its kind may do wrong is such a word. Whatever else it raises is a finding, and so is
more memory than 64 MB and 50 times the input, or more time than `PATIENCE`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from bentpipe_conformance.analysis.capture import Analysis, SideUnknown, analyze_capture
from bentpipe_conformance.analysis.page import write_page
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.suite import Suite, load_suites
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.evidence.bundle import BundleError
from bentpipe_conformance.evidence.frames import CaptureError
from bentpipe_conformance.evidence.layout import ATTESTATION, MANIFEST
from bentpipe_conformance.evidence.limits import BoundError
from bentpipe_conformance.iut.description import parse_description
from bentpipe_conformance.iut.table import DescriptionError
from bentpipe_conformance.report.page import dissected
from bentpipe_conformance.run.verification import UnforeseenError, verify
from bentpipe_reference.common.link.profile import load_profiles

from bentpipe_fuzz.inputs.shaped import joined

Target = Callable[[bytes], str]

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
PATIENCE = 20.0
"""Seconds for one input; the slowest of a corpus takes a second."""
LARGEST_PACKET = 1500


def capture(octets: bytes) -> str:
    """``bentpipe analyze`` of a pcap or pcapng file, by the first suite that finds its protocol."""
    suites = [suite for suite in load_suites().values() if suite.observer is not None]
    kind = crc32(octets)
    outcome = "refused"
    with tempfile.TemporaryDirectory(prefix="bentpipe-fuzz-") as folder:
        path = Path(folder) / "it.pcapng"
        path.write_bytes(octets)
        for suite in suites[kind % len(suites) :] + suites[: kind % len(suites)]:
            try:
                done = _analyzed(path, suite, kind % 8 == 0)
            except CaptureError as error:
                # The whole of it, first; what precedes damage, then.
                outcome = "damaged" if error.partial else outcome
                continue
            if kind % 8 == 0:
                write_page(done, Path(folder) / "report.html")
            return f"judged as {suite.name}" if done.connections else "judged, nothing in it"
    return outcome


def _analyzed(path: Path, suite: Suite, illustrated: bool) -> Analysis:
    """What is judged; where a side has to be named, it is the first host's.

    Raises:
        CaptureError: it cannot be judged.
    """
    how: dict[str, Any] = {"partial": False, "illustrated": illustrated, "iut": None}
    for _ in range(3):
        try:
            return analyze_capture(path, suite, suite.profiles[0], **how)
        except SideUnknown as error:
            if how["iut"] or not error.hosts:
                raise
            how["iut"] = error.hosts[0]
        except CaptureError:
            if how["partial"]:
                raise
            how["partial"] = True
    raise CaptureError("it can be judged in no way")


def bundle(octets: bytes) -> str:
    """``bentpipe verify`` of a bundle, as `packed` packs one; seven of eight are sealed again."""
    with tempfile.TemporaryDirectory(prefix="bentpipe-fuzz-") as folder:
        place = Path(folder) / "bundle"
        if not unpack(octets, place):
            return "not unpacked"
        if crc32(octets) % 8:
            with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
                seal_again(place)
        try:
            done = verify(place)
        except (BoundError, UnforeseenError):
            raise
        except BundleError:
            return "refused"
        return "contradicted" if done.differences else "doubtful" if done.doubts else "reproduced"


def toml(octets: bytes) -> str:
    """A description of an implementation, and a file of links."""
    text = octets.decode("utf-8", "replace")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return "no TOML"
    taken = "refused"
    with contextlib.suppress(DescriptionError):
        parse_description(document, Path("/nowhere/it.toml"))
        taken = "a description"
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(octets)
        file.flush()
        with contextlib.suppress(ValueError):
            load_profiles(file.name)
            taken = "a link"
    return taken


def vectors(octets: bytes) -> str:
    """Packets, one behind the other with two octets of length each, read by every suite's codec."""
    stream = io.BytesIO(octets)
    packets: list[bytes] = []
    while len(head := stream.read(2)) == 2 and len(packets) < 64:
        packets.append(stream.read(int.from_bytes(head, "big") % (LARGEST_PACKET + 1)))
    captured = [
        Captured(number / 10, point, point == "peer", data)
        for number, data in enumerate(packets)
        for point in ("iut", "peer")
    ]
    for suite in load_suites().values():
        trace = read_trace(captured, suite=suite)
        for packet in trace.at("iut"):
            dissected(suite, packet.data)
    return "dissected" if packets else "empty"


TARGETS: Mapping[str, Target] = {
    "pcap": capture, "pcapng": capture, "bundle": bundle, "toml": toml, "vectors": vectors,
}  # fmt: skip
"""The targets by the names of their corpora."""


def seal_again(folder: Path) -> None:
    """Adapt the digests that one file has of another, as an opponent would."""
    plan = hashlib.sha256((folder / "run.json").read_bytes()).hexdigest()
    for path in (*folder.glob("cases/*/case.json"), folder / "result.json"):
        held = json.loads(path.read_bytes())
        held["run"] = plan
        for name in held.get("sha256") or ():
            held["sha256"][name] = hashlib.sha256((path.parent / name).read_bytes()).hexdigest()
        path.write_text(json.dumps(held, indent=1), encoding="utf-8")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
        if path.name not in (MANIFEST, ATTESTATION)
    ]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8")


def packed(folder: Path) -> bytes:
    """A bundle as one document, as `shaped.joined` makes one."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return joined({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})


def unpack(octets: bytes, folder: Path) -> bool:
    """Make the files of `packed` in a new directory; whether there are any."""
    head, _, rest = octets.partition(b"\n")
    try:
        table = json.loads(head)
        for name, length in table:
            path = (folder / name).resolve()
            if not path.is_relative_to(folder.resolve()) or not 0 <= length <= len(rest):
                return False
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rest[:length])
            rest = rest[length:]
    except (ValueError, TypeError, OSError, RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return folder.is_dir()
