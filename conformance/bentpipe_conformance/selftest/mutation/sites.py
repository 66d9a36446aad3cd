"""Where the operators apply in a module, and the source of each mutant."""

from __future__ import annotations

import copy
import fnmatch
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from bentpipe_conformance.selftest.mutation.change import Change, digest_of_line, fingerprint
from bentpipe_conformance.selftest.mutation.operators import Named, load_operators
from bentpipe_conformance.selftest.mutation.probing import (
    Probe,
    assigned,
    expression_around,
    is_condition,
)

UNSEEN = frozenset({"__repr__", "__str__", "__all__"})
"""Functions and names that only show something to a reader."""

_LEFT_ALONE = frozenset({
    "import_name", "import_from", "assert_stmt", "fstring", "decorator",
    "error_node", "error_leaf",  # the patterns of match statements, which parso does not know
})  # fmt: skip
_HEADED = frozenset({"if_stmt", "while_stmt", "for_stmt", "with_stmt", "try_stmt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant(Change):
    """One change of one module.

    Attributes:
        module: within the reference's package, such as ``tcp.sender``.
        function: its qualified name, or ``module`` outside any.
        operator: see :mod:`bentpipe_conformance.selftest.mutation.operators`.
        lines: first and last line of the statement that it changes, for coverage.
        body: first and last line of the function, or of the statement outside any.
        at_import: whether the statement runs when the module is imported.
        probe: how to find out whether it makes a difference; None where only running it tells.
    """

    function: str
    lines: tuple[int, int]
    body: tuple[int, int]
    at_import: bool
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a walk is."""

    function: str
    statement: tuple[int, int]
    at_import: bool
    body: tuple[int, int] | None = None


def mutants_of_source(
    module: str, source: str, silent: Collection[str] = (), left_out: Collection[str] = ()
) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines; no two have the same source.

    Args:
        module: see :class:`Mutant`.
        source: of the module.
        silent: names of functions that only trace, whose calls are not mutated, and of attributes
            that only count for a reader, whose assignments are not.
        left_out: qualified names, or patterns of them, of functions that do not count; that of a
            class stands for what is written in it directly, such as defaults.
    """
    import parso

    walk = _Walk(module, source, frozenset(silent), frozenset(left_out))
    walk.visit(parso.parse(source), _Place("", (1, 1), at_import=True))
    return sorted(walk.found, key=lambda item: (item.line, item.start, item.operator))


class _Walk:
    def __init__(
        self, module: str, source: str, silent: frozenset[str], left_out: frozenset[str]
    ) -> None:
        self.found: list[Mutant] = []
        self._module, self._source = module, source
        self._silent, self._left_out = silent, left_out
        self._rows = source.splitlines()
        self._offsets = [0]
        for row in source.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(row))
        self._operators = load_operators()
        self._known: set[bytes] = {fingerprint(source)}
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def visit(self, node: Any, place: _Place) -> None:
        """Note the mutants of a node and of those inside it."""
        kind = node.type
        if kind in _LEFT_ALONE:
            return
        if kind in {"funcdef", "classdef"}:
            self._define(node, place)
            return
        if kind == "simple_stmt":
            if self._only_shows(node):
                return
            place = _at(place, node.start_pos[0], node.get_last_leaf().start_pos[0])
        if kind in _HEADED:
            self._mutate(node, _at(place, *_header(node, node)))
            self._visit_headed(node, place)
            return
        self._mutate(node, place)
        if kind == "raise_stmt":
            return
        for child in _judged_children(node):
            self.visit(child, place)

    def _visit_headed(self, node: Any, place: _Place) -> None:
        if _names(node.children[1]) & ({"TYPE_CHECKING"} | self._silent):
            return
        head = node
        for child in node.children:
            if child.type == "keyword" and child.value in {"if", "elif", "while", "for", "with"}:
                head = child
            inside = child.type == "suite"
            self.visit(child, place if inside else _at(place, *_header(node, head)))

    def _define(self, node: Any, place: _Place) -> None:
        name = f"{place.function}.{node.name.value}".lstrip(".")
        if node.name.value in UNSEEN:
            return
        here = _Place(name, (node.start_pos[0], node.start_pos[0]), place.at_import)
        if node.type == "classdef":
            self.visit(node.children[-1], here)
            return
        for parameter in node.get_params():
            if parameter.default is not None:
                row = parameter.default.start_pos[0]
                self.visit(parameter.default, _Place(name, (row, row), place.at_import))
        body = node.start_pos[0], node.get_last_leaf().start_pos[0]
        inside = _Place(name, here.statement, at_import=False, body=body)
        self.visit(node.children[-1], inside)

    def _only_shows(self, node: Any) -> bool:
        """Whether a statement is a docstring, or tells a trace or a reader something."""
        first = node.children[0]
        if first.type in {"string", "strings"}:
            return True
        if first.type == "expr_stmt":
            target = first.children[0]
            if target.type == "name":
                return target.value in UNSEEN
            return target.type == "atom_expr" and bool(_called(target) & self._silent)
        return first.type == "atom_expr" and bool(_called(first) & self._silent)

    def _mutate(self, node: Any, place: _Place) -> None:
        if node.type == "operator" and node.value == "**" and node.parent.type != "power":
            return  # of a call or a display
        for named in self._operators:
            for index in named.mutations(node):
                self._note(node, named, index, place)

    def _note(self, node: Any, named: Named, index: int, place: _Place) -> None:
        in_place = getattr(named.operator, "in_place", True)
        whole = _clone(node, node.parent) if in_place else node
        changed = named.operator.mutate(whole, index)
        code = changed.get_code(include_prefix=False)
        code = code.strip(" ")
        start, end = self._offset(node.start_pos), self._offset(node.end_pos)
        if node.type in _HEADED or node.type == "simple_stmt":
            code = code if code.endswith("\n") else f"{code}\n"
        if place.statement == (1, 1) and node.start_pos[0] != 1:
            place = _at(place, node.start_pos[0], node.end_pos[0])
        function = place.function or "module"
        if any(fnmatch.fnmatchcase(function, pattern) for pattern in self._left_out):
            return
        key = fingerprint(self._source[:start] + code + self._source[end:])
        if key in self._known:
            return
        self._known.add(key)
        line = node.start_pos[0]
        text = self._rows[line - 1].strip()
        self._counts[function, named.name, text] += 1
        number = self._counts[function, named.name, text]
        suffix = f".{number}" if number > 1 else ""
        self.found.append(Mutant(
            id=f"{self._module}:{function}:{named.name}:{digest_of_line(text)}{suffix}",
            module=self._module, function=function, operator=named.name, lines=place.statement,
            body=place.body or place.statement, line=line, text=text, start=start, end=end,
            code=code, at_import=place.at_import,
            probe=None if place.at_import else self._probe(node, named.name, code),
        ))  # fmt: skip

    def _probe(self, node: Any, operator: str, code: str) -> Probe | None:
        if operator in {"drop-assignment", "swap-augmented"}:
            statement = node if node.type == "expr_stmt" else node.parent
            known = assigned(statement, dropped=operator == "drop-assignment")
            if known is None:
                return None
            value, variant = known
            return Probe(*self._span(value), variant, condition=False)
        if operator in {"drop-statement", "return-early"}:
            return None
        whole = expression_around(node)
        if whole is None:
            return None
        start, end = self._span(whole)
        before, after = self._span(node)
        variant = self._source[start:before] + code + self._source[after:end]
        return Probe(start, end, variant, is_condition(whole))

    def _span(self, node: Any) -> tuple[int, int]:
        return self._offset(node.start_pos), self._offset(node.end_pos)

    def _offset(self, position: tuple[int, int]) -> int:
        row, column = position
        return self._offsets[row - 1] + column


def _at(place: _Place, first: int, last: int) -> _Place:
    return replace(place, statement=(first, last))


def _header(node: Any, head: Any) -> tuple[int, int]:
    """First and last line of the part of a compound statement that begins with ``head``."""
    start = head.start_pos[0]
    for child in node.children:
        if child.type == "suite" and child.start_pos >= head.start_pos:
            return start, max(start, child.get_previous_leaf().start_pos[0])
    return start, start


def _judged_children(node: Any) -> Iterator[Any]:
    """The children in which code is: no annotations, no parameters of lambdas."""
    if node.type == "annassign":
        yield from node.children[3:]
    elif node.type == "lambdef":
        yield node.children[-1]
    else:
        yield from getattr(node, "children", ())


def _called(node: Any) -> set[str]:
    """The names of a call or an attribute: of the function or method, without its arguments."""
    found = {node.children[0].value} if node.children[0].type == "name" else set()
    for trailer in node.children[1:]:
        if trailer.type == "trailer" and trailer.children[0].value == ".":
            found.add(trailer.children[1].value)
    return found


def _names(node: Any) -> set[str]:
    if node.type == "name":
        return {node.value}
    return set().union(*(_names(child) for child in getattr(node, "children", ())))


def _clone(node: Any, parent: Any) -> Any:
    """A copy of a node whose parent is the original one's, without copying the whole tree."""
    twin = copy.copy(node)
    twin.parent = parent
    if hasattr(node, "children"):
        twin.children = [_clone(child, twin) for child in node.children]
    return twin
