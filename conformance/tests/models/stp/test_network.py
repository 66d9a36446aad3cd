"""Inferring deliveries where the network is a set."""

from __future__ import annotations

import pytest
from bentpipe_conformance.models.graph import Edge, Graph
from bentpipe_conformance.models.stp.network import history
from bentpipe_conformance.models.tool import ToolProblem


def begin(csn: int, cookie: int) -> str:
    data = "TRUE" if cookie else "FALSE"
    return (
        f'[type |-> "BEGIN", from |-> "client", port |-> 1, csn |-> {csn}, ck |-> {cookie}, '
        f"data |-> {data}, fin |-> FALSE, at |-> 0]"
    )


EMPTY, BEGIN = begin(1, 0), begin(2, 1)
BGREJ = '[type |-> "BGREJ", from |-> "server", port |-> 1, peer |-> 1, reason |-> 6, ck |-> 1]'
BGAK = '[type |-> "BGAK", from |-> "server", port |-> 1, csn |-> 1, peer |-> 2, r |-> 1, ck |-> 2]'
SD = '[type |-> "SD", from |-> "client", port |-> 1, csn |-> 2, n |-> 1, fin |-> FALSE]'
LAST = '[type |-> "SD", from |-> "client", port |-> 1, csn |-> 2, n |-> 2, fin |-> TRUE]'
STAT = '[type |-> "STAT", from |-> "server", port |-> 1, csn |-> 1, r |-> 1]'
POLL = '[type |-> "POLL", from |-> "client", port |-> 1, csn |-> 2]'
UNKNOWN = (
    '[type |-> "END", from |-> "server", port |-> 1, csn |-> 0, peer |-> 2, kind |-> "unknown", '
    "r |-> 0]"
)


def end(
    st: str, csn: int = 0, peer: int = 0, rcv: int = 0, held: str = "{}", acked: int = 0
) -> str:
    return (
        f'[st |-> "{st}", csn |-> {csn}, peer |-> {peer}, sent |-> 0, fin |-> -1, '
        f"acked |-> {acked}, rcv |-> {rcv}, held |-> {held}, rfin |-> -1]"
    )


def begun(csn: int, cookie: int) -> str:
    return f"[csn |-> {csn}, call |-> 1, ck |-> {cookie}, epoch |-> 0]"


def opened(told: str = "nothing", csn: int = 2) -> str:
    return f'[own |-> 1, csn |-> {csn}, ck |-> 1, port |-> 1, told |-> "{told}"]'


def state(*net: str, **changes: object) -> dict[str, str]:
    values: dict[str, object] = {
        "C": f"<<{end('idle')}>>", "S": f"<<{end('idle')}>>", "stock": "<<>>", "begins": "<<>>",
        "calls": '<<[told |-> "nothing"]>>', "opened": "<<>>", "log": "<<>>", "back": "<<>>",
        **changes,
    }  # fmt: skip
    return {name: str(value) for name, value in values.items()} | {"net": f"{{{', '.join(net)}}}"}


