"""STP-CC: half-close, release, and ENDs out of the blue (sections 5.3 to 5.5)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.stp.arrival import Arrival
from bentpipe_conformance.protocols.stp.cases.steps import (
    NEAR_S,
    PAUSE_S,
    connected,
    fill,
    half_released,
    send_each,
)
from bentpipe_conformance.protocols.stp.codec import ENDAK, FIN, SD, A, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, MODULUS
from bentpipe_conformance.protocols.stp.peer import Peer

OCTETS = 2000
"""In the stream of a caller."""

POLLED_S = 12.0
"""Seconds in which the release wait has passed on every path."""

GIVEN_UP_S = 70.0
"""Seconds in which a silent peer is given up (STP-PL-008)."""

REPAIRED_S = 4.0
"""Seconds after which what a USTAT reports has surely been sent again."""


def _end(connection: Connection) -> None:
    """Send an END that does not abort, and wait for its ENDAK."""
    connection.end()
    connection.closed = "the tester ended it"
    connection.expect(ENDAK)


@connected("STP-CC-004", "STP-CC-023", "STP-CC-024", to="echo", iss=MODULUS - 3)
def test_ready_fin_before_its_data(connection: Connection) -> None:
    """The FIN overtakes lost data; the service closes when all of it has arrived.

    The numbers wrap at the FIN.
    """
    connection.sds(3, skip=[1])
    connection.sd(b"the end", fin=True, poll=True)
    connection.wait(2 * connection.rtt + 1.0)
    connection.sd(number=1)
    connection.release()
    connection.wait(PAUSE_S)


@connected("STP-CC-023", "STP-CC-024", "STP-DT-030", to="echo", credit=8)
def test_ready_fin_while_much_is_to_be_returned(connection: Connection) -> None:
    """After the peer's FIN an echo goes on until everything has been returned and acknowledged."""
    for _ in range(3):
        connection.sds(10, octets=400)
        connection.ask()
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.reception.vr_r >= 12, losing=[9], credit=8)
    connection.release()
    connection.wait(PAUSE_S)


@case("STP-CC-025", "STP-CC-026", "STP-CC-028", "STP-CC-031")
def test_releasing_nobody_answers(peer: Peer) -> None:
    """The IUT releases when its caller does not; its END is sent five times, and all is over."""
    connection = half_released(peer)
    peer.wait(36.0)
    connection.poll()
    peer.wait(2 * peer.rtt + PAUSE_S)


@case("STP-CC-028", "STP-CC-022")
def test_releasing_packets_arrive(peer: Peer) -> None:
    """While ENDAK is awaited, data, POLLs and reports are discarded; an END is acknowledged."""
    connection = half_released(peer)
    send_each(connection, "SD SDP POLL STAT USTAT BGAK BGREJ", 0.37)
    connection.end()
    peer.wait(2 * peer.rtt + PAUSE_S)


@connected("STP-CC-027", "STP-CC-022", to="chargen", aborted=False)
def test_ready_end_before_everything_is_acknowledged(connection: Connection) -> None:
    """An END without A flag in the midst of a transfer is acknowledged, and all is over."""
    connection.receive(6)
    _end(connection)
    connection.wait(3.0)


@connected("STP-CC-027", "STP-CC-022", aborted=False)
def test_ready_end_before_any_fin(connection: Connection) -> None:
    """An END on an idle connection that neither side has closed is an abort."""
    connection.ask()
    _end(connection)
    connection.end()
    connection.wait(2 * connection.rtt + PAUSE_S)


@connected("STP-CC-021", "STP-SEC-005")
def test_ready_ends_that_do_not_know_the_connection(connection: Connection) -> None:
    """ENDs with wrong CSNs are discarded, whichever of their bits is wrong."""
    connection.ask()
    own, other = connection.csn, connection.peer_csn or 0
    for flags, csn, peer_csn in (
        (A, own, (other + 1) % CSN_MODULUS),
        (A, own, other ^ 1 << 31),
        (A, (own + 1) % CSN_MODULUS, other),
        (A, own ^ 1 << 16, other),
        (A, 0, other),
        (0, own, 0),
        (0, 0, other),
        (0, own, other ^ 1 << 16),
        (A | R, own, (other + 1) % CSN_MODULUS),
        (A | R, own, other ^ 1 << 31),
        (A | R, own ^ 1 << 16, other),
        (A | R, other, other),
        (A | R, 0, 0),
        (A | R, 0, other & 0xFFFF),
        (A | R, own, 0),
    ):
        connection.end(flags=flags, reason=2, csn=csn, peer_csn=peer_csn, seq=0)
        connection.wait(PAUSE_S)
        connection.poll()
        connection.wait(PAUSE_S)
    connection.ask()


