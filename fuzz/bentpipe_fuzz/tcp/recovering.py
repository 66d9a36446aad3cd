"""Situations of TCP in which the implementation recovers from losses; see :mod:`.situations`."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.leads import (
    WIDE,
    Situation,
    bulk_with_sack,
    either,
    one,
    opened,
    perhaps,
    place,
    receive,
    segments,
    some_of,
    soon,
    timeout,
    wait,
)

_holes = st.one_of(
    some_of([[0], [0, 1], [0, 2], [1, 3, 5], [0, 8, 10], [0, 0], [2, 11]]),
    st.integers(9, 19).map(lambda late: [0, late]),
)  # fmt: skip


@st.composite
def _amid(draw: st.DrawFn) -> Step:
    """What can come while a sender recovers: a duplicate reported, blocks, windows, data."""
    old = [("delivered", -1460), ("delivered", 0)]
    far = draw(some_of([1460, 2920, 4380, 7300]))
    block = [("delivered", far), ("delivered", far + draw(some_of([1460, 2920, 500])))]
    return draw(st.one_of(
        step("segment", sack=some_of([[old], [old, block], [block], []]), times=some_of([1, 2])),
        step("segment", window=some_of([30_000, 50_000, 60_000, WIDE])),
        step("segment", octets=some_of([1, 100]), sack=some_of([None, [block]])),
        step("segment", ack=place("delivered", 1, 500, 1460)),
        step("receive", segments=one(1), seconds=some_of([0.01, 0.7])),
    ))  # fmt: skip


amid_recovery = episode(
    opened("chargen", window=some_of([40_000, 60_000]), sack=either, timestamps=either),
    segments([5, 10]),
    step("receive", losing=_holes, segments=one(14), seconds=some_of([0.65, 0.7, 0.9])),
    repeated(_amid(), 4), segments([10, 20], losing=some_of([[], [], [0], [1, 3]])),
)  # fmt: skip
"""A recovery, in which something other than plain acknowledgments comes."""
late_report = episode(
    bulk_with_sack, segments([5], losing=some_of([[0], [1, 3]])), segments([1, 5]), _amid(),
    segments([20]),
)  # fmt: skip
"""Likewise once it is over, or nearly."""


@st.composite
def _by_chance(draw: st.DrawFn, most: int = 30) -> Step:
    """So many segments, each of which is lost with the same probability; again, with less."""
    share = draw(some_of([1, 2, 4, 8]))
    lost = [n for n in range(most) if draw(st.integers(0, 31)) < share]
    return Step("receive", {
        "segments": most, "seconds": 10.0, "every": draw(some_of([1, 1, 2])),
        "losing": lost + [n for n in lost if draw(st.integers(0, 5)) == 0],
    })  # fmt: skip


lossy = episode(
    opened("chargen", window=some_of([20_000, 40_000, 60_000]), sack=either, timestamps=either),
    segments([5, 10, 20]), repeated(_by_chance(), 3), segments([30, 60]),
)  # fmt: skip
"""Any losses, which may fall into each other's recovery."""
deep = episode(
    opened("chargen", window=one(WIDE), sack=either, timestamps=either),
    step("transfer", segments=some_of([40, 60])),
    receive(3.0, losing=st.builds(
        lambda lost, twice: [*range(lost), *([lost - twice] * 2 if twice else [])],
        some_of([1, 2, 12, 24, 30]), some_of([0, 1, 1, 1]),
    )),
    step("transfer", segments=some_of([60, 120])),
)  # fmt: skip
"""A large window, repaired in part or in vain, and what it grows to after a timeout."""


@st.composite
def _partly_repaired(draw: st.DrawFn) -> Step:
    """The first segments of a flight are lost, and one of them again and again."""
    lost = draw(some_of([4, 12, 20, 24]))
    again = [draw(st.integers(lost // 2, lost - 1))] * draw(some_of([1, 2, 3]))
    seconds = draw(some_of([4.0, 8.0]))
    return Step("receive", {"seconds": seconds, "losing": [*range(lost), *again]})


stalled = episode(
    opened("chargen", window=some_of([20_000, 40_000, 60_000, 60_000]), sack=either,
           timestamps=either),
    step("transfer", segments=some_of([20, 40, 100])), step("stall"),
    st.one_of(_partly_repaired(), _by_chance(), receive(10.0)), perhaps | wait(timeout),
    step("stall", stalls=one(False)), step("transfer", segments=some_of([60, 120])),
)  # fmt: skip
"""The tester's user stops reading, so that no new data leaves while what is lost is repaired."""
twice_to_the_end = episode(
    opened("chargen", window=one(17 * 1460), sack=one(True), timestamps=either),
    repeated(episode(
        step("transfer", segments=some_of([40, 60])),
        receive(4.0, losing=some_of([[0, 14], [0, 15], [0, 16], [0, 5, 16], [0, 15, 16], [0, 1]]),
                segments=one(34)),
    ), 3),
)  # fmt: skip
"""The window is full, so that a recovery repeats the end of what is outstanding; several times."""


@st.composite
def _four_blocks(draw: st.DrawFn) -> list[Step]:
    """The first report has four blocks, above as many holes."""
    gaps = [1460 * draw(some_of([1, 1, 2])) for _ in range(4)]
    blocks, at = [], 0
    for gap in gaps:
        blocks.append([("delivered", at + gap), ("delivered", at + gap + 1460)])
        at += gap + 1460
    blocks[-1][1] = ("delivered", at + draw(some_of([0, 2920, 7300])))
    blocks = draw(some_of([blocks[::-1], [blocks[-1], *blocks[:-1]]]))
    return [Step("segment", {"sack": blocks, "times": draw(some_of([1, 1, 3]))})]


many_holes = episode(
    opened("chargen", window=one(40_000), sack=one(True)), segments([10, 20]),
    wait(some_of([0.7, 0.9])), _four_blocks(), perhaps | wait(soon), segments([20]),
)  # fmt: skip
"""A single acknowledgment has as many blocks as fit."""

RECOVERING: tuple[Situation, ...] = (
    amid_recovery, late_report, lossy, deep, stalled, twice_to_the_end, many_holes,
)  # fmt: skip
