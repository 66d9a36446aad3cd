"""The checkers of the suite snr, a module per group of requirements."""

from __future__ import annotations

from bentpipe_conformance.engine import context
from bentpipe_conformance.protocols.tcp.replay.prepared import Prepared

Context = context.Context[Prepared]
