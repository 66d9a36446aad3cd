"""Protocol events of STP connections as NDJSON, for validation against the models.

One JSON object per line, one per action of ``tla/StpData.tla`` or ``tla/StpConn.tla``, written
after the step. Times are seconds; numbers of SDs are counted from the ISS of their direction and do
not wrap; ``end`` names the connection's own CSN, so that two endpoints can write into one trace.

Every event has ``event``, ``time``, ``end``, ``peer_end`` (the peer's CSN, or null) and ``state``.
Those of data transfer:

``send``          ``n``: a new SD left
``retransmit``    ``n``: an SD left again
``poll``          ``n_s``, ``n_ps``: a POLL left (for an SDP after its ``send``)
``stat``          ``n_r``, ``n_mr``, ``n_ps``, ``elements``, ``valid``: a STAT was processed
``ustat``         ``n_r``, ``n_mr``, ``elements``, ``valid``: a USTAT was processed
``sd``            ``n``, ``gap`` (a pair or null), ``waits``: an SD arrived; its USTAT reports
                  ``gap``, at once unless it ``waits`` (STP-DT-026)
``late``          ``gap``: a USTAT that has waited left
``poll_arrives``  ``n_s``, ``n_ps``, ``elements`` (the whole list): a POLL arrived and was answered
``announce``      a STAT announced credit (STP-DT-024) when the user read; ``time`` is null, for a
                  user reads without a clock

The first five carry the sender's variables ``vt_s``, ``vt_a``, ``vt_ms``, ``vt_ps``, ``vt_pa``,
``queue`` and ``kept`` (pairs of number and stamp), the last four the receiver's
``vr_r``, ``vr_h``, ``vr_mr`` and ``held``. ``valid`` tells whether the report was not discarded;
numbers in a report are as the sender reads them. ``send`` and ``sd`` also have ``fin``. Events of
arriving packets have their ``tag`` and ``packet``, the type: an ``sd`` with another type is an
early SD, delivered when that packet opened the connection.

Those of connections, each with ``vt_s``, ``vt_a``, ``vt_ms`` and, where there is a receiver,
``vr_r``; all but ``outcome`` have ``sent``, the BEGINs, BGAKs, ENDs and ENDAKs sent since the last:

``begin``         a BEGIN left (``first`` tells whether for the first time)
``called``        a BEGIN made this connection; the fields of a ``receive``
``receive``       ``packet``: what arrived, apart from data and reports on it; ``n_r``, ``csn``,
                  ``peer_csn``, ``iss``, ``flags``, ``reason``, ``tag``, ``n_s``, ``octets`` (of
                  data) and ``cookie`` (hexadecimal) where it has them; ``row``: the condition of
                  the state table's row
``release``       an END left
``put``           a packet left that answers nothing
``outcome``       ``result``: ``success`` or ``failure``, as the user was told; ``reason``; it
                  precedes the ``receive`` that caused it
``gone``          the endpoint has forgotten the connection
``stray``         what arrived belongs to no connection, or was answered without it: the fields of
                  a ``receive``, but ``end``, ``peer_end`` and ``state`` are null
"""

from __future__ import annotations

from typing import Any

from bentpipe_reference.stp.packets import Flags, Packet
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import unwrap, unwrap_poll
from bentpipe_reference.stp.variables import Variables

_SENDER_EVENTS = frozenset({"send", "retransmit", "poll", "stat", "ustat"})
_RECEIVER_EVENTS = frozenset({"sd", "poll_arrives", "late", "announce"})
_ARRIVALS = frozenset({"stat", "ustat", "sd", "poll_arrives"})
_FIELDS = ("n_r", "n_s", "csn", "peer_csn", "iss", "flags", "reason", "tag")


