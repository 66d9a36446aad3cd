"""Closing: FINs lost, early, late and repeated, and data on either side of them."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.rwbp.cases.exchange import (
    UNIT,
    await_fin,
    close,
    fins,
    receive_some,
)
from bentpipe_conformance.protocols.rwbp.cases.steps import PATIENCE_S, PAUSE_S, SENDS
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT, Connection
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN


@case("RWBP-CX-003", "RWBP-WF-010")
def test_own_fin_lost(peer: Peer) -> None:
    """The FIN of each service is lost twice, alone or with the data that carries it."""
    for service in ("discard", "echo", "chargen"):
        connection = peer.connect(service)
        if service == "echo":
            connection.send_data(UNIT)
            connection.send(pattern(UNIT, UNIT), flags=ACK | FIN)
        else:
            connection.send(flags=ACK | FIN)
        await_fin(connection, lambda each, before: fins(each) and before < 3, within=PATIENCE_S)


@connected("RWBP-CX-003", "RWBP-EC-002", to="echo")
def test_data_before_the_own_fin_lost(connection: Connection) -> None:
    """What is lost lies before the FIN, which arrives and reveals it."""
    for _ in range(4):
        connection.send_data(UNIT, pause=0.02)
    connection.send(flags=ACK | FIN)
    total = 4 * UNIT
    connection.serve(
        lambda: connection.delivered > total,
        losing=lambda s, before: s.start == UNIT and not before,
    )
    connection.ack(pause=connection.rtt)


@connected("RWBP-CX-003", "RWBP-EC-010", "RWBP-EC-007", to="echo")
def test_everything_but_the_fin_reported(connection: Connection) -> None:
    """Blocks report the data of the last segment, and never its FIN."""
    connection.send_data(UNIT)
    connection.send(pattern(UNIT, UNIT), flags=ACK | FIN)
    connection.expect(fins)
    connection.ack(ack=UNIT, sack=((UNIT, 2 * UNIT),))
    for _ in range(2):
        connection.expect(fins, within=PATIENCE_S, what="the FIN again")
    connection.reception.take(0, 2 * UNIT + 1)
    connection.ack(pause=connection.rtt)


@connected("RWBP-CX-003", "RWBP-EC-002", to="echo")
def test_hole_below_data_with_fin(connection: Connection) -> None:
    """A block reports the data that carries the FIN, which arrives with it, and reveals a loss."""
    connection.send_data(UNIT)
    connection.send(pattern(UNIT, UNIT), flags=ACK | FIN)
    connection.expect(fins)
    connection.ack(0, sack=((UNIT, 2 * UNIT),))
    connection.expect(lambda segment: segment.start == 0, within=PATIENCE_S, what="offset 0 again")
    connection.collect(PAUSE_S)
    connection.reception.take(0, 2 * UNIT + 1)
    connection.ack(pause=connection.rtt)


@connected("RWBP-CX-003", "RWBP-AK-003", "RWBP-EC-008", to="discard")
def test_fin_above_holes(connection: Connection) -> None:
    """A FIN comes above two holes, which are filled from above."""
    for index in (0, 2, 4):
        flags = ACK | FIN if index == 4 else ACK
        connection.send_data(UNIT, at=index * UNIT, flags=flags, pause=PAUSE_S)
    for index in (3, 1):
        connection.send_data(UNIT, at=index * UNIT, pause=PAUSE_S)
    connection.next_offset = 5 * UNIT + 1
    connection.serve(lambda: connection.delivered > 0)
    connection.ack(pause=connection.rtt)


@connected("RWBP-CX-003", "RWBP-AK-003", to="chargen")
def test_fin_comes_again(connection: Connection) -> None:
    """The FIN comes three times, with data between and behind them that is not taken."""
    connection.receive(12)
    connection.send(flags=ACK | FIN)
    fin = connection.next_offset - 1
    for _ in range(2):
        connection.wait(0.2)
        connection.send(flags=ACK | FIN, at=fin, sack=())
    connection.send(pattern(fin, UNIT), at=fin + 1, sack=(), pause=0.1)
    connection.send(pattern(fin, UNIT), at=fin, flags=ACK | FIN, sack=())
    await_fin(connection)


@connected("RWBP-WF-002", "RWBP-WF-010", "RWBP-AK-003", to="discard")
def test_fin_below_held_data(connection: Connection) -> None:
    """A FIN stands below octets that are held, and is not taken; the stream goes on."""
    connection.send_data(UNIT)
    connection.send_data(UNIT, at=3 * UNIT, pause=PAUSE_S)
    connection.send(pattern(UNIT, UNIT), at=UNIT, flags=ACK | FIN, pause=PAUSE_S)
    connection.send_data(UNIT, at=2 * UNIT, pause=PAUSE_S)
    connection.next_offset = 4 * UNIT
    close(connection)


@connected("RWBP-CX-004", to="echo", window=0, syn_window=0)
def test_window_closed_at_the_peers_fin(connection: Connection) -> None:
    """Everything that is echoed waits when the FIN comes; then the window opens, with losses."""
    for _ in range(12):
        connection.send_data(UNIT, pause=0.02)
    connection.send(flags=ACK | FIN, pause=connection.rtt + PAUSE_S)
    connection.ack(window=16 * SEGMENT)
    await_fin(connection, lambda segment, before: not before and segment.start == 0)


@case("RWBP-CX-004", needs=("active_open",))
def test_data_after_the_own_fin(peer: Peer) -> None:
    """The implementation closes first; data comes for a while, with holes, then FIN."""
    for acknowledged in (True, False):
        connection = peer.summon(SENDS, octets=20_000)
        connection.answer()
        if acknowledged:
            await_fin(connection)
        else:
            connection.wait(2 * connection.rtt)
        base = connection.next_offset
        for index in (0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 10, 10, 11, 12):
            connection.send_data(UNIT, at=base + index * UNIT, pause=0.02)
        connection.next_offset = base + 13 * UNIT
        connection.wait(PAUSE_S)
        connection.send(flags=ACK | FIN, pause=connection.rtt + PAUSE_S)
        connection.send(flags=ACK | FIN, at=connection.next_offset - 1, pause=connection.rtt)


@case("RWBP-CX-003", "RWBP-CX-004", needs=("active_open",))
def test_fins_cross(peer: Peer) -> None:
    """Both ends send FIN before either has arrived."""
    connection = peer.summon(SENDS, octets=8_000)
    connection.answer()
    connection.wait(connection.rtt)
    connection.send_data(UNIT)
    connection.send(flags=ACK | FIN)
    await_fin(connection)


@connected("RWBP-WF-010", "RWBP-CX-003", to="chargen")
def test_closed_under_way(connection: Connection) -> None:
    """The tester closes while a window is outstanding, of which two segments are lost."""
    receive_some(connection)
    for _ in range(2):
        connection.expect(within=PATIENCE_S, what="a segment to be lost")
    connection.send(flags=ACK | FIN)
    await_fin(connection)


@connected("RWBP-CX-004", "RWBP-WN-008", to="echo", window=0, syn_window=0)
def test_window_closed_for_long_behind_the_peers_fin(connection: Connection) -> None:
    """What is echoed waits behind the FIN for many probes, every one of which is answered."""
    connection.send_data(UNIT)
    connection.send(flags=ACK | FIN, pause=connection.rtt)
    connection.collect(0)
    for _ in range(4):
        connection.next(PATIENCE_S)
        connection.collect(0)
        connection.ack(window=0)
    connection.ack(window=16 * SEGMENT)
    await_fin(connection)


@case("RWBP-WN-008", "RWBP-WN-009")
def test_window_closed_to_a_fin_alone(peer: Peer) -> None:
    """All that an echo returns fills the window, and a discard returns nothing: the FIN waits.

    The tester's FIN comes when that has been acknowledged, or with the last of the data.
    """
    for service, octets, last in (("echo", 2 * UNIT, 0), ("echo", UNIT, UNIT), ("discard", 0, 0)):
        window = octets + last
        connection = peer.connect(service, window=window, mss=UNIT, syn_window=window)
        for _ in range(0, octets, UNIT):
            connection.send_data(UNIT)
        if last:
            connection.send(pattern(octets, last), flags=ACK | FIN)
        for segment in connection.take_round() if window else ():
            connection.hold(segment)
        connection.window = 0
        connection.send(flags=ACK if last else ACK | FIN)
        for _ in range(3):
            connection.next(PATIENCE_S)
            connection.collect(connection.rtt + PAUSE_S)
            connection.ack(window=0)
        connection.ack(window=UNIT)
        await_fin(connection)


@connected("RWBP-EC-011", "RWBP-CX-003", to="echo")
def test_last_data_lost_before_the_user_closes(connection: Connection) -> None:
    """The echo is lost, and then its FIN: what leaves again is what it was, without FIN."""
    connection.send_data(UNIT)
    connection.expect()
    connection.send(flags=ACK | FIN)
    await_fin(connection, lambda _, before: before < 3, within=PATIENCE_S)
