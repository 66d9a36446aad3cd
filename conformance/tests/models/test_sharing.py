"""Java's archive of the model checker's classes."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.sharing import sharing
from bentpipe_conformance.models.tool import find_tool

MAKES = """
[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit 0; }
echo made >> made
for word; do case "$word" in
    -XX:ArchiveClassesAtExit=*) echo classes > "${word#*=}";;
esac; done
"""


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "tools.jar"
    path.write_bytes(b"jar")
    return path


def java_that(tmp_path: Path, does: str) -> str:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\n{does.replace('>> made', f'>> {tmp_path}/made')}", "utf-8")
    java.chmod(0o755)
    return str(java)


def made(tmp_path: Path) -> int:
    return len((tmp_path / "made").read_text(encoding="utf-8").splitlines())


def test_archive_is_made_once(tmp_path: Path, jar: Path) -> None:
    java, folder = java_that(tmp_path, MAKES), tmp_path / "cache"
    first, server = sharing(java, jar, folder)
    assert sharing(java, jar, folder) == (first, None) and made(tmp_path) == 1
    (archive,) = folder.iterdir()
    assert first[0] == f"-XX:SharedArchiveFile={archive}" and server is None
    assert archive.read_text(encoding="utf-8") == "classes\n"


def test_other_java_and_other_jar_have_archives_of_their_own(tmp_path: Path, jar: Path) -> None:
    folder = tmp_path / "cache"
    sharing(java_that(tmp_path, MAKES), jar, folder)
    sharing(java_that(tmp_path, MAKES.replace("17.0.1", "21.0.1")), jar, folder)
    jar.write_bytes(b"another jar")
    sharing(java_that(tmp_path, MAKES), jar, folder)
    assert len(list(folder.iterdir())) == made(tmp_path) == 3


@pytest.mark.parametrize(
    "does",
    [
        MAKES.replace("17.0.1", "11.0.2"),
        MAKES.replace("17.0.1", "1.8.0_202"),
        '[ "$1" = -version ] && exit 0\nexec sleep 60\n',
        MAKES.replace('echo classes > "${word#*=}"', "true"),
        f"{MAKES}exit 1\n",
    ],
)
def test_java_that_makes_no_archive_goes_without(tmp_path: Path, jar: Path, does: str) -> None:
    folder = tmp_path / "cache"
    assert sharing(java_that(tmp_path, does), jar, folder) == ((), None)
    assert not folder.exists() or not list(folder.iterdir())


COMPILES = """
for word; do case "$last" in -d) mkdir -p "$word"; echo class > "$word/TlcServer.class";; esac
last=$word; done
"""


def test_java_with_a_compiler_has_a_server(tmp_path: Path, jar: Path) -> None:
    java, folder = java_that(tmp_path, MAKES), tmp_path / "cache"
    (tmp_path / "javac").write_text(f"#!/bin/sh\n{COMPILES}", "utf-8")
    (tmp_path / "javac").chmod(0o755)
    _, server = sharing(java, jar, folder)
    assert server is not None
    with zipfile.ZipFile(server) as archive:
        assert archive.namelist() == ["TlcServer.class"]
    before = server.stat()
    server.unlink()  # made once more, it is the one that the archive remembers
    assert sharing(java, jar, folder)[1] == server
    assert (server.stat().st_mtime, server.stat().st_size) == (before.st_mtime, before.st_size)


def test_model_checker_is_loaded_from_the_archive(tmp_path: Path) -> None:
    tool = find_tool(model_root())
    if not tool.sharing:
        pytest.skip("this Java makes no archive")
    log = tmp_path / "loaded"
    subprocess.run(
        [tool.java, *tool.sharing, f"-Xlog:class+load:file={log}", "-cp", tool.classpath,
         "tlc2.TLC", "-h"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    (line,) = [line for line in log.read_text().splitlines() if " tlc2.TLC " in line]
    assert "shared objects file" in line
