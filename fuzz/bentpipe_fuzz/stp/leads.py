"""What situations of STP are made of: users, openings, and what leads into each state."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.stp.odd import KINDS

Situation = st.SearchStrategy[list[Step]]

one, some_of, either = st.just, st.sampled_from, st.booleans()
perhaps = st.none()
role = some_of(["send", "receive"])
kinds = some_of(sorted(KINDS))
soon = some_of([0.1, 0.7, 1.3])
user = {"role": role, "octets": some_of([0, 100, 1400, 4000, 20_000, 20_000])}
"""What the implementation's user has who calls: nothing, all of it early SDs, or more."""
ring, call = step("ring", **user), step("call", **user)
ring_at_first = step("ring", anew=some_of([True, True, False]), **user)
BEGINNING = {"iss": some_of([None, None, (1 << 24) - 1, (1 << 24) - 3, (1 << 24) - 9])}
"""Streams that wrap soon are as many as others."""
MAX_SD = some_of([None, 0, 300, 511, 512, 512, 513, 1000, 1400, 9000, (1 << 16) - 1])
"""Less than there can be, as little, and more than a packet has room for."""
FULL = 9000
"""More than any MaxSD: SDs are as long as the implementation takes them."""


def opened(service: str, **offer: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """The tester calls a service."""
    return step("open", service=one(service), **{**BEGINNING, **offer})


def wait(*seconds: float) -> st.SearchStrategy[Step]:
    """The tester looks at nothing for a while."""
    return step("wait", seconds=some_of(seconds))


def receive(*seconds: float, **given: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """The tester is a receiver for a while."""
    return step("receive", seconds=some_of(seconds), **given)


data = step("write", sds=some_of([1, 3, 10]), octets=some_of([8, 100, 1000]), poll=either)
settle = step("settle")
quiet = some_of(["discard", "echo"])
any_service = some_of(["discard", "echo", "chargen"])
OPTIONS = some_of([
    "28040000", "fe08000000000000", "28020000", "0103aa00", "01040578010405dc", "0106057800000000",
    "00000000", "0204aaaa", "28000000", "0104020001040578", "0104057801040200",
])  # fmt: skip
"""Unknown options, known ones of odd lengths or twice, and padding in front of others."""

leads = st.one_of(
    episode(step("open", service=any_service, **BEGINNING), perhaps | data),
    episode(opened("discard"), data, step("close", poll=one(True)), receive(0.7)),
    episode(opened("chargen"), receive(1.0), step("close", poll=either)),
    episode(opened("echo"), data, step("hang_up")),
    episode(opened("discard"), step("hang_up")),
    episode(ring),
    episode(step("ring", anew=either, **user)),
    episode(call, receive(0.7)),
    episode(opened("chargen", credit=some_of([8, 16])), receive(1.3, credit=one(16)),
            receive(1.0, credit=one(None), losing=some_of([[0], [1, 3]]), report=one(False),
                     answer=one([]))),
    episode(opened("discard"), data, step("release")),
    episode(opened("echo"), step("hang_up")),
    episode(opened("discard"), step("write", sds=one(1)), step("close", poll=one(True)), settle),
    episode(call, step("release")),
)  # fmt: skip
"""Into each state: a stream or both ended, released or not, or something outstanding."""
