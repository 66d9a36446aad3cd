"""Hypothesis strategies that fit the packets of any protocol."""

from __future__ import annotations

from hypothesis import strategies as st

word = st.integers(0, 2**32 - 1)
short = st.integers(0, 2**16 - 1)


@st.composite
def damaged(draw: st.DrawFn, packet: bytes) -> bytes:
    """A packet with octets changed, cut off or added."""
    octets = bytearray(packet)
    for _ in range(draw(st.integers(0, 4))):
        octets[draw(st.integers(0, len(octets) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.integers(0, len(octets)))
    return bytes(octets[:cut] if draw(st.booleans()) else octets + draw(st.binary(max_size=8)))
