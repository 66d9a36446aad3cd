"""STP-CG: congestion control and pacing (sections 7.3 and 7.4)."""

from __future__ import annotations

from bentpipe_conformance.case import case
from bentpipe_conformance.stp.peer import Peer

AMPLE = 2048
"""SDs of credit that no window of these cases reaches."""


@case("STP-CG-001", "STP-CG-002", "STP-CG-003", "STP-CG-008")
def test_ready_stream_begins(peer: Peer) -> None:
    """A stream begins with a small window, and grows by what arrives, spread over time."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(120, credit=AMPLE)
    connection.abort()


@case("STP-CG-002", "STP-CG-005", "STP-CG-006")
def test_ready_one_loss_in_a_large_window(peer: Peer) -> None:
    """One loss halves the window; the lost SD is sent at once all the same."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(280, lose=[70], credit=AMPLE)
    connection.abort()


@case("STP-CG-005")
def test_ready_several_losses_in_a_window(peer: Peer) -> None:
    """Losses of one round trip halve the window once, losses of the next once more."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(220, lose=[60, 64, 70, 110, 111], credit=AMPLE)
    connection.abort()


@case("STP-CG-004")
def test_ready_long_after_a_loss(peer: Peer) -> None:
    """After a loss the window grows by an SMSS in a round trip."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(260, lose=[24], credit=AMPLE)
    connection.abort()


@case("STP-CG-007")
def test_ready_stats_return_after_two_silences(peer: Peer) -> None:
    """After two silences a STAT for one SD permits next to nothing."""
    connection = peer.connect("chargen", credit=AMPLE)
    connection.receive(20, credit=AMPLE)
    known = connection.reception.vr_r
    started = peer.now()
    while peer.now() < started + 12.0:
        for arrival in connection.collect(1.0):
            if arrival.has_data:
                connection.hold(arrival)
    first = connection.highest
    connection.stat(n_r=min(known + 1, first), elements=(), n_mr=first + AMPLE)
    connection.collect(2 * peer.rtt + 1.0)
    connection.stat(n_mr=first + AMPLE)
    connection.collect(peer.rtt + 0.5)
    connection.abort()
