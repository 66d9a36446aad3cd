"""STP-CC: calling (section 5.1): what a caller sends, and what it does with a cookie."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import NotReached
from bentpipe_conformance.protocols.stp.cases.steps import (
    PAUSE_S,
    TWICE_S,
    go_on,
    send_each,
    send_foreign_begin,
    summoned,
)
from bentpipe_conformance.protocols.stp.codec import BEGIN, ENDAK, A, R, option_field
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, MODULUS
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer

NEVER_S = 210.0
"""Seconds after which a call that nobody answers, and its END, are over on every path: twice the
five waits of the path class vbdc, and a tenth."""

MOST_EARLY = 4
"""SDs that may leave before the BGAK (STP-CC-002)."""

ONCE_S = 4.0
"""Seconds in which a BEGIN would be repeated on every path."""

LITTLE_CREDIT = 6
"""SDs, two more than the early credit."""

MOST_ANEW = 5
"""How often a caller calls anew (STP-CC-037)."""


@summoned(
    "STP-CC-002", "STP-CC-014", "STP-CC-016", "STP-CC-026", "STP-CC-029", "STP-CC-034",
    "STP-CC-042", "STP-CC-044", "STP-CC-045", role="send", anew=False, aborted=False,
)  # fmt: skip
def test_calling_without_a_cookie_nobody_answers(connection: Connection) -> None:
    """The BEGIN is repeated four times as it was; then the caller aborts, and is gone at last."""
    connection.polite = False
    connection.wait(NEVER_S)
    connection.poll()
    connection.wait(2 * connection.rtt + PAUSE_S)


@case(
    "STP-CC-002", "STP-CC-014", "STP-CC-016", "STP-CC-029", "STP-CC-040", "STP-CC-042",
    needs=("active_open",),
)  # fmt: skip
def test_calling_with_a_cookie_nobody_answers(peer: Peer) -> None:
    """No more than four SDs leave, however small, none of them twice but the BEGIN, and no POLL.

    The BEGIN without a cookie has been repeated; for the one anew all begins again.
    """
    connection = peer.summon("send", anew=False)
    peer.wait(1.5)
    connection.inbox.clear()
    connection.reject(CALL_ANEW, max_sd=512)
    peer.await_anew(connection)
    peer.wait(35.0)


@case(
    "STP-CC-047",
    "STP-CC-010",
    "STP-CC-039",
    "STP-CC-040",
    "STP-PF-009",
    "STP-PF-017",
    needs=("active_open",),
)
def test_calling_several_times(peer: Peer) -> None:
    """Later calls have newer CSNs, and begin with the cookie of the BGAK before and with data."""
    for max_sd, octets in ((800, 8), (1200, 32), (400, 31), (1400, 9), (1400, 16)):
        connection = peer.summon("send")
        connection.max_sd = max_sd
        connection.bgak(cookie=peer.jar.make(octets))
        connection.receive(6)
        connection.abort()
        peer.wait(PAUSE_S)


@case("STP-CC-039", "STP-CC-016", needs=("active_open",))
def test_calling_after_a_call_that_failed(peer: Peer) -> None:
    """Cookies from before are not used any more, and the V flag is set until a call has opened.

    A call made before the failure does not count, whether it is answered before or after it.
    """
    for reason, late in ((3, False), (CALL_ANEW, False), (3, True)):
        connection = peer.summon("send")
        connection.bgak()
        connection.receive(2)
        connection.abort()
        peer.wait(PAUSE_S)
        failing, open_ = (peer.summon("send", anew=False) for _ in range(2))
        if not late:
            open_.bgak()
            peer.wait(peer.rtt + PAUSE_S)
        failing.reject(reason, cookie=None)
        peer.wait(peer.rtt + PAUSE_S)
        if late:
            open_.bgak()
            peer.wait(peer.rtt + PAUSE_S)
        again = peer.summon("send")
        again.reject(CALL_ANEW)
        peer.await_anew(again).bgak()
        peer.wait(peer.rtt + PAUSE_S)
        peer.summon("send", anew=False).bgak()
        peer.wait(PAUSE_S)


@case("STP-CC-039", needs=("active_open",))
def test_calling_beside_calls_that_fail(peer: Peer) -> None:
    """A call made before another one fails has the V flag as before, and takes it from no other."""
    connection = peer.summon("send")
    connection.bgak()
    connection.receive(2)
    connection.abort()
    for _ in range(2):
        peer.wait(PAUSE_S)
        failing, beside = peer.summon("send"), peer.summon("send", anew=False)
        failing.reject(3, cookie=None)
        peer.wait(peer.rtt + PAUSE_S)
        beside.reject(CALL_ANEW)
        peer.await_anew(beside).bgak()
        peer.wait(peer.rtt)
    for _ in range(2):
        peer.summon("send").bgak()
        peer.wait(peer.rtt + PAUSE_S)


@case("STP-CC-039", needs=("active_open",))
def test_calling_anew_once_another_call_has_opened(peer: Peer) -> None:
    """A call that waits while a later one fails and another opens has no V flag when made anew."""
    peer.udp_port = peer.random.randrange(49152, 1 << 16)
    waiting = peer.summon("send", anew=False)
    failing = peer.summon("send")
    failing.reject(3, cookie=None)
    peer.wait(peer.rtt + PAUSE_S)
    peer.summon("send").bgak()
    peer.wait(peer.rtt + PAUSE_S)
    waiting.reject(CALL_ANEW)
    peer.await_anew(waiting).bgak()
    peer.wait(peer.rtt)


@case("STP-CC-039", needs=("active_open",))
def test_calling_an_address_for_the_first_time(peer: Peer) -> None:
    """To an address that it does not know the IUT sets the V flag until a call has opened.

    Over UDP the port is part of the address, and none of these was used before.
    """
    for _ in range(3):
        peer.udp_port = peer.random.randrange(49152, 1 << 16)
        for _ in range(2):
            connection = peer.summon("send")
            connection.bgak()
            connection.receive(2)
            connection.abort()
            peer.wait(PAUSE_S)


@case("STP-CC-040", "STP-CC-039", needs=("active_open",))
def test_calling_after_nearly_ten_minutes(peer: Peer) -> None:
    """A cookie that came 600 s before, less a little, is still put into the BEGIN."""
    connection = peer.summon("send")
    connection.bgak()
    brought = peer.now()
    connection.receive(2)
    connection.abort()
    peer.wait(brought + 599.7 - peer.now())
    again = peer.summon("send", anew=False)
    again.bgak()
    again.receive(2)
    again.abort()


@case("STP-CC-039", "STP-CC-040", needs=("active_open",))
def test_calling_twice_at_once(peer: Peer) -> None:
    """Two connections at once leave the caller two cookies; none is used twice."""
    for _ in range(2):
        pair = [peer.summon("send") for _ in range(2)]
        for connection in pair:
            connection.bgak()
            peer.wait(PAUSE_S)
        for connection in pair:
            connection.abort()
            peer.wait(PAUSE_S)


@case("STP-CC-037", "STP-CC-010", "STP-CC-039", needs=("active_open",))
def test_calling_anew_five_times(peer: Peer) -> None:
    """A cookie for every call makes a caller give up at the sixth."""
    connection = peer.summon("send", anew=False)
    for _ in range(MOST_ANEW):
        connection.reject(CALL_ANEW)
        connection = peer.await_anew(connection)
    connection.reject(CALL_ANEW)
    peer.wait(2 * peer.rtt + 4.0)


@case("STP-PF-017", "STP-CC-037", "STP-CC-039", needs=("active_open",))
def test_calling_anew_with_cookies_of_all_lengths(peer: Peer) -> None:
    """The shortest and the longest cookies are returned as they were."""
    connection = peer.summon("send", anew=False)
    for octets in (8, 32, 9, 31, 17):
        connection.reject(CALL_ANEW, cookie=peer.jar.make(octets))
        connection = peer.await_anew(connection)
    connection.bgak()
    connection.receive(4)
    connection.abort()


@case("STP-CC-037", "STP-PF-004", "STP-PF-008", needs=("active_open",))
def test_calling_anew_whatever_is_beside_the_cookie(peer: Peer) -> None:
    """Reserved bits, unknown options and a second cookie change nothing."""
    connection = peer.summon("send", anew=False)
    connection.reject(CALL_ANEW, flags=0b1111, reserved=(0xF, 0xFFFF))
    connection = peer.await_anew(connection)
    unknown = bytes((0xAA, 4, 1, 2))
    cookies = option_field(1400, peer.jar.make(8)) + option_field(None, bytes(8))
    connection.reject(CALL_ANEW, options=unknown + cookies)
    connection = peer.await_anew(connection)
    connection.bgak(
        flags=0b1111, reserved=(0xF, 0xFF), options=unknown + option_field(600, bytes(8))
    )
    connection.receive(6)
    connection.abort()


@case("STP-SEC-005", "STP-CC-016", "STP-CC-037", needs=("active_open",))
def test_calling_cookies_for_somebody_else(peer: Peer) -> None:
    """A BGREJ with another CSN is discarded, and the BEGIN repeated.

    So is one that comes again, or late, when the call has begun anew.
    """
    connection = peer.summon("send", anew=False)
    own = connection.peer_csn or 0
    for by in (1, 1 << 16, 1 << 31, -own):
        for reason in (CALL_ANEW, 3):
            connection.reject(reason, peer_csn=(own + by) % CSN_MODULUS)
            peer.wait(PAUSE_S / 2)
    peer.wait(1.5)
    connection.reject(CALL_ANEW)
    anew = peer.await_anew(connection)
    for reason in (CALL_ANEW, 3):
        peer.wait(PAUSE_S)
        connection.reject(reason)
    peer.wait(2 * peer.rtt + PAUSE_S)
    anew.bgak()
    anew.receive(4)
    anew.abort()


@case("STP-CC-016", "STP-CC-037", needs=("active_open",))
def test_calling_refused(peer: Peer) -> None:
    """Reasons of every kind end the call, even beside a cookie; so does reason 6 without one."""
    short, long = bytes((2, 9, *range(7), 0, 0, 0)), bytes((2, 35, *range(33), 0))
    refusals: list[tuple[int, dict[str, Any]]] = [
        (reason, {"cookie": cookie}) for reason in (3, 5, 0, 99) for cookie in (None, bytes(16))
    ]
    refusals += [(6, {"cookie": None}), (6, {"options": short}), (6, {"options": long})]
    for reason, raw in refusals:
        connection = peer.summon("send", anew=False)
        connection.reject(reason, **raw)
        peer.wait(2 * peer.rtt + 4.0)


@summoned("STP-SEC-005", "STP-CC-016", "STP-CC-037", role="send", accepted=True)
def test_ready_cookie_after_the_bgak(connection: Connection) -> None:
    """A BGREJ that comes after the BGAK is discarded, with a cookie and without."""
    connection.polite = True
    connection.ask()
    for reason in (CALL_ANEW, 3):
        connection.reject(reason)
        connection.wait(PAUSE_S)
    connection.bgak(csn=(connection.csn + 7) % CSN_MODULUS)
    connection.wait(PAUSE_S)
    for _ in range(2):
        connection.poll()
        connection.wait(PAUSE_S)
    connection.receive(10)
    go_on(connection, 4.0)


@case("STP-CC-043", "STP-CC-019", "STP-CC-016", needs=("active_open",))
def test_calling_begins_arrive(peer: Peer) -> None:
    """A port that calls refuses calls, and goes on calling."""
    connection = peer.summon("send")
    peer.wait(PAUSE_S)
    for cookie, version in ((None, 2), (peer.jar.made[-1], 2), (None, 1)):
        send_foreign_begin(peer, connection, cookie, version=version)
        peer.wait(PAUSE_S)
    peer.wait(1.5)
    connection.bgak()
    connection.receive(8)
    connection.abort()


@case("STP-CC-041", "STP-CC-019", "STP-SEC-005", needs=("active_open",))
def test_ready_begins_to_the_port_of_a_caller(peer: Peer) -> None:
    """A good cookie opens nothing where nobody listens, and the caller's connection goes on.

    Nor does a BEGIN with the CSN by which the tester has answered the call.
    """
    cookie = peer.fresh_cookie()
    connection = peer.summon("send")
    connection.bgak()
    connection.receive(6)
    peer.wait(PAUSE_S)
    send_foreign_begin(peer, connection, cookie, data=b"nobody listens")
    peer.wait(PAUSE_S)
    send_foreign_begin(peer, connection, peer.jar.made[-1], csn=connection.csn)
    peer.wait(PAUSE_S)
    connection.ask()
    connection.receive(12)
    connection.abort()


@summoned("STP-CC-042", "STP-CC-002", "STP-CC-010", role="send")
def test_calling_bgak_covers_the_begin_only(connection: Connection) -> None:
    """What was sent behind the BEGIN, and lost, is asked about at once and comes again."""
    connection.wait(PAUSE_S)
    connection.inbox.clear()
    connection.bgak()
    connection.receive(12)


@summoned("STP-SEC-005", "STP-CC-020", "STP-CC-042", role="send")
def test_calling_bgaks_that_do_not_fit(connection: Connection) -> None:
    """A BGAK for another call draws an END; one with a N(R) of nothing sent is discarded."""
    connection.wait(PAUSE_S)
    own, iss = connection.peer_csn or 0, connection.peer_iss or 0
    for by in (1, 1 << 16, 1 << 31):
        connection.bgak(peer_csn=(own + by) % CSN_MODULUS)
        connection.wait(PAUSE_S)
    for n_r in (iss - 1, iss + connection.highest + 1, iss + MODULUS // 2):
        connection.bgak(n_r=n_r % MODULUS)
        connection.wait(PAUSE_S)
    connection.bgak()
    connection.receive(8)
    connection.wait(PAUSE_S)


@summoned("STP-CC-021", "STP-CC-016", role="send", aborted=False)
def test_calling_ends_arrive(connection: Connection) -> None:
    """Only an END that names the caller's CSN ends the call."""
    own = connection.peer_csn or 0
    for flags, csn, peer_csn in (
        (A, connection.csn, 0),
        (A, connection.csn, (own + 1) % CSN_MODULUS),
        (A | R, 0, (own + (1 << 16)) % CSN_MODULUS),
        (A | R, connection.csn, own),
        (A | R, 0, own),
    ):
        connection.end(flags=flags, reason=2, csn=csn, peer_csn=peer_csn, seq=0)
        connection.wait(0.5)
    connection.wait(4.0)


