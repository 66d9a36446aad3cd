"""The command ``bentpipe`` and the names of its subcommands."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from importlib.metadata import version

import click

from bentpipe_conformance.cli.outcome import OPEN, PASSED, USAGE, Failure

_COMMANDS = {
    "certify": "certify.certify",
    "list": "listing.list_command",
    "show": "listing.show_command",
    "verify": "verify.verify",
    "analyze": "analyze.analyze",
    "bed": "bed.bed",
    "selftest": "selftest.selftest",
    "experiment": "experiment.experiment",
    "model": "model.model",
    "trace-check": "trace_check.trace_check",
    "stp": "stp.stp",
    "pep": "pep.pep",
    "fuzz": "bentpipe_fuzz.campaign.command.fuzz",
    "replay": "bentpipe_fuzz.campaign.command.replay",
    "compare": "bentpipe_fuzz.campaign.compare_command.compare",
}
"""Subcommand to its function: in a module of this package, or of another that stands above it. The
module is imported only when its command is used."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        del ctx
        if name not in _COMMANDS:
            return None
        module, _, function = _COMMANDS[name].rpartition(".")
        here = "" if "." in module else "bentpipe_conformance.cli."
        found = importlib.import_module(here + module)
        command: click.Command = getattr(found, function)
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
      bentpipe fuzz linux --minutes 2           conversations that nobody wrote down
    """


def main() -> None:
    """Entry point of the command; Ctrl-C ends it with status 130."""
    try:
        # Outside standalone mode click returns the status of an Exit instead of raising it.
        status = bentpipe(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else PASSED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("bentpipe: interrupted; finished cases are kept", err=True)
        sys.exit(130)
    except (OSError, MemoryError, RecursionError) as error:
        # What the machine refuses is never a verdict: status 1 means that something failed.
        _end_of_output()
        what = str(error) or type(error).__name__
        _say(f"{what}; nothing was proven.")
        sys.exit(OPEN)
    except ValueError as error:
        from bentpipe_conformance.engine.suite import UnknownSuite  # not for --version alone

        if not isinstance(error, UnknownSuite):
            raise
        # A protocol that is being written concerns every command.
        Failure(f"{error}.", USAGE).show()
        sys.exit(USAGE)


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):
        Failure(sentence).show()


def _end_of_output() -> None:
    """Keep the interpreter from failing at its end on an output that takes nothing more."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
