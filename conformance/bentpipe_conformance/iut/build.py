"""Building the bundled implementations under test, once per machine, without root.

A recipe compiles a responder of ``iuts/`` into a directory of the cache whose name holds a hash of
its sources and one of its toolchain. It is built elsewhere and renamed when it is complete, so that
an interrupted build leaves nothing that looks finished; a lock prevents two builds of the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bentpipe_conformance.engine.locks import open_lock

Progress = Callable[[str], None]
"""Told one line at a time what a build is doing."""

_IUTS = Path(__file__).resolve().parent.parent / "iuts"
_LAST_LINES = 40


class IutUnavailable(Exception):
    """This machine cannot build an implementation; the message says what is missing."""


class BuildFailed(IutUnavailable):
    """The toolchain is here, but the build failed: its log tells more than the message."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to build one implementation.

    Attributes:
        title: what a person calls it.
        toolchain: what compiles it, with versions; raises :class:`IutUnavailable`.
        compile: makes the responder in a directory, given the sources and the shop.
    """

    title: str
    toolchain: Callable[[], str]
    compile: Callable[[Path, Path, _Shop], None]


@dataclass(frozen=True, slots=True)
class _Shop:
    """What a recipe works with: a directory for intermediate results, a log, progress."""

    title: str
    scratch: Path
    log: Path
    progress: Progress

    def run(
        self, command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Run a command, its lines going to the log and to the progress.

        Raises:
            BuildFailed: it fails.
        """
        words = [str(word) for word in command]
        lines: list[str] = []
        with (
            self.log.open("a", encoding="utf-8") as log,
            subprocess.Popen(
                words, cwd=cwd, env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                encoding="utf-8", errors="replace",
            ) as process,
        ):  # fmt: skip
            log.write(f"$ {' '.join(words)}\n")
            assert process.stdout is not None
            for line in process.stdout:
                log.write(line)
                if line.strip():
                    lines = [*lines[1 - _LAST_LINES :], line.strip()]
                    self.progress(f"{self.title}: {line.strip()}")
        if process.returncode:
            errors = [line for line in lines if re.match(r"E:|.*\berror\b", line)]
            blamed = (errors[:1] or lines[-1:] or ["it did not say why"])[0]
            raise BuildFailed(
                f"{self.title} could not be built: {blamed} (a first build needs the network; the "
                f"whole output is in {self.log})."
            )


def cache_directory() -> Path:
    """Where builds are kept: ``$XDG_CACHE_HOME/bentpipe/iut``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root).absolute() / "bentpipe" / "iut"


def built(recipe: str) -> Path:
    """The newest directory :func:`build` has made of the present sources.

    It looks at files only, and so is the one to use inside User-Mode Linux, where asking the
    toolchain for its version would take long.

    Raises:
        IutUnavailable: there is none.
    """
    sources = _fingerprint(_sources(recipe))
    found = cache_directory().glob(f"{recipe}-{sources}-*")
    newest = max(found, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        raise IutUnavailable(f"{RECIPES[recipe].title} has not been built on this machine yet.")
    return newest


def build(recipe: str, progress: Progress = lambda _: None) -> Path:
    """The directory that holds what ``recipe`` makes, built now if it was not before.

    Args:
        recipe: a key of :data:`RECIPES`, as ``[start] build`` names it.
        progress: told what is going on, line by line; not called when nothing needs building.

    Raises:
        IutUnavailable: the recipe is unknown or the machine lacks something.
        BuildFailed: the build itself failed, without a network for example.
    """
    sources = _sources(recipe)
    chosen = RECIPES[recipe]
    toolchain = chosen.toolchain()
    cache = cache_directory()
    finished = cache / f"{recipe}-{_fingerprint(sources)}-{_short_hash(toolchain.encode())}"
    if finished.is_dir():
        return finished
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"{recipe}.lock", chosen.title, progress):
            if not finished.is_dir():
                _make(recipe, chosen, sources, toolchain, finished, progress)
    except OSError as error:
        raise IutUnavailable(
            f"{chosen.title} cannot be built in {cache}: {error.strerror}; set XDG_CACHE_HOME to a "
            "directory with room."
        ) from error
    return finished


def _make(
    recipe: str, chosen: Recipe, sources: Path, toolchain: str, finished: Path, progress: Progress
) -> None:
    progress(f"{chosen.title}: building with {toolchain}")
    cache = finished.parent
    log = cache / f"{recipe}.log"
    log.write_text("", encoding="utf-8")
    for abandoned in cache.glob(f".{recipe}-*"):  # by a build that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{recipe}-", dir=cache) as made:
        shop = _Shop(chosen.title, Path(made), log, progress)
        output = shop.scratch / "output"
        output.mkdir()
        chosen.compile(sources, output, shop)
        (output / "toolchain").write_text(f"{toolchain}\n", encoding="utf-8")
        output.rename(finished)
    progress(f"{chosen.title}: built in {finished}")


def _sources(recipe: str) -> Path:
    if recipe not in RECIPES:
        raise IutUnavailable(
            f"there is no build recipe {recipe!r}; [start] build can be {', '.join(RECIPES)}."
        )
    return _IUTS / recipe


def _short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _fingerprint(sources: Path) -> str:
    parts = [platform.machine()]
    for path in filter(Path.is_file, sorted(sources.rglob("*"))):
        parts += [str(path.relative_to(sources)), _short_hash(path.read_bytes())]
    return _short_hash("\0".join(parts).encode())


@contextmanager
def _locked(path: Path, title: str, progress: Progress) -> Iterator[None]:
    with os.fdopen(open_lock(path), "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"{title}: waiting for another build of it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _program(name: str, *elsewhere: str) -> str | None:
    """A program on the path, or where its own installer puts it."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *elsewhere])
    return shutil.which(name, path=os.path.expanduser(path))


