"""The binding of STP's data transfer: one stream, its sender and its receiver in one trace.

The events are those of ``bentpipe_reference.stp.tracing``, both endpoints' together in the order of
time. The stream is that of the endpoint whose BEGIN comes first; it begins again when a BGREJ makes
it call anew. What belongs to other streams, or to the connection alone, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from bentpipe_conformance.models.binding import Binding, Form, Step, TraceProblem, numbers
from bentpipe_conformance.models.rejection import Module
from bentpipe_conformance.models.values import Value

_ENDS = {"end": int}
_SENDER = ("vt_s", "vt_a", "vt_ms", "vt_ps", "vt_pa")
_RECEIVER = ("vr_r", "vr_h", "vr_mr")
_SENDERS: dict[str, type] = {
    **_ENDS, **dict.fromkeys(_SENDER, int), "queue": list, "kept": list,
}  # fmt: skip
_RECEIVERS: dict[str, type] = {**_ENDS, **dict.fromkeys(_RECEIVER, int), "held": list}
_REPORT: dict[str, type] = {"n_r": int, "n_mr": int, "elements": list, "valid": bool}

_OWN = {
    "send": ("n",),
    "retransmit": ("n",),
    "poll": ("n_s", "n_ps"),
    "stat": ("n_r", "n_mr", "n_ps", "valid"),
    "ustat": ("n_r", "n_mr", "valid"),
    "sd": ("n",),
    "poll_arrives": ("n_s", "n_ps"),
    "late": (),
    "announce": (),
}
"""Fields that go into the model as they are, besides the variables."""


class StreamEncoder:
    """Picks the events of one stream out of a connection's."""

    def __init__(self, name: str, _binding: Binding) -> None:
        self._name = name
        self._sender: int | None = None
        self._called: dict[int, Step] = {}

    def steps(self, event: dict[str, Any], line: int) -> Iterable[Step]:
        """The step of an event of the stream; none for another.

        Raises:
            TraceProblem: data precedes the BEGIN, or a field is not the list it should be.
        """
        kind = event["event"]
        where = f"{self._name}, line {line}"
        if kind == "begin":
            call = Step("call", {"vt_s": self._numbered(event, "vt_s", where)}, line)
            self._called.setdefault(event["end"], call)
            if self._sender is None:
                self._sender = event["end"]
                return [call]
            return []
        if kind == "receive" and self._anew(event):
            self._sender = event["end"]
            return [Step("anew", self._called[event["end"]].fields, line)]
        if kind == "receive" and event["end"] == self._sender and event["packet"] == "BGAK":
            values = {
                "n_r": self._numbered(event, "vt_a", where),
                "n_mr": self._numbered(event, "vt_ms", where),
            }
            return [Step("bgak", values, line)]
        if kind not in _OWN:
            return []
        if self._sender is None:
            raise TraceProblem(f"{where}: {kind!r} comes before any BEGIN.")
        at_receiver = "vr_h" in event
        if self._sender != (event.get("peer_end") if at_receiver else event["end"]):
            return []
        fields: dict[str, Value] = {}
        for field in (*_OWN[kind], *(_RECEIVER if at_receiver else _SENDER)):
            fields[field] = self._numbered(event, field, where)
        for field in ("held",) if at_receiver else ("queue",):
            fields[field] = frozenset(numbers(event[field], f"{where}: {field!r}"))
        if not at_receiver:
            fields["kept"] = _stamps(event["kept"], where)
        if kind in ("sd", "late"):
            fields["gap"] = _gap(event.get("gap"), where)
            fields["waits"] = bool(event.get("waits"))
        if "elements" in event:
            listed = numbers(event["elements"], f"{where}: 'elements'")
            fields["gaps"], fields["h"] = _missing(listed, event, where)
            fields["lo"] = listed[0] if listed else fields["h"]
        if kind == "stat" and event["n_ps"] == 0 and event["elements"] == []:
            kind = "credit"  # STP-DT-024
        return [Step(kind, fields, line)]

    def _anew(self, event: dict[str, Any]) -> bool:
        """Whether a BGREJ made the sender call anew (STP-CC-037); the CSN is the new call's."""
        answers = event["packet"] == "BGREJ" and event.get("peer_csn") == self._sender
        return answers and event["end"] != self._sender and event["end"] in self._called

    @staticmethod
    def _numbered(event: dict[str, Any], field: str, where: str) -> int:
        value: int = event[field]  # of the type that the form asks for
        numbers([int(value)], f"{where}: {field!r}")
        return value


