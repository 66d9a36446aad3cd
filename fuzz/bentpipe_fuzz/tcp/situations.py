"""Situations of TCP: whole conversations, most of whose steps are what leads there.

An episode varies much and meets each of its situations seldom; of a situation only that is varied
which the requirements there speak of. Each opens its own connection. Which are missing, is told by
the requirements that no conversation meets (:doc:`/decisions/155-situations`).
"""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.options import IP_OPTIONS, KNOWN, STAMPS, UNKNOWN

Situation = st.SearchStrategy[list[Step]]
Times = st.SearchStrategy[float]

one, some_of, either = st.just, st.sampled_from, st.booleans()
perhaps, DAYTIME, WIDE = st.none(), 13, 1 << 20

soon = some_of([0.1, 0.7, 1.3])
timeout = some_of([1.3, 2.0, 3.5, 8.0])
"""Seconds of silence after which a sender has timed out once or twice."""


def _open(service: str | int, **offer: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return step("open", service=one(service), **offer)


def _wait(seconds: Times) -> st.SearchStrategy[Step]:
    return step("wait", seconds=seconds)


def _receive(seconds: float, **given: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return step("receive", seconds=one(seconds), **given)


def _segments(count: list[int], **given: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return step("receive", segments=some_of(count), seconds=one(5.0), **given)


def _place(base: str, *distances: int) -> st.SearchStrategy[tuple[str, int]]:
    return st.tuples(one(base), some_of(list(distances)))


_settle, _close = step("settle", rounds=one(3)), step("close")
_text = step("write", octets=some_of([100, 1000, 2920]))
_quiet_service, _any_service = (some_of(["discard", "echo", "chargen"][:n]) for n in (2, 3))
_bulk = _open("chargen", mss=some_of([536, 1460, 1460]), window=some_of([20_000, 40_000]),
              sack=either, timestamps=either)  # fmt: skip
_bulk_with_sack = _open("chargen", window=one(40_000), sack=one(True), timestamps=either)
_bulk_without = _open("chargen", window=one(40_000), sack=one(False), timestamps=either)

# -- openings

given_up = episode(
    step("ring", role=some_of(["send", "receive"])), _wait(some_of([100.0, 172.0, 178.0, 185.0])),
    step("answer"), perhaps | _text, _receive(2.0),
)  # fmt: skip
wrong_answer = episode(
    step("ring", role=some_of(["send", "receive"]), timestamps=either),
    step("segment", flags=some_of(["A", "SA", "FA", "PA"]), seq=_place("zero", 0, 1),
         ack=_place("zero", -1, 1, 1, 1000, 1 << 30), octets=some_of([0, 0, 100])),
    perhaps | _wait(soon), perhaps | step("answer"), _receive(2.0),
)  # fmt: skip
refusal = episode(
    step("ring", role=some_of(["send", "receive"])), perhaps | _wait(timeout),
    step("segment", flags=some_of(["RA", "RA", "R"]), seq=_place("zero", 0, 1000),
         ack=_place("zero", 0, 0, 0, 1, -1)),
    _wait(some_of([4.0, 30.0])), perhaps | step("answer"), _receive(1.0),
)  # fmt: skip
late_third = episode(
    step("knock", service=_any_service), _wait(some_of([100.0, 172.0, 178.0, 185.0, 400.0])),
    step("segment"), perhaps | _text, _receive(2.0),
)  # fmt: skip
repeated_opening = episode(
    step("knock", service=one("chargen"), mss=some_of([100, 536, 1460])),
    _wait(some_of([0.5, 2.0, 4.0, 9.0])), step("segment"),
    _wait(some_of([0.1, 5.0, 10.0])), _segments([10, 20]),
)  # fmt: skip
"""The SYN-ACK has been sent again before it is acknowledged, and the first data may be, too."""
half_open = episode(
    step("knock", service=_any_service, timestamps=either),
    step("segment", flags=some_of(["A", "A", "PA", "FA", "R", "RA", "S", "", "F"]),
         seq=_place("next", 0, 0, -1, 1, 1 << 20), ack=_place("delivered", 0, 0, 1, -1, 1000),
         octets=some_of([0, 0, 1, 100])),
    perhaps | _wait(soon), step("segment"), _text, _settle,
)  # fmt: skip
small_peer = episode(
    _open("chargen", mss=some_of([None, 64, 100, 536]), sack=either, timestamps=either),
    _segments([5, 20]), perhaps | _wait(timeout), _receive(1.5),
)  # fmt: skip

# -- ends

lingering = episode(
    _open(DAYTIME, timestamps=either), _receive(1.0), _close, _receive(1.0),
    _wait(some_of([0.5, 10.0, 50.0, 100.0, 220.0, 235.0, 300.0, 700.0])),
    step("segment", flags=some_of(["FA", "FA", "A", "RA", "PA"]),
         seq=_place("next", -1, -1, 0), octets=some_of([0, 0, 100])),
    perhaps | episode(_wait(some_of([10.0, 200.0])),
                      step("segment", flags=one("FA"), seq=_place("next", -1))),
    _receive(1.0),
)  # fmt: skip
both_close = episode(
    _open(DAYTIME, timestamps=either), perhaps | _text, _close,
    st.one_of(_receive(2.0), episode(_wait(timeout), _receive(2.0))),
    step("segment", flags=some_of(["FA", "A"]), seq=_place("next", -1, 0)), _receive(1.0),
)  # fmt: skip
unheard_end = episode(
    _open(DAYTIME), _wait(some_of([1.3, 5.0, 30.0])),
    step("segment", ack=_place("delivered", 0, 1, 10)), _wait(timeout), _receive(2.0),
    perhaps | _close, _receive(1.0),
)  # fmt: skip
"""The last data and FIN of the implementation are acknowledged late, or in part."""
half_closed = episode(
    _open("chargen", window=some_of([8000, 40_000]), sack=either), _segments([3, 10]), _close,
    st.one_of(
        _segments([20]),
        episode(_wait(timeout), _segments([10])),
        _segments([20], losing=some_of([[0], [1, 3], [0, 1, 2]])),
        episode(step("offer", window=some_of([0, 100])), _receive(8.0),
                step("offer", window=one(20_000)), _segments([10])),
        step("segment", times=one(3)),
    ),
    _receive(1.0),
)  # fmt: skip
"""The tester has closed, and the implementation goes on sending."""
sends_on = episode(
    _open(DAYTIME, sack=either), _receive(1.0), repeated(_text, 3),
    step("segment", seq=_place("next", 0, 1000), octets=some_of([1, 1000])), _settle, _close,
    _receive(1.0),
)  # fmt: skip
"""The implementation has closed, and the tester goes on sending."""
_leads = st.one_of(
    episode(_open("chargen"), _segments([3])),
    episode(_open("discard"), _text),
    episode(_open("discard"), _close, _receive(1.0)),
    episode(_open("chargen"), _segments([3]), _close),
    _open(DAYTIME).map(lambda first: [first]),
    episode(_open(DAYTIME), _receive(1.0)),
    episode(_open(DAYTIME), _close),
    episode(_open(DAYTIME), _receive(1.0), _close, _receive(1.0)),
)  # fmt: skip
"""Into each state of an open connection."""
intruding = episode(
    _leads,
    step("segment", flags=some_of(["R", "RA", "S", "SA", "SF", "", "P", "F", "FA", "PA"]),
         seq=st.one_of(_place("next", 0, 0, -1, 1, 1000), _place("edge", -1, 0, 1)),
         octets=some_of([0, 0, 1, 100])),
    _receive(1.0), perhaps | _text, _settle,
)  # fmt: skip
again = episode(
    _leads, perhaps | episode(step("segment", flags=one("R")), _wait(soon)),
    step("reopen", ahead=some_of([1, 1, 1000, 1 << 20, 0, -1, -1000, 1 << 30])),
    perhaps | _text, _receive(1.0), _settle,
)  # fmt: skip
"""A second connection between the same ports."""
kept_alive = episode(
    _open("discard", timestamps=either), perhaps | _text, perhaps | _settle,
    repeated(episode(_wait(some_of([75.0, 700.0, 7300.0])),
                     step("segment", seq=_place("next", -1), octets=some_of([0, 1]))), 3),
    _receive(1.0), perhaps | _text, _settle,
)  # fmt: skip

# -- what segments carry

_odd = st.one_of(
    st.fixed_dictionaries({"raw": UNKNOWN}), st.fixed_dictionaries({"raw": KNOWN}),
    st.fixed_dictionaries({"ip": IP_OPTIONS}),
)  # fmt: skip
strange_options = episode(
    step("open", service=_quiet_service, sack=either, timestamps=either,
         window_scale=some_of([None, 0, 7])),
    repeated(step("segment", octets=some_of([1, 100]), odd=_odd), 3), _text, _settle,
)  # fmt: skip
strange_acknowledgments = episode(
    _bulk, _segments([5]), _segments([5], every=one(100)),
    repeated(step("segment", odd=_odd, octets=some_of([0, 0, 100])), 3), _segments([20]),
)  # fmt: skip
without_flags = episode(
    step("open", service=_any_service), perhaps | _text,
    step("segment", flags=some_of(["", "P", "U", "F", "E"]), octets=some_of([1, 100]),
         odd=st.one_of(one(None), st.fixed_dictionaries({"dataofs": some_of([0, 4, 15])}))),
    perhaps | _wait(soon), _settle, _text, _settle,
)  # fmt: skip
_old = some_of([-1, -1, -100, -100_000, -(1 << 31) + 1])
old_stamps = episode(
    step("open", service=_quiet_service, timestamps=one(True)), _text, perhaps | _settle,
    repeated(step("segment", octets=some_of([1, 100, 1000]), tsval=_old), 2),
    perhaps | _wait(soon), _text, _settle,
)  # fmt: skip
no_stamps = episode(
    step("open", service=_quiet_service, timestamps=one(True)), perhaps | _text,
    repeated(step("segment", octets=some_of([1, 100]), bare=one(True)), 2), _text, _settle,
)  # fmt: skip
stray_stamps = episode(
    step("open", service=_quiet_service, timestamps=one(False)), perhaps | _text,
    repeated(step("segment", octets=some_of([1, 100]),
                  odd=st.fixed_dictionaries({"raw": STAMPS})), 2),
    _text, _settle,
)  # fmt: skip
old_acknowledgment = episode(
    _open("chargen", timestamps=one(True), window=some_of([8000, 20_000])), _segments([10]),
    perhaps | _segments([5], every=one(100)),
    step("segment", tsval=_old, octets=some_of([0, 100]), window=some_of([None, WIDE, 0])),
    _segments([20]),
)  # fmt: skip


@st.composite
def _around_the_last(draw: st.DrawFn) -> list[Step]:
    """Data in sequence or above a gap, and at once a RST or SYN at its edges or beside them."""
    size, gap = draw(some_of([1, 100, 1000])), draw(some_of([0, 0, 500]))
    base = gap if gap else -size  # what is in sequence moves the next octet
    at = draw(some_of([0, 0, 0, -1, 1])) + draw(some_of([0, size]))
    flags = draw(some_of(["R", "R", "R", "RA", "S"]))
    return [Step("segment", {"seq": ("next", gap), "octets": size}),
            Step("segment", {"flags": flags, "seq": ("next", base + at)})]  # fmt: skip


reset_at_data = episode(
    step("open", service=_quiet_service, timestamps=either), perhaps | episode(_text, _settle),
    _around_the_last(), _receive(1.0), perhaps | _text, _settle,
)  # fmt: skip
stamped_reset = episode(
    step("open", service=_any_service, timestamps=one(True)), _text, _wait(soon),
    step("segment", flags=one("R"), tsval=some_of([0, -1, -100_000]), bare=either),
    _wait(soon), _text, _receive(1.0),
)  # fmt: skip
out_of_order = episode(
    _open("echo", sack=either, timestamps=either, window_scale=some_of([None, 7])),
    repeated(step("segment", seq=_place("next", 0, 1000, 2000, 2000, 3000), octets=one(1000),
                  times=some_of([1, 1, 2])), 4),
    perhaps | step("segment", sack=one([]), times=one(3)),
    _text, _settle, _receive(2.0),
)  # fmt: skip


@st.composite
def _blocks(draw: st.DrawFn) -> list[Step]:
    """Blocks above a gap in some order, and some of that again, whole or in part."""
    order = draw(st.permutations([1, 3, 5, 7, 9]))[: draw(st.integers(2, 5))]
    taken = [(1000 * place, 1000) for place in order]
    for _ in range(draw(st.integers(1, 3))):
        start, size = draw(st.sampled_from(taken))
        again = [(start, size), (start, 500), (start + 500, 500), (start - 500, 1000),
                 (start + 500, 1000), (-500, 500)]  # fmt: skip
        taken.append(draw(some_of(again)))
    return [Step("segment", {"seq": ("next", start), "octets": size}) for start, size in taken]


repeated_blocks = episode(_open("discard", sack=one(True), timestamps=either), _text, _blocks(),
                          _receive(1.0), _text, _settle)  # fmt: skip
closed_by_itself = episode(
    _open("echo", window_scale=one(None), sack=either),
    step("fill", beyond=some_of([0, 0, 1, 500]), fin=some_of([False, False, True])),
    repeated(st.one_of(
        step("segment", octets=some_of([1, 100, 1000]), window=some_of([None, 20_000, WIDE])),
        step("segment", seq=_place("edge", -1, 0, 1), flags=some_of(["A", "R", "FA"]),
             octets=some_of([0, 1])),
    ), 3),
    perhaps | step("segment", flags=one("R")),
    repeated(episode(step("offer", window=some_of([1460, 20_000, 60_000])), _receive(3.0)), 3),
    _settle,
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window."""

refused_data = episode(
    _open("echo", window_scale=one(None)), step("fill"),
    step("segment", octets=some_of([1, 100, 1000]), window=some_of([20_000, 60_000])),
    _receive(1.0), step("offer", window=one(40_000)), _receive(3.0), _settle,
)  # fmt: skip
"""Likewise; what the closed window refuses opens the tester's."""

# -- senders

lone = episode(
    _open("echo", timestamps=either, sack=either), repeated(_text, 2), _settle,
    step("write", octets=some_of([1, 100, 1000])), _wait(some_of([1.3, 3.0, 10.0, 30.0])),
    perhaps | step("segment", ack=_place("delivered", 0, 0, 1)), _receive(2.0),
    step("write", octets=one(100)), perhaps | _wait(timeout), _receive(2.0),
)  # fmt: skip
"""One segment is outstanding, and not acknowledged for a while."""
backed_off = episode(
    _bulk, _segments([5, 10]), _wait(some_of([3.0, 8.0])),
    repeated(episode(
        step("receive", segments=some_of([1, 2]), seconds=one(1.0)), _wait(timeout)
    ), 3),
    _segments([20, 40]),
)  # fmt: skip
"""Timeouts, and acknowledgments of nothing but what they repeated."""
gone_back = episode(
    _bulk_with_sack, _segments([5, 10]), _wait(some_of([2.0, 3.5])),
    step("receive", segments=some_of([5, 10]), seconds=one(2.0),
         losing=some_of([[0], [1], [0, 2], [1, 2, 3], [0, 0]])),
    perhaps | step("segment", times=one(3), sack=some_of([None, []])), _segments([10, 20]),
)  # fmt: skip
"""After a timeout something newer is reported held."""
no_reports = episode(
    _bulk_without, _segments([10, 20]),
    step("receive", losing=some_of([[0], [1, 3], [1, 3, 5], [0, 1, 2], [2, 2], [0, 4, 4]]),
         segments=some_of([20, 30]), seconds=one(10.0)),
    perhaps | step("segment", times=one(3)), _segments([20]),
)  # fmt: skip
one_report = episode(
    _bulk_with_sack, _segments([10, 20]), _wait(some_of([0.7, 0.9])),
    st.one_of(
        step("segment", sack=st.tuples(st.tuples(
            _place("delivered", 1460, 2920, 4380), _place("delivered", 7300, 8760, 10_220)
        )).map(list), times=some_of([1, 1, 3])),
        step("segment", sack=one([[("delivered", -1460), ("delivered", 0)]]),
             times=some_of([1, 3])),
        step("segment", sack=one([]), times=some_of([2, 3, 5])),
        step("segment", window=some_of([10_000, 50_000, WIDE]), times=some_of([1, 3])),
        repeated(step("segment", window=some_of([30_000, 40_000, 50_000])), 4),
    ),
    perhaps | _wait(soon), _segments([20], losing=some_of([[], [0], [1, 2]])),
)  # fmt: skip
"""What a single acknowledgment shows: a hole, a duplicate, nothing, another window."""
thrown_away = episode(
    _bulk_with_sack, _segments([10]),
    step("receive", losing=some_of([[0], [0, 1], [1]]), segments=one(12),
         seconds=some_of([0.7, 0.9])),
    step("renege", octets=some_of([0, 0, 1460])), _segments([20]), _receive(5.0),
)  # fmt: skip
stretched = episode(
    _bulk, _segments([20, 40], every=some_of([3, 4, 8])), perhaps | _segments([20]),
)  # fmt: skip


@st.composite
def _divided(draw: st.DrawFn) -> list[Step]:
    """A few segments, acknowledged in many parts."""
    parts, size = draw(some_of([8, 12, 16])), draw(some_of([2920, 5840]))
    return [Step("segment", {"ack": ("delivered", -size + size * (number + 1) // parts)})
            for number in range(parts)]  # fmt: skip


divided = episode(_bulk, perhaps | _segments([3]), _segments([4], every=one(100)), _divided(),
                  _receive(2.0), _segments([10]))  # fmt: skip
shut = episode(
    _open("chargen", window=some_of([8000, 40_000]), window_scale=some_of([None, 7])),
    _segments([5]), step("offer", window=some_of([0, 0, 1, 100, 535])),
    repeated(st.one_of(_receive(60.0), _receive(10.0), _wait(timeout),
                       _wait(some_of([200.0, 1000.0]))), 3),
    st.one_of(
        step("offer", window=some_of([1, 536, 1460, 2920, 20_000])),
        step("segment", flags=some_of(["R", "RA", "FA"])),
        episode(step("offer", window=one(20_000)), _segments([5]), step("offer", window=one(0)),
                _receive(10.0), step("offer", window=one(20_000))),
    ),
    _receive(3.0), perhaps | _segments([10]),
)  # fmt: skip
"""A window that is closed for a while or for long, whose probes are answered or not."""
shut_again = episode(
    _open("chargen", window=some_of([8000, 40_000])), _segments([5]), step("offer", window=one(0)),
    repeated(st.one_of(_receive(60.0), _receive(20.0), _wait(some_of([8.0, 100.0]))), 2),
    step("offer", window=some_of([2920, 20_000])), _segments([3, 10]),
    step("offer", window=some_of([0, 0, 100])),
    repeated(st.one_of(_receive(30.0), _receive(60.0), _wait(some_of([20.0]))), 2),
    step("offer", window=one(20_000)), _segments([5]),
)  # fmt: skip
"""Two closures in a row: the first leaves nothing behind."""
shrunk = episode(
    _open("chargen", window=some_of([20_000, 40_000]), window_scale=some_of([None, 7])),
    _segments([10, 20]), _wait(some_of([0.7, 0.0])),
    step("offer", window=some_of([536, 1460, 2920, 5000])), _receive(2.0), perhaps | _wait(timeout),
    step("offer", window=one(40_000)), _segments([20]),
)  # fmt: skip
rested = episode(
    _open("echo", window=one(WIDE), timestamps=either),
    step("write", octets=some_of([10_000, 20_000])), _settle,
    perhaps | _text, _wait(some_of([0.3, 2.0, 30.0])),
    perhaps | episode(step("write", octets=one(1)), _settle),
    step("write", octets=one(20_000)), _receive(3.0),
)  # fmt: skip
"""A burst after a pause of a sender that had grown."""
long_after = episode(
    _open("chargen", window=some_of([15_000, 20_000]), sack=either),
    _segments([10, 20], losing=one([5])), _segments([60]), _segments([60]),
)  # fmt: skip
"""Some round trips without loss after a recovery."""

OPENING: tuple[Situation, ...] = (
    given_up, wrong_answer, refusal, late_third, repeated_opening, half_open, small_peer,
)  # fmt: skip
ENDING: tuple[Situation, ...] = (
    lingering, both_close, unheard_end, half_closed, sends_on, intruding, again, kept_alive,
)  # fmt: skip
CARRYING: tuple[Situation, ...] = (
    strange_options, strange_acknowledgments, without_flags, old_stamps, no_stamps, stray_stamps,
    old_acknowledgment, stamped_reset, reset_at_data, out_of_order, repeated_blocks,
    closed_by_itself, refused_data,
)  # fmt: skip
SENDING: tuple[Situation, ...] = (
    lone, backed_off, gone_back, no_reports, one_report, thrown_away, stretched, divided, shut,
    shut_again, shrunk, rested, long_after,
)  # fmt: skip
