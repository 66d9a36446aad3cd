"""``bentpipe pep``: options from a file, and what is wrong with them, in one sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_reference.pep.io import program
from click.testing import CliRunner, Result


def call(*words: str) -> Result:
    return CliRunner().invoke(bentpipe, ["pep", *words])


def test_file_holds_options_and_the_command_line_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[program.Settings] = []
    monkeypatch.setattr(program, "run", lambda settings, _: found.append(settings) or 15)
    path = tmp_path / "pep.toml"
    path.write_text('lan = "eth0"\nsatellite = "eth1"\nbuffer = 65536\nmetrics = "127.0.0.1:99"\n')
    done = call("run", "--config", str(path), "--satellite", "wwan0")
    assert done.exit_code == 143, done.output
    (settings,) = found
    assert (settings.lan, settings.satellite, settings.buffer) == ("eth0", "wwan0", 65536)
    assert settings.metrics == ("127.0.0.1", 99)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('lane = "eth0"\n', "unknown setting 'lane'"),
        ('lan = "a"\nsatellite = "b"\nbuffer = 3\n', "16384"),
        ('lan = "a"\nsatellite = "a"\n', "a box stands between two"),
        ('lan = "a"\nsatellite = "b"\nmetrics = "here"\n', "not an address and a port"),
        ("lan = \n", "is no TOML file: Invalid value"),
        ("lan = '\udcff'\n", "is no TOML file"),
    ],
)
def test_file_with_a_mistake_is_wrong_usage(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "pep.toml"
    path.write_text(text, errors="surrogateescape")
    done = call("run", "--config", str(path))
    assert done.exit_code == 2
    assert sentence in done.output


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pep.toml"
    done = call("run", "--config", str(path))
    assert done.exit_code == 2
    assert f"{path} cannot be read: No such file or directory." in " ".join(done.output.split())


def test_status_without_a_box_names_the_remedy() -> None:
    done = call("status", "--at", "127.0.0.1:1")
    assert done.exit_code == 3
    assert "start it with --metrics 127.0.0.1:1" in done.output
