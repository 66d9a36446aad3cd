"""What a designer may get wrong in a specification, as operators on the syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bentpipe_conformance.models.mutation.tree import Node

_CONJUNCTIONS = frozenset({"$ConjList", "\\land"})
_DISJUNCTIONS = frozenset({"$DisjList", "\\lor"})
_RESETS = frozenset({"number", "TRUE", "FALSE", "$SetEnumerate", "$Tuple"})
_SETS = frozenset({"\\union", "\\intersect", "\\", "$SetEnumerate", "$SubsetOf", "$SetOfAll", ".."})
_TRUTHS = frozenset({
    "=", "/=", "<", ">", "\\leq", "\\geq", "\\in", "\\notin", "\\lnot", "=>", "\\subseteq",
    "TRUE", "FALSE", "$BoundedExists", "$BoundedForall",
}) | _CONJUNCTIONS | _DISJUNCTIONS  # fmt: skip

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "\\leq": ("<=", "=<", "\\leq"),
    "\\geq": (">=", "\\geq"),
    "/=": ("#", "/="),
    "\\union": ("\\cup", "\\union"),
    "\\intersect": ("\\cap", "\\intersect"),
}
"""How an infix operator may stand in the source, where it is not by its name."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change: what the node is replaced by, or with a gap, what its infix symbol is."""

    operator: str
    node: Node
    code: str
    symbol: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: its parent, and which child it is; how to read its source.

    Attributes:
        parent: None for the body of a definition.
        at: the number of the child.
        text: the source of a node.
        variables: of the module.
    """

    parent: Node | None
    at: int
    text: Callable[[Node], str]
    variables: frozenset[str]


Operator = Callable[[Node, Place], Iterator[Edit]]


def assigned(node: Node, variables: frozenset[str]) -> str:
    """The variable that an expression ``x' = e`` determines; empty for others."""
    if node.operator != "=" or not node.children or node.children[0].operator != "'":
        return ""
    name = node.children[0].children[0].operator
    return name if name in variables else ""


def _conjunct(node: Node, place: Place) -> Iterator[Edit]:
    inside = place.parent is not None and place.parent.operator in _CONJUNCTIONS
    if not inside or node.is_action or node.operator in _CONJUNCTIONS:
        return
    yield Edit("drop-conjunct", node, "TRUE")
    if node.operator == "\\lnot":
        yield Edit("negate-conjunct", node, f"({place.text(node.children[0])})")
    else:
        yield Edit("negate-conjunct", node, f"(~({place.text(node)}))")


def _assignment(node: Node, place: Place) -> Iterator[Edit]:
    name = assigned(node, place.variables)
    if not name or place.text(node.children[1]).strip() == name:
        return
    value = node.children[1]
    if value.operator in ("+", "-") and place.text(value.children[0]) == name:
        return  # a literal less by one does the same
    if value.operator == "$Except" and len(value.children) == 2:
        return  # so does its only field
    reset = value.operator in _RESETS and not value.children
    yield Edit("forget-reset" if reset else "forget-assignment", value, name)


def _branch(node: Node, place: Place) -> Iterator[Edit]:
    if place.parent is not None and place.parent.operator in _DISJUNCTIONS:
        if node.operator not in _DISJUNCTIONS:
            yield Edit("skip-branch", node, "FALSE")
    elif node.operator == "$IfThenElse":
        yield Edit("skip-branch", node.children[0], "TRUE")
        yield Edit("skip-branch", node.children[0], "FALSE")
    elif node.operator == "$Case" and len(node.children) > 1:
        for arm in node.children:
            if arm.operator == "$Pair" and len(arm.children) == 2:
                yield Edit("skip-branch", arm.children[0], "FALSE")


_SWAPPED: Mapping[str, tuple[str, str]] = {
    "<": ("boundary", "<="),
    "\\leq": ("boundary", "<"),
    ">": ("boundary", ">="),
    "\\geq": ("boundary", ">"),
    "+": ("plus-minus", "-"),
    "-": ("plus-minus", "+"),
    "\\union": ("union-difference", "\\"),
    "\\intersect": ("union-difference", "\\cup"),
    "\\": ("union-difference", "\\cup"),
    "\\land": ("and-or", "\\/"),
    "\\lor": ("and-or", "/\\"),
}


