"""Finding and building kernels, as far as that needs no kernel."""

import json
from pathlib import Path

import pytest
from bentpipe_conformance.bed import build, kernel
from bentpipe_conformance.bed.build import CompileCounter, newest
from bentpipe_conformance.bed.errors import BedError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(kernel.KERNEL_VARIABLE, raising=False)
    return tmp_path / "bentpipe"


def install(cache: Path, key: str, **changes: object) -> Path:
    folder = cache / "kernel" / key
    folder.mkdir(parents=True)
    binary = folder / "linux"
    binary.write_bytes(b"kernel")
    binary.chmod(0o755)
    description = {
        "version": "6.1.1",
        "config": kernel.config_hash(),
        "sha256": kernel.digest(binary),
        "octets": 6,
        **changes,
    }
    (folder / kernel.DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
    return binary


def test_empty_cache_has_no_kernel(cache: Path) -> None:
    assert kernel.find_virtual() is None


def test_built_kernel_is_found(cache: Path) -> None:
    binary = install(cache, "one")
    found = kernel.find_virtual()
    assert found is not None
    assert (found.path, found.virtual, found.version) == (binary, True, "6.1.1")


@pytest.mark.parametrize(
    "changes", [{"config": "of another version"}, {"octets": 7}, {"version": None, "octets": None}]
)
def test_kernel_does_not_fit_its_description_is_not_used(
    cache: Path, changes: dict[str, object]
) -> None:
    install(cache, "one", **changes)
    assert kernel.find_virtual() is None


def test_description_cut_off_is_not_used(cache: Path) -> None:
    binary = install(cache, "one")
    binary.with_name(kernel.DESCRIPTION).write_text('{"version": "6', encoding="utf-8")
    assert kernel.find_virtual() is None


def test_named_kernel_missing_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel.KERNEL_VARIABLE, str(cache / "nothing"))
    with pytest.raises(BedError, match="is not a program"):
        kernel.find_virtual()


def test_named_kernel_is_another_program_says_so(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kernel.KERNEL_VARIABLE, "/bin/true")
    with pytest.raises(BedError, match="not a User-Mode Linux"):
        kernel.find_virtual()


def test_named_kernel_has_no_virtual_clock_says_so(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "linux"
    program.write_text("#!/bin/sh\necho 6.1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(kernel.KERNEL_VARIABLE, str(program))
    with pytest.raises(BedError, match="no virtual clock"):
        kernel.find_virtual()
    found = kernel.find_packaged()
    assert found is not None
    assert (found.path, found.version, found.virtual) == (program, "6.1", False)


def test_cache_cannot_be_written_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BedError, match="XDG_CACHE_HOME"):
        kernel.cache_directory()


def test_configuration_asks_for_what_the_bed_needs() -> None:
    lines = kernel.CONFIG.read_text(encoding="utf-8").splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]
    assert len(settings) == len({line.partition("=")[0] for line in settings})
    assert {f"{symbol}=y" for symbol in build.NEEDED_SYMBOLS} <= set(settings)


def test_versions_compare_as_numbers() -> None:
    assert newest(["linux-source-6.1", "linux-source-6.12", "linux-source-6.9"]) == (
        "linux-source-6.12"
    )
    assert newest(["/usr/src/linux-source-6.1.tar.xz"]) == "/usr/src/linux-source-6.1.tar.xz"
    assert newest(["linux-source"]) is None


def test_make_prints_steps_each_is_counted() -> None:
    counter = CompileCounter(expected=10)
    told = [
        "  CC      init/main.o",
        "make[1]: Entering directory '/x'",
        "  AR      init/built-in.a",
        "  CALL    scripts/checksyscalls.sh",
        "drivers/net/tun.c:1: warning: odd",
        "",
    ]
    assert [counter.saw(line) for line in told] == [True, False, True, True, False, False]
    assert (counter.done, counter.total) == (3, 10)


def test_more_steps_than_expected_total_stays_ahead() -> None:
    counter = CompileCounter(done=9, expected=10)
    for _ in range(3):
        counter.saw("  CC      a.o")
    assert counter.done < counter.total


def test_compiler_missing_says_what_to_install(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BedError, match=r"gcc is missing.*build-essential"):
        build.build()


def test_compiler_cannot_compile_says_what_to_install(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gcc", "make", "tar"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho stdio.h: No such file >&2\nexit 1\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BedError, match=r"stdio.h.*build-essential"):
        build.build()
