"""The labelled state graph of a model, read from the model checker's dump as a stream."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bentpipe_conformance.models.tool import ToolProblem

MOST_EDGES = 2_000_000
"""Larger graphs do not fit comfortably into memory; nothing the suites could replay needs them."""

_EDGE = re.compile(r'(-?\d+) -> (-?\d+) \[label="([^"]*)"')
_NODE = re.compile(r'(-?\d+) \[label="(.*)"(,style = filled)?\];?$')
_FRAME = ("strict digraph", "nodesep=", "subgraph ", "color=", "{rank = same;")


@dataclass(frozen=True, slots=True)
class Edge:
    """A step: from which state to which, by which action."""

    source: int
    target: int
    action: str


@dataclass(slots=True)
class Graph:
    """A state graph; states are numbered as they are first named.

    Attributes:
        states: the variables asked for, as the model checker prints them.
        initial: numbers of the initial states.
        edges: steps that change something, each once, in the order of the dump.
    """

    states: list[dict[str, str]] = field(default_factory=list)
    initial: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def read_graph(path: Path, variables: Collection[str]) -> Graph:
    """Read the dump of a state graph (``-dump dot,actionlabels``).

    Args:
        path: the dump.
        variables: the variables to keep of each state.

    Raises:
        ToolProblem: it is not such a dump, is truncated, or is larger than :data:`MOST_EDGES`.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return read_dot(stream, variables, str(path))
    except OSError as error:
        raise ToolProblem(f"{path} cannot be read: {error.strerror}.") from error


def read_dot(lines: Iterable[str], variables: Collection[str], name: str) -> Graph:
    """As :func:`read_graph`, from lines; ``name`` is for messages."""
    reading = _Reading(frozenset(variables), name)
    for number, line in enumerate(lines, start=1):
        reading.line(number, line.strip())
    return reading.finished()


class _Reading:
    def __init__(self, variables: frozenset[str], name: str) -> None:
        self._variables = variables
        self._name = name
        self._graph = Graph()
        self._number: dict[str, int] = {}
        self._described: set[int] = set()
        self._texts: dict[str, str] = {}
        self._steps: dict[tuple[int, int, str], None] = {}
        self._open = 0
        self._begun = False

    def line(self, number: int, text: str) -> None:
        """Process one line."""
        if found := _EDGE.match(text):
            self._step(found[1], found[2], found[3])
        elif found := _NODE.match(text):
            self._state(found[1], found[2], bool(found[3]))
        elif text == "}":
            self._open -= 1
        elif text.startswith(_FRAME):
            self._begun = self._begun or text.startswith("strict digraph")
            self._open += text.endswith("{")
        elif text:
            raise ToolProblem(
                f"{self._name}, line {number}: {text[:40]!r} is not part of a state graph of TLC; "
                "make the graph again."
            )

    def finished(self) -> Graph:
        """The whole graph, once all lines have been read."""
        graph = self._graph
        if not self._begun or self._open != 0:
            raise ToolProblem(
                f"{self._name} is truncated or not a state graph; make the graph again."
            )
        if len(self._described) < len(graph.states):
            raise ToolProblem(
                f"{self._name} has steps to states that it does not describe; make the graph again."
            )
        if not graph.initial:
            raise ToolProblem(f"{self._name} marks no initial state; make the graph again.")
        graph.edges = [Edge(*step) for step in self._steps]
        return graph

    def _numbered(self, fingerprint: str) -> int:
        found = self._number.get(fingerprint)
        if found is None:
            found = self._number[fingerprint] = len(self._graph.states)
            self._graph.states.append({})
        return found

    def _step(self, source: str, target: str, action: str) -> None:
        if source == target:
            return
        self._steps[self._numbered(source), self._numbered(target), action] = None
        if len(self._steps) > MOST_EDGES:
            raise ToolProblem(
                f"{self._name} has more than {MOST_EDGES:,} steps; scenarios need smaller bounds."
            )

    def _state(self, fingerprint: str, label: str, initial: bool) -> None:
        number = self._numbered(fingerprint)
        if number in self._described:
            return
        self._described.add(number)
        self._graph.states[number] = {
            name: self._texts.setdefault(value, value)
            for name, value in _variables(label)
            if name in self._variables
        }
        if initial:
            self._graph.initial.append(number)


def _variables(label: str) -> Iterator[tuple[str, str]]:
    for part in label.removeprefix("/\\\\ ").split("\\n/\\\\ "):
        name, _, value = part.partition(" = ")
        yield name, value.replace("\\n", " ").replace('\\"', '"')
