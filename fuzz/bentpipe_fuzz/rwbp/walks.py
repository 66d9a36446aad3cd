"""Walks of RWBP, see :mod:`bentpipe_fuzz.campaign.walks`, and :mod:`.situations`."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.connection import SEGMENT
from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.campaign.walks import PAUSES, events, walk
from bentpipe_fuzz.rwbp.linked import and_back
from bentpipe_fuzz.rwbp.situations import NARROW, WINDOWS
from bentpipe_fuzz.tcp.leads import (
    Situation,
    close,
    either,
    one,
    opened,
    perhaps,
    place,
    receive,
    segments,
    settle,
    some_of,
    wait,
)
from bentpipe_fuzz.tcp.reports import (
    arrives,
    beyond,
    everything,
    far,
    few,
    gap,
    lost_again,
    old,
    piece,
    progress,
    receives,
    repaired,
    silence,
    swiftly,
    writes,
)

_half = SEGMENT // 2


# -- a sender, of which something is reported

_no_news = step("tell", known=either, times=some_of([1, 1, 3]))
_beside_data = step("tell", ack=some_of([0, 1]), hole=few, held=some_of([0, 1]),
                    octets=some_of([1, 100, 1000]))  # fmt: skip
_lower = step("tell", ack=some_of([0, 1]), window=some_of([0, 0, 1, 2, 3]))
_wider = step("tell", ack=some_of([0, 1]), window=some_of([1, 2, 4, 8, 16]))
_untrue = step("segment", ack=place("zero", 0), sack=some_of([
    [[("highest", 0), ("highest", SEGMENT)]], [[("highest", -SEGMENT), ("highest", 1)]],
    [[("zero", 0), ("delivered", SEGMENT)]], [[("delivered", SEGMENT), ("delivered", SEGMENT)]],
]))  # fmt: skip
_quits = episode(wait(one(0.4)), step("quit"))
"""What was sent before has arrived, and is not taken for the reason."""
_TRUE: tuple[Situation, ...] = events(
    progress, gap, gap, far, _no_news, old, _beside_data, everything, _lower, _wider, receives,
)  # fmt: skip
_REPORTS: tuple[Situation, ...] = (*_TRUE, *events(_untrue, beyond))
"""What is untrue may be true of what waits for the link, and then shows nothing."""
_end = episode(perhaps | receive(3.0), step("tell", ack=one(99), window=one(16)), receive(3.0))

endless = episode(
    opened("chargen", window=WINDOWS, mss=some_of([536, 1460, 1460]),
           unit=some_of([None, None, 600]), interval=some_of([1, 8])),
    wait(some_of([0.7, 1.3])), walk(_REPORTS, PAUSES, 12), _end, segments([5]),
)  # fmt: skip
"""A sender who always has more, and reports of any kind."""
_lost = step("tell", hole=one(1), held=some_of([1, 1, 2, 3]), window=some_of([16, 16, 24]))
_COURSES: tuple[Situation, ...] = (
    episode(_lost, swiftly, arrives), episode(_lost, swiftly, arrives),
    episode(_lost, repaired, arrives),
    episode(_lost, repaired, lost_again, swiftly, arrives),
    episode(_lost, repaired, lost_again, repaired, arrives),
    episode(_lost, silence, arrives), episode(silence, arrives), episode(silence, _lost),
    episode(_lost, swiftly, step("tell", ack=one(1), hole=one(1), held=one(1))),
    episode(step("tell", hole=one(2), held=one(1)), swiftly, step("tell", ack=some_of([1, 2]))),
    episode(everything), episode(progress), episode(_no_news, swiftly), episode(old),
)  # fmt: skip
"""What can become of a segment: late, lost, lost again, and a timer that expires at any stage."""
disorder = episode(
    opened("chargen", window=some_of([8 * SEGMENT, 16 * SEGMENT]), interval=some_of([1, 8])),
    wait(one(1.1)),
    repeated(episode(weighted(*_COURSES), weighted(repaired, perhaps)), 8),
    _lost, perhaps | swiftly, perhaps | far, repaired, _end, segments([5]),
)  # fmt: skip
"""Such courses one behind the other, several of which are false losses."""
finite = episode(
    opened("echo", window=some_of([2 * SEGMENT, 4 * SEGMENT, 16 * SEGMENT]),
           interval=some_of([1, 8])),
    step("write", octets=some_of([1000, 4000, 10_000]), at_once=some_of([100, 700, 1460])),
    perhaps | close, perhaps | wait(one(0.7)),
    walk((*_REPORTS, *events(close, writes, writes)), PAUSES, 12), _end,
    perhaps | close, settle,
)  # fmt: skip
"""A sender whose data ends, with its FIN or without."""
_shut = step("tell", ack=one(99), window=one(0))
reopened = episode(
    opened("chargen", window=some_of([2 * SEGMENT, 4 * SEGMENT]), unit=some_of([None, None, 600])),
    wait(one(1.1)),
    repeated(episode(
        _shut, wait(some_of([2.0, 5.0, 12.0, 30.0])),
        weighted(perhaps, perhaps, episode(weighted(_no_news, old, _beside_data, beyond), wait(
            some_of([0.7, 4.0])
        ))),
        step("tell", window=some_of([1, 1, 2, 4])), wait(some_of([0.1, 0.7, 0.9])),
    ), 4),
    _shut, wait(some_of([5.0, 12.0])), _end, segments([5]),
)  # fmt: skip
"""A window is closed, probed for and opened again, several times."""
of_its_own = episode(
    step("call", role=one("send"), window=WINDOWS, interval=some_of([1, 8])),
    walk((*_REPORTS, *events(close, _quits)), PAUSES, 14), _end,
    perhaps | close, receive(3.0),
)  # fmt: skip
"""A user of the implementation's own that sends some segments and closes."""