@summoned("STP-CC-022", "STP-CC-021", role="receive", aborted=False)
def test_calling_peer_aborts(connection: Connection) -> None:
    """An END with the caller's CSN, whatever the sender's, is acknowledged and ends the call."""
    connection.end(flags=A, reason=1, csn=connection.peer.random.getrandbits(32), seq=0)
    connection.wait(2 * connection.rtt + 4.0)


@summoned("STP-CC-028", "STP-CC-026", "STP-CC-022", "STP-CC-044", aborted=False)
def test_releasing_after_a_call_that_nobody_answered(connection: Connection) -> None:
    """Answers that come too late are discarded; an END that names the caller is acknowledged."""
    connection.polite = False
    connection.peer.pump_until(lambda: bool(connection.closed), NEVER_S / 2)
    connection.wait(PAUSE_S)
    connection.bgak()
    connection.wait(PAUSE_S)
    connection.reject(CALL_ANEW)
    connection.wait(PAUSE_S)
    send_each(connection, "SD SDP POLL STAT USTAT", 0.37)
    connection.send(ENDAK, peer_csn=((connection.peer_csn or 0) + 1) % CSN_MODULUS)
    connection.wait(6.0)
    connection.end(flags=A, reason=1, csn=connection.peer.random.getrandbits(32), seq=0)
    connection.wait(2 * connection.rtt + 4.0)


