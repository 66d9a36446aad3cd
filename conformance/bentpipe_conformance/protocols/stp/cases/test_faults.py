"""STP-PF and STP-CC: the fault tables, by state: what is spoiled without any effect.

Packets that have to be discarded are in the group ``format``, which sends those of every type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.stp.cases.faults import (
    foreign_tag,
    reserved,
    send_elsewhere,
    send_foreign,
)
from bentpipe_conformance.protocols.stp.cases.steps import half_released, holding
from bentpipe_conformance.protocols.stp.cases.test_states import (
    CALLING,
    IDLE,
    READY,
    RELEASING,
    Bring,
    bring_calling,
    bring_idle,
    bring_ready,
    drive,
)
from bentpipe_conformance.protocols.stp.codec import Stp
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.peer import Peer


@dataclass(frozen=True, slots=True)
class Spoiled(Row):
    """Every packet of a state's rows in the state table, spoiled in one way.

    Attributes:
        state: name of the state.
        bring: makes a connection that the IUT has in that state.
        alter: spoils a packet.
    """

    state: str = IDLE
    bring: Bring = bring_idle
    alter: Callable[[Stp], Stp] = reserved


STATES: Mapping[str, tuple[str, Bring, tuple[str, ...]]] = {
    "idle": (IDLE, bring_idle, ()),
    "calling": (CALLING, bring_calling, ("active_open",)),
    "ready": (READY, bring_ready, ()),
    "releasing": (RELEASING, half_released, ()),
}

TARGETS: Mapping[str, tuple[str, ...]] = {
    "idle": ("STP-CC-020", "STP-CC-022"),
    "calling": ("STP-CC-022",),
    "ready": ("STP-CC-022",),
    "releasing": ("STP-CC-022",),
}
"""What the effect of a packet with a foreign tag, which is of no importance, is judged by."""


def _rows() -> Iterator[Spoiled]:
    for name, (state, bring, needs) in STATES.items():
        yield Spoiled(
            f"{name}-every-packet-with-reserved-bits",
            "Reserved flags and fields, all of them set, change the effect of no packet.",
            ("STP-PF-004",), needs, None, state, bring, reserved,
        )  # fmt: skip
        yield Spoiled(
            f"{name}-every-untagged-packet-with-a-foreign-tag",
            "The tag of packets that carry whole CSNs is of no importance.",
            TARGETS[name], needs, None, state, bring, foreign_tag,
        )  # fmt: skip


def _drive(peer: Peer, row: Spoiled) -> None:
    def bring(peer: Peer) -> Connection:
        connection = row.bring(peer)
        connection.alter = row.alter
        return connection

    drive(peer, row.state, bring)


@holding("STP-CC-001", losing=[3, 5])
def test_ready_every_tagged_packet_with_a_foreign_tag(connection: Connection, base: int) -> None:  # noqa: ARG001
    """Reports that would have SDs sent again, SDs and POLLs are discarded for their tag."""
    connection.ask()
    send_foreign(connection)
    connection.ask()


@holding("STP-CC-020", losing=[3, 5])
def test_ready_every_packet_between_other_ports(connection: Connection, base: int) -> None:  # noqa: ARG001
    """What comes from another port, or goes to another one, is of no connection."""
    connection.ask()
    send_elsewhere(connection)
    connection.ask()


each(globals(), _rows(), _drive)
