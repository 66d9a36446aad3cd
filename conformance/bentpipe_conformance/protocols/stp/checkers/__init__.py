"""The checkers of the suite stp, a module per group of requirements."""

from __future__ import annotations

from bentpipe_conformance.engine import context
from bentpipe_conformance.protocols.stp.replay.prepared import Prepared

Context = context.Context[Prepared]
