"""Hypothesis strategies for STP/1 packets, well-formed and damaged."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.stp import packets as stp
from bentpipe_reference.stp.codec import encode
from bentpipe_reference.stp.packets import Packet
from hypothesis import strategies as st

from bentpipe_fuzz.campaign.octets import damaged, short, word

number = st.sampled_from([0, 1, 2**23 - 1, 2**23, 2**24 - 2, 2**24 - 1]) | st.integers(0, 2**24 - 1)
"""A 24-bit field: packet numbers, credits, poll numbers."""

octet = st.integers(0, 255)
data = st.binary(max_size=40) | st.sampled_from([bytes(1400), bytes(range(256)) * 5])
max_sd = st.none() | st.sampled_from([0, 511, 512, 1400, 65535]) | short

ports_and_tag = (short, short, short)

cookie = st.none() | st.binary(min_size=stp.LEAST_COOKIE, max_size=stp.MOST_COOKIE)

other_options = st.lists(
    st.tuples(st.integers(3, 255), st.binary(max_size=9)), max_size=2
).map(tuple)  # fmt: skip
"""Options of unknown kinds; with MaxSD and a cookie they always fit the 60 octets."""

begin = st.builds(
    stp.Begin, *ports_and_tag, st.integers(0, 3), number, number, word,
    max_sd=max_sd, cookie=cookie, data=data, options=other_options,
)  # fmt: skip
foreign_begin = st.builds(
    stp.Begin, *ports_and_tag, st.integers(0, 3), number, number, word,
    version=st.integers(0, 15).filter(lambda version: version != stp.VERSION),
)  # fmt: skip
"""Of another version, of which nothing is read but the first 20 octets (STP-PF-003)."""

bgak = st.builds(
    stp.Bgak, *ports_and_tag, st.just(0), number, number, word, word, number,
    max_sd=max_sd, cookie=cookie, options=other_options,
)  # fmt: skip
bgrej = st.builds(
    stp.Bgrej, *ports_and_tag, st.just(0), octet, word,
    max_sd=max_sd, cookie=cookie, options=other_options,
)  # fmt: skip
end = st.builds(
    stp.End, *ports_and_tag, st.sampled_from([0, 4, 8, 12]), number, octet, word, word
)  # fmt: skip
endak = st.builds(stp.Endak, *ports_and_tag, st.just(0), word)
sd = st.builds(stp.Sd, *ports_and_tag, st.sampled_from([0, 1]), number, data)
sdp = st.builds(stp.Sdp, *ports_and_tag, st.sampled_from([0, 1]), number, number, word, word, data)
poll = st.builds(stp.Poll, *ports_and_tag, st.just(0), number, number, word, word)
stat = st.builds(
    stp.Stat, *ports_and_tag, st.just(0), number, number, number, word,
    st.lists(number, max_size=12).map(tuple) | st.just(tuple(range(5, 85))),
)  # fmt: skip
ustat = st.builds(
    stp.Ustat, *ports_and_tag, st.just(0), number, number, st.tuples(number, number)
)  # fmt: skip

packets: st.SearchStrategy[Packet] = st.one_of(
    begin, foreign_begin, bgak, bgrej, end, endak, sd, sdp, poll, stat, ustat
)
"""Any packet that the format permits an endpoint to send."""

hostile_packets = st.binary(max_size=80) | packets.map(encode).flatmap(damaged)
"""Arbitrary octets, or a damaged packet, mostly with a wrong checksum."""


class _Digits:
    """A number divided into fields, so that one draw makes many choices."""

    def __init__(self, octets: bytes) -> None:
        self.rest = int.from_bytes(octets, "big")

    def below(self, bound: int) -> int:
        self.rest, value = divmod(self.rest, bound)
        return value

    def field(self, bits: int) -> int:
        """A third of the fields are at an extreme."""
        top = 1 << bits
        if self.below(3):
            return self.below(top)
        return (0, 1, top // 2 - 1, top // 2, top - 2, top - 1)[self.below(6)]

    def octets(self, most: int) -> bytes:
        size = self.below(most + 1)
        return self.below(1 << 8 * size).to_bytes(size, "big")

    def flags(self, named: int) -> int:
        return self.below(16) & named

    def max_sd(self) -> int | None:
        return self.field(16) if self.below(4) else None

    def cookie(self) -> bytes | None:
        if self.below(3) == 0:
            return None
        size = stp.LEAST_COOKIE + self.below(stp.MOST_COOKIE - stp.LEAST_COOKIE + 1)
        return self.below(1 << 8 * size).to_bytes(size, "big")

    def extras(self) -> dict[str, Any]:
        """The options of BEGIN, BGAK and BGREJ."""
        others = tuple((3 + self.below(253), self.octets(9)) for _ in range(self.below(3)))
        return {"max_sd": self.max_sd(), "cookie": self.cookie(), "options": others}


def packet_from(octets: bytes) -> Packet:
    """The packet that these octets select; every type and every field can occur."""
    take = _Digits(octets)
    kind = take.below(10)
    head = take.field(16), take.field(16), take.field(16)
    number, other = take.field(24), take.field(24)
    if kind == 0:
        first = *head, take.flags(1 | 2), number, other, take.field(32)
        if take.below(8) == 0:
            return stp.Begin(*first, version=(stp.VERSION + 1 + take.below(15)) % 16)
        return stp.Begin(*first, data=take.octets(40), **take.extras())
    if kind == 1:
        csns = take.field(32), take.field(32)
        return stp.Bgak(*head, 0, number, other, *csns, take.field(24), **take.extras())
    if kind == 2:
        return stp.Bgrej(*head, 0, take.field(8), take.field(32), **take.extras())
    if kind == 3:
        flags = take.flags(4 | 8)
        return stp.End(*head, flags, number, take.field(8), take.field(32), take.field(32))
    if kind == 4:
        return stp.Endak(*head, 0, take.field(32))
    if kind == 5:
        return stp.Sd(*head, take.flags(1), number, take.octets(60))
    if kind == 6:
        words = take.field(32), take.field(32)
        return stp.Sdp(*head, take.flags(1), number, other, *words, take.octets(60))
    if kind == 7:
        return stp.Poll(*head, 0, number, other, take.field(32), take.field(32))
    if kind == 8:
        listed = tuple(take.field(24) for _ in range(take.below(13)))
        return stp.Stat(*head, 0, number, other, take.field(24), take.field(32), listed)
    return stp.Ustat(*head, 0, number, other, (take.field(24), take.field(24)))


BATCH = 20
"""Packets in one of :data:`quick_batches`."""

quick_batches: st.SearchStrategy[list[Packet]] = st.binary(
    min_size=128 * BATCH, max_size=128 * BATCH
).map(lambda octets: [packet_from(octets[at : at + 128]) for at in range(0, len(octets), 128)])
"""Like :data:`packets`, many from one draw, for long campaigns. Large data does not occur."""