def _run(first: int, end: int, where: str) -> range:
    """The numbers from ``first`` to ``end``; bounded, since each becomes a member of a set."""
    if end - first > _LONGEST_RUN:
        raise TraceProblem(f"{where}: {first} to {end} is not a run of at most {_LONGEST_RUN} SDs.")
    return range(first, end)


_LONGEST_RUN = 100_000
_NO_RUN = frozenset({-1})
"""In place of a run or a list that does not rise (STP-PF-011), which no report of the model has."""


def _gap(value: object, where: str) -> frozenset[int]:
    if value is None:
        return frozenset()
    pair = numbers(value, f"{where}: 'gap'")
    if len(pair) != 2:
        raise TraceProblem(f"{where}: 'gap' is not a pair of numbers.")
    return frozenset(_run(pair[0], pair[1], where)) or _NO_RUN


def _missing(listed: list[int], event: dict[str, Any], where: str) -> tuple[frozenset[int], int]:
    """What a list reports missing, and its bound; an empty one's is N(R) (section 3.6)."""
    if not listed:
        return frozenset(), event["n_r"] if "n_r" in event else event["vr_r"]
    if any(first >= second for first, second in pairwise(listed)):
        return _NO_RUN, -1
    runs = zip(listed[::2], listed[1::2], strict=False)
    return frozenset(n for first, end in runs for n in _run(first, end, where)), listed[-1]


def _stamps(value: list[object], where: str) -> dict[int, int]:
    pairs = [numbers(item, f"{where}: a pair of 'kept'") for item in value]
    if any(len(pair) != 2 for pair in pairs):
        raise TraceProblem(f"{where}: 'kept' does not consist of pairs.")
    return {pair[0]: pair[1] for pair in pairs}


def _fields(kind: str, *others: dict[str, type]) -> dict[str, type]:
    own: dict[str, type] = {name: bool if name == "valid" else int for name in _OWN[kind]}
    for other in others:
        own |= other
    return own


STP_DATA = Binding(
    protocol="stp-data",
    module=Module("stp-data", "TraceStpData", "trace.cfg", "TraceLogs"),
    profiles={"stp1e2": {}},
    bounds={"window": "Window"},
    forms={
        "begin": Form({**_ENDS, "vt_s": int}, ("Called",)),
        "receive": Form(
            {**_ENDS, "packet": str, "vt_a": int, "vt_ms": int}, ("Opened", "CalledAnew")
        ),
        "release": Form({}, ()),
        "outcome": Form({}, ()),
        "called": Form({}, ()),
        "put": Form({}, ()),
        "gone": Form({}, ()),
        "stray": Form({}, ()),
        "send": Form(_fields("send", _SENDERS), ("Sent",)),
        "retransmit": Form(_fields("retransmit", _SENDERS), ("Repeated",)),
        "poll": Form(_fields("poll", _SENDERS), ("Polled",)),
        "stat": Form(_fields("stat", _SENDERS, _REPORT), ("StatArrived", "CreditArrived")),
        "ustat": Form(_fields("ustat", _SENDERS, _REPORT), ("UstatArrived",)),
        "sd": Form(_fields("sd", _RECEIVERS), ("SdArrived",)),
        "poll_arrives": Form(
            {**_fields("poll_arrives", _RECEIVERS), "elements": list}, ("PollArrived",)
        ),
        "late": Form(_fields("late", _RECEIVERS), ("LateUstatSent",)),
        "announce": Form(_fields("announce", _RECEIVERS), ("Announced",)),
    },
    encoder=StreamEncoder,
)
"""The table of STP's data transfer."""
