"""Episodes of TCP: a few steps that lead into a situation and vary what matters in it.

Steps drawn one by one hardly ever meet there: a window that closes and opens again, three
duplicates after a timeout, data that fills holes in some order, a handshake that is not completed.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.options import IP_OPTIONS, OPTIONS, OPTIONS_OF_SYN

Episode = st.SearchStrategy[list[Step]]

one = st.just
perhaps = st.none()
beside = st.sampled_from([-1, 0, 0, 1])
part = st.sampled_from([1, 100, 536, 1000, 1459, 1460, 1461, 2920, 4380])
"""Of a segment or a few, octets."""

soon = st.sampled_from([0.05, 0.3, 0.7, 1.0, 3.0])
later = st.sampled_from([3.0, 10.0, 30.0, 70.0])
long = st.sampled_from([100.0, 400.0, 1000.0])
hours = st.sampled_from([1000.0, 4000.0, 9000.0])
minutes = st.sampled_from([100.0, 165.0, 175.0, 190.0, 300.0])
"""About the three minutes for which an attempt to open a connection goes on."""
count = st.sampled_from([1, 2, 3, 3, 4, 6, 10])

_WHILE, _EACH = one(5.0), one(1)


def _wait(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Step]:
    return step("wait", seconds=seconds)


def _receive(
    seconds: st.SearchStrategy[float] = _WHILE, every: st.SearchStrategy[int] = _EACH
) -> st.SearchStrategy[Step]:
    return step("receive", seconds=seconds, every=every)


_some = step("receive", segments=st.sampled_from([1, 2, 5, 10]), seconds=one(10.0))
_grown = step("receive", segments=st.sampled_from([3, 10, 20]), seconds=one(10.0))
_data = step("write", octets=st.sampled_from([1, 100, 1460, 2920, 5000]))
_duplicates = step("segment", times=count, sack=st.sampled_from([None, []]))


def _place(base: str, distance: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[str, int]]:
    return st.tuples(one(base), distance)


def _acks(distance: st.SearchStrategy[int]) -> st.SearchStrategy[Step]:
    return step("segment", ack=_place("delivered", distance))


DAYTIME = 13
_ended = episode(step("open", service=one(DAYTIME), timestamps=st.booleans()), perhaps | _data,
                 _receive(st.sampled_from([0.0, 2.0])))  # fmt: skip
"""The implementation closes first."""

_many = step("write", octets=st.sampled_from([5000, 20_000, 60_000]))
idle = episode(
    perhaps | step("open", service=st.sampled_from(["echo", "discard"]),
                   timestamps=st.booleans()),
    perhaps | _data, step("settle"), _wait(hours), perhaps | _data, step("settle"),
)  # fmt: skip
paused = episode(
    step("open", service=one("echo"), timestamps=st.booleans(), sack=st.booleans()),
    repeated(_many, 3), _receive(), _wait(st.sampled_from([0.7, 1.5, 3.0, 10.0])), perhaps | _data,
    perhaps | _wait(st.sampled_from([0.01, 0.3])), _many, _receive(),
)  # fmt: skip
"""An echo has something to send again after a while."""
half_close = episode(_ended, perhaps | _data, perhaps | _wait(soon), step("settle"),
                     step("close"), _receive())  # fmt: skip
lingering = episode(_ended, step("close"), _receive(), _wait(st.sampled_from([1.0, 50.0, 300.0])),
                    step("segment", flags=st.sampled_from(["FA", "A", "S"]),
                         seq=_place("next", st.sampled_from([-1, 0, 1, 70_000]))),
                    _receive())  # fmt: skip
outage = episode(_some, _wait(later), _receive(), step("settle"))
_losing = st.one_of(
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
    st.lists(st.integers(0, 7).map(lambda n: 2 * n), min_size=3, max_size=6),
)
recovery = episode(
    perhaps | _grown,
    step("receive", losing=_losing, every=st.sampled_from([1, 1, 2]),
         segments=st.sampled_from([10, 20, 30]), seconds=one(20.0)),
    perhaps | step("receive", losing=_losing, segments=one(20), seconds=one(10.0)),
    perhaps | _duplicates,
    perhaps | _receive(st.sampled_from([3.0, 8.0])),
)  # fmt: skip
expired = episode(
    perhaps | _some | _grown, perhaps | _data, _wait(later),
    perhaps | step("receive", segments=st.sampled_from([1, 2]), seconds=one(2.0)),
    repeated(st.one_of(_duplicates, _acks(part), step(
        "segment", sack=st.lists(st.tuples(
            _place("delivered", part), _place("delivered", part.map(lambda n: n + 2920))
        ), min_size=1, max_size=2)), _wait(soon)), 4),
    perhaps | step("receive", losing=_losing, segments=one(20), seconds=one(10.0)), _receive(),
)  # fmt: skip
"""Something comes after a timeout: duplicates, reports, acknowledgments of a part."""

vanishing = episode(perhaps | _some, perhaps | _data, _wait(hours))
splitting = episode(
    perhaps | _some, _wait(soon), repeated(_acks(part), 6), _receive(soon), step("settle")
)


@st.composite
def _split(draw: st.DrawFn) -> list[Step]:
    """A few segments acknowledged in many steps, the last of which may be lost data."""
    size = draw(st.sampled_from([1460, 2920, 5840]))
    parts = draw(st.sampled_from([3, 8, 12]))
    acks = [
        Step("segment", {"ack": ("delivered", -size + size * (number + 1) // parts)})
        for number in range(parts)
    ]
    return [Step("receive", {"segments": 5, "seconds": 2.0, "every": 100}), *acks]


split = episode(
    perhaps | _some, _split(),
    st.one_of(_receive(soon), step("receive", losing=_losing, segments=one(20), seconds=one(10.0))),
    perhaps | _duplicates, _receive(),
)  # fmt: skip
updates = episode(
    perhaps | _some | _grown,
    repeated(step("segment", window=st.sampled_from([None, 2920, 5000, 20_000, 40_000, 50_000]),
                  octets=st.sampled_from([0, 0, 0, 100])), 6),
    perhaps | _duplicates, _receive(),
)  # fmt: skip
"""Acknowledgments that differ in their window or carry data are no duplicates."""
closure = episode(
    perhaps | _some | _grown, step("offer", window=one(0)), _wait(later | long | hours),
    st.one_of(step("offer", window=st.sampled_from([1, 1460, 20_000])),
              step("segment", flags=st.sampled_from(["R", "RA", "FA"])),
              step("segment", window=one(0)), step("abort")),
    _receive(soon | later), perhaps | step("offer", window=one(40_000)), _receive(),
)  # fmt: skip
"""A window that stays closed."""
stretching = episode(
    perhaps | _some, _receive(one(5.0), st.sampled_from([2, 3, 4, 8, 20])), step("settle")
)
duplicated = episode(
    _grown, perhaps | _wait(soon | later), _duplicates, perhaps | _wait(soon),
    st.none() | _acks(part), perhaps | _duplicates, _receive(),
)  # fmt: skip
_offer = step(
    "offer", window=st.sampled_from([0, 1, 100, 535, 536, 1459, 1460, 2919, 2920, 20_000])
)
windows = episode(
    perhaps | _some | _grown, step("offer", window=st.sampled_from([0, 0, 1, 100, 1000])),
    repeated(episode(perhaps | _data, _wait(soon | later | long), _offer,
                     perhaps | _receive(soon)), 4), _receive(soon),
    step("offer", window=one(40_000)), _receive(),
)  # fmt: skip
stuck = episode(
    step("open", mss=st.sampled_from([536, 1460]), window=st.sampled_from([2920, 8000, 40_000]),
         window_scale=st.sampled_from([None, 0])), _grown,
    step("offer", window=st.sampled_from([0, 1, 100, 267, 500, 535, 729, 731, 1459])),
    _receive(soon | later), perhaps | _offer, _receive(soon | later),
    step("offer", window=one(40_000)), _receive(soon),
    perhaps | episode(step("offer", window=one(0)), _wait(later),
                      step("offer", window=one(20_000))),
    _receive(),
)  # fmt: skip
"""A sender of bulk data at a window that is small or closed, and at another one later."""
filling = episode(
    step("open", service=one("echo"), window_scale=st.sampled_from([None, 7])),
    step("fill", beyond=st.sampled_from([0, 0, 1, 700]), fin=st.sampled_from([False, False, True])),
    repeated(step("segment", seq=_place("next", beside),
                  octets=st.sampled_from([0, 1, 1, 700]),
                  window=st.sampled_from([None, 1 << 20])), 3),
    perhaps | _receive(soon | later),
    repeated(episode(step("offer", window=st.sampled_from([100, 1460, 5000, 40_000])),
                     _receive(soon)), 3),
    perhaps | step("close"), step("settle"),
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window."""

