"""A file from one host to another by STP, over netem with loss and reordering."""

import subprocess
import sys
from pathlib import Path

import pytest
from bentpipe_conformance.bed import kernel as kernels
from bentpipe_conformance.bed.errors import BedError
from bentpipe_conformance.benchmarks import stp_transfer
from bentpipe_conformance.benchmarks.stp_transfer import (
    Outcome,
    lines,
    lossy,
    write_random,
)
from bentpipe_reference.common.link.profile import LinkProfile, load_profiles

GEO = load_profiles()["geo"]
LOSS, REORDERED = 0.01, 0.02
"""High, so that a short file meets both."""


@pytest.mark.bed
@pytest.mark.usefixtures("virtual_kernel")
@pytest.mark.parametrize("protocol", ["", "253"])
def test_file_crosses_a_link_that_loses_and_reorders_it_arrives_whole(protocol: str) -> None:
    print("seed 5")
    outcome = stp_transfer.transfer(lossy(GEO, LOSS, REORDERED), 1_000_000, 5, protocol)
    assert outcome.trouble == ""
    assert outcome.same
    assert outcome.send["sha256"] == outcome.receive["sha256"] == outcome.sha256
    # Some 690 packets: about 7 are lost.
    assert outcome.send["retransmissions"] > 0
    # 1.3 Mb/s and 600 ms allow no less.
    assert outcome.link_seconds > 8 * 1_000_000 / 1.3e6 + 0.6


@pytest.mark.bed
@pytest.mark.usefixtures("virtual_kernel")
def test_link_carries_nothing_the_transfer_is_no_success() -> None:
    dead = lossy(GEO, 1.0, 0.0)
    outcome = stp_transfer.transfer(dead, 1000, seed=1)
    assert not outcome.same
    assert "does not answer" in outcome.trouble


@pytest.mark.bed
@pytest.mark.usefixtures("virtual_kernel")
def test_transfer_from_the_command_line_prints_its_outcome() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bentpipe_conformance.benchmarks.stp_transfer", "--octets", "1000"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert " agrees\n" in done.stdout
    assert "link          geo, 0.100% of packets lost and 1.0% reordered" in done.stdout


def test_no_virtual_kernel_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stp_transfer, "find_virtual", lambda: None)
    with pytest.raises(BedError, match="bed build"):
        stp_transfer.transfer(GEO, 1, 1)


def test_profile_gets_faults_both_ways() -> None:
    profile: LinkProfile = lossy(GEO, LOSS, REORDERED)
    for way in (profile.forward, profile.return_):
        assert (way.loss_probability, way.reorder_probability) == (LOSS, REORDERED)
        assert way.reorder_delay_s == stp_transfer.REORDERED_BY_S
    assert lossy(GEO, 0.0, 0.0) == GEO


def test_file_has_its_length_and_depends_on_the_seed(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    digest = write_random(one, 2_500_000, 1)
    assert one.stat().st_size == 2_500_000
    assert digest == kernels.digest(one)
    assert write_random(other, 2_500_000, 2) != digest


def test_outcome_that_differs_is_said_loudly() -> None:
    outcome = Outcome(10, False, "ab", 2.0, 1.0, {}, {}, "the sender said no")
    told = "\n".join(lines(outcome, "geo", 0.001, 0.01, 1))
    assert "DOES NOT AGREE" in told
    assert "the sender said no" in told
