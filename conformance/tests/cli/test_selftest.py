"""The options of ``bentpipe selftest`` that choose a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.cli.outcome import USAGE
from bentpipe_conformance.selftest.mutation import operators
from click.testing import CliRunner


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--mutate", "--transfers", "3"), "are different runs; give one"),
        (("--round", "1", "--transfers", "3"), "are different runs; give one"),
        (("--mutate", "--linux", "3"), "are different runs; give one"),
        (("--transfers", "3", "--only", "x"), "--only chooses mutants"),
        (("--sample", "3"), "go with --mutate"),
        (("--round", "1", "--variants", "1"), "are different runs; give one"),
        (("--record",), "--record goes with --round or --variants"),
        (("--variants", "1", "--record", "--only", "x"), "with all of them"),
        (("--variants", "998"), "has no round of variants 998; its rounds: "),
        (("--variants", "0"), "is not in the range x>=1"),
        (("--linux", "1", "--ns3", "1"), "are different runs; give one"),
        (("--keep", "packets"), "--keep goes with --linux or --ns3"),
        (("--round", "1", "--record", "--only", "x"), "with all of them"),
        (("--round", "998"), "has no round 998; its rounds: "),
        (("--mutate", "--only", "nonsense"), "no mutant matches"),
        (("--mutate", "--survivors-of", __file__), "is no result of a run with --mutate"),
    ],
)
def test_run_that_means_nothing_is_refused_with_a_sentence(
    words: tuple[str, ...], sentence: str
) -> None:
    done = CliRunner().invoke(bentpipe, ["selftest", "snr", *words])
    assert done.exit_code == USAGE, done.output
    assert sentence in done.output
    assert "Traceback" not in done.output


def test_operators_not_installed_the_sentence_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operators.load_operators.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "cosmic_ray.operators", None)
    done = CliRunner().invoke(bentpipe, ["selftest", "snr", "--mutate"])
    operators.load_operators.cache_clear()
    assert done.exit_code
    assert "pip install" in done.output and "Traceback" not in done.output


def test_survivors_of_a_stored_result_are_tried_alone(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"survivors": [{"id": "gone:f:plus-one:000000"}]}')
    words = ["selftest", "snr", "--mutate", "--survivors-of", str(path)]
    assert "no mutant matches" in CliRunner().invoke(bentpipe, words).output


def test_selftest_linux_keeps_packets_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    asked = ["selftest", "snr", "--linux", "1", "--keep", str(tmp_path / "file" / "packets")]
    result = CliRunner().invoke(bentpipe, asked)
    assert result.exit_code == USAGE
    assert "cannot be made (Not a directory); choose another folder" in result.output
