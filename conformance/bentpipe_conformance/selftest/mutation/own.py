"""Mutation operators that cosmic-ray does not have, written against its interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cosmic_ray.operators.operator import Example, Operator
from parso import parse
from parso.python.tree import Number
from parso.tree import BaseNode

Node = Any
"""A node or leaf of parso's tree."""

Position = tuple[tuple[int, int], tuple[int, int]]

_LEAVING = frozenset({"return_stmt", "raise_stmt", "del_stmt", "yield_expr"})
_LEAVING_WORDS = frozenset({"return", "raise", "break", "continue"})
_CALLS = frozenset({"atom_expr", "power", "await_expr"})


def _code(node: Node) -> str:
    code: str = node.get_code(include_prefix=False)
    return code


def _parsed(code: str) -> Node:
    """A node that prints as this code, whatever it is."""
    return parse(code)


class _Whole(Operator):
    """An operator that replaces a whole node, each time with another code."""

    in_place = False
    """It leaves the node that it is given as it is."""

    examples_of: tuple[tuple[str, str], ...] = ()

    def replacements(self, node: Node) -> list[str]:
        """What stands in its place in turn; nothing where the operator does not apply."""
        raise NotImplementedError

    def mutation_positions(self, node: Node) -> Iterator[Position]:
        """See :class:`Operator`."""
        for _ in self.replacements(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """See :class:`Operator`."""
        return _parsed(self.replacements(node)[index])

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """See :class:`Operator`."""
        return tuple(Example(before, after) for before, after in cls.examples_of)


class DropStatement(_Whole):
    """A call, or a statement that leaves a block, does nothing."""

    examples_of = (("f(x)\n", "pass\n"), ("for i in x:\n  break\n", "for i in x:\n  pass\n"))

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        if node.parent is None or node.parent.type != "simple_stmt":
            return []
        if node.type in _CALLS or node.type in {"raise_stmt", "del_stmt", "yield_expr"}:
            return ["pass"]
        if node.type == "keyword" and _code(node) in _LEAVING_WORDS:
            return ["pass"]
        if node.type == "return_stmt" and _is_followed(node.parent):
            return ["pass"]
        return []


def _is_followed(statement: Node) -> bool:
    """Whether anything in the function can run after this statement if it does not leave."""
    node = statement
    while node.parent is not None and node.type not in {"funcdef", "file_input"}:
        following = node.get_next_sibling()
        if node.parent.type == "suite" and following is not None and following.type != "newline":
            return True
        if node.type in {"for_stmt", "while_stmt"}:
            return True
        node = node.parent
    return False


class DropAssignment(_Whole):
    """An assignment, also an augmented one, does nothing.

    Only to attributes and subscripts outside constructors, and to names that have a value already:
    without others the code would break wherever it is read.
    """

    examples_of = (("self.x = 1\n", "pass\n"), ("x += 1\n", "pass\n"))

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        if node.type != "expr_stmt" or not isinstance(node, BaseNode):
            return []
        target, sign = node.children[0], node.children[1]
        if sign.type == "annassign":
            return []
        if _code(sign) != "=":
            return ["pass"]
        function = _function_of(node)
        if function is None or function.name.value == "__init__":
            return []
        targets = target.children[::2] if target.type == "testlist_star_expr" else [target]
        kept = all(
            item.type in _CALLS or (item.type == "name" and _is_bound(item, function, node))
            for item in targets
        )
        return ["pass"] if kept else []


def _function_of(node: Node) -> Node | None:
    found = node.parent
    while found is not None and found.type != "funcdef":
        found = found.parent
    return found


def _is_bound(name: Node, function: Node, before: Node) -> bool:
    """Whether a local name has a value before a statement, as far as the order of lines tells."""
    if any(name.value == item.name.value for item in function.get_params()):
        return True
    names = [leaf for leaf in _leaves(function) if leaf.type == "name" and leaf.value == name.value]
    return any(leaf.is_definition() and leaf.end_pos <= before.start_pos for leaf in names)


def _leaves(node: Node) -> Iterator[Node]:
    if hasattr(node, "children"):
        for child in node.children:
            yield from _leaves(child)
    else:
        yield node


class SwapAugmented(_Whole):
    """``+=`` becomes ``-=`` and the like."""

    examples_of = (("x += y\n", "x -= y\n"),)
    _SWAPS = {  # noqa: RUF012
        "+=": "-=", "-=": "+=", "*=": "//=", "//=": "*=", "/=": "*=", "|=": "&=", "&=": "|=",
        "^=": "|=", "<<=": ">>=", ">>=": "<<=",
    }  # fmt: skip

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        if node.type != "operator" or node.parent is None or node.parent.type != "expr_stmt":
            return []
        other = self._SWAPS.get(_code(node))
        return [] if other is None else [other]


class NegateCondition(_Whole):
    """A condition becomes its opposite; where there are two branches they are swapped.

    Not of a comparison and of ``not x``, which other operators turn round.
    """

    examples_of = (("if a or b:\n  f()\n", "if not (a or b):\n  f()\n"),)

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        if not _is_condition(node) or node.type == "not_test":
            return []
        if isinstance(node, BaseNode) and node.type == "comparison" and len(node.children) == 3:
            return []
        code = _code(node)
        return [f"not {code}" if node.type in {"name", "atom_expr", "power"} else f"not ({code})"]


def _is_condition(node: Node) -> bool:
    parent = node.parent
    if parent is None or node.type in {"keyword", "operator"}:
        return False
    place = next(n for n, child in enumerate(parent.children) if child is node)
    if parent.type in {"if_stmt", "while_stmt"}:
        return _code(parent.children[place - 1]) in {"if", "elif", "while"}
    if parent.type == "test":
        return place == 2
    return parent.type == "comp_if" and place == 1


class NegateMembership(_Whole):
    """``in`` becomes ``not in`` and the other way round."""

    examples_of = (("a in b", "a not in b"), ("a not in b", "a in b"))

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        if node.parent is None or node.parent.type != "comparison":
            return []
        if node.type == "keyword" and _code(node) == "in":
            return ["not in"]
        if node.type == "comp_op" and _code(node).split() == ["not", "in"]:
            return ["in"]
        return []


class ReturnEarly(_Whole):
    """A function returns before it does anything.

    With nothing where it returns nothing, with both answers where it returns a truth value, with
    None where it may return that.
    """

    examples_of = (("def f() -> None:\n  a()\n  b()\n", "def f() -> None:\n  return\n  b()\n"),)

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        suite = node.parent
        if suite is None or suite.type != "suite" or suite.parent.type != "funcdef":
            return []
        body = [item for item in suite.children if item.type != "newline" and not _is_text(item)]
        if not body or body[0] is not node or suite.parent.annotation is None:
            return []
        if suite.parent.name.value in {"__init__", "__post_init__"}:
            return []
        kind = _code(suite.parent.annotation)
        if kind == "None":
            answers = ["return"] if len(body) > 1 or node.type != "simple_stmt" else []
        elif kind == "bool":
            answers = ["return True", "return False"]
        elif kind.endswith("| None"):
            answers = ["return None"]
        else:
            answers = []
        return [f"{item}\n" for item in answers if item != _code(node).strip()]


def _is_text(node: Node) -> bool:
    return isinstance(node, BaseNode) and node.children[0].type in {"string", "strings"}


class ShiftSlice(_Whole):
    """A slice begins one later or ends one earlier. Bounds that are numbers have other mutants."""

    examples_of = (("a[i:j]", "a[i + 1:j]"), ("a[i:]", "a[i + 1:]"), ("a[:j]", "a[1:j]"))

    def replacements(self, node: Node) -> list[str]:
        """See the base class."""
        if node.type == "operator" and _code(node) == ":" and _is_subscript(node):
            return ["1:", ":-1"]
        if node.type != "subscript" or not isinstance(node, BaseNode):
            return []
        parts = [_code(child) for child in node.children]
        if parts.count(":") != 1:
            return []
        colon = parts.index(":")
        lower, upper = node.children[:colon], node.children[colon + 1 :]
        first, last = "".join(parts[:colon]), "".join(parts[colon + 1 :])
        found = []
        if not lower:
            found.append(f"1:{last}")
        elif not isinstance(lower[0], Number):
            found.append(f"{_grouped(first, lower[0])} + 1:{last}")
        if not upper:
            found.append(f"{first}:-1")
        elif not isinstance(upper[0], Number):
            found.append(f"{first}:{_grouped(last, upper[0])} - 1")
        return found


def _is_subscript(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type == "trailer" and _code(parent.children[0]) == "["


def _grouped(code: str, node: Node) -> str:
    simple = {"name", "atom_expr", "power", "arith_expr", "term", "atom", "number"}
    return code if node.type in simple else f"({code})"
