"""The syntax tree of a module, as the tool's own parser (SANY) exports it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bentpipe_conformance.models.tool import Tool, ToolProblem

_EXPORTER = "tla2sany.xml.XMLExporter"
_PARSER = "tla2sany.SANY"
_TIMEOUT_S = 120.0
_ACTION = 2
"""The level of an expression with primed variables."""


@dataclass(frozen=True, slots=True)
class Node:
    """An expression.

    Attributes:
        operator: the name of what is applied, such as ``$ConjList``, ``\\union``, ``+`` or a
            definition's; ``number``, ``string``, ``let`` or ``@`` for what applies nothing.
        start, end: the characters of the module's source that it occupies.
        level: 0 constant, 1 state, 2 action, 3 temporal.
        children: operands, and what variables are bound to.
        uid: of what is applied; empty for what applies nothing.
        value: of a number or a string.
    """

    operator: str
    start: int
    end: int
    level: int
    children: tuple[Node, ...] = ()
    uid: str = ""
    value: str = ""

    @property
    def is_action(self) -> bool:
        """Whether primed variables occur in it."""
        return self.level >= _ACTION

    def walk(self) -> Iterator[Node]:
        """Itself and all nodes inside."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of the module, or one inside a LET of it.

    Attributes:
        name: what it defines.
        body: the expression.
        local: whether it stands in a LET.
    """

    name: str
    body: Node
    local: bool


@dataclass(frozen=True, slots=True)
class Module:
    """A module's source and its definitions by the parser's number, in the order of the source."""

    name: str
    source: str
    definitions: Mapping[str, Definition]
    variables: frozenset[str] = field(default_factory=frozenset)

    def reachable(self, roots: tuple[str, ...]) -> list[Definition]:
        """The definitions at the top of the module that ``roots`` need, in the source's order.

        Raises:
            ToolProblem: a root is not defined.
        """
        by_name = {item.name: uid for uid, item in self.definitions.items() if not item.local}
        if missing := [name for name in roots if name not in by_name]:
            raise ToolProblem(f"{self.name} does not define {missing[0]}; name another root.")
        found: set[str] = set()
        waiting = [by_name[name] for name in roots]
        while waiting:
            uid = waiting.pop()
            if uid in found:
                continue
            found.add(uid)
            nodes = self.definitions[uid].body.walk()
            waiting += [node.uid for node in nodes if node.uid in self.definitions]
        kept = [item for uid, item in self.definitions.items() if uid in found and not item.local]
        return sorted(kept, key=lambda item: item.body.start)

    def text(self, node: Node) -> str:
        """The source of an expression."""
        return self.source[node.start : node.end]


def read_module(tool: Tool, path: Path, libraries: tuple[Path, ...]) -> Module:
    """Parse a module.

    Args:
        tool: whose jar holds the parser.
        path: the module's file.
        libraries: folders with the modules that it extends.

    Raises:
        ToolProblem: it cannot be parsed.
    """
    folders = [part for folder in libraries for part in ("-I", str(folder.absolute()))]
    told, mark, exported = _told(tool, path, [_EXPORTER, "-o", *folders]).partition("<?xml")
    end = exported.rfind("</modules>")
    if not mark or end < 0:
        names = os.pathsep.join(str(folder.absolute()) for folder in libraries)
        raise ToolProblem(
            f"{path.name} cannot be parsed: "
            f"{_complaint(_told(tool, path, [_PARSER], names)) or told.strip()}"
        )
    root = ElementTree.fromstring(mark + exported[: end + len("</modules>")])
    return _Reader(path.stem, path.read_text(encoding="utf-8"), root).module()


def _told(tool: Tool, path: Path, arguments: list[str], searched: str = "") -> str:
    """What one of the jar's programs prints about a module."""
    try:
        with tempfile.TemporaryDirectory(prefix="bentpipe-parse-") as scratch:
            command = [
                tool.java, *tool.sharing, "-XX:TieredStopAtLevel=1", f"-DTLA-Library={searched}",
                f"-Djava.io.tmpdir={scratch}", "-cp", tool.classpath, *arguments,
                str(path.absolute()),
            ]  # fmt: skip
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_TIMEOUT_S,
                check=False,
            ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolProblem(f"{path.name} could not be parsed: {error}.") from error