@summoned("STP-SEC-005", "STP-DT-011", role="send")
def test_ready_bgak_with_more_credit(connection: Connection) -> None:
    """A second BGAK gives no credit and acknowledges nothing."""
    connection.bgak(n_mr=connection.theirs(6))
    connection.serve(lambda: connection.reception.vr_r >= 6, credit=None)
    connection.ask()
    connection.wait(PAUSE_S)
    connection.bgak(n_mr=connection.theirs(64))
    connection.wait(2 * connection.rtt + 1.0)
    connection.ask()
    connection.stat(n_mr=16, n_ps=0, timestamp=0)
    connection.receive(12)


@summoned("STP-CC-001")
def test_calling_sds_before_the_bgak(connection: Connection) -> None:
    """What overtakes the BGAK is discarded, and taken when it is sent again."""
    connection.sd(b"first")
    connection.wait(PAUSE_S)
    connection.sd(b"third", number=2, poll=True)
    connection.wait(PAUSE_S)
    connection.bgak()
    connection.wait(PAUSE_S)
    connection.ask()
    connection.sent[1] = b"second", False
    connection.deliver()


@summoned("STP-CC-016")
def test_calling_answered(connection: Connection) -> None:
    """A BEGIN that has been answered is not sent again."""
    connection.bgak()
    go_on(connection, ONCE_S)


