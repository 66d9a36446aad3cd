"""A gateway that grants credit, forges it, loses it, repeats it, and falls silent (section 9.4)."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.rwbp.cases.steps import PAUSE_S, make_room
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.credit import EPOCHS, MODULUS, build_frame
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE, Gateway
from bentpipe_conformance.protocols.rwbp.peer import Peer

NEEDS = ("gateway",)

FEW = 8
"""Segments of a window: fewer than any send buffer holds."""

LEAST = 4
"""Segments of a window that every send buffer holds."""

SHORT = 500
"""Octets of segments of which a window has more than an IP queue."""

STALE_S = 1.5
"""Longer than a frame counts."""


def opened(
    peer: Peer, connections: int = 1, *, window: int = FEW, **offer: Any
) -> tuple[Gateway, list[Connection]]:
    """Connections behind the gateway, their windows of so many segments full; credit to spare."""
    gateway = peer.behind_the_link()
    gateway.grant(AMPLE)
    made = [peer.connect(window=window * SEGMENT, **offer) for _ in range(connections)]
    for connection in made:
        connection.await_round()
    return gateway, made


def starve(peer: Peer, gateway: Gateway, connections: list[Connection]) -> None:
    """Take the credit away, and then make room: each connection waits with a window to send."""
    gateway.restart(0, pause=PAUSE_S)
    for connection in connections:
        make_room(connection)
    peer.wait(peer.rtt + PAUSE_S)


def waiting(peer: Peer, connections: int = 1) -> tuple[Gateway, list[Connection]]:
    """Connections that have a window each to send, and no credit."""
    gateway, made = opened(peer, connections)
    starve(peer, gateway, made)
    return gateway, made


@case("RWBP-LC-002", needs=NEEDS)
def test_no_frame_yet(peer: Peer) -> None:
    """A SYN comes before the first frame, or long after the last: its answer waits for one."""
    gateway = peer.behind_the_link()
    if not gateway.silent:
        gateway.restart(0)
    peer.wait(STALE_S)
    connection = peer.begin()
    peer.wait(peer.rtt + PAUSE_S)
    gateway.grant(AMPLE)
    connection.establish()
    connection.receive(12)


@case("RWBP-LC-002", "RWBP-FC-006", "RWBP-LC-008", "RWBP-LC-003", needs=NEEDS)
def test_a_few_packets_at_a_time(peer: Peer) -> None:
    """Two windows wait; credit comes for one packet, for none, for three, for all."""
    gateway, connections = waiting(peer, 2)
    for packets in (1, 0, 3, 1, 12):
        gateway.grant(packets, pause=PAUSE_S)
    for connection in connections:
        make_room(connection)
    peer.wait(peer.rtt + PAUSE_S)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


FLAWS: tuple[dict[str, Any], ...] = (
    {"first": 0x21}, {"first": 0x01}, {"first": 0x12}, {"first": 0x10}, {"queue": 1},
    {"queue": 255}, {"octets": 11}, {"octets": 13}, {"octets": 64}, {"octets": 0},
    {"checksum": 0}, {"checksum": 0x1234}, {"dport": 1020}, {"gateway": "10.78.255.253"},
    {"first": 0x21, "sport": 7, "checksum": 0},
)  # fmt: skip
"""What makes a frame invalid, as arguments of :func:`.build_frame`."""


@case("RWBP-LC-001", needs=NEEDS)
def test_frames_that_are_not_valid(peer: Peer) -> None:
    """A window waits; one field or another of a frame that would permit it is wrong."""
    gateway, _ = waiting(peer)
    for flaw in FLAWS:
        gateway.tell(limit=gateway.limit + AMPLE, **flaw, pause=PAUSE_S)
    for behind in (1, MODULUS // 2):
        gateway.tell(arrived=gateway.limit + 100 + behind, limit=gateway.limit + 100, pause=PAUSE_S)
    peer.send(_from_the_tester(peer, gateway))
    peer.wait(PAUSE_S)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


def _from_the_tester(peer: Peer, gateway: Gateway) -> bytes:
    """A frame of somebody else's."""
    return build_frame(
        peer.iut_address, gateway.epoch, gateway.arrived, gateway.limit + AMPLE,
        gateway=peer.address,
    )  # fmt: skip


