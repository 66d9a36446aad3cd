"""A flood of forged BEGINs: nothing of them is kept, and the honest peer is served."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.flood import MOST_GROWTH, flood, main
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.packets import Begin, Bgrej, Reason
from bentpipe_reference.stp.parts import Parts
from click.testing import CliRunner


@pytest.mark.parametrize("begins", [30_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_flood_of_forged_begins_leaves_nothing_and_the_honest_peer_served(begins: int) -> None:
    result = flood(begins, 1)
    assert result.begins == begins and result.grown < MOST_GROWTH
    assert 1 < result.largest <= 3 and result.delivered > 1000


class Remembers(Idle):
    """Keeps what it has answered with a cookie."""

    kept: ClassVar[list[tuple[Arrival, Begin]]] = []

    def give_cookie(self, arrival: Arrival, begin: Begin) -> None:
        self.kept.append((arrival, begin))
        super().give_cookie(arrival, begin)


class AnswersAtLength(Idle):
    """Its BGREJ has an option of 30 octets."""

    def bgrej(self, begin: Begin, reason: Reason, cookie: bytes | None = None) -> Bgrej:
        return replace(super().bgrej(begin, reason, cookie), options=((9, bytes(28)),))


@pytest.mark.parametrize(
    ("idle", "says"),
    [
        (Remembers, r"STP-CC-036: \d+ entries and \d+ octets more are kept after 2000"),
        (AnswersAtLength, r"STP-SEC-001: 3\.\d octets"),
    ],
)
def test_flood_shows_an_endpoint_that_is_not_stateless_or_amplifies(
    idle: type[Idle], says: str
) -> None:
    with pytest.raises(Violation, match=says):
        flood(2000, 1, Parts(idle=idle))


def test_command_tells_what_came_of_it() -> None:
    result = CliRunner().invoke(main, ["--begins", "1000"])
    assert result.exit_code == 0 and '"begins": 1000' in result.output