# -- amid lack of credit

_CREDIT = events(
    step("grant", packets=some_of([0, 1, 1, 2, 3])), step("grant", packets=some_of([5, 20])),
    step("epoch", packets=some_of([0, 0, 1, 2, 4])), step("turn", back=some_of([0, 1, 2])),
    step("frame", limit=some_of([0, -1, 1]), arrived=some_of([0, 0, -1])),
    step("miss", packets=some_of([1, 2])), step("mute"), step("grant", packets=one(1)),
)  # fmt: skip
_SOON = (*PAUSES[:-2], (3.5, 5.0))
"""The gateway repeats its frame ten times a second, and a conversation has so many packets."""
_held_up = episode(
    step("link"), step("grant"),
    repeated(step("open", service=some_of(["chargen", "chargen", "chargen", "echo"]),
                  window=WINDOWS, mss=some_of([536, 1460, 1460])), 3),
    wait(some_of([0.7, 1.3])), perhaps | writes,
)  # fmt: skip
_filling = repeated(episode(
    step("tell", ack=some_of([1, 2, 4]), window=some_of([16, 30, 30])),
    perhaps | step("turn", back=some_of([1, 2])),
), 3)  # fmt: skip
"""New segments fill the IP queue, so that repairs have no room in it."""
_lossy = episode(gap, perhaps | wait(some_of([0.15, 0.35, 1.3])), perhaps | far)
_then_silent = perhaps | wait(some_of([4.0, 8.0, 12.0]))
"""With credit again, but nobody answers, so that timers show what has become of them."""
outwaited = episode(
    step("link"), step("grant"),
    opened("chargen", window=WINDOWS, mss=some_of([536, 1460])),
    perhaps | opened("chargen", window=NARROW), wait(one(1.1)), step("epoch"), _filling,
    perhaps | _lossy, step("mute"), wait(some_of([5.0, 20.0, 60.0])), step("grant"),
    wait(some_of([8.0, 12.0])), everything, receive(3.0), settle,
)  # fmt: skip
"""Timers expire again and again while copies wait."""
scarce = episode(
    _held_up, step("epoch", packets=some_of([0, 0, 0, 1, 2])), weighted(_filling, perhaps),
    perhaps | wait(some_of([0.1, 1.3, 5.0])),
    _lossy, walk((*_TRUE, *_CREDIT, *_CREDIT), _SOON, 12),
    step("grant"), _then_silent, _end, settle,
)  # fmt: skip
"""Repairs wait for credit, and more is reported meanwhile."""
bounded = episode(
    step("link"), step("grant"), opened("echo", window=WINDOWS, mss=some_of([536, 1460])),
    perhaps | opened("chargen", window=WINDOWS), step("turn"),
    step("write", octets=some_of([10_000, 20_000]), at_once=some_of([500, 1460])), perhaps | close,
    wait(one(1.1)), step("epoch", packets=some_of([0, 0, 1])), perhaps | _filling, _lossy,
    walk((*_TRUE, *_CREDIT, *events(close, writes)), _SOON, 12), step("grant"),
    _end, perhaps | close, settle,
)  # fmt: skip
"""Likewise, and the stream has an end."""
ample = episode(
    _held_up, walk((*_TRUE, *events(step("turn"))), _SOON, 12),
    step("tell", ack=one(99), window=one(16)), receive(3.0), settle,
)  # fmt: skip
"""The link is shared, and slow, but credit is not short."""

# -- a receiver

_empty = step("segment", seq=st.one_of(place("next", 0, -1, 1, 1000), place("edge", 0, 1, -1)),
              flags=some_of(["A", "A", "FA", "R", "S", ""]))  # fmt: skip
