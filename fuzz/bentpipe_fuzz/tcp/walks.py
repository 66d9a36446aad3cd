"""Walks of TCP in which the implementation sends; see :mod:`bentpipe_fuzz.campaign.walks`.

Conditions are a sender without end or with one, one that recovers, that has timed out once or
several times, whose window is closed or has shrunk, and one whose end is outstanding. Walks of
receivers, and in any state, are in :mod:`.wandering`.
"""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.connection import SEGMENT

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.campaign.walks import PAUSES, Event, events, walk
from bentpipe_fuzz.tcp.leads import (
    DAYTIME,
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
    text,
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
    progress,
    receives,
    repaired,
    silence,
    swiftly,
    writes,
)

_sack, _stamped = some_of([True, True, False]), some_of([False, False, True])
_ROOMY = some_of([8 * SEGMENT, 16 * SEGMENT, 40_000, 60_000])
_MSS = some_of([536, 1460, 1460, 1460])

# -- what is said of what has arrived

_no_news = step("tell", known=either, times=some_of([1, 1, 2, 3, 4]))
_beside_data = step("tell", ack=some_of([0, 0, 1]), hole=few, held=some_of([0, 1]),
                    octets=some_of([1, 100, 1000]))  # fmt: skip
_lower = step("tell", ack=some_of([0, 1]), hole=some_of([0, 1]), held=some_of([0, 0, 1]),
              window=some_of([0, 1, 2, 3, 5]))  # fmt: skip
_wider = step("tell", ack=some_of([0, 1]), hole=some_of([0, 1]), held=some_of([0, 0, 1]),
              window=some_of([4, 8, 16, 30]))  # fmt: skip

# -- what is not the truth, or not of use

_in_part = step("segment", ack=place("delivered", 1, 500, 700, 1461, -1, -500), sack=one([]))
"""An acknowledgment amid a segment."""
_untrue = step("segment", ack=some_of([("zero", 0), ("delivered", 0), ("delivered", 0)]),
               sack=some_of([
    [[("highest", 0), ("highest", SEGMENT)]], [[("highest", -SEGMENT), ("highest", 1)]],
    [[("zero", 0), ("delivered", SEGMENT)]], [[("delivered", SEGMENT), ("delivered", SEGMENT)]],
    [[("delivered", 2 * SEGMENT), ("delivered", SEGMENT)]],
]), times=some_of([1, 1, 3]))  # fmt: skip
_duplicated = step("segment", sack=some_of([
    [[("delivered", -SEGMENT), ("delivered", 0)]], [[("delivered", -100), ("delivered", 0)]],
    [[("delivered", -SEGMENT), ("delivered", 0)], [("delivered", SEGMENT), ("highest", 0)]],
    [[("delivered", SEGMENT), ("delivered", 2 * SEGMENT)],
     [("delivered", SEGMENT), ("delivered", 4 * SEGMENT)]],
]), times=some_of([1, 1, 3]))  # fmt: skip
"""A D-SACK block, which may stand before another."""
_odd_blocks = step("segment", sack=some_of([
    [[("delivered", 700), ("delivered", 2000)]], [[("delivered", 1000), ("highest", -300)]],
    [[("delivered", SEGMENT), ("delivered", SEGMENT + 1)]],
    [[("highest", -1), ("highest", 0)]],
    [[("delivered", n * SEGMENT), ("delivered", (n + 1) * SEGMENT)] for n in (7, 5, 3, 1)],
]))  # fmt: skip
"""Blocks that end amid a segment, or of which there are many."""
_stale = step("segment", tsval=some_of([-1, -100, -100_000, -(1 << 30)]), bare=either,
              ack=some_of([("delivered", 0), ("highest", 0)]),
              octets=some_of([0, 0, 100]))  # fmt: skip
_outside = step("segment", seq=some_of([
    ("next", -1), ("next", -1), ("next", -1000), ("edge", 0), ("edge", 1), ("edge", 1000),
]), ack=some_of([("delivered", 0), ("highest", 0), ("highest", 0)]), octets=some_of([0, 0, 1, 100]),
    window=some_of([None, None, 0, 3000, 50_000]))  # fmt: skip
