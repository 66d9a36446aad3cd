"""STP-CC: being called (section 5.2): which BEGINs open a connection, and which do not."""

from __future__ import annotations

from typing import Any

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.peer import UNUSED_PORT
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.steps import (
    PAUSE_S,
    call_again,
    connected,
    half_released,
    over,
    send_foreign_begin,
)
from bentpipe_conformance.protocols.stp.codec import FIN, A, R
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.cookies import altered
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, LEAST_MAX_SD, tag_of
from bentpipe_conformance.protocols.stp.peer import Peer

APART_S = 0.2
"""Seconds between two BEGINs where there are many, so that each answer has one cause."""


MTU = 1500
"""Of the suite's links, octets."""

BUSY_SDS = 4
"""SDs of the least MaxSD with which a connection carries what protects it (STP-SEC-007)."""

HELD = 12
"""Connections at once, more than an endpoint for eight holds."""

GIVEN_UP_S = 70.0
"""Seconds in which a silent peer is given up (STP-PL-008), its call included."""

EDGE_S = 0.3
"""Seconds before and after the end of a cookie's life."""


def _send_with_tag(connection: Connection, tag: int, data: bytes) -> None:
    """Send an SD and a POLL with a tag of another connection."""
    connection.send(codec.SD, data=data, tag=tag)
    connection.wait(PAUSE_S)
    connection.send(codec.SDP, data=data, n_ps=connection.vt_ps + 1, tag=tag)
    connection.wait(PAUSE_S)
    connection.send(codec.POLL, n_ps=connection.vt_ps + 1, tag=tag)
    connection.wait(PAUSE_S)


@connected("STP-CC-001")
def test_ready_packets_with_a_wrong_tag(connection: Connection) -> None:
    """SDs and POLLs with any tag but the present one leave no trace."""
    connection.sd(b"before")
    connection.ask()
    for wrong in (connection.csn + 1, connection.csn ^ 0x8000, connection.csn >> 16, 0):
        if tag_of(wrong) != tag_of(connection.csn):
            _send_with_tag(connection, tag_of(wrong), b"never to be taken in")
    connection.sd(b"after", number=connection.vt_s + 1)
    connection.ask()


@connected("STP-CC-001", to="chargen", credit=4)
def test_ready_reports_with_a_wrong_tag(connection: Connection) -> None:
    """STATs and USTATs with another tag give no credit, and have nothing sent again."""
    connection.receive(4, credit=None)
    connection.wait(PAUSE_S)
    more: dict[str, Any] = {
        "n_mr": connection.theirs(64),
        "tag": tag_of(connection.csn ^ 1),
    }
    connection.send(codec.STAT, n_ps=0, timestamp=0, **more)
    connection.wait(PAUSE_S)
    connection.send(codec.USTAT, elements=connection.their_list((3, 4)), **more)
    connection.wait(1.5)
    connection.stat(n_mr=16, n_ps=0, timestamp=0)
    connection.receive(12)


@case("STP-CC-001")
def test_ready_packets_of_the_connection_before(peer: Peer) -> None:
    """An SD and a POLL that were under way when their connection ended meet the next one."""
    old = over(peer)
    connection = call_again(peer, old)
    _send_with_tag(connection, tag_of(old.csn), b"old")
    connection.ask()
    connection.abort()


@case("STP-CC-035", "STP-CC-036", "STP-SEC-001", "STP-PF-017")
def test_idle_begins_without_a_cookie(peer: Peer) -> None:
    """They draw a cookie and nothing else, whatever they and the SDs behind them carry."""
    for data, fin in ((b"", False), (b"unproven", False), (b"", True)):
        stranger = peer.begin("echo", data=data, fin=fin)
        stranger.polite = False
        peer.wait(PAUSE_S)
        stranger.sd(b"behind it")
        peer.wait(PAUSE_S)
        stranger.begin(data, fin=fin)
        peer.wait(PAUSE_S)
        stranger.poll()
        peer.wait(PAUSE_S)
    peer.wait(2 * peer.rtt + 5.0)


@case("STP-CC-036", "STP-SEC-001")
def test_idle_many_begins_in_a_second(peer: Peer) -> None:
    """Cookies are not limited in number: each of forty callers is given one, and one at a time."""
    for _ in range(40):
        peer.begin("discard")
        peer.wait(0.015)
    peer.wait(2 * peer.rtt + PAUSE_S)


