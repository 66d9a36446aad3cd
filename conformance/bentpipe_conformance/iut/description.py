"""Implementations under test as TOML files, in ``iuts/`` or anywhere.

``docs/howto/own-stack.rst`` explains every key, ``iuts/README.md`` shows whole files.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe_conformance.engine import encapsulation
from bentpipe_conformance.engine.encapsulation import EXPERIMENTAL, Encapsulation
from bentpipe_conformance.engine.lane import Opening
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.engine.suite import Suite, UnknownSuite, suite_named
from bentpipe_conformance.iut.attachment import (
    IN_NAMESPACES,
    OF_BOXES,
    Attach,
    AttachKind,
    read_attach,
)
from bentpipe_conformance.iut.isolation import Isolation, read_isolation
from bentpipe_conformance.iut.proforma import Answer, Item, complete, load_proforma
from bentpipe_conformance.iut.start import Start, read_opening, read_start
from bentpipe_conformance.iut.table import DescriptionError, Table

DEFAULT_SUITE = "snr"
"""The suite of a description that does not name one, from when there was only one."""

_IUTS = Path(__file__).resolve().parent.parent / "iuts"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class IutDescription:
    """One implementation under test.

    Attributes:
        id: identifier on the command line and in the evidence.
        name: what a person calls it.
        attach: where it meets the bed.
        start: how to start it.
        sysctl: kernel settings of its namespace.
        services: port of each of ``echo``, ``discard`` and ``chargen``.
        suite: the suite that judges it.
        encapsulation: how its packets travel, where the kernel does not know their protocol.
        opening: how to make it open a connection, None when it cannot be made to.
        isolation: what it asks for beyond its own files.
        ics: the complete conformance statement.
        path: the file it was read from.
    """

    id: str
    name: str
    attach: Attach
    start: Start
    sysctl: Mapping[str, str]
    services: Mapping[str, int]
    suite: Suite
    encapsulation: Encapsulation
    opening: Opening | None
    ics: Mapping[str, Answer]
    path: Path = field(compare=False)
    isolation: Isolation = field(default_factory=Isolation)


def _sysctl(table: Table, kind: AttachKind) -> dict[str, str]:
    if table.entries and kind not in IN_NAMESPACES:
        raise table.wrong("has a meaning only for kinds 'namespace', 'between' and 'pair'")
    for key, value in table.entries.items():
        if not re.fullmatch(r"net\.[A-Za-z0-9_.-]+", key):
            allowed = 'quoted names under net., such as "net.ipv4.tcp_sack"'
            raise table.wrong(f"has unknown key {key!r}; allowed are {allowed}")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise table.wrong(f"needs a text or a whole number for {key!r}, not {value!r}")
    return {key: str(value) for key, value in table.entries.items()}


def _check_place(table: Table, kind: AttachKind, suite: Suite) -> None:
    """Refuse a box where an end is judged, and an end where a box is."""
    if suite.between and kind not in (*OF_BOXES, "in-process"):
        what = "what stands between two ends: choose 'between', 'pair' or 'ports'"
    elif kind in OF_BOXES and not suite.between:
        what = "what is an end itself: choose another one"
    else:
        return
    raise table.wrong(f"has kind {kind!r}, and suite '{suite}' judges {what}")


def _encapsulation(table: Table, suite: Suite) -> Encapsulation:
    if table.entries and not suite.encapsulated:
        raise table.wrong(f"has no meaning for suite '{suite}'")
    kind = table.choice("kind", encapsulation.KINDS, "udp")
    table.only("kind", "port" if kind == "udp" else "protocol")
    default = Encapsulation(kind)
    port = table.port("port", default.port)
    protocol = table.take("protocol", int, "a protocol number", default.protocol)
    if protocol not in EXPERIMENTAL:
        known = " or ".join(map(str, EXPERIMENTAL))
        raise table.wrong(f"needs {known} for 'protocol', not {protocol}")
    return Encapsulation(kind, port, protocol)


def parse_description(
    document: Mapping[str, object], path: Path, proforma: Mapping[str, Item] | None = None
) -> IutDescription:
    """Build a description from a parsed TOML document.

    Args:
        document: what ``tomllib`` returned.
        path: the file, for messages and ``{here}``.
        proforma: the items of ``[ics]``; None for those of the suite's specification.

    Raises:
        DescriptionError: an unknown key, a wrong type or a value out of range.
    """
    top = Table(document, path.name)
    top.only(
        "id", "name", "suite", "attach", "start", "sysctl", "services", "encapsulation", "open",
        "isolation", "ics",
    )  # fmt: skip
    identifier = top.text("id")
    if not _ID.fullmatch(identifier):
        raise top.wrong(f"needs letters, digits and '-' only for 'id', not {identifier!r}")
    try:
        suite = suite_named(top.text("suite", DEFAULT_SUITE))
    except UnknownSuite as error:
        raise top.wrong(f"has an unknown 'suite': {error}") from None
    attach = read_attach(top.table("attach"))
    _check_place(top.table("attach"), attach.kind, suite)
    start = read_start(top.table("start"), attach.kind)
    statement = top.table("ics")
    try:
        ics = complete(statement.entries, load_proforma(suite) if proforma is None else proforma)
    except ValueError as error:
        raise statement.wrong(str(error)) from None
    services = top.table("services")
    services.only(*STANDARD_SERVICES)
    return IutDescription(
        identifier, top.text("name"), attach, start,
        sysctl=_sysctl(top.table("sysctl"), attach.kind),
        services={name: services.port(name, usual) for name, usual in STANDARD_SERVICES.items()},
        suite=suite, encapsulation=_encapsulation(top.table("encapsulation"), suite),
        opening=read_opening(top.table("open"), start, attach.kind, path.parent),
        ics=ics, path=path, isolation=read_isolation(top.table("isolation"), attach.kind),
    )  # fmt: skip


def _read(path: Path) -> IutDescription:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DescriptionError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DescriptionError(f"{path.name}: is not TOML: {error}") from None
    return parse_description(document, path)


def _known() -> dict[str, Path]:
    return {path.stem: path for path in sorted(_IUTS.glob("*.toml"))}


def is_bundled(description: IutDescription) -> bool:
    """Whether it is one of the distribution's own."""
    return _known().get(description.path.stem) == description.path


