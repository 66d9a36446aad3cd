"""What a stored result of a campaign depends on."""

from __future__ import annotations

from pathlib import Path

from bentpipe_conformance.selftest.mutation.baseline import sources_digest


def _sources(folder: Path, text: str) -> list[Path]:
    (folder / "tcp").mkdir(parents=True)
    paths = [folder / "tcp" / "host.py", folder / "tcp" / "timer.py"]
    for path in paths:
        path.write_text(text, encoding="utf-8")
    return paths


def test_sources_that_were_moved_have_the_same_digest(tmp_path: Path) -> None:
    here, there = (_sources(tmp_path / name, "RTO = 1.0") for name in ("here", "there"))
    assert sources_digest(here) == sources_digest(there)


def test_sources_that_were_changed_have_another_digest(tmp_path: Path) -> None:
    before, after = (_sources(tmp_path / f"{rto}", f"RTO = {rto}") for rto in (1.0, 2.0))
    assert sources_digest(before) != sources_digest(after)
