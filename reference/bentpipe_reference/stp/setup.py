"""Everything a host is made from: settings, parts and the class of the host itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from bentpipe_reference.common import parts as common
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts


@dataclass(frozen=True, slots=True)
class Setup(common.Setup):
    """What the self-test and the campaigns change, step by step.

    Attributes:
        config: the user's settings.
        parts: the classes of the endpoint.
        host: the class of the host around it.
    """

    config: StpConfig = field(default_factory=StpConfig)
    parts: Parts = TRUE_PARTS
    host: type[StpHost] = StpHost

    def make(self, address: str, seed: int) -> StpHost:
        """A host at a dotted IPv4 address."""
        return self.host(address, self.config, seed, parts=self.parts)

    def with_part(self, part: type[Any]) -> Self:
        """The same with a subclass in the place of the part, or host, that it derives from.

        Raises:
            TypeError: it derives from no part.
        """
        if issubclass(part, StpHost):
            return replace(self, host=part)
        return replace(self, parts=common.with_part(self.parts, part))
