"""The tester as the gateway of the IUT's link: it grants credit, forges it, and falls silent."""

from __future__ import annotations

from socket import inet_aton
from typing import Any

from bentpipe_conformance.engine.peer import BasePeer
from bentpipe_conformance.protocols.rwbp.credit import EPOCHS, MODULUS, build_frame

REFRESH_S = 0.1
"""RWBP-LC-009."""

AMPLE = 1 << 20
"""Packets that no case uses up."""


class Gateway:
    """Counts as section 9.4 says, grants what a script wants, and repeats it.

    The counts of a proxy outlive a case. So the first epoch of a case is the clock's second, which
    is newer than all before; a script may raise it as long as it does not do so each second.

    Args:
        tester: the tester.
        obeyed: whether the IUT obeys a gateway at all; to others it says nothing.

    Attributes:
        epoch, arrived, limit: what the next frame says.
        silent: whether frames are not repeated.
        proxy: the address of the IUT to which the frames go.
        source: the same as it stands in its packets.
        strays: whether a frame of another epoch has been sent, which the proxy may have taken.
    """

    def __init__(self, tester: BasePeer[Any, Any], *, obeyed: bool = True) -> None:
        self.epoch = int(tester.now()) % EPOCHS
        self.arrived = 0
        self.limit = 0
        self.silent = True
        self.proxy = tester.iut_address
        self.source = inet_aton(self.proxy)
        self.strays = False
        self._tester = tester
        self._obeyed = obeyed
        self._due = tester.now()

    @property
    def due(self) -> float | None:
        """When the frame is repeated, on the lane's clock; None while the gateway is silent."""
        return None if self.silent else self._due

    @property
    def ahead(self) -> float:
        """Seconds until the clock's epoch is newer than the present one."""
        now = self._tester.now()
        behind = (self.epoch - int(now)) % EPOCHS
        return behind + 1 - now % 1 if behind < EPOCHS // 2 else 0.0

    def took(self) -> None:
        """A TCP packet of the proxy's has arrived."""
        self.arrived += 1

    def tell(self, *, pause: float = 0.0, **odd: Any) -> None:
        """Send a frame, and wait; what is odd about it is an argument of :func:`.build_frame`."""
        fields = {"epoch": self.epoch, "arrived": self.arrived, "limit": self.limit, **odd}
        self.strays = self.strays or fields["epoch"] != self.epoch
        if self._obeyed:
            self._tester.send(build_frame(self.proxy, **fields))
        if not odd:
            self._due = self._tester.now() + REFRESH_S
        if pause:
            self._tester.wait(pause)

    def grant(self, packets: int, *, pause: float = 0.0) -> None:
        """Permit so many packets more, repeat that from now on, and wait."""
        self.limit += packets
        self.silent = False
        self.tell(pause=pause)

    def restart(
        self, packets: int, *, arrived: int = 0, epochs: int = 1, pause: float = 0.0
    ) -> None:
        """Forget all counts; in a newer epoch so many packets are permitted."""
        self.epoch = (self.epoch + epochs) % EPOCHS
        self.arrived, self.limit = arrived % MODULUS, arrived + packets
        self.silent = False
        self.tell(pause=pause)

    def return_to_epoch(self) -> None:
        """Lead a proxy that has taken another epoch back to the present one, round the circle.

        A frame of an older epoch that is late may be newer than what has been begun meanwhile, and
        all that the gateway says then is old. Of three steps that lead round one is newer.
        """
        if self.strays:
            for step in (EPOCHS // 3, 2 * EPOCHS // 3):
                self.tell(epoch=(self.epoch + step) % EPOCHS)
            self.tell()
            self.strays = False

    def stop(self, *, pause: float = 0.0) -> None:
        """Fall silent, and wait."""
        self.silent = True
        if pause:
            self._tester.wait(pause)
