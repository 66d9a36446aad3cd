"""Whether a mutant makes any difference where it is reached, found without running it.

Most survivors compute the same values as the true reference in every case. The reference is run
once with each pure expression replaced by a call that also evaluates the expression as its mutants
have it; a mutant can only change what is sent in runs where the values differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

NAME = "_probe__"
"""What the call is named in an instrumented module."""

Noticing = Callable[..., Any]

_EXPRESSIONS = frozenset({
    "comparison", "arith_expr", "term", "expr", "and_expr", "xor_expr", "shift_expr", "factor",
    "power", "atom_expr", "and_test", "or_test", "not_test", "test", "atom", "name", "number",
    "keyword",
})  # fmt: skip
_IMPURE = frozenset({
    "lambdef", "sync_comp_for", "comp_for", "yield_expr", "namedexpr_test", "await_expr", "fstring",
    "dictorsetmaker", "star_expr",
})  # fmt: skip
_PURE_CALLS = frozenset({"min", "max", "len", "abs", "bool", "int", "round", "unwrap"})
_STATEMENTS = frozenset({
    "simple_stmt", "expr_stmt", "return_stmt", "if_stmt", "while_stmt", "for_stmt", "suite",
    "funcdef", "file_input", "del_stmt", "with_stmt", "raise_stmt",
})  # fmt: skip
_IMMUTABLE = (int, float, bool, str, bytes, type(None), Enum)


@dataclass(frozen=True, slots=True)
class Probe:
    """An expression that a mutant changes.

    Attributes:
        start, end: its characters in the module's source.
        variant: the expression as the mutant has it.
        condition: whether only its truth counts.
    """

    start: int
    end: int
    variant: str
    condition: bool


def expression_around(node: Any) -> Any:
    """The largest pure expression that a node is in, or None."""
    found = None
    while node is not None and node.type not in _STATEMENTS:
        if node.type in _EXPRESSIONS and not _is_word(node) and _is_value(node) and _is_pure(node):
            found = node
        node = node.parent
    return found


def _is_word(node: Any) -> bool:
    return node.type == "keyword" and node.value not in {"True", "False", "None"}


def _is_value(node: Any) -> bool:
    """Whether an expression stands where it is evaluated, not where it is assigned or named."""
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "expr_stmt":
        return parent.children[-1] is node
    if parent.type in {"for_stmt", "sync_comp_for", "comp_for", "with_item", "param"}:
        return parent.children[-1] is node or parent.children[3:4] == [node]
    if parent.type in {"trailer", "argument"}:
        return parent.children[0] is not node and parent.children[0].value not in {"."}
    if parent.type in {"atom_expr", "power"}:
        return (parent.children[0] is node and parent.type == "atom_expr") or _is_operand(node)
    return parent.type not in {"del_stmt", "exprlist", "testlist_star_expr", "except_clause"}


def _is_operand(node: Any) -> bool:
    return node.parent.type == "power" and "**" in [
        getattr(c, "value", "") for c in node.parent.children
    ]


def _is_pure(node: Any) -> bool:
    if node.type in _IMPURE or (node.type == "operator" and node.value == ":="):
        return False
    if node.type == "trailer" and node.children[0].value == "(":
        call = node.parent.children
        named = call[0].type == "name" and call[0].value in _PURE_CALLS and call[1] is node
        if not named:
            return False
    return all(_is_pure(child) for child in getattr(node, "children", ()))


def is_condition(node: Any) -> bool:
    """Whether only the truth of an expression counts."""
    parent = node.parent
    if parent.type in {"if_stmt", "while_stmt", "not_test", "comp_if", "assert_stmt"}:
        return True
    return bool(parent.type == "test" and parent.children[2] is node)


def assigned(statement: Any, dropped: bool) -> tuple[Any, str] | None:
    """The value of an assignment, and what it would be if nothing changed, if that is known."""
    target, sign, value = statement.children[0], statement.children[1], statement.children[-1]
    if len(statement.children) != 3 or not _is_pure(value) or value.type not in _EXPRESSIONS:
        return None
    if sign.value in {"+=", "-="}:
        return value, "0"
    if sign.value == "=" and dropped and target.type in {"name", "atom_expr"} and _is_pure(target):
        return value, str(target.get_code(include_prefix=False))
    return None


def instrumented(source: str, probes: Iterable[tuple[str, Probe]]) -> str:
    """A module's source in which expressions are probed; see :func:`noticing`.

    Args:
        source: of the module.
        probes: with the identifiers of their mutants. No two overlap, unless they are of one
            expression.
    """
    by_place: dict[tuple[int, int], list[tuple[str, Probe]]] = defaultdict(list)
    for item in probes:
        by_place[item[1].start, item[1].end].append(item)
    parts = []
    done = 0
    for (start, end), items in sorted(by_place.items()):
        assert start >= done, f"probes overlap at {start}"
        calls = "".join(
            f", {name!r}, {probe.condition}, lambda: ({probe.variant})" for name, probe in items
        )
        parts += [source[done:start], f"{NAME}(({source[start:end]}){calls})"]
        done = end
    return "".join([*parts, source[done:]])


def noticing(found: set[str]) -> Noticing:
    """What an instrumented module calls: note the mutants whose value differs."""

    def probe(value: Any, *mutants: Any) -> Any:
        for i in range(0, len(mutants), 3):
            name, condition, variant = mutants[i : i + 3]
            if name in found:
                continue
            try:
                other = variant()
                same = bool(other) is bool(value) if condition else _same(value, other)
            except Exception:
                same = False
            if not same:
                found.add(name)
        return value

    return probe


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other or (isinstance(one, _IMMUTABLE) and bool(one == other))
