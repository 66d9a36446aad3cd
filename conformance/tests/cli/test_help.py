"""What the help texts promise: their examples run, and options are called alike everywhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.suite import load_suites
from bentpipe_conformance.run.plan import select_cases
from click.testing import CliRunner

CHEAP = ("list", "show")
MADE = {"transfer.ndjson": "", "upload.pcapng": "", "server.pcapng": "", "my-stack.toml": "",
        "pep.toml": 'lan = "eth0"\nsatellite = "eth1"\n'}  # fmt: skip
"""Files that the examples name."""


def commands(group: click.Group = bentpipe, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command below ``group`` with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


def examples() -> list[str]:
    """The command lines in the help texts, without remarks, redirections and pipes."""
    texts = [text for _, each in commands() for text in (each.help, each.epilog)]
    found = []
    for text in (bentpipe.help, *texts):
        _, _, shown = (text or "").partition("Examples:\n")
        for line in shown.splitlines():
            _, called, words = line.partition("bentpipe ")
            if called:
                found.append(words.partition("   ")[0].partition(" |")[0].partition(" <")[0])
    return found


def resolve(words: list[str]) -> click.Context:
    """The arguments of a command line as its command would get them."""
    command: click.Command = bentpipe
    context = click.Context(bentpipe)
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
    return command.make_context(command.name, words)


def test_every_command_has_an_example() -> None:
    told = "\n".join(examples())
    assert all(f"{name} " in f"{told}\n".replace("\n", " \n") for name, _ in commands())


@pytest.mark.parametrize("line", examples())
def test_example_of_a_help_text_has_arguments_that_are_accepted(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in MADE.items():
        Path(name).write_text(content)
    parameters = resolve(shlex.split(line)).params
    for pattern in parameters.get("only") or ():
        if line.startswith("certify"):
            assert select_cases("snr", "rfc", (pattern,))


@pytest.mark.parametrize("line", [line for line in examples() if line.startswith(CHEAP)])
def test_cheap_example_of_a_help_text_succeeds(line: str) -> None:
    result = CliRunner().invoke(bentpipe, shlex.split(line))
    assert (result.exit_code, bool(result.stdout)) == (0, True), result.output


def test_option_of_several_commands_has_one_type_and_default() -> None:
    said: dict[str, set[Any]] = {}
    for _, command in commands():
        for option in command.params:
            if option.opts[-1] in ("--link", "--profile", "--json", "--models", "--memory"):
                kind = (option.type.name, str(option.default))
                said.setdefault(option.opts[-1], set()).add(kind)
    assert set(map(len, said.values())) == {1}


def test_profiles_in_a_help_text_are_those_of_the_suites() -> None:
    text = CliRunner().invoke(bentpipe, ["certify", "--help"], terminal_width=200).stdout
    for suite in load_suites().values():
        assert f"{suite.protocol}: {' or '.join(suite.profiles)}" in " ".join(text.split())
