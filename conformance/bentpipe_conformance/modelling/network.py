"""The environment's choices where the network is a set from which nothing leaves (StpConn).

Any message ever sent may arrive at any time, again, or never, and which one arrived does not show
in a state. It is inferred from what the step changed; where several messages would have changed
the same, the first in their printed order is taken, so that the path remains one of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.modelling.graph import Graph
from bentpipe_conformance.modelling.tool import ToolProblem
from bentpipe_conformance.modelling.values import NotAValue, parse_value

VARIABLES = ("cCsn", "cAcked", "cEcho", "told", "sState", "sCsn", "sRcv", "epoch", "log", "net")
"""What the inference looks at."""

_USERS = {
    "Begin": "client opens",
    "ClientAborts": "client aborts",
    "ServerAborts": "server aborts",
    "Restart": "server restarts",
}
_SENDS = "Send"
_TO_SERVER = ("BEGIN", "CONFIRM", "SD")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of the network.

    Attributes:
        kind: its type.
        nth: which of its kind, in order of sending, from 1.
        number: its sequence number; None where it has none.
        text: all of it.
        to_server: its direction.
    """

    kind: str
    nth: int
    number: int | None
    text: str
    to_server: bool


@dataclass(frozen=True, slots=True)
class History:
    """What the environment did on a path.

    Attributes:
        order: users' calls, restarts and deliveries, in order, in words.
        sent: every message, in order of sending.
        delivered: what was delivered, in order, repetitions included.
    """

    order: tuple[str, ...]
    sent: tuple[Sent, ...]
    delivered: tuple[Sent, ...]

    def fates(self) -> list[dict[str, Any]]:
        """What became of messages that did not arrive once and in order.

        A message counts as lost when it never arrived and one sent later in its direction did.
        """
        found = []
        place = {message: at for at, message in enumerate(self.sent)}
        for message in self.sent:
            times = self.delivered.count(message)
            event: dict[str, Any] = {"message": message.kind, "nth": message.nth}
            if message.number is not None:
                event |= {"number": message.number, "transmission": 1}
            first = self.delivered.index(message) if times else len(self.delivered)
            later = [
                other
                for other in self.delivered[:first]
                if other.to_server == message.to_server and place[other] > place[message]
            ]
            if later:
                fate = {"fate": "delayed", "behind": [later[-1].kind, later[-1].nth]}
                found.append(event | (fate if times else {"fate": "lost"}))
            if times > 1:
                found.append(event | {"fate": "doubled"})
        return found


def history(graph: Graph, path: Sequence[int]) -> History:
    """What the environment did on a path of the state graph of StpConn.

    Raises:
        ToolProblem: a step changes what no message of the network explains.
    """
    sent: dict[str, Sent] = {}
    order: list[str] = []
    delivered: list[Sent] = []
    for number in path:
        edge = graph.edges[number]
        before, after = _read(graph.states[edge.source]), _read(graph.states[edge.target])
        if edge.action in _USERS:
            order.append(_USERS[edge.action])
        elif edge.action != _SENDS:
            message = sent[_text(_arrival(edge.action, before, after))]
            delivered.append(message)
            order.append(f"deliver {message.text}")
        for record in after["net"]:
            text = _text(record)
            if text not in sent:
                kind = record["type"]
                nth = 1 + sum(other.kind == kind for other in sent.values())
                to_server = kind in _TO_SERVER or record.get("from") == "client"
                sent[text] = Sent(kind, nth, record.get("n"), text, to_server)
    return History(tuple(order), tuple(sent.values()), tuple(delivered))


def _arrival(action: str, before: Record, after: Record) -> Record:
    """The message whose arrival makes of one state the other."""
    new = [record for record in after["net"] if record not in before["net"]]
    if action == "ClientStep":
        patterns = _at_client(before, after)
    else:
        patterns = _at_server(before, after, {record["type"] for record in new})
    for pattern in patterns:
        for record in before["net"]:
            if all(record.get(key) == value for key, value in pattern.items()):
                return dict(record)
    changed = [name for name in after if after[name] != before[name]]
    raise ToolProblem(
        f"no message of the network explains a {action} of the model, which changes "
        f"{', '.join(changed) or 'nothing'}."
    )


def _at_client(before: Record, after: Record) -> Iterator[Record]:
    """What may have arrived, the likeliest first; later ones fit broken models only."""
    csn = before["cCsn"]
    if after["cEcho"] != before["cEcho"]:
        own: Record = {"type": "BGAK", "csn": csn, "own": after["cEcho"]}
        if after["cAcked"] > before["cAcked"]:
            own["r"] = after["cAcked"]
        yield own
    elif after["cAcked"] != before["cAcked"] or "success" in after["told"]:
        yield {"type": "STAT", "csn": csn, "r": after["cAcked"]}
        yield {"type": "STAT", "csn": csn}
    yield {"type": "END", "csn": csn, "from": "server"}
    for record in before["net"]:
        if record["type"] == "BGAK" and record["own"] != before["cEcho"]:
            yield {**record, "csn": csn}


def _at_server(before: Record, after: Record, new: set[str]) -> Iterator[Record]:
    """As :func:`_at_client`; ``new`` holds the types of what the server sent."""
    csn = after["sCsn"]
    if csn != before["sCsn"] or "BGAK" in new:
        yield {"type": "BEGIN", "csn": csn}
    elif before["sState"] == "waiting" and after["sState"] == "open":
        yield {"type": "CONFIRM", "csn": csn, "own": before["epoch"] + 1}
        yield {"type": "CONFIRM", "csn": csn}
        yield {"type": "CONFIRM"}
    elif len(after["log"]) > len(before["log"]):
        yield {"type": "SD", "csn": after["log"][-1][0], "n": after["log"][-1][1]}
    elif after["sRcv"] != before["sRcv"]:  # the FIN hands nothing over
        yield {"type": "SD", "csn": csn, "n": after["sRcv"] - 1}
    elif "STAT" in new:
        yield {"type": "SD", "csn": csn}
        yield {"type": "SD"}
    yield {"type": "END", "csn": csn, "from": "client"}
    yield {"type": "END", "from": "client"}


def _read(state: Mapping[str, str]) -> Record:
    try:
        found = {name: parse_value(text) for name, text in state.items()}
        found["net"] = sorted((dict(record) for record in found["net"]), key=_text)
    except (NotAValue, KeyError, TypeError) as error:
        raise ToolProblem(f"a state of the model cannot be read: {error}.") from error
    return found


def _text(record: Record) -> str:
    fields = (f"{key}={record[key]}" for key in sorted(record) if key != "type")
    return " ".join((record["type"], *fields))
