"""Inferring deliveries where the network is a set."""

from __future__ import annotations

import pytest
from bentpipe_conformance.modelling.graph import Edge, Graph
from bentpipe_conformance.modelling.network import history
from bentpipe_conformance.modelling.tool import ToolProblem

BEGIN = '[type |-> "BEGIN", csn |-> 1]'
BGAK = '[type |-> "BGAK", csn |-> 1, own |-> 1, r |-> 0, asks |-> TRUE]'
CONFIRM = '[type |-> "CONFIRM", csn |-> 1, own |-> 1]'
SD = '[type |-> "SD", csn |-> 1, n |-> 1]'
FIN = '[type |-> "SD", csn |-> 1, n |-> 2]'
STAT = '[type |-> "STAT", csn |-> 1, r |-> 1]'


def state(*net: str, **changes: object) -> dict[str, str]:
    values: dict[str, object] = {
        "cCsn": 1, "cAcked": 0, "cEcho": 0, "told": '<<"nothing">>', "sState": '"listen"',
        "sCsn": 0, "sRcv": 0, "epoch": 0, "log": "<<>>", **changes,
    }  # fmt: skip
    return {name: str(value) for name, value in values.items()} | {"net": f"{{{', '.join(net)}}}"}


WAITING = {"sState": '"waiting"', "sCsn": 1}
OPEN = {"sState": '"open"', "sCsn": 1, "cEcho": 1, "sRcv": 1, "log": "<<<<1, 0>>>>"}
STATES = [
    state(cCsn=0),
    state(BEGIN),
    state(BEGIN, BGAK, **WAITING),
    state(BEGIN, BGAK, CONFIRM, **WAITING, cEcho=1),
    state(BEGIN, BGAK, CONFIRM, SD, **WAITING, cEcho=1),
    state(BEGIN, BGAK, CONFIRM, SD, FIN, **WAITING, cEcho=1),
    state(BEGIN, BGAK, CONFIRM, SD, FIN, STAT, **OPEN),
    state(BEGIN, BGAK, CONFIRM, SD, FIN, STAT, **{**OPEN, "sRcv": 3}),
]
ACTIONS = ["Begin", "ServerStep", "ClientStep", "Send", "Send", "ServerStep", "ServerStep"]


def graph(states: list[dict[str, str]], actions: list[str]) -> Graph:
    edges = [Edge(at, at + 1, action) for at, action in enumerate(actions)]
    return Graph(states, [0], edges)


def test_deliveries_of_a_path_are_inferred_in_order() -> None:
    past = history(graph(STATES, ACTIONS), range(len(ACTIONS)))
    assert past.order == (
        "client opens",
        "deliver BEGIN csn=1",
        "deliver BGAK asks=True csn=1 own=1 r=0",
        "deliver CONFIRM csn=1 own=1",
        "deliver SD csn=1 n=2",
    )
    assert [(item.kind, item.nth, item.to_server) for item in past.sent] == [
        ("BEGIN", 1, True), ("BGAK", 1, False), ("CONFIRM", 1, True), ("SD", 1, True),
        ("SD", 2, True), ("STAT", 1, False),
    ]  # fmt: skip
    assert past.fates() == [
        {"message": "SD", "nth": 1, "number": 1, "transmission": 1, "fate": "lost"}
    ]


def test_message_passed_over_for_a_later_one_is_lost() -> None:
    states = [*STATES[:6], state(BEGIN, BGAK, CONFIRM, SD, FIN, **{**OPEN, "sRcv": 3})]
    states[5] = state(BEGIN, BGAK, CONFIRM, SD, FIN, **OPEN)
    past = history(graph(states, ACTIONS[:6]), range(6))
    assert past.order[-1] == "deliver SD csn=1 n=2"
    assert past.fates() == [
        {"message": "CONFIRM", "nth": 1, "fate": "lost"},
        {"message": "SD", "nth": 1, "number": 1, "transmission": 1, "fate": "lost"},
    ]


def test_message_that_arrives_again_is_doubled() -> None:
    restarted = state(BEGIN, BGAK, epoch=1)
    again = '[type |-> "BGAK", csn |-> 1, own |-> 2, r |-> 0, asks |-> TRUE]'
    states = [*STATES[:3], restarted, state(BEGIN, BGAK, again, **WAITING, epoch=1)]
    actions = [*ACTIONS[:2], "Restart", "ServerStep"]
    past = history(graph(states, actions), range(4))
    assert past.order[-2:] == ("server restarts", "deliver BEGIN csn=1")
    assert past.fates() == [{"message": "BEGIN", "nth": 1, "fate": "doubled"}]


def test_data_handed_over_names_its_message() -> None:
    old = '[type |-> "SD", csn |-> 2, n |-> 1]'
    before = state(BEGIN, SD, old, **OPEN)
    after = state(BEGIN, SD, old, **{**OPEN, "log": "<<<<1, 0>>, <<2, 1>>>>"})
    states = [state(), state(BEGIN), state(BEGIN, SD), before, after]
    past = history(graph(states, ["Begin", "Send", "Restart", "ServerStep"]), range(4))
    assert past.order[-1] == "deliver SD csn=2 n=1"


def test_step_that_no_message_explains_is_refused() -> None:
    states = [state(), state(sRcv=1)]
    with pytest.raises(ToolProblem, match="no message of the network explains a ServerStep"):
        history(graph(states, ["ServerStep"]), range(1))


def test_state_that_cannot_be_read_is_refused() -> None:
    states = [state(), {**state(), "net": "{1}"}]
    with pytest.raises(ToolProblem, match="cannot be read"):
        history(graph(states, ["ServerStep"]), range(1))