@case("STP-CC-021", "STP-CC-022", "STP-CC-020", "STP-CC-046")
def test_ready_ends_that_are_valid(peer: Peer) -> None:
    """An abort whose sender knows one CSN only, and the ENDs of peers that know no connection.

    Their reasons count for nothing, also where no table names them.
    """
    for flags, knows, names_itself, reason in (
        (A, False, True, 1), (A, True, True, 0), (A, True, True, 7), (A, True, True, 255),
        (0, True, True, 255), (A | R, True, True, 2), (A | R, True, False, 2),
        (A | R, True, False, 255),
    ):  # fmt: skip
        connection = peer.connect("discard")
        connection.polite = False
        connection.ask()
        peer.wait(PAUSE_S)
        csn = connection.csn if names_itself else 0
        peer_csn = (connection.peer_csn or 0) if knows else 0
        tag = csn & 0xFFFF
        connection.end(flags=flags, reason=reason, csn=csn, peer_csn=peer_csn, seq=0, tag=tag)
        peer.wait(PAUSE_S)
        connection.poll()
        peer.wait(PAUSE_S)
        connection.closed = "the tester ended it"
    peer.wait(2 * peer.rtt)


@case("STP-CC-021", "STP-CC-026", "STP-CC-046")
def test_releasing_ends_of_a_peer_that_knows_no_connection(peer: Peer) -> None:
    """They end the wait for the ENDAK without an answer, those with other CSNs do not."""
    for names_itself in (True, False):
        connection = half_released(peer)
        own, other = connection.csn, connection.peer_csn or 0
        for csn, peer_csn in ((own ^ 1 << 16, other), (own, other ^ 1 << 31)):
            connection.end(flags=A | R, reason=2, csn=csn, peer_csn=peer_csn, seq=0)
            peer.wait(PAUSE_S)
        connection.end(flags=A | R, reason=2, csn=own if names_itself else 0, seq=0)
        peer.wait(4.0)


@case("STP-CC-020", "STP-CC-022", "STP-CC-046")
def test_idle_packets_out_of_the_blue(peer: Peer) -> None:
    """Packets of no connection draw an END, an END an ENDAK, and the others nothing."""
    connection = peer.prepare("discard")
    connection.peer_csn = peer.random.getrandbits(32)
    send_each(connection, "BGAK SD SDP POLL END ENDAK BGREJ STAT USTAT")
    connection.end(flags=A | R, reason=2)
    peer.wait(2 * peer.rtt + 1.0)


@connected("STP-CC-020")
def test_idle_packets_after_the_end(connection: Connection) -> None:
    """A connection that has ended is gone: its late packets draw an END."""
    connection.sd(b"x")
    connection.deliver()
    connection.release()
    connection.wait(PAUSE_S)
    send_each(connection, "SD SDP POLL BGAK STAT USTAT BGREJ ENDAK")
    connection.wait(2 * connection.rtt + 1.0)


@case("STP-CC-031", "STP-CC-015", "STP-DT-017")
def test_ready_complete_and_called(peer: Peer) -> None:
    """The caller's END comes a while after all is acknowledged; until then the IUT is there.

    It answers POLLs and a repeated BEGIN.
    """
    connection = peer.connect("discard")
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.complete)
    connection.discard(0.25)
    connection.poll()
    connection.discard(0.25)
    connection.begin()
    connection.discard(0.15)
    connection.end()
    connection.discard(2 * peer.rtt + 4.0)


def _complete(connection: Connection) -> None:
    """End the tester's stream, and take and acknowledge that of the IUT to its end."""
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.complete)


@connected("STP-CC-031", to="chargen", credit=64, aborted=False)
def test_ready_complete_after_a_stream(connection: Connection) -> None:
    """The round-trip time has been measured often: the release wait is that of Timer_CC."""
    connection.receive(80, credit=64)
    _complete(connection)
    connection.discard(2 * connection.rtt + 4.0)


@connected("STP-CC-022", "STP-CC-020", aborted=False)
def test_ready_complete_and_aborted(connection: Connection) -> None:
    """The peer aborts a connection that is complete: its END is acknowledged, and all is over."""
    _complete(connection)
    connection.discard(PAUSE_S)
    connection.end(flags=A, reason=1)
    connection.closed = "the tester aborted it"
    connection.wait(PAUSE_S)
    connection.poll()
    connection.wait(2 * connection.rtt + PAUSE_S)


