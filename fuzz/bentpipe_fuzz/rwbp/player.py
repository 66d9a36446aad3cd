"""The tester's side of an RWBP conversation: what TCP's does, options, and a link's gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bentpipe_conformance.protocols.rwbp.credit import EPOCHS
from bentpipe_conformance.protocols.rwbp.gateway import AMPLE, Gateway
from bentpipe_conformance.protocols.rwbp.peer import Peer
from bentpipe_conformance.protocols.tcp import connection as tcp_connection

from bentpipe_fuzz.campaign.player import verb, verbs_of
from bentpipe_fuzz.tcp import player as tcp

OPTIONS = 40
"""Octets of all options of a segment (RFC 9293 section 3.1)."""


class Player(tcp.Player):
    """See :class:`.tcp.Player`; ``option`` of an offer is hexadecimal."""

    peer: Peer

    @verb
    def ring(self, role: str = "send", **offer: Any) -> None:
        """See TCP's."""
        super().ring(role, **_offered(offer))

    @verb
    def reopen(self, ahead: int = 1, service: str | None = None, **offer: Any) -> None:
        """See TCP's."""
        super().reopen(ahead, service, **_offered(offer))

    def _syn(
        self, service: str | int, odd: Mapping[str, Any] | None, offer: Mapping[str, Any]
    ) -> tcp_connection.Connection:
        return super()._syn(service, odd, _offered(offer))

    # -- the gateway of the implementation's link, where it has one

    @verb
    def link(self) -> None:
        """Go where a link rate or a gateway delays what the implementation sends."""
        self.peer.behind_the_link()

    @verb
    def leave(self) -> None:
        """End what is open behind the link, and go back where nothing delays it."""
        self.peer.leave_the_link()
        self.connection = next(iter(self.peer.open_connections[-1:]), None)

    @verb
    def grant(self, packets: int = AMPLE, repeated: bool = True) -> None:
        """Permit so many packets more, and repeat that from now on or be silent."""
        gateway = self.peer.gateway
        if gateway is not None:
            gateway.grant(max(packets, 0))
            gateway.silent = not repeated

    @verb
    def share(self, seconds: float = 1.0, credit: int = 0) -> None:
        """Receive on all connections for a while, with so many packets of credit at a time."""
        self.peer.share(min(seconds, self.longest), max(credit, 0))

    @verb
    def epoch(self, packets: int = 0, newer: int = 1, arrived: int = 0) -> None:
        """Begin to count anew in a newer epoch, in which so many packets are permitted."""
        gateway = self.peer.gateway
        if gateway is not None:
            gateway.restart(max(packets, 0), arrived=arrived, epochs=newer % EPOCHS or 1)

    @verb
    def frame(
        self, epoch: int = 0, arrived: int = 0, limit: int = 0, odd: Mapping[str, Any] | None = None
    ) -> None:  # fmt: skip
        """A frame of the gateway, which may be odd.

        Args:
            epoch: distance from the present one.
            arrived: packets more than have arrived.
            limit: packets more than are permitted.
            odd: ``first``, ``queue``, ``octets``, ``sport``, ``dport``, ``checksum`` and
                ``gateway``, the source address.
        """
        gateway: Gateway | None = self.peer.gateway
        if gateway is not None:
            gateway.tell(
                epoch=gateway.epoch + epoch, arrived=gateway.arrived + arrived,
                limit=gateway.limit + limit, **(odd or {}),
            )  # fmt: skip

    @verb
    def mute(self) -> None:
        """Send no more frames."""
        if self.peer.gateway is not None:
            self.peer.gateway.stop()

    @verb
    def miss(self, packets: int = 1) -> None:
        """Take so many packets that have arrived for lost before the gateway."""
        gateway = self.peer.gateway
        if gateway is not None:
            gateway.arrived = max(0, gateway.arrived - max(packets, 0))


def _offered(offer: Mapping[str, Any]) -> dict[str, Any]:
    """An offer with its option, if any, as octets: the words for which the others leave room."""
    found = dict(offer)
    if "option" in found:
        others = 4 + 4 * found.get("sack", True) + 12 * found.get("timestamps", False)
        others += 4 * (found.get("window_scale") is not None)
        octets = bytes.fromhex(found["option"])[: OPTIONS - others]
        found["option"] = octets + bytes(-len(octets) % 4)
    return found


VERBS = verbs_of(Player)
