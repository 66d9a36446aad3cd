"""Resolving kernel modules needs no kernel."""

from pathlib import Path

import pytest
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.bed.modules import resolve

DEPENDENCIES = """\
kernel/drivers/net/veth.ko:
kernel/net/sched/sch_netem.ko:
kernel/net/ipv4/tcp_yeah.ko: kernel/net/ipv4/tcp_vegas.ko
kernel/net/ipv4/tcp_vegas.ko:
kernel/net/ipv6/sit.ko: kernel/net/ipv4/tunnel4.ko kernel/net/ipv4/ip_tunnel.ko
kernel/net/ipv4/tunnel4.ko:
kernel/net/ipv4/ip_tunnel.ko: kernel/net/ipv4/tunnel4.ko
kernel/net/x/snd-odd.ko.xz:
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "modules.dep").write_text(DEPENDENCIES, encoding="utf-8")
    (tmp_path / "modules.builtin").write_text("kernel/drivers/net/tun.ko\n", encoding="utf-8")
    return tmp_path


def names(found: tuple[Path, ...]) -> list[str]:
    return [path.name for path in found]


def test_module_without_dependencies_is_its_file(folder: Path) -> None:
    assert resolve(folder, ["veth"]) == (folder / "kernel/drivers/net/veth.ko",)


def test_dependencies_come_before_what_needs_them(folder: Path) -> None:
    order = names(resolve(folder, ["sit"]))
    assert order == ["tunnel4.ko", "ip_tunnel.ko", "sit.ko"]


def test_module_named_twice_is_loaded_once(folder: Path) -> None:
    order = names(resolve(folder, ["tcp_yeah", "tcp_vegas", "tcp_yeah"]))
    assert order == ["tcp_vegas.ko", "tcp_yeah.ko"]


def test_builtin_module_needs_no_file(folder: Path) -> None:
    assert resolve(folder, ["tun"]) == ()


def test_dash_and_compressed_file_are_the_same_module(folder: Path) -> None:
    assert names(resolve(folder, ["snd_odd"])) == ["snd-odd.ko.xz"]


def test_unknown_module_is_named(folder: Path) -> None:
    with pytest.raises(BedError, match="no module sch_red"):
        resolve(folder, ["sch_red"])


def test_missing_modules_dep_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(BedError, match="user-mode-linux"):
        resolve(tmp_path, ["veth"])


def test_module_that_depends_on_itself_is_refused(folder: Path) -> None:
    (folder / "modules.dep").write_text("a.ko: b.ko\nb.ko: a.ko\n", encoding="utf-8")
    with pytest.raises(BedError, match="depends on itself"):
        resolve(folder, ["a"])
