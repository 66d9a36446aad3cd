"""Where the operators apply in a module, and the source of each mutant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from bentpipe_conformance.models.mutation.operators import OPERATORS, Edit, Place, assigned
from bentpipe_conformance.models.mutation.tree import Module, Node
from bentpipe_conformance.selftest.mutation.change import Change, digest_of_line, fingerprint

_INITIAL = frozenset({"one-more", "one-less", "opposite", "plus-minus", "skip-branch"})
"""Operators that fit initial states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant(Change):
    """One change of a specification.

    Attributes:
        module: the model's name.
        definition: at the top of the module.
        operator: see :mod:`bentpipe_conformance.models.mutation.operators`.
    """

    definition: str

    def applied(self, source: str) -> str:
        """The module's source with the change.

        What follows in the last line keeps its column, for bullets are aligned by it.
        """
        line = source.find("\n", self.end)
        rest = source[self.end : line]
        if not rest.strip() or rest.lstrip().startswith("\\*"):
            return source[: self.start] + self.code + source[self.end :]
        wanted = self.end - (source.rfind("\n", 0, self.end) + 1)
        here = self.start - (source.rfind("\n", 0, self.start) + 1)
        width = here + len(self.code)
        if "\n" not in self.code and width <= wanted:
            gap = " " * (wanted - width)
        else:
            gap = "\n" + " " * wanted
        return source[: self.start] + self.code + gap + source[self.end :]


def mutants_of_module(
    model: str, module: Module, roots: tuple[str, ...], *,
    environment: Collection[str] = (), ghosts: Collection[str] = (),
) -> list[Mutant]:  # fmt: skip
    """Every mutant of a module, in the order of its lines; no two have the same source.

    Args:
        model: its name, for the identifiers.
        module: see :func:`.tree.read_module`.
        roots: the definitions whose rules count, with all that they need.
        environment: definitions that are no rule of the protocol: channels, budgets, ghosts.
        ghosts: variables whose assignments are no rules.
    """
    walk = _Walk(model, module, frozenset(ghosts), frozenset(environment))
    steps = {item.name for item in module.reachable(roots[1:])}
    for definition in module.reachable(roots):
        if definition.name not in environment:
            walk.visit(definition.body, None, 0, definition.name)
            if definition.name not in steps:  # of the initial states: each variable needs a value
                walk.found = [
                    item for item in walk.found
                    if item.definition != definition.name or item.operator in _INITIAL
                ]  # fmt: skip
    return sorted(walk.found, key=lambda item: (item.start, item.operator, item.code))


class _Walk:
    def __init__(
        self, model: str, module: Module, ghosts: frozenset[str], environment: frozenset[str]
    ) -> None:
        self.found: list[Mutant] = []
        self._model, self._module, self._ghosts = model, module, ghosts
        self._environment = environment
        self._known: set[bytes] = {fingerprint(module.source)}
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def visit(self, node: Node, parent: Node | None, at: int, name: str) -> None:
        """Note the mutants of a node and of those inside it."""
        if node.operator in ("UNCHANGED", "@", *self._environment) or self._is_ghost(node):
            return
        place = Place(parent, at, self._module.text, self._module.variables)
        for operator in OPERATORS:
            for edit in operator(node, place):
                self._note(edit, name)
        for number, child in enumerate(node.children):
            self.visit(child, node, number, name)

    def _is_ghost(self, node: Node) -> bool:
        """Whether it says something of a ghost alone: gives it a value, or compares it."""
        if assigned(node, self._module.variables) in self._ghosts:
            return True
        if node.operator == "$Pair":  # a field
            return node.children[0].value in self._ghosts or any(
                step.value in self._ghosts for step in node.children[0].children
            )
        compared = node.operator in ("=", "/=", "<", ">", "\\leq", "\\geq", "\\lnot")
        return compared and node.children[0].operator in self._ghosts

    def _note(self, edit: Edit, name: str) -> None:
        if "\n" in edit.code and ("/\\" in edit.code or "\\/" in edit.code):
            return  # bullets would lose their columns
        source = self._module.source
        start, end = edit.node.start, edit.node.end
        if edit.symbol:
            found = self._symbol(edit)
            if found is None:
                return
            start, end = found
        line = source.rfind("\n", 0, start) + 1
        stop = source.find("\n", start)
        text = source[line : stop if stop >= 0 else None].strip()
        draft = Mutant(
            id="", module=self._model, definition=name, operator=edit.operator,
            line=source.count("\n", 0, start) + 1, text=text, start=start, end=end, code=edit.code,
        )  # fmt: skip
        key = fingerprint(replace(draft, code=_bare(edit.code)).applied(source))
        if key in self._known:
            return
        self._known.add(key)
        self._counts[name, edit.operator, text] += 1
        number = self._counts[name, edit.operator, text]
        suffix = f".{number}" if number > 1 else ""
        identifier = f"{self._model}:{name}:{edit.operator}:{digest_of_line(text)}{suffix}"
        self.found.append(replace(draft, id=identifier))

    def _symbol(self, edit: Edit) -> tuple[int, int] | None:
        """Where an infix symbol stands: between its operands."""
        left, right = edit.node.children
        for spelled in edit.symbol:
            at = self._module.source.find(spelled, left.end, right.start)
            if at >= 0:
                return at, at + len(spelled)
        return None


def _bare(code: str) -> str:
    """Code without parentheses around a name."""
    inner = code[1:-1]
    return inner if code == f"({inner})" and inner.isidentifier() else code
