"""The models travel in the wheel: a clone is needed neither to list nor to check them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from bentpipe_conformance.models.manifest import load_models, model_root

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(unpacked: Path, empty: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=empty, check=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
    )  # fmt: skip
    return done.stdout


def test_wheel_in_an_empty_directory_finds_the_same_models(unpacked: Path, tmp_path: Path) -> None:
    code = (
        "import json; from bentpipe_conformance.models.manifest import load_models, model_root\n"
        "root = model_root()\n"
        "print(json.dumps([str(root), {k: len(v.runs) for k, v in load_models(root).items()}]))"
    )
    root, models = json.loads(run(unpacked, tmp_path, code))
    assert Path(root) == unpacked / "bentpipe_conformance" / "tla"
    here = load_models(ROOT / "tla")
    assert models == {name: len(manifest.runs) for name, manifest in here.items()}


def test_wheel_in_an_empty_directory_checks_a_model(unpacked: Path, tmp_path: Path) -> None:
    code = (
        "from bentpipe_conformance.cli.main import bentpipe\n"
        "bentpipe(['model', 'rwbp-flow', '--only', 'reach-ipfull', '--json'])"
    )
    (row,) = json.loads(run(unpacked, tmp_path, code))
    assert row["verdict"] == "as expected" and row["violated"] == "NeverIpFull"


def test_models_at_hand_win_over_installed_ones(tmp_path: Path) -> None:
    mine = tmp_path / "tla"
    (mine / "inner").mkdir(parents=True)
    (mine / "pom.xml").write_text("<project/>", encoding="utf-8")
    assert model_root(tmp_path) == model_root(mine) == model_root(mine / "inner") == mine
