"""Flow control and buffers (PEP-FB, section 7)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.protocols.pep.cases.steps import DEAF, quiet, transfer
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Peer, Through
from bentpipe_conformance.protocols.tcp.codec import ACK

FULL = 500_000
"""Octets that no buffer of a usual box takes; a larger one is filled as far as it goes."""

SLOW_S, PAUSE_S = 20.0, 17.0
"""Seconds: the latter long enough for probes that come less and less."""


def _fill(peer: Peer, *, back: bool = False) -> tuple[Through, End, End]:
    """A connection with a receiver that does not read; its sender sends as much as it may."""
    through = peer.connect(DEAF, DEAF)
    ends = (through.server, through.client) if back else (through.client, through.server)
    sender, receiver = ends
    receiver.stop()
    sender.write(peer.octets(FULL))
    peer.wait(SLOW_S)
    return through, sender, receiver


@case("PEP-FB-001", "PEP-FB-002", "PEP-FB-003", "PEP-FB-004", "PEP-FB-006", "PEP-FB-010")
def test_established_server_stops_and_goes_on(peer: Peer) -> None:
    """The server does not read for 20 s."""
    _, sender, receiver = _fill(peer)
    receiver.go_on()
    peer.run(lambda: len(receiver.got) >= FULL, 70.0)
    sender.close()
    quiet(peer)


@case("PEP-FB-001", "PEP-FB-002", "PEP-FB-004")
def test_established_client_stops_and_goes_on(peer: Peer) -> None:
    """The client does not read for 20 s."""
    _, sender, receiver = _fill(peer, back=True)
    receiver.go_on()
    peer.run(lambda: len(receiver.got) >= FULL, 70.0)
    sender.close()
    quiet(peer)


@case("PEP-FB-002")
def test_established_server_acknowledges_nothing(peer: Peer) -> None:
    """The server's window is wide, but for 20 s no acknowledgment of it arrives."""
    through = peer.connect(server=Offer(buffer=200_000))
    transfer(peer, through.client, through.server, 300_000)
    through.server.acknowledging = False
    through.client.write(peer.octets(FULL))
    peer.wait(SLOW_S)
    through.server.acknowledging = True
    through.server.acknowledge()
    peer.run(lambda: len(through.server.got) >= FULL + 300_000, 70.0)
    quiet(peer)


def _reads_and_writes(peer: Peer, end: End) -> None:
    end.read_all()
    end.write(peer.octets(400))


def _reads_and_ends(_: Peer, end: End) -> None:
    end.read_all()
    end.close()


def _reads_and_repeats(peer: Peer, end: End) -> None:
    """Its acknowledgment comes thrice, as duplicates do."""
    end.read_all()
    for _ in range(3):
        end.acknowledge()
        peer.wait(0.01)


OPENINGS: tuple[Callable[[Peer, End], None], ...] = (
    _reads_and_writes, _reads_and_ends, _reads_and_repeats,
)  # fmt: skip
"""How an end says that it has room again: in a packet of each kind."""


@case("PEP-FB-010", "PEP-FB-004")
def test_stopped_window_opens_in_each_kind_of_packet(peer: Peer) -> None:
    """A window that was closed opens in a segment with octets, with a FIN, or in duplicates."""
    for back in (False, True):
        for opens in OPENINGS:
            through = peer.connect(DEAF, DEAF)
            ends = (through.server, through.client) if back else (through.client, through.server)
            sender, receiver = ends
            receiver.stop()
            sender.write(peer.octets(20_000))
            peer.wait(PAUSE_S + 2 * peer.rtt)
            opens(peer, receiver)
            peer.run(lambda it=receiver: len(it.got) >= 20_000, 70.0)  # type: ignore[misc]
            for end in ends:
                end.close()
            peer.run(lambda it=ends: all(end.is_over for end in it), 30.0)  # type: ignore[misc]
    quiet(peer)


@case("PEP-FB-005")
def test_stopped_sender_probes(peer: Peer) -> None:
    """The sender probes the window of the box that is closed."""
    _, sender, _ = _fill(peer)
    for _ in range(3):
        sender.segment(ACK, sender.edge, bytes(sender.written[sender.edge : sender.edge + 1]))
        peer.wait(2.0)
    quiet(peer)


@case("PEP-FB-006")
def test_stopped_for_minutes(peer: Peer) -> None:
    """Servers and clients do not read for ten minutes, half closed or not, and answer probes."""
    found = []
    for way, half_closed in product((0, 1), (False, True)):
        through = peer.connect(DEAF, DEAF)
        receiver, sender = (through.server, through.client)[:: -1 if way else 1]
        receiver.stop()
        sender.write(peer.octets(20_000))
        if half_closed:
            receiver.close()
        found.append(receiver)
    peer.wait(600.0)
    for receiver in found:
        receiver.go_on()
    peer.run(lambda: all(len(it.got) >= 20_000 for it in found), 60.0)
    quiet(peer)


@case("PEP-FB-009")
def test_established_server_reads_little(peer: Peer) -> None:
    """The server's window opens by 600 octets at a time."""
    _, sender, receiver = _fill(peer)
    for _ in range(60):
        receiver.read(600)
        peer.wait(0.7)
    receiver.go_on()
    peer.run(lambda: len(receiver.got) >= FULL, 70.0)
    sender.close()
    quiet(peer)


@case("PEP-TR-007", "PEP-TR-008")
def test_established_sizes_and_scales_differ(peer: Peer) -> None:
    """One end takes segments of 536 octets and has no scale, the other larger ones and has one."""
    small, large = Offer(mss=536, scale=None), Offer(mss=1460, scale=7, buffer=200_000)
    for client, server in ((small, large), (large, small)):
        through = peer.connect(client, server)
        transfer(peer, through.client, through.server, 100_000)
        transfer(peer, through.server, through.client, 100_000)


@case("PEP-TR-007")
def test_established_data_beside_reports(peer: Peer) -> None:
    """Full segments go to an end of which octets are missing, so that each reports what is held."""
    small, large = Offer(mss=536), Offer()
    for client, server, back in ((small, large, False), (large, small, True)):
        through = peer.connect(client, server)
        ends = through.client, through.server
        end, other = ends[::-1] if back else ends
        transfer(peer, other, end, 2000)
        late = peer.octets(1500)
        end.segment(ACK, len(end.written) + 500, late[500:1000])
        other.write(peer.octets(60_000))
        peer.wait(5.0)
        end.write(late)
        peer.run(lambda it=other: len(it.got) >= 1500, 30.0)  # type: ignore[misc]


@case("PEP-TR-008")
def test_established_small_window_unscaled(peer: Peer) -> None:
    """An end without scale and with a small window reads nothing for a while."""
    narrow, wide = Offer(scale=None, buffer=6000), Offer(scale=7, buffer=200_000)
    for client, server, back in ((narrow, wide, True), (wide, narrow, False)):
        through = peer.connect(client, server)
        ends = (through.server, through.client) if back else (through.client, through.server)
        ends[1].stop()
        ends[0].write(peer.octets(30_000))
        peer.wait(4.0)
        ends[1].go_on()
        peer.run(lambda ends=ends: len(ends[1].got) >= 30_000, 60.0)  # type: ignore[misc]
    quiet(peer)
