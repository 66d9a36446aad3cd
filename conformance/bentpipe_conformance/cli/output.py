"""What commands print: text, tables and JSON on standard output, progress on standard error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

_UNLIMITED = 1 << 20
"""Columns of a file or a pipe: nothing is folded for a program that reads it."""

COUNTED = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
"""What a bar over a known number of things shows."""


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}
"""What a terminal could obey, as text to show in its place: all controls but tab and line feed."""


def harmless(text: str) -> str:
    """A text without the control characters by which it could command a terminal."""
    return text.translate(_CONTROLS)


class _Safe(Console):
    """A console on which texts of implementations, files and captures cannot command a terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string that is to be printed."""
        return super().render_str(harmless(text), **options)


class _Plain(_Safe):
    """A console that is no terminal, without the blanks that fill the last column of a table."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as any console does."""
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))
        self.file.flush()


def output(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Standard output, or standard error; lines are folded on a terminal only."""
    console = _Safe(stderr=stderr, quiet=quiet)
    if console.is_terminal:
        return console
    return _Plain(stderr=stderr, quiet=quiet, width=_UNLIMITED)


def plain_table(*columns: str) -> Table:
    """A table without lines whose cells are folded, never cut, where the terminal is narrow."""
    headers = (Column(column, overflow="fold") for column in columns)
    return Table(*headers, box=None, pad_edge=False, header_style="bold")


def print_json(value: Any) -> None:
    """Machine-readable output on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error if that is a terminal.

    Tell what it yields what is being done, how much of that is done, and of how much.
    """
    console = output(stderr=True, quiet=quiet)
    shown = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*shown, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what)

        def told(stage: str, done: int, total: int) -> None:
            bar.update(task, description=f"{what}: {stage}", completed=done, total=total)

        yield told


@contextmanager
def counting(
    what: str, total: int, done: int = 0, *, quiet: bool = False
) -> Iterator[Callable[..., None]]:
    """A bar on standard error if that is a terminal; call what it yields after each item."""
    console = output(stderr=True, quiet=quiet)
    with Progress(*COUNTED, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda *_: bar.advance(task)
