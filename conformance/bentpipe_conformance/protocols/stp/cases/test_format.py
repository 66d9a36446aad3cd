"""STP-PF: the format of packets (section 3)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, connected, summoned
from bentpipe_conformance.protocols.stp.codec import POLL, SD, STAT, build_datagram, octets_of
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.peer import Peer

UNKNOWN_THEN_MAX_SD = bytes((0xAA, 4, 1, 2, 1, 4, 0x03, 0x20))
"""An option of a kind nobody knows, then MaxSD = 800."""


@connected(
    "STP-PF-001", "STP-PF-002", "STP-PF-005", "STP-PF-006", "STP-PF-009", "STP-PF-010",
    to="chargen", max_sd=800,
)  # fmt: skip
def test_ready_chargen_transfer_with_loss(connection: Connection) -> None:
    """Every packet of a transfer with losses has the form the specification gives it."""
    connection.receive(60, losing=[7, 20, 21])


@connected("STP-PF-001", "STP-PF-002", "STP-PF-011", "STP-PF-013")
def test_ready_sds_arrive_with_gaps(connection: Connection) -> None:
    """The USTAT names the run that was skipped, and the STAT's list every run."""
    connection.sds(9, skip=[2, 3, 6])
    connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()


@connected("STP-PF-012")
def test_ready_every_other_sd_missing(connection: Connection) -> None:
    """A list longer than MaxSTAT is sent in several STATs, none longer than the path carries."""
    count = min(connection.vt_ms, 160)
    for first in range(0, count, 40):
        connection.sds(min(40, count - first), octets=8, skip=range(1, count, 2))
        connection.wait(PAUSE_S)
    connection.poll()
    connection.discard(2 * connection.rtt + 1.0)


@connected("STP-PF-003")
def test_ready_malformed_packets_arrive(connection: Connection) -> None:
    """Truncated, overlong and unused packets are discarded, and the connection goes on."""
    connection.sd(poll=True)
    connection.expect(STAT)
    poll = connection.compose(POLL, n_ps=connection.vt_ps + 1)
    stat = connection.compose(STAT)
    for octets in (
        octets_of(poll)[:16],
        octets_of(poll) + bytes(4),
        octets_of(stat)[:22],
        octets_of(stat) + bytes(2),
        bytes((*octets_of(poll)[:4], 5, *octets_of(poll)[5:])),
        bytes((*octets_of(poll)[:4], 15, *octets_of(poll)[5:])),
        octets_of(poll)[:12],
    ):
        connection.peer.send(build_datagram(poll, octets, rechecked=True))
        connection.wait(PAUSE_S)
    connection.sd()
    connection.ask()


@case("STP-PF-003", "STP-PF-008")
def test_idle_begin_with_options(peer: Peer) -> None:
    """A BEGIN with an unknown option opens a connection; one whose options do not fit does not."""
    broken = peer.prepare("chargen", options=bytes((1, 8, 5, 0)))
    broken.begin()
    peer.wait(2 * peer.rtt + PAUSE_S)
    connection = peer.connect("chargen", options=UNKNOWN_THEN_MAX_SD)
    connection.receive(12)
    connection.abort()


@connected("STP-PF-004")
def test_ready_reserved_bits_set(connection: Connection) -> None:
    """Reserved flags and fields of SDs, SDPs and POLLs change nothing."""
    connection.sd(flags=0b1110)
    connection.sd(poll=True, flags=0b0100, reserved=(0xFF,))
    connection.wait(PAUSE_S)
    connection.poll(flags=0b1111, reserved=(0xA5,))
    connection.wait(PAUSE_S)
    connection.ask()


@case("STP-PF-004")
def test_idle_begin_with_reserved_flags(peer: Peer) -> None:
    """A BEGIN with reserved flags is answered like any other."""
    connection = peer.prepare("discard")
    connection.begin(flags=0b1110)
    peer.wait(2 * peer.rtt + PAUSE_S)
    connection.confirm()
    connection.sd()
    connection.deliver()
    connection.abort()


@connected("STP-PF-007")
def test_ready_wrong_checksums_arrive(connection: Connection) -> None:
    """SDs and POLLs with a wrong checksum leave no trace."""
    connection.sd(poll=True)
    connection.expect(STAT)
    for packet in (
        connection.compose(SD, data=b"never to be taken in"),
        connection.compose(POLL, n_ps=connection.vt_ps + 1),
    ):
        octets = bytearray(octets_of(packet))
        octets[8] ^= 0x40
        connection.peer.send(build_datagram(packet, bytes(octets)))
        connection.wait(PAUSE_S)
    connection.ask()
    connection.sd()
    connection.deliver()


@connected("STP-PF-009", "STP-PF-010", to="chargen", max_sd=None)
def test_idle_begin_without_max_sd(connection: Connection) -> None:
    """Without MaxSD from the tester no SD carries more than 512 octets."""
    connection.receive(10)


@summoned("STP-PF-009", "STP-PF-010", role="send")
def test_calling_early_data(connection: Connection) -> None:
    """A BEGIN announces MaxSD; until the BGAK no packet carries more than 512 octets."""
    connection.wait(PAUSE_S)
    connection.confirm()
    connection.receive(10)