@case("STP-CC-012", "STP-CC-029", "STP-CC-035", "STP-PF-010", "STP-PF-017")
def test_idle_begins_with_data_and_a_cookie(peer: Peer) -> None:
    """The data of the BEGIN and of early SDs is echoed; the BGAK brings the next call's cookie."""
    for _ in range(3):
        connection = peer.call("echo", data=b"first ")
        for data in (b"second ", b"third ", b"fourth"):
            connection.sd(data)
        connection.await_answer("BGAK")
        connection.serve(lambda c=connection: len(c.reception.stream) >= 25)  # type: ignore[misc]
        connection.abort()
        peer.wait(PAUSE_S)


@case("STP-CC-012", "STP-CC-004")
def test_idle_begin_that_ends_the_stream(peer: Peer) -> None:
    """A BEGIN with data and FIN is the whole stream; the service closes as well."""
    for data in (b"all there is", b""):
        connection = peer.connect("echo", data=data, fin=True)
        connection.release()
        peer.wait(PAUSE_S)


@case("STP-CC-036", "STP-CC-012")
def test_idle_begins_with_as_much_as_max_sd(peer: Peer) -> None:
    """Exactly MaxSD opens a connection and one octet more does not, if a packet can carry it.

    Without a cookie both draw one like any other.
    """
    known = peer.connect("discard")
    most = known.peer_max_sd or LEAST_MAX_SD
    for octets in (1, 0):
        peer.begin("discard", data=bytes(most + octets), max_sd=None)
        peer.wait(2 * peer.rtt + PAUSE_S)
    cookie = peer.fresh_cookie()
    begin = peer.prepare("discard", max_sd=None, cookie=cookie).compose(codec.BEGIN)
    if len(codec.build(begin)) + most + 1 <= MTU:
        peer.begin("discard", data=bytes(most + 1), max_sd=None, cookie=cookie)
        peer.wait(2 * peer.rtt + PAUSE_S)
        peer.connect("discard", data=bytes(most), max_sd=None, cookie=cookie).abort()
    known.abort()


@case("STP-SEC-006", "STP-CC-036", "STP-CC-012")
def test_idle_cookie_altered_in_each_octet(peer: Peer) -> None:
    """Only the cookie itself opens a connection; one octet less or more is another one."""
    cookie = peer.fresh_cookie()
    changed = [altered(cookie, octet) for octet in range(len(cookie))]
    changed += [cookie[:-1]] if len(cookie) > 8 else []
    changed += [cookie + b"\0"] if len(cookie) < 32 else []
    for forged in changed:
        peer.begin("discard", data=b"forged", cookie=forged)
        peer.wait(APART_S)
    connection = peer.connect("discard", cookie=cookie)
    connection.ask()
    connection.abort()


@case("STP-SEC-006", "STP-CC-036")
def test_idle_cookie_of_another_address(peer: Peer) -> None:
    """A cookie holds for the UDP port from which it was asked for, and for no other."""
    cookie = peer.fresh_cookie()
    peer.udp_port += 1
    peer.begin("discard", data=b"of another address", cookie=cookie)
    peer.wait(2 * peer.rtt + PAUSE_S)
    connection = peer.connect("discard")
    connection.ask()
    connection.abort()


@case("STP-CC-038", "STP-CC-036")
def test_idle_cookie_that_has_been_used(peer: Peer) -> None:
    """The BEGIN of a connection that has ended, and others with its cookie, draw an END."""
    connection = peer.connect("echo", data=b"once")
    connection.serve(lambda: len(connection.reception.stream) >= 4)
    connection.release()
    peer.wait(PAUSE_S)
    for _ in range(2):
        connection.begin(b"once")
        peer.wait(PAUSE_S)
    peer.begin("echo", data=b"twice", cookie=connection.cookie)
    peer.wait(PAUSE_S)
    aborted = over(peer)
    aborted.begin()
    peer.wait(2 * peer.rtt + PAUSE_S)
    # A used cookie opens nothing beside its own connection either.
    there = peer.connect("discard")
    peer.begin("discard", data=b"beside it", cookie=there.cookie)
    peer.wait(PAUSE_S)
    there.ask()
    there.abort()


@case("STP-CC-038", "STP-CC-035")
def test_idle_used_cookies_and_the_v_flag(peer: Peer) -> None:
    """Calls with V flag make cookies void, but those that have been used stay used."""
    calls = [peer.connect("discard", data=b"once")]
    for voiding in (False, True, True, False):
        calls[-1].release()
        calls.append(peer.connect("discard", voiding=voiding))
        calls[-1].ask()
    calls[-1].release()
    peer.wait(PAUSE_S)
    for connection in calls:
        connection.begin(b"once")
        peer.wait(PAUSE_S)
        peer.begin("discard", data=b"twice", cookie=connection.cookie)
        peer.wait(PAUSE_S)