@case("RWBP-LC-001", needs=NEEDS)
def test_frames_from_any_port(peer: Peer) -> None:
    """A window waits; the frame that permits it comes from another port than before."""
    gateway, _ = waiting(peer)
    gateway.stop()
    for port in (53, 1020, 65535):
        gateway.limit += 2
        gateway.tell(sport=port, pause=PAUSE_S)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


@case("RWBP-LC-003", needs=NEEDS)
def test_late_frames_with_lower_limits(peer: Peer) -> None:
    """Frames arrive in another order, and twice, while nothing waits: the highest limit counts."""
    gateway, connections = opened(peer)
    for limits in ((6, 3), (12, 9, 12, 9), (20, 0)):
        gateway.restart(1)
        base = gateway.limit
        for limit in limits:
            gateway.limit = base + limit
            gateway.tell()
        gateway.stop(pause=PAUSE_S)
        make_room(connections[0], PAUSE_S)
        gateway.limit = base
        gateway.grant(AMPLE, pause=peer.rtt + 1.0)


@case("RWBP-LC-004", needs=NEEDS)
def test_newer_and_older_epochs(peer: Peer) -> None:
    """Epochs begin with more credit and with less; frames of older ones promise much."""
    gateway, connections = waiting(peer)
    for packets in (3, 2):
        gateway.restart(packets, pause=1.0)
        for older in (1, 2, EPOCHS // 2 - 1, EPOCHS // 2):
            gateway.tell(epoch=(gateway.epoch - older) % EPOCHS, limit=AMPLE, pause=PAUSE_S)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)
    gateway.restart(2, arrived=MODULUS - 1, pause=PAUSE_S)
    make_room(connections[0], PAUSE_S)
    # Three steps that lead round the circle, and one beyond.
    for epochs in (EPOCHS // 2 - 1, EPOCHS // 2 - 1, 3):
        gateway.restart(1, epochs=epochs, pause=1.0)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


@case("RWBP-LC-002", "RWBP-FC-006", "RWBP-LC-008", needs=NEEDS)
def test_counts_that_wrap(peer: Peer) -> None:
    """The counts pass 2^31 and 2^32 while a window waits."""
    gateway, connections = waiting(peer)
    for first in (MODULUS // 2 - 3, MODULUS - 3):
        gateway.restart(0, arrived=first, pause=PAUSE_S)
        for _ in range(3):
            gateway.grant(2, pause=PAUSE_S)
        gateway.grant(AMPLE, pause=peer.rtt + 1.0)
        gateway.restart(0, arrived=first, pause=1.0)
        make_room(connections[0], PAUSE_S)


@case("RWBP-LC-005", "RWBP-LC-008", needs=NEEDS)
def test_frames_stop(peer: Peer) -> None:
    """The gateway falls silent with credit left: its last frame counts for a second."""
    gateway, connections = opened(peer)
    connection = connections[0]
    gateway.tell()
    gateway.stop()
    # What arrives now finds credit, and what arrives in a second does not.
    peer.wait(0.6)
    make_room(connection, STALE_S)
    make_room(connection, 3.0)
    gateway.tell(pause=0.6)
    make_room(connection, STALE_S)
    gateway.grant(0, pause=peer.rtt + PAUSE_S)


@case("RWBP-LC-005", "RWBP-LC-004", needs=NEEDS)
def test_frames_of_an_older_epoch_only(peer: Peer) -> None:
    """With credit left all frames but those of an older epoch stop: they keep nothing fresh."""
    gateway, connections = opened(peer)
    gateway.stop()
    for pauses in range(2 * int(STALE_S / PAUSE_S)):
        if pauses * PAUSE_S == STALE_S:
            make_room(connections[0])
        gateway.tell(epoch=(gateway.epoch - 1) % EPOCHS, pause=PAUSE_S)
    peer.wait(peer.rtt)
    gateway.grant(0, pause=peer.rtt + PAUSE_S)


@case("RWBP-LC-005", "RWBP-LC-008", needs=NEEDS)
def test_gateway_is_away_for_long(peer: Peer) -> None:
    """The gateway is silent for two minutes while peers send and call; then everything goes on."""
    gateway, connections = opened(peer, 3)
    gateway.stop(pause=STALE_S)
    for connection in connections:
        make_room(connection)
    for _ in range(12):
        for connection in connections:
            connection.send_data(100)
            connection.ack()
        peer.wait(10.0)
    late = peer.begin()
    peer.wait(peer.rtt + PAUSE_S)
    gateway.grant(0)
    late.establish()
    late.receive(FEW)
    for connection in connections:
        connection.receive_more(FEW)


@case("RWBP-TM-005", needs=NEEDS)
def test_timeouts_without_credit(peer: Peer) -> None:
    """More than the IP queue holds waits for credit, for so long that the timer expires often."""
    gateway, connections = opened(peer, window=2 * FEW)
    starve(peer, gateway, connections)
    peer.wait(40.0)
    gateway.grant(AMPLE, pause=20.0)
    make_room(connections[0], PAUSE_S)


@case("RWBP-TM-005", needs=NEEDS)
def test_repairs_without_credit(peer: Peer) -> None:
    """More is lost than the IP queue holds, and the timer expires while the highest repairs wait.

    All but the last segment of a window are lost; they are short, for any send buffer holds them.
    The queue moves on by three packets, and the timer expires once more.
    """
    gateway, connections = opened(peer, mss=SHORT)
    connection = connections[0]
    gateway.restart(0, pause=PAUSE_S)
    connection.hold(connection.inbox.pop())
    connection.ack(pause=12.0)
    gateway.grant(3, pause=12.0)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)
    make_room(connection, PAUSE_S)


@case("RWBP-LC-006", needs=NEEDS)
def test_packets_lost_before_the_gateway(peer: Peer) -> None:
    """Of a window that has been passed three packets arrive: after a second the rest is free."""
    gateway, connections = opened(peer, window=LEAST)
    gateway.restart(LEAST + 2, pause=PAUSE_S)
    make_room(connections[0], PAUSE_S)
    make_room(connections[0])
    peer.wait(0.5 * peer.rtt + 0.05)
    gateway.arrived = 3
    for _ in range(4):
        gateway.tell(pause=0.1)
    peer.wait(1.3)
    gateway.grant(0, pause=peer.rtt + 1.0)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


def permit(connection: Connection, octets: int) -> None:
    """Acknowledge what has arrived, and offer so much."""
    connection.window = octets
    make_room(connection)


@case("RWBP-LC-007", needs=NEEDS)
def test_acknowledgments_use_credit(peer: Peer) -> None:
    """Data of one unit and acknowledgments take all of the credit; then a window finds none."""
    gateway, connections = opened(peer, window=LEAST, interval=1)
    connection = connections[0]
    for packets in (5, 3):
        gateway.restart(-(-SEGMENT // connection.segment) + packets - 1, pause=PAUSE_S)
        permit(connection, SEGMENT)
        for _ in range(packets - 1):
            connection.send_data(100)
        peer.wait(0.05)
        permit(connection, LEAST * SEGMENT)
        peer.wait(peer.rtt + 1.0)
        gateway.grant(AMPLE, pause=peer.rtt + 1.0)


@case("RWBP-LC-007", needs=NEEDS)
def test_plain_tcp_uses_credit(peer: Peer) -> None:
    """The same with the acknowledgments, and with the data, of a plain TCP connection."""
    gateway, connections = opened(peer, window=LEAST)
    discard = peer.connect("discard", rwbp=False, window=FEW * SEGMENT)
    chargen = peer.connect(rwbp=False, window=3 * SEGMENT)
    peer.wait(peer.rtt + PAUSE_S)
    for plain in (discard, chargen):
        gateway.restart(-(-SEGMENT // connections[0].segment) + 3, pause=PAUSE_S)
        permit(connections[0], SEGMENT)
        if plain is chargen:
            make_room(chargen)
        else:
            for _ in range(6):
                discard.send_data(100)
        peer.wait(0.05)
        permit(connections[0], LEAST * SEGMENT)
        peer.wait(peer.rtt + 1.0)
        gateway.grant(AMPLE, pause=peer.rtt + 1.0)


@case("RWBP-LC-008", needs=NEEDS)
def test_data_and_acknowledgments_wait_together(peer: Peer) -> None:
    """Data and acknowledgments of two connections wait in one queue, and leave one by one."""
    gateway, connections = opened(peer, 2, interval=1)
    gateway.restart(0, pause=PAUSE_S)
    for _ in range(4):
        for connection in connections:
            connection.send_data(100)
            make_room(connection)
        peer.wait(0.1)
    peer.wait(peer.rtt)
    for _ in range(12):
        gateway.grant(1, pause=0.1)
    gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


@case("RWBP-SC-005", needs=NEEDS)
def test_peers_go_on_while_the_gateway_is_silent(peer: Peer) -> None:
    """Two hundred old segments, and many to closed ports, call for answers that cannot leave."""
    gateway, connections = opened(peer)
    connection = connections[0]
    connection.send_data(100)
    peer.wait(peer.rtt + PAUSE_S)
    gateway.stop(pause=STALE_S)
    make_room(connection)
    for count in range(200):
        connection.send_data(100, at=0)
        if count % 10 == 0:
            peer.begin(UNUSED_PORT)
        peer.wait(0.01)
    peer.wait(peer.rtt + PAUSE_S)
    gateway.grant(0, pause=peer.rtt + 1.0)


@case("RWBP-LC-007", "RWBP-LC-002", needs=NEEDS)
def test_resets_use_credit(peer: Peer) -> None:
    """Calls of a closed port are refused, which takes the credit that a window then lacks."""
    gateway, connections = opened(peer, window=LEAST)
    for packets in (2, 3):
        gateway.restart(packets, pause=PAUSE_S)
        for _ in range(packets):
            peer.begin(UNUSED_PORT)
        peer.wait(0.05)
        make_room(connections[0])
        peer.wait(peer.rtt + 1.0)
        gateway.grant(AMPLE, pause=peer.rtt + 1.0)


@case("RWBP-SC-005", needs=NEEDS)
def test_acknowledgments_of_one_service_wait(peer: Peer) -> None:
    """Two connections to one service fill the queue with acknowledgments; each gets its last."""
    gateway, _ = opened(peer, 0)
    connections = [peer.connect("discard", interval=1) for _ in range(2)]
    gateway.restart(0, pause=PAUSE_S)
    for connection in connections:
        for _ in range(100):
            connection.send_data(10)
            peer.wait(0.005)
    peer.wait(peer.rtt + PAUSE_S)
    gateway.grant(AMPLE, pause=peer.rtt + 1.0)


@case("RWBP-SC-005", needs=NEEDS)
def test_acknowledgments_of_one_connection_alone_wait(peer: Peer) -> None:
    """They fill the queue once and again; how many are left tells how many each has replaced."""
    gateway, _ = opened(peer, 0)
    connection = peer.connect("discard", interval=1)
    for segments in (1, 11, 25, 47):
        gateway.restart(0, pause=PAUSE_S)
        for _ in range(segments):
            connection.send_data(10)
            peer.wait(0.005)
        peer.wait(peer.rtt + PAUSE_S)
        gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)


@case("RWBP-LC-008", needs=NEEDS)
def test_credit_after_acknowledgments_were_replaced(peer: Peer) -> None:
    """Of the acknowledgments that meet a full queue one leaves, and the others use no credit.

    All of this is within a second, after which the credit of what was lost comes back.
    """
    gateway, connections = opened(peer, window=2 * FEW)
    discard = peer.connect("discard", interval=1)
    for _ in range(2):
        starve(peer, gateway, connections)
        gateway.grant(2)
        for _ in range(30):
            discard.send_data(10)
        peer.wait(PAUSE_S)
        gateway.grant(4, pause=peer.rtt + 1.0)
        gateway.grant(AMPLE, pause=peer.rtt + PAUSE_S)
