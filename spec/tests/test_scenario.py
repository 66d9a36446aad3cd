"""The reader of scenarios."""

from __future__ import annotations

import json

import pytest
from bentpipe_spec.scenario import Event, Expiry, NoScenarios, load_scenarios, read_scenarios

DATA = {
    "model": "toy",
    "model_sha256": "00",
    "tool": "t",
    "graphs": [{"name": "g", "constants": {"N": "2"}, "states": 3, "edges": 4, "covered": 4}],
    "scenarios": [
        {"name": "bad", "kind": "mutant", "property": "Inv", "requirements": ["STP-DT-001"],
         "about": "A.", "offered": 4, "window": 2, "steps": ["Lose"], "sent": [["SD 0"], []],
         "events": [
             {"message": "SD", "nth": 2, "number": 1, "transmission": 1, "fate": "lost"},
             {"message": "STAT", "nth": 1, "fate": "delayed", "behind": ["USTAT", 1]},
             {"message": "POLL", "nth": 1, "fate": "doubled"},
             {"timer": "EarlyTimeout", "after": 3, "of": "taken ACK"}]},
        {"name": "cover-001", "kind": "cover", "graph": "g", "edges": 4, "offered": 4, "window": 2,
         "events": []},
    ],
}  # fmt: skip


def test_file_read_gives_scripts_of_fates_and_expiries() -> None:
    found = read_scenarios(json.dumps(DATA), "toy.json")
    (bad,) = found.named()
    assert bad.fates() == [("SD", 2, "lost"), ("STAT", 1, "delayed"), ("POLL", 1, "doubled")]
    assert bad.events[1] == Event("STAT", 1, "delayed", None, 0, ("USTAT", 1))
    assert bad.expiries == (Expiry("EarlyTimeout", 3, "taken ACK"),)
    assert bad.lost("SD") == {2} and bad.lost("STAT") == set()
    assert [item.name for item in found.covers()] == ["cover-001"]
    assert found.covers(0) == [] and found.graphs[0].covered == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({**DATA, "scenarios": [{}]})])
def test_damaged_file_is_refused_with_the_mend(text: str) -> None:
    with pytest.raises(NoScenarios, match="--scenarios") as refused:
        read_scenarios(text, "toy.json")
    assert "\n" not in str(refused.value)


def test_model_without_scenarios_is_named() -> None:
    with pytest.raises(NoScenarios, match="no scenarios of 'none'"):
        load_scenarios("none")
