"""Building the bed's own kernel, which has a virtual clock, without root.

It is built once per machine from Debian's kernel source with our configuration and the machine's
compiler. An interrupted build continues where it stopped; concurrent builds wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.commands import run_briefly, run_followed, tail
from bentpipe_conformance.bed.debian import Apt
from bentpipe_conformance.bed.errors import BedError, last_line
from bentpipe_conformance.bed.kernel import Kernel
from bentpipe_conformance.bed.progress import Progress, Step, silent
from bentpipe_conformance.engine.locks import open_lock

SOURCE_VARIABLE = "BENTPIPE_KERNEL_SOURCE"
INSTALLED_SOURCES = Path("/usr/src")
SPACE = 2 << 30
"""Octets that the source and the objects need."""
EXPECTED_STEPS = 1140
"""Lines that a compilation prints, about; kernel versions differ a little."""
WAIT = 0.5
UNUSED = (
    "Documentation/*/*",
    "drivers/gpu/drm/*/*.[ch]",
    "drivers/infiniband/*.[ch]",
    "drivers/media/*.[ch]",
    "drivers/net/ethernet/*.[ch]",
    "drivers/net/wireless/*.[ch]",
    "drivers/scsi/*.[ch]",
    "drivers/staging/*.[ch]",
    "drivers/usb/*.[ch]",
    "sound/*.[ch]",
    "tools/perf/*",
    "tools/testing/*",
    "arch/[!ux]*/*.[chS]",
    "arch/*.dts*",
)
"""Parts of the source tree not worth unpacking; configuration files of drivers are kept."""
TOOLS = {"flex": ("flex",), "bison": ("bison",), "bc": ("bc", "libreadline8"), "m4": ("m4",)}
"""Programs the build needs, and the packages that hold each."""
NEEDED_SYMBOLS = tuple(
    f"CONFIG_{name}"
    for name in (
        "UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "NET_SCH_NETEM", "VETH", "TUN", "PACKET", "NET_NS",
    )
)  # fmt: skip
DOWNLOADS = ("apt", "packages", "source", "tools")
"""Directories of the cache that are useless once the kernel is built."""
MISLEADING = (
    "MAKE", "MFLAGS", "KBUILD_", "KCONFIG_", "ARCH", "SUBARCH", "CROSS_COMPILE", "GNUMAKE",
)  # fmt: skip
"""Prefixes of variables that would change what make does, such as the caller's number of jobs."""
Follow = Callable[[str], None]
_STEP = re.compile(r"^  [A-Z][A-Z+]*\s+\S")
_VERSION = re.compile(r"(\d+(?:\.\d+)+)")
_ERROR = re.compile(r"error|can't|cannot|No such", re.IGNORECASE)
_FULL = "No space left on device"


def build(progress: Progress = silent) -> Kernel:
    """The bed's own kernel, built if it is missing or another source is named.

    Raises:
        BedError: something that the build needs is missing; the message says how to get it.
    """
    found = kernels.find_virtual()
    if found is not None and not os.environ.get(SOURCE_VARIABLE):
        return found
    cache = kernels.cache_directory() / "kernel"
    compiler = _compiler()
    try:
        cache.mkdir(exist_ok=True)
        with _locked(cache / "build.lock", progress) as lock:
            return _Build(cache, compiler, progress, lock).run()
    except OSError as error:
        raise BedError(
            f"The kernel could not be built in {cache} ({error.strerror or error}); "
            "make room or set XDG_CACHE_HOME."
        ) from None