unanswered = episode(
    step("knock", service=st.sampled_from(["chargen", "echo"])),
    perhaps | step("segment", flags=st.sampled_from(["A", "S", "SA", "RA", "R", "FA", "PA"]),
                   seq=_place("next", beside | st.sampled_from([1 << 20])),
                   ack=_place("zero", st.sampled_from([0, 1, -1, -2, 70_000])),
                   octets=st.sampled_from([0, 0, 1, 100])),
    _wait(soon | later | hours), perhaps | step("segment"), _receive(),
)  # fmt: skip
_ring = step("ring", role=st.sampled_from(["send", "receive"]), timestamps=st.booleans(),
             sack=st.booleans(), window_scale=st.sampled_from([None, 7]))  # fmt: skip
belated = episode(_ring, _wait(minutes), step("answer"), perhaps | step("segment"), _receive())
late_answer = episode(
    step("knock", service=st.sampled_from(["chargen", "echo"])), _wait(soon | later | minutes),
    step("segment", ack=_place("delivered", st.sampled_from([0, 0, 0, 1, -1])),
         octets=st.sampled_from([0, 0, 100])),
    perhaps | _data, _receive(),
)  # fmt: skip
refused = episode(
    _ring, perhaps | _wait(soon),
    step("segment", flags=st.sampled_from(["RA", "RA", "R"]), seq=_place("zero", one(0)),
         ack=_place("zero", st.sampled_from([0, 0, 0, 1, -1]))),
    _receive(later), perhaps | step("answer"), _receive(),
)  # fmt: skip
crossed = episode(
    _ring, perhaps | _wait(soon), step("answer", flags=one("S")), _wait(soon),
    perhaps | step("answer"), perhaps | step("segment"), perhaps | _data, _receive(),
)  # fmt: skip
called = episode(
    step("ring", role=st.sampled_from(["send", "receive"])),
    st.one_of(
        perhaps,
        _wait(soon | later | hours),
        step("answer", flags=one("S")),
        step("answer", ack=st.sampled_from([1, -1, 70_000])),
        step("segment", flags=st.sampled_from(["A", "RA", "R", "FA"]), seq=_place("zero", beside),
             ack=_place("zero", st.sampled_from([0, 0, 1, -1, 70_000]))),
    ),
    perhaps | _wait(soon), perhaps | step("answer"), perhaps | step("segment"), _receive(),
)  # fmt: skip


