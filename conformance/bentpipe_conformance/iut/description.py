"""Implementations under test as TOML files: typed loading, one sentence per mistake.

A description has these tables; ``iuts/README.md`` shows whole ones.

``id``, ``name``, ``suite``
    An identifier (letters, digits, ``-``), what a person calls the implementation, and the suite
    that judges it: ``snr`` when left out, or ``stp``.
``[attach]``
    ``kind`` says where the implementation meets the bed:

    ``tun``, ``tap``
        a user-space stack that inherits the descriptor of a TUN (plain IPv4 packets) or TAP
        (Ethernet frames) as ``{fd}``;
    ``namespace``
        the TCP of the bed's kernel, in a network namespace that ``[sysctl]`` configures; the
        command is the upper tester that serves the ports; or a program with sockets of its own
        there, such as STP over UDP;
    ``address``
        a stack outside the bed, at the IPv4 ``address`` behind the host's ``interface``; the bed
        is the ``gateway`` (address and prefix length) of its default route, or of its route to
        10.78.0.0/16; started by the bed only when there is a command. With ``sends_on`` and
        ``sends_to`` it receives by ``interface`` and sends by another port, behind that interface,
        where the bed is ``sends_to``;
    ``in-process``
        the reference, inside the simulation; ``variant`` names its loss recovery, or its
        configuration.
``[start]``
    ``command`` (a list of words with the placeholders of :data:`PLACEHOLDERS`), ``ready`` (the line
    on standard output that says it listens) and ``build`` (a recipe of
    :mod:`bentpipe_conformance.iut.build`, whose directory is ``{cache}``).
``[sysctl]``
    Settings under ``net.`` for the namespace.
``[services]``
    The ports of ``echo``, ``discard`` and ``chargen`` where they are not 7, 9 and 19.
``[encapsulation]``
    For STP, how its packets travel: ``kind`` ``udp`` (default) to ``port`` (7253; ``{udp_port}`` in
    the command), or ``ip`` with ``protocol`` (253; ``{protocol}`` in the command).
``[open]``
    How to make it open a connection, with the placeholders of :data:`OPEN_PLACEHOLDERS`: a
    ``line`` for the standard input of the started program, or a ``command`` (a list of words) to
    run, in the bed's network or, with ``on_host``, in the host's. Without it, requirements on
    opening cannot be judged.
``[ics]``
    The conformance statement; what it leaves out has the proforma's default.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, get_args

from bentpipe_conformance.engine import encapsulation
from bentpipe_conformance.engine.encapsulation import EXPERIMENTAL, Encapsulation
from bentpipe_conformance.engine.lane import Opening
from bentpipe_conformance.engine.peer import STANDARD_SERVICES
from bentpipe_conformance.engine.suite import Suite, UnknownSuite, suite_named
from bentpipe_conformance.iut.proforma import Answer, Item, complete, load_proforma

AttachKind = Literal["tun", "tap", "namespace", "address", "in-process"]
KINDS: tuple[AttachKind, ...] = get_args(AttachKind)

PLACEHOLDERS = (
    "python", "here", "cache", "fd", "address", "prefix", "gateway", "mtu", "mac", "gateway_mac",
    "udp_port", "protocol",
)  # fmt: skip
"""What a command may name: the interpreter running bentpipe, the description's own directory, the
directory of what ``build`` made, the descriptor of the TUN or TAP, the implementation's address
and its prefix length, the next hop's address, the largest packet in octets, for a TAP the two
Ethernet addresses, and for STP its UDP port or IP protocol number."""

OPEN_PLACEHOLDERS = ("python", "here", "tester", "udp_port", "port", "service", "octets")
"""What ``[open]`` may name: the interpreter, the description's directory, the tester's address, UDP
port and STP port (9: send to it; 19: receive from it), the same as what the implementation does
(``chargen`` or ``discard``), and how many octets to send to port 9."""

TESTERS = ipaddress.IPv4Network("10.78.0.0/16")
"""Where the tester's addresses are in every bed."""

DEFAULT_SUITE = "snr"
"""The suite of a description that names none: there was only one when the first were written."""

