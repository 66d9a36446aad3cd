"""The binding of STP's connections: one client that calls one server again and again.

The events are those of ``bentpipe_reference.stp.sessions``, both endpoints' together in the order
of time. What arrived becomes the model's message, and so does what was sent; CSNs become small
numbers in the same order. POLLs, credit and retransmissions are the business of
:mod:`~bentpipe_conformance.models.stp.exchanges`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bentpipe_conformance.models.binding import Binding, Form, Step, TraceProblem, numbers
from bentpipe_conformance.models.rejection import Module
from bentpipe_conformance.models.values import Record, Value

_FIN, _A, _R = 1, 4, 8
_NUMBERS = 1 << 24
_STRANGE = 1
"""In place of a CSN that neither side has chosen."""
_FIRST = 500_000_000
_LIFE = 1_000_000
"""How far the numbers of two lives of a server are apart."""
_REACH = 400_000
_SIDES = {"client": "server", "server": "client"}
_OPEN = -1
"""In place of a variable that an event does not tell."""
_FOREIGN = -1
"""In place of a cookie that the server has not made."""
_PORT = 1
"""The client's only port."""
_LEFT_OUT = ("retransmit", "poll", "announce")
_TYPES = {"SDP": "SD", "USTAT": "STAT"}

Event = Mapping[str, Any]


