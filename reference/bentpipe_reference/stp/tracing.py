"""Protocol events of STP connections as NDJSON, for validation against the models.

One JSON object per line, one per action of ``tla/StpData.tla`` or ``tla/StpConn.tla``, written
after the step. Times are seconds; numbers of SDs are counted from the ISS of their direction and do
not wrap; ``end`` names the connection's own CSN, so that two endpoints can write into one trace.

Every event has ``event``, ``time``, ``end``, ``peer_end`` (the peer's CSN, or null) and ``state``.
Those of data transfer:

``send``          ``n``: a new SD left
``retransmit``    ``n``: an SD left again
``poll``          ``n_s``, ``n_ps``: a POLL left (for an SDP after its ``send``)
``stat``          ``n_r``, ``n_mr``, ``n_ps``, ``elements``, ``valid``: a STAT was worked off
``ustat``         ``n_r``, ``n_mr``, ``elements``, ``valid``: a USTAT was worked off
``sd``            ``n``, ``gap`` (a pair or null): an SD arrived; ``gap`` is what its USTAT reports
``poll_arrives``  ``n_s``, ``n_ps``, ``elements`` (the whole list): a POLL arrived and was answered
``announce``      ``n_ps``, ``elements``: a STAT announced credit (STP-DT-024) when the user read;
                  ``time`` is null, for a user reads without a clock

The first five carry the sender's variables ``vt_s``, ``vt_a``, ``vt_ms``, ``vt_ps``, ``vt_pa``,
``vt_pd``, ``queue`` and ``kept`` (pairs of number and stamp), the last three the receiver's
``vr_r``, ``vr_h``, ``vr_mr`` and ``held``. ``valid`` tells whether the report was not discarded;
numbers in a report are as the sender reads them. ``send`` and ``sd`` have ``fin`` as well. What
arrived has ``tag``, that of the packet, and ``packet``, its type: an ``sd`` with another type is an
early SD, handed over when that packet opened the connection.

Those of connections, each with ``vt_s``, ``vt_a``, ``vt_ms`` and, where there is one, ``vr_r``, and
but for ``outcome`` with ``sent``, the BEGINs, BGAKs, ENDs and ENDAKs that left since the last:

``begin``         a BEGIN left (``first`` tells whether for the first time)
``called``        a BEGIN made this connection; the fields of a ``receive``
``receive``       ``packet``: what arrived, apart from data and reports on it, except in state 3;
                  ``n_r``, ``csn``, ``peer_csn``, ``iss``, ``flags``, ``reason``, ``tag``, ``n_s``,
                  ``octets`` (of data) where it has them; ``row``: the condition of the state
                  table's row
``release``       an END left
``put``           something left that answers nothing
``outcome``       ``result``: ``success`` or ``failure``, what the user was told; ``reason``; it
                  comes before the ``receive`` that brought it about
``gone``          the endpoint has forgotten the connection
``stray``         what arrived belongs to no connection, or was answered without it: the fields of
                  a ``receive``, but ``end``, ``peer_end`` and ``state`` are null
"""

from __future__ import annotations

import json
from typing import Any

from bentpipe_reference.stp.packets import Flags, Packet
from bentpipe_reference.stp.sequence import PACKET_MASK, unwrap
from bentpipe_reference.stp.variables import Variables

_SENDER_EVENTS = frozenset({"send", "retransmit", "poll", "stat", "ustat"})
_RECEIVER_EVENTS = frozenset({"sd", "poll_arrives", "announce"})
_ARRIVALS = frozenset({"stat", "ustat", "sd", "poll_arrives"})
_FIELDS = ("n_r", "n_s", "csn", "peer_csn", "iss", "flags", "reason", "tag")