"""What lies outside the implementation's window, and tells of something new."""
_challenge = step("segment", flags=some_of(["R", "RA", "S", "SA"]), seq=place("next", 1, 1000, -1))
_flagless = step("segment", flags=some_of(["", "P", "U", "F"]), octets=some_of([1, 100]))
_above = step("segment", seq=place("next", 100, 1000), octets=some_of([100, 900, 1000]))
_fin = step("segment", flags=one("FA"), octets=some_of([0, 0, 100]),
            ack=some_of([("delivered", 0), ("zero", 0)]))  # fmt: skip

TRUE: tuple[Event, ...] = events(
    progress, gap, gap, far, _no_news, old, _beside_data, everything, _lower, _wider, receives,
)  # fmt: skip
ODD: tuple[Event, ...] = events(
    _in_part, _untrue, _duplicated, _odd_blocks, beyond, _stale, _outside, _challenge, _flagless,
    _above,
)  # fmt: skip
REPORTS: tuple[Event, ...] = (*TRUE, *TRUE, *ODD)
_SHORT = PAUSES[:4]
_ends = episode(
    perhaps | receive(3.0), step("tell", ack=one(99), window=some_of([16, 30])),
    segments([5, 20], losing=some_of([[], [], [2], [1, 4]])),
)  # fmt: skip
"""The tester is honest again, perhaps with losses, which show what has been kept."""

# -- a sender without end

_bulk = opened("chargen", window=_ROOMY, mss=_MSS, sack=_sack, timestamps=_stamped)
endless = episode(
    _bulk, wait(some_of([0.7, 1.3])), walk((*REPORTS, *events(writes)), PAUSES, 12), _ends,
)  # fmt: skip
"""A sender who always has more, and reports of any kind."""
_lost = step("tell", hole=one(1), held=some_of([3, 3, 4, 5, 8]))
_COURSES: tuple[Event, ...] = (
    episode(_lost, swiftly, arrives), episode(_lost, repaired, arrives),
    episode(_lost, repaired, arrives, repaired, arrives),
    episode(_lost, repaired, lost_again, swiftly, arrives),
    episode(_lost, repaired, lost_again, repaired, arrives),
    episode(_lost, silence, arrives), episode(silence, arrives), episode(silence, _lost),
    episode(_lost, repaired, everything, repaired, _no_news),
    episode(_lost, repaired, silence, gap, swiftly, arrives),
    episode(_lost, swiftly, step("tell", ack=one(1), hole=one(1), held=some_of([1, 3]))),
    episode(step("tell", hole=one(2), held=one(3)), repaired, step("tell", ack=some_of([1, 2]))),
    episode(silence, _no_news, repaired, _no_news), episode(_lower, repaired, _wider),
    episode(everything), episode(progress), episode(_no_news, swiftly), episode(old),
)  # fmt: skip
"""What can become of a segment: late, lost, lost again, and a timer that expires at any stage."""
_grown = episode(_bulk, segments([3, 10, 20]), wait(some_of([0.7, 0.7, 0.0])))
disorder = episode(
    _grown, repeated(episode(weighted(*_COURSES), weighted(repaired, perhaps)), 7),
    perhaps | _lost, perhaps | far, repaired, _ends,
)  # fmt: skip
"""Such courses one behind the other."""
_amid: tuple[Event, ...] = tuple(
    episode(perhaps | _lost, perhaps | repaired, kind) for kind in (*ODD, *ODD, *events(writes))
)
recovering = episode(
    _grown, _lost, perhaps | repaired, walk((*TRUE, *_amid, *_amid, *events(_fin)), _SHORT, 8),
    _ends,
)  # fmt: skip
"""What is odd, late or beside the point comes while a sender recovers."""
_late: tuple[Event, ...] = tuple(
    episode(perhaps | silence, perhaps | arrives, kind) for kind in (*ODD, *events(writes, _lost))
)
timed_out = episode(
    _grown, perhaps | _lost, wait(some_of([1.3, 2.0, 3.5, 8.0, 20.0])), perhaps | arrives,
    walk((*TRUE, *_late, *_late, *events(_fin)), _SHORT, 8), _ends,
)  # fmt: skip
"""Likewise after timeouts."""

