"""What judged: version and source digest of bentpipe, and what it ran on."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("bentpipe_spec", "bentpipe_reference", "bentpipe_conformance")
"""What verdicts depend on: texts and requirements, link and references, cases and checkers."""

_SKIPPED = {"__pycache__", "target", "node_modules"}


@cache
def source_digest() -> str:
    """SHA-256 over the names and contents of the tool's own files, hexadecimal."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        found = importlib.util.find_spec(package)
        assert found is not None
        assert found.submodule_search_locations is not None
        for place in found.submodule_search_locations:
            for path in _files(Path(place)):
                name = f"{package}/{path.relative_to(place).as_posix()}"
                digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """Files of a package by name, without what interpreters and compilers made."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        found += [Path(place) / name for name in names if not name.endswith((".pyc", ".tmp"))]
    return sorted(found)


def tool_name(release: str, source: str) -> str:
    """A release and its source, as a sentence names them."""
    return f"bentpipe {release} (source {source[:12] or 'unknown'})"


def environment() -> dict[str, Any]:
    """What this process runs on."""
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count() or 0,
        "interpreter": platform.python_implementation(),
        "jinja2": version("jinja2"),
    }


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