def _output(command: Sequence[str]) -> str:
    """What a command prints, empty when it fails."""
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env={**os.environ, "LC_ALL": "C", "GOTOOLCHAIN": "local"},
        )  # fmt: skip
    except OSError:
        return ""
    return result.stdout if result.returncode == 0 else ""


def _said(command: Sequence[str]) -> str:
    """The first line a command prints, empty when it fails."""
    return _output(command).partition("\n")[0].strip()


def _recent(
    title: str, language: str, compiler: str, least: tuple[int, int], option: str, advice: str
) -> str:
    """The version a compiler prints, ``least`` or newer."""
    said = _said([compiler, option])
    number = re.search(r"(\d+)\.(\d+)", said)
    if number is None or (int(number[1]), int(number[2])) < least:
        raise IutUnavailable(
            f"{title} needs {language} {least[0]}.{least[1]} or newer and this machine has "
            f"{said or 'none'}: {advice}."
        )
    return said


# lwIP: Debian's library, downloaded and unpacked for the build unless it is installed.

_LWIP_PACKAGES = ("liblwip-dev", "liblwip0")


def _lwip_toolchain() -> str:
    compiler = _said([_program("cc") or "cc", "--version"])
    if not compiler:
        raise IutUnavailable("lwIP needs a C compiler: apt-get install gcc libc6-dev.")
    installed = _said(["dpkg-query", "-W", "-f", "${Version}", _LWIP_PACKAGES[0]])
    version = installed or _candidate(_LWIP_PACKAGES[0])
    if not version:
        raise IutUnavailable(
            "lwIP is taken from Debian's packages liblwip-dev and liblwip0, which this machine "
            "does not know: apt-get update, then try again."
        )
    return f"{_LWIP_PACKAGES[0]} {version}, {compiler}"


def _candidate(package: str) -> str:
    found = re.search(r"Candidate: (\d\S*)", _output(["apt-cache", "policy", package]))
    return found[1] if found else ""


