"""Signed bundles: whose signature it is, and that it says what the bundle says."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.run import completeness
from click.testing import CliRunner

from .forgeries import seal, tie

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing"),
]
CASES = ("snr/timestamps/timestamp-clock-wraps", "snr/timestamps/data-acknowledges-data")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("lab", "other"):
        words = [
            "ssh-keygen",
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            name,
            "-f",
            str(folder / name),
        ]
        subprocess.run(words, check=True)
    return folder


@pytest.fixture(scope="module")
def signed(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A whole run of two cases, signed by the lab."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completeness, "whole_suite", lambda *_: CASES)
        out = tmp_path_factory.mktemp("signed") / "bundle"
        status, said = certify(out, "--sign", str(keys / "lab"))
        assert status == 0, said
        yield out


def certify(out: Path, *more: str) -> tuple[int, str]:
    only = [word for name in CASES for word in ("--only", name)]
    words = ["certify", "reference", *only, "--link", "lan", "--out", str(out), "--seed", "1"]
    done = CliRunner().invoke(bentpipe, [*words, *more])
    return done.exit_code, done.output


def verify(bundle: Path, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(bentpipe, ["verify", str(bundle), *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture
def bundle(signed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(signed, tmp_path / "bundle")


def test_signed_bundle_verified_with_its_signer_is_reproduced(bundle: Path, keys: Path) -> None:
    status, said = verify(bundle, "--signer", str(keys / "lab.pub"))
    assert status == 0, said
    assert "signed by" in said
    assert verify(bundle)[0] == 0


def test_allowed_signers_name_who_signed(bundle: Path, keys: Path, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    lines = [
        f"{name}@example.org {(keys / f'{name}.pub').read_text()}" for name in ("other", "lab")
    ]
    allowed.write_text("".join(lines))
    status, said = verify(bundle, "--signer", str(allowed))
    assert (status, "signed by lab@example.org" in said) == (0, True)
    allowed.write_text('lab namespaces="git" ' + (keys / "lab.pub").read_text())
    assert verify(bundle, "--signer", str(allowed))[0] == 1


def test_bundle_signed_by_somebody_else_is_contradicted(bundle: Path, keys: Path) -> None:
    status, said = verify(bundle, "--signer", str(keys / "other.pub"))
    assert status == 1
    assert "attestation.json: stored a signature" in said


def test_bundle_without_signature_is_open_where_a_signer_is_asked_for(
    bundle: Path, keys: Path
) -> None:
    (bundle / "attestation.json").unlink()
    status, said = verify(bundle, "--signer", str(keys / "lab.pub"))
    assert (status, "it is not signed" in said) == (3, True)
    assert verify(bundle)[0] == 0


def test_signature_of_another_bundle_is_contradicted(
    bundle: Path, keys: Path, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completeness, "whole_suite", lambda *_: CASES)
        assert certify(tmp_path / "second", "--sign", str(keys / "lab"))[0] == 0
    shutil.copy(tmp_path / "second" / "attestation.json", bundle)
    status, said = verify(bundle, "--signer", str(keys / "lab.pub"))
    assert status == 1
    assert "attestation.json.subject[1].digest" in said


def test_statement_changed_after_it_was_signed_is_contradicted(bundle: Path, keys: Path) -> None:
    path = bundle / "attestation.json"
    envelope = json.loads(path.read_text())
    told = json.loads(base64.b64decode(envelope["payload"]))
    told["predicate"]["implementation"]["name"] = "Another"
    envelope["payload"] = base64.b64encode(json.dumps(told).encode()).decode()
    path.write_text(json.dumps(envelope))
    status, said = verify(bundle, "--signer", str(keys / "lab.pub"))
    assert status == 1
    assert "stored a signature" in said
    assert "stored Another" in said


def test_bundle_changed_after_it_was_signed_is_contradicted(bundle: Path, keys: Path) -> None:
    run = json.loads((bundle / "run.json").read_text())
    run["iut"]["files"] = {"/bin/true": "0" * 64}
    (bundle / "run.json").write_text(json.dumps(run))
    tie(bundle)
    seal(bundle)
    status, said = verify(bundle, "--signer", str(keys / "lab.pub"))
    assert status == 1
    assert "attestation.json.predicate.implementation.files" in said


@pytest.mark.parametrize("how", ["link", "pipe", "text", "empty"])
def test_attestation_that_is_none_is_refused(bundle: Path, how: str) -> None:
    import os

    path = bundle / "attestation.json"
    path.unlink()
    if how == "link":
        path.symlink_to("/etc/hostname")
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.write_text('{"payload": 1}' if how == "text" else "")
    status, said = verify(bundle)
    assert status == 3
    assert "attestation.json" in said


def test_certificate_of_another_run_is_contradicted(bundle: Path) -> None:
    page = bundle / "certificate.html"
    page.write_text(page.read_text().replace("bentpipe&#39;s reference", "Somebody"))
    page.write_text(page.read_text().replace("SACK-NewReno", "Reno"))
    seal(bundle)
    status, said = verify(bundle)
    assert status == 1
    assert "certificate.html, line" in said


def test_digest_on_the_certificate_is_that_of_the_other_files(bundle: Path) -> None:
    kept = "grep -v certificate.html manifest.sha256 | sha256sum"
    done = subprocess.run(
        ["sh", "-c", kept], cwd=bundle, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] in (bundle / "certificate.html").read_text()


def test_key_that_does_not_sign_is_refused_before_anything_runs(keys: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(keys / "other.pub", tmp_path))
    for key in (tmp_path / "missing", alone):
        status, said = certify(tmp_path / "run", "--sign", str(key))
        assert status == 2, said
        assert said.startswith(f"bentpipe: {key} ")
    assert not (tmp_path / "run").exists()
