"""The environment's choices where the network is a set from which nothing leaves (StpConn).

Any message ever sent may arrive at any time, again, or never, and which one arrived does not show
in a state. It is inferred from what the step changed; where several messages would have changed
the same, the first in their printed order is taken, so that the path remains one of the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bentpipe_conformance.models.graph import Graph
from bentpipe_conformance.models.history import History, Network, Sent
from bentpipe_conformance.models.tool import ToolProblem
from bentpipe_conformance.models.values import NotAValue, parse_value

_USERS = {
    "BeginWith": "client opens",
    "ClientAborts": "client aborts",
    "ServerAborts": "server aborts",
    "Restart": "server restarts",
}
_OWN = ("ClientSends", "ServerSends", "ClientReleases", "ServerReports", "ServerReleases")
_ARRIVAL = re.compile(r"(Client|Server)Receives(\w+)")

Record = dict[str, Any]


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
        elif edge.action not in _OWN:
            message = sent[_text(_arrival(edge.action, before, after))]
            delivered.append(message)
            order.append(f"deliver {message.text}")
        for record in after["net"]:
            text = _text(record)
            if text not in sent:
                to_server = record["from"] == "client"
                kind = "CONFIRM" if to_server and record["type"] == "BGAK" else record["type"]
                nth = 1 + sum(other.kind == kind for other in sent.values())
                sent[text] = Sent(kind, nth, record.get("n"), text, to_server)
    return History(tuple(order), tuple(sent.values()), tuple(delivered))


def _arrival(action: str, before: Record, after: Record) -> Record:
    """The message whose arrival makes of one state the other."""
    found = _ARRIVAL.fullmatch(action)
    if found is None:
        raise ToolProblem(f"the model has an action {action} that is not known.")
    to_client = found[1] == "Client"
    kind = found[2].upper()
    new = [record for record in after["net"] if record not in before["net"]]
    patterns = (_at_client if to_client else _at_server)(kind, before, after, new)
    common = {"type": kind, "from": "server" if to_client else "client"}
    for pattern in patterns:
        for record in before["net"]:
            if all(record.get(key) == value for key, value in {**common, **pattern}.items()):
                return dict(record)
    changed = [name for name in after if after[name] != before[name]]
    raise ToolProblem(
        f"no message of the network explains a {action} of the model, which changes "
        f"{', '.join(changed) or 'nothing'}."
    )


def _at_client(kind: str, before: Record, after: Record, new: list[Record]) -> Iterator[Record]:
    """What may have arrived, the likeliest first; later ones fit broken models only."""
    old, now = before["c"], after["c"]
    if kind == "BGAK":
        asks = any(record["type"] == "BGAK" for record in new)
        for record in new:
            if record["type"] == "END":  # of a newer incarnation, or of none
                yield {"csn": record["peer"], "peer": record["csn"]}
        known: Record = {"csn": now["peer"], "peer": now["csn"]}
        if now["acked"] > old["acked"]:
            known["r"] = now["acked"]
        yield known | {"asks": asks}
        yield known
    elif kind == "SD":
        yield {"csn": old["peer"], "n": _number(old, now)}
    elif kind == "STAT":
        yield {"csn": old["peer"], "r": now["acked"]}
    else:
        yield from _ends(old, "success" in _changed(before["told"], after["told"]))
        yield {}


def _at_server(kind: str, before: Record, after: Record, new: list[Record]) -> Iterator[Record]:
    """As :func:`_at_client`."""
    old, now = before["s"], after["s"]
    waiting, waited = _differing(after["pending"], before["pending"])
    if kind == "BEGIN":
        for at, (one, other) in enumerate(zip(before["taken"], after["taken"], strict=True)):
            if one != other:
                yield {"csn": at + 1}
        challenged = after["sState"] != before["sState"] or any(
            record["asks"] for record in new if record["type"] == "BGAK"
        )
        for record in before["net"]:
            if before["sState"] == "open" and challenged and record["csn"] != old["peer"]:
                yield {"csn": record["csn"]}
        for record in new:
            yield {"csn": record["peer"]}
    elif kind == "BGAK":
        for record in new:
            if record["type"] == "END":
                yield {"csn": record["peer"], "peer": record["csn"]}
        asks = any(record["type"] == "BGAK" for record in new)
        yield {"csn": now["peer"], "peer": now["csn"], "asks": asks}
        yield {"csn": now["peer"], "peer": now["csn"]}
        yield {"csn": now["peer"]}
    elif kind == "SD":
        if len(after["log"]) > len(before["log"]):
            csn, number = after["log"][len(before["log"])]
            yield {"csn": csn, "n": number}
        for one in waiting:
            for other in waited:
                if one["csn"] == other["csn"]:
                    yield {"csn": one["peer"], "n": _number(other, one)}
        for record in new:
            if record["type"] == "NOBODY":
                yield {"csn": record["csn"]}
        yield {"csn": now["peer"], "n": _number(old, now)}
        yield {"csn": now["peer"]}
        yield {}
    elif kind == "STAT":
        yield {"csn": old["peer"], "r": now["acked"]}
    else:
        for one in waited:
            yield {"csn": one["peer"], "peer": one["csn"]}
            yield {"csn": one["peer"], "peer": 0}
        yield from _ends(old, "success" in _changed(before["sTold"], after["sTold"]))
        yield {}


def _ends(end: Record, success: bool) -> Iterator[Record]:
    """ENDs that end a connection."""
    for kind in ("release",) if success else ("abort", "unknown", "release"):
        if end["peer"]:
            yield {"csn": end["peer"], "peer": end["csn"], "kind": kind}
        else:
            yield {"peer": end["csn"], "kind": kind}


def _number(old: Record, now: Record) -> int:
    """Of the SD that made of one end the other."""
    added = set(now["held"]) - set(old["held"])
    return int(min(added)) if added else int(old["rcv"])


def _changed(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    return [other for one, other in zip(old, new, strict=True) if one != other]


def _differing(new: list[Record], old: list[Record]) -> tuple[list[Record], list[Record]]:
    return [item for item in new if item not in old], [item for item in old if item not in new]


def _read(state: Mapping[str, str]) -> Record:
    try:
        found = {name: parse_value(text) for name, text in state.items()}
        found["net"] = sorted((dict(record) for record in found["net"]), key=_text)
        found["pending"] = [dict(end) for end in found["pending"]]
        if any(not {"type", "from"} <= record.keys() for record in found["net"]):
            raise NotAValue("a message has no type or sender")
    except (NotAValue, KeyError, TypeError) as error:
        raise ToolProblem(f"a state of the model cannot be read: {error}.") from error
    return found


def _text(record: Record) -> str:
    fields = (f"{key}={record[key]}" for key in sorted(record) if key != "type")
    return " ".join((record["type"], *fields))


NETWORK = Network(
    ("cState", "c", "told", "sState", "s", "pending", "sTold", "taken", "log", "net"), history
)
