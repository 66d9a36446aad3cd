"""The commands of the Markdown pages are understood by the programs they name."""

from __future__ import annotations

import re

import pytest

from .conftest import ROOT, understand

PAGES = ("README.md", "CONTRIBUTING.md", "conformance/bentpipe_conformance/iuts/README.md")
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES = [
    pytest.param(line.strip(), id=f"{page}: {line.strip()}")
    for page in PAGES
    for block in FENCED.findall((ROOT / page).read_text(encoding="utf-8"))
    for line in block.splitlines()
    if re.match(r" *(\.venv/bin/)?(bentpipe|make) ", line)
]
DECISIONS = ROOT / "docs" / "decisions"


@pytest.mark.parametrize("line", LINES)
def test_command_on_a_page_is_understood(line: str) -> None:
    understand(line)


def test_readme_begins_with_two_commands() -> None:
    block = FENCED.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert block is not None
    commands = [line.split("#")[0].strip() for line in block[1].splitlines()]
    assert commands == ["make certify", "make test"]


def test_every_decision_is_listed_and_linked() -> None:
    records = {path.name for path in DECISIONS.glob("[0-9]*.rst")}
    listed = set(re.findall(r"^   (\S+)$", (DECISIONS / "index.rst").read_text(), re.MULTILINE))
    linked = set(re.findall(r"docs/decisions/(\S+\.rst)\)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert records == {f"{name}.rst" for name in listed} == linked
