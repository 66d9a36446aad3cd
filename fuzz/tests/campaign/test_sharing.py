"""Conversations worth keeping, shared among campaigns, whatever else is in the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.campaign.sharing import MOST_STEPS, Shared, SharingError, shared
from bentpipe_fuzz.campaign.speed import campaign_of
from click.testing import CliRunner
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

CHECK = binding_of(suite_named("stp")).check
SCRIPT = Script("stp", "on-path", (Step("call"),), (), 5)


def others(folder: Path) -> ExampleDatabase:
    return DirectoryBasedExampleDatabase(folder)


def test_script_that_one_keeps_is_fresh_to_the_others_once(tmp_path: Path) -> None:
    one, other = (shared(str(tmp_path / "shared"), "stp", CHECK) for _ in range(2))
    one.keep(SCRIPT)
    assert one.fresh() == []
    assert other.fresh() == [SCRIPT]
    assert other.fresh() == []


@pytest.mark.parametrize(
    "octets",
    [
        b"", b"\xff", b"[" * 100_000, b'{"suite": "stp"}', b"null", b"1e999", b"x" * (1 << 20),
        b'{"suite":"snr","mode":"on-path","seed":1,"link":[],"steps":[{"verb":"call"}]}',
        b'{"suite":"stp","mode":"on-path","seed":1,"link":[],"steps":[{"verb":"rm"}]}',
        b'{"suite":"stp","mode":"none","seed":1,"link":[],"steps":[{"verb":"call"}]}',
        b'{"suite":"stp","mode":"on-path","seed":1,"link":[],"steps":['
        + b",".join([b'{"verb":"call"}'] * (MOST_STEPS + 1)) + b"]}",
    ],
)  # fmt: skip
def test_example_that_is_no_script_of_the_protocol_is_left_out(
    octets: bytes, tmp_path: Path
) -> None:
    others(tmp_path).save(b"bentpipe stp", octets)
    mine = shared(str(tmp_path), "stp", CHECK)
    mine.keep(SCRIPT)
    assert mine.fresh() == []
    assert mine.note == "1 shared examples are no scripts and were left out"


def test_campaign_plays_what_others_keep_and_lets_them_have_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bentpipe_fuzz.campaign.plan.BATCH", 4)
    shared(str(tmp_path), "stp", CHECK).keep(SCRIPT)
    campaign = campaign_of("stp", 3, shared(str(tmp_path), "stp", CHECK))
    for _ in campaign.run(lambda tally: tally.conversations < 4):
        pass
    assert campaign.tally.conversations == 4
    kept = shared(str(tmp_path), "stp", CHECK).fresh()
    assert SCRIPT in kept and len(kept) > 1


def test_database_that_is_gone_ends_the_sharing_alone() -> None:
    class Gone(DirectoryBasedExampleDatabase):
        def save(self, key: bytes, value: bytes) -> None:
            raise OSError("it is gone")

    mine = Shared(Gone("/nowhere"), "stp", CHECK)
    mine.keep(SCRIPT)
    assert mine.fresh() == []
    assert mine.note == "nothing is shared any more: it is gone"


def test_place_that_cannot_be_used_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SharingError, match="cannot be a directory"):
        shared(str(tmp_path / "file"), "stp", CHECK)
    done = CliRunner().invoke(
        bentpipe, ["fuzz", "reference", "--share", "redis://:secret@127.0.0.1:1/0"]
    )
    assert done.exit_code == 2
    assert "Redis at 127.0.0.1:1/0 does not answer" in done.output
    assert "secret" not in done.output


def test_cluster_that_is_not_there_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bentpipe_fuzz.campaign.cluster.WAIT_S", 0.5)
    arguments = ["fuzz", "reference", "--dask", "tcp://127.0.0.1:1", "--out", str(tmp_path / "x")]
    done = CliRunner().invoke(bentpipe, arguments)
    assert done.exit_code == 3
    assert "Dask's scheduler at tcp://127.0.0.1:1 does not answer" in done.output
