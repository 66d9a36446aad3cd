"""Options and help texts that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Option = Callable[[Any], Any]
"""What decorates a command with one option or more."""


def examples(*lines: str, more: str = "") -> str:
    """The end of a help text: command lines, whose ``bentpipe`` may be left out, and ``more``."""
    told = [f"  {line if 'bentpipe ' in line else f'bentpipe {line}'}" for line in lines]
    return "\n".join(["\b", "Examples:", *told, *([more] if more else [])])


def all_of(*options: Option) -> Option:
    """Several options as one, in this order in the help text."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def json_option(what: str) -> Option:
    """``--json``, whose help is ``what``."""
    return click.option("--json", "as_json", is_flag=True, help=what)


def out_option(what: str, *, folder: bool = True) -> Option:
    """``--out``, a directory or, with ``folder`` False, any path."""
    return click.option("--out", type=click.Path(path_type=Path, file_okay=not folder), help=what)


def bed_option(name: str, what: str, *more: str) -> Option:
    """``--bed``, passed as ``name``: a place with a kernel, or one of ``more``."""
    places = ["auto", "uml-virtual", "uml", "host", *more]
    return click.option(
        "--bed", name, type=click.Choice(places), default="auto", show_default=True, help=what
    )


def profile_option() -> Option:
    """``--profile``, one of any suite."""
    from bentpipe_conformance.engine.suite import load_profiles, load_suites

    known = "; ".join(
        f"{suite.protocol}: {' or '.join(suite.profiles)}" for suite in load_suites().values()
    )
    return click.option(
        "--profile", type=click.Choice(load_profiles()),
        help=f"Requirements to judge ({known}; default: the suite's first).",
    )  # fmt: skip


link_option = click.option(
    "--link", default="geo", show_default=True, help="Link profile: ID or TOML file."
)
seed_option = click.option(
    "--seed", default=1, show_default=True, help="Seed of everything random."
)
models_option = click.option(
    "--models", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with pom.xml and the models [tla, here or above].",
)  # fmt: skip


def memory_option(what: str) -> Option:
    """``--memory`` of the model checker, whose help is ``what``."""
    return click.option(
        "--memory", type=click.IntRange(64), default=2048, show_default=True, help=what
    )