def note(v: Variables, name: str, now: float | None, values: dict[str, Any]) -> None:
    """Report one step of a connection, with the variables after it, to its trace, if any."""
    if v.trace is None:
        return
    record: dict[str, Any] = {
        "event": name,
        "time": None if now is None else round(now, 9),
        "end": v.csn,
        "peer_end": v.peer_csn,
        "state": int(v.state),
    }
    sender = v.outgoing.sender
    if name in _SENDER_EVENTS:
        record |= _of_sender(sender, values)
    elif name in _RECEIVER_EVENTS:
        assert v.receiver is not None
        record |= _of_receiver(v.receiver, values)
    else:
        record |= values
        if name != "outcome":
            record["sent"] = [packet_values(packet) for packet in v.untold]
            v.untold = []
        record |= _relative(sender, sender.iss, "vt_s", "vt_a", "vt_ms")
        if v.receiver is not None:
            record |= _relative(v.receiver, v.receiver.iss, "vr_r")
    if name == "send":
        record["fin"] = values["n"] == sender.fin_number
    elif name in _ARRIVALS and v.handled is not None:
        packet = v.handled
        record |= {"packet": packet.type.name, "tag": packet.tag}
        if name == "sd":
            record["fin"] = bool(packet.flags & Flags.FIN)
    v.trace(record)


def note_packet(v: Variables, name: str, now: float, packet: Packet, row: str) -> None:
    """Report that a packet was handled by a row of the state table."""
    if v.trace is not None:
        note(v, name, now, packet_values(packet) | {"row": row})


def stray_record(packet: Packet, answers: list[Packet], now: float) -> dict[str, Any]:
    """The event of a packet that belongs to no connection."""
    record: dict[str, Any] = {"event": "stray", "time": round(now, 9), "end": None}
    record |= {"peer_end": None, "state": None, **packet_values(packet)}
    return record | {"sent": [packet_values(answer) for answer in answers]}


def packet_values(packet: Packet) -> dict[str, Any]:
    """The fields of a packet that are traced."""
    values: dict[str, Any] = {"packet": packet.type.name}
    for field in _FIELDS:
        if hasattr(packet, field):
            values[field] = int(getattr(packet, field))
    if hasattr(packet, "data"):
        values["octets"] = len(packet.data)
    cookie = getattr(packet, "cookie", None)
    if cookie is not None:
        values["cookie"] = cookie.hex()
    return values


def _relative(side: Sender | Receiver, iss: int, *names: str) -> dict[str, Any]:
    """Variables that are numbers of SDs, counted from the ISS."""
    return {name: getattr(side, name) - iss for name in names}


def _of_sender(sender: Sender, values: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a sender's event, counted from the ISS, and its variables."""
    iss, told = sender.iss, dict(values)
    for name in told.keys() & {"n", "n_s"}:
        told[name] -= iss
    for name in told.keys() & {"n_r", "n_mr"}:
        told[name] = unwrap(told[name], sender.vt_a) - iss
    if "elements" in told:
        told["elements"] = [unwrap(item, sender.vt_a) - iss for item in told["elements"]]
    if "n_ps" in told:
        told["n_ps"] = told["n_ps"] and unwrap_poll(told["n_ps"], sender.vt_ps)
    return told | {
        **_relative(sender, iss, "vt_s", "vt_a", "vt_ms"),
        **_relative(sender, 0, "vt_ps", "vt_pa"),
        "queue": [number - iss for number in sender.queued()],
        "kept": [[number - iss, stamp] for number, stamp in sender.kept()],
    }


def _of_receiver(receiver: Receiver, values: dict[str, Any]) -> dict[str, Any]:
    """The same for a receiver."""
    iss, told = receiver.iss, dict(values)
    for name in told.keys() & {"n", "n_s"}:
        told[name] = unwrap(told[name], receiver.vr_r) - iss
    for name in told.keys() & {"gap", "elements"}:
        if told[name] is not None:
            told[name] = [item - iss for item in told[name]]
    return told | {
        **_relative(receiver, iss, "vr_r", "vr_h", "vr_mr"),
        "held": [number - iss for number in receiver.held()],
    }