ONE = {"C": f"<<{end('begun', 1)}>>", "begins": f"<<{begun(1, 0)}>>"}
TWO = {"C": f"<<{end('begun', 2)}>>", "begins": f"<<{begun(1, 0)}, {begun(2, 1)}>>"}
TAKEN = {
    **TWO, "S": f"<<{end('open', 1, 2, 1)}>>", "opened": f"<<{opened()}>>",
    "log": "<<<<1, 2, 0>>>>",
}  # fmt: skip
OPEN = {**TAKEN, "C": f"<<{end('open', 2, 1, acked=1)}>>", "stock": "<<2>>"}
STATES = [
    state(),
    state(EMPTY, **ONE),
    state(EMPTY, BGREJ, **ONE),
    state(EMPTY, BGREJ, BEGIN, **TWO),
    state(EMPTY, BGREJ, BEGIN, BGAK, STAT, **TAKEN),
    state(EMPTY, BGREJ, BEGIN, BGAK, STAT, **OPEN),
    state(EMPTY, BGREJ, BEGIN, BGAK, STAT, SD, **OPEN),
    state(EMPTY, BGREJ, BEGIN, BGAK, STAT, SD, LAST, **OPEN),
    state(
        EMPTY, BGREJ, BEGIN, BGAK, STAT, SD, LAST,
        **{**OPEN, "S": f"<<{end('open', 1, 2, 1, '{<<2, 2>>}')}>>"},
    ),
]  # fmt: skip
ACTIONS = [
    "Call", "ServerReceivesBegin", "ClientReceivesBgrej", "ServerReceivesBegin",
    "ClientReceivesBgak", "ClientSends", "ClientSends", "ServerReceivesSd",
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
        "client calls",
        "deliver BEGIN at=0 ck=0 csn=1 data=False fin=False from=client port=1",
        "deliver BGREJ ck=1 from=server peer=1 port=1 reason=6",
        "deliver BEGIN at=0 ck=1 csn=2 data=True fin=False from=client port=1",
        "deliver BGAK ck=2 csn=1 from=server peer=2 port=1 r=1",
        "deliver SD csn=2 fin=True from=client n=2 port=1",
    )
    assert [(item.kind, item.nth, item.to_server) for item in past.sent] == [
        ("BEGIN", 1, True), ("BGREJ", 1, False), ("BEGIN", 2, True), ("BGAK", 1, False),
        ("STAT", 1, False), ("SD", 1, True), ("SD", 2, True),
    ]  # fmt: skip
    assert past.fates() == [
        {"message": "SD", "nth": 1, "number": 1, "transmission": 1, "fate": "lost"}
    ]


def test_begin_that_is_asked_about_again_is_doubled() -> None:
    again = BGREJ.replace("ck |-> 1", "ck |-> 2")
    states = [*STATES[:3], state(EMPTY, BGREJ, **ONE), state(EMPTY, BGREJ, again, **ONE)]
    past = history(graph(states, [*ACTIONS[:2], "Restart", "ServerReceivesBegin"]), range(4))
    assert past.order[-2] == "server restarts" and past.order[-1].startswith("deliver BEGIN at=0")
    assert past.fates() == [{"message": "BEGIN", "nth": 1, "fate": "doubled"}]


def test_data_handed_over_names_its_message() -> None:
    old = SD.replace("csn |-> 2", "csn |-> 1")
    after = state(BEGIN, SD, old, **{**OPEN, "log": "<<<<1, 2, 0>>, <<1, 1, 1>>>>"})
    states = state(), state(BEGIN), state(BEGIN, SD), state(BEGIN, SD, old, **OPEN), after
    found = last(["Call", "ClientSends", "Restart", "ServerReceivesSd"], *states)
    assert found == "deliver SD csn=1 fin=False from=client n=1 port=1"


def test_poll_without_a_connection_named_by_its_answer() -> None:
    states = state(**OPEN), state(POLL, **OPEN), state(POLL, UNKNOWN, **OPEN)
    assert last(["ClientPolls", "ServerReceivesPoll"], *states).startswith("deliver POLL csn=2")


@pytest.mark.parametrize(("kind", "told"), [("release", "success"), ("abort", "failure")])
def test_end_named_by_what_the_user_is_told(kind: str, told: str) -> None:
    ends = [
        f'[type |-> "END", from |-> "client", port |-> 1, csn |-> 2, peer |-> 1, '
        f'kind |-> "{name}", r |-> 1]'
        for name in ("abort", "release")
    ]
    after = {**OPEN, "S": f"<<{end('over', 1, 2, 1)}>>", "opened": f"<<{opened(told)}>>"}
    states = state(**OPEN), state(*ends, **OPEN), state(*ends, **after)
    assert f"kind={kind} " in last(["ClientReleases", "ServerReceivesEnd"], *states)


def test_packet_of_an_attacker_is_forged() -> None:
    taken = {"S": f"<<{end('open', 1, -9, 1)}>>", "opened": f"<<{opened(csn=-9)}>>"}
    found = last(["ServerReceivesBegin"], state(), state(**taken))
    assert found == "forge BEGIN ck=1 csn=-9 from=client port=1"


def test_call_names_its_port_where_there_are_several() -> None:
    before = f"<<{end('idle')}, {end('idle')}>>"
    after = f"<<{end('idle')}, {end('begun', 1)}>>"
    assert last(["Call"], state(C=before), state(EMPTY, C=after)) == "client calls from port 2"


def test_step_that_no_message_explains_is_refused() -> None:
    states = [state(), state(S=f"<<{end('open', 1)}>>")]
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
