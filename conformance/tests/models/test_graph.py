"""Reading dumps of state graphs, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from bentpipe_conformance.models import graph as graphs
from bentpipe_conformance.models.graph import Edge, read_dot, read_graph
from bentpipe_conformance.models.tool import ToolProblem
from hypothesis import given, settings
from hypothesis import strategies as st

HEAD = ["strict digraph DiskGraph {", "nodesep=0.35;", "subgraph cluster_graph {", 'color="white";']
FIRST = '-1 [label="/\\\\ link = <<>>\\n/\\\\ n = 1",style = filled]'
STEP = '-1 -> 25 [label="Start",color="black",fontcolor="black"];'
SECOND = (
    '25 [label="/\\\\ link = <<[type |-> \\"SD\\", n |-> 0],\\n  [type |-> \\"SD\\", n |-> 1]>>'
    '\\n/\\\\ n = 2"];'
)
TAIL = ["{rank = same; -1;}", "{rank = same; 25;}", "}", "}"]
WHOLE = [*HEAD, FIRST, STEP, SECOND, STEP, '25 -> 25 [label="Stay"];', *TAIL]


def read(lines: list[str]) -> graphs.Graph:
    return read_dot(lines, ("link",), "graph.dot")


def test_dump_read_keeps_states_steps_and_wanted_variables() -> None:
    graph = read(WHOLE)
    assert graph.initial == [0]
    assert graph.states == [
        {"link": "<<>>"},
        {"link": '<<[type |-> "SD", n |-> 0],   [type |-> "SD", n |-> 1]>>'},
    ]
    assert graph.edges == [Edge(0, 1, "Start")]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "truncated"),
        (["hello"], "line 1: 'hello' is not part of a state graph"),
        (WHOLE[:-1], "truncated"),
        (WHOLE[:6], "truncated"),
        ([*HEAD, FIRST, STEP, *TAIL], "does not describe"),
        ([*HEAD, SECOND, *TAIL], "no initial state"),
        ([*HEAD, FIRST, "-1 -> [label=", *TAIL], "line 6"),
        (["\0" * 200], "line 1"),
    ],
)
def test_damaged_dump_is_refused_in_one_sentence(lines: list[str], words: str) -> None:
    with pytest.raises(ToolProblem, match=words) as refused:
        read(lines)
    assert "\n" not in str(refused.value)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=8))
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    with pytest.raises(ToolProblem):
        read(lines)


@settings(derandomize=True, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_dump_without_a_line_is_refused_or_smaller(at: int) -> None:
    try:
        graph = read([*WHOLE[:at], *WHOLE[at + 1 :]])
    except ToolProblem:
        return
    assert len(graph.states) <= 2


def test_missing_dump_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ToolProblem, match=r"graph\.dot cannot be read"):
        read_graph(tmp_path / "graph.dot", ())


def test_too_large_dump_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_EDGES", 0)
    with pytest.raises(ToolProblem, match="smaller bounds"):
        read(WHOLE)