@summoned("STP-CC-016", "STP-CC-042", role="send")
def test_calling_bgak_covers_all_early_sds(connection: Connection) -> None:
    """The BGAK acknowledges the SDs that followed the BEGIN as well: nothing comes again."""
    _take_early(connection)
    connection.bgak()
    connection.receive(12)
    go_on(connection, ONCE_S)


@summoned("STP-CC-016", "STP-CC-042", role="send")
def test_calling_bgak_covers_some_early_sds(connection: Connection) -> None:
    """The BGAK acknowledges one SD behind the BEGIN: the others are asked about, and come again."""
    _take_early(connection, 2)
    connection.bgak()
    connection.receive(12)
    go_on(connection, ONCE_S)


@summoned("STP-CC-016", "STP-CC-042", role="send")
def test_calling_second_bgak_covers_early_sds(connection: Connection) -> None:
    """The first BGAK is lost; that for the repeated BEGIN acknowledges more than the BEGIN."""
    _take_early(connection)
    connection.expect(BEGIN, within=TWICE_S, what="the BEGIN once more")
    connection.bgak()
    connection.receive(12)
    go_on(connection, TWICE_S)


def _take_early(connection: Connection, most: int = MOST_EARLY) -> None:
    """Take in up to ``most`` SDs of those that come before the BGAK.

    Raises:
        NotReached: no SD follows the BEGIN.
    """
    for arrival in connection.arrivals(PAUSE_S):
        if arrival.has_data and arrival.number < most:
            connection.hold(arrival)
    if connection.reception.vr_r < min(most, 2):
        raise NotReached("no SD followed the BEGIN")