@st.composite
def _scattered(draw: st.DrawFn) -> list[Step]:
    """Segments in an order in which few follow each other, some twice."""
    size = draw(st.sampled_from([500, 1000]))
    order = draw(st.permutations(range(1, 13)))[: draw(st.integers(3, 12))]
    if draw(st.booleans()):
        order = [2 * number for number in order]
    twice = draw(st.sets(st.sampled_from(order), max_size=2))
    return [
        Step("segment", {"seq": ("next", size * number), "octets": size,
                         "times": 2 if number in twice else 1})
        for number in order
    ]  # fmt: skip


holes = episode(
    _scattered(), perhaps | _wait(soon),
    perhaps | repeated(episode(step("write", octets=st.sampled_from([500, 1000, 3000])),
                               perhaps | _wait(soon), perhaps | _scattered()), 3),
    perhaps | step("close"), step("settle"),
)  # fmt: skip
resets = episode(
    perhaps | step("segment", seq=_place("next", st.sampled_from([0, 500, 1000])),
                   octets=one(1000)),
    step("segment", flags=st.sampled_from(["R", "RA", "S", "SA"]),
         seq=st.tuples(st.sampled_from(["next", "edge"]),
                       st.sampled_from([-1, 0, 1, 500, 1000, 1500, 2000])),
         tsval=st.sampled_from([0, 0, -1, -5000])),
    _receive(soon), perhaps | _data, step("settle"),
)  # fmt: skip


