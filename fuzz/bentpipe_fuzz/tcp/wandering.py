"""Walks of TCP in which the implementation receives, and in any state; see :mod:`.walks`."""

from __future__ import annotations

from hypothesis import strategies as st

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
    piece,
)
from bentpipe_fuzz.tcp.walks import REPORTS

_DELAYS = ((0.01, 0.03), (0.06, 0.09), (0.11, 0.2), (0.25, 0.45), (0.7, 1.3))
"""Seconds: within the delay of an acknowledgment, about it, and more."""
_sack, _stamped = some_of([True, True, False]), some_of([False, True])
_unscaled = some_of([None, None, 0, 7])

# -- a receiver

_empty = step("segment", seq=st.one_of(place("next", 0, -1, 1, 1000), place("edge", 0, 1, -1)),
              flags=some_of(["A", "A", "A", "FA", "S", ""]))  # fmt: skip
_stamps = step("segment", octets=some_of([0, 1, 100, 1000]), bare=some_of([False, False, True]),
               seq=place("next", 0, 0, -100, 500, 1000), flags=some_of(["A", "PA", "FA"]),
               tsval=some_of([-1, -1, -100, -100_000, -(1 << 31) + 1, 1, 1 << 20]))  # fmt: skip
_repeats = step("segment", seq=place("next", -1, -100, -500, -1000), octets=some_of([1, 100, 500]),
                times=some_of([1, 1, 2, 3]))  # fmt: skip
_damaged = step("segment", octets=some_of([1, 100]),
                odd=st.fixed_dictionaries({"checksum": one(True)}))  # fmt: skip
_unsent = step("segment", octets=some_of([0, 100]), ack=place("highest", 1, 1000, 1 << 20))
_more = step("write", octets=some_of([1, 100, 1460, 3000]), at_once=some_of([100, 536, 1460]))
_end_here = step("segment", flags=one("FA"), seq=place("next", 0, 0, 100, 1000),
                 octets=some_of([0, 0, 100]))  # fmt: skip
STREAM: tuple[Event, ...] = events(
    piece("zero", 0, 8, 700), piece("zero", 0, 5, 100), piece("next", -3, 3, 400),
    piece("next", -2, 5, 500), _empty, _more, _more, _stamps, _repeats, _repeats, _damaged,
    _unsent, _end_here, step("segment", seq=place("next", 0, -1), times=some_of([1, 3])),
)  # fmt: skip
pieces = episode(
    step("open", service=some_of(["discard", "discard", "echo", "chargen"]), sack=_sack,
         timestamps=_stamped, window_scale=_unscaled),
    perhaps | text, walk(STREAM, _DELAYS, 14), perhaps | _more, settle, perhaps | close, settle,
)  # fmt: skip
"""Pieces of a stream that overlap, in any order."""
_at_edge: tuple[Event, ...] = (*events(
    piece("edge", -6, 1, 500), piece("edge", -6, 1, 500), piece("next", -2, 3, 500),
    piece("edge", -4, 1, 100), _empty, _empty, _repeats, _stamps, _unsent,
    step("offer", window=some_of([0, 500, 1460])),
    step("segment", flags=some_of(["R", "RA", "S", "FA"]), seq=place("edge", -1, 0, 1)),
    step("segment", octets=some_of([1, 100]), window=some_of([1000, 5000])),
),)  # fmt: skip
brim = episode(
    opened("echo", window_scale=one(None), sack=_sack, timestamps=_stamped),
    step("fill", octets=some_of([1000, 1400]), leaving=some_of([0, 1, 100, 700, 1460, 2500])),
    walk(_at_edge, _DELAYS, 10),
    repeated(episode(step("offer", window=some_of([1460, 3000, 5000])), receive(1.0)), 2),
    step("offer", window=one(20_000)), receive(3.0), settle,
)  # fmt: skip
"""Likewise where the window is nearly full, or is."""
two_ways = episode(
    step("open", service=some_of(["chargen", "echo"]), sack=_sack, timestamps=_stamped,
         window=some_of([8000, 20_000, 40_000])),
    perhaps | _more, wait(one(0.7)),
    walk((*REPORTS, *STREAM, *STREAM), (*_DELAYS, *PAUSES[:-1]), 14),
    perhaps | receive(3.0), step("tell", ack=one(99), window=one(16)), segments([5]), settle,
)  # fmt: skip
"""Data goes both ways, and either is disturbed."""
finished = episode(
    opened(DAYTIME, sack=_sack, timestamps=_stamped), weighted(perhaps, receive(1.0), receive(1.0)),
    walk(STREAM, (*_DELAYS, (1.3, 2.0)), 12), receive(1.0), perhaps | _more, settle,
    perhaps | close, receive(1.0),
)  # fmt: skip
"""The implementation has closed, and receives on."""

# -- what comes in states that do not last