class _Build:
    def __init__(self, cache: Path, compiler: str, progress: Progress, lock: int) -> None:
        self.cache = cache
        self.compiler = compiler
        self.progress = progress
        self.lock = lock
        kept = {name: text for name, text in os.environ.items() if not name.startswith(MISLEADING)}
        own = {"KBUILD_BUILD_USER": "bentpipe", "KBUILD_BUILD_HOST": "bentpipe", "LC_ALL": "C"}
        self.environment = kept | own

    def run(self) -> Kernel:
        archive, source = self._source()
        config = kernels.config_hash()
        key = hashlib.sha256(f"{config}\n{source}\n{self.compiler}".encode()).hexdigest()[:16]
        place = self.cache / key
        if (place / kernels.DESCRIPTION).is_file() and (place / "linux").is_file():
            # The newest is used.
            os.utime(place / kernels.DESCRIPTION)
            found = kernels.find_virtual()
            if found is not None and found.path == place / "linux":
                return found
        free = shutil.disk_usage(self.cache).free
        if free < SPACE:
            raise BedError(
                f"Building the kernel needs {SPACE / 1e9:.1f} GB in {self.cache}, "
                f"{free / 1e9:.1f} GB are free; make room or set XDG_CACHE_HOME."
            )
        work = self.cache / "work" / key
        tree = self._unpacked(archive, work)
        self._tools()
        self._configure(tree, work)
        steps = self._compile(tree, work)
        kernel = self._install(tree, place, config=config, source=source, steps=steps)
        for folder in (self.cache / "work", *(self.cache.parent / name for name in DOWNLOADS)):
            shutil.rmtree(folder, ignore_errors=True)
        return kernel

    def _source(self) -> tuple[Path, str]:
        """The archive of the kernel's source, and what identifies its version."""
        named = os.environ.get(SOURCE_VARIABLE)
        if named:
            path = Path(named).resolve()
            if not path.is_file():
                raise BedError(f"{SOURCE_VARIABLE} names {named}, which is not a file; correct it.")
            return path, f"{path.name} {kernels.digest(path)}"
        if installed := newest(map(str, INSTALLED_SOURCES.glob("linux-source-*.tar.*"))):
            return _sized(Path(installed))
        apt = Apt(self.cache.parent, self.progress, (self.lock,))
        package = newest(apt.versions(r"^linux-source-[0-9.]+$"))
        if package is None:
            raise BedError(
                "apt knows no package linux-source-*; add Debian's main section to /etc/apt, or "
                f"name a kernel's source with {SOURCE_VARIABLE}=linux-VERSION.tar.xz."
            )
        folder = self.cache.parent / "source"
        for old in folder.glob(f"*/usr/src/{package}.tar.*"):
            return _sized(old)
        partial = folder / f"{package}.new"
        shutil.rmtree(partial, ignore_errors=True)
        deb = apt.unpack(package, partial)
        partial.rename(folder / package)
        deb.unlink()
        for path in (folder / package).glob("usr/src/*.tar.*"):
            return _sized(path)
        raise BedError(f"Debian's package {package} holds no source; remove {folder} and repeat.")

    def _unpacked(self, archive: Path, work: Path) -> Path:
        tree, mark = work / "tree", work / "unpacked"
        if mark.exists() and mark.read_text(encoding="ascii") == repr(UNUSED):
            return tree
        shutil.rmtree(work.parent, ignore_errors=True)
        tree.mkdir(parents=True)
        self.progress(Step("unpack", 0, 0, f"unpacking {archive.name}"))
        words = [_program("tar"), "-xf", str(archive), "-C", str(tree), "--strip-components=1"]
        words += ["--no-same-owner", "--wildcards", "--anchored", "--wildcards-match-slash"]
        words += [f"--exclude=*/{pattern}" for pattern in UNUSED]
        log = work / "unpack.log"
        if self._run(words, log, work):
            raise self._failure("The kernel's source could not be unpacked", log)
        mark.write_text(repr(UNUSED), encoding="ascii")
        return tree

    def _tools(self) -> None:
        """Make flex, bison, bc and m4 available, from packages where they are not installed."""
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if not missing:
            return
        folder = self.cache.parent / "tools"
        apt = Apt(self.cache.parent, self.progress, (self.lock,))
        for tool in missing:
            if not (folder / "usr/bin" / tool).exists():
                for package in TOOLS[tool]:
                    apt.unpack(package, folder)
        programs, environment = f"{folder}/usr/bin", self.environment
        libraries = [
            str(path) for place in ("usr/lib", "lib") for path in folder.glob(f"{place}/*-gnu*")
        ]
        libraries += filter(None, [environment.get("LD_LIBRARY_PATH")])
        environment["PATH"] = f"{programs}:{environment.get('PATH', os.defpath)}"
        environment["LD_LIBRARY_PATH"] = ":".join(libraries)
        if "bison" in missing:
            environment["BISON_PKGDATADIR"] = f"{folder}/usr/share/bison"
        if "m4" in missing:
            environment["M4"] = f"{programs}/m4"

    def _configure(self, tree: Path, work: Path) -> None:
        self.progress(Step("configure", 0, 0, "configuring the kernel"))
        log = work / "configure.log"
        fragment = f"KCONFIG_ALLCONFIG={kernels.CONFIG}"
        if self._make(tree, log, [fragment, "allnoconfig"]):
            raise self._failure("The kernel could not be configured", log)
        chosen = (tree / ".config").read_text(encoding="utf-8").splitlines()
        for symbol in NEEDED_SYMBOLS:
            if f"{symbol}=y" not in chosen:
                raise BedError(
                    f"This kernel source does not offer {symbol}; "
                    f"name another with {SOURCE_VARIABLE}=linux-VERSION.tar.xz."
                )

    def _compile(self, tree: Path, work: Path) -> int:
        """Compile; the number of lines that took."""
        counter = CompileCounter(sum(1 for _ in tree.rglob("*.[oa]")))
        log = work / "compile.log"
        jobs = len(os.sched_getaffinity(0))

        def follow(line: str) -> None:
            if counter.saw(line):
                done, total = counter.done, counter.total
                self.progress(Step("compile", done, total, line.split()[-1]))

        if self._make(tree, log, [f"-j{jobs}", "linux"], follow=follow):
            raise self._failure("The kernel could not be compiled", log)
        return counter.done

    def _install(self, tree: Path, place: Path, *, config: str, source: str, steps: int) -> Kernel:
        self.progress(Step("install", 0, 0, "installing the kernel"))
        partial = place.with_name(f"{place.name}.new")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        binary = partial / "linux"
        strip = shutil.which("strip")
        if strip is None or run_briefly([strip, "-o", binary, tree / "linux"]).returncode:
            shutil.copy2(tree / "linux", binary)
        binary.chmod(0o755)
        kernel = Kernel(place / "linux", True, kernels.release(binary), kernels.digest(binary))
        description = {
            "version": kernel.version,
            "source": source,
            "config": config,
            "compiler": self.compiler,
            "sha256": kernel.sha256,
            "octets": binary.stat().st_size,
            "steps": steps,
        }
        text = json.dumps(description, indent=2) + "\n"
        (partial / kernels.DESCRIPTION).write_text(text, encoding="utf-8")
        shutil.copy2(tree / ".config", partial / "config")
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
        return kernel

    def _make(
        self, tree: Path, log: Path, words: Sequence[str], follow: Follow | None = None
    ) -> int | None:
        return self._run([_program("make"), "ARCH=um", *words], log, tree, follow)

    def _run(
        self, argv: Sequence[str], log: Path, cwd: Path, follow: Follow | None = None
    ) -> int | None:
        return run_followed(
            argv, log=log, env=self.environment, cwd=cwd, inherited=(self.lock,), follow=follow
        )

    def _failure(self, what: str, log: Path) -> BedError:
        said = tail(log)
        if _FULL in said:
            return BedError(
                f"{what}: the disk of {self.cache} is full; make room or set XDG_CACHE_HOME."
            )
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        own = [line for line in lines if not line.startswith("make")]
        errors = [line for line in own if _ERROR.search(line)]
        reason = (errors or own[-1:] or ["no reason given"])[0].rstrip(".")
        return BedError(f"{what} ({reason}); see {log}, fix it and repeat `bentpipe bed build`.")


