"""Debian packages without root: downloaded by apt into a folder of our own, unpacked by dpkg."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from bentpipe_conformance.bed.commands import run_briefly, run_followed, tail
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.bed.progress import Progress, Step

_STATUS = re.compile(r"^dlstatus:\d+:([\d.]+):(.*)$")
_FAULT = re.compile(r"^E: (.*)$", re.MULTILINE)


class Apt:
    """apt-get, first with the system's package lists, then with lists of our own."""

    def __init__(self, cache: Path, progress: Progress, inherited: Sequence[int] = ()) -> None:
        """Store downloads in ``cache``.

        Raises:
            BedError: this is not Debian.
        """
        for program in ("apt-get", "apt-cache", "dpkg"):
            if shutil.which(program) is None:
                raise BedError(
                    f"{program} is missing, so packages cannot be downloaded here; name a kernel "
                    "built elsewhere with BENTPIPE_KERNEL=FILE, or its source with "
                    "BENTPIPE_KERNEL_SOURCE=linux-VERSION.tar.xz."
                )
        self._cache = cache
        self._progress = progress
        self._inherited = tuple(inherited)
        self._own_lists = False
        self._log = cache / "apt.log"
        (cache / "packages").mkdir(parents=True, exist_ok=True)

    def versions(self, pattern: str) -> list[str]:
        """Names of the packages that match a regular expression, as apt knows them."""
        names = self._search(pattern)
        if not names and not self._own_lists:
            self._update()
            names = self._search(pattern)
        return names

    def _search(self, pattern: str) -> list[str]:
        found = run_briefly(["apt-cache", *self._options(), "search", "--names-only", pattern])
        return [line.split()[0] for line in found.stdout.splitlines() if line.strip()]

    def download(self, package: str) -> Path:
        """Download a package; the file.

        Raises:
            BedError: it is not available.
        """
        folder = self._cache / "packages" / package
        folder.mkdir(exist_ok=True)
        argv, text = ["download", package], f"downloading {package}"
        status = self._apt_get(argv, folder, text)
        if status and not self._own_lists:
            self._update()
            status = self._apt_get(argv, folder, text)
        if status:
            raise self._failure(f"Debian's package {package}")
        files = sorted(folder.glob("*.deb"), key=lambda file: file.stat().st_mtime)
        if not files:
            raise BedError(
                f"apt downloaded no file for {package}; remove {folder} and repeat the command."
            )
        return files[-1]

    def unpack(self, package: str, folder: Path) -> Path:
        """Download a package and unpack it into ``folder``; the package's file."""
        file = self.download(package)
        folder.mkdir(parents=True, exist_ok=True)
        done = run_briefly(["dpkg", "-x", file, folder])
        if done.returncode:
            file.unlink(missing_ok=True)
            raise BedError(f"{file.name} cannot be unpacked ({last_line(done.stderr)}); repeat.")
        return file

    def _update(self) -> None:
        self._own_lists = True
        for part in ("state/lists/partial", "archive/archives/partial"):
            (self._cache / "apt" / part).mkdir(parents=True, exist_ok=True)
        if self._apt_get(["update"], self._cache, "updating the list of packages"):
            raise self._failure("Debian's list of packages")

    def _apt_get(self, argv: Sequence[str], cwd: Path, text: str) -> int:
        self._progress(Step("download", 0, 100, text))

        def follow(line: str) -> None:
            if match := _STATUS.match(line):
                self._progress(Step("download", float(match[1]), 100, text))

        program = shutil.which("apt-get")
        assert program is not None
        argv = [program, "-q", *self._options(), *argv, "-o", "APT::Status-Fd=1"]
        status = run_followed(
            argv, log=self._log, cwd=cwd, inherited=self._inherited, follow=follow
        )
        return 1 if status is None else status

    def _options(self) -> list[str]:
        """Options that keep apt away from what only root may write."""
        own = self._cache / "apt"
        settings = ["APT::Sandbox::User=root"]
        if self._own_lists:
            settings += [
                f"Dir::State={own}/state",
                f"Dir::State::Lists={own}/state/lists",
                "Dir::State::status=/var/lib/dpkg/status",
                f"Dir::Cache={own}/archive",
            ]
        return [word for setting in settings for word in ("-o", setting)]

    def _failure(self, what: str) -> BedError:
        said = tail(self._log)
        reason = (_FAULT.findall(said) or [last_line(said)])[0].rstrip(".")
        return BedError(
            f"{what} could not be downloaded ({reason}); "
            "check the network and the package sources in /etc/apt, then repeat."
        )
