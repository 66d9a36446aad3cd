"""Everything a box is made from: settings, and which class plays which part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from bentpipe_reference.common.parts import with_part
from bentpipe_reference.pep.box import Box, BoxParts
from bentpipe_reference.pep.config import BoxConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(BoxParts):
    """The box itself besides; the defaults are the true ones.

    Attributes:
        box: one box.
    """

    box: type[Box] = Box


TRUE_PARTS = Parts()
"""The reference itself."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The user's settings and the parts; the self-test changes it stepwise."""

    config: BoxConfig
    parts: Parts = TRUE_PARTS

    def configured(self, **settings: Any) -> Self:
        """The same with other settings of the box."""
        return replace(self, config=replace(self.config, **settings))

    def endpoints(self, **settings: Any) -> Self:
        """The same with other settings of both of its TCPs."""
        config = self.config
        return self.configured(
            outer=replace(config.outer, **settings), inner=replace(config.inner, **settings)
        )

    def with_part(self, part: type[Any]) -> Self:
        """The same with a subclass in place of the part that it derives from.

        Raises:
            TypeError: it derives from no part.
        """
        return replace(self, parts=with_part(self.parts, part))
