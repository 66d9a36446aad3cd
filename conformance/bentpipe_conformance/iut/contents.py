"""What an implementation consists of: the executables and libraries that it runs, by digest.

An isolated implementation sees these files and no others, so that the list is complete. Libraries
are those that the machine's own loader names. Of a Python script run by ``{python} -IS`` they are
the interpreter's, and the modules of the standard library that the script imports. Whatever else
an implementation needs, its description names under ``[isolation] files``.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bentpipe_conformance.iut.build import built
from bentpipe_conformance.iut.description import IutDescription

PT_INTERP = 3
LOADER_PATIENCE = 10.0
"""Seconds for a loader to name a program's libraries; it runs no code of the program."""
MOST_LINKS = 40
"""That lead to one file, as for the kernel."""
LAZY = ("encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_8")
"""Modules that Python loads only when it needs them."""
SKIPPED = {"__pycache__", "site-packages"}
"""Folders that change while nothing changes, or in which nothing is the implementation's own."""
_FOUND = re.compile(r"(?:=>\s+)?(/\S.*?)\s+\(0x[0-9a-f]+\)")


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of an implementation.

    Attributes:
        files: path -> SHA-256, or what kept it from being read.
        links: symbolic links on the way to them, path -> target.
        folders: what the description asks for beyond them, path -> SHA-256 over everything in it.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def outermost(self) -> tuple[str, ...]:
        """The folders that are in no other one."""
        return tuple(
            one
            for one in self.folders
            if not _inside(one, [other for other in self.folders if other != one])
        )


def contents_of(description: IutDescription) -> Contents:
    """What starting an implementation, and making it call, runs."""
    found = _Found()
    values: dict[str, object] = {"here": description.path.parent, "python": sys.executable}
    start, opening = description.start, description.opening
    if start.build:
        folder = built(start.build)
        values["cache"] = folder
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found.add(path)
    programs = [start] if start.far is None else [start, start.far]
    commands = [
        words for one in programs for words in (one.words(values), *one.setup_words(values))
    ]
    if opening is not None and not opening.on_host:
        commands.append(list(opening.filled(values).command))
    for words in filter(None, commands):
        found.add_command(words)
    folders = {}
    for path in description.isolation.paths(values):
        if path.is_dir():
            folders[str(path)] = folder_digest(path)
            found.add_libraries_of(path)
        else:
            found.add(path)
    files = {path: told for path, told in found.files.items() if not _inside(path, folders)}
    links = {path: told for path, told in found.links.items() if not _inside(path, folders)}
    return Contents(dict(sorted(files.items())), dict(sorted(links.items())), folders)


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


class _Found:
    """Files that were found so far, each with what it needs."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.links: dict[str, str] = {}

    def add_command(self, words: Sequence[str]) -> None:
        """Everything that a command runs or names."""
        program = shutil.which(words[0])
        if program is None:
            return
        self.add(Path(program).absolute())
        for word in words[1:]:
            if "/" in word and Path(word).is_file():
                self.add(Path(os.path.abspath(word)))
        if os.path.realpath(program) == os.path.realpath(sys.executable):
            for path in _modules(tuple(words[1:])):
                self.add(Path(path))

    def add_libraries_of(self, folder: Path) -> None:
        """The libraries of the programs and libraries in a directory, without its packages."""
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name not in SKIPPED]
            for name in names:
                path = Path(place, name)
                with contextlib.suppress(OSError), path.open("rb") as handle:
                    if handle.read(4) == b"\x7fELF":
                        for library in _libraries(str(path), _loader(path.read_bytes())):
                            self.add(Path(library))

    def add(self, path: Path) -> None:
        """A file, its libraries or its interpreter, and the links by which it is reached."""
        for _ in range(MOST_LINKS):
            if not path.is_symlink():
                break
            target = os.readlink(path)
            self.links[str(path)] = target
            path = Path(os.path.normpath(path.parent / target))
        if str(path) in self.files:
            return
        try:
            octets = path.read_bytes()
        except OSError as error:
            self.files[str(path)] = f"cannot be read: {error.strerror}"
            return
        self.files[str(path)] = hashlib.sha256(octets).hexdigest()
        if octets[:2] == b"#!":
            for word in octets[2:256].split(b"\n")[0].decode(errors="replace").split()[:1]:
                self.add(Path(word))
        if octets[:4] == b"\x7fELF":
            for library in _libraries(str(path), _loader(octets)):
                self.add(Path(library))


def _loader(octets: bytes) -> str:
    """The loader that an executable names; empty if it is static, or a library."""
    if octets[4:6] != b"\x02\x01":  # 64 bits, least significant octet first
        return ""
    offset = struct.unpack_from("<Q", octets, 32)[0]
    size, count = struct.unpack_from("<HH", octets, 54)
    for index in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", octets, offset + index * size)
        if kind == PT_INTERP:
            return octets[at : at + length].rstrip(b"\0").decode(errors="replace")
    return ""


def _libraries(path: str, loader: str) -> Iterator[str]:
    """The loader of a program and the libraries that it finds for it."""
    is_library = not loader
    loader = loader or _loader_here()
    if not loader or (is_library and ".so" not in os.path.basename(path)):
        return
    told = subprocess.run(
        [loader, "--list", path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", check=False, timeout=LOADER_PATIENCE, env={"LC_ALL": "C"},
    )  # fmt: skip
    yield loader
    for line in told.stdout.splitlines():
        if found := _FOUND.search(line):
            yield os.path.normpath(found[1])


@cache
def _loader_here() -> str:
    """The loader of the interpreter that runs bentpipe."""
    return _loader(Path(os.path.realpath(sys.executable)).read_bytes())


@cache
def _modules(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Files of the standard library that a script of isolated Python imports."""
    if not arguments or "I" not in arguments[0]:
        return ()
    names = {"os", *LAZY}
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=True):
        source = following if argument == "-c" else ""
        if argument.endswith(".py"):
            source = Path(argument).read_text(encoding="utf-8", errors="replace")
        names |= _imported(source)
    code = (
        "import importlib, json, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "found = [getattr(module, kind, None) for module in sys.modules.values()\n"
        "         for kind in ('__file__', '__cached__')]\n"
        "print(json.dumps([path for path in found if path]))\n"
    )
    told = subprocess.run(
        [sys.executable, "-IS", "-c", code, *sorted(names)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if told.returncode:
        return ()
    return tuple(path for path in json.loads(told.stdout) if os.path.exists(path))


def _imported(source: str) -> set[str]:
    """Modules of the standard library that a source imports, wherever it does."""
    found: set[str] = set()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return {name for name in found if name.partition(".")[0] in sys.stdlib_module_names}


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of everything in a directory."""
    digest = hashlib.sha256()
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file():
                told = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.relative_to(folder)}\0{told}\n".encode(errors="replace"))
    return digest.hexdigest()
