"""A small model with its manifest, for the model checker itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.manifest import format_manifest, model_root

SOURCE = """---- MODULE Toy ----
EXTENDS Integers
CONSTANT Limit
VARIABLES count, told, ghost
rest == <<count, ghost>>
vars == <<count, told, ghost>>
Init == /\\ count = 0 /\\ told = FALSE
        /\\ ghost = 0
MayCount == count < Limit
Noise == ghost + 1
Count == /\\ MayCount /\\ ghost < 9
         /\\ IF told THEN \\/ count = 0
                         \\/ count > 1
                    ELSE TRUE
         /\\ count' = count + 1
         /\\ told' = IF count' = Limit THEN TRUE ELSE told
         /\\ ghost' = (Noise % 2)
Forget == told /\\ told' = FALSE /\\ UNCHANGED rest
Next == Count \\/ Forget
Spec == Init /\\ [][Next]_vars
Within == count <= Limit
Low == count > -5
Rises == [][count' >= count]_vars
NeverFull == count < Limit
====
"""
CONFIG = "SPECIFICATION Spec\nCONSTANTS Limit = 3\nINVARIANTS Within Low\nPROPERTY Rises\n" \
         "CHECK_DEADLOCK FALSE\n"  # fmt: skip


@pytest.fixture
def toy_models(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    folder = root / "toy"
    folder.mkdir(parents=True)
    (root / "lib").mkdir()
    shutil.copy(model_root() / "pom.xml", root)
    (folder / "Toy.tla").write_text(SOURCE, encoding="utf-8")
    (folder / "toy.cfg").write_text(CONFIG, encoding="utf-8")
    common = {"module": "Toy.tla", "config": "toy.cfg"}
    runs = [
        {"name": "safety", "kind": "check", **common, "distinct": 5, "total": 5, "depth": 5},
        {"name": "reach-full", "kind": "reach", **common, "violates": "NeverFull"},
        {"name": "larger", "kind": "check", "tier": "nightly", **common},
    ]
    data: dict[str, Any] = {
        "title": "t", "ladder": {"left": "a", "right": "b"},
        "invariants": ["Within", "Low", "NeverFull"],
        "properties": {"Within": [], "Low": [], "Rises": [], "NeverFull": []},
        "mutation": {"module": "Toy.tla", "environment": {"Noise": "noise"}, "ghosts": ["ghost"]},
        "runs": runs,
    }  # fmt: skip
    (folder / "manifest.json").write_text(format_manifest(data), encoding="utf-8")
    return root
