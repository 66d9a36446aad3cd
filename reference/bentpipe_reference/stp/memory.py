"""The memory of all receivers together: credit is a promise, and promises are bounded."""

from __future__ import annotations

from bentpipe_reference.stp.config import EARLY_CREDIT, StpConfig

_FIRST_SDS = 64
"""The most credit of a connection that has delivered nothing yet, in SDs."""

_LARGEST_PART = 8
"""No receiver is given more than this part of what is free at once."""


class Memory:
    """The octets that an endpoint's receivers may still promise (STP/1 section 10).

    Attributes:
        free: octets not promised.
    """

    def __init__(self, octets: int) -> None:
        self.free = octets

    def has_room(self, config: StpConfig, returned: int = 0) -> bool:
        """Whether one more connection can be given the least credit (STP-CC-029).

        ``returned`` octets are given back before.
        """
        return self.free + returned >= EARLY_CREDIT * config.own_max_sd


class Share:
    """The SDs for which one connection's receiver may promise room.

    It begins small, and grows while the user takes what arrives, so that a peer that sends nothing
    occupies little.

    Args:
        memory: what it is a share of.
        config: the largest credit and the size of an SD.

    Attributes:
        sds: the size of the share.
    """

    def __init__(self, memory: Memory, config: StpConfig) -> None:
        self.sds = 0
        self._memory = memory
        self._most = config.credit
        self._size = config.own_max_sd
        self._enlarge(_FIRST_SDS)
        if self.sds < EARLY_CREDIT:
            self._take(EARLY_CREDIT - self.sds)

    @property
    def octets(self) -> int:
        """What is promised."""
        return self.sds * self._size

    def grow(self, taken: int) -> int:
        """The share after the user has taken ``taken`` SDs in all.

        Twice that is enough for a sender whose window doubles in each round trip.
        """
        if self.sds < self._most:
            self._enlarge(_FIRST_SDS + 2 * taken)
        return self.sds

    def give_back(self) -> None:
        """The connection is gone."""
        self._memory.free += self.octets
        self.sds = self._most = 0

    def _enlarge(self, wanted: int) -> None:
        possible = self._memory.free // _LARGEST_PART // self._size
        self._take(max(0, min(min(wanted, self._most) - self.sds, possible)))

    def _take(self, sds: int) -> None:
        self.sds += sds
        self._memory.free -= sds * self._size
