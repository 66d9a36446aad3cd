"""STP-SEC: robustness (section 10)."""

from __future__ import annotations

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.cases.steps import PAUSE_S, connected, types
from bentpipe_conformance.protocols.stp.codec import with_checksum
from bentpipe_conformance.protocols.stp.connection import Connection
from bentpipe_conformance.protocols.stp.crafting import carried
from bentpipe_conformance.protocols.stp.numbers import CSN_MODULUS, tag_of
from bentpipe_conformance.protocols.stp.peer import Peer


@case("STP-SEC-001", "STP-CC-036")
def test_idle_begin_of_a_stranger_that_repeats_itself(peer: Peer) -> None:
    """Each BEGIN of a caller without a cookie draws one small packet, and nothing comes later."""
    stranger = peer.begin("chargen")
    stranger.polite = False
    for _ in range(4):
        peer.wait(PAUSE_S)
        stranger.begin()
        peer.wait(PAUSE_S)
        stranger.poll()
    peer.wait(2 * peer.rtt + 10.0)


@case("STP-SEC-001", "STP-CC-020")
def test_idle_packets_of_strangers(peer: Peer) -> None:
    """Fifty callers, and strays from fifty ports, draw one packet each.

    There are no more strays in a second than an endpoint has to answer, ten of them at once.
    """
    for _ in range(10):
        peer.prepare("discard").poll(odd=True)
    peer.wait(1.5)
    for _ in range(50):
        peer.begin("discard", data=b"of a stranger")
        stray = peer.prepare("discard")
        stray.poll(odd=True)
        stray.send(codec.SD, odd=True, data=b"stray")
        peer.wait(0.11)
    connection = peer.connect("discard")
    connection.ask()
    connection.abort()


@connected("STP-SEC-003")
def test_ready_random_octets_arrive(connection: Connection) -> None:
    """Octets without sense, with right checksums and without, leave the connection as it was."""
    connection.sd(b"before")
    connection.ask()
    for length in (0, 1, 4, 5, 11, 12, 13, 19, 24, 60, 400, 1400):
        octets = connection.peer.random.randbytes(length)
        like = connection.compose(codec.SD)
        connection.peer.send(carried(like, octets))
        right = with_checksum(like, octets) if length >= 10 else octets
        connection.peer.send(carried(like, right))
        connection.wait(0.05)
    _random_fields(connection)
    for _ in range(2):
        connection.wait(PAUSE_S)
        connection.poll()
    connection.wait(PAUSE_S)
    connection.sd(b"after")
    connection.ask()


def _random_fields(connection: Connection) -> None:
    """Every type with fields drawn at random and the wrong tag or CSNs."""
    draw = connection.peer.random
    for kind in types("BGAK BGREJ END ENDAK SD SDP POLL STAT USTAT"):
        for _ in range(4):
            raw = {
                "tag": tag_of(connection.csn) ^ 1 + draw.getrandbits(8),
                "seq": draw.getrandbits(24),
            }
            if kind in (codec.BGAK, codec.END):
                raw |= {"csn": draw.getrandbits(32), "peer_csn": draw.getrandbits(32)}
            connection.send(kind, odd=True, **raw)
            connection.peer.wait(0.02)


@connected("STP-SEC-003", "STP-SEC-005", to="chargen", credit=64)
def test_ready_reports_that_name_half_of_all_numbers(connection: Connection) -> None:
    """STATs and USTATs with runs of millions of numbers are discarded, and data goes on."""
    connection.ask()
    connection.receive(12)
    connection.stat(elements=(connection.highest + 5, connection.highest + (1 << 22)), odd=True)
    connection.wait(PAUSE_S)
    connection.ustat(connection.highest + 1, connection.highest + (1 << 22), odd=True)
    connection.wait(PAUSE_S)
    connection.stat(n_r=connection.highest + 1000, odd=True)
    connection.receive(40)
    connection.poll()
    connection.discard(2 * connection.rtt + PAUSE_S)


@connected("STP-SEC-005")
def test_ready_forged_packets_arrive(connection: Connection) -> None:
    """Packets with a wrong tag or wrong CSNs neither end nor change a connection."""
    connection.sd(b"x" * 100)
    connection.ask()
    wrong = (connection.csn + 1) % CSN_MODULUS
    own = connection.peer_csn or 0
    aborts = {"flags": codec.A, "reason": 1}
    connection.polite = False
    for kind, raw in (
        (codec.END, {**aborts, "peer_csn": (own + 1) % CSN_MODULUS}),
        (codec.END, {**aborts, "csn": wrong}),
        (codec.END, {**aborts, "peer_csn": own & 0xFFFF}),
        (codec.ENDAK, {}),
        (codec.BGREJ, {"reason": 3}),
        (codec.BGREJ, {"reason": 6, "cookie": bytes(16)}),
        (codec.BGAK, {}),
        (codec.BGAK, {"csn": (connection.csn + 7) % CSN_MODULUS}),
        (codec.POLL, {"csn": connection.csn ^ 1 << 16, "n_ps": connection.vt_ps + 1}),
        (codec.SD, {"tag": wrong & 0xFFFF}),
        (codec.STAT, {"tag": wrong & 0xFFFF}),
    ):
        connection.send(kind, odd=True, **raw)
        connection.wait(PAUSE_S)
    connection.sd(b"y" * 100)
    connection.ask()


@connected("STP-SEC-005", to="chargen", credit=64)
def test_ready_stat_ahead_of_everything_sent(connection: Connection) -> None:
    """A STAT that acknowledges what was never sent is discarded; the sender goes on."""
    connection.receive(8)
    connection.wait(PAUSE_S)
    connection.stat(n_r=connection.highest + 200, n_mr=connection.highest + 400, odd=True)
    connection.wait(PAUSE_S)
    connection.ask()
    connection.receive(40)
