"""Everything a host is made from: settings and parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bentpipe_reference.common.parts import with_part
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.host import TcpHost
from bentpipe_reference.tcp.parts import TRUE_PARTS, Parts


@dataclass(frozen=True, slots=True)
class Setup:
    """What the self-test and the experiments change, step by step.

    Attributes:
        config: the user's settings.
        parts: what the host is composed of.
    """

    config: EndpointConfig
    parts: Parts = TRUE_PARTS

    def make(self, address: str, seed: int) -> TcpHost:
        """A host at a dotted IPv4 address."""
        return TcpHost(address, self.config, seed, parts=self.parts)

    def configured(self, **settings: Any) -> Setup:
        """The same with other settings."""
        return replace(self, config=replace(self.config, **settings))

    def with_part(self, part: type[Any]) -> Setup:
        """The same with a subclass in place of the part that it derives from.

        Raises:
            TypeError: it derives from no part.
        """
        return replace(self, parts=with_part(self.parts, part))