# -- its window

_shut = step("tell", ack=one(99), window=one(0))
_shuts_amid = step("tell", ack=some_of([0, 1, 2]), hole=some_of([0, 1]), held=some_of([0, 1, 3]),
                   window=some_of([0, 0, 1]))  # fmt: skip
_opens = step("tell", ack=some_of([0, 1, 99]), window=some_of([1, 1, 2, 4, 16]))
_sliver = step("segment", window=some_of([1, 100, 267, 535, 700, 1459]))
_probed = step("receive", seconds=some_of([2.0, 10.0, 30.0]), takes=either)
shutting = episode(
    _grown, weighted(_shut, _shuts_amid),
    walk((*TRUE, *ODD, *events(_opens, _opens, _shut, _shuts_amid, _sliver, _probed, _probed,
                               _fin)), PAUSES, 10),
    perhaps | wait(some_of([5.0, 30.0])), _ends,
)  # fmt: skip
"""A window is closed, probed, left small, opened and closed again, and something else comes."""
shrinking = episode(
    _grown, perhaps | _lost,
    step("segment", window=some_of([0, 536, 1460, 2920, 5000]), sack=some_of([None, []])),
    walk((*TRUE, *ODD, *events(_lower, _lower, _sliver, _lost, writes)), PAUSES[:-1], 10), _ends,
)  # fmt: skip
"""A window that is smaller than what is outstanding."""

# -- a sender with an end

finite = episode(
    opened("echo", window=some_of([2 * SEGMENT, 4 * SEGMENT, 40_000]), mss=_MSS, sack=_sack,
           timestamps=_stamped),
    perhaps | episode(text, settle),
    step("write", octets=some_of([1000, 4000, 10_000]), at_once=some_of([100, 700, 1460])),
    perhaps | close, perhaps | wait(some_of([0.7, 1.3])),
    walk((*REPORTS, *events(close, writes, writes, _fin)), PAUSES, 12), _ends,
    perhaps | close, settle,
)  # fmt: skip
"""A sender whose data ends, with its FIN or without, and who may get more."""
_FIN_LEADS: tuple[Situation, ...] = (
    episode(_grown, close, perhaps | wait(some_of([0.1, 0.7, 3.5]))),
    episode(opened("echo", window=some_of([3000, 20_000]), sack=_sack, timestamps=_stamped),
            step("write", octets=some_of([2920, 8000])), close,
            perhaps | wait(some_of([0.7, 3.5]))),
    episode(opened(DAYTIME, sack=_sack, timestamps=_stamped), perhaps | wait(some_of([0.7, 3.5]))),
    episode(opened(DAYTIME, timestamps=_stamped), _fin, perhaps | wait(some_of([0.7, 3.5]))),
    episode(step("call", role=one("send"), window=_ROOMY, sack=_sack, timestamps=_stamped),
            segments([12, 14, 20]), perhaps | wait(some_of([0.7, 2.0]))),
)  # fmt: skip
end_outstanding = episode(
    weighted(*_FIN_LEADS), walk((*TRUE, *ODD, *ODD, *events(writes, _fin, close)), PAUSES, 9),
    perhaps | receive(3.0), step("tell", ack=one(99), window=one(16)), receive(2.0),
    perhaps | close, settle,
)  # fmt: skip
"""The FIN of the implementation is outstanding, in any state in which that can be."""
_quits = episode(wait(one(0.4)), step("quit"))
"""What was sent before has arrived, and is not taken for the reason."""
of_its_own = episode(
    step("call", role=one("send"), window=_ROOMY, sack=_sack, timestamps=_stamped),
    walk((*REPORTS, *events(close, _fin, _quits)), PAUSES, 14), _ends, perhaps | close,
    receive(3.0),
)  # fmt: skip
"""A user of the implementation's own that sends some segments and closes."""

SENDERS: tuple[Situation, ...] = (
    endless, disorder, recovering, recovering, timed_out, timed_out, shutting, shrinking, finite,
    end_outstanding, of_its_own,
)  # fmt: skip
