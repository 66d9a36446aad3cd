from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from bentpipe_conformance.iut import build as building
from bentpipe_conformance.iut.build import BuildFailed, IutUnavailable, Recipe, build, built


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bentpipe" / "iut"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(building, "_IUTS", tmp_path / "iuts")
    place = tmp_path / "iuts" / "toy"
    place.mkdir(parents=True)
    (place / "toy.c").write_text("one")
    return place


def shouting(*commands: list[str]) -> Callable[[Path, Path, building._Shop], None]:
    """A compilation that copies its source after some commands."""

    def compile_it(sources: Path, output: Path, shop: building._Shop) -> None:
        for command in commands:
            shop.run(command, cwd=sources)
        (output / "toy").write_text((sources / "toy.c").read_text())

    return compile_it


def use(monkeypatch: pytest.MonkeyPatch, recipe: Recipe) -> None:
    monkeypatch.setattr(building, "RECIPES", {"toy": recipe})


def nothing(line: str) -> None:
    raise AssertionError(f"nothing was to be done, yet: {line}")


def test_built_recipe_built_again_comes_from_the_cache(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting(["echo", "compiling"])))
    told: list[str] = []
    first = build("toy", told.append)
    assert (first / "toy").read_text() == "one"
    assert "Toy: compiling" in told
    assert (first / "toolchain").read_text() == "cc 1\n"
    assert build("toy", nothing) == first
    assert built("toy") == first


def test_built_recipe_other_sources_or_toolchain_build_anew(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting()))
    first = build("toy", lambda line: None)
    (sources / "toy.c").write_text("two")
    second = build("toy", lambda line: None)
    use(monkeypatch, Recipe("Toy", lambda: "cc 2", shouting()))
    third = build("toy", lambda line: None)
    assert len({first, second, third}) == 3
    assert (second / "toy").read_text() == "two"


def test_failing_compiler_is_quoted_and_leaves_nothing_that_looks_built(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "echo starting; echo 'toy.c:3: error: no such thing' >&2; echo 'gave up'; exit 3"
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting(["sh", "-c", script])))
    with pytest.raises(BuildFailed) as caught:
        build("toy", lambda line: None)
    assert "Toy could not be built: toy.c:3: error: no such thing" in str(caught.value)
    assert str(cache / "toy.log") in str(caught.value)
    assert "gave up" in (cache / "toy.log").read_text()
    assert [path for path in cache.iterdir() if path.is_dir()] == []


def test_build_killed_earlier_its_remains_are_removed(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remains = cache / ".toy-killed"
    (remains / "output").mkdir(parents=True)
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting()))
    build("toy", lambda line: None)
    assert not remains.exists()


def test_two_builds_at_once_compile_once(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_waits = threading.Event()
    compilations: list[Path] = []

    def slow(sources: Path, output: Path, shop: building._Shop) -> None:
        compilations.append(output)
        if len(compilations) == 1:
            other.start()
            assert second_waits.wait(10)

    def waiting(line: str) -> None:
        if "waiting" in line:
            second_waits.set()

    results: list[Path] = []
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", slow))
    other = threading.Thread(target=lambda: results.append(build("toy", waiting)))
    results.append(build("toy", lambda line: None))
    other.join(10)
    assert len(compilations) == 1
    assert len(results) == 2
    assert results[0] == results[1]


def test_recipe_not_built_from_these_sources_is_not_found(
    cache: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting()))
    build("toy")
    (sources / "toy.c").write_text("two")
    with pytest.raises(IutUnavailable, match=r"Toy has not been built on this machine yet\."):
        built("toy")


def test_unknown_recipe_names_the_known_ones() -> None:
    with pytest.raises(
        IutUnavailable, match=r"'tox'; \[start\] build can be gvisor, lwip, ns3, rwbp-go"
    ):
        build("tox", nothing)


def test_cache_that_cannot_be_written_says_what_to_set(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting()))
    with pytest.raises(IutUnavailable, match="set XDG_CACHE_HOME to a directory with room"):
        build("toy", lambda line: None)


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ("lwip", "lwIP needs a C compiler: apt-get install gcc libc6-dev."),
        ("smoltcp", "smoltcp needs Rust 1.91 or newer and this machine has none: install"),
        ("gvisor", "gVisor netstack needs Go 1.23 or newer and this machine has none: apt-get"),
        ("rwbp-go", "rwbp-go needs Go 1.23 or newer and this machine has none: apt-get install"),
        ("stp-go", "stp-go needs Go 1.23 or newer and this machine has none: apt-get install"),
        ("stp-rust", "stp-rust needs Rust 1.91 or newer and this machine has none: install"),
    ],
)
def test_machine_without_the_toolchain_says_how_to_get_it(
    recipe: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_said", lambda command: "")
    with pytest.raises(IutUnavailable) as caught:
        build(recipe, nothing)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("recipe", "said", "sentence"),
    [
        ("smoltcp", "cargo 1.63.0", "this machine has cargo 1.63.0"),
        ("gvisor", "go version go1.19.8 linux/amd64", "this machine has go version go1.19.8"),
    ],
)
def test_machine_with_an_old_toolchain_says_which(
    recipe: str, said: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_said", lambda command: said)
    with pytest.raises(IutUnavailable, match=sentence):
        build(recipe, nothing)


def test_machine_without_debian_packages_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_said", lambda command: "" if "dpkg" in command[0] else "cc 1")
    monkeypatch.setattr(building, "_candidate", lambda package: "")
    with pytest.raises(IutUnavailable, match="Debian's packages liblwip-dev and liblwip0"):
        build("lwip", nothing)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_lock_that_is_no_regular_file_is_refused(
    cache: Path, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    use(monkeypatch, Recipe("Toy", lambda: "cc 1", shouting()))
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    cache.mkdir(parents=True)
    if kind == "link":
        (cache / "toy.lock").symlink_to(thesis)
    else:
        os.mkfifo(cache / "toy.lock")
    with pytest.raises(IutUnavailable):
        build("toy", nothing)
    assert thesis.read_text() == "years of work"
