"""Entering fast retransmit: duplicates below, at and above the threshold."""

from __future__ import annotations

from bentpipe_conformance.case import case
from bentpipe_conformance.peer import Peer


@case("SNR-FR-001", "SNR-FR-002")
def test_established_third_duplicate_acknowledgment(peer: Peer) -> None:
    """Fast retransmit starts at the third duplicate, not before.

    Without SACK, one segment of a window is lost; the three that follow it each cause a
    duplicate acknowledgment.
    """
    connection = peer.connect(sack=False)
    connection.receive(40, losing=[14])
