"""SACK information a sender has to survive: impossible, malformed, duplicate, not negotiated."""

from __future__ import annotations

from bentpipe_conformance.engine.scripts import connected
from bentpipe_conformance.protocols.tcp.cases.steps import SACK, take_round
from bentpipe_conformance.protocols.tcp.connection import SEGMENT, Connection


@connected("SNR-SAK-012", needs=SACK)
def test_acknowledgment_impossible_blocks(connection: Connection) -> None:
    """Empty, inverted and unsent blocks change nothing.

    Each comes alone, between ordinary acknowledgments, so that duplicates do not add up.
    """
    connection.grow(8)
    for block in ("empty", "inverted", "unsent", "far", "everything", "expected"):
        segment, una = connection.segment, connection.delivered
        left, right = {
            "empty": (una + 2 * segment, una + 2 * segment),
            "inverted": (una + 4 * segment, una + segment),
            "unsent": (una + 400 * segment, una + 404 * segment),
            "far": (una + (1 << 30), una + (1 << 30) + segment),
            "everything": (una + (1 << 31) - 1, una + 1),
            "expected": (una, una + segment),
        }[block]
        connection.send_odd(sack=[(left, right)])
        connection.receive_more(4)


@connected("SNR-SAK-013")
def test_acknowledgment_malformed_option(connection: Connection) -> None:
    """A SACK option of impossible length changes nothing.

    It is too short or too long for whole blocks, empty, or points outside the header.
    """
    connection.grow(8)
    for length in (0, 1, 2, 6, 9, 11, 17, 255):
        blocks = bytes(range(1, 17))[: max(0, length - 2)]
        connection.send_odd(sack=(), raw=bytes((5, length)) + blocks)
        connection.receive_more(4)


@connected("SNR-SAK-014", needs=SACK)
def test_acknowledgment_duplicate_report(connection: Connection) -> None:
    """A D-SACK block tells of a duplicate, not of a loss, however often.

    It lies below the acknowledgment number, touches it, or lies in what the next block reports.
    """
    connection.grow(8)
    for more in (0, 0, 0, 2):
        segment, una = connection.segment, connection.delivered
        connection.send_odd(sack=[(una - 2 * segment, una - segment)])
        for _ in range(1 + more):
            connection.send_odd(sack=[(una - segment, una)])
        connection.receive_more(6)
    connection.grow(8)
    lost, second, third, *_ = (item for item in connection.collect(0) if item.has_data)
    held = (second.start, third.end)
    connection.ack(lost.start, sack=[held])
    for block in ((second.start, second.end), (third.start, third.end), held):
        connection.send_odd(ack=lost.start, sack=[block, held])
    connection.reception.delivered = connection.highest
    connection.ack()
    connection.receive_more(6)


@connected("SNR-SAK-016", sack=False, window=8 * SEGMENT, syn_window=8 * SEGMENT)
def test_sack_not_negotiated_two_reports(connection: Connection) -> None:
    """SACK blocks on a connection without SACK are ignored.

    One segment is lost and two duplicates carry a block for five segments above it.
    """
    connection.receive(24)
    segment, hole = connection.segment, connection.delivered
    blocks = [(hole + segment, hole + 6 * segment)]
    for _ in range(3):
        item = connection.expect()
        if item.start != hole:
            connection.hold(item)
            connection.send_odd(sack=blocks)
    take_round(connection, 1.1)
    connection.receive(38)
