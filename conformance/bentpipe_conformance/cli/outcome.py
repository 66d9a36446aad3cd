"""How a command ends: its exit status, and an error as one sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

PASSED, FAILED, USAGE, OPEN = 0, 1, 2, 3
"""Exit statuses: pass, fail, wrong usage, inconclusive or error."""


class Failure(click.ClickException):
    """An error of bentpipe: one sentence that names the remedy, and the exit status."""

    def __init__(self, sentence: str, exit_code: int = OPEN) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Print the sentence to standard error."""
        from bentpipe_conformance.cli.output import harmless

        click.echo(f"bentpipe: {harmless(self.format_message())}", file=file or sys.stderr)


@contextmanager
def explained(*errors: type[Exception], exit_code: int = OPEN) -> Iterator[None]:
    """Turn ``errors``, whose messages are sentences, into a :class:`Failure`."""
    try:
        yield
    except errors as error:
        raise Failure(str(error), exit_code) from error
