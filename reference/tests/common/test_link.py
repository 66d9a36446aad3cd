"""The virtual link, its profiles and the event queue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bentpipe_reference.common.link.profile import Direction, ProfileError, load_profiles
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.sim import Simulation, cancel
from hypothesis import given, settings
from hypothesis import strategies as st


class Bench:
    """A link and what came out of it, with times."""

    def __init__(self, direction: Direction, seed: int = 0, drops: tuple[int, ...] = ()) -> None:
        self.simulation = Simulation()
        self.arrived: list[tuple[float, int]] = []
        self.link = VirtualLink(self.simulation, direction, self._take, seed)
        self.link.drops.update(drops)

    def _take(self, item: int) -> None:
        self.arrived.append((self.simulation.now, item))

    def burst(self, count: int, size: int = 1500) -> list[int]:
        for item in range(count):
            self.link.send(item, size)
        self.simulation.run()
        return [item for _, item in self.arrived]


def test_packet_when_link_is_free_takes_serialisation_and_delay() -> None:
    bench = Bench(Direction(rate_bit_s=1_200_000, delay_s=0.3))
    bench.burst(2)
    assert [time for time, _ in bench.arrived] == pytest.approx([0.31, 0.32])


def test_packets_without_a_rate_arrive_together() -> None:
    bench = Bench(Direction(delay_s=0.1))
    assert bench.burst(5) == [0, 1, 2, 3, 4]
    assert {time for time, _ in bench.arrived} == {0.1}


def test_queue_when_full_drops_the_tail() -> None:
    bench = Bench(Direction(rate_bit_s=1e6, delay_s=0.3, queue_packets=3))
    assert bench.burst(10) == [0, 1, 2, 3]
    assert bench.link.counters.dropped_by_queue == 6
    assert bench.link.counters.longest_queue == 3


def test_queue_when_drained_takes_packets_again() -> None:
    bench = Bench(Direction(rate_bit_s=1_200_000, queue_packets=1))
    bench.burst(3)
    assert bench.burst(3) == [0, 1, 0, 1]


def test_drop_list_drops_exactly_the_named_packets() -> None:
    bench = Bench(Direction(), drops=(1, 4))
    assert bench.burst(6) == [1, 2, 4, 5]
    bench.link.drop_next(2)
    bench.arrived.clear()
    assert bench.burst(3) == [0, 2]
    assert bench.link.counters.dropped_by_list == 3


def test_reordered_packet_is_overtaken() -> None:
    bench = Bench(Direction(reorder_probability=0.2, reorder_delay_s=1.0), seed=3)
    items = bench.burst(50)
    late = bench.link.counters.reordered
    assert 0 < late < 50
    assert items != sorted(items)
    assert sorted(items) == list(range(50))


@pytest.mark.parametrize(
    ("direction", "counter", "share"),
    [
        (Direction(loss_probability=0.1), "dropped_at_random", 0.1),
        (Direction(ber=1e-5), "dropped_by_bit_error", 1 - (1 - 1e-5) ** 12_000),
        (Direction(duplicate_probability=0.3), "duplicated", 0.3),
    ],
)
def test_random_faults_occur_as_often_as_asked(
    direction: Direction, counter: str, share: float
) -> None:
    bench = Bench(direction, seed=11)
    bench.burst(5000)
    assert getattr(bench.link.counters, counter) / 5000 == pytest.approx(share, abs=0.02)


def test_bit_errors_spare_short_packets() -> None:
    long, short = (Bench(Direction(ber=1e-5), seed=5) for _ in range(2))
    long.burst(3000, 1500)
    short.burst(3000, 40)
    assert short.link.counters.dropped_by_bit_error * 10 < long.link.counters.dropped_by_bit_error


@given(
    st.builds(
        Direction,
        rate_bit_s=st.sampled_from([None, 1e5, 1e7]),
        delay_s=st.sampled_from([0.0, 0.3]),
        queue_packets=st.integers(1, 8),
        loss_probability=st.sampled_from([0.0, 0.2]),
        ber=st.sampled_from([0.0, 1e-5]),
        reorder_probability=st.sampled_from([0.0, 0.3]),
        reorder_delay_s=st.sampled_from([0.0, 0.4]),
        duplicate_probability=st.sampled_from([0.0, 0.2]),
    ),
    st.integers(0, 1000),
)
@settings(max_examples=60)
def test_every_packet_is_accounted_for_and_a_seed_repeats(direction: Direction, seed: int) -> None:
    first, second = Bench(direction, seed), Bench(direction, seed)
    first.burst(40)
    second.burst(40)
    assert first.arrived == second.arrived
    counters = first.link.counters
    dropped = (
        counters.dropped_by_list
        + counters.dropped_at_random
        + counters.dropped_by_bit_error
        + counters.dropped_by_queue
    )
    assert counters.offered == 40
    assert counters.delivered == len(first.arrived) == 40 - dropped + counters.duplicated


def test_simulation_when_times_tie_keeps_the_order_of_planning() -> None:
    simulation, seen = Simulation(), list[str]()
    for name in "abc":
        simulation.call_at(1.0, lambda n=name: seen.append(n))  # type: ignore[misc]
    simulation.call_at(0.5, lambda: seen.append("first"))
    cancelled = simulation.call_at(0.7, lambda: seen.append("never"))
    cancel(cancelled)
    simulation.run_until(0.9)
    assert (seen, simulation.now) == (["first"], 0.9)
    assert simulation.next_time() == 1.0
    simulation.run()
    assert seen == ["first", "a", "b", "c"]
    assert not simulation.step()


def test_simulation_when_asked_for_the_past_runs_now() -> None:
    simulation, times = Simulation(), list[float]()
    simulation.run_until(5.0)
    simulation.call_at(1.0, lambda: times.append(simulation.now))
    simulation.run()
    assert times == [5.0]


def test_profiles_that_come_along_are_the_promised_ones() -> None:
    profiles = load_profiles()
    assert set(profiles) == {
        "geo", "geo-asym", "leo-40", "leo-80", "leo-400", "dbs-dialup", "lan"
    }  # fmt: skip
    round_trips = {name: profile.round_trip_s for name, profile in profiles.items()}
    assert round_trips["geo"] == round_trips["geo-asym"] == 0.6
    assert [round_trips[f"leo-{ms}"] for ms in (40, 80, 400)] == [0.04, 0.08, 0.4]
    assert profiles["geo"].forward.rate_bit_s == profiles["geo"].return_.rate_bit_s == 1.3e6
    assert profiles["geo-asym"].return_.rate_bit_s == 50_000


BODY = '[mine]\ntitle = "t"\n[mine.forward]\ndelay_s = 0.1\n[mine.return]\n'


def test_profile_file_of_the_user_is_read(tmp_path: Path) -> None:
    path = tmp_path / "links.toml"
    path.write_text(BODY)
    profile = load_profiles(path)["mine"]
    assert profile.forward == Direction(delay_s=0.1)
    assert replace(profile.return_, delay_s=0.1) == profile.forward
    assert profile.mtu == 1500


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[mine\n", "not valid TOML"),
        (BODY + "speed = 3\n", "unknown key 'speed' in [mine.return]; allowed are rate_bit_s"),
        (BODY.replace("title", "titel"), "unknown key 'titel' in [mine]"),
        ('[mine]\ntitle = "t"\n[mine.forward]\n', "lacks 'return'"),
        (BODY + "rate_bit_s = 0\n", "rate_bit_s of [mine.return] is 0; give bits per second"),
        (BODY + "rate_bit_s = true\n", "give a number"),
        (BODY + "delay_s = -1\n", "seconds, not negative"),
        (BODY + "delay_s = nan\n", "give a number"),
        (BODY + "ber = 2\n", "a probability from 0 to 1"),
        (BODY + "queue_packets = 0\n", "at least 1"),
        (BODY + "queue_packets = 1.5\n", "whole number"),
        (BODY.replace('title = "t"', 'title = "t"\nmtu = 20'), "octets from 68 to 65535"),
        ("mine = 3\n", "write it as [mine]"),
    ],
)
def test_profile_file_with_a_mistake_names_file_key_and_remedy(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "links.toml"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        load_profiles(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert told in message
    assert message.endswith(".")
    assert "\n" not in message


def test_profile_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profiles(tmp_path / "absent.toml")