@st.composite
def _reset_of_held(draw: st.DrawFn) -> list[Step]:
    """Data above a gap, and a RST or SYN at its end, or beside it."""
    gap, size = draw(st.sampled_from([0, 1, 500, 1460])), draw(st.sampled_from([1, 500, 1460]))
    beyond = draw(st.sampled_from([-1, 0, 0, 0, 1]))
    held = Step("segment", {"seq": ("next", gap), "octets": size})
    ends = Step("segment", {"flags": draw(st.sampled_from(["R", "R", "RA", "S"])),
                            "seq": ("next", gap + size + beyond if gap else beyond)})  # fmt: skip
    return [held, ends] if draw(st.booleans()) else [held, Step("wait", {"seconds": 0.7}), ends]


held_reset = episode(_reset_of_held(), _receive(soon), perhaps | _data, step("settle"))
stamped_reset = episode(
    step("open", timestamps=one(True), service=st.sampled_from(["discard", "echo", "chargen"])),
    perhaps | _data, perhaps | _wait(soon),
    step("segment", flags=st.sampled_from(["R", "R", "RA"]), seq=_place("next", beside),
         tsval=st.sampled_from([0, -1, -100, -100_000, 1 << 30]), bare=st.booleans()),
    _receive(soon), perhaps | _data, step("settle"),
)  # fmt: skip
edges = episode(
    perhaps | step("open", service=st.sampled_from(["echo", "discard"]),
                   window_scale=st.sampled_from([None, None, 0, 7])),
    perhaps | _some,
    repeated(step("segment", flags=st.sampled_from(["A", "A", "FA", "RA"]),
                  seq=_place("edge", st.sampled_from([-2, -1, -1, 0, 1])),
                  octets=st.sampled_from([0, 1, 2, 100])), 2),
    _receive(soon), step("settle"),
)  # fmt: skip
stamps = episode(
    perhaps | _data, perhaps | step("receive", segments=st.sampled_from([2, 5, 10]),
                                    seconds=one(2.0), every=one(100)),
    perhaps | _wait(soon),
    repeated(step("segment", octets=st.sampled_from([0, 100]),
                  tsval=st.sampled_from([0, -1, -100, -100_000, 1 << 30, -(1 << 31)]),
                  bare=st.booleans(), flags=st.sampled_from(["A", "A", "PA", "R", "FA"]),
                  window=st.sampled_from([None, None, 1 << 16])), 2),
    _data, step("settle"),
)  # fmt: skip
optioned = episode(
    st.one_of(perhaps, step("open", odd=st.fixed_dictionaries({"raw": OPTIONS_OF_SYN}))),
    repeated(step("segment", octets=st.sampled_from([0, 100, 100]),
                  odd=st.one_of(st.fixed_dictionaries({"raw": OPTIONS}),
                                st.fixed_dictionaries({"raw": OPTIONS}),
                                st.fixed_dictionaries({"ip": IP_OPTIONS}))), 3),
    _receive(), step("settle"),
)  # fmt: skip
urgent = episode(
    step("segment", flags=one("UPA"), octets=st.sampled_from([1, 100]),
         odd=st.fixed_dictionaries({"urgptr": st.sampled_from([0, 1, 100, 65_535])})),
    _data, step("settle"),
)  # fmt: skip
reneging = episode(
    _grown,
    st.one_of(perhaps, episode(step("receive", losing=st.lists(st.integers(0, 3), min_size=2,
                                                               max_size=5),
                                    seconds=st.sampled_from([0.7, 1.0, 1.5])),
                               step("renege", octets=st.sampled_from([0, 1460, 2920])))),
    perhaps | _wait(soon),
    step("segment", sack=st.lists(
        st.tuples(_place("delivered", part), _place("delivered", part.map(lambda n: n + 1460))),
        min_size=1, max_size=3,
    ), times=st.sampled_from([1, 1, 3])),
    perhaps | step("segment", sack=one([]), times=count), _wait(soon | later), _receive(),
)  # fmt: skip

HONEST: tuple[Episode, ...] = (
    idle,
    paused,
    half_close,
    lingering,
    recovery,
    outage,
    stretching,
    urgent,
    expired,
    belated,
    late_answer,
)
LAZY: tuple[Episode, ...] = (
    vanishing, splitting, windows, stuck, filling, duplicated, outage, split, updates, closure,
    expired,
)  # fmt: skip
ODD: tuple[Episode, ...] = (
    recovery, duplicated, unanswered, called, holes, resets, edges, stamps, optioned, reneging,
    refused, crossed, held_reset, stamped_reset, optioned, expired,
)  # fmt: skip
