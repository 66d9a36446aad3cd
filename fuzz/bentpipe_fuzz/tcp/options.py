"""Octets of options, hexadecimal, as a SYN or another segment may carry them."""

from __future__ import annotations

from hypothesis import strategies as st

_KINDS = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 8, 9, 28, 34, 69, 254])


@st.composite
def _option(draw: st.DrawFn) -> str:
    """An option whose length is right, or nearly so."""
    kind, data = draw(_KINDS), draw(st.binary(max_size=6))
    if kind < 2:
        return f"{kind:02x}"
    length = max(0, 2 + len(data) + draw(st.sampled_from([0, 0, 0, 0, 1, -1])))
    return f"{kind:02x}{length:02x}{data.hex()}"


UNKNOWN = st.sampled_from([
    "28", "40", "63", "b4", "fc", "fe",
]).flatmap(lambda kind: st.binary(max_size=6).map(
    lambda data: f"{kind}{2 + len(data):02x}{data.hex()}"
))  # fmt: skip
"""An option that nobody knows."""

KNOWN = st.sampled_from([
    "030307", "03030e", "030300", "020405b4", "02040064", "0402", "0500", "0503aa", "050400ff",
    "050b" + 9 * "01", "0512" + 8 * "7f",
    "00", "0001010101", "00282828", "0105", "01" * 12,
])  # fmt: skip
"""Options out of place, of a wrong size, or behind the end of the list."""

STAMPS = st.sampled_from(["0101080a0000000100000000", "080affffffff00000001"])
"""Timestamps, for a segment that has none: of two nobody knows which is meant."""

OPTIONS = st.one_of(
    st.lists(_option(), min_size=1, max_size=3).map("".join).map(lambda text: text[:40]),
    UNKNOWN, KNOWN, KNOWN,
)  # fmt: skip

OPTIONS_OF_SYN = st.one_of(
    UNKNOWN, UNKNOWN, st.sampled_from(["00", "0001010101", "00282828", "0105", "01" * 12])
)
"""Likewise; not twice what the SYN offers, for nobody knows which of two is meant."""

IP_OPTIONS = st.sampled_from(["01010100", "94040000", "9e06616263640000", "0707040000000000"])
"""Octets of options of IP: padding, a router alert, one nobody knows, a route record."""