@case("STP-CC-037", "STP-CC-042", needs=("active_open",))
def test_calling_anew_after_early_sds(peer: Peer) -> None:
    """The cookie of a call has become worthless: the data of its early SDs is sent anew as well.

    Also with another MaxSD, by which it is cut otherwise. The credit is that of the new ISS, and
    the SDs of the call before are no longer in flight.
    """
    for max_sd in (1400, 700, 1400, 1400):
        connection = peer.summon("send")
        connection.wait(PAUSE_S)
        connection.reject(CALL_ANEW, max_sd=max_sd)
        anew = peer.await_anew(connection)
        anew.max_sd = max_sd
        anew.reception.vr_mr = LITTLE_CREDIT
        anew.wait(PAUSE_S)
        anew.bgak()
        try:
            anew.receive(LITTLE_CREDIT, credit=None)
            go_on(anew, peer.rtt + PAUSE_S)
            anew.stat(n_mr=anew.reception.vr_r + 64, n_ps=0, timestamp=0)
            anew.receive(30, losing=range(8, 30, 3), credit=64)  # until the window is the smallest
        except NotReached as error:
            raise NotReached("STP-CC-037: the call anew did not go on sending") from error
        anew.abort()
        peer.wait(PAUSE_S)


@case("STP-CC-037", needs=("active_open",))
def test_calling_anew_after_the_whole_stream(peer: Peer) -> None:
    """All that the user sends, and the end of it, was in the first BEGIN: it is sent again."""
    connection = peer.summon("send", octets=300)
    connection.wait(PAUSE_S)
    connection.reject(CALL_ANEW)
    anew = peer.await_anew(connection)
    anew.wait(PAUSE_S)
    anew.bgak()
    try:
        anew.receive(1, within=2 * peer.rtt + TWICE_S)
    except NotReached as error:
        raise NotReached("STP-CC-037: the data of the call before was not sent again") from error
    go_on(anew, peer.rtt + TWICE_S)
    anew.abort()


@case("STP-CC-037", "STP-CC-016", needs=("active_open",))
def test_calling_anew_with_as_many_options_as_fit(peer: Peer) -> None:
    """A BGREJ may carry 60 octets of options, and a BGAK none at all."""
    connection = peer.summon("send", anew=False)
    known = option_field(1400, peer.jar.make(32))
    unknown = bytes((0xAA, 60 - len(known), *bytes(58 - len(known))))
    connection.reject(CALL_ANEW, options=known + unknown, max_sd=None, cookie=None)
    anew = peer.await_anew(connection)
    anew.wait(PAUSE_S)
    anew.bgak(max_sd=None, cookie=None)
    anew.receive(6)
    go_on(anew, ONCE_S)
    anew.abort()