@dataclass(slots=True)
class CompileCounter:
    """Counts the lines that make prints, one for each file it makes, after those made before."""

    done: int = 0
    expected: int = EXPECTED_STEPS

    @property
    def total(self) -> int:
        """The estimate of how many there will be."""
        return max(self.expected, self.done + 1)

    def saw(self, line: str) -> bool:
        """Count a line of make's output; False when it names no file."""
        if not _STEP.match(line):
            return False
        self.done += 1
        return True


def newest(names: Iterable[str]) -> str | None:
    """The name with the highest version in it, such as ``linux-source-6.12``."""

    def version(name: str) -> tuple[int, ...]:
        match = _VERSION.search(name.rpartition("/")[2])
        return tuple(int(part) for part in match[1].split(".")) if match else ()

    return max((name for name in names if version(name)), key=version, default=None)


@contextlib.contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[int]:
    """Hold the lock of the cache, after waiting for another build to end."""
    with os.fdopen(open_lock(path), "wb") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                progress(Step("wait", 0, 0, "another bentpipe is building the kernel"))
                time.sleep(WAIT)
        yield handle.fileno()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BedError(f"{name} is missing; install it with `apt-get install build-essential`.")
    return found


def _compiler() -> str:
    """The version line of the C compiler, after a trial compilation.

    Raises:
        BedError: it is missing or fails.
    """
    gcc = _program("gcc")
    _program("make")
    _program("tar")
    program = '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'
    trial = run_briefly([gcc, "-x", "c", "-", "-o", os.devnull], program)
    if trial.returncode:
        raise BedError(
            f"gcc cannot compile a program ({last_line(trial.stderr)}); "
            "install what it lacks with `apt-get install build-essential`."
        )
    return run_briefly([gcc, "--version"]).stdout.splitlines()[0]


def _sized(source: Path) -> tuple[Path, str]:
    return source, f"{source.name} {source.stat().st_size}"
