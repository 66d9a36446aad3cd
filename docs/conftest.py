"""Every example of the documentation is executed, or at least understood by what it asks.

Blocks of Python run. A command line is parsed by the command it names, so that an option that no
longer exists, or a value that is no longer a choice, fails here; it does not run, because
certifications take longer than reading. A target of make must exist.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

import click
from bentpipe_conformance.cli.main import bentpipe
from sybil import Document, Example, Region, Sybil
from sybil.parsers.rest import PythonCodeBlockParser

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(
    r"^ {4,}(?:\$ )?(?P<line>"
    r"(?:(?:\.venv/bin/)?(?:bentpipe |python -m bentpipe_)|make [a-z])(?:[^\n]*\\\n)*[^\n]*)$",
    re.MULTILINE,
)
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def commands(document: Document) -> Iterable[Region]:
    """Lines that call bentpipe, one of its modules or make."""
    for found in COMMAND.finditer(document.text):
        yield Region(found.start(), found.end(), found["line"], understood)


def understood(example: Example) -> None:
    """Whether the program would take these words."""
    understand(example.parsed)


def understand(line: str) -> None:
    """The same for one line, continued or not."""
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    program, *words = takewhile(lambda word: word[0] not in "|<>;&", lexer)
    if program == "make":
        asked = next(word for word in words if "=" not in word)
        assert asked in TARGETS, f"make has no target {asked}"
    elif words[:1] == ["-m"]:
        assert importlib.util.find_spec(words[1]) is not None, f"there is no module {words[1]}"
    else:
        parse(bentpipe, "bentpipe", words, None)


def parse(
    command: click.Command, name: str, words: list[str], parent: click.Context | None
) -> None:
    """Parse the words as the command would, down to the last subcommand.

    Raises:
        click.UsageError: the command would refuse them; files need not exist.
    """
    if isinstance(command, click.Group) and words and words[0] != "--help":
        context = click.Context(command, info_name=name, parent=parent)
        found = command.get_command(context, words[0])
        assert found is not None, f"{name} has no command {words[0]}"
        parse(found, words[0], words[1:], context)
        return
    try:
        command.make_context(name, list(words), parent=parent)
    except click.BadParameter as error:
        if "does not exist" not in error.message:
            raise
    except click.exceptions.Exit:
        return  # --help or --version


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), commands], patterns=["*.rst"], excludes=["_build/*"]
).pytest()

collect_ignore = ["toy"]
"""Its cases are no tests; ``test_toy.py`` runs them."""