@case("STP-CC-025", "STP-CC-026", needs=("active_open",))
def test_ready_complete_and_calling(peer: Peer) -> None:
    """The IUT calls, both streams end, and the IUT releases."""
    connection = peer.summon("receive", octets=OCTETS)
    connection.bgak()
    connection.sds(4, OCTETS // 4)
    connection.sd(b"", fin=True, poll=True)
    connection.serve(lambda: bool(connection.closed))
    connection.discard(2 * peer.rtt + 4.0)


@case("STP-CC-025", "STP-CC-023", "STP-CC-024", needs=("active_open",))
def test_ready_fins_are_lost(peer: Peer) -> None:
    """The SD with the FIN is lost twice each way; both come again as they were."""
    connection = peer.summon("send", octets=OCTETS)
    connection.bgak()
    connection.sd(b"", fin=True)
    lost: list[int] = []

    def losing(sd: Arrival, _before: int) -> bool:
        if sd.packet.flags & FIN and len(lost) < 2:
            lost.append(sd.number)
            return True
        return False

    connection.serve(lambda: bool(connection.closed), losing=losing)
    connection.discard(2 * peer.rtt + 4.0)


@connected("STP-CC-004", "STP-CC-023", "STP-CC-024", to="echo", rtt=NEAR_S)
def test_ready_fin_is_lost_and_reported(connection: Connection) -> None:
    """The tester's FIN is lost; the IUT reports it missing, and closes when it has come."""
    connection.sds(3)
    connection.sds(1, skip=[3])
    connection.sent[3] = b"the end", True
    connection.poll()
    connection.wait(2 * connection.rtt + PAUSE_S)
    connection.sd(number=3)
    lost: list[int] = []

    def losing(sd: Arrival, _before: int) -> bool:
        if sd.packet.flags & FIN and not lost:
            lost.append(sd.number)
            return True
        return False

    connection.serve(lambda: bool(connection.closed) or connection.reception.ended, losing=losing)
    connection.stat()
    connection.release()
    connection.wait(PAUSE_S)


@connected("STP-CC-045", "STP-PL-008", to="chargen", aborted=False)
def test_ready_silent_peer_behind_a_gap(connection: Connection) -> None:
    """The IUT gives a peer up that has left a gap: N(R) of its END is what it has delivered."""
    connection.receive(4)
    connection.sds(5, skip=[2, 3])
    connection.discard(GIVEN_UP_S)


@case("STP-CC-028", "STP-CC-025", "STP-DT-017", needs=("active_open",))
def test_ready_complete_by_an_sdp(peer: Peer) -> None:
    """The caller's stream has ended and is acknowledged; the tester's ends with an SDP.

    The STAT that answers it leaves before the END.
    """
    connection = peer.summon("send", octets=10 * OCTETS)
    connection.bgak()
    reception = connection.reception
    connection.serve(lambda: reception.ended, within=10 * peer.rtt + REPAIRED_S)
    connection.stat(n_ps=0, timestamp=0)
    connection.ask()
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: bool(connection.closed))
    connection.discard(2 * peer.rtt + PAUSE_S)


@case("STP-CC-026")
def test_releasing_answered(peer: Peer) -> None:
    """An END that has been acknowledged is not sent again."""
    connection = half_released(peer)
    for by in (1, 1 << 16, 1 << 31):
        connection.send(ENDAK, peer_csn=((connection.peer_csn or 0) + by) % CSN_MODULUS)
        peer.wait(PAUSE_S)
    connection.send(ENDAK)
    peer.wait(2 * peer.rtt + 4.0)


@case("STP-CC-031", "STP-DT-017")
def test_ready_complete_and_polled(peer: Peer) -> None:
    """The caller goes on polling and never releases: the wait is over when it would be without."""
    connection = peer.connect("discard")
    connection.polite = False
    connection.sd(b"the end", fin=True, poll=True)
    deadline = peer.now() + POLLED_S + 2 * peer.rtt
    while peer.now() < deadline and not connection.closed:
        for arrival in connection.arrivals(PAUSE_S):
            if arrival.has_data:
                connection.hold(arrival)
            if arrival.polls:
                connection.answer(arrival)
        connection.poll()
    peer.wait(PAUSE_S)


@case("STP-CC-031")
def test_ready_complete_and_disturbed(peer: Peer) -> None:
    """Packets of every kind arrive in the release wait, and none of them puts its end off."""
    connection = peer.connect("discard")
    connection.polite = False
    connection.sd(b"first")
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.complete)
    deadline = peer.now() + POLLED_S + 2 * peer.rtt
    while peer.now() < deadline and not connection.closed:
        connection.begin()
        connection.discard(PAUSE_S / 2)
        connection.sd(number=0)
        send_each(connection, "STAT USTAT BGAK BGREJ", PAUSE_S / 2)
        connection.end(flags=A, peer_csn=1)
        connection.discard(PAUSE_S / 2)
    peer.wait(PAUSE_S)


@connected("STP-DT-014", "STP-CC-023", to="echo", credit=4)
def test_ready_ustats_after_the_fin(connection: Connection) -> None:
    """After the tester's FIN the IUT heeds USTATs: the SD that one reports goes again."""
    reception = connection.reception
    connection.sds(6, octets=800)
    connection.serve(lambda: reception.vr_r >= 4, credit=None)
    for _ in range(2):
        connection.sds(6, octets=800)
        connection.ask()
    connection.sd(b"the end", fin=True, poll=True)
    connection.serve(lambda: connection.vt_a >= connection.vt_s, credit=None)
    last = reception.vr_r + 3
    connection.stat(n_mr=last + 1)
    fill(connection, [last])
    connection.ustat(last, last + 1)
    again = connection.expect(
        SD, lambda sd: sd.number == last, within=REPAIRED_S, what="a retransmission"
    )
    connection.hold(again)
    connection.serve(lambda: reception.ended, credit=8)
    connection.release()
