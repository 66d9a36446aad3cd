"""STP-PL: idle connections of every kind, and what puts their POLLs off (STP-PL-010).

A row is a situation in which the IUT has nothing unacknowledged and nothing to send, whoever called
and whatever it has received, or packets that arrive in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S
from bentpipe_conformance.protocols.stp.cases.test_polling import KEPT_ALIVE_S
from bentpipe_conformance.protocols.stp.cases.test_situations import (
    called_closed,
    called_closed_fin_held,
    fin_held,
    gap,
)
from bentpipe_conformance.protocols.stp.cases.test_states import Bring
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    POLL,
    SD,
    SDP,
    STAT,
    USTAT,
)
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.peer import Peer

Beside = Mapping[str, Any]
"""Fields of a packet, its type among them."""


@dataclass(frozen=True, slots=True)
class Idle(Row):
    """A row: ``bring`` makes the idle connection, on which packets may arrive."""

    bring: Bring = lambda peer: peer.connect("discard")
    beside: str = ""


def _silent(peer: Peer) -> Connection:
    """Nothing has passed but BEGIN and BGAK."""
    return peer.connect("discard")


def _used(peer: Peer) -> Connection:
    """An SD has arrived."""
    connection = peer.connect("discard")
    connection.sd(b"x")
    connection.ask()
    return connection


def _receiving(peer: Peer) -> Connection:
    """The IUT has called, and has received data."""
    connection = peer.summon("receive")
    connection.bgak()
    connection.sds(3)
    connection.ask()
    return connection


IDLE: Mapping[str, Bring] = {
    "silent": _silent, "used": _used, "with-a-gap": gap, "with-a-fin-held": fin_held,
    "calling-and-closed": called_closed,
    "calling-and-closed-with-a-fin-held": called_closed_fin_held,
    "calling-and-receiving": _receiving,
}  # fmt: skip
"""Idle connections by name; those of a caller begin with "calling"."""


def _packets(connection: Connection) -> tuple[Beside, ...]:
    """Of every type but POLL and SDP; that with a wrong tag puts nothing off."""
    return (
        {"kind": SD, "seq": connection.iss},
        {"kind": SD, "seq": connection.iss, "tag": tag_of(connection.csn ^ 1)},
        {"kind": STAT, "n_ps": 0, "timestamp": 0},
        {"kind": USTAT, "elements": (2, 1)},
        {"kind": BEGIN, "cookie": connection.cookie},
        {"kind": BGAK},
        {"kind": BGREJ},
        {"kind": ENDAK},
        {"kind": END, "peer_csn": 1},
    )


def _polls(connection: Connection) -> tuple[Beside, ...]:
    """POLLs and SDPs, answered or not; that with a wrong tag puts nothing off."""
    return (
        {"kind": POLL, "n_ps": 7},
        {"kind": POLL, "n_ps": 8, "tag": tag_of(connection.csn ^ 1)},
        {"kind": POLL, "n_ps": 0},
        {"kind": POLL, "n_ps": 9, "csn": connection.csn ^ 1 << 31},
        {"kind": SDP, "seq": connection.iss, "n_ps": 10},
        {"kind": SDP, "seq": connection.iss, "n_ps": 0},
    )


_BESIDE = {"a-packet": _packets, "a-poll": _polls}


def _drive(peer: Peer, row: Idle) -> None:
    connection = row.bring(peer)
    connection.polite = False
    peer.wait(2 * peer.rtt + PAUSE_S)
    connection.inbox.clear()
    long = KEPT_ALIVE_S + peer.patience
    if not row.beside:
        for _ in range(2):
            connection.answer(connection.expect(POLL, within=long, what="a POLL"))
            connection.discard(peer.rtt + PAUSE_S)
    else:
        for fields in _BESIDE[row.beside](connection):
            connection.wait(KEPT_ALIVE_S / 2)
            connection.send(**fields)
            connection.answer(connection.expect(POLL, within=long, what="a POLL"))
    connection.abort()


def _rows() -> Iterator[Idle]:
    rules = ("STP-PL-010",)
    for name, bring in IDLE.items():
        needs = ("active_open",) if name.startswith("calling") else ()
        purpose = (bring.__doc__ or "").rstrip(".")
        yield Idle(
            f"ready-idle-{name}", f"{purpose}; it is asked about all the same.", rules, needs, None,
            bring,
        )  # fmt: skip
    for name in _BESIDE:
        for kind, bring, needs in (
            ("", _used, ()),
            ("-of-its-peer", called_closed, ("active_open",)),
        ):
            yield Idle(
                f"ready-idle-but-for-{name}{kind}",
                "Every packet that passes section 4 puts the POLL off, though nothing comes of it.",
                rules, needs, None, bring, name,
            )  # fmt: skip


each(globals(), _rows(), _drive)
