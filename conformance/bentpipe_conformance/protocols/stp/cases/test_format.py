"""STP-PF: the format of packets (section 3)."""

from __future__ import annotations

from socket import inet_aton

from bentpipe_reference.common.checksum import ones_complement_residue

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.codec import UDP
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.faults import send_broken
from bentpipe_conformance.protocols.stp.cases.steps import (
    PAUSE_S,
    connected,
    half_released,
    holding,
    summoned,
    widen,
)
from bentpipe_conformance.protocols.stp.codec import option_field
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.cookies import altered
from bentpipe_conformance.protocols.stp.numbers import tag_of
from bentpipe_conformance.protocols.stp.peer import CALL_ANEW, Peer

EFFECT_S = 2.5
"""Seconds after which a packet that counts has shown its effect for sure."""

REPEATED_S = 6.0
"""Seconds behind the broken packets until the IUT has repeated what it waits with."""

UNKNOWN = bytes((0xAA, 4, 1, 2, 0xAB, 2, 0, 0))
"""Options of kinds nobody knows, and padding."""


@connected(
    "STP-PF-001", "STP-PF-002", "STP-PF-005", "STP-PF-006", "STP-PF-009", "STP-PF-010",
    to="chargen", max_sd=800,
)  # fmt: skip
def test_ready_chargen_transfer_with_loss(connection: Connection) -> None:
    """Every packet of a transfer with losses has the form the specification gives it."""
    connection.receive(60, losing=[7, 20, 21])


@case("STP-PF-006")
def test_ready_udp_checksum_that_comes_out_as_zero(peer: Peer) -> None:
    """The tester's UDP port is such that UDP's checksum of a STAT with an empty list would be zero.

    It is sent as all ones then, as zero says that there is none (RFC 768).
    """
    below = peer.carriage()
    if below["protocol"] == UDP:
        addresses = inet_aton(peer.address) + inet_aton(peer.iut_address)
        size = 8 + codec.LEAST[codec.STAT]
        # An STP packet sums up to nothing itself; UDP's length counts twice.
        rest = UDP + 2 * size + below["udp_dport"] + ones_complement_residue(addresses)
        peer.udp_port = -rest % 0xFFFF or 0xFFFF
    connection = peer.connect("discard")
    for _ in range(3):
        connection.ask()
    connection.abort()


@connected("STP-PF-001", "STP-PF-002", "STP-PF-005", "STP-PF-006", "STP-PF-011", "STP-PF-013")
def test_ready_sds_arrive_with_gaps(connection: Connection) -> None:
    """The USTAT names the run that was skipped, and the STAT's list every run."""
    connection.sds(9, skip=[2, 3, 6])
    connection.wait(PAUSE_S)
    connection.ask()
    connection.deliver()


@connected("STP-PF-012")
def test_ready_every_other_sd_missing(connection: Connection) -> None:
    """A list longer than MaxSTAT is sent in several STATs, none longer than the path carries."""
    widen(connection, 160)
    first = connection.vt_s
    for _ in range(4):
        connection.sds(40, octets=8, skip=range(first + 1, first + 160, 2))
        connection.wait(PAUSE_S)
    connection.poll()
    connection.discard(2 * connection.rtt + 1.0)


@case("STP-PF-003", "STP-PF-007")
def test_idle_broken_packets_arrive(peer: Peer) -> None:
    """Broken packets of every type draw nothing where there is no connection."""
    connection = peer.prepare("discard", cookie=peer.fresh_cookie())
    connection.peer_csn = peer.random.getrandbits(32)
    send_broken(connection)
    peer.wait(2 * peer.rtt)


@holding("STP-PF-003", "STP-PF-007", "STP-SEC-003", losing=[3, 5])
def test_ready_broken_packets_arrive(connection: Connection, base: int) -> None:  # noqa: ARG001
    """Broken packets of every type are discarded, and the connection goes on.

    The IUT has used up its credit and two of its SDs are lost, so that a STAT or USTAT that it
    took would show.
    """
    connection.ask()
    send_broken(connection)
    for _ in range(2):
        connection.poll()
        connection.wait(PAUSE_S)
    connection.sd()
    connection.deliver()


@case("STP-PF-003", "STP-PF-007")
def test_releasing_broken_packets_arrive(peer: Peer) -> None:
    """Broken packets of every type leave the wait for the ENDAK as it was."""
    csn = peer.next_csn()
    send_broken(half_released(peer), csn=csn, tag=tag_of(csn), cookie=None, max_sd=None)
    peer.wait(2 * peer.rtt + REPEATED_S)


@summoned("STP-PF-003", "STP-PF-007", role="send")
def test_calling_broken_packets_arrive(connection: Connection) -> None:
    """Broken packets of every type leave the call as it was."""
    send_broken(connection)
    connection.wait(REPEATED_S)
    connection.bgak()
    connection.receive(8)


@case("STP-PF-018", "STP-PF-009", "STP-PF-016", "STP-CC-036", "STP-CC-012")
def test_idle_begins_with_odd_options(peer: Peer) -> None:
    """Of several options of a kind the first counts, and none of a length that it cannot have."""
    small, long = option_field(600), bytes((1, 6, 5, 120, 5, 120, 0, 0))
    short_cookie, long_cookie = bytes((2, 9, *range(7), 0, 0, 0)), bytes((2, 35, *range(33), 0))
    for odd in (small, long, short_cookie, long_cookie + small, bytes((1, 2)) + bytes(2)):
        max_sd = None if odd == long_cookie + small else 1000
        connection = peer.connect("chargen", options=odd, max_sd=max_sd)
        connection.receive(12)
        connection.abort()
    # Nor does a large credit beside optlen change where the options end.
    connection = peer.connect("chargen", credit=(1 << 22) + 8, max_sd=0xFFFF)
    connection.receive(12)
    connection.abort()
    good = peer.fresh_cookie()
    peer.begin("discard", options=option_field(None, altered(good, 0)), cookie=good)
    peer.wait(2 * peer.rtt + PAUSE_S)
    # The cookie that counts is the first one, though another follows it.
    options = option_field(None, good) + option_field(None, bytes(16))
    last = peer.prepare("discard", options=options, max_sd=None)
    last.begin()
    last.await_answer("BGAK")
    last.abort()


