"""``bentpipe list`` and ``bentpipe show``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import click
from bentpipe_spec.document import specification, specifications
from bentpipe_spec.registry import Requirement, load_requirements
from rich.markup import escape
from rich.table import Column, Table

from bentpipe_conformance.cli.options import examples, json_option
from bentpipe_conformance.cli.outcome import USAGE, Failure
from bentpipe_conformance.cli.output import output, plain_table, print_json
from bentpipe_conformance.engine.case import Case, load_cases
from bentpipe_conformance.engine.checking import Checker, load_checkers
from bentpipe_conformance.engine.suite import UnknownSuite, load_suites, suite_of


def requirement_rows() -> list[dict[str, Any]]:
    """Every requirement as ``list requirements --json`` prints it."""
    return [_requirement(item) for item in load_requirements().values()]


def case_rows() -> list[dict[str, Any]]:
    """Every case as ``list cases --json`` prints it."""
    return [_case(item) for item in _cases().values()]


def _cases() -> dict[str, Case]:
    """The cases of every suite."""
    return {name: item for suite in load_suites() for name, item in load_cases(suite).items()}


def iut_rows() -> list[dict[str, Any]]:
    """Every known implementation as ``list iuts --json`` prints it."""
    from bentpipe_conformance.iut.description import list_iuts

    return [
        {"id": item.id, "name": item.name, "suite": item.suite.name, "attach": item.attach.kind,
         "ics": dict(item.ics)}
        for item in list_iuts()
    ]  # fmt: skip


def link_rows() -> list[dict[str, Any]]:
    """Every link profile as ``list links --json`` prints it."""
    from bentpipe_reference.common.link.profile import load_profiles

    return [
        {"id": item.id, "title": item.title,
         "forward_bit_s": item.forward.rate_bit_s, "return_bit_s": item.return_.rate_bit_s,
         "rtt_s": round(item.forward.delay_s + item.return_.delay_s, 6), "source": item.source}
        for item in load_profiles().values()
    ]  # fmt: skip


_KINDS: dict[str, tuple[Callable[[], list[dict[str, Any]]], tuple[str, ...]]] = {
    "requirements": (requirement_rows, ("id", "level", "testability", "title")),
    "cases": (case_rows, ("id", "requirements", "title")),
    "iuts": (iut_rows, ("id", "suite", "attach", "name")),
    "links": (link_rows, ("id", "rtt_s", "forward_bit_s", "return_bit_s", "title")),
}


def _requirement(item: Requirement) -> dict[str, Any]:
    return {
        "id": item.id, "level": item.level, "title": item.title, "testability": item.testability,
        "source": list(item.source), "profiles": list(item.profiles), "condition": item.condition,
    }  # fmt: skip


@click.command("list", epilog=examples("list requirements", "list cases --json"))
@click.argument("kind", type=click.Choice(list(_KINDS)))
@json_option("Print an array of objects.")
def list_command(kind: str, as_json: bool) -> None:
    """List requirements, cases, implementations (iuts) or link profiles."""
    rows, columns = _KINDS[kind][0](), _KINDS[kind][1]
    if as_json:
        print_json(rows)
        return
    table = plain_table(*(column.replace("_", " ") for column in columns))
    for row in rows:
        table.add_row(*(escape(_cell(row[column])) for column in columns))
    output().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "unlimited" if value is None else str(value)


@click.command("show", epilog=examples("show SNR-FR-002", "show stp", "show geo --json"))
@click.argument("identifier")
@json_option("Print one object.")
def show_command(identifier: str, as_json: bool) -> None:
    """Show a requirement, case, implementation, link profile or specification in full."""
    if identifier in specifications():
        text = specification(identifier) + _left_open(identifier)
        if as_json:
            print_json({"id": identifier, "text": text})
        else:
            click.echo(text, nl=False)
        return
    if identifier in (requirements := load_requirements()):
        detail = _requirement_detail(requirements[identifier])
    elif identifier in (cases := _cases()):
        case = cases[identifier]
        detail = {"id": case.id, "title": case.title, "purpose": case.purpose, **_case(case),
                  "script": _qualified(case.script)}  # fmt: skip
    elif identifier in (others := {row["id"]: row for row in (*link_rows(), *iut_rows())}):
        detail = others[identifier]
    else:
        known = [*requirements, *cases, *others, *specifications()]
        raise Failure(f"nothing is called {identifier!r}; {_suggestion(identifier, known)}", USAGE)
    if as_json:
        print_json(detail)
    else:
        _print(detail)


def _left_open(folder: str) -> str:
    """What to say of rules of a specification that its suite does not judge yet."""
    suite = next((item for item in load_suites().values() if item.folder == folder), None)
    if suite is None:
        return ""
    wire = [item.id for item in suite.requirements().values() if item.testability == "wire"]
    left = [name for name in wire if name not in load_checkers(suite)]
    if not left:
        return ""
    title = "Rules that the suite does not judge yet"
    judged = f"Of {len(wire)} rules about packets it judges {len(wire) - len(left)}. Not judged:"
    return f"\n{title}\n{'-' * len(title)}\n\n{judged}\n\n" + "".join(f"* {n}\n" for n in left)


def _suggestion(identifier: str, known: Iterable[str]) -> str:
    """The names that ``identifier`` may stand for, or where to look."""
    names = {name.lower(): name for name in known}
    wanted = identifier.lower()
    close = [wanted] if wanted in names else get_close_matches(wanted, names)
    meant = " or ".join(names[name] for name in close)
    return f"did you mean {meant}?" if meant else "see 'bentpipe list requirements'"


def _requirement_detail(item: Requirement) -> dict[str, Any]:
    from bentpipe_conformance.models.coverage import evidence_for
    from bentpipe_conformance.selftest.mutants import mutants_of

    checker = _checker(item.id)
    detail = {**_requirement(item), "text": item.text}
    if item.difference:
        detail["difference"] = item.difference
    if item.alternatives:
        detail["alternatives"] = {name: dict(value) for name, value in item.alternatives.items()}
    detail["checker"] = _qualified(checker) if checker else None
    detail["cases"] = [case.id for case in _cases().values() if item.id in case.requirements]
    detail["mutants"] = list(mutants_of(item.id))
    detail["models"] = [
        f"{shown.model}: {shown.property} (runs: {', '.join(shown.runs) or 'none'}; "
        f"mutants: {', '.join(shown.mutants) or 'none'})"
        for shown in evidence_for(item.id)
    ]
    return detail


def _case(item: Case) -> dict[str, Any]:
    return {
        "id": item.id, "title": item.title, "requirements": list(item.requirements),
        "profiles": list(item.profiles), "needs": list(item.needs),
    }  # fmt: skip


def _qualified(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def _checker(requirement: str) -> Checker | None:
    """The checker of a requirement of any suite; some requirements are shown by models alone."""
    try:
        suite = suite_of(requirement)
    except UnknownSuite:
        return None
    return load_checkers(suite).get(requirement)


def _print(detail: dict[str, Any]) -> None:
    table = Table.grid(Column(style="bold", no_wrap=True), Column(overflow="fold"), padding=(0, 2))
    for key, value in detail.items():
        if value not in (None, "", []):
            lines = value if isinstance(value, list) else [value]
            table.add_row(key, escape("\n".join(map(str, lines))))
    output().print(table)
