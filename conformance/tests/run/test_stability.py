"""Repeated certifications: their agreement is reported, and so is what flips."""

from __future__ import annotations

import json

from bentpipe_conformance.run.stability import differences, main
from click.testing import CliRunner


def test_verdict_that_flips_is_a_difference_even_where_the_machine_is_loaded() -> None:
    runs = [{"SNR-A": "pass", "SNR-B": "pass"}, {"SNR-A": "fail", "SNR-B": "inconclusive"}]
    assert differences(runs) == {"SNR-A": ["pass", "fail"], "SNR-B": ["pass", "inconclusive"]}
    assert differences(runs, only_flips=True) == {"SNR-A": ["pass", "fail"]}


def test_suite_with_a_profile_of_its_own_is_certified_again_without_naming_it() -> None:
    arguments = ["rwbp-reference", "--runs", "2", "--only", "acknowledgment/one-hole", "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"runs": 2, "load": False, "different": {}}


def test_profile_of_another_suite_is_refused_in_one_sentence() -> None:
    result = CliRunner().invoke(main, ["rwbp-reference", "--profile", "rfc"])
    assert result.exit_code == 2
    assert "the suite rwbp has no profile 'rfc'; it has rwbp1" in result.stderr
