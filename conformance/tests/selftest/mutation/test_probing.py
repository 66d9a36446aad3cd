"""Whether a mutant makes a difference is found on the true code."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from bentpipe_conformance.selftest.mutation.probing import NAME, instrumented, noticing
from bentpipe_conformance.selftest.mutation.sites import mutants_of_source


def felt(source: str, *arguments: Any, call: str = "f") -> tuple[Any, set[str], set[str]]:
    """The result of a call, the operators that make a difference in it, all that are probed."""
    source = textwrap.dedent(source)
    made = [item for item in mutants_of_source("m", source) if item.probe is not None]
    found: set[str] = set()
    space: dict[str, Any] = {NAME: noticing(found)}
    code = instrumented(source, [(item.id, item.probe) for item in made if item.probe])
    exec(compile(code, "m", "exec"), space)
    result = space[call](*arguments)
    named = {item.id: f"{item.operator} {item.changed(source)}" for item in made}
    return result, {named[name] for name in found}, set(named.values())


def test_boundary_that_is_not_met_makes_no_difference() -> None:
    source = "def f(a, b):\n    return 7 if a < b else 8\n"
    result, found, probed = felt(source, 1, 3)
    assert result == 7
    boundary = "lt-to-le return 7 if a <= b else 8"
    assert boundary in probed - found
    assert "lt-to-ge return 7 if a >= b else 8" in found
    assert boundary in felt(source, 3, 3)[1]


def test_expression_with_a_call_that_may_do_something_is_not_probed() -> None:
    _, _, probed = felt("def f(a):\n    return a.pop() + 1\n", [5])
    assert probed == {"plus-one return a.pop() + 2", "minus-one return a.pop() + 0"}


def test_truth_alone_counts_in_a_condition() -> None:
    source = "def f(a, b):\n    if a or b:\n        return 1\n    return 2\n"
    assert "or-to-and if a and b:" not in felt(source, 5, 7)[1]
    assert "or-to-and if a and b:" in felt(source, 5, 0)[1]


def test_assignment_of_the_same_value_makes_no_difference() -> None:
    source = "def f(a, b):\n    a = b\n    return a\n"
    assert felt(source, 2, 2)[1] == set()
    assert felt(source, 2, 3)[1] == {"drop-assignment pass"}


def test_equal_lists_count_as_different_because_one_may_be_changed() -> None:
    source = "def f(a, b):\n    a = b\n    return a\n"
    assert felt(source, [1], [1])[1] == {"drop-assignment pass"}


def test_adding_nothing_makes_no_difference() -> None:
    source = "def f(a, b):\n    a += b\n    return a\n"
    assert felt(source, 2, 0)[1] == set()
    assert felt(source, 2, 1)[1] == {"drop-assignment pass", "swap-augmented a -= b"}


def test_other_type_or_an_exception_counts_as_a_difference() -> None:
    assert "mul-to-div return a // b" in felt("def f(a, b):\n    return a * b\n", 0, 0)[1]
    assert "div-to-mul return a * b" in felt("def f(a, b):\n    return a / b\n", 0, 1)[1]


@pytest.mark.parametrize(
    "source",
    [
        "def f(a, b):\n    return [x for x in b if x > a]\n",
        "def f(a, b):\n    c = lambda x: x > a\n    return [x for x in b if c(x)]\n",
        "def f(a, b):\n    c = {}\n    c[a + 1] = b[1:]\n    return c\n",
        "def f(a, b):\n    for x in range(a + 1):\n        a -= x\n    return a, b\n",
        "def f(a, b):\n    return (a <\n            b[0])  # a comment\n",
        "def f(a, b):\n    return max(a, *b, key=lambda x: -x)\n",
        "def f(a, b):\n    if (c := a + 1) > 2:\n        return c\n    return b\n",
        "def f(a, b):\n    del b[a - 2]\n    return b\n",
    ],
)
def test_probed_code_does_what_the_code_does(source: str) -> None:
    space: dict[str, Any] = {}
    exec(source, space)
    assert felt(source, 3, [2, 5])[0] == space["f"](3, [2, 5])
