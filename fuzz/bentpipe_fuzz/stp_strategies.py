"""Hypothesis strategies for STP/1 packets, whole ones and damaged ones."""

from __future__ import annotations

from bentpipe_reference.stp.codec import encode
from bentpipe_reference.stp.packets import (
    Begin,
    Bgak,
    Bgrej,
    End,
    Endak,
    Packet,
    Poll,
    Sd,
    Sdp,
    Stat,
    Ustat,
)
from hypothesis import strategies as st

from bentpipe_fuzz.strategies import damaged, short, word

number = st.sampled_from([0, 1, 2**23 - 1, 2**23, 2**24 - 2, 2**24 - 1]) | st.integers(0, 2**24 - 1)
"""A 24-bit field: packet numbers, credits, poll numbers."""

octet = st.integers(0, 255)
data = st.binary(max_size=40) | st.sampled_from([bytes(1400), bytes(range(256)) * 5])
max_sd = st.none() | st.sampled_from([0, 511, 512, 1400, 65535]) | short

other_options = st.lists(
    st.tuples(st.integers(2, 255), st.binary(max_size=9)), max_size=5
).map(tuple)  # fmt: skip
"""Options of unknown kinds; with MaxSD they always fit the 60 octets."""

begin = st.builds(
    Begin, short, short, short, st.sampled_from([0, 1]), number, number, word,
    version=st.just(1) | st.integers(0, 15), max_sd=max_sd, data=data, options=other_options,
)  # fmt: skip
bgak = st.builds(
    Bgak, short, short, short, st.sampled_from([0, 2]), number, number, word, word, number,
    max_sd=max_sd, options=other_options,
)  # fmt: skip
bgrej = st.builds(Bgrej, short, short, short, st.just(0), octet, word)
end = st.builds(
    End, short, short, short, st.sampled_from([0, 4, 8, 12]), number, octet, word, word
)  # fmt: skip
endak = st.builds(Endak, short, short, short, st.just(0), word)
sd = st.builds(Sd, short, short, short, st.sampled_from([0, 1]), number, data)
sdp = st.builds(Sdp, short, short, short, st.sampled_from([0, 1]), number, number, word, data)
poll = st.builds(Poll, short, short, short, st.just(0), number, number, word)
stat = st.builds(
    Stat, short, short, short, st.just(0), number, number, number, word,
    st.lists(number, max_size=12).map(tuple) | st.just(tuple(range(5, 85))),
)  # fmt: skip
ustat = st.builds(
    Ustat, short, short, short, st.just(0), number, number, st.tuples(number, number)
)  # fmt: skip

packets: st.SearchStrategy[Packet] = st.one_of(
    begin, bgak, bgrej, end, endak, sd, sdp, poll, stat, ustat
)
"""Any packet that an endpoint may send, as far as the format goes."""

hostile_packets = st.binary(max_size=80) | packets.map(encode).flatmap(damaged)
"""Anything at all, or something that was a packet once; mostly with a wrong checksum."""
