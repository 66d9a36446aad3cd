"""The tester's octets by offset, against a plain array of them."""

from __future__ import annotations

import tracemalloc

from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.replay.stream import Stream
from hypothesis import given
from hypothesis import strategies as st

SEGMENTS = st.lists(st.tuples(st.integers(0, 40), st.binary(max_size=12)), max_size=12)


@given(SEGMENTS, st.integers(0, 50), st.binary(max_size=12))
def test_segments_in_any_order_read_like_an_array(
    segments: list[tuple[int, bytes]], start: int, octets: bytes
) -> None:
    stream, array, known, disputed = Stream(), bytearray(), set[int](), set[int]()
    for first, payload in segments:
        stream.add(first, payload)
        end = first + len(payload)
        array.extend(bytes(max(0, end - len(array))))
        covered = range(first, end)
        if any(at in known and array[at] != payload[at - first] for at in covered):
            disputed.update(covered)
        for at in known.symmetric_difference(covered).difference(known):
            array[at] = payload[at - first]
        known.update(covered)
    end = start + len(octets)
    assert stream.disputed(start, end) == any(at in disputed for at in range(start, end))
    own = bytes(array[start:end])
    assert stream.equals(start, own) == (start + len(own) <= len(array))
    assert stream.equals(start, octets) == (own == octets and end <= len(array))


def test_segments_far_up_a_large_window_cost_no_more_than_their_octets() -> None:
    receipt = Receipt(service=7, shift=14, window=65535 << 14).data(0, 100).reply(100)
    receipt.reply(100, payload=bytes(100))
    for index in range(1, 101):
        receipt.data(index * 10_000_000, index * 10_000_000 + 100, after=0.01)
    tracemalloc.start()
    found = receipt.verdicts("SNR-RCV-018")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == {Verdict.FAIL}
    assert peak < 50_000_000
