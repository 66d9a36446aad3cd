"""Everything a host is made from: settings and parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bentpipe_reference.common.parts import with_part
from bentpipe_reference.toy.host import ToyHost
from bentpipe_reference.toy.parts import TRUE_PARTS, Parts


@dataclass(frozen=True, slots=True)
class Setup:
    """What the self-test changes.

    Attributes:
        timeout_s: seconds until a packet is sent again.
        parts: the classes of every connection.
    """

    timeout_s: float = 2.0
    parts: Parts = TRUE_PARTS

    def make(self, address: str, seed: int) -> ToyHost:
        """A host at a dotted IPv4 address."""
        return ToyHost(address, self.timeout_s, self.parts, seed)

    def with_part(self, part: type[Any]) -> Setup:
        """The same with a subclass in place of the part that it derives from."""
        return replace(self, parts=with_part(self.parts, part))
