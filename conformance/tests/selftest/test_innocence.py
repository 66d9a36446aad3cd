"""Transfers between true references over random links: nobody is accused but who is guilty."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import pytest
from bentpipe_conformance.cli.main import bentpipe
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.protocols.stp.suite import SUITE as STP
from bentpipe_conformance.selftest import innocence
from bentpipe_conformance.selftest.innocence import hear, transfer
from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import Drawn, subject_of
from click.testing import CliRunner

SEEDS = (10, 14, 17)
TCP_SEEDS = (7, 12, 14, 15, 16, 22, 23, 38)
FORMERLY_ACCUSED = (
    26, 36, 212, 515, 550, 555, 704, 706, 716, 726, 1290, 2363, 3083, 3278, 3310, 5017,
    600033, 600055, 600128, 700100, 700107, 700427, 710106, 710171, 710209, 710230, 710264,
    710288, 730334, 740035, 760041, 760385, 760398, 770042, 770148,
    770209, 1080026, 1080219, 1090014, 5000093, 5010120, 5010601, 9000052,
)  # fmt: skip
"""Short transfers, each of which several checkers once judged wrongly."""


def heard(suite: str, seeds: tuple[int, ...] = SEEDS) -> tuple[set[str], list[str]]:
    hearings = [hear(suite, seed) for seed in seeds]
    return (
        set().union(*(item.passed for item in hearings)),
        [f"{a.requirement} seed {a.seed}: {a.sentence}" for h in hearings for a in h.accusations],
    )


def test_stp_references_over_random_links_are_not_accused() -> None:
    passed, accusations = heard("stp")
    assert not accusations
    assert {"STP-DT-003", "STP-DT-018", "STP-PL-006", "STP-CC-025"} <= passed


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        37,
        40,
        46,
        52,
        70,
        95,
        107,
        124,
        128,
        190,
        199,
        226,
        254,
        200011,
        200049,
        300096,
        720049,
        720150,
        720177,
        720187,
        3040224,
        3040466,
        3040470,
        3060007,
        5010300,
        5011104,
    ],
)
def test_stp_references_that_were_once_accused_are_not(seed: int) -> None:
    """Reports without arrivals, listeners not trusted yet, small packets at a maximum rate, ..."""
    assert hear("stp", seed).accusations == ()


def test_tcp_references_over_random_links_are_not_accused() -> None:
    passed, accusations = heard("snr", TCP_SEEDS)
    assert not accusations
    assert {"SNR-FR-002", "SNR-SAK-004", "SNR-RCV-007", "SNR-RTO-010", "SNR-TS-002"} <= passed


@pytest.mark.parametrize("seed", FORMERLY_ACCUSED)
def test_tcp_references_once_accused_wrongly_are_not_accused(seed: int) -> None:
    _, accusations = heard("snr", (seed,))
    assert not accusations


def test_boxes_between_random_ends_are_not_accused() -> None:
    passed, accusations = heard("pep", (1, 5))
    assert not accusations
    assert {"PEP-TR-001", "PEP-RE-003", "PEP-RE-004", "PEP-OP-003"} <= passed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2053, 2113, 2172, 2174, 2194])
def test_boxes_that_were_once_accused_are_not(seed: int) -> None:
    """FINs without an answer, lost calls, windows that shrink, calls that cross a refusal, ..."""
    assert hear("pep", seed).accusations == ()


@pytest.mark.parametrize(
    ("mutant", "seed"),
    [("pep-changes-an-octet", 1), ("pep-ends-nothing", 1), ("pep-ends-nothing", 3),
     ("pep-ends-nothing", 7), ("pep-ends-nothing", 8), ("pep-ends-nothing", 10),
     ("pep-reset-becomes-an-end", 5), ("pep-answers-unasked", 5)],
)  # fmt: skip
def test_mutant_of_a_box_between_random_ends_is_accused(
    mutant: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    guilty = load_mutants()[mutant]
    changed = partial(innocence.improvised, configure=guilty.configure)
    monkeypatch.setattr(innocence, "improvised", changed)
    assert guilty.breaks in {it.requirement for it in hear("pep", seed).accusations}


def test_transfer_of_one_seed_is_the_same_again() -> None:
    first, second = ([side.trace.packets for side in transfer(STP, SEEDS[0])] for _ in range(2))
    assert first == second
    assert first[0]


def blamed(
    suite: str, mutant: str, seeds: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> set[str]:
    """The requirements that transfers between two hosts of a mutant are accused of."""
    guilty = load_mutants()[mutant]
    subject = subject_of(suite_named(suite).folder)

    def drawn(numbers: random.Random, link: LinkProfile) -> Drawn:
        found = subject.draw(numbers, link)
        return replace(found, setup=guilty.configure(found.setup))

    monkeypatch.setattr(innocence, "subject_of", lambda _: replace(subject, draw=drawn))
    return {a.requirement for seed in seeds for a in hear(suite, seed).accusations}


@pytest.mark.parametrize(
    "mutant", ["stp-goes-back", "stp-compares-loosely", "stp-takes-the-rest-for-received"]
)
def test_mutant_over_a_random_link_is_accused(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_mutants()[mutant].breaks in blamed("stp", mutant, range(10, 18), monkeypatch)


@pytest.mark.parametrize(
    ("mutant", "seed"),
    [("snr-lowest-block-first", 2), ("snr-hole-repeated-at-once", 2), ("snr-window-never-grows", 2),
     ("snr-duplicate-report-taken-for-loss", 16), ("snr-timeout-within-a-round-trip", 2)],
)  # fmt: skip
def test_tcp_mutant_over_a_random_link_is_accused(
    mutant: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_mutants()[mutant].breaks in blamed("snr", mutant, (seed,), monkeypatch)


def test_selftest_of_transfers_and_of_chosen_mutants_at_once_is_refused() -> None:
    result = CliRunner().invoke(bentpipe, ["selftest", "stp", "--transfers", "1", "--only", "X"])
    assert result.exit_code == 2
    assert "leave all but one out" in result.output
