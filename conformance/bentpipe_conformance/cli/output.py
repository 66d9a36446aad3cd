"""What commands print: text, tables and JSON on standard output, progress on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

_UNLIMITED = 1 << 20
"""Columns of a file or a pipe: nothing is folded for a program that reads it."""

COUNTED = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
"""What a bar over a known number of things shows."""


def output(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Standard output, or standard error; lines are folded on a terminal only."""
    console = Console(stderr=stderr, quiet=quiet)
    if not console.is_terminal:
        console = Console(stderr=stderr, quiet=quiet, width=_UNLIMITED)
    return console


def plain_table(*columns: str) -> Table:
    """A table without lines whose cells are folded, never cut, where the terminal is narrow."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_json(value: Any) -> None:
    """Machine-readable output on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def counting(
    what: str, total: int, done: int = 0, *, quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """A bar on standard error if that is a terminal; call what it yields after each item."""
    console = output(stderr=True, quiet=quiet)
    with Progress(*COUNTED, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda *_: bar.advance(task)
