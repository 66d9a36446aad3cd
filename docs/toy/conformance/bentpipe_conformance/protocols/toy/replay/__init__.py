"""What the implementation knew when it sent each packet, inferred from the packets alone."""

from __future__ import annotations

from bentpipe_conformance.engine import trace
from bentpipe_conformance.protocols.toy.codec import Toy

Packet = trace.Packet[Toy]
Trace = trace.Trace[Toy]