_stream: tuple[Situation, ...] = events(
    piece("zero", 0, 8, 700), piece("zero", 0, 8, 700), piece("zero", 0, 5, 100),
    piece("next", -3, 3, 400), _empty, step("write", octets=some_of([100, 1460, 3000])),
    step("segment", seq=place("next", 0, -1), times=some_of([1, 3])),
)  # fmt: skip
_DELAYS = ((0.01, 0.03), (0.06, 0.09), (0.11, 0.2), (0.7, 1.3))
pieces = episode(
    step("open", service=some_of(["discard", "discard", "echo", "chargen"]),
         interval=some_of([1, 2, 3, 8])),
    walk(_stream, _DELAYS, 14), perhaps | step("write", octets=one(4000)), settle, perhaps | close,
    settle,
)  # fmt: skip
"""Pieces of a stream that overlap, in any order."""
_at_edge: tuple[Situation, ...] = events(
    piece("edge", -6, 1, 500), piece("edge", -6, 1, 500), piece("next", -2, 3, 500),
    piece("edge", -4, 1, 100), _empty, _empty, step("offer", window=some_of([0, 500, 1460])),
)  # fmt: skip
brim = episode(
    opened("echo", window=one(0), interval=some_of([1, 8])),
    step("fill", octets=some_of([1000, 1460]), leaving=some_of([1, 100, 700, 1460, 2500])),
    walk(_at_edge, _DELAYS, 10),
    repeated(episode(step("offer", window=some_of([1460, 3000, 5000])), receive(1.0)), 2),
    step("offer", window=one(20_000)), receive(3.0), settle,
)  # fmt: skip
"""Likewise where the window is nearly full."""
_both: tuple[Situation, ...] = (*_REPORTS, *_stream)
two_ways = episode(
    step("open", service=some_of(["chargen", "echo"]), window=WINDOWS, interval=some_of([1, 2, 8])),
    perhaps | writes, wait(one(0.7)), walk(_both, (*_DELAYS, *PAUSES), 14), _end, settle,
)  # fmt: skip
"""Data goes both ways, and either is disturbed."""
choked_pieces = episode(
    step("link"), step("grant"),
    repeated(step("open", service=some_of(["discard", "discard", "echo"]),
                  interval=some_of([1, 1, 2, 8])), 3),
    wait(one(1.0)), step("epoch", packets=some_of([0, 0, 1, 3])),
    walk((*_stream, *_CREDIT), (*_DELAYS, *_DELAYS, (1.3, 2.0)), 14), step("grant"), receive(2.0),
    settle,
)  # fmt: skip
"""Likewise while acknowledgments wait for credit."""

# -- what comes in states that do not last

_calls = step("call", role=one("send"), window=one(16 * SEGMENT), interval=some_of([1, 8]))
_taken = episode(wait(one(0.7)), step("tell", ack=one(99)))
_served = opened("echo", window=some_of([0, 0, SEGMENT, 16 * SEGMENT]), interval=some_of([1, 8]))
_fin = step("segment", flags=one("FA"), ack=place("zero", 0))
_LEADS: tuple[Situation, ...] = (
    episode(step("ring", role=some_of(["send", "receive"]))),
    episode(step("knock", service=some_of(["echo", "discard"]))),
    episode(_calls), episode(_calls, _taken), episode(_calls, wait(one(0.7)), _fin),
    episode(_calls, _taken, close), episode(_calls, _taken, close, wait(one(0.7))),
    episode(_served, step("write", octets=one(3000)), close, wait(one(0.7))),
    episode(_served, _fin, wait(one(0.7))),
    episode(opened("chargen", window=WINDOWS), wait(one(0.7)), _fin),
)  # fmt: skip
_intruder = step(
    "segment", flags=some_of(["A", "A", "R", "RA", "S", "SA", "FA", "F", "", "PA", "SF"]),
    seq=st.one_of(place("next", 0, 0, -1, 1, 700, -700), place("edge", 0, -1, 1),
                  place("zero", 0, -1)),
    ack=st.one_of(place("delivered", 0), place("highest", 0, 1, -1), place("zero", 0, -1),
                  place("zero", -(1 << 30), -(1 << 30) - 1)),
    octets=some_of([0, 0, 0, 1, 100]), times=some_of([1, 1, 1, 3]),
)  # fmt: skip
_of_states: tuple[Situation, ...] = events(
    _intruder, _intruder, _intruder, _fin, progress, _no_news, gap,
    step("answer", flags=some_of(["SA", "SA", "S"])), step("segment"), _wider,
)  # fmt: skip
states = episode(
    weighted(*_LEADS), walk(_of_states, ((0.02, 0.1), (0.35, 0.7), (1.1, 2.0)), 7),
    perhaps | step("segment"), receive(2.0), perhaps | close, settle,
)  # fmt: skip
"""What belongs there or not, in any state."""

WALKS: tuple[Situation, ...] = (
    endless, disorder, reopened, finite, of_its_own, pieces, two_ways, states, states,
)  # fmt: skip
LONG: tuple[Situation, ...] = (brim,)
"""What takes many packets."""
HELD_UP: tuple[Situation, ...] = tuple(
    map(and_back, (scarce, scarce, outwaited, bounded, ample, choked_pieces))
)
