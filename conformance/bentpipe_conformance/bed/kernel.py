"""The kernels the bed can boot: named by the user, built here, or packaged by Debian."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from bentpipe_conformance.bed.debian import Apt
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.modules import resolve
from bentpipe_conformance.bed.progress import Progress, silent

KERNEL_VARIABLE = "BENTPIPE_KERNEL"
CONFIG = Path(__file__).with_name("kernel.config")
DESCRIPTION = "kernel.json"
MODULES = ("veth", "tun", "sch_netem", "tcp_bbr", "tcp_hybla", "tcp_vegas", "tcp_westwood")
"""What a lane needs of a kernel that has it as modules."""
PACKAGED = Path("/usr/bin/linux.uml")
PACKAGED_MODULES = Path("/usr/lib/uml/modules")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A User-Mode Linux kernel.

    Attributes:
        path: the executable.
        virtual: it can run with a virtual clock.
        version: its release, for the evidence.
        sha256: of the executable, for the evidence.
        modules: files of the kernel modules to load, in order.
    """

    path: Path
    virtual: bool
    version: str
    sha256: str = ""
    modules: tuple[Path, ...] = ()

    @classmethod
    def at(cls, path: Path) -> Kernel:
        """The kernel in a file.

        Raises:
            BedError: it is not a User-Mode Linux.
        """
        virtual = "time-travel=inf-cpu" in _ask(path, "--help")
        return cls(path, virtual, release(path), digest(path), () if virtual else _modules_of(path))


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/bentpipe`` or ``~/.cache/bentpipe``; made if missing.

    Raises:
        BedError: it cannot be written.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "bentpipe"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    raise BedError(
        f"The cache {folder} cannot be written; set XDG_CACHE_HOME to a directory that can."
    )


def config_hash() -> str:
    """Hash of the configuration our own kernel is built with."""
    return hashlib.sha256(CONFIG.read_bytes()).hexdigest()


def find_virtual() -> Kernel | None:
    """The kernel with a virtual clock: the one named by the user, else the newest built here.

    Raises:
        BedError: the named kernel cannot be used, or has no virtual clock.
    """
    if named := find_named():
        if not named.virtual:
            raise BedError(
                f"{KERNEL_VARIABLE} names {named.path}, which has no virtual clock; unset it or "
                "name a kernel configured with CONFIG_UML_TIME_TRAVEL_SUPPORT."
            )
        return named
    wanted = config_hash()
    built = cache_directory().glob(f"kernel/*/{DESCRIPTION}")
    newest_first = sorted(built, key=lambda file: file.stat().st_mtime, reverse=True)
    return next(filter(None, (_read(file, wanted) for file in newest_first)), None)


def _read(description: Path, wanted: str) -> Kernel | None:
    """The built kernel that a description describes, None if it is another or damaged."""
    try:
        told = json.loads(description.read_text(encoding="utf-8"))
        path = description.with_name("linux")
        fits = told["config"] == wanted and os.access(path, os.X_OK)
        if not fits or path.stat().st_size != told["octets"]:
            return None
        return Kernel(path, True, str(told["version"]), str(told["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_named() -> Kernel | None:
    """The kernel named by ``BENTPIPE_KERNEL``, if that is set.

    Raises:
        BedError: it is not a User-Mode Linux.
    """
    name = os.environ.get(KERNEL_VARIABLE)
    if not name:
        return None
    path = Path(name).resolve()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise BedError(
            f"{KERNEL_VARIABLE} names {name}, which is not a program; correct or unset it."
        )
    return Kernel.at(path)


def find_packaged() -> Kernel | None:
    """Debian's packaged kernel, installed or downloaded before; it runs on the wall clock."""
    if named := find_named():
        return named
    for root in (Path("/"), cache_directory() / "packaged"):
        path = root / PACKAGED.relative_to("/")
        if os.access(path, os.X_OK):
            return replace(Kernel.at(path), modules=_modules_of(path))
    return None


def fetch_packaged(progress: Progress = silent) -> Kernel:
    """Debian's packaged kernel, downloaded without root where it is missing.

    Raises:
        BedError: it is not available.
    """
    if found := find_packaged():
        return found
    cache = cache_directory()
    partial = cache / "packaged.new"
    shutil.rmtree(partial, ignore_errors=True)
    Apt(cache, progress).unpack("user-mode-linux", partial)
    shutil.rmtree(cache / "packaged", ignore_errors=True)
    partial.rename(cache / "packaged")
    if found := find_packaged():
        return found
    raise BedError(
        "Debian's package user-mode-linux holds no kernel for this machine; "
        "build one with `bentpipe bed build`."
    )


def _modules_of(kernel: Path) -> tuple[Path, ...]:
    """The modules that a lane needs, from the tree in which the kernel is installed."""
    root = kernel.parents[2] if len(kernel.parents) > 2 else Path("/")
    version = release(kernel)
    for folder in (root / PACKAGED_MODULES.relative_to("/"), PACKAGED_MODULES):
        if (folder / version).is_dir():
            return resolve(folder / version, MODULES)
    return ()


def release(kernel: Path) -> str:
    """A kernel's release, such as ``6.1.176``.

    Raises:
        BedError: it is not a User-Mode Linux.
    """
    told = _ask(kernel, "--version").strip()
    if not told[:1].isdigit():
        raise BedError(
            f"{kernel} is not a User-Mode Linux kernel; build one with `bentpipe bed build`."
        )
    return told.splitlines()[0]


def _ask(kernel: Path, option: str) -> str:
    try:
        answer = subprocess.run(
            [kernel, option], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
