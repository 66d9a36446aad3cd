"""How an implementation is started and made to call: the tables ``[start]`` and ``[open]``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from bentpipe_conformance.engine.lane import Opening, filled
from bentpipe_conformance.iut.attachment import IN_NAMESPACES, AttachKind
from bentpipe_conformance.iut.table import Table

PLACEHOLDERS = (
    "python", "here", "cache", "fd", "address", "prefix", "gateway", "mtu", "mac", "gateway_mac",
    "udp_port", "protocol", "services", "lan",
)  # fmt: skip
"""What a command may name; ``docs/howto/own-stack.rst`` says what each is."""

SERVICES = Path(__file__).with_name("services.py")
"""The standard services for a kernel's own TCP, which ``{services}`` names."""

Restart = Literal["never", "case"]
RESTARTS: tuple[Restart, ...] = get_args(Restart)

_OF_PROGRAM = ("command", "ready", "ready_port", "setup")

OPEN_PLACEHOLDERS = ("python", "here", "tester", "udp_port", "port", "service", "octets")
"""What ``[open]`` may name, likewise."""


@dataclass(frozen=True, slots=True)
class Start:
    """How to start the implementation; an empty command means that it already runs.

    Attributes:
        command: words with :data:`PLACEHOLDERS`.
        ready: the line on standard output that says it listens.
        ready_port: instead of a line, the TCP port at which it then listens; 0 for a line.
        setup: commands that are run beside it, with its rights, once it is ready, such as those
            that lead packets to it.
        build: the recipe that makes ``{cache}``, or empty.
        restart: ``case`` for a fresh process in every case.
        far: of a pair, how the box at the servers is started if it is another program.
    """

    command: tuple[str, ...] = ()
    ready: str = "ready"
    build: str = ""
    restart: Restart = "never"
    ready_port: int = 0
    setup: tuple[tuple[str, ...], ...] = ()
    far: Start | None = None

    def words(self, values: Mapping[str, object]) -> list[str]:
        """The command with these placeholders filled in; others stay, for the lane to fill.

        Paths are without ``..``: in isolation there may be nothing to go back from.
        """
        return _words(self.command, values)

    def setup_words(self, values: Mapping[str, object]) -> list[list[str]]:
        """The commands of the setup, likewise."""
        return [_words(command, values) for command in self.setup]


def _words(command: Sequence[str], values: Mapping[str, object]) -> list[str]:
    words = [filled(word, {"services": SERVICES, **values}) for word in command]
    if words and "/" not in words[0] and "{" not in words[0]:
        words[0] = shutil.which(words[0]) or words[0]
    return [os.path.normpath(word) if word.startswith("/") else word for word in words]


def read_start(table: Table, kind: AttachKind) -> Start:
    """Read ``[start]`` of an implementation that is attached as ``kind`` says.

    Raises:
        DescriptionError: it has a mistake.
    """
    table.only(*_OF_PROGRAM, "build", "restart", "far")
    restart: Restart = table.choice("restart", RESTARTS, "never")
    start, named = _read_program(table, kind)
    start = replace(start, build=table.text("build", ""), restart=restart)
    if restart == "case" and not start.command:
        raise table.wrong("needs 'command' for restart = \"case\"")
    if "far" in table.entries:
        if kind != "pair":
            raise table.wrong("has a meaning for [start.far] only with kind 'pair'")
        table.table("far").only(*_OF_PROGRAM)
        far, named_far = _read_program(table.table("far"), kind)
        start, named = replace(start, far=far), named | named_far
    if ("cache" in named) != bool(start.build):
        raise table.wrong("needs 'build' and {cache} in 'command' together or not at all")
    if kind in ("in-process", "ports") and table.entries:
        raise table.wrong(f"has no meaning for kind {kind!r}; leave it out")
    if kind in ("tun", "tap") and "fd" not in named:
        raise table.wrong(f"needs {{fd}} in 'command': kind {kind!r} inherits a descriptor")
    return start


def _read_program(table: Table, kind: AttachKind) -> tuple[Start, set[str]]:
    """One program, and the placeholders that its command names."""
    command = table.words("command")
    ready_port = table.port("ready_port", 1) if "ready_port" in table.entries else 0
    if ready_port and "ready" in table.entries:
        raise table.wrong("needs either 'ready' or 'ready_port'")
    ready, setup = table.text("ready", "ready"), table.commands("setup")
    if (setup or ready_port) and kind not in IN_NAMESPACES:
        raise table.wrong(
            "has a meaning for 'ready_port' and 'setup' only with kinds 'namespace', 'between' and "
            "'pair'"
        )
    named = table.placeholders(command, PLACEHOLDERS, " in 'command'")
    for words in setup:
        named |= table.placeholders(words, PLACEHOLDERS, " in 'setup'") & {"lan"}
    if "lan" in named and kind != "pair":
        raise table.wrong("has a meaning for {lan} only with kind 'pair'")
    if kind in ("tun", "tap", *IN_NAMESPACES) and not command:
        raise table.wrong(f"lacks 'command', which kind {kind!r} needs")
    return Start(command, ready, ready_port=ready_port, setup=setup), named


def read_opening(table: Table, start: Start, kind: AttachKind, here: Path) -> Opening | None:
    """Read ``[open]``; None when the implementation cannot be made to open a connection.

    Raises:
        DescriptionError: it has a mistake.
    """
    if not table.entries:
        return Opening() if kind == "in-process" else None
    table.only("line", "command", "on_host", "abort")
    if kind in ("in-process", "ports"):
        raise table.wrong(f"has no meaning for kind {kind!r}; leave it out")
    line, command = table.text("line", ""), table.words("command")
    if bool(line) == bool(command):
        raise table.wrong("needs either 'line' or 'command'")
    if line and not start.command:
        unread = "has a 'line' but [start] no 'command' that could read it"
        raise table.wrong(f"{unread}; use [open] command")
    table.placeholders((line, *command), OPEN_PLACEHOLDERS)
    abort = table.text("abort", "")
    if abort and not line:
        raise table.wrong("has a meaning for 'abort' only with a 'line'")
    on_host = table.take("on_host", bool, "true or false", False)
    if on_host and (line or kind != "address"):
        raise table.wrong("has a meaning for 'on_host' only with a 'command' and kind 'address'")
    return Opening(line, tuple(filled(word, {"here": here}) for word in command), on_host, abort)
