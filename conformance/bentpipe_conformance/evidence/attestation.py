"""The signed statement about a bundle: in-toto in a DSSE envelope, signed as SSH signs files.

``attestation.json`` in a finished bundle holds an envelope (DSSE v1) around an in-toto Statement
(v1), whose subjects are the implementation and the bundle's manifest. What is signed is DSSE's
pre-authentication encoding; the signature is that of ``ssh-keygen -Y sign`` (SSHSIG) in the
namespace ``bentpipe``, so that a key which signs something else cannot be led to sign this.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bentpipe_conformance.evidence.files import BundleError, read_json
from bentpipe_conformance.evidence.records import RunRecord
from bentpipe_conformance.evidence.serialization import dumps

NAMESPACE = "bentpipe"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:bentpipe:conformance:1"
PATIENCE = 30.0
"""Seconds for ssh-keygen to check a signature."""
_PUBLIC = re.compile(r"(sk-)?(ssh|ecdsa)-\S+ ")


class SigningError(Exception):
    """A key cannot sign; the message is one sentence."""


def statement(run: RunRecord, result: Mapping[str, Any], manifest: str) -> dict[str, Any]:
    """What is signed of a run: ``manifest`` is the SHA-256 of its bundle's manifest."""
    files = hashlib.sha256(dumps(run.iut.files).encode()).hexdigest()
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": f"implementation {run.iut.id}", "digest": {"sha256": files}},
            {"name": "manifest.sha256", "digest": {"sha256": manifest}},
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "verdict": result["verdict"],
            "partial": result["partial"],
            "summary": result["summary"],
            "deviations": result["deviations"],
            "suite": run.suite,
            "profile": run.profile,
            "link": run.link,
            "ics": run.iut.ics,
            "implementation": {
                "id": run.iut.id, "name": run.iut.name, "files": run.iut.files,
                "isolation": run.iut.isolation,
            },
            "bed": {"place": run.bed.place, "kernel": run.bed.kernel, "sha256": run.bed.sha256},
            "tool": {"version": run.bentpipe, "source": run.source,
                     "requirements": run.requirements},
            "seed": run.seed,
            "started": run.started,
            "finished": result["finished"],
        },
    }  # fmt: skip


def encoded(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed."""
    return b"DSSEv1 %d %s %d %s" % (
        len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload,
    )  # fmt: skip


def sign(document: Mapping[str, Any], key: Path) -> dict[str, Any]:
    """The envelope of a statement, signed by an SSH key (a public one: by the agent).

    Raises:
        SigningError: it cannot be.
    """
    payload = dumps(document).encode()
    signature = _signed(encoded(payload), key)
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {"keyid": fingerprint(key), "sig": base64.b64encode(signature).decode()}
        ],
    }  # fmt: skip


def fingerprint(key: Path) -> str:
    """The SHA-256 fingerprint of a key, as ssh-keygen prints it.

    Raises:
        SigningError: it is no key.
    """
    told = subprocess.run(
        [_program(), "-l", "-f", str(key)], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    if told.returncode or len(told.stdout.split()) < 2:
        raise SigningError(
            f"{key} is no SSH key that can be read; make one with `ssh-keygen -t ed25519 -f KEY`."
        )
    return told.stdout.split()[1]


def _signed(octets: bytes, key: Path) -> bytes:
    """The SSH signature of octets; a passphrase is asked for on the terminal."""
    if not key.is_file():
        raise SigningError(f"{key} is not a file; name a private SSH key.")
    told = subprocess.run(
        [_program(), "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key)],
        input=octets, capture_output=True, check=False,
    )  # fmt: skip
    if told.returncode or not told.stdout.startswith(b"-----BEGIN SSH SIGNATURE"):
        said = (told.stderr.decode(errors="replace").split("\n")[:-1] or ["no reason given"])[-1]
        raise SigningError(f"{key} does not sign ({said.rstrip('.')}).")
    return told.stdout


def check_key(key: Path) -> None:
    """Whether a key signs, found out before a run rather than after it.

    Raises:
        SigningError: it does not.
    """
    fingerprint(key)
    _signed(b"trial", key)


def opened(path: Path) -> tuple[bytes, Sequence[bytes]]:
    """The payload of an envelope in a file, and its signatures.

    Raises:
        BundleError: it is damaged, or none.
    """
    document = read_json(path)
    try:
        assert isinstance(document, dict)
        assert document.keys() == {"payload", "payloadType", "signatures"}
        assert document["payloadType"] == PAYLOAD_TYPE
        payload = base64.b64decode(document["payload"], validate=True)
        signatures = [base64.b64decode(item["sig"], validate=True)
                      for item in document["signatures"]]  # fmt: skip
        assert 0 < len(signatures) < 10
    except (AssertionError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise BundleError(f"{path} is damaged: it is no DSSE envelope of in-toto.") from error
    return payload, signatures


def signed_by(payload: bytes, signatures: Sequence[bytes], signer: Path) -> str:
    """Whose signature is on a payload, of those whom a file names; empty for nobody's.

    ``signer`` holds a public key, or lines of ssh-keygen's allowed signers.

    Raises:
        SigningError: it holds neither.
    """
    try:
        allowed = signer.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SigningError(f"{signer} cannot be read as a public key: {error}.") from None
    own = _PUBLIC.match(allowed)
    if own:
        allowed = f'bentpipe namespaces="{NAMESPACE}" {allowed}'
    if not re.search(r"(ssh|ecdsa)-\S+ AAAA", allowed):
        raise SigningError(
            f"{signer} has no public SSH key; name KEY.pub, or a file of allowed signers."
        )
    message = encoded(payload)
    for signature in signatures:
        with _held(allowed.encode()) as known, _held(signature) as sig:
            found = _ask("find-principals", "-f", known, "-s", sig)
            for name in found.decode(errors="replace").splitlines():
                if _ask(
                    "verify", "-f", known, "-s", sig, "-n", NAMESPACE, "-I", name, given=message
                ):
                    return str(signer) if own else name
    return ""


def _ask(what: str, *words: str, given: bytes = b"") -> bytes:
    """What ssh-keygen says of a signature; empty when it does not like it."""
    handles = [int(word.rpartition("/")[2]) for word in words if word.startswith("/proc/self/fd/")]
    try:
        told = subprocess.run(
            [_program(), "-Y", what, *words], input=given, capture_output=True, check=False,
            timeout=PATIENCE, pass_fds=handles,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return b""
    return b"" if told.returncode else told.stdout


@contextlib.contextmanager
def _held(octets: bytes) -> Iterator[str]:
    """A file without a name that holds octets; the path by which a child can open it."""
    handle = os.memfd_create("held")
    try:
        os.write(handle, octets)
        os.lseek(handle, 0, os.SEEK_SET)
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


def _program() -> str:
    found = shutil.which("ssh-keygen")
    if found is None:
        raise SigningError(
            "ssh-keygen is missing; install it with `apt-get install openssh-client`."
        )
    return found
