"""Whatever stands in a bundle, ``verify`` ends with one of its statuses: no traceback, no hang."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.evidence import limits
from bentpipe_conformance.evidence.files import BundleError
from bentpipe_conformance.run import completeness
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .forgeries import seal, tie

pytestmark = pytest.mark.long

CASES = ("snr/timestamps/timestamp-clock-wraps", "snr/timestamps/data-acknowledges-data")
EXAMPLES = int(os.environ.get("BENTPIPE_MUTATED_BUNDLES", "60"))

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([1e308, -1.0, 10**400, 2**63, 0, -1]),
    st.text(max_size=8),
    st.sampled_from(
        ["\x1b]0;x\x07", "[/x]", "[bold]", "\ud800", "<script>", "../../etc", "a" * 999]
    ),
    st.lists(st.none(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from([7]).map(lambda value: json.loads("[" * 300 + str(value) + "]" * 300)),
)
"""What nobody expects in a document."""


@pytest.fixture(scope="module")
def true_bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A whole run of two cases."""
    out = tmp_path_factory.mktemp("mutated") / "bundle"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completeness, "whole_suite", lambda *_: CASES)
        only = [word for name in CASES for word in ("--only", name)]
        words = ["certify", "reference", *only, "--link", "lan", "--out", str(out), "--seed", "1"]
        done = CliRunner().invoke(bentpipe, words)
        assert done.exit_code == 0, done.output
        yield out


def places(held: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON document with each of its keys or positions."""
    items = held.items() if isinstance(held, dict) else enumerate(held)
    for key, value in list(items):
        yield held, key
        if isinstance(value, dict | list):
            yield from places(value)


def mutate_document(path: Path, data: st.DataObject) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        every = list(places(held))
        where, key = every[data.draw(st.integers(0, len(every) - 1), label="place")]
        if data.draw(st.booleans(), label="remove"):
            del where[key]
        else:
            where[key] = data.draw(ODD, label="odd")
    path.write_text(json.dumps(held, indent=2), encoding="utf-8")


def mutate_octets(path: Path, data: st.DataObject) -> None:
    octets = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4), label="changes")):
        at = data.draw(st.integers(0, len(octets)), label="at")
        how = data.draw(st.sampled_from(["cut", "flip", "insert", "repeat"]), label="how")
        if how == "cut":
            del octets[at : at + data.draw(st.integers(1, 2000), label="octets")]
        elif how == "flip" and at < len(octets):
            octets[at] ^= data.draw(st.integers(1, 255), label="bits")
        elif how == "insert":
            octets[at:at] = data.draw(st.binary(min_size=1, max_size=8), label="inserted")
        else:
            octets[at:at] = octets[at : at + 400]
    path.write_bytes(octets)


def mutate_files(bundle: Path, path: Path, others: list[Path], data: st.DataObject) -> None:
    how = data.draw(st.sampled_from(["remove", "swap", "link", "pipe", "folder", "empty"]))
    if how == "swap":
        octets = data.draw(st.sampled_from(others), label="with").read_bytes()
        path.write_bytes(octets)
        return
    path.unlink()
    if how == "link":
        path.symlink_to("/etc/hostname")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how == "empty":
        path.touch()


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_mutated_bundle_ends_with_a_status(true_bundle: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bundle = shutil.copytree(true_bundle, Path(folder) / "bundle")
        files = sorted(path for path in bundle.rglob("*") if path.is_file())
        path = data.draw(st.sampled_from(files), label="file")
        kind = data.draw(st.sampled_from(["document", "octets", "octets", "files"]), label="kind")
        if kind == "document" and path.suffix == ".json":
            mutate_document(path, data)
        elif kind == "files":
            mutate_files(bundle, path, files, data)
        else:
            mutate_octets(path, data)
        if data.draw(st.booleans(), label="sealed"):
            try:
                tie(bundle)
                seal(bundle)
            except (ValueError, OSError, TypeError, KeyError, AttributeError, RecursionError):
                pass  # the opponent's own tools have limits
        same = all(
            other.is_file() and other.read_bytes() == (true_bundle / name).read_bytes()
            for name in (found.relative_to(true_bundle) for found in true_bundle.rglob("*"))
            if (true_bundle / name).is_file() and not (other := bundle / name).is_symlink()
        ) and not any(found.is_symlink() for found in bundle.rglob("*"))
        done = CliRunner().invoke(bentpipe, ["verify", str(bundle)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code in ((0,) if same else (0, 1, 3))
        if done.exit_code == 0:
            # Only what no statement depends on may have changed: the lock, or nothing.
            assert "everything stored is reproduced" in done.output
        assert "\x1b" not in done.output


def test_input_that_takes_more_memory_than_its_size_permits_is_refused() -> None:
    with pytest.raises(BundleError, match="takes more than 64 MB of memory"), limits.bounded(0):
        bytearray(200 << 20)
    with limits.bounded(4 << 20):
        bytearray(200 << 20)


# The signal may come between the opening of a file and the statement that closes it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_bundle_that_takes_longer_than_its_size_permits_is_refused(
    true_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.001)
    monkeypatch.setattr(limits, "SECONDS_PER_MEGABYTE", 0.0)
    done = CliRunner().invoke(bentpipe, ["verify", str(true_bundle)])
    assert done.exit_code == 3
    assert "It was not judged within 0 s" in done.output
