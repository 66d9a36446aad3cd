"""TCP's sequence numbers and timestamps, both modulo 2**32 (RFC 9293 section 3.4, RFC 7323)."""

from __future__ import annotations

from bentpipe_reference.common.serial import SerialSpace

SEQUENCE = SerialSpace(32)
MASK = SEQUENCE.mask
unwrap = SEQUENCE.unwrap
before = SEQUENCE.before