@case("STP-CC-035", "STP-CC-036", "STP-CC-012")
def test_idle_cookies_out_of_order(peer: Peer) -> None:
    """A BEGIN with V flag makes the cookies from before void, one without it does not.

    Nor does one without it make them good again.
    """
    zeroth, first, second, third = (peer.fresh_cookie() for _ in range(4))
    parallel = peer.connect("discard", cookie=third)
    beside = peer.connect("discard", data=b"in time", cookie=zeroth)
    beside.deliver()
    parallel.release()
    connection = peer.connect("discard", cookie=second, voiding=True)
    connection.ask()
    peer.begin("discard", data=b"too late", cookie=first)
    peer.wait(PAUSE_S)
    connection.release()
    peer.begin("discard", data=b"too late", cookie=first)
    peer.wait(PAUSE_S)
    over(peer)
    peer.begin("discard", data=b"too late", cookie=first)
    peer.wait(PAUSE_S)
    later = peer.connect("discard", voiding=True)
    later.ask()
    later.abort()
    beside.release()


@case("STP-CC-035", "STP-CC-036")
def test_idle_v_flag_beside_the_fin(peer: Peer) -> None:
    """A BEGIN with V flag makes cookies from before void though its stream ends with it."""
    first, second = (peer.fresh_cookie() for _ in range(2))
    whole = peer.connect("discard", data=b"all", fin=True, cookie=second, voiding=True)
    whole.ask()
    peer.begin("discard", data=b"too late", cookie=first)
    peer.wait(PAUSE_S)
    whole.release()


@case("STP-CC-035", "STP-CC-036", "STP-CC-038", "STP-CC-012", "STP-CC-041")
def test_idle_cookies_grow_old(peer: Peer) -> None:
    """A cookie opens a connection for 600 s, and is remembered for 900 s once it has.

    One that is too old does not end a connection between the same ports either.
    """

    def fresh() -> tuple[bytes, float]:
        cookie = peer.fresh_cookie()
        return cookie, peer.now() - peer.rtt

    def wait_until(time: float) -> None:
        """Wait so that what is sent next arrives ``time`` seconds after the case began.

        The time at which a cookie was made is given as if there were no way back from the IUT.
        """
        peer.wait(time - peer.now())

    first, made = fresh()
    used = peer.connect("discard", cookie=first)
    used.release()
    (young, born), (unused, given) = fresh(), fresh()
    wait_until(born + 600.0 - EDGE_S)
    aging = peer.connect("discard", cookie=young)
    wait_until(given + 600.0 + EDGE_S)
    peer.begin("discard", data=b"too old", cookie=unused)
    peer.wait(peer.rtt + PAUSE_S)
    send_foreign_begin(peer, aging, unused, data=b"too old")
    peer.wait(peer.rtt + PAUSE_S)
    aging.ask()
    aging.abort()
    wait_until(made + 900.0 - EDGE_S)
    used.begin(b"")
    wait_until(made + 905.0)
    used.begin(b"")
    peer.wait(2 * peer.rtt + PAUSE_S)
    peer.connect("discard", cookie=peer.fresh_cookie()).abort()


@case("STP-CC-041", "STP-CC-012", "STP-CC-001")
def test_ready_later_call_between_the_same_ports(peer: Peer) -> None:
    """A client that has restarted calls with a cookie: its call replaces what was there."""
    old = peer.connect("echo")
    old.sds(3)
    old.deliver()
    old.polite = False
    for by in ((1 << 20) + 5, 7 - (1 << 20)):
        csn = (old.csn + by) % CSN_MODULUS
        new = peer.connect(
            "echo", source_port=old.source_port, csn=csn, data=b"anew", cookie=peer.fresh_cookie()
        )
        new.serve(lambda c=new: len(c.reception.stream) >= 4)  # type: ignore[misc]
        _send_with_tag(new, tag_of(old.csn), b"old")
        new.ask()
    new.abort()


@case("STP-CC-041", "STP-CC-012", "STP-CC-028")
def test_releasing_later_call_between_the_same_ports(peer: Peer) -> None:
    """A call with a cookie opens a connection while the IUT waits for an ENDAK.

    Whether its CSN is newer than that of the call before does not matter.
    """
    for by in (1 << 20, 7 - (1 << 20)):
        old = half_released(peer)
        send_foreign_begin(peer, old)
        peer.wait(1.5)
        csn = (old.csn + by) % CSN_MODULUS
        call_again(peer, old, data=b"anew", csn=csn).abort()
        peer.wait(PAUSE_S)


