"""STP-DT: the implementation as a receiver (sections 6.2 and 6.3)."""

from __future__ import annotations

from contextlib import suppress

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, connected
from bentpipe_conformance.protocols.stp.codec import FIN, SD, SDP, STAT, USTAT
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, MODULUS
from bentpipe_conformance.protocols.stp.peer import Peer

MOST_RUNS = 33
"""Runs of missing SDs whose list has 67 elements, as many as a STAT holds at most (section 8)."""

MOST_NUMBERED = 10
"""Above the numbers of the SDs around the end of a short stream."""

MOST_AHEAD = 60_000
"""SDs of credit that a script can still leave out."""

POLL_OCTETS = 12
"""By which an SDP is longer than an SD with the same data (section 3.5)."""

MISSING_S = 1.5
"""Seconds after which a USTAT is missing for sure."""


@connected("STP-DT-001", "STP-DT-006", "STP-DT-018", "STP-DT-022")
def test_ready_sds_arrive_with_gaps(connection: Connection) -> None:
    """Each gap is reported once when it shows, and all of them by every STAT."""
    connection.sds(12, skip=[2, 5, 6, 9])
    connection.wait(MISSING_S)
    connection.ask()
    connection.sd(number=5)
    connection.ask()
    connection.sds(4, skip=[13])
    connection.wait(MISSING_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-001", "STP-DT-002")
def test_ready_poll_tells_of_a_lost_sd(connection: Connection) -> None:
    """What a STAT has reported because of a POLL is not reported again by a USTAT."""
    connection.sds(5, skip=[1, 4])
    connection.wait(PAUSE_S)
    connection.ask()
    connection.sd()
    connection.wait(MISSING_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-001", "STP-DT-018")
def test_ready_gap_grows_that_a_poll_has_told_of(connection: Connection) -> None:
    """A POLL tells of two lost SDs above an earlier gap, and an SD of more behind them."""
    for _ in range(2):
        first = connection.vt_s
        connection.sds(6, skip=[first + 1, first + 4, first + 5])
        connection.wait(PAUSE_S)
        connection.ask()
        connection.sds(3, skip=[first + 6, first + 7])
        connection.wait(MISSING_S)
        connection.ask()
    connection.deliver()


@connected("STP-DT-017", "STP-DT-018")
def test_ready_polls_of_all_kinds(connection: Connection) -> None:
    """POLLs old and new, repeated, of SDPs, and far ahead: each has its STAT at once."""
    connection.sds(6, skip=[3])
    connection.wait(PAUSE_S)
    connection.ask()
    for n_s in (0, 2, connection.vt_s, connection.vt_ms + 100):
        connection.poll(seq=connection.ours(n_s))
        connection.wait(PAUSE_S)
    for n_ps in (1, connection.vt_ps + 50, MODULUS - 1):
        connection.poll(n_ps=n_ps)
        connection.wait(PAUSE_S)
    connection.sd(poll=True)
    connection.expect(STAT, lambda stat: stat.packet.n_ps == connection.vt_ps)
    for number in (2, 6):
        connection.sd(number=number, poll=True)
        connection.wait(PAUSE_S)
    connection.deliver()


@connected("STP-DT-006", "STP-DT-018")
def test_ready_lists_about_as_long_as_a_stat(connection: Connection) -> None:
    """Lists of MaxSTAT elements and of one or two more, and runs missing at their end."""
    gaps = range(0, 2 * MOST_RUNS, 2)
    connection.sds(2 * MOST_RUNS, octets=8, skip=gaps)
    connection.wait(PAUSE_S)
    connection.ask()
    for more in (1, 2):
        first = connection.vt_s
        connection.sds(more, octets=8, skip=range(first, first + more))
        connection.ask()
        connection.sd(8)
        connection.wait(PAUSE_S)
        connection.ask()
    connection.deliver()


@connected("STP-DT-028")
def test_ready_sds_that_are_too_large(connection: Connection) -> None:
    """An SD of exactly MaxSD octets is taken, one with an octet more is not."""
    most = max(connection.peer_max_sd or 0, LEAST_MAX_SD)
    connection.sds(2)
    connection.sd(most)
    connection.ask()
    for ahead in (0, 2):
        number = connection.ours(connection.vt_s + ahead)
        connection.send(SD, seq=number, data=bytes(most + 1))
        connection.wait(PAUSE_S)
        connection.ask()
    connection.send(
        SDP, seq=connection.ours(connection.vt_s), data=bytes(most + 1), n_ps=connection.vt_ps + 1
    )
    connection.vt_ps += 1
    connection.wait(PAUSE_S)
    connection.sds(2)
    connection.deliver()


@case("STP-DT-028")
def test_idle_begin_that_is_too_large(peer: Peer) -> None:
    """A BEGIN with an octet more than MaxSD, and a good cookie, opens nothing.

    Where MaxSD is the most that the path carries, only an SD can exceed it.
    """
    known = peer.connect("discard")
    most = max(known.peer_max_sd or 0, LEAST_MAX_SD)
    known.send(SD, seq=known.ours(0), data=bytes(most + 1))
    known.wait(PAUSE_S)
    known.ask()
    known.abort()
    peer.wait(peer.rtt + PAUSE_S)
    cookie = peer.cookie("discard")
    with suppress(OSError):
        connection = peer.call("discard", data=bytes(most + 1), cookie=cookie)
        connection.discard(peer.rtt + 1.0)
        connection.abort()


@connected("STP-DT-018", to="echo")
def test_ready_fin_below_what_a_poll_has_named(connection: Connection) -> None:
    """A POLL with a higher N(S) says that SDs are missing; none of them has arrived."""
    connection.sds(2, octets=50)
    connection.ask(seq=connection.ours(connection.vt_s + 3))
    connection.sd(b"the end", fin=True)
    connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()


@connected("STP-DT-028", to="echo")
def test_ready_fins_where_none_can_be(connection: Connection) -> None:
    """A FIN below what is held or delivered, and SDs above a FIN, leave no trace."""
    if connection.vt_ms < MOST_NUMBERED:
        raise NotReached(f"a credit of {connection.vt_ms} SDs does not hold this case")
    connection.sds(5, octets=50, skip=[1, 3])
    connection.ask()
    for number in (1, 3):
        connection.send(SD, seq=connection.ours(number), data=b"too early an end", flags=FIN)
        connection.wait(PAUSE_S)
        connection.ask()
    connection.sd(b"the end", fin=True)
    for ahead in (0, 3):
        connection.send(SD, seq=connection.ours(connection.vt_s + ahead), data=b"after the end")
        connection.wait(PAUSE_S)
        connection.ask()
    connection.send(SD, seq=connection.ours(connection.vt_s + 1), data=b"another end", flags=FIN)
    connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()
    connection.send(SD, seq=connection.ours(connection.vt_s), data=b"right after the end")
    connection.wait(PAUSE_S)
    connection.ask()
    connection.release()


@connected("STP-DT-019")
def test_ready_duplicates_arrive(connection: Connection) -> None:
    """SDs that were delivered, and SDs that are held, arrive again."""
    connection.sds(7, skip=[2, 5])
    connection.wait(PAUSE_S)
    connection.ask()
    for number in (0, 1, 3, 6):
        connection.sd(number=number)
        connection.wait(PAUSE_S)
        connection.ask()
    connection.sd(number=4, poll=True)
    connection.wait(PAUSE_S)
    connection.sds(1)
    connection.deliver()


@connected("STP-DT-012", to="echo")
def test_ready_echo_of_a_disturbed_stream(connection: Connection) -> None:
    """Lost, doubled and late SDs come back in order, once, and the end of the stream after them."""
    connection.sds(14, octets=300, skip=[1, 4, 5, 10])
    for number in (5, 0, 3, 4, 1, 13, 1, 10):
        connection.sd(number=number)
    connection.discard(2 * connection.rtt)
    connection.deliver()
    connection.release()


@connected("STP-DT-022", "STP-DT-018")
def test_ready_gap_stays_open_for_long(connection: Connection) -> None:
    """However often the receiver is asked, it still has what it said it had."""
    connection.sds(20, octets=500, skip=[3, 8, 9])
    connection.wait(PAUSE_S)
    for number in (9, 9, 8):
        connection.ask()
        connection.wait(PAUSE_S)
        connection.sd(number=number)
        connection.ask()
    connection.deliver()


@connected("STP-DT-020", "STP-DT-012", to="echo")
def test_ready_sdps_of_max_sd(connection: Connection) -> None:
    """The data of an SDP is bounded by MaxSD as that of an SD is: its POLL does not count."""
    most = max(connection.peer_max_sd or 0, LEAST_MAX_SD)
    for octets in (most - POLL_OCTETS, most - POLL_OCTETS + 1, most - 1, most):
        connection.sd(octets, poll=True)
        connection.wait(PAUSE_S)
        connection.ask()
    connection.deliver()
    connection.release()


@connected("STP-DT-020", "STP-DT-021")
def test_ready_credit_of_a_ustat_is_used_up(connection: Connection) -> None:
    """A USTAT gives more credit than the last STAT: the last SD of it is taken."""
    connection.sds(2, octets=8)
    connection.ask()
    room = connection.vt_ms
    if not MOST_NUMBERED <= room - connection.vt_s <= MOST_AHEAD:
        raise NotReached(f"a credit of {room} SDs is too small, or too large, for this case")
    connection.sds(4, octets=8, skip=[connection.vt_s + 2])
    connection.expect(USTAT, what="a USTAT")
    if connection.vt_ms <= room:
        raise NotReached("the USTAT gave no credit beyond that of the STAT")
    for number in (connection.vt_ms - 1, room):
        connection.send(SD, seq=connection.ours(number), data=b"on the credit of the USTAT")
        connection.wait(PAUSE_S)
        connection.ask()
