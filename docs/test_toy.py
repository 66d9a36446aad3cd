"""The toy protocol of ``add-a-protocol.rst``: its folders are all that a protocol takes.

They are put beside the folders of the real protocols, as links in a temporary directory, and the
real command line runs on them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

TOY = ROOT / "docs" / "toy"
ROOMS = ("spec", "reference", "conformance", "fuzz")
DESCRIPTION = TOY / "conformance" / "bentpipe_conformance" / "iuts" / "toy-reference.toml"


def link_files(source: Path, target: Path) -> None:
    """Make the same folders, with links to the files."""
    for folder, _, files in os.walk(source):
        if Path(folder).name == "__pycache__":
            continue
        there = target / Path(folder).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in files:
            # A file of the toy in the place of another one would break the promise.
            (there / name).symlink_to(Path(folder) / name)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All rooms, with the toy in them."""
    there = tmp_path_factory.mktemp("house")
    for room in ROOMS:
        for package in (ROOT / room).glob("bentpipe_*"):
            link_files(package, there / room / package.name)
    link_files(TOY, there)
    return there


def run(house: Path, *words: str) -> str:
    """The output of a program that finds the packages of the house first."""
    path = os.pathsep.join(str(house / room) for room in ROOMS)
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        words, env=environment, cwd=house, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def bentpipe(house: Path, *words: str) -> str:
    """The output of a command."""
    return run(house, sys.executable, "-m", "bentpipe_conformance.cli.main", *words)


def test_requirements_of_the_toy_are_listed_and_shown(house: Path) -> None:
    listed = json.loads(bentpipe(house, "list", "requirements", "--json"))
    assert "TOY-DAT-001" in {item["id"] for item in listed}
    shown = bentpipe(house, "show", "TOY-DAT-001")
    for text in (
        "toy/transfer/open-acknowledgments",
        "toy-does-not-wait",
        "one_packet_outstanding",
    ):
        assert text in shown


def test_selftest_of_the_toy_catches_every_mutant(house: Path) -> None:
    assert "4 mutants, 4 caught, 0 missed; 0 failures" in bentpipe(house, "selftest", "toy")


def test_references_of_the_toy_are_not_accused(house: Path) -> None:
    assert "0 accusations" in bentpipe(house, "selftest", "toy", "--transfers", "3")


def test_mutants_of_the_toy_are_killed_or_survive_for_a_reason(house: Path, tmp_path: Path) -> None:
    pytest.importorskip("cosmic_ray")
    words = ("selftest", "toy", "--mutate", "--json", "--out", str(tmp_path / "toy.json"))
    only = (
        "toy.receiver:Receiver.take:*",
        "toy.codec:encode:add-to-sub:*",
        "toy.sender:Sender._next:drop-not:*",
        "toy.sender:Sender._next:drop-statement:*",
        "toy.sender:Sender.message:lt-to-le:*",
    )
    chosen = [word for name in only for word in ("--only", name)]
    outcome = json.loads(bentpipe(house, *words, *chosen))
    assert {row["how"] for row in outcome["kills"]} == {"failed", "crashed"}
    assert {row["kind"] for row in outcome["survivors"]} == {
        "inconclusive",
        "it never makes a difference",
        "no case reaches the line",
        "no packet changes",
        "packets change",
    }
    assert outcome["killed"] + outcome["survived"] == outcome["mutants"]
    assert json.loads(bentpipe(house, *words, *chosen)) == outcome  # from the file


def test_toy_is_certified_and_verified(house: Path, tmp_path: Path) -> None:
    words = ("--bed", "simulation", "--link", "geo", "--out", str(tmp_path / "run"))
    bentpipe(house, "certify", str(DESCRIPTION), *words)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "TOY-TIM-001" in page
    bentpipe(house, "verify", str(tmp_path / "run"))


def test_checkers_of_the_toy_judge_its_stories(house: Path) -> None:
    run(house, sys.executable, "-m", "pytest", "-q", str(house / "conformance" / "tests"))


def test_imports_of_the_toy_go_one_way(house: Path) -> None:
    pytest.importorskip("importlinter")
    program = "import sys; from importlinter.cli import lint_imports_command as c; c()"
    config = str(ROOT / "pyproject.toml")
    said = run(house, sys.executable, "-c", program, "--config", config, "--no-cache")
    assert ", 0 broken" in said
