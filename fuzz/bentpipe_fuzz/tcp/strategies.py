"""Hypothesis strategies for what a hostile or broken peer may put on the wire."""

from __future__ import annotations

from bentpipe_reference.tcp.wire import Segment, emit_packet
from hypothesis import strategies as st

from bentpipe_fuzz.campaign.octets import damaged, short, word

near = st.integers(-3, 3) | st.integers(-70_000, 70_000) | st.integers(-(2**31), 2**31 - 1)
"""Distances from a number that matters: at it, a window away, half the sequence space away."""


@st.composite
def segments(
    draw: st.DrawFn, *, source: int, destination: int, sport: int, dport: int
) -> tuple[Segment, int, int, tuple[tuple[int, int], ...]]:
    """A segment of one connection, with its numbers given relative to what the peer knows.

    Returns:
        The segment with zero numbers; the distances to add to the peer's own next sequence number
        and to what it has received; the distances of SACK edges from what it has received.
    """
    segment = Segment(
        source,
        destination,
        sport,
        dport,
        flags=draw(st.sampled_from([0x10, 0x18, 0x11, 0x02, 0x12, 0x04, 0x14, 0x00, 0x3F, 0x1FF])),
        window=draw(st.sampled_from([0, 1, 536, 65535]) | short),
        urgent=draw(st.sampled_from([0, 1, 65535])),
        payload=draw(st.sampled_from([b"", b"x", b"y" * 536, b"z" * 1460])),
        mss=draw(st.none() | st.sampled_from([0, 1, 47, 536, 1460, 65535])),
        window_scale=draw(st.none() | st.sampled_from([0, 7, 14, 15, 255])),
        sack_permitted=draw(st.booleans()),
        timestamps=draw(st.none() | st.tuples(word, word)),
    )
    edges = draw(st.lists(st.tuples(near, near), max_size=2))
    return segment, draw(near), draw(near), tuple(edges)


hostile_octets = st.binary(max_size=120) | st.builds(
    emit_packet, st.builds(Segment, word, word, short, short, seq=word, ack=word)
).flatmap(damaged)
"""Arbitrary octets, or a damaged packet."""
