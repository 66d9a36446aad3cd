"""STP-CC: calling, being called, and peers that have restarted (sections 5.1 to 5.3)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.steps import (
    PAUSE_S,
    call_again,
    confirmed,
    connected,
    go_on,
    send_foreign_begin,
    summoned,
)
from bentpipe_conformance.protocols.stp.codec import A, C, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, MODULUS, tag_of
from bentpipe_conformance.protocols.stp.peer import Peer

NEARLY_HALF = CSN_MODULUS // 2 - 100
"""Hardly any CSN is newer than both of two CSNs this far apart."""


def _known(peer: Peer, csn: int | None = None) -> Connection:
    """A connection that is over, whose CSN the IUT knows."""
    connection = confirmed(peer, csn)
    peer.wait(PAUSE_S)
    return connection


def _send_with_tag(connection: Connection, tag: int, data: bytes) -> None:
    """Send an SD and a POLL with a tag of another connection."""
    connection.send(codec.SD, data=data, tag=tag)
    connection.wait(PAUSE_S)
    connection.send(codec.POLL, n_ps=connection.vt_ps + 1, tag=tag)
    connection.wait(PAUSE_S)


@connected("STP-CC-001")
def test_ready_packets_with_a_wrong_tag(connection: Connection) -> None:
    """SDs and POLLs with any tag but the present one leave no trace."""
    connection.sd(b"before")
    connection.ask()
    for wrong in (connection.csn + 1, connection.csn ^ 0x8000, 0):
        _send_with_tag(connection, tag_of(wrong), b"never to be taken in")
    connection.sd(b"after", number=connection.vt_s + 1)
    connection.ask()


@case("STP-CC-001")
def test_ready_packets_of_the_connection_before(peer: Peer) -> None:
    """An SD and a POLL that were under way when their connection ended meet the next one."""
    old = _known(peer)
    connection = call_again(peer, old)
    _send_with_tag(connection, tag_of(old.csn), b"old")
    connection.ask()
    connection.abort()


@case("STP-CC-003", "STP-CC-012", "STP-CC-015", "STP-CC-029")
def test_pending_data_of_a_stranger_waits(peer: Peer) -> None:
    """The data of a BEGIN and early SDs are echoed after the confirmation, not before."""
    connection = peer.begin("echo", data=b"first ")
    for data in (b"second ", b"third ", b"fourth"):
        connection.sd(data)
    peer.wait(PAUSE_S)
    connection.begin(b"first ")
    peer.wait(PAUSE_S)
    connection.poll()
    peer.wait(2 * peer.rtt + PAUSE_S)
    connection.confirm()
    connection.serve(lambda: len(connection.reception.stream) >= 25)
    connection.abort()


@connected("STP-CC-003", to="echo", data=b"held", confirm=False)
def test_pending_confirmation_of_what_was_not_sent(connection: Connection) -> None:
    """A BGAK with both CSNs whose N(R) is not ISS confirms nothing."""
    for by in (1, -1):
        connection.send(codec.BGAK, n_r=((connection.peer_iss or 0) + by) % MODULUS)
        connection.wait(PAUSE_S)
    connection.confirm()
    connection.serve(lambda: len(connection.reception.stream) >= 4)
    connection.ask()


@case("STP-CC-003", "STP-CC-012")
def test_idle_begin_older_than_a_confirmed_one(peer: Peer) -> None:
    """The BEGIN of an earlier call comes late: its data must wait for a confirmation."""
    first = _known(peer)
    late = peer.begin("echo", data=b"late", csn=(first.csn - 5) % CSN_MODULUS)
    late.expect(codec.BGAK)
    peer.wait(PAUSE_S)


@case("STP-CC-010", "STP-CC-012", "STP-CC-013", "STP-CC-003")
def test_idle_begin_of_a_known_peer(peer: Peer) -> None:
    """After two calls that leave no other CSN to be remembered, a newer one is taken at once."""
    first = _known(peer)
    second = _known(peer, (first.csn + NEARLY_HALF) % CSN_MODULUS)
    known = peer.begin("echo", data=b"at once", csn=(second.csn + 1) % CSN_MODULUS)
    if known.expect(codec.BGAK).packet.flags & C:
        known.confirm()
    known.serve(lambda: len(known.reception.stream) >= 7)
    known.abort()
    peer.wait(PAUSE_S)
    empty = peer.connect("discard", csn=(second.csn + 2) % CSN_MODULUS)
    empty.ask()
    empty.abort()


@case("STP-CC-010", "STP-CC-011")
def test_idle_many_calls(peer: Peer) -> None:
    """The numbers that the IUT chooses for twelve calls, one after the other."""
    for _ in range(12):
        peer.begin("discard")
        peer.wait(PAUSE_S)
    peer.wait(2 * peer.rtt)


@case("STP-CC-012", "STP-CC-010")
def test_pending_newer_begin_on_the_same_ports(peer: Peer) -> None:
    """A caller that gave up and calls again from the same port is answered at once."""
    first = peer.connect("discard", confirm=False)
    call_again(peer, first).abort()


@connected("STP-CC-033", "STP-CC-003", "STP-CC-012", to="echo", data=b"held ", confirm=False)
def test_pending_forged_begins_on_the_same_ports(connection: Connection) -> None:
    """Three BEGINs with other CSNs, one of them with the same tag, end no call that waits."""
    for by in (5, -3, 1 << 16):
        csn = (connection.csn + by) % CSN_MODULUS
        connection.send(
            codec.BEGIN, csn=csn, seq=connection.peer.random.getrandbits(24), data=b"forged"
        )
        connection.wait(PAUSE_S)
    connection.confirm()
    connection.sd(b"back", poll=True)
    connection.serve(lambda: len(connection.reception.stream) >= 9)
    connection.ask()


@case("STP-CC-033")
def test_pending_second_call_is_confirmed_first(peer: Peer) -> None:
    """It opens; the call that waited longer is forgotten, and its confirmation comes too late."""
    first = peer.connect("discard", data=b"forgotten", confirm=False)
    again = call_again(peer, first)
    first.confirm()
    peer.wait(PAUSE_S)
    first.poll()
    peer.wait(PAUSE_S)
    again.ask()
    again.abort()
    peer.wait(peer.rtt + PAUSE_S)
    first.confirm()
    first.poll()
    peer.wait(peer.rtt + PAUSE_S)


@case("STP-CC-033", "STP-CC-012")
def test_pending_begin_of_a_known_peer(peer: Peer) -> None:
    """A BEGIN that would be accepted at once elsewhere is asked beside a call that waits."""
    known = _known(peer)
    older = (known.csn - 5) % CSN_MODULUS
    connection = peer.connect("echo", data=b"held", csn=older, confirm=False)
    connection.send(codec.BEGIN, csn=(known.csn + 5) % CSN_MODULUS, data=b"forged")
    peer.wait(PAUSE_S)
    connection.confirm()
    connection.poll()
    connection.serve(lambda: len(connection.reception.stream) >= 4)
    connection.ask()
    connection.abort()


@connected("STP-CC-015", "STP-CC-029", data=b"only once")
def test_ready_begin_repeated(connection: Connection) -> None:
    """A late repetition of the BEGIN is answered, and changes nothing."""
    connection.sds(3)
    connection.deliver()
    for _ in range(2):
        connection.begin(b"only once")
        connection.wait(PAUSE_S)
    connection.sd()
    connection.deliver()


@connected("STP-CC-017")
def test_ready_question_arrives(connection: Connection) -> None:
    """A BGAK with C flag draws one without, as often as it comes."""
    for _ in range(2):
        connection.confirm(challenge=True)
        connection.wait(PAUSE_S)
    connection.ask()


@case("STP-CC-018")
def test_ready_begin_of_another_connection(peer: Peer) -> None:
    """Somebody calls from the ports of a connection; it is asked, once a second, and goes on."""
    connection = peer.connect("discard")
    connection.ask()
    peer.wait(PAUSE_S)
    for after in (1.5, PAUSE_S, PAUSE_S, 1.5):
        send_foreign_begin(peer, connection)
        peer.wait(after)
    connection.send(codec.BEGIN, csn=(connection.csn - 9) % CSN_MODULUS)
    peer.wait(PAUSE_S)
    connection.ask()
    connection.abort()


@case("STP-CC-018", "STP-CC-021")
def test_ready_begin_and_hint_within_a_second(peer: Peer) -> None:
    """What calls for a challenge in two ways draws one in a second."""
    connection = peer.connect("discard")
    connection.ask()
    for begin_first in (True, False):
        peer.wait(1.5)
        for is_begin in (begin_first, not begin_first):
            if is_begin:
                send_foreign_begin(peer, connection)
            else:
                connection.hint()
            peer.wait(PAUSE_S)
    connection.ask()
    connection.abort()


@case("STP-CC-018")
def test_ready_peer_that_restarted_calls_again(peer: Peer) -> None:
    """The challenge finds nobody, the old connection ends, and the next BEGIN is accepted."""
    old = peer.connect("discard")
    old.ask()
    old.polite = False
    peer.wait(PAUSE_S)
    new = peer.begin("discard", source_port=old.source_port)
    question = new.expect(codec.BGAK)
    new.send(
        codec.END, flags=A | R, reason=2, seq=0, csn=question.packet.peer_csn or 0,
        peer_csn=question.packet.csn or 0, tag=(question.packet.peer_csn or 0) & 0xFFFF,
    )  # fmt: skip
    peer.wait(2 * peer.rtt)
    call_again(peer, old, csn=new.csn, iss=new.iss).abort()


@connected("STP-CC-007", aborted=False)
def test_ready_bgak_with_a_newer_number(connection: Connection) -> None:
    """Another incarnation of the peer answers: the connection ends with reason 2."""
    connection.ask()
    connection.polite = False
    connection.send(codec.BGAK, csn=(connection.csn + 7) % CSN_MODULUS)
    connection.wait(1.5)
    connection.poll()
    connection.wait(2 * connection.rtt + PAUSE_S)


@case("STP-CC-019")
def test_idle_begin_to_a_port_where_nobody_listens(peer: Peer) -> None:
    """It is refused with reason 3."""
    peer.begin(UNUSED_PORT)
    peer.wait(2 * peer.rtt + PAUSE_S)


@case("STP-CC-019")
def test_idle_begin_of_other_versions(peer: Peer) -> None:
    """They are refused with reason 4."""
    for version in (0, 2, 15):
        peer.prepare("discard").begin(version=version)
        peer.wait(PAUSE_S)
    peer.wait(2 * peer.rtt)


@summoned("STP-CC-002", "STP-CC-014", "STP-CC-016", "STP-CC-029", role="send", aborted=False)
def test_calling_nobody_answers(connection: Connection) -> None:
    """The BEGIN is repeated four times as it was, and no more than four SDs leave."""
    connection.wait(35.0)


@case("STP-CC-010", needs=("active_open",))
def test_calling_twice(peer: Peer) -> None:
    """The second call has the newer CSN."""
    for _ in range(2):
        connection = peer.summon("send")
        connection.confirm()
        connection.receive(2)
        connection.abort()
        peer.wait(PAUSE_S)


@summoned("STP-CC-030", "STP-CC-017")
def test_calling_asked_for_confirmation(connection: Connection) -> None:
    """A caller that was asked polls until it is heard, though it has nothing to send."""
    connection.confirm(challenge=True)
    seen = [connection.expect((codec.POLL, codec.SDP), within=10.0) for _ in range(2)]
    connection.answer(seen[-1])
    connection.discard(1.0)


@summoned("STP-CC-016")
def test_calling_answered(connection: Connection) -> None:
    """A BEGIN that has been answered is not sent again."""
    connection.confirm()
    go_on(connection, 4.0)


def _hear_questions(connection: Connection, wanted: int) -> None:
    """Answer POLLs until ``wanted`` more BGAKs with C flag have arrived."""
    enough = connection.questions + wanted
    go_on(
        connection, 15.0 * wanted,
        until=lambda: connection.questions >= enough or bool(connection.closed),
    )  # fmt: skip


def _conclude(connection: Connection) -> None:
    """Answer the question, and POLLs for a while."""
    connection.confirm()
    go_on(connection, 2 * connection.rtt + 12.0, until=lambda: bool(connection.closed))


@summoned("STP-CC-032", accepted=True)
def test_calling_accepted_at_once_with_nothing_to_send(connection: Connection) -> None:
    """A caller that was not asked for confirmation asks itself, until it is answered."""
    _hear_questions(connection, 2)
    connection.stat()
    _hear_questions(connection, 1)
    _conclude(connection)


@summoned("STP-CC-032", accepted=True)
def test_calling_answer_comes_twice(connection: Connection) -> None:
    """A copy of the BGAK that opened the connection answers no question that comes later."""
    connection.wait(PAUSE_S)
    connection.confirm()
    _hear_questions(connection, 1)
    _conclude(connection)


@summoned("STP-CC-032")
def test_calling_both_begins_answered_at_once(connection: Connection) -> None:
    """The BGAK for the second BEGIN comes late: it answers no question."""
    connection.polite = False
    connection.expect(codec.BEGIN)
    connection.confirm()
    _hear_questions(connection, 1)
    connection.confirm()
    _hear_questions(connection, 1)
    _conclude(connection)


@summoned("STP-PL-008", "STP-CC-032", accepted=True, aborted=False)
def test_calling_accepted_at_once_peer_falls_silent(connection: Connection) -> None:
    """A caller with nothing to send, whose questions nobody answers, gives up after a minute."""
    go_on(connection, 75.0 + 4 * connection.rtt, until=lambda: bool(connection.closed))