def _infix(node: Node, place: Place) -> Iterator[Edit]:
    if node.operator not in _SWAPPED or len(node.children) != 2:
        return
    if node.operator in ("\\land", "\\lor") and (node.is_action or _is_mixed(node, place)):
        return
    name, symbol = _SWAPPED[node.operator]
    spelled = _SPELLINGS.get(node.operator, (node.operator,))
    if node.operator in ("\\land", "\\lor"):
        left, right = (f"({place.text(child)})" for child in node.children)
        yield Edit(name, node, f"({left} {symbol} {right})")
    else:
        yield Edit(name, node, symbol, spelled)


def _is_mixed(node: Node, place: Place) -> bool:
    """Whether it is part of a longer chain; one change of the whole is enough."""
    return place.parent is not None and place.parent.operator == node.operator


def _one_more(node: Node, _place: Place) -> Iterator[Edit]:
    if node.operator != "number":
        return
    number = int(node.value)
    yield Edit("one-more", node, str(number + 1))
    if number > 0:
        yield Edit("one-less", node, str(number - 1))


def _one_beside(node: Node, place: Place) -> Iterator[Edit]:
    """One more or less of what is assigned, and is no literal."""
    parent = place.parent
    if parent is None or place.at != 1 or not assigned(parent, place.variables):
        return
    if node.operator in ("Max", "Min"):
        yield Edit("one-more", node, f"({place.text(node)} + 1)")
        yield Edit("one-less", node, f"({place.text(node)} - 1)")


def _operand(node: Node, place: Place) -> Iterator[Edit]:
    """What is added, taken away or appended is forgotten."""
    if node.operator in ("\\union", "\\", "\\intersect", "\\o") and len(node.children) == 2:
        yield Edit("forget-operand", node, f"({place.text(node.children[0])})")
        if node.operator in ("\\union", "\\o"):
            yield Edit("forget-operand", node, f"({place.text(node.children[1])})")
    elif node.operator == "Append" and len(node.children) == 2:
        yield Edit("forget-message", node, f"({place.text(node.children[0])})")


def _field(node: Node, place: Place) -> Iterator[Edit]:
    """A field of a message without its value, or one of a record that keeps its old value."""
    parent = place.parent
    if node.operator != "$Pair" or parent is None or len(node.children) != 2:
        return
    value = node.children[1]
    if parent.operator == "$Except" and not place.text(value).startswith(("@ + 1", "@ - 1")):
        reset = value.operator in _RESETS and not value.children
        yield Edit("forget-reset" if reset else "forget-assignment", value, "@")
    elif parent.operator == "$RcdConstructor" and value.operator != "string":
        neutral = "{}" if value.operator in _SETS else "FALSE" if value.operator in _TRUTHS else "0"
        if place.text(value) != neutral:
            yield Edit("forget-field", value, neutral)


def _truth(node: Node, place: Place) -> Iterator[Edit]:
    if node.operator in ("TRUE", "FALSE"):
        yield Edit("opposite", node, "FALSE" if node.operator == "TRUE" else "TRUE")
    elif node.operator in ("=", "/=", "\\in", "\\notin", "\\subseteq", "\\lnot"):
        inside = place.parent is not None and place.parent.operator in _CONJUNCTIONS
        if not inside and not node.is_action:
            yield Edit("opposite", node, f"(~({place.text(node)}))")


_EXTREMES = {"Max": "Min", "Min": "Max", "Lowest": "Highest", "Highest": "Lowest"}
_QUANTIFIERS = {"$BoundedForall": ("\\A", "\\E"), "$BoundedExists": ("\\E", "\\A")}


def _extreme(node: Node, place: Place) -> Iterator[Edit]:
    text = place.text(node)
    if node.operator in _EXTREMES and node.children:
        yield Edit("other-extreme", node, text.replace(node.operator, _EXTREMES[node.operator], 1))
    elif node.operator in _QUANTIFIERS and not node.is_action:
        before, after = _QUANTIFIERS[node.operator]
        yield Edit("other-quantifier", node, text.replace(before, after, 1))


OPERATORS: tuple[Operator, ...] = (
    _conjunct, _assignment, _branch, _infix, _one_more, _one_beside, _operand, _field, _truth,
    _extreme,
)  # fmt: skip
