"""Scripts of paths, and the executions of scripts, on the state graph of a small channel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bentpipe_conformance.models.cover import Cover, covering_paths
from bentpipe_conformance.models.graph import Edge, Graph
from bentpipe_conformance.models.projection import Projection
from bentpipe_conformance.models.script import Channel, Layout, Message
from bentpipe_conformance.models.tool import ToolProblem

LAYOUT = Layout(
    (Channel("forward", "DATA"), Channel("back", "ACK")),
    frozenset({"LoseData", "LoseAck"}), frozenset({"Duplicate"}), {"Expire": "taken ACK"},
)  # fmt: skip
START = ((), (), 0, 1, 1, 1)
State = tuple[tuple[int, ...], tuple[int, ...], int, int, int, int]


def steps(state: State, reorders: bool, packets: int) -> Iterator[tuple[str, State]]:
    """A sender of numbered packets, a channel each way, an acknowledgment for each arrival."""
    forward, back, sent, losses, copies, expiries = state
    if sent < packets:
        yield "Send", ((*forward, sent), back, sent + 1, losses, copies, expiries)
    for at in range(len(forward) if reorders else min(1, len(forward))):
        rest = forward[:at] + forward[at + 1 :]
        yield "ReceiveData", (rest, (*back, forward[at]), sent, losses, copies, expiries)
        if losses:
            yield "LoseData", (rest, back, sent, losses - 1, copies, expiries)
    if forward and copies and not reorders:
        yield "Duplicate", ((forward[0], *forward), back, sent, losses, 0, expiries)
    if back:
        yield "ReceiveAck", (forward, back[1:], sent, losses, copies, expiries)
        if losses:
            yield "LoseAck", (forward, back[1:], sent, losses - 1, copies, expiries)
    if expiries and (forward or back):
        yield "Expire", (forward, back, sent, losses, copies, 0)


def explored(reorders: bool = False, packets: int = 3, start: State = START) -> Graph:
    numbers = {start: 0}
    graph = Graph(initial=[0])
    todo = [start]
    while todo:
        state = todo.pop()
        for action, target in steps(state, reorders, packets):
            if target not in numbers:
                numbers[target] = len(numbers)
                todo.append(target)
            graph.edges.append(Edge(numbers[state], numbers[target], action))
    graph.states = [
        {"forward": sequence(forward), "back": sequence(back)} for forward, back, *_ in numbers
    ]
    return graph


def sequence(items: tuple[int, ...]) -> str:
    return f"<<{', '.join(map(str, items))}>>"


def path(graph: Graph, *actions: str) -> list[int]:
    """The path of these actions, each unambiguous; ``ReceiveData 1`` names the second of them."""
    state, found = 0, []
    for words in actions:
        action, _, choice = words.partition(" ")
        fitting = [
            number
            for number, edge in enumerate(graph.edges)
            if edge.source == state and edge.action == action
        ]
        found.append(fitting[int(choice or 0)])
        state = graph.edges[found[-1]].target
    return found


@pytest.mark.parametrize("reorders", [False, True])
def test_covering_path_is_an_execution_of_its_own_script(reorders: bool) -> None:
    graph = explored(reorders, start=((), (), 0, 1, 0, 1))
    projection = Projection(graph, LAYOUT)
    for found in covering_paths(graph.initial, graph.edges, len(graph.states)):
        assert set(found) <= projection.executions(projection.journey(found).script())


def test_scripts_of_few_paths_take_every_edge() -> None:
    graph = explored(start=((), (), 0, 1, 0, 1))
    projection = Projection(graph, LAYOUT)
    cover = Cover(graph.initial, graph.edges, len(graph.states))
    taken: set[int] = set()
    paths = 0
    while (found := cover.next_path()) is not None:
        executions = projection.executions(projection.journey(found).script())
        taken |= executions
        cover.mark(executions)
        paths += 1
    assert taken == set(range(len(graph.edges)))
    assert paths < len(covering_paths(graph.initial, graph.edges, len(graph.states)))


def test_losses_on_a_path_are_counted_by_kind_in_order_of_sending() -> None:
    graph = explored(start=((), (), 0, 2, 0, 0))
    projection = Projection(graph, LAYOUT)
    found = path(graph, "Send", "ReceiveData", "Send", "LoseData", "Send", "ReceiveData",
                 "ReceiveAck", "LoseAck")  # fmt: skip
    script = projection.journey(found).script()
    assert script.lost == {Message("DATA", 2), Message("ACK", 2)}
    assert not script.overtaking and not script.doubled and script.expiries == ((),)


def test_order_of_steps_that_no_endpoint_sees_leaves_the_script_unchanged() -> None:
    graph = explored(start=((), (), 0, 1, 0, 0))
    projection = Projection(graph, LAYOUT)
    one = path(graph, "Send", "Send", "LoseData", "ReceiveData")
    other = path(graph, "Send", "LoseData", "Send", "ReceiveData")
    assert projection.journey(one).script() == projection.journey(other).script()


def test_packet_that_arrives_before_an_earlier_one_delays_that() -> None:
    graph = explored(True, start=((), (), 0, 0, 0, 0))
    projection = Projection(graph, LAYOUT)
    found = path(graph, "Send", "Send", "Send", "ReceiveData 2", "ReceiveData 0", "ReceiveData 0")
    journey = projection.journey(found)
    assert journey.script().overtaking == {(Message("DATA", 3), 2)}
    third = Message("DATA", 3)
    assert journey.delayed() == {Message("DATA", 1): third, Message("DATA", 2): third}


def test_copy_made_by_the_channel_is_doubled_and_no_transmission() -> None:
    graph = explored(start=((), (), 0, 0, 1, 0))
    projection = Projection(graph, LAYOUT)
    found = path(graph, "Send", "Duplicate", "ReceiveData", "ReceiveData", "Send", "ReceiveData")
    journey = projection.journey(found)
    assert journey.script().doubled == {Message("DATA", 1)}
    assert [message for message in journey.sent[0] if message in journey.numbers] == [
        Message("DATA", 1), Message("DATA", 2),
    ]  # fmt: skip
    assert set(found) <= projection.executions(journey.script())


def test_copy_that_is_lost_leaves_no_trace() -> None:
    graph = explored(start=((), (), 0, 1, 1, 0))
    projection = Projection(graph, LAYOUT)
    script = projection.journey(
        path(graph, "Send", "Duplicate", "ReceiveData", "LoseData")
    ).script()
    assert not script.doubled and not script.lost


def test_timer_on_a_path_is_counted_in_acknowledgments_taken() -> None:
    graph = explored(start=((), (), 0, 0, 0, 1))
    projection = Projection(graph, LAYOUT)
    found = path(graph, "Send", "ReceiveData", "ReceiveAck", "Send", "Expire")
    script = projection.journey(found).script()
    assert script.expiries == ((1,),)
    early = path(graph, "Send", "Expire")
    assert early[-1] not in projection.executions(script)


def test_losses_of_a_script_alone_happen_in_its_executions() -> None:
    graph = explored(start=((), (), 0, 1, 0, 0))
    projection = Projection(graph, LAYOUT)
    lossless = projection.journey(path(graph, "Send", "ReceiveData")).script()
    actions = {graph.edges[number].action for number in projection.executions(lossless)}
    assert actions == {"Send", "ReceiveData", "ReceiveAck"}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("<<1, 2>>", "<<>>", "more than one message"),
        ("{1}", "{}", "not a sequence"),
        ("<<1", "<<>>", "cannot be read"),
    ],
)
def test_channel_that_is_none_is_refused(before: str, after: str, words: str) -> None:
    states = [{"forward": text, "back": "<<>>"} for text in (before, after)]
    with pytest.raises(ToolProblem, match=words):
        Projection(Graph(states, [0], [Edge(0, 1, "Step")]), LAYOUT)


def test_missing_channel_is_named() -> None:
    with pytest.raises(ToolProblem, match="no variable 'forward'"):
        Projection(Graph([{}, {}], [0], [Edge(0, 1, "Step")]), LAYOUT)
