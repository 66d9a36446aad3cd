"""Inferring deliveries where the network is a set."""

from __future__ import annotations

import pytest
from bentpipe_conformance.models.graph import Edge, Graph
from bentpipe_conformance.models.stp.network import history
from bentpipe_conformance.models.tool import ToolProblem

BEGIN = '[type |-> "BEGIN", from |-> "client", csn |-> 1, data |-> TRUE, fin |-> FALSE]'
BGAK = '[type |-> "BGAK", from |-> "server", csn |-> 21, peer |-> 1, r |-> 0, asks |-> TRUE]'
CONFIRM = '[type |-> "BGAK", from |-> "client", csn |-> 1, peer |-> 21, r |-> 0, asks |-> FALSE]'
SD = '[type |-> "SD", from |-> "client", csn |-> 1, n |-> 1, fin |-> FALSE]'
LAST = '[type |-> "SD", from |-> "client", csn |-> 1, n |-> 2, fin |-> TRUE]'
STAT = '[type |-> "STAT", from |-> "server", csn |-> 21, r |-> 1]'


def end(csn: int, peer: int, rcv: int = 0, held: str = "{}") -> str:
    return (
        f"[csn |-> {csn}, peer |-> {peer}, sent |-> 0, fin |-> -1, acked |-> 0, rcv |-> {rcv}, "
        f"held |-> {held}, rfin |-> -1]"
    )


def state(*net: str, **changes: object) -> dict[str, str]:
    values: dict[str, object] = {
        "cState": '"begun"', "c": end(1, 0), "told": '<<"nothing">>', "sState": '"listen"',
        "s": end(0, 0), "pending": "{}", "sTold": '<<"nothing">>', "taken": "<<0>>", "log": "<<>>",
        **changes,
    }  # fmt: skip
    return {name: str(value) for name, value in values.items()} | {"net": f"{{{', '.join(net)}}}"}


WAITING = {"pending": f"{{{end(21, 1, held='{0}')}}}", "taken": "<<1>>"}
CONFIRMING = {**WAITING, "cState": '"open"', "c": end(1, 21)}
OPEN = {
    "cState": '"open"', "c": end(1, 21), "sState": '"open"', "s": end(21, 1, 1), "taken": "<<1>>",
    "log": "<<<<1, 0>>>>",
}  # fmt: skip
DONE = {**OPEN, "s": end(21, 1, 1, "{2}")}
STATES = [
    state(c=end(0, 0)),
    state(BEGIN),
    state(BEGIN, BGAK, **WAITING),
    state(BEGIN, BGAK, CONFIRM, **CONFIRMING),
    state(BEGIN, BGAK, CONFIRM, SD, **CONFIRMING),
    state(BEGIN, BGAK, CONFIRM, SD, LAST, **CONFIRMING),
    state(BEGIN, BGAK, CONFIRM, SD, LAST, STAT, **OPEN),
    state(BEGIN, BGAK, CONFIRM, SD, LAST, STAT, **DONE),
]
ACTIONS = [
    "BeginWith", "ServerReceivesBegin", "ClientReceivesBgak", "ClientSends", "ClientSends",
    "ServerReceivesBgak", "ServerReceivesSd",
]  # fmt: skip


def graph(states: list[dict[str, str]], actions: list[str]) -> Graph:
    edges = [Edge(at, at + 1, action) for at, action in enumerate(actions)]
    return Graph(states, [0], edges)


def last(actions: list[str], *states: dict[str, str]) -> str:
    """What the last step was."""
    return history(graph(list(states), actions), range(len(actions))).order[-1]


def test_deliveries_of_a_path_are_inferred_in_order() -> None:
    past = history(graph(STATES, ACTIONS), range(len(ACTIONS)))
    assert past.order == (
        "client opens",
        "deliver BEGIN csn=1 data=True fin=False from=client",
        "deliver BGAK asks=True csn=21 from=server peer=1 r=0",
        "deliver BGAK asks=False csn=1 from=client peer=21 r=0",
        "deliver SD csn=1 fin=True from=client n=2",
    )
    assert [(item.kind, item.nth, item.to_server) for item in past.sent] == [
        ("BEGIN", 1, True), ("BGAK", 1, False), ("CONFIRM", 1, True), ("SD", 1, True),
        ("SD", 2, True), ("STAT", 1, False),
    ]  # fmt: skip
    assert past.fates() == [
        {"message": "SD", "nth": 1, "number": 1, "transmission": 1, "fate": "lost"}
    ]


