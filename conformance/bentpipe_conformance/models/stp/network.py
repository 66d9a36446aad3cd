"""The environment's choices where the network is a set from which nothing leaves (StpConn).

Any message ever sent may arrive at any time, again, or never, and which one arrived does not show
in a state. It is inferred from what the step changed; where several messages would have changed
the same, the first in their printed order is taken, so that the path remains one of the model.
What an attacker sends is not in the network; it is known by a CSN that nobody has chosen.
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
    "Call": "client calls",
    "ClientAborts": "client aborts",
    "ServerAborts": "server aborts",
    "Restart": "server restarts",
    "Departs": "client restarts",
    "Tick": "time passes",
}
_OWN = (
    "Repeats", "ClientSends", "ClientPolls", "ClientReleases", "ClientGivesUp",
    "ServerSends", "ServerPolls", "ServerReports", "ServerReleases",
)  # fmt: skip
_ARRIVAL = re.compile(r"(Client|Server)Receives(\w+)")
_STRANGER = -9
"""The CSN that an attacker guesses."""

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
            order.append(_USERS[edge.action] + _place(before, after, edge.action))
        elif edge.action not in _OWN:
            text = _text(_arrival(edge.action, before, after))
            if text in sent:
                delivered.append(sent[text])
                order.append(f"deliver {text}")
            else:
                order.append(f"forge {text}")
        for record in after["net"]:
            text = _text(record)
            if text not in sent:
                to_server = record["from"] == "client"
                kind = record["type"]
                nth = 1 + sum(other.kind == kind for other in sent.values())
                sent[text] = Sent(kind, nth, record.get("n"), text, to_server)
    return History(tuple(order), tuple(sent.values()), tuple(delivered))


def _place(before: Record, after: Record, action: str) -> str:
    """The port of a call or abort, where there are several."""
    ends = "S" if action == "ServerAborts" else "C"
    changed = [at + 1 for at, (old, new) in enumerate(_pairs(before, after, ends)) if old != new]
    many = len(after[ends]) > 1 and action in ("Call", "ClientAborts", "ServerAborts")
    return f" from port {changed[0]}" if many and changed else ""


def _pairs(before: Record, after: Record, ends: str) -> list[tuple[Record, Record]]:
    return list(zip(before[ends], after[ends], strict=True))


def _arrival(action: str, before: Record, after: Record) -> Record:
    """The message whose arrival makes of one state the other."""
    found = _ARRIVAL.fullmatch(action)
    if found is None:
        raise ToolProblem(f"the model has an action {action} that is not known.")
    to_client = found[1] == "Client"
    kind = found[2].upper()
    new = [record for record in after["net"] if record not in before["net"]]
    infer = _at_client if to_client else _at_server
    common = {"type": kind, "from": "server" if to_client else "client"}
    for pattern in infer(kind, before, after, new):
        for record in before["net"]:
            if all(record.get(key) == value for key, value in {**common, **pattern}.items()):
                return dict(record)
        if _STRANGER in (pattern.get("csn"), pattern.get("peer")):
            return common | pattern
    changed = [name for name in after if after[name] != before[name]]
    raise ToolProblem(
        f"no message of the network explains a {action} of the model, which changes "
        f"{', '.join(changed) or 'nothing'}."
    )


def _at_client(kind: str, before: Record, after: Record, new: list[Record]) -> Iterator[Record]:
    """What may have arrived, the likeliest first; later ones fit broken models only."""
    yield from _disowned(new)
    yield from _handed_over(before["back"], after["back"])
    if kind == "BGREJ":
        for old in _added(before["begins"], after["begins"]):
            yield {"reason": 6, "ck": old["ck"]}
    for port, (old, now) in enumerate(_pairs(before, after, "C"), start=1):
        if old == now:
            continue
        if kind == "BGAK":
            known = {"port": port, "csn": now["peer"], "peer": now["csn"]}
            for cookie in _added(before["stock"], after["stock"]):
                yield known | {"ck": cookie, "r": now["acked"]}
                yield known | {"ck": cookie}
            yield known
        elif kind == "BGREJ":
            yield {"port": port, "peer": old["csn"]}
        else:
            yield from _of_end(kind, port, old, now, _results(before, after, "calls"))


def _at_server(kind: str, before: Record, after: Record, new: list[Record]) -> Iterator[Record]:
    """As :func:`_at_client`."""
    if kind == "BEGIN":
        for made in _added(before["opened"], after["opened"]):
            yield {"csn": made["csn"], "ck": made["ck"], "port": made["port"]}
        for record in new:
            yield {"csn": record["peer"], "port": record["port"]}
        return
    yield from _disowned(new)
    yield from _handed_over(before["log"], after["log"])
    for port, (old, now) in enumerate(_pairs(before, after, "S"), start=1):
        if old != now:
            yield from _of_end(kind, port, old, now, _results(before, after, "opened"))


def _disowned(new: list[Record]) -> Iterator[Record]:
    """What an END with R flag answers: a BGAK or a POLL."""
    for record in new:
        if record["type"] == "END" and record["kind"] == "unknown":
            answered = {"port": record["port"], "csn": record["peer"]}
            yield answered | ({"peer": record["csn"]} if record["csn"] else {})
        elif record["type"] == "STAT" and record["csn"] == 0:  # a broken model's answer
            yield {"port": record["port"]}


def _handed_over(old: Sequence[Any], new: Sequence[Any]) -> Iterator[Record]:
    """The SD that is handed over first."""
    for _, csn, number in _added(old, new)[:1]:
        yield {"csn": csn, "n": number}


def _of_end(kind: str, port: int, old: Record, now: Record, results: list[str]) -> Iterator[Record]:
    """A packet on a connection: data, a report or an END."""
    common = {"port": port}
    if kind == "SD":
        for csn, number in sorted(_held(now) - _held(old)):
            yield common | {"csn": csn, "n": number}
    elif kind == "STAT":
        yield common | {"csn": old["peer"], "r": now["acked"]}
        yield common | {"r": now["acked"]}
    elif kind == "END":
        for name in ("release", "abort", "unknown") if "success" in results else _FAILING:
            yield common | {"csn": old["peer"], "peer": old["csn"], "kind": name}
            yield common | {"peer": old["csn"], "kind": name}
            yield common | {"csn": old["peer"], "peer": 0, "kind": name}
        yield common
        yield common | {"csn": _STRANGER, "peer": 0, "kind": "abort"}


_FAILING = ("abort", "unknown", "release")


def _held(end: Record) -> set[Any]:
    return {tuple(item) for item in end["held"]}


def _added(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    return list(new[len(old) :])


def _results(before: Record, after: Record, users: str) -> list[str]:
    """What users have been told in this step."""
    pairs = zip(before[users], after[users], strict=False)
    return [new["told"] for old, new in pairs if old["told"] != new["told"]]


def _read(state: Mapping[str, str]) -> Record:
    try:
        found = {name: parse_value(text) for name, text in state.items()}
        found["net"] = sorted((dict(record) for record in found["net"]), key=_text)
        for name in ("C", "S", "begins", "calls", "opened"):
            found[name] = [dict(record) for record in found[name]]
        if any(not {"type", "from"} <= record.keys() for record in found["net"]):
            raise NotAValue("a message has no type or sender")
    except (NotAValue, KeyError, TypeError, ValueError) as error:
        raise ToolProblem(f"a state of the model cannot be read: {error}.") from error
    return found


def _text(record: Record) -> str:
    fields = (f"{key}={record[key]}" for key in sorted(record) if key != "type")
    return " ".join((record["type"], *fields))


NETWORK = Network(("C", "S", "stock", "begins", "calls", "opened", "net", "log", "back"), history)
"""The environment's choices in StpConn."""
