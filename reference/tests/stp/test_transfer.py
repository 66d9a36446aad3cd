"""Whole transfers over the virtual link, compared by SHA-256."""

from __future__ import annotations

import time
from typing import Any

import pytest
from bentpipe_reference.common.link.profile import Direction, LinkProfile, load_profiles
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.transfer import StpPath, StpTransferResult, stp_transfer

GEO = load_profiles()["geo"]


def faulty(**faults: float) -> LinkProfile:
    """The GEO link with faults both ways."""
    direction = Direction(1_300_000, 0.3, 50, **faults)
    return LinkProfile("faulty", "", "", direction, direction)


def through(result: StpTransferResult) -> None:
    assert result.failure is None and result.intact and result.released is not None


def test_ten_megabytes_over_geo_arrive_within_the_cpu_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    started = time.process_time()
    result = stp_transfer(GEO, StpConfig(), 10_000_000)
    spent = time.process_time() - started
    with capsys.disabled():
        print(
            f"\nSTP, 10 MB over geo: {spent:.2f} s of CPU, {result.seconds:.1f} s virtual,"
            f" {result.throughput_bit_s / 1e3:.0f} kb/s, return {result.return_bit_s:.0f} b/s"
        )
    through(result)
    assert spent < 1.5


@pytest.mark.parametrize(
    "faults",
    [
        {"loss_probability": 0.02},
        {"reorder_probability": 0.05, "reorder_delay_s": 0.05},
        {"duplicate_probability": 0.05},
        {
            "loss_probability": 0.05,
            "duplicate_probability": 0.03,
            "reorder_probability": 0.03,
            "reorder_delay_s": 0.1,
        },
    ],
)
@pytest.mark.parametrize("fifo", [True, False])
def test_faults_both_ways_leave_the_stream_intact(faults: dict[str, float], fifo: bool) -> None:
    through(stp_transfer(faulty(**faults), StpConfig(fifo=fifo), 300_000, seed=5))


@pytest.mark.parametrize("iss", [(1 << 24) - 3, (1 << 24) - 150, 0])
def test_numbers_wrap_in_the_middle(iss: int) -> None:
    faults = {"loss_probability": 0.02, "reorder_probability": 0.02, "reorder_delay_s": 0.05}
    through(stp_transfer(faulty(**faults), StpConfig(iss=iss), 300_000, seed=7))


@pytest.mark.parametrize("last", ["near", "far", "both"])
@pytest.mark.parametrize("rtt", [0.04, 0.6, 1.5])
@pytest.mark.parametrize(("loss", "seed"), [(0.0, 1), (0.05, 2), (0.2, 3), (0.2, 4)])
def test_release_whoever_closes_last_both_succeed_and_the_caller_releases(
    last: str, rtt: float, loss: float, seed: int
) -> None:
    releases: list[int] = []
    outcomes: dict[str, bool] = {}

    def note(event: dict[str, Any]) -> None:
        if event["event"] == "release":
            releases.append(event["end"])

    def user(name: str) -> Any:
        def use(connection: Connection, events: Events, now: float) -> None:
            connection.read()
            if events & (Events.OPENED | Events.ACCEPTED) and last != name:
                connection.write(bytes(9000))
                connection.close()
            if connection.peer_has_closed:
                connection.close()
            if events & (Events.ENDED | Events.FAILED):
                assert name not in outcomes
                outcomes[name] = bool(events & Events.ENDED)

        return use

    direction = Direction(1_300_000, rtt / 2, 50, loss_probability=loss)
    profile = LinkProfile("released", "", "", direction, direction)
    path = StpPath(profile, StpConfig(), user("near"), user("far"), seed=seed, trace=note)
    call = path.connect()
    path.near.settle()
    path.simulation.run_until(300.0)
    assert outcomes == {"near": True, "far": True}
    assert not path.near.endpoint.connections and not path.far.endpoint.connections
    assert releases == [call.csn] if not loss else len(releases) <= 2