class _Numbers:
    """The CSNs of one side, as small numbers in their order."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._tagged: dict[int, int] = {}
        self._anchor: int | None = None
        self._base = _FIRST
        self._newest = 0

    def restart(self) -> None:
        """What follows has its own beginning."""
        self._anchor = None

    def learn(self, csn: int) -> int:
        """The number of a CSN that was chosen now."""
        if self._anchor is None:
            if self._of:
                self._base += _LIFE if _ahead(csn, self._newest) > 0 else -_LIFE
            self._anchor = csn
        if csn not in self._of:
            far = _ahead(csn, self._anchor)
            self._of[csn] = self._base + max(-_REACH, min(_REACH, far))
            self._newest = csn
        self._tagged[csn & 0xFFFF] = csn
        return self._of[csn]

    def of(self, csn: int) -> int:
        """The number of a CSN in a packet; 0 for none."""
        return 0 if csn == 0 else self._of.get(csn, _STRANGE)

    def tagged(self, tag: int) -> int:
        """The number of the newest CSN with this tag."""
        return self._of.get(self.csn_tagged(tag), _STRANGE)

    def csn_tagged(self, tag: int) -> int:
        """The newest CSN with this tag; -1 for none."""
        return self._tagged.get(tag, -1)


def _ahead(csn: int, other: int) -> int:
    """How much newer, in the sense of section 2 of the specification."""
    return (csn - other + (1 << 31)) % (1 << 32) - (1 << 31)


class SessionEncoder:
    """Turns the events of both endpoints into steps of TraceStpConn."""

    def __init__(self, name: str, _binding: Binding) -> None:
        self._name = name
        self._sides = {side: _Numbers() for side in _SIDES}
        self._iss: dict[int, int] = {}
        self._cookies: dict[str, int] = {}
        self._result: tuple[Event, int] | None = None
        self._released = {"client": (0, 0.0), "server": (0, 0.0)}
        self._started = False

    def steps(self, event: dict[str, Any], line: int) -> Iterable[Step]:
        """The steps of an event, after what a user was told without it.

        Raises:
            TraceProblem: a field is missing, or is not a number.
        """
        where = f"{self._name}, line {line}"
        try:
            return list(self._steps(event, line))
        except (KeyError, TypeError, AttributeError) as error:
            raise TraceProblem(f"{where}: {event['event']!r} lacks {error}.") from error

    def _steps(self, event: Event, line: int) -> Iterable[Step]:
        kind, at = event["event"], event["at"]
        if at not in _SIDES:
            raise TraceProblem(f"{self._name}, line {line}: {at!r} is neither client nor server.")
        told, self._result = self._result, None
        expected = ""
        if told is not None:
            same = all(told[0][field] == event.get(field) for field in ("at", "end", "time"))
            if kind == "receive" and same:
                expected = told[0]["result"]
            else:
                yield self._told(*told)
        if kind == "stop":
            return
        if kind == "start":
            yield from self._start(at, line)
            return
        if kind == "forged":
            self._sides["client"].learn(event["csn"])
            fields: dict[str, Value] = {"at": at, "end": 0, "sent": ()}
            yield Step("forged", fields | {"m": self._message(event, "client")}, line)
            return
        self._learn(event, at)
        if kind == "outcome":
            if self._released[at] == (event["end"], event["time"]):
                yield self._told(event, line)
            else:
                self._result = (event, line)
            return
        if kind == "release":
            self._released[at] = (event["end"], event["time"])
        step = self._step(event, line, expected)
        if step is not None:
            yield step

    def _start(self, at: str, line: int) -> Iterable[Step]:
        self._sides[at].restart()
        if self._started or at == "client":
            yield Step("start", {"at": at, "end": 0, "sent": ()}, line)
        self._started = self._started or at == "server"

    def _learn(self, event: Event, at: str) -> None:
        kind = event["event"]
        if kind == "called" or (kind == "begin" and event["first"]):
            self._sides[at].learn(event["end"])
        for packet in (event, *event.get("sent", ())):
            if "iss" in packet:
                self._iss[packet["csn"]] = packet["iss"]
        if at == "server":
            for packet in event.get("sent", ()):
                if "cookie" in packet:
                    self._cookies.setdefault(packet["cookie"], len(self._cookies) + 1)

    def _base(self, event: Event) -> dict[str, Value]:
        at = event["at"]
        own = self._sides[at].of(event["end"] or 0)
        peer = self._sides[_SIDES[at]].of(event["peer_end"] or 0)
        return {
            "at": at, "end": own, "peer": peer, "state": event["state"] or 0,
        }  # fmt: skip

    def _told(self, event: Event, line: int) -> Step:
        fields = self._base(event) | {"result": str(event["result"]), "sent": ()}
        return Step("told", fields, line)

    def _step(self, event: Event, line: int, told: str) -> Step | None:
        kind, at = event["event"], event["at"]
        if kind in _LEFT_OUT or (kind in ("stat", "ustat") and not event["valid"]):
            return None
        if kind == "sd" and event["packet"] not in ("SD", "SDP") and event["state"] == 10:
            return None  # part of what opened the connection
        fields = self._base(event)
        sent = event.get("sent", ())
        fields["sent"] = tuple(self._message(packet, at) for packet in sent)
        for name in ("vt_s", "vt_a", "vr_r"):
            value = event.get(name, 0 if name == "vr_r" and "sent" in event else _OPEN)
            numbers([value], f"{self._name}, line {line}: {name!r}")
            if name in event and value < 0:
                raise TraceProblem(f"{self._name}, line {line}: {name!r} is negative.")
            fields[name] = value
        if kind in ("receive", "called", "stray"):
            fields |= {"m": self._message(event, _SIDES[at]), "told": told}
            fields["asks"] = event["packet"] in ("SDP", "POLL")
            return Step("arrive", fields, line)
        if kind in ("stat", "ustat", "sd", "poll_arrives"):
            fields["m"] = self._data(event, kind, _SIDES[at])
            fields["asks"] = event["packet"] in ("SDP", "POLL")
            if kind in ("sd", "poll_arrives"):
                held = numbers(event["held"], f"{self._name}, line {line}: 'held'")
                fields["held"] = frozenset(held)
            return Step("sd" if kind == "sd" else "report", fields, line)
        if kind == "begin":
            fields |= {"first": bool(event["first"]), "carries": event["vt_s"] > 0}
            fields["fin"] = any(packet["flags"] & _FIN for packet in sent)
            fields["ck"] = self._cookie(sent[0]) if sent else 0
        elif kind == "send":
            fields |= {"n": event["n"], "fin": bool(event["fin"])}
        return Step(kind, fields, line)

    def _data(self, event: Event, kind: str, sender: str) -> Record:
        """Data or a report, with numbers relative to the ISS."""
        csn = self._sides[sender].tagged(event["tag"])
        common = (("from", sender), ("port", _PORT), ("csn", csn))
        if kind == "sd":
            fields = (("n", int(event["n"])), ("fin", bool(event["fin"])))
            return Record((("type", "SD"), *common, *fields))
        if kind == "poll_arrives":
            return Record((("type", "POLL"), *common))
        return Record((("type", "STAT"), *common, ("r", int(event["n_r"]))))

    def _message(self, packet: Event, sender: str) -> Record:
        """A packet as a message of the model."""
        kind: str = packet["packet"]
        kind = _TYPES.get(kind, kind)
        own, other = self._sides[sender], self._sides[_SIDES[sender]]
        flags = packet["flags"]
        fin = bool(flags & _FIN)
        fields: dict[str, int | bool | str] = {"from": sender, "port": _PORT}
        if kind == "POLL":
            fields["csn"] = own.of(packet["csn"])
        elif kind in ("SD", "STAT"):
            fields["csn"] = own.tagged(packet["tag"])
            if kind == "STAT":
                fields["r"] = 0  # it will be discarded
            elif kind == "SD":
                number = self._relative(packet["n_s"], own.csn_tagged(packet["tag"]))
                fields |= {"n": number, "fin": fin}
        elif kind == "BEGIN":
            data = packet["octets"] > 0 or fin
            fields |= {"csn": own.of(packet["csn"]), "ck": self._cookie(packet)}
            fields |= {"data": data, "fin": fin, "at": 0}
        else:
            peer_csn = packet["peer_csn"]
            if kind in ("BGAK", "END"):
                fields["csn"] = own.of(packet["csn"])
            fields["peer"] = other.of(peer_csn)
            if kind == "BGAK":
                number = self._relative(packet["n_r"], peer_csn)
                fields |= {"r": number, "ck": self._cookie(packet)}
            elif kind == "BGREJ":
                fields |= {"reason": packet["reason"], "ck": self._cookie(packet)}
            elif kind == "END":
                which = "unknown" if flags & _R else "abort" if flags & _A else "release"
                number = self._relative(packet["n_r"], peer_csn)
                fields |= {"kind": which, "r": number if which == "release" else 0}
        return Record((("type", kind), *fields.items()))

    def _cookie(self, packet: Event) -> int:
        """The server's cookies, counted in the order in which it sent them; 0 for none."""
        if "cookie" not in packet:
            return 0
        return self._cookies.get(packet["cookie"], _FOREIGN)

    def _relative(self, field: int, csn: int) -> int:
        """A number counted from the ISS of the direction whose sender has this CSN."""
        if csn not in self._iss:
            return -1
        return (field - self._iss[csn]) % _NUMBERS