def _complaint(text: str) -> str:
    """The parser's first complaint, on one line."""
    _, mark, after = text.partition("***Parse Error***")
    if not mark:
        _, mark, after = text.partition("*** Errors:")
        after = after.partition("\n")[2]
    return " ".join(after.partition("Residual stack trace")[0].split())[:300]


class _Reader:
    """Turns the exported elements that belong to one module into nodes."""

    def __init__(self, name: str, source: str, root: ElementTree.Element) -> None:
        self._name, self._source = name, source
        self._starts = [0]
        for row in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(row))
        self._entries: dict[str, ElementTree.Element] = {}
        for entry in root.iterfind("context/entry"):
            uid = entry.findtext("UID", "")
            self._entries[uid] = next(child for child in entry if child.tag != "UID")

    def module(self) -> Module:
        own = {uid: item for uid, item in self._entries.items() if self._is_own(item)}
        local = {
            reference.findtext("UID", "")
            for item in own.values()
            for let in item.iter("LetInNode")
            for reference in let.iterfind("opDefs/UserDefinedOpKindRef")
        }
        definitions = {
            uid: Definition(item.findtext("uniquename", ""), self._node(body[0]), uid in local)
            for uid, item in own.items()
            if item.tag == "UserDefinedOpKind"
            and (body := item.find("body")) is not None
            and self._is_own(body[0])
        }
        variables = {
            item.findtext("uniquename", "")
            for item in own.values()
            if item.tag == "OpDeclNode" and item.findtext("kind") == "3"
        }
        return Module(self._name, self._source, definitions, frozenset(variables))

    def _is_own(self, item: ElementTree.Element) -> bool:
        return item.findtext("location/filename") == self._name

    def _node(self, item: ElementTree.Element) -> Node:
        start, end = self._span(item)
        level = int(item.findtext("level") or 0)
        if item.tag == "OpApplNode":
            return self._application(item, start, end, level)
        if item.tag == "LetInNode":
            body = item.find("body")
            assert body is not None
            defined = tuple(
                self._node(inner[0])
                for reference in item.iterfind("opDefs/UserDefinedOpKindRef")
                if (inner := self._entries[reference.findtext("UID", "")].find("body")) is not None
            )
            return Node("let", start, end, level, (*defined, self._node(body[0])))
        if item.tag == "NumeralNode":
            return Node("number", start, end, level, value=item.findtext("IntValue", ""))
        if item.tag == "StringNode":
            return Node("string", start, end, level, value=item.findtext("StringValue", ""))
        return Node("@" if item.tag == "AtNode" else item.tag, start, end, level)

    def _application(self, item: ElementTree.Element, start: int, end: int, level: int) -> Node:
        reference = item.find("operator")
        operands = item.find("operands")
        assert reference is not None and operands is not None
        uid = reference[0].findtext("UID", "")
        symbol = self._entries.get(uid)
        name = symbol.findtext("uniquename", "") if symbol is not None else ""
        bound = (
            child
            for each in item.iterfind("boundSymbols/bound")
            for child in each
            if child.tag.endswith("Node")
        )
        inside: list[Any] = [*bound, *operands]
        children = tuple(self._node(child) for child in inside if self._is_expression(child))
        return Node(name, start, end, level, children, uid)

    def _is_expression(self, item: ElementTree.Element) -> bool:
        return item.find("location") is not None and self._is_own(item)

    def _span(self, item: ElementTree.Element) -> tuple[int, int]:
        def offset(edge: str) -> int:
            row = int(item.findtext(f"location/line/{edge}", "1"))
            column = int(item.findtext(f"location/column/{edge}", "1"))
            return self._starts[row - 1] + column - 1

        return offset("begin"), offset("end") + 1