def load_iut(id_or_path: str) -> IutDescription:
    """The description with this identifier, or in the TOML file of this name.

    Raises:
        DescriptionError: there is none, or it has a mistake.
    """
    known = _known()
    if id_or_path in known:
        return _read(known[id_or_path])
    if id_or_path.endswith(".toml") or "/" in id_or_path:
        return _read(Path(id_or_path).expanduser().absolute())
    close = difflib.get_close_matches(id_or_path, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "see 'bentpipe list iuts'"
    raise DescriptionError(
        f"there is no implementation {id_or_path!r}; {hint} (for one of your own, give the path "
        "of its .toml file)"
    )


def read_statement(id_or_path: str, suite: Suite) -> Mapping[str, Answer]:
    """The conformance statement of an implementation, or in a file that holds nothing else.

    Such a file has the answers under ``[ics]`` or at its top; an item left out takes the proforma's
    default.

    Raises:
        DescriptionError: there is none, it has a mistake, or it belongs to another suite.
    """
    path = Path(id_or_path).expanduser()
    if id_or_path not in _known() and path.is_file():
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DescriptionError(f"{path}: cannot be read as TOML: {error}") from None
        if "attach" not in document:
            answers = document.get("ics", document)
            table = Table(answers if isinstance(answers, dict) else {}, path.name)
            try:
                return complete(table.entries, load_proforma(suite))
            except ValueError as error:
                raise table.wrong(str(error)) from None
    description = load_iut(id_or_path)
    if description.suite.name != suite.name:
        raise DescriptionError(
            f"{id_or_path} is judged by suite '{description.suite}', not {suite}"
        )
    return description.ics


def bundled_iut(identifier: str) -> IutDescription | None:
    """The distribution's own description with this identifier, if there is one."""
    path = _known().get(identifier)
    return None if path is None else _read(path)


def list_iuts() -> list[IutDescription]:
    """Every description of the distribution, by identifier."""
    return [_read(path) for path in _known().values()]