_offers = {"sack": _sack, "timestamps": _stamped, "window_scale": _unscaled}
_calls = step("call", role=some_of(["send", "receive"]), **_offers)
_taken = episode(wait(one(0.7)), step("tell", ack=one(99)))
_served = opened("echo", window=some_of([0, 1460, 20_000]), **_offers)
_fin = step("segment", flags=one("FA"), ack=some_of([("zero", 0), ("delivered", 0)]))
_daytime = opened(DAYTIME, **_offers)
_RINGS: tuple[Situation, ...] = (
    episode(step("ring", role=some_of(["send", "receive"]), **_offers)),
    episode(step("ring", role=some_of(["send", "receive"]), **_offers),
            step("answer", flags=one("S"))),
)  # fmt: skip
_knocks = episode(
    step("knock", service=some_of(["echo", "discard", "chargen"]), **_offers),
    perhaps | wait(some_of([0.7, 2.0, 5.0])),
)
_ENDINGS: tuple[Situation, ...] = (
    episode(_calls), episode(_calls, _taken), episode(_calls, wait(one(0.7)), _fin),
    episode(_served, step("write", octets=one(3000)), close, wait(one(0.7))),
    episode(_served, _fin, wait(one(0.7))),
    episode(opened("chargen", window=some_of([3000, 20_000]), **_offers), wait(one(0.7)), _fin),
    episode(_daytime), episode(_daytime, receive(1.0)), episode(_daytime, _fin, wait(one(0.3))),
    episode(_daytime, _fin, wait(one(0.3))), episode(_daytime, receive(1.0), close, receive(1.0)),
    episode(_daytime, receive(1.0), close, receive(1.0), wait(some_of([30.0, 100.0]))),
)  # fmt: skip
_intruder = step(
    "segment", flags=some_of(["A", "A", "R", "RA", "S", "SA", "FA", "F", "", "PA", "SF", "AE"]),
    seq=st.one_of(place("next", 0, 0, -1, 1, 700, -700), place("edge", 0, -1, 1),
                  place("zero", 0, -1)),
    ack=st.one_of(place("delivered", 0), place("highest", 0, 1, -1), place("zero", 0, -1),
                  place("zero", -(1 << 30), -(1 << 30) - 1)),
    octets=some_of([0, 0, 0, 1, 100]), times=some_of([1, 1, 1, 3]),
)  # fmt: skip
_harmless = step(
    "segment", flags=some_of(["A", "R", "RA", "S", "SA", "F", "", "PA", "FA", "SF"]),
    seq=st.one_of(place("next", -1, -700), place("edge", 0, 1), place("next", 1, 700)),
    ack=st.one_of(place("delivered", 0), place("highest", 0, 1, 1000), place("zero", 0, -1)),
    octets=some_of([0, 0, 1, 100]), times=some_of([1, 1, 3]),
)  # fmt: skip
"""What ends no connection, so that more can come."""
_old_stamp = step("segment", tsval=some_of([-1, -1000, 1 << 20]), bare=either,
                  flags=some_of(["A", "FA", "R", "PA"]), octets=some_of([0, 1, 100]))  # fmt: skip
_stranger = step(
    "segment", flags=some_of(["A", "A", "R", "RA", "S", "SA", "FA", "F", "", "PA", "SF"]),
    seq=st.one_of(place("next", 0, 0, -1, 1, 700), place("edge", 0, -1, 1)),
    ack=st.one_of(place("delivered", 0, 1, -1, 1000), place("zero", -(1 << 30))),
    octets=some_of([0, 0, 0, 1, 100]), times=some_of([1, 1, 3]),
)  # fmt: skip
_of_openings: tuple[Event, ...] = events(
    _stranger, _stranger, _fin, _old_stamp, step("segment"), _more,
    step("segment", octets=some_of([1, 100]), seq=place("next", 0, 0, 500)),
)  # fmt: skip
_of_calls: tuple[Event, ...] = (*_of_openings, *events(
    step("answer", flags=some_of(["SA", "SA", "S"])),
    step("answer", flags=some_of(["SA", "S"]), ack=some_of([1, -1])),
))  # fmt: skip
_of_states: tuple[Event, ...] = events(
    _intruder, _harmless, _harmless, _harmless, _fin, _old_stamp, _more, _repeats, _unsent,
    step("tell", ack=some_of([1, 1, 2])), step("tell", hole=one(1), held=some_of([1, 3])),
    step("tell", times=some_of([1, 3])), step("tell", ack=one(1), window=some_of([0, 1, 8, 30])),
    step("segment"), piece("next", -2, 3, 400),
)  # fmt: skip
_settled = episode(perhaps | step("segment"), receive(2.0), perhaps | text, perhaps | close, settle)
_WHILES = ((0.02, 0.1), (0.35, 0.7), (1.1, 2.0), (4.0, 8.0))
openings = weighted(
    episode(weighted(*_RINGS), walk(_of_calls, _WHILES, 6), perhaps | step("answer"), _settled),
    episode(_knocks, walk(_of_openings, _WHILES, 6), _settled),
)
"""What belongs there or not, while a connection is opened."""
states = episode(
    weighted(*_ENDINGS), walk(_of_states, ((0.02, 0.1), (0.35, 0.7), (1.1, 2.0), (10.0, 45.0)), 8),
    _settled,
)  # fmt: skip
"""Likewise in any other state."""

RECEIVERS: tuple[Situation, ...] = (pieces, pieces, two_ways, finished)
STATES: tuple[Situation, ...] = (openings, openings, states, states, states)
LONG: tuple[Situation, ...] = (brim,)
"""What takes many packets."""