_END: dict[str, type] = {"at": str, "end": int, "state": int}
_SENT: dict[str, type] = {**_END, "sent": list}
_PACKET: dict[str, type] = {"at": str, "packet": str, "flags": int, "sent": list}
_ARRIVED: dict[str, type] = {**_END, "tag": int}

STP_CONN = Binding(
    protocol="stp-conn",
    module=Module("stp-conn", "TraceStpConn", "trace.cfg", "TraceLogs"),
    profiles={"stp1e2": {}},
    forms={
        "start": Form({"at": str}, ("Started",)),
        "stop": Form({"at": str}, ()),
        "forged": Form({"at": str, "packet": str, "csn": int, "flags": int}, ("Forged",)),
        "begin": Form({**_SENT, "first": bool, "vt_s": int}, ("Begun", "BegunAgain")),
        "called": Form({**_PACKET, **_END, "vt_s": int, "vt_a": int}, ("Arrived",)),
        "receive": Form({**_PACKET, **_END, "vt_s": int, "vt_a": int}, ("Arrived",)),
        "stray": Form(_PACKET, ("Arrived",)),
        "release": Form(_SENT, ("Released",)),
        "put": Form(_SENT, ("Put",)),
        "outcome": Form({**_END, "result": str}, ("Told",)),
        "gone": Form(_SENT, ("Gone",)),
        "send": Form({**_END, "n": int, "fin": bool, "vt_s": int}, ("Sent",)),
        "sd": Form({**_ARRIVED, "n": int, "fin": bool, "vr_r": int, "held": list}, ("Arrived",)),
        "stat": Form({**_ARRIVED, "n_r": int, "vt_a": int, "valid": bool}, ("Arrived",)),
        "ustat": Form({**_ARRIVED, "n_r": int, "vt_a": int, "valid": bool}, ("Arrived",)),
        "poll_arrives": Form({**_ARRIVED, "vr_r": int, "held": list}, ("Arrived",)),
        "retransmit": Form({}, ()),
        "poll": Form({}, ()),
        "announce": Form({}, ()),
    },
    encoder=SessionEncoder,
)
"""The table of STP's connections."""