class StpTrace:
    """Collects events; give its :meth:`add` to an endpoint as ``trace``.

    Attributes:
        events: the events so far.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any]) -> None:
        """Take one event."""
        self.events.append(event)

    def lines(self) -> str:
        """The trace as NDJSON."""
        return "".join(f"{json.dumps(event)}\n" for event in self.events)


def note(v: Variables, name: str, now: float | None, values: dict[str, Any]) -> None:
    """Report one step of a connection to its trace, if it has one."""
    if v.trace is not None:
        v.trace(step_record(v, name, now, values))


def note_packet(v: Variables, name: str, now: float, packet: Packet, row: str) -> None:
    """Report that a packet was handled by a row of the state table."""
    if v.trace is not None:
        note(v, name, now, packet_values(packet) | {"row": row})


def step_record(
    connection: Variables, name: str, now: float | None, values: dict[str, Any]
) -> dict[str, Any]:
    """One event with the variables after it."""
    record: dict[str, Any] = {
        "event": name,
        "time": None if now is None else round(now, 9),
        "end": connection.csn,
        "peer_end": connection.peer_csn,
        "state": int(connection.state),
    }
    if name in _SENDER_EVENTS:
        record |= _relative_to_sender(connection, values)
        record |= _sender_variables(connection)
    elif name in _RECEIVER_EVENTS:
        record |= _relative_to_receiver(connection, values)
        record |= _receiver_variables(connection)
    else:
        record |= values
        if name != "outcome":
            record["sent"] = [packet_values(packet) for packet in connection.untold]
            connection.untold = []
        sender = connection.outgoing.sender
        for variable in ("vt_s", "vt_a", "vt_ms"):
            record[variable] = getattr(sender, variable) - sender.iss
        if connection.receiver is not None:
            record["vr_r"] = connection.receiver.vr_r - connection.receiver.iss
    if name == "send":
        record["fin"] = values["n"] == connection.outgoing.sender.fin_number
    elif name in _ARRIVALS and connection.handled is not None:
        packet = connection.handled
        record |= {"packet": packet.type.name, "tag": packet.tag}
        if name == "sd":
            record["fin"] = bool(packet.flags & Flags.FIN)
    return record


def stray_record(packet: Packet, answers: list[Packet], now: float) -> dict[str, Any]:
    """The event of a packet that belongs to no connection."""
    record: dict[str, Any] = {"event": "stray", "time": round(now, 9), "end": None}
    record |= {"peer_end": None, "state": None, **packet_values(packet)}
    return record | {"sent": [packet_values(answer) for answer in answers]}


def packet_values(packet: Packet) -> dict[str, Any]:
    """What the trace tells of a packet."""
    values: dict[str, Any] = {"packet": packet.type.name}
    for field in _FIELDS:
        if hasattr(packet, field):
            values[field] = int(getattr(packet, field))
    if hasattr(packet, "data"):
        values["octets"] = len(packet.data)
    return values


def _relative_to_sender(connection: Variables, values: dict[str, Any]) -> dict[str, Any]:
    sender = connection.outgoing.sender
    relative: dict[str, Any] = {}
    for name, value in values.items():
        if name == "elements":
            relative[name] = [unwrap(item, sender.vt_a) - sender.iss for item in value]
        elif name in ("n_r", "n_mr"):
            relative[name] = unwrap(value, sender.vt_a) - sender.iss
        elif name in ("n", "n_s"):
            relative[name] = value - sender.iss
        else:
            relative[name] = value
    if "n_ps" in relative:
        relative["n_ps"] = unwrap(relative["n_ps"] & PACKET_MASK, sender.vt_ps)
    return relative


def _relative_to_receiver(connection: Variables, values: dict[str, Any]) -> dict[str, Any]:
    receiver = connection.receiver
    assert receiver is not None
    relative: dict[str, Any] = {}
    for name, value in values.items():
        if name in ("n", "n_s"):
            relative[name] = unwrap(value, receiver.vr_r) - receiver.iss
        elif name in ("gap", "elements") and value is not None:
            relative[name] = [item - receiver.iss for item in value]
        else:
            relative[name] = value
    return relative


def _sender_variables(connection: Variables) -> dict[str, Any]:
    sender = connection.outgoing.sender
    iss = sender.iss
    return {
        "vt_s": sender.vt_s - iss,
        "vt_a": sender.vt_a - iss,
        "vt_ms": sender.vt_ms - iss,
        "vt_ps": sender.vt_ps,
        "vt_pa": sender.vt_pa,
        "vt_pd": sender.vt_pd,
        "queue": [number - iss for number in sender.queued()],
        "kept": [[number - iss, stamp] for number, stamp in sender.kept()],
    }


def _receiver_variables(connection: Variables) -> dict[str, Any]:
    receiver = connection.receiver
    assert receiver is not None
    iss = receiver.iss
    return {
        "vr_r": receiver.vr_r - iss,
        "vr_h": receiver.vr_h - iss,
        "vr_mr": receiver.vr_mr - iss,
        "held": [number - iss for number in receiver.held()],
    }
