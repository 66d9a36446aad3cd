"""Situations of RWBP on a link whose gateway grants credit; see :mod:`.situations`."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.rwbp.situations import NARROW, WINDOWS
from bentpipe_fuzz.tcp.leads import (
    Situation,
    close,
    one,
    opened,
    perhaps,
    place,
    receive,
    segments,
    settle,
    some_of,
    soon,
    text,
    wait,
)

_few = some_of([0, 1, 1, 2, 3, 5, 8])
_flaw = some_of([
    {"first": 0x21}, {"first": 0x12}, {"queue": 1}, {"octets": 11}, {"octets": 13}, {"octets": 64},
    {"checksum": 0}, {"checksum": 0x1234}, {"dport": 1020}, {"gateway": "10.78.255.253"},
])  # fmt: skip
_flawed = step("frame", limit=some_of([5, 100]), odd=_flaw)
_starved = episode(step("epoch"), step("share", seconds=one(0.0)), wait(one(1.0)))
"""No credit is left, and every window has room."""
_waiting = episode(
    step("link"), step("grant"),
    repeated(step("open", service=some_of(["chargen", "chargen", "echo"]), window=WINDOWS), 2),
    perhaps | receive(1.0), perhaps | text, step("epoch", packets=some_of([0, 0, 1, 3])),
    receive(1.0),
)  # fmt: skip
granted = episode(
    _waiting, repeated(episode(step("grant", packets=_few), receive(0.3)), 5), perhaps | text,
    step("grant"), receive(2.0), settle,
)  # fmt: skip
odd_frames = episode(
    _waiting,
    repeated(st.one_of(
        _flawed,
        step("frame", arrived=some_of([101, 1 << 31]), limit=one(100)),
        step("frame", limit=some_of([2, 4]), odd=some_of([{"sport": 53}, {"sport": 65_535}])),
        step("frame", epoch=some_of([-1, -5, 1 << 15]), limit=one(100)),
        step("frame", limit=some_of([-1, -3, 0, 1, 2])),
    ), 4),
    receive(0.7), step("grant"), receive(2.0),
)  # fmt: skip
flawed_frames = episode(
    _waiting,
    repeated(episode(_flawed, perhaps | wait(one(0.1))), 6),
    receive(0.7), step("grant"), receive(2.0),
)  # fmt: skip
"""Frames that do not count would permit what waits."""
epochs = episode(
    _waiting,
    repeated(episode(
        step("epoch", packets=_few, newer=some_of([1, 1, 2, 5]),
             arrived=some_of([0, 0, 1000, (1 << 31) - 2, (1 << 32) - 2])),
        receive(0.7), perhaps | step("frame", epoch=some_of([-1, -100]), limit=one(1 << 20)),
        perhaps | step("grant", packets=_few), receive(0.7),
    ), 3),
    step("grant"), receive(2.0),
)  # fmt: skip
late_frames = episode(
    step("link"), step("grant"), opened("chargen", window=NARROW), wait(one(1.0)),
    step("epoch", packets=some_of([4, 6, 8])), step("mute"),
    repeated(step("frame", limit=some_of([-4, -3, -2, 0])), 2), receive(0.7), step("grant"),
    receive(2.0),
)  # fmt: skip
"""Frames that come late permit less than one before, while the window is full."""
silent = episode(
    _waiting, step("grant", packets=some_of([2, 4, 8]), repeated=one(False)), receive(0.7),
    perhaps | step("miss", packets=some_of([1, 2])), step("mute"),
    wait(some_of([0.5, 0.9, 1.1, 1.5, 3.0])),
    step("frame", epoch=some_of([0, 0, -1, -100, 1 << 15]), arrived=some_of([0, 0, -1, -2]),
         limit=some_of([0, -1, -3, 1, 3, 100])),
    receive(0.7), perhaps | step("frame", limit=some_of([1, 3])), receive(0.7),
    step("grant"), receive(2.0),
)  # fmt: skip
"""A frame, late or lost on its way for long, ends a silence of the gateway."""
stale = episode(
    _waiting, step("grant", packets=some_of([3, 8]), repeated=one(False)),
    wait(some_of([0.3, 0.6, 0.8, 1.1, 1.6, 2.2])), perhaps | text,
    segments([2]), wait(some_of([0.2, 0.6, 1.5])), perhaps | step("frame"), receive(1.0),
    perhaps | wait(some_of([5.0, 30.0])), step("grant"), receive(2.0),
)  # fmt: skip
"""The last frame is some time ago when there is something to send."""
lost_before = episode(
    _waiting, step("grant", packets=some_of([4, 6])), receive(0.7),
    step("miss", packets=some_of([1, 2, 3])), repeated(receive(0.5), 3),
    step("grant", packets=_few), receive(1.5), step("grant"), receive(2.0),
)  # fmt: skip
crowded = episode(
    step("link"), step("grant"),
    repeated(step("open", service=some_of(["chargen", "echo"]), window=NARROW,
                  mss=some_of([200, 536, 1460])), 3),
    repeated(st.one_of(receive(1.0), text, segments([5])), 4), settle,
)  # fmt: skip
"""Several connections, of segments of several sizes, share a link that is slower than they are."""
unequal = episode(
    step("link"), step("grant"),
    opened("chargen", window=WINDOWS, mss=some_of([48, 48, 100])),
    opened("chargen", window=WINDOWS, mss=some_of([1460, 1460, 536])),
    wait(one(1.0)), _starved,
    step("share", seconds=some_of([1.0, 3.0]), credit=some_of([8, 24])), receive(1.0),
)  # fmt: skip
"""Two connections share the link by octets, one of which has many more packets."""
_mostly = some_of([True, True, True, False])
contended = episode(
    step("link"), step("grant"),
    repeated(step("open", service=some_of(["chargen", "chargen", "chargen", "echo"]),
                  window=WINDOWS, rwbp=_mostly, mss=some_of([200, 536, 1460, 1460])), 4),
    wait(one(1.0)), perhaps | text, _starved,
    repeated(episode(step("grant", packets=_few), wait(some_of([0.1, 0.5]))), 5),
    step("share", seconds=some_of([0.5, 3.0]), credit=some_of([1, 4, 24])), step("grant"),
    receive(2.0),
)  # fmt: skip
"""Several connections have a window each to send, and share a few packets of credit at a time."""

_one_goes = st.one_of(
    step("abort"),
    step("segment", flags=one("R")),
    episode(close, receive(0.5)),
    step("quit"),
)
some_go = episode(
    step("link"), step("grant"),
    repeated(step("open", service=some_of(["chargen", "chargen", "echo"]), window=WINDOWS,
                  rwbp=_mostly, mss=some_of([200, 1460, 1460])), 4),
    wait(one(1.0)), _starved,
    repeated(episode(
        repeated(episode(step("grant", packets=some_of([1, 1, 2, 3])), wait(one(0.3))), 3),
        step("turn", back=some_of([0, 1, 1, 2, 3])), _one_goes,
    ), 2),
    repeated(episode(step("grant", packets=some_of([1, 1, 2])), wait(one(0.3))), 5),
    step("grant"), receive(2.0),
)  # fmt: skip
"""Likewise, and one of them goes."""
_old = step("segment", seq=place("zero", 0), octets=some_of([0, 100]), times=some_of([1, 5, 20]))
one_port = episode(
    step("link"), step("grant"), opened("discard", interval=some_of([1, 1, 8])),
    step("reopen", service=one("echo"), interval=some_of([1, 1, 8]),
         ahead=some_of([1000, 1 << 20, 1 << 30])),
    wait(one(1.0)), step("epoch", packets=some_of([0, 0, 2])),
    repeated(episode(
        step("turn", back=one(1)),
        st.one_of(step("write", octets=some_of([2920, 6000]), at_once=one(100)), _old),
        step("turn", back=one(0)), _old, perhaps | step("write", octets=one(100)),
    ), 3),
    perhaps | wait(soon), step("grant", packets=some_of([8, 30, 1000])), receive(2.0), settle,
)  # fmt: skip
"""Two connections differ in the implementation's port alone, and their acknowledgments wait."""
_quiet = step(
    "open", service=some_of(["discard", "discard", "discard", "echo"]), interval=some_of([1, 1, 8])
)
choked = episode(
    step("link"), step("grant"), _quiet, perhaps | _quiet, perhaps | _quiet,
    perhaps | step("write", octets=one(2920)), wait(one(1.0)),
    step("epoch", packets=some_of([0, 0, 2])),
    repeated(episode(st.one_of(
        step("write", octets=some_of([2920, 6000]), at_once=some_of([100, 100, 1000, 1460])),
        step("segment", seq=place("zero", 0), octets=some_of([0, 100]), times=some_of([5, 20])),
    ), weighted(perhaps, perhaps, wait(soon)), step("turn", back=some_of([0, 1, 1, 2]))), 4),
    wait(some_of([0.05, 0.2, 0.7])), weighted(step("grant", packets=some_of([2, 8, 30])), perhaps),
    perhaps | wait(one(0.5)),
    step("grant"), receive(2.0), settle,
)  # fmt: skip
"""Acknowledgments of what goes on coming, new or not, wait for credit."""


def and_back(situation: Situation) -> Situation:
    """A situation behind the link, and the way back: what follows is judged to the moment again."""
    return episode(situation, step("leave"))


LINKED: tuple[Situation, ...] = tuple(map(and_back, (
    granted, odd_frames, flawed_frames, epochs, late_frames, silent, stale, lost_before, crowded,
    unequal, contended, some_go, one_port, choked,
)))  # fmt: skip
