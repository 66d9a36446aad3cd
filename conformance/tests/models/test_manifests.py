"""The manifests in the repository, and manifests that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.models.configuration import read_configuration
from bentpipe_conformance.models.coverage import evidence_for
from bentpipe_conformance.models.manifest import (
    Manifest,
    format_manifest,
    load_manifest,
    load_models,
    model_root,
    record,
)
from bentpipe_conformance.models.messages import Outcome, State
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_conformance.models.verification import configured, judged
from bentpipe_spec.registry import load_requirements
from click.testing import CliRunner

MODELS = load_models(model_root())


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Manifest:
    return MODELS[request.param]


def test_every_run_has_its_files_and_constants(model: Manifest) -> None:
    for run in model.runs:
        module = (model.folder / run.module).read_text(encoding="utf-8")
        assert f"MODULE {Path(run.module).stem} " in module, run.name
        assert set(run.constants) <= set(read_configuration(model.folder / run.config).constants)
        texts = module + "".join(p.read_text(encoding="utf-8") for p in model.folder.glob("*.tla"))
        for other in run.replaced.values():
            assert re.search(rf"^{other}(\(.*\))? ==", texts, re.MULTILINE), (run.name, other)


def test_every_property_is_checked_and_broken_by_a_run(model: Manifest) -> None:
    checked = {
        name
        for run in model.runs
        if run.kind in ("check", "liveness")
        for name in (*configured(model, run).invariants, *configured(model, run).properties)
    }
    mutated = {run.violates for run in model.runs if run.kind == "mutant"}
    reached = {run.violates for run in model.runs if run.kind == "reach"}
    states = {name for name in model.requirements if name.startswith("Never") and name in reached}
    properties = set(model.requirements) - states
    assert properties <= checked
    assert properties <= mutated
    assert reached == states


def test_requirements_named_by_manifests_exist(model: Manifest) -> None:
    named = {item for ids in model.requirements.values() for item in ids}
    assert named - set(load_requirements()) == set()


def test_every_model_requirement_is_shown_by_a_property() -> None:
    named = {
        item for model in MODELS.values() for ids in model.requirements.values() for item in ids
    }
    needed = {item.id for item in load_requirements().values() if item.testability == "model"}
    assert needed - named == set()


def test_requirement_shown_with_model_property_and_mutant() -> None:
    told = CliRunner().invoke(bentpipe, ["show", "RWBP-EC-007"]).output
    for word in ("rwbp-recovery", "TimeoutSendsTwoCopies", "one-copy", "latest-outstanding"):
        assert word in told


@pytest.mark.parametrize("identifier", ["RWBP-EC-004", "RWBP-EC-007", "STP-DT-009", "STP-CC-010"])
def test_rule_has_a_property_of_its_own_that_a_mutant_breaks(identifier: str) -> None:
    found = evidence_for(identifier)
    assert found
    for item in found:
        model = MODELS[item.model]
        assert model.requirements[item.property] == (identifier,)
        assert {run.kind for run in model.runs if run.violates == item.property} == {"mutant"}


def test_pr_models_are_neither_trivial_nor_large(model: Manifest) -> None:
    sizes = {
        run.name: (run.distinct or 0, 150 if "Rules" in run.module else 2_500)
        for run in model.runs
        if run.kind in ("check", "liveness") and run.tier == "pr"
    }
    assert {name: n for name, (n, least) in sizes.items() if not least <= n <= 1_000_000} == {}


def test_simulation_has_the_windows_of_real_stacks(model: Manifest) -> None:
    drawn = [run for run in model.runs if run.simulate]
    if not drawn:
        pytest.skip("bounds that are searched whole, and nothing drawn")
    assert all(run.tier == "nightly" for run in drawn)
    assert all(run.simulate["behaviours"] >= 200 for run in drawn)
    windows = {run.constants.get("Window", run.constants.get("MaxWindow")) for run in drawn}
    assert windows in ({"32"}, {None})  # connections have no window


def small(folder: Path, **changes: Any) -> Path:
    run = {"name": "safety", "kind": "check", "module": "M.tla", "config": "M.cfg", "distinct": 3,
           "total": 4, "depth": 2, **changes}  # fmt: skip
    data = {"title": "t", "ladder": {"left": "a", "right": "b"}, "invariants": ["Inv"],
            "properties": {"Inv": ["SNR-REC-001"], "Ends": []}, "runs": [run]}  # fmt: skip
    (folder / "manifest.json").write_text(format_manifest(data), encoding="utf-8")
    (folder / "M.cfg").write_text("SPECIFICATION Spec\nINVARIANT Inv\n", encoding="utf-8")
    return folder


def verdict_of(folder: Path, outcome: Outcome) -> tuple[str, str]:
    manifest = load_manifest(folder)
    run = manifest.runs[0]
    result = judged(manifest, run, configured(manifest, run), outcome)
    return result.verdict, result.why


def ended(**changes: Any) -> Outcome:
    return Outcome(**{"log": Path("x"), "generated": 4, "distinct": 3, "depth": 2, **changes})


def violated(name: str, states: int) -> Outcome:
    return ended(violated=f"Invariant {name} is violated.", name=name,
                 trace=[State("A", {})] * states)  # fmt: skip


def test_figures_as_recorded_is_as_expected(tmp_path: Path) -> None:
    assert verdict_of(small(tmp_path), ended()) == ("as expected", "")


@pytest.mark.parametrize("changed", [{"distinct": 5}, {"generated": 5}, {"depth": 5}])
def test_other_figures_are_drift(tmp_path: Path, changed: dict[str, int]) -> None:
    verdict, why = verdict_of(small(tmp_path), ended(**changed))
    assert verdict == "drift" and "is 5" in why


def test_violated_invariant_is_a_violation(tmp_path: Path) -> None:
    assert verdict_of(small(tmp_path), violated("Inv", 2)) == ("violation", "Inv is violated.")


def test_mutant_caught_by_its_property_is_as_expected(tmp_path: Path) -> None:
    folder = small(tmp_path, kind="mutant", violates="Inv", depth=2)
    assert verdict_of(folder, violated("Inv", 2))[0] == "as expected"


def test_mutant_not_caught_is_reported(tmp_path: Path) -> None:
    folder = small(tmp_path, kind="mutant", violates="Inv")
    assert verdict_of(folder, ended())[0] == "not caught"
    assert verdict_of(folder, violated("Other", 2))[0] == "not caught"


def test_longer_counterexample_is_drift(tmp_path: Path) -> None:
    folder = small(tmp_path, kind="mutant", violates="Inv", depth=2)
    assert verdict_of(folder, violated("Inv", 3))[0] == "drift"


def test_recorded_figures_replace_old_ones(tmp_path: Path) -> None:
    folder = small(tmp_path)
    record(load_manifest(folder), {"safety": {"distinct": 9}})
    assert load_manifest(folder).runs[0].distinct == 9
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "odd"}, "kind"),
        ({"extra": 1}, "unknown key"),
        ({"violates": "Inv"}, "exactly reach"),
        ({"checks": ["Nothing"]}, "does not list"),
    ],
)
def test_wrong_manifest_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolProblem, match=says):
        load_manifest(small(tmp_path, **changes))


@pytest.mark.parametrize("text", ["", "{}", '{"runs": 1}', json.dumps({"runs": [{}]})])
def test_text_that_is_no_manifest_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(ToolProblem, match=r"manifest\.json"):
        load_manifest(tmp_path)
