"""Covers of random graphs: every edge that can be reached is taken, by real paths."""

from __future__ import annotations

import time
from itertools import pairwise

from bentpipe_conformance.models.cover import covering_paths, set_cover
from bentpipe_conformance.models.graph import Edge
from hypothesis import given, settings
from hypothesis import strategies as st

STATES = 12
edges = st.lists(
    st.builds(
        Edge, st.integers(0, STATES - 1), st.integers(0, STATES - 1), st.sampled_from(["a", "b"])
    ),
    max_size=60,
)
initials = st.lists(st.integers(0, STATES - 1), min_size=1, max_size=3, unique=True)


def reachable(initial: list[int], every: list[Edge]) -> set[int]:
    states = set(initial)
    while more := {edge.target for edge in every if edge.source in states} - states:
        states |= more
    return {number for number, edge in enumerate(every) if edge.source in states}


@settings(derandomize=True, deadline=None)
@given(initials, edges)
def test_cover_of_any_graph_takes_exactly_the_reachable_edges(
    initial: list[int], every: list[Edge]
) -> None:
    paths = covering_paths(initial, every, STATES)
    assert {number for path in paths for number in path} == reachable(initial, every)


@settings(derandomize=True, deadline=None)
@given(initials, edges)
def test_cover_of_any_graph_consists_of_paths_from_initial_states(
    initial: list[int], every: list[Edge]
) -> None:
    for path in covering_paths(initial, every, STATES):
        assert every[path[0]].source in initial
        for one, next_one in pairwise(path):
            assert every[one].target == every[next_one].source


@settings(derandomize=True, deadline=None)
@given(initials, edges)
def test_every_path_of_a_cover_takes_something_new(initial: list[int], every: list[Edge]) -> None:
    known: set[int] = set()
    for path in covering_paths(initial, every, STATES):
        assert set(path) - known
        known |= set(path)


def test_graph_of_a_hundred_thousand_edges_is_covered_in_seconds() -> None:
    states = 40_000
    every = [
        Edge(at, target, "step")
        for at in range(states)
        for target in {(at * 7 + 1) % states, (at * 3 + 2) % states, min(at + 1, states - 1)}
    ]
    assert len(every) > 100_000
    started = time.process_time()
    paths = covering_paths([0], every, states)
    assert time.process_time() - started < 20
    assert {number for path in paths for number in path} == set(range(len(every)))


@settings(derandomize=True, deadline=None)
@given(st.lists(st.frozensets(st.integers(0, 20)), max_size=12))
def test_selection_of_any_sets_has_the_union_of_all(sets: list[frozenset[int]]) -> None:
    chosen = set_cover(sets)
    taken: set[int] = set()
    for at, adds in chosen:
        assert adds == len(sets[at] - taken) > 0
        assert all(len(other - taken) <= adds for other in sets)
        taken |= sets[at]
    assert taken == set().union(*sets)
