from __future__ import annotations

import pytest
from bentpipe_experiments.hk99_stp_table2 import (
    EXPERIMENTS,
    FIRST,
    GEO,
    PACKETS,
    REQUESTS,
    STP,
    STP_PARETO,
    TCP,
    TCP_PARETO,
    WINDOWS,
    judge,
    judge_requests,
    judge_windows,
    measure,
    measure_request,
    measure_window,
    pareto_octets,
)
from bentpipe_experiments.model import Cell
from bentpipe_experiments.reporting import outcome

ALL = (TCP, STP, FIRST)


def cell(latency: float, packets: float) -> Cell:
    around = (-0.02, 0.0, 0.02)
    return Cell(
        tuple(latency + d for d in around), {}, {PACKETS: tuple(packets + d for d in around)}
    )


PRINTED = {(TCP, GEO): cell(2.0, 12.3), (STP, GEO): cell(1.5, 9.1), (FIRST, GEO): cell(1.9, 12.0)}


def judged(**changes: Cell) -> dict[str, bool | None]:
    names = {"tcp": TCP, "stp": STP, "first": FIRST}
    cells = PRINTED | {(names[name], GEO): found for name, found in changes.items()}
    return {item.id: item.holds for item in judge(cells, 1)}


@pytest.mark.parametrize("protocol", ALL)
def test_same_seed_gives_the_same_measurement(protocol: str) -> None:
    first, again, other = (measure(protocol, GEO, seed, batch=5) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("protocol", ALL)
def test_latency_is_round_trips(protocol: str) -> None:
    """Halving the round trip halves the latency, but for what the link's rate adds."""
    geo, half = (measure(protocol, rtt, 4, batch=10) for rtt in (GEO, GEO / 2))
    assert geo.value - half.value == pytest.approx(geo.value / 2, rel=0.2)


def test_cookie_saves_a_round_trip_and_two_packets() -> None:
    tcp, stp, first = (measure(name, GEO, 1, batch=20) for name in ALL)
    assert first.value - stp.value == pytest.approx(0.6, abs=0.01)
    assert first.notes[PACKETS] - stp.notes[PACKETS] == pytest.approx(2.0)
    assert first.value < tcp.value


@pytest.mark.parametrize("protocol", [STP, FIRST])
@pytest.mark.parametrize("request_octets", REQUESTS)
def test_request_of_any_length_up_to_a_packet_costs_no_round_trip(
    protocol: str, request_octets: float
) -> None:
    found = measure(protocol, GEO, 1, request=int(request_octets), batch=20)
    shortest = measure(protocol, GEO, 1, request=int(REQUESTS[0]), batch=20)
    assert 0 <= found.value - shortest.value < 0.02
    assert found.notes == shortest.notes


def test_printed_table_holds() -> None:
    assert set(judged().values()) == {True}


def test_latency_a_fifth_off_is_not_the_printed_one() -> None:
    found = judged(stp=cell(1.2, 9.1))
    assert found["stp-latency"] is False and found["stp-packets"] and found["faster"]


def test_packets_a_fifth_off_are_not_the_printed_ones() -> None:
    assert judged(tcp=cell(2.0, 15.0))["tcp-packets"] is False


def test_more_packets_than_tcp_do_not_hold() -> None:
    assert judged(stp=cell(1.5, 12.5))["fewer"] is False


def test_slower_than_tcp_does_not_hold() -> None:
    assert judged(stp=cell(2.1, 9.1))["faster"] is False
    assert judged(first=cell(2.1, 9.1))["faster-first"] is False


def test_difference_within_the_uncertainty_stays_open() -> None:
    some = Cell((1.6, 1.9, 2.49), {}, {PACKETS: (9.0, 9.0, 9.0)})
    assert judged(stp=some)["faster"] is None


def test_same_sizes_in_every_run_separate_what_the_sizes_alone_would_not() -> None:
    assert judged(stp=cell(1.99, 12.29))["faster"] is True


def test_other_round_trips_leave_the_claims_open() -> None:
    cells = {(name, 80.0): cell(1.0, 9.0) for name in ALL}
    assert {item.holds for item in judge(cells, 1)} == {None}


def lengths(**latencies: tuple[float, float]) -> dict[str, bool | None]:
    found = {"tcp": (2.0, 2.0), "stp": (1.3, 1.3), "first": (1.9, 1.9)} | latencies
    names = {"tcp": TCP, "stp": STP, "first": FIRST}
    cells = {
        (names[name], x): cell(value, 9.0 if name == "stp" else 12.0)
        for name, values in found.items()
        for x, value in zip((100.0, 1400.0), values, strict=True)
    }
    return {item.id: item.holds for item in judge_requests(cells, 1)}


def test_level_latency_over_the_length_of_the_request_holds() -> None:
    assert lengths() == {"faster": True, "fewer": True, "level": None}, "± 0.05 s at three runs"


def test_round_trip_more_for_a_long_request_does_not_hold() -> None:
    assert lengths(stp=(1.3, 1.9))["level"] is False
    assert lengths(first=(1.9, 2.5))["level"] is False


def test_long_request_slower_than_over_tcp_does_not_hold() -> None:
    assert lengths(stp=(1.3, 2.2))["faster"] is False


def test_one_length_says_nothing_of_the_growth() -> None:
    cells = {(name, 100.0): cell(1.0, 9.0) for name in ALL}
    assert {item.id: item.holds for item in judge_requests(cells, 1)}["level"] is None


def test_results_name_the_printed_values_and_the_differences() -> None:
    chosen, *_ = EXPERIMENTS
    told = outcome(chosen, PRINTED, judge(PRINTED, 1), 1)["published"]
    assert [(item["label"], item["value"]) for item in told][-2:] == [
        ("T/TCP, as printed", 1.4), ("T/TCP, as printed", 7.3),
    ]  # fmt: skip
    assert told[0]["difference"] == pytest.approx(0.0) and told[-1]["ours"] is None


def test_request_sweep_measures_at_600_ms() -> None:
    assert measure_request(STP, 100.0, 3).value > 1.2


def test_window_of_one_segment_is_that_of_table_2() -> None:
    assert measure_window(STP, 1.0, 3) == measure(STP, GEO, 3)


@pytest.mark.parametrize("series", [TCP, STP, FIRST, TCP_PARETO, STP_PARETO])
def test_larger_initial_window_saves_round_trips(series: str) -> None:
    one, four, ten = (measure_window(series, window, 3).value for window in WINDOWS)
    assert one - four > 0.3
    assert four - ten > 0.05


def test_recommended_window_answers_in_a_round_trip_and_a_half_with_ten_packets_at_most() -> None:
    found = measure_window(STP, 4.0, 3)
    assert found.value < 0.9
    assert found.notes[PACKETS] < 10


def test_pareto_sizes_lie_between_their_bounds_and_have_their_median() -> None:
    sizes = [pareto_octets((part + 0.5) / 1001) for part in range(1001)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1000 and sizes[-1] < 146_000
    assert 1850 < sizes[500] < 1890


def windows(**changed: tuple[float, float]) -> dict[str, bool | None]:
    found = {TCP: (2.0, 12.0), TCP_PARETO: (1.9, 11.0), STP: (1.3, 10.0), STP_PARETO: (1.2, 9.0)}
    names = {"stp": STP, "pareto": STP_PARETO}
    found |= {names[name]: values for name, values in changed.items()}
    cells = {(name, x): cell(*values) for name, values in found.items() for x in WINDOWS}
    return {item.id: item.holds for item in judge_windows(cells, 1)}


def test_faster_with_fewer_packets_at_every_window_and_with_both_sizes_holds() -> None:
    assert windows() == dict.fromkeys(("faster", "fewer", "faster-pareto", "fewer-pareto"), True)


def test_as_many_packets_as_tcp_with_one_of_the_sizes_do_not_hold() -> None:
    assert windows(pareto=(1.2, 11.5)) == windows() | {"fewer-pareto": False}
    assert windows(stp=(2.1, 10.0)) == windows() | {"faster": False}


def test_window_that_was_not_measured_with_the_other_sizes_leaves_their_claims_open() -> None:
    cells = {(name, 1.0): cell(1.0, 9.0) for name in (TCP, STP)}
    found = {item.id: item.holds for item in judge_windows(cells, 1)}
    assert found["faster-pareto"] is None and found["fewer-pareto"] is None