@case("STP-CC-041", "STP-CC-036", "STP-CC-038", "STP-SEC-005", "STP-SEC-006")
def test_ready_begins_that_open_nothing(peer: Peer) -> None:
    """Without a good cookie a BEGIN between the ports of a connection leaves it as it was."""
    earlier = over(peer)
    connection = peer.connect("echo")
    good = peer.fresh_cookie()
    for cookie in (None, altered(good, 0), altered(good, len(good) - 1), earlier.cookie):
        send_foreign_begin(peer, connection, cookie, data=b"forged")
        peer.wait(PAUSE_S)
        connection.sd(b"going on", poll=True)
        peer.wait(PAUSE_S)
    connection.send(codec.BEGIN, cookie=None, csn=(connection.csn - 9) % CSN_MODULUS)
    peer.wait(PAUSE_S)
    send_foreign_begin(peer, connection, good, version=1)
    peer.wait(PAUSE_S)
    connection.release()


@connected("STP-CC-015", "STP-CC-029", "STP-PF-010", "STP-PF-017", data=b"only once")
def test_ready_begin_repeated(connection: Connection) -> None:
    """A late repetition of the BEGIN is answered, and changes nothing, whatever it says."""
    connection.sds(3)
    connection.deliver()
    different: tuple[dict[str, Any], ...] = (
        {}, {"flags": FIN}, {"seq": connection.iss ^ 1}, {"n_mr": 4}, {"data": b"another"},
        {"cookie": None}, {"cookie": altered(connection.cookie or b"", 0)},
    )  # fmt: skip
    for fields in different:
        connection.begin(**{"data": b"only once", **fields})
        connection.wait(PAUSE_S)
    connection.sd()
    connection.deliver()


@case("STP-CC-012", "STP-CC-015")
def test_ready_begin_repeated_when_its_cookie_has_been_used(peer: Peer) -> None:
    """The cookie of the first BGAK has opened another connection; the next brings another one."""
    connection = peer.connect("discard", data=b"first")
    for _ in range(2):
        peer.connect("discard", cookie=peer.jar.newest()).abort()
        connection.begin(b"first")
        connection.wait(connection.rtt + PAUSE_S)
    connection.ask()
    connection.release()


@connected("STP-CC-015")
def test_ready_begin_repeated_behind_sds(connection: Connection) -> None:
    """The IUT could give more credit than it has announced; a BGAK that is repeated does not."""
    for _ in range(2):
        connection.sds(3)
        connection.wait(PAUSE_S)
        connection.begin()
        connection.wait(PAUSE_S)
        connection.ask()


@connected("STP-CC-015", "STP-DT-011", to="chargen", credit=4)
def test_ready_begin_repeated_with_more_credit(connection: Connection) -> None:
    """A BEGIN with the CSN of the one that opened the connection gives no credit any more."""
    connection.receive(4, credit=None)
    connection.wait(PAUSE_S)
    connection.begin(n_mr=64)
    connection.wait(2 * connection.rtt + PAUSE_S)
    connection.stat(n_mr=16, n_ps=0, timestamp=0)
    connection.receive(12)


def _call_often(peer: Peer) -> None:
    """Call many times, one after the other, every other time in the place of the call before."""
    for _ in range(36):
        replaced = peer.connect("discard")
        peer.connect("discard", source_port=replaced.source_port).abort()
        peer.wait(APART_S)


@case("STP-CC-010", "STP-CC-011", "STP-CC-012", "STP-CC-041")
def test_idle_many_calls(peer: Peer) -> None:
    """The IUT chooses numbers for many calls, and keeps nothing of those that are gone."""
    _call_often(peer)


@case("STP-CC-012")
def test_idle_many_calls_that_their_caller_forgets(peer: Peer) -> None:
    """Nothing is kept of a connection whose caller says that it knows none."""
    for _ in range(36):
        connection = peer.connect("discard")
        connection.end(flags=A | R, reason=2, seq=0)
        connection.closed = "the tester says that it knows no connection"
        peer.wait(APART_S)


@case("STP-CC-012")
def test_idle_more_calls_than_a_small_endpoint_holds(peer: Peer) -> None:
    """Many connections stay open: who holds no more of them refuses the next, and says why."""
    cookies = [peer.fresh_cookie() for _ in range(HELD)]
    calls = []
    for cookie in cookies:
        calls.append(peer.begin("discard", cookie=cookie))
        peer.wait(APART_S)
    peer.wait(2 * peer.rtt + PAUSE_S)
    for call in calls:
        if not call.closed:
            call.abort()


