from __future__ import annotations

from bentpipe_conformance.models.coverage import evidence_for
from bentpipe_spec.registry import load_requirements


def test_requirement_shown_by_a_model_names_property_and_mutants() -> None:
    found = {item.property: item for item in evidence_for("RWBP-EC-002")}
    shown = found["NoSpuriousRetransmission"]
    assert shown.model == "rwbp-recovery" and "safety" in shown.runs
    assert {"literal-list", "last-match"} <= set(shown.mutants)


def test_requirement_of_the_wire_only_has_no_model() -> None:
    assert evidence_for("SNR-OPT-007") == []


def test_every_evidence_is_checked_and_broken_by_a_run() -> None:
    for identifier in load_requirements():
        for item in evidence_for(identifier):
            assert item.runs, (identifier, item)
            assert item.mutants, (identifier, item)