def test_message_that_arrives_again_is_doubled() -> None:
    again = BGAK.replace("21", "31")
    waits = {"pending": f"{{{end(31, 1)}}}", "taken": "<<1>>"}
    states = [*STATES[:3], state(BEGIN, BGAK), state(BEGIN, BGAK, again, **waits)]
    actions = [*ACTIONS[:2], "Restart", "ServerReceivesBegin"]
    past = history(graph(states, actions), range(4))
    assert past.order[-2] == "server restarts" and past.order[-1].startswith("deliver BEGIN csn=1")
    assert past.fates() == [{"message": "BEGIN", "nth": 1, "fate": "doubled"}]


def test_data_handed_over_names_its_message() -> None:
    old = SD.replace("csn |-> 1", "csn |-> 2")
    after = state(BEGIN, SD, old, **{**OPEN, "log": "<<<<1, 0>>, <<2, 1>>>>"})
    states = state(), state(BEGIN), state(BEGIN, SD), state(BEGIN, SD, old, **OPEN), after
    found = last(["BeginWith", "ClientSends", "Restart", "ServerReceivesSd"], *states)
    assert found == "deliver SD csn=2 fin=False from=client n=1"


def test_early_data_names_its_message() -> None:
    held = {"pending": f"{{{end(21, 1, held='{0, 1}')}}}", "taken": "<<1>>"}
    states = state(BEGIN, **WAITING), state(BEGIN, SD, **WAITING), state(BEGIN, SD, **held)
    found = last(["ClientSends", "ServerReceivesSd"], *states)
    assert found == "deliver SD csn=1 fin=False from=client n=1"


def test_challenge_names_a_begin_of_another_connection() -> None:
    other = BEGIN.replace("csn |-> 1", "csn |-> 2")
    asks = BGAK.replace("r |-> 0", "r |-> 1")
    before = state(BEGIN, other, **OPEN)
    found = last(
        ["BeginWith", "ServerReceivesBegin"], state(**OPEN), before,
        state(BEGIN, other, asks, **OPEN),
    )  # fmt: skip
    assert found.startswith("deliver BEGIN csn=2")


@pytest.mark.parametrize(("kind", "told"), [("release", "success"), ("abort", "failure")])
def test_end_named_by_what_the_user_is_told(kind: str, told: str) -> None:
    ends = [
        f'[type |-> "END", from |-> "client", csn |-> 1, peer |-> 21, kind |-> "{name}", r |-> 1]'
        for name in ("abort", "release")
    ]
    after = {**OPEN, "sState": '"over"', "sTold": f'<<"{told}">>'}
    states = state(**OPEN), state(*ends, **OPEN), state(*ends, **after)
    assert f"kind={kind} " in last(["ClientReleases", "ServerReceivesEnd"], *states)


def test_step_that_no_message_explains_is_refused() -> None:
    states = [state(), state(s=end(21, 1, 1))]
    with pytest.raises(ToolProblem, match="no message of the network explains a ServerReceivesSd"):
        history(graph(states, ["ServerReceivesSd"]), range(1))


def test_action_that_is_not_known_is_refused() -> None:
    with pytest.raises(ToolProblem, match="has an action Sneeze that is not known"):
        history(graph([state(), state()], ["Sneeze"]), range(1))


@pytest.mark.parametrize("net", ["{1}", "{[type |-> 1]}"])
def test_state_that_cannot_be_read_is_refused(net: str) -> None:
    states = [state(), {**state(), "net": net}]
    with pytest.raises(ToolProblem, match="cannot be read"):
        history(graph(states, ["ServerReceivesSd"]), range(1))
