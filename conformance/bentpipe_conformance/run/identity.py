"""What is tested and by which rules, as digests that stand in the plan of a run."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from functools import cache

from bentpipe_conformance.engine.suite import Suite, suite_named
from bentpipe_conformance.evidence.records import Implementation
from bentpipe_conformance.evidence.serialization import dumps, encode
from bentpipe_conformance.evidence.tool import file_digest
from bentpipe_conformance.iut.contents import Contents
from bentpipe_conformance.iut.description import IutDescription, is_bundled


def requirements_digest(suite: Suite) -> str:
    """SHA-256 over the suite's requirements, with their texts, levels and conditions."""
    return _requirements_digest(suite.name)


@cache
def _requirements_digest(suite: str) -> str:
    requirements = suite_named(suite).requirements()
    return hashlib.sha256(dumps(encode(requirements)).encode()).hexdigest()


def implementation(description: IutDescription, contents: Contents) -> Implementation:
    """What identifies an implementation: description, statement, and the files that it runs.

    Of a box at an address there is nothing but its address.
    """
    files = {**contents.files, **contents.folders}
    if description.path.is_file():
        files[str(description.path)] = file_digest(description.path)
    return Implementation(
        id=description.id, name=description.name, ics=dict(description.ics),
        bundled=is_bundled(description),
        attached={name: value for name, value in encode(asdict(description.attach)).items()
                  if value not in ("", 0, ["", 0], [])},
        files=dict(sorted(files.items())),
        isolation=description.isolation.record(description.attach.kind),
    )  # fmt: skip
