"""Everything a box is made from: settings, and which class plays which part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from bentpipe_reference.common import parts as common
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
class Setup(common.Setup):
    """The user's settings and the parts; the self-test changes it stepwise."""

    config: BoxConfig
    parts: Parts = TRUE_PARTS

    def endpoints(self, **settings: Any) -> Self:
        """The same with other settings of both of its TCPs."""
        config = self.config
        return self.configured(
            outer=replace(config.outer, **settings), inner=replace(config.inner, **settings)
        )
