"""The command ``bentpipe`` and what its subcommands share: errors, exit statuses, output."""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import version
from typing import Any

import click

PASSED, FAILED, USAGE, OPEN = 0, 1, 2, 3
"""Exit statuses: pass, fail, wrong usage, inconclusive or error."""

_COMMANDS = {
    "certify": "certify",
    "list": "listing",
    "show": "listing",
    "verify": "verify",
    "analyze": "verify",
    "bed": "bed",
    "selftest": "selftest",
    "experiment": "experiment",
    "model": "model",
    "trace-check": "trace_check",
    "stp": "stp",
}
"""Subcommand to its module; a module is imported only when its command is used."""


class Failure(click.ClickException):
    """An error of ours: one sentence with the mend, and the exit status."""

    def __init__(self, sentence: str, exit_code: int = OPEN) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Print the sentence to standard error."""
        click.echo(f"bentpipe: {self.format_message()}", file=file or sys.stderr)


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        del ctx
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"bentpipe_conformance.cli.{_COMMANDS[name]}")
        command: click.Command = module.COMMANDS[name]
        return command


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 pass, 1 fail, 2 wrong usage, 3 inconclusive or error.",
)
@click.version_option(version("bentpipe"), "-V", "--version", prog_name="bentpipe")
def bentpipe() -> None:
    """Certify transport protocols over satellite links, on recorded evidence.

    \b
    Examples:
      bentpipe certify linux --link geo         certify this kernel's TCP over a 600 ms link
      bentpipe list requirements                what is judged
      bentpipe show SNR-REC-001                 one requirement: text, source, cases, mutants
      bentpipe verify RUN                       judge a bundle's packets again
      bentpipe analyze file.pcapng --iut ADDR   judge a capture made elsewhere
    """


def print_json(value: Any) -> None:
    """Machine-readable output on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def main() -> None:
    """Entry point of the command; Ctrl-C ends with status 130."""
    try:
        # Outside its standalone mode click returns the status of an Exit instead of raising it.
        status = bentpipe(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else PASSED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("bentpipe: interrupted; finished cases are kept", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