@case("STP-PL-007", "STP-PL-008")
def test_ready_silence_beside_many_calls(peer: Peer) -> None:
    """Many calls come and go beside a connection whose peer is silent; no timer of it is lost."""
    peer.connect("chargen", credit=4)
    given_up = peer.now() + GIVEN_UP_S
    _call_often(peer)
    peer.wait(max(given_up - peer.now(), PAUSE_S))


@case("STP-CC-012", "STP-CC-010")
def test_ready_two_connections_at_once(peer: Peer) -> None:
    """Streams of connections of one caller do not mix, whichever port they differ in."""
    pair = [peer.connect("echo"), peer.connect("echo")]
    third = peer.connect("discard", source_port=pair[0].source_port)
    third.sd(b"third", poll=True)
    for round_ in range(3):
        for connection, name in zip(pair, (b"first", b"second"), strict=True):
            connection.sd(name + bytes([0x30 + round_]) * 40, poll=True)
    for connection in pair:
        octets = sum(len(data) for data, _ in connection.sent.values())
        connection.serve(lambda c=connection, n=octets: len(c.reception.stream) >= n)  # type: ignore[misc]
    pair[0].release()
    pair[1].ask()
    pair[1].release()
    third.ask()
    third.release()


@case("STP-CC-012", "STP-CC-010", "STP-CC-041", "STP-SEC-007")
def test_ready_many_connections_at_once(peer: Peer) -> None:
    """Who can hold no more of them says so, and goes on with those it has.

    A call that replaces one of them finds the room of that.
    """
    first = peer.connect("discard")
    first.sds(BUSY_SDS, octets=LEAST_MAX_SD)
    first.deliver()
    for _ in range(11):
        peer.call("discard")
        peer.wait(PAUSE_S)
    peer.wait(peer.rtt)
    first.ask()
    call_again(peer, first)
    for connection in peer.open_connections:
        connection.abort()
    peer.wait(2 * peer.rtt + PAUSE_S)
    peer.connect("discard").abort()


@case("STP-CC-012", "STP-CC-021", "STP-DT-017")
def test_ready_same_ports_of_two_addresses(peer: Peer) -> None:
    """Over UDP the port below is part of the address: the connections are two.

    Directly over IP the second call replaces the first connection.
    """
    first = peer.connect("discard")
    first.sd(b"first", poll=True)
    peer.wait(peer.rtt + PAUSE_S)
    peer.udp_port += 1
    second = peer.connect("discard", source_port=first.source_port)
    second.polite = False
    for _ in range(2):
        for connection in (first, second):
            connection.sd(b"more", poll=True)
            peer.wait(peer.rtt + PAUSE_S)
    second.end(flags=A, reason=1)
    second.closed = "the tester aborted it"
    peer.wait(PAUSE_S)
    first.poll()
    peer.wait(peer.rtt + PAUSE_S)
    first.abort()


@case("STP-CC-019", "STP-CC-012")
def test_idle_begins_to_a_port_where_nobody_listens(peer: Peer) -> None:
    """They are refused with reason 3, with a good cookie and without, ten of them at once.

    Then nine in a second are. The cookie is not used by that.
    """
    for _ in range(10):
        peer.begin(UNUSED_PORT)
    peer.wait(1.5)
    for _ in range(30):
        peer.begin(UNUSED_PORT)
        peer.wait(0.11)
    peer.wait(1.0)
    cookie = peer.fresh_cookie()
    peer.begin(UNUSED_PORT, data=b"data", cookie=cookie, voiding=True)
    peer.wait(2 * peer.rtt + PAUSE_S)
    peer.connect("discard", cookie=cookie).abort()


@case("STP-CC-019", "STP-PF-003")
def test_idle_begins_of_other_versions(peer: Peer) -> None:
    """They are refused with reason 4, whatever follows their first 20 octets."""
    cookie = peer.fresh_cookie()
    for version in (0, 1, 3, 15):
        peer.prepare("discard", cookie=cookie).begin(b"data", version=version)
        peer.wait(PAUSE_S)
    peer.connect("discard", cookie=cookie).abort()
    for service in ("discard", UNUSED_PORT):
        connection = peer.prepare(service)
        begin = connection.craft(codec.BEGIN, version=1, options=bytes((9, 0, 0, 0)))
        begin["STP BEGIN"].optlen = 15
        peer.send(begin)
        peer.wait(PAUSE_S)
    peer.wait(2 * peer.rtt)
