"""Odd option lists: the rest of the packet stays right."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.tcp.codec import ACK, Tcp, build, dissect
from bentpipe_conformance.protocols.tcp.crafting import append_options
from bentpipe_reference.common.checksum import internet_checksum

SEGMENT = Tcp("10.78.0.1", "10.77.0.2", 4000, 9, 1, 2, ACK, 500, b"data", tsval=3, tsecr=4)


def test_unknown_option_appended_leaves_the_segment_as_it_was() -> None:
    packet = append_options(build(SEGMENT), bytes((200, 3, 7)))
    assert dissect(packet) == SEGMENT
    assert len(packet) == len(build(SEGMENT)) + 4
    assert internet_checksum(packet[:20]) in (0, 0xFFFF)


def test_impossible_length_appended_shows_as_a_broken_list() -> None:
    segment = dissect(append_options(build(SEGMENT), bytes((200, 0))))
    assert not segment.options_ok
    assert segment.checksum_ok
    assert segment.payload == b"data"


def test_more_options_than_a_header_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 60"):
        append_options(build(SEGMENT), bytes((200, 32, *range(30))))
