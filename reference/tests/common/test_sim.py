from __future__ import annotations

from bentpipe_reference.common.sim import Simulation


def planned(times: list[float]) -> tuple[Simulation, list[float]]:
    simulation, ran = Simulation(), list[float]()
    for time in times:
        simulation.call_at(time, lambda: ran.append(simulation.now))
    return simulation, ran


def test_run_while_pending_stops_as_soon_as_it_is_not() -> None:
    simulation, ran = planned([1.0, 2.0, 3.0])
    simulation.run_while(lambda: len(ran) < 2, 10.0)
    assert (ran, simulation.now, simulation.next_time()) == ([1.0, 2.0], 2.0, 3.0)


def test_run_while_pending_runs_nothing_planned_after_the_limit() -> None:
    simulation, ran = planned([1.0, 2.0, 3.0])
    simulation.run_while(lambda: True, 2.0)
    assert (ran, simulation.now) == ([1.0, 2.0], 2.0)


def test_run_while_pending_ends_when_nothing_is_planned() -> None:
    simulation, ran = planned([1.0])
    simulation.run_while(lambda: True, 2.0)
    assert ran == [1.0]
