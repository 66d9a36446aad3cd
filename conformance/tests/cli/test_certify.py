"""What ``bentpipe certify`` refuses before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import main


def test_fresh_where_a_file_is_leaves_it_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes"
    file.write_text("mine")
    words = ["certify", "reference", "--bed", "simulation", "--fresh", "--out", str(file)]
    monkeypatch.setattr("sys.argv", ["bentpipe", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "holds something other than a bundle; choose another --out" in capsys.readouterr().err
    assert file.read_text() == "mine"
