"""The mutation operators: a standard set of cosmic-ray's, and our own for what it lacks.

cosmic-ray has an operator for every pair of signs. Of these we take the boundary and the opposite
of a comparison and one other sign for each arithmetical one: further pairs yield mutants that are
killed wherever these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

MISSING = (
    "mutation needs cosmic-ray, which is not installed; run 'python -m pip install "
    '"bentpipe[mutation]"\', or in a checkout "python -m pip install -e \'.[mutation]\'"'
)


class MutationUnavailable(Exception):
    """The library of operators is not installed; the message says how to install it."""


_COMPARISONS = {
    "lt-to-le": ("Lt", "LtE"),
    "lt-to-ge": ("Lt", "GtE"),
    "le-to-lt": ("LtE", "Lt"),
    "le-to-gt": ("LtE", "Gt"),
    "gt-to-ge": ("Gt", "GtE"),
    "gt-to-le": ("Gt", "LtE"),
    "ge-to-gt": ("GtE", "Gt"),
    "ge-to-lt": ("GtE", "Lt"),
    "eq-to-ne": ("Eq", "NotEq"),
    "ne-to-eq": ("NotEq", "Eq"),
    "is-to-is-not": ("Is", "IsNot"),
    "is-not-to-is": ("IsNot", "Is"),
}
_ARITHMETIC = {
    "add-to-sub": ("Add", "Sub"),
    "sub-to-add": ("Sub", "Add"),
    "mul-to-div": ("Mul", "FloorDiv"),
    "div-to-mul": ("Div", "Mul"),
    "floordiv-to-mul": ("FloorDiv", "Mul"),
    "mod-to-floordiv": ("Mod", "FloorDiv"),
    "pow-to-mul": ("Pow", "Mul"),
    "shr-to-shl": ("RShift", "LShift"),
    "shl-to-shr": ("LShift", "RShift"),
    "or-to-and-bits": ("BitOr", "BitAnd"),
    "and-to-or-bits": ("BitAnd", "BitOr"),
    "xor-to-and-bits": ("BitXor", "BitAnd"),
}
_UNARY = {
    "drop-not": ("Delete_Not",),
    "drop-minus": ("Delete_USub",),
    "drop-invert": ("Delete_Invert",),
}


@dataclass(frozen=True, slots=True)
class Named:
    """An operator and what identifiers of mutants call it.

    Attributes:
        name: such as ``lt-to-le``.
        operator: of cosmic-ray's interface.
        index: which of the mutations at one position it is limited to; None for all of them.
    """

    name: str
    operator: Any
    index: int | None = None

    def mutations(self, node: Any) -> Iterator[int]:
        """The indices of its mutations of a node."""
        for index, _ in enumerate(self.operator.mutation_positions(node)):
            if self.index is None or index == self.index:
                yield index


@cache
def load_operators() -> tuple[Named, ...]:
    """Every operator.

    Raises:
        MutationUnavailable: cosmic-ray is not installed.
    """
    try:
        from cosmic_ray.operators import (
            binary_operator_replacement,
            boolean_replacer,
            comparison_operator_replacement,
            number_replacer,
            unary_operator_replacement,
        )
    except ImportError as error:
        raise MutationUnavailable(MISSING) from error
    from bentpipe_conformance.selftest.mutation import own

    def kept(module: Any, prefix: str, names: Mapping[str, tuple[str, ...]]) -> list[Named]:
        return [
            Named(name, getattr(module, "_".join((prefix, *parts)))())
            for name, parts in names.items()
        ]

    return (
        *kept(comparison_operator_replacement, "ReplaceComparisonOperator", _COMPARISONS),
        *kept(binary_operator_replacement, "ReplaceBinaryOperator", _ARITHMETIC),
        *kept(unary_operator_replacement, "ReplaceUnaryOperator", _UNARY),
        Named("plus-one", number_replacer.NumberReplacer(), 0),
        Named("minus-one", number_replacer.NumberReplacer(), 1),
        Named("and-to-or", boolean_replacer.ReplaceAndWithOr()),
        Named("or-to-and", boolean_replacer.ReplaceOrWithAnd()),
        Named("true-to-false", boolean_replacer.ReplaceTrueWithFalse()),
        Named("false-to-true", boolean_replacer.ReplaceFalseWithTrue()),
        Named("negate-condition", own.NegateCondition()),
        Named("negate-membership", own.NegateMembership()),
        Named("drop-statement", own.DropStatement()),
        Named("drop-assignment", own.DropAssignment()),
        Named("swap-augmented", own.SwapAugmented()),
        Named("return-early", own.ReturnEarly()),
        Named("shift-slice", own.ShiftSlice()),
    )
