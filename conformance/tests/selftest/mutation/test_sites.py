"""What the operators make of a module, and what they leave alone."""

from __future__ import annotations

import textwrap

import pytest
from bentpipe_conformance.selftest.mutation.sites import Mutant, mutants_of_source

CASES = [
    ("if a < b:\n    c()", {"lt-to-le": ["if a <= b:"], "lt-to-ge": ["if a >= b:"]}),
    ("return a == b", {"eq-to-ne": ["return a != b"]}),
    ("return a is None", {"is-to-is-not": ["return a is not None"]}),
    ("return a in b", {"negate-membership": ["return a not in b"]}),
    ("return a not in b", {"negate-membership": ["return a in b"]}),
    ("return a + 2", {"add-to-sub": ["return a - 2"], "plus-one": ["return a + 3"],
                      "minus-one": ["return a + 1"]}),
    ("return a and b", {"and-to-or": ["return a or b"]}),
    ("return not a", {"drop-not": ["return a"]}),
    ("return -a", {"drop-minus": ["return a"]}),
    ("return a[i:j]", {"shift-slice": ["return a[i + 1:j]", "return a[i:j - 1]"]}),
    ("return a[i:]", {"shift-slice": ["return a[i + 1:]", "return a[i:-1]"]}),
    ("if a:\n    c()\nelse:\n    d()", {"negate-condition": ["if not a:"]}),
    ("if a and b:\n    c()", {"negate-condition": ["if not (a and b):"]}),
    ("return b if a.c else d", {"negate-condition": ["return b if not a.c else d"]}),
    ("a.b = c", {"drop-assignment": ["pass"]}),
    ("a += c", {"drop-assignment": ["pass"], "swap-augmented": ["a -= c"]}),
    ("a.b(c)", {"drop-statement": ["pass"]}),
    ("while a:\n    break", {"drop-statement": ["pass"]}),
    ("if a:\n    return b\nreturn c", {"drop-statement": ["pass"]}),
    ("x = True\nreturn x", {"true-to-false": ["x = False"]}),
]  # fmt: skip


def found(source: str, **given: object) -> list[Mutant]:
    return mutants_of_source("m", textwrap.dedent(source), **given)  # type: ignore[arg-type]


def changes(body: str) -> dict[str, list[str]]:
    source = f"def f(a, b, c, d, i, j):\n{textwrap.indent(body, '    ')}\n"
    by_operator: dict[str, list[str]] = {}
    for item in mutants_of_source("m", source):
        by_operator.setdefault(item.operator, []).append(item.changed(source))
    return by_operator


@pytest.mark.parametrize(("body", "expected"), CASES, ids=[body for body, _ in CASES])
def test_statement_has_the_mutants_of_its_operators(
    body: str, expected: dict[str, list[str]]
) -> None:
    made = changes(body)
    assert {name: made.get(name) for name in expected} == expected


def test_every_mutant_is_code_and_differs_from_the_others() -> None:
    source = "def f(a, b, c, d, i, j):\n" + "".join(
        textwrap.indent(f"{body}\n", "    ") for body, _ in CASES
    )
    made = [item.applied(source) for item in mutants_of_source("m", source)]
    for code in made:
        compile(code, "m", "exec")
    assert len({"".join(code.split()) for code in [source, *made]}) == len(made) + 1


@pytest.mark.parametrize(
    "source",
    [
        '"""Docstring of 1 + 1."""\n',
        "from a import b\n",
        "def f(a: int | None) -> int | None: ...\n",
        "x: int | str\n",
        "if TYPE_CHECKING:\n    x = 1\n",
        "def f(a):\n    assert a > 1\n",
        "def f(a):\n    return f'{a + 1}'\n",
        "def __repr__(self):\n    return self.x + 1\n",
        "def f(self):\n    self.tell(1)\n",
        "def f(self):\n    if self.tell is not None:\n        self.tell(1)\n",
        "def f(a):\n    g(**a)\n",
        "@g(1)\ndef f(a): ...\n",
    ],
)
def test_what_only_tells_a_reader_or_a_type_checker_has_no_mutants(source: str) -> None:
    made = mutants_of_source("m", source, silent={"tell"})
    assert [item.id for item in made if item.operator != "drop-statement"] == []


def test_exception_is_raised_or_not_but_its_message_stays() -> None:
    made = found("def f(a):\n    if a:\n        raise ValueError(f'{a}' + str(a - 1))\n    b()\n")
    operators = [item.operator for item in made]
    assert operators == ["negate-condition", "drop-statement", "drop-statement"]


def test_constructor_keeps_its_attributes() -> None:
    source = "class A:\n    def __init__(self) -> None:\n        self.a = a\n        self.b = b\n"
    assert found(source) == []


def test_function_returns_early_with_every_answer_it_may_give() -> None:
    source = "def f(a) -> {}:\n    b()\n    c()\n"
    made = {
        kind: [item.code.strip() for item in found(source.format(kind))
               if item.operator == "return-early"]
        for kind in ("None", "bool", "int | None", "int")
    }  # fmt: skip
    assert made == {
        "None": ["return"],
        "bool": ["return True", "return False"],
        "int | None": ["return None"],
        "int": [],
    }


def test_class_or_function_left_out_has_no_mutants() -> None:
    source = "class A:\n    x = 1\n    def f(self):\n        return self.x + 1\n"
    functions = {
        left_out: {item.function for item in found(source, left_out={left_out})}
        for left_out in ("A", "A.f", "A*")
    }
    assert functions == {"A": {"A.f"}, "A.f": {"A"}, "A*": set()}


def test_identifiers_survive_edits_elsewhere() -> None:
    body = "class A:\n    def f(self, a):\n        return a + 1 if a > 1 else a - 1\n"
    before = found(body)
    after = found(f'"""Text."""\n\nimport os\n\n\nclass C:\n    z = 3\n\n\n{body}')
    assert {item.id for item in before} < {item.id for item in after}
    assert len({item.id for item in before}) == len(before) > 5


def test_identifier_changes_with_its_line() -> None:
    (one,) = found("def f(a, b):\n    return a and b\n")
    (other,) = found("def f(a, b):\n    return a and  b or a\n")[:1]
    assert one.function == other.function == "f"
    assert one.id != other.id


def test_mutants_of_one_line_are_numbered() -> None:
    made = [item.id for item in found("def f(a):\n    return a.b is None or a.c is None\n")]
    first, second = [name for name in made if "is-to-is-not" in name]
    assert second == f"{first}.2"