_IUTS = Path(__file__).resolve().parent.parent / "iuts"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_Value = TypeVar("_Value")


class DescriptionError(ValueError):
    """A description cannot be used; the message is one sentence that names file and key."""


@dataclass(frozen=True, slots=True)
class Attach:
    """Where the implementation meets the bed (see the module)."""

    kind: AttachKind
    interface: str = ""
    address: str = ""
    gateway: str = ""
    prefix: int = 0
    variant: str = ""
    sends_on: str = ""
    sends_to: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class Start:
    """How to start the implementation; an empty command means that it already runs."""

    command: tuple[str, ...] = ()
    ready: str = "ready"
    build: str = ""

    def words(self, values: Mapping[str, object]) -> list[str]:
        """The command with these placeholders filled in; others stay, for the lane to fill."""

        def fill(match: re.Match[str]) -> str:
            return str(values.get(match[1], match[0]))

        return [_PLACEHOLDER.sub(fill, word) for word in self.command]


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


class _Table:
    """One TOML table that is read key by key and must be used up."""

    def __init__(self, entries: Mapping[str, object], file: str, name: str = "") -> None:
        self.entries = entries
        self.where = f"{file}: [{name}]" if name else f"{file}: the file"
        self._file = file
        self._name = name

    def only(self, allowed: Sequence[str]) -> None:
        """Refuse every other key."""
        for key in self.entries:
            if key not in allowed:
                raise DescriptionError(
                    f"{self.where} has unknown key {key!r}; allowed are {', '.join(allowed)}"
                )

    def take(self, key: str, kind: type[_Value], wanted: str, default: _Value) -> _Value:
        """The value of an optional key.

        Args:
            key: which.
            kind: what Python makes of the right TOML type.
            wanted: what it must be, in words.
            default: the value when the key is missing.
        """
        value = self.entries.get(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise DescriptionError(f"{self.where} needs {wanted} for {key!r}, not {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text, which must not be empty; required when there is no default."""
        if key not in self.entries:
            if default is None:
                raise DescriptionError(f"{self.where} lacks {key!r}")
            return default
        value = self.take(key, str, "a text", "")
        if not value.strip():
            raise DescriptionError(f"{self.where} needs a text for {key!r}, not an empty one")
        return value

    def table(self, key: str) -> _Table:
        """A table of this table, empty when missing."""
        entries = self.take(key, dict, "a table", {})
        return _Table(entries, self._file, f"{self._name}.{key}".lstrip("."))


def _attach(table: _Table) -> Attach:
    kind = next((one for one in KINDS if one == table.text("kind")), None)
    if kind is None:
        raise DescriptionError(
            f"{table.where} needs one of {', '.join(KINDS)} for 'kind', "
            f"not {table.entries['kind']!r}"
        )
    if kind == "address":
        return _address(table)
    if kind == "in-process":
        table.only(("kind", "variant"))
        return Attach(kind, variant=table.text("variant"))
    table.only(("kind",))
    return Attach(kind)


def _address(table: _Table) -> Attach:
    """A stack elsewhere."""
    table.only(("kind", "interface", "address", "gateway", "sends_on", "sends_to"))
    address, gateway = table.text("address"), table.text("gateway")
    try:
        box = ipaddress.IPv4Address(address)
    except ValueError:
        raise DescriptionError(
            f"{table.where} needs an IPv4 address for 'address', not {address!r}"
        ) from None
    try:
        bed = ipaddress.IPv4Interface(gateway)
    except ValueError:
        raise DescriptionError(
            f"{table.where} needs an IPv4 address with a prefix length for 'gateway', such as "
            f"192.0.2.254/24, not {gateway!r}"
        ) from None
    if bed.ip == box or box not in bed.network:
        raise DescriptionError(
            f"{table.where} needs a 'gateway' in one network with 'address' {address}, and "
            f"{gateway} is not; its prefix length says how large the network is"
        )
    if bed.network.overlaps(TESTERS):
        raise DescriptionError(
            f"{table.where} has the network {bed.network}, which overlaps the testers' "
            f"{TESTERS}; give the implementation another address"
        )
    interface, sends_on = table.text("interface"), table.text("sends_on", "")
    sends_to = _second_gateway(table, interface, sends_on, bed.network)
    return Attach(
        "address", interface, address, str(bed.ip), bed.network.prefixlen, sends_on=sends_on,
        sends_to=sends_to,
    )  # fmt: skip


def _second_gateway(
    table: _Table, interface: str, sends_on: str, first: ipaddress.IPv4Network
) -> tuple[str, int]:
    """The bed's address where the implementation sends, if that is a port of its own."""
    text = table.text("sends_to", "")
    if bool(sends_on) != bool(text):
        raise DescriptionError(f"{table.where} needs 'sends_on' and 'sends_to' together")
    if not text:
        return "", 0
    try:
        bed = ipaddress.IPv4Interface(text)
    except ValueError:
        raise DescriptionError(
            f"{table.where} needs an IPv4 address with a prefix length for 'sends_to', such as "
            f"198.51.100.254/24, not {text!r}"
        ) from None
    if sends_on == interface:
        raise DescriptionError(
            f"{table.where} names {interface} twice; leave 'sends_on' and 'sends_to' out"
        )
    if bed.network.overlaps(first) or bed.network.overlaps(TESTERS):
        raise DescriptionError(
            f"{table.where} needs a network of its own for 'sends_to', and {bed.network} overlaps "
            f"{first if bed.network.overlaps(first) else TESTERS}"
        )
    return str(bed.ip), bed.network.prefixlen


def _start(table: _Table, kind: AttachKind) -> Start:
    table.only(("command", "ready", "build"))
    command = table.take("command", list, "a list of words", [])
    for word in command:
        if not isinstance(word, str):
            raise DescriptionError(
                f"{table.where} needs a list of words for 'command', and {word!r} is not a text"
            )
    start = Start(tuple(command), table.text("ready", "ready"), table.text("build", ""))
    named = {name for word in start.command for name in _PLACEHOLDER.findall(word)}
    if unknown := sorted(named - set(PLACEHOLDERS)):
        raise DescriptionError(
            f"{table.where} has unknown placeholder {{{unknown[0]}}} in 'command'; "
            f"allowed are {', '.join(PLACEHOLDERS)}"
        )
    if ("cache" in named) != bool(start.build):
        raise DescriptionError(
            f"{table.where} needs 'build' and {{cache}} in 'command' together or not at all"
        )
    if kind == "in-process" and table.entries:
        raise DescriptionError(f"{table.where} has no meaning for kind 'in-process'; leave it out")
    if kind in ("tun", "tap", "namespace") and not start.command:
        raise DescriptionError(f"{table.where} lacks 'command', which kind {kind!r} needs")
    if kind in ("tun", "tap") and "fd" not in named:
        raise DescriptionError(
            f"{table.where} needs {{fd}} in 'command': kind {kind!r} inherits a descriptor"
        )
    return start


def _sysctl(table: _Table, kind: AttachKind) -> dict[str, str]:
    if table.entries and kind != "namespace":
        raise DescriptionError(f"{table.where} has a meaning only for kind 'namespace'")
    settings: dict[str, str] = {}
    for key, value in table.entries.items():
        if not re.fullmatch(r"net\.[A-Za-z0-9_.-]+", key):
            raise DescriptionError(
                f"{table.where} has unknown key {key!r}; allowed are quoted names under net., "
                f'such as "net.ipv4.tcp_sack"'
            )
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise DescriptionError(
                f"{table.where} needs a text or a whole number for {key!r}, not {value!r}"
            )
        settings[key] = str(value)
    return settings


def _services(table: _Table) -> dict[str, int]:
    table.only(tuple(STANDARD_SERVICES))
    ports = dict(STANDARD_SERVICES)
    for service, standard in STANDARD_SERVICES.items():
        port = table.take(service, int, "a port number", standard)
        if not 0 < port < 65536:
            raise DescriptionError(
                f"{table.where} needs a port number from 1 to 65535 for {service!r}, not {port}"
            )
        ports[service] = port
    return ports


def _suite(top: _Table) -> Suite:
    try:
        return suite_named(top.text("suite", DEFAULT_SUITE))
    except UnknownSuite as error:
        raise DescriptionError(f"{top.where} has an unknown 'suite': {error}") from None


def _encapsulation(table: _Table, suite: Suite) -> Encapsulation:
    if table.entries and not suite.encapsulated:
        raise DescriptionError(f"{table.where} has no meaning for suite '{suite}'")
    asked = table.text("kind", "udp")
    kind = next((one for one in encapsulation.KINDS if one == asked), None)
    if kind is None:
        raise DescriptionError(
            f"{table.where} needs one of {', '.join(encapsulation.KINDS)} for 'kind', not {asked!r}"
        )
    table.only(("kind", "port") if kind == "udp" else ("kind", "protocol"))
    default = Encapsulation(kind)
    port = table.take("port", int, "a port number", default.port)
    if not 0 < port < 65536:
        raise DescriptionError(
            f"{table.where} needs a port number from 1 to 65535 for 'port', not {port}"
        )
    protocol = table.take("protocol", int, "a protocol number", default.protocol)
    if protocol not in EXPERIMENTAL:
        raise DescriptionError(
            f"{table.where} needs {' or '.join(map(str, EXPERIMENTAL))} for 'protocol', "
            f"not {protocol}"
        )
    return Encapsulation(kind, port, protocol)


def _opening(table: _Table, start: Start, kind: AttachKind, here: Path) -> Opening | None:
    if not table.entries:
        return Opening() if kind == "in-process" else None
    table.only(("line", "command", "on_host"))
    if kind == "in-process":
        raise DescriptionError(f"{table.where} has no meaning for kind 'in-process'; leave it out")
    line = table.text("line", "")
    words = table.take("command", list, "a list of words", [])
    if bool(line) == bool(words):
        raise DescriptionError(f"{table.where} needs either 'line' or 'command'")
    if line and not start.command:
        raise DescriptionError(
            f"{table.where} has a 'line' but [start] no 'command' that could read it; "
            "use [open] command"
        )
    for word in words:
        if not isinstance(word, str):
            raise DescriptionError(
                f"{table.where} needs a list of words for 'command', and {word!r} is not a text"
            )
    named = {name for word in (line, *words) for name in _PLACEHOLDER.findall(word)}
    if unknown := sorted(named - set(OPEN_PLACEHOLDERS)):
        raise DescriptionError(
            f"{table.where} has unknown placeholder {{{unknown[0]}}}; "
            f"allowed are {', '.join(OPEN_PLACEHOLDERS)}"
        )
    on_host = table.take("on_host", bool, "true or false", False)
    if on_host and (line or kind != "address"):
        raise DescriptionError(
            f"{table.where} has a meaning for 'on_host' only with a 'command' and kind 'address'"
        )
    return Opening(line, tuple(word.replace("{here}", str(here)) for word in words), on_host)


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
    top = _Table(document, path.name)
    top.only((
        "id", "name", "suite", "attach", "start", "sysctl", "services", "encapsulation", "open",
        "ics",
    ))  # fmt: skip
    identifier = top.text("id")
    if not _ID.fullmatch(identifier):
        raise DescriptionError(
            f"{top.where} needs letters, digits and '-' only for 'id', not {identifier!r}"
        )
    suite = _suite(top)
    attach = _attach(top.table("attach"))
    start = _start(top.table("start"), attach.kind)
    statement = top.table("ics")
    try:
        ics = complete(statement.entries, load_proforma(suite) if proforma is None else proforma)
    except ValueError as error:
        raise DescriptionError(f"{statement.where} {error}") from None
    return IutDescription(
        id=identifier,
        name=top.text("name"),
        attach=attach,
        start=start,
        sysctl=_sysctl(top.table("sysctl"), attach.kind),
        services=_services(top.table("services")),
        suite=suite,
        encapsulation=_encapsulation(top.table("encapsulation"), suite),
        opening=_opening(top.table("open"), start, attach.kind, path.parent),
        ics=ics,
        path=path,
    )


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


def list_iuts() -> list[IutDescription]:
    """Every description of the distribution, by identifier."""
    return [_read(path) for path in _known().values()]