@case("STP-PF-003", "STP-PF-008", "STP-CC-036")
def test_idle_begin_with_options(peer: Peer) -> None:
    """A BEGIN with unknown options opens a connection; one whose options do not fit does not."""
    cookie = peer.fresh_cookie()
    broken = peer.prepare("chargen", options=bytes((9, 8, 5, 0)), max_sd=None)
    broken.begin()
    peer.wait(2 * peer.rtt + PAUSE_S)
    connection = peer.connect("chargen", options=UNKNOWN, max_sd=800, cookie=cookie)
    connection.receive(12)
    connection.abort()
    # No option at all, and one that ends where the field does.
    peer.begin("discard", max_sd=None)
    peer.wait(2 * peer.rtt + PAUSE_S)
    last = option_field(800, peer.fresh_cookie()) + bytes((0, 0, 0xAC, 2))
    connection = peer.prepare("chargen", options=last, max_sd=None)
    connection.begin()
    connection.await_answer("BGAK")
    connection.abort()


@case("STP-PF-004", "STP-CC-012", "STP-CC-022")
def test_ready_reserved_bits_set(peer: Peer) -> None:
    """Reserved flags and fields of all types change nothing."""
    connection = peer.prepare("echo", cookie=peer.fresh_cookie())
    connection.begin(flags=0b1100)
    connection.await_answer("BGAK")
    connection.inbox.clear()
    connection.sd(flags=0b1110)
    connection.sd(poll=True, flags=0b0100, reserved=(0xFF,))
    connection.wait(PAUSE_S)
    connection.poll(flags=0b1111, reserved=(0xA5,))
    connection.serve(lambda: connection.reception.vr_r >= 2, answer=lambda _poll, _nth: ())
    connection.send(codec.STAT, flags=0b1111, reserved=(0xFF, 0xFF))
    connection.wait(PAUSE_S)
    connection.begin(flags=0b1100)
    connection.wait(PAUSE_S)
    connection.end(flags=codec.A | 0b0011, reason=1, reserved=(0xFFFFFF,))
    connection.closed = "the tester aborted it"
    peer.wait(2 * peer.rtt + PAUSE_S)


@holding("STP-PF-004", losing=[3])
def test_ready_ustat_with_reserved_bits_arrives(connection: Connection, base: int) -> None:
    """A USTAT with reserved bits has a lost SD sent again."""
    connection.ustat(base + 3, base + 4, flags=0b1111, reserved=(0xFF, 0xFF, 0xFF))
    connection.wait(2 * connection.rtt + EFFECT_S)


@holding("STP-PF-004", losing=[3])
def test_ready_stat_with_reserved_bits_arrives(connection: Connection, base: int) -> None:
    """So does a STAT; behind another loss the window might have no room."""
    connection.stat(n_r=base + 3, flags=0b1111, reserved=(0xFF,) * 8)
    connection.wait(2 * connection.rtt + EFFECT_S)


@case("STP-PF-004")
def test_releasing_endak_with_reserved_bits(peer: Peer) -> None:
    """An ENDAK with reserved flags ends the wait for it."""
    half_released(peer).send(codec.ENDAK, flags=0b1111)
    peer.wait(2 * peer.rtt + 4.0)


@connected("STP-PF-009", "STP-PF-010", to="chargen", max_sd=None)
def test_idle_begin_without_max_sd(connection: Connection) -> None:
    """Without MaxSD from the tester no SD carries more than 512 octets."""
    connection.receive(10)


@case("STP-PF-009", "STP-PF-010", "STP-PF-016", needs=("active_open",))
def test_calling_early_data(peer: Peer) -> None:
    """No packet carries more than the MaxSD that came with the cookie, and then with the BGAK.

    Nor more than fits into a packet of the path.
    """
    for brought, accepted in (
        (None, 700), (600, None), (100, 1400), (0xFFFF, 0xFFFF), (1400, 600)
    ):  # fmt: skip
        connection = peer.summon("send", anew=False)
        if connection.begun.cookie is None:
            connection.reject(CALL_ANEW, max_sd=brought)
            connection = peer.await_anew(connection)
        peer.wait(PAUSE_S)
        connection.bgak(max_sd=accepted)
        connection.receive(10)
        connection.abort()
        peer.wait(PAUSE_S)


@case("STP-PF-012", "STP-PF-011")
def test_ready_list_of_exactly_max_stat(peer: Peer) -> None:
    """Lists just as long as a STAT can be, and a little longer, with their end held or missing."""
    for missing in (33, 34, 35):
        for ends_missing in (False, True):
            connection = peer.connect("discard")
            widen(connection, 2 * missing + 4)
            first = connection.vt_s
            lost = range(first, first + 2 * missing + 1, 2)
            for count in (missing, missing, int(ends_missing)):
                connection.sds(count, octets=8, skip=lost)
                connection.wait(PAUSE_S)
            connection.ask()
            connection.wait(PAUSE_S)  # for the rest of the list
            connection.abort()