def _compile_lwip(sources: Path, output: Path, shop: _Shop) -> None:
    root = Path("/")
    if not (root / "usr/include/lwip/lwip/init.h").exists():
        # Without this option root's apt-get would warn that its helper user cannot write here.
        apt_get = ["apt-get", *(["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else [])]
        shop.run([*apt_get, "download", *_LWIP_PACKAGES], cwd=shop.scratch)
        root = shop.scratch / "debian"
        for package in sorted(shop.scratch.glob("*.deb")):
            shop.run(["dpkg-deb", "-x", package, root], cwd=shop.scratch)
    library = next(iter((root / "usr/lib").glob("*/liblwip.so.0")), None)
    if library is None:
        missing = "lwIP's headers are here without its library"
        raise IutUnavailable(f"{missing}: apt-get install liblwip0.")
    # Beside the responder, which looks there first: Debian has no static library of lwIP.
    shutil.copyfile(library, output / library.name)
    command: list[str | Path] = [
        "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra",
        "-isystem", root / "usr/include/lwip", "-isystem", root / "usr/include",
        *sorted(sources.glob("*.c")), output / library.name, "-Wl,-rpath,$ORIGIN",
        "-o", output / "lwip-responder",
    ]  # fmt: skip
    shop.run(command, cwd=sources)


# ns-3: Debian's libraries, installed.

_NS3_LIBRARIES = ("internet", "traffic-control", "point-to-point", "network", "core")


def _ns3_toolchain() -> str:
    compiler = _said([_program("g++") or "g++", "--version"])
    version = _said([_program("pkg-config") or "pkg-config", "--modversion", "ns3-internet"])
    if not compiler or not version:
        missing = "a C++ compiler" if version else "ns-3 with its headers"
        raise IutUnavailable(
            f"This machine lacks {missing}: apt-get install libns3-dev g++ pkg-config."
        )
    return f"ns-3 {version}, {compiler}"


def _compile_ns3(sources: Path, output: Path, shop: _Shop) -> None:
    # Not what pkg-config says: that names libraries of ns-3's dependencies without their packages.
    command: list[str | Path] = [
        "g++", "-std=c++17", "-O2", "-Wall", "-Wextra", *sorted(sources.glob("*.cc")),
        *(f"-lns3-{name}" for name in _NS3_LIBRARIES), "-o", output / "meet",
    ]  # fmt: skip
    shop.run(command, cwd=sources)


# smoltcp, stp-rust: crates; Cargo.toml pins every version, also of what they need in turn.


def _cargo() -> str:
    return _program("cargo", "~/.cargo/bin") or "cargo"


def _cargo_toolchain(title: str) -> str:
    advice = "install a current one with rustup"
    return _recent(title, "Rust", _cargo(), (1, 91), "--version", advice)


def _compile_cargo(program: str, sources: Path, output: Path, shop: _Shop) -> None:
    # Cargo writes a Cargo.lock, and the sources may be read-only.
    left_out = shutil.ignore_patterns("target", "Cargo.lock")
    crate = shutil.copytree(sources, shop.scratch / "crate", ignore=left_out)
    # Not wherever the user's environment has Cargo put its results.
    target = shop.scratch / "target"
    shop.run([_cargo(), "build", "--release", "--target-dir", target], cwd=crate)
    shutil.copy(target / "release" / program, output)


def _cargo_recipe(title: str, program: str) -> Recipe:
    return Recipe(title, partial(_cargo_toolchain, title), partial(_compile_cargo, program))


# gVisor: a Go module, pinned by go.sum. rwbp-go, stp-go: Go's standard library is enough.


def _go() -> str:
    return _program("go", "/usr/local/go/bin", "~/go/bin") or "go"


def _go_toolchain(title: str) -> str:
    advice = "apt-get install golang, or a newer one where that is older"
    return _recent(title, "Go", _go(), (1, 23), "version", advice)


def _compile_go(program: str, sources: Path, output: Path, shop: _Shop) -> None:
    flags = ("-v", "-mod=readonly", "-trimpath", "-buildvcs=false")
    # The machine's own toolchain, and a static program.
    environment = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    shop.run([_go(), "build", *flags, "-o", output / program, "."], sources, environment)


def _go_recipe(title: str, program: str) -> Recipe:
    return Recipe(title, partial(_go_toolchain, title), partial(_compile_go, program))


RECIPES: Mapping[str, Recipe] = {
    "gvisor": _go_recipe("gVisor netstack", "gvisor-responder"),
    "lwip": Recipe("lwIP", _lwip_toolchain, _compile_lwip),
    "ns3": Recipe("ns-3", _ns3_toolchain, _compile_ns3),
    "rwbp-go": _go_recipe("rwbp-go", "rwbp-go"),
    "smoltcp": _cargo_recipe("smoltcp", "smoltcp-responder"),
    "stp-go": _go_recipe("stp-go", "stp-go"),
    "stp-rust": _cargo_recipe("stp-rust", "stp-rust"),
}
"""What can be built, by the name a description uses."""
