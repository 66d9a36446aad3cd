"""What the implementation knew when it sent each packet, inferred from the packets alone."""

from __future__ import annotations

from bentpipe_conformance.engine import trace
from bentpipe_conformance.protocols.rwbp.codec import Rwbp

Packet = trace.Packet[Rwbp]
Trace = trace.Trace[Rwbp]

AT_ONCE_S = 0.05
"""Section 2: within this time of the arrival or event that calls for it; a timer is late at most by
as much."""
