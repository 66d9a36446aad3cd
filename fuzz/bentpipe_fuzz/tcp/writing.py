"""Steps of a TCP script as lines of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bentpipe_fuzz.campaign.writing import arguments, expression, turned

NAMES: Mapping[str, str] = {
    "next": "connection.next_offset", "acked": "connection.acked",
    "edge": "connection.iut_edge",
    "delivered": "connection.delivered", "highest": "connection.highest",
}  # fmt: skip


_place = partial(expression, NAMES)


def _flags(letters: str) -> str:
    names = {"F": "FIN", "S": "SYN", "R": "RST", "P": "PSH", "A": "ACK", "U": "URG"}
    values = {"E": "0x40", "C": "0x80"}
    return " | ".join(names.get(letter, values.get(letter, "0")) for letter in letters) or "0"


def _open(
    service: str = "chargen", odd: Mapping[str, Any] | None = None, **offer: Any
) -> list[str]:
    if not odd:
        return [f"connection = peer.connect({service!r}{arguments(offer)})"]
    return [
        f"connection = peer.draft({service!r}{arguments(offer)})",
        *_odd_syn(odd),
        "connection.establish()",
    ]


def _odd_syn(odd: Mapping[str, Any]) -> list[str]:
    fields = dict(odd)
    raw = f", bytes.fromhex({fields.pop('raw', '')!r})"
    options = "usual_options(connection.syn)"
    return [f"peer.send(craft(connection.syn, {options}{raw}{arguments(fields)}))"]


def _syn(
    service: str | int = "chargen", odd: Mapping[str, Any] | None = None, **offer: Any
) -> list[str]:
    if not odd:
        return [f"peer.begin({service!r}{arguments(offer)})"]
    return [f"connection = peer.draft({service!r}{arguments(offer)})", *_odd_syn(odd)]


def _call(role: str = "send", **offer: Any) -> list[str]:
    port = 9 if role == "send" else 19
    return [
        f"connection = peer.summon({port}{arguments(offer)})",
        "connection.answer()",
        "peer.wait(connection.rtt)",
    ]


def _write(octets: int = 1000, at_once: int = 1460, gap: float = 0.0) -> list[str]:
    whole, rest = divmod(octets, max(at_once, 1))
    lines = []
    if whole:
        lines += [f"for _ in range({whole}):", f"    connection.send_data({max(at_once, 1)})"]
        if gap:
            lines.append(f"    peer.wait({gap})")
    return [*lines, *([f"connection.send_data({rest})"] if rest else [])]


def _receive(seconds: float = 1.0, every: int = 1, segments: int = 1 << 20) -> list[str]:
    if segments < 1 << 20:
        words = f"ack_every={every}, within={seconds}"
        return [f"connection.receive_more({segments}, {words})"]
    return [
        "with suppress(NotReached):",
        f"    connection.serve(lambda: False, ack_every={every}, within={seconds})",
    ]


def _settle(rounds: int = 8) -> list[str]:
    return [
        f"for _ in range({rounds}):",
        "    if connection.acked < connection.next_offset:",
        "        octets = min(1460, connection.next_offset - connection.acked)",
        "        connection.send_data(octets, at=connection.acked)",
        "    with suppress(NotReached):",
        "        connection.serve(lambda: False, within=2 * connection.rtt + 0.3)",
    ]


def _segment(
    flags: str = "A", seq: Sequence[Any] = ("next", 0), ack: Sequence[Any] = ("delivered", 0),
    octets: int = 0, window: int | None = None, sack: Sequence[Sequence[Any]] | None = None,
    tsval: int = 0, odd: Mapping[str, Any] | None = None,
) -> list[str]:  # fmt: skip
    odd = dict(odd or {})
    raw, spoilt = odd.pop("raw", ""), odd.pop("checksum", False)
    words = [f"pattern({_place(seq)}, {octets})"] if octets else []
    words += [f"at={_place(seq)}", f"ack={_place(ack)}", f"flags={_flags(flags)}"]
    if sack is not None:
        listed = ", ".join(f"({_place(a)}, {_place(b)})" for a, b in sack)
        words.append(f"sack=[{listed}]")
    if tsval:
        words.append(f"tsval=connection.timestamp() + {tsval}")
    before = [] if window is None else [f"connection.window = {window}"]
    if not (odd or raw or spoilt):
        return [*before, f"connection.send({', '.join(words)})"]
    if raw:
        words.append(f"raw=bytes.fromhex({raw!r})")
    if odd:
        words.append(f"fields={odd!r}")
    packet = f"connection.craft({', '.join(words)})"
    return [*before, f"peer.send({f'wrong_checksum({packet})' if spoilt else packet})"]


def _stray(
    flags: str = "A", seq: int = 0, ack: int = 0, octets: int = 0, port: int = 19
) -> list[str]:
    words = f"pattern(0, {octets}), at={seq}, ack={ack}, flags={_flags(flags)}, sack=()"
    return [f"peer.draft({port}).send({words})"]


LINES: Mapping[str, Callable[..., list[str]]] = {
    "open": _open,
    "call": _call,
    "write": _write,
    "close": lambda: ["connection.send(flags=ACK | FIN)"],
    "quit": lambda: ["peer.have_aborted()"],
    "abort": lambda: ["connection.abort()"],
    "turn": turned,
    "wait": lambda seconds=1.0: [f"peer.wait({seconds})"],
    "receive": _receive,
    "transfer": lambda segments=100, every=1: [
        f"connection.receive_more({segments}, ack_every={every})"
    ],
    "settle": _settle,
    "offer": lambda window=0: [f"connection.ack(window={window})"],
    "segment": _segment,
    "syn": _syn,
    "stray": _stray,
}

IMPORTS = """\
from contextlib import suppress

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached, pattern
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, URG
from bentpipe_conformance.protocols.tcp.crafting import craft, usual_options, wrong_checksum
from bentpipe_conformance.protocols.tcp.peer import Peer
"""
