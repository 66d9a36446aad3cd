"""Situations of RWBP beside those of TCP; see :mod:`bentpipe_fuzz.tcp.situations`."""

from __future__ import annotations

from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.connection import SEGMENT
from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.leads import (
    Situation,
    any_service,
    close,
    either,
    one,
    opened,
    perhaps,
    place,
    quiet_service,
    receive,
    segments,
    settle,
    some_of,
    soon,
    text,
    timeout,
    wait,
)

OPTIONS = {
    "usual": option_octets(), "often": option_octets(1), "seldom": option_octets(255, 600),
    "small": option_octets(8, 48), "large": option_octets(8, 65535),
    "reserved": option_octets(reserved=15),
    "version": option_octets(version=2), "no version": option_octets(version=0),
    "no interval": option_octets(0), "no unit": option_octets(8, 47),
    "short": option_octets(length=9), "long": option_octets(length=12),
    "other": bytes((253, 4, 0xF9, 0x89)), "unknown": bytes((200, 5, 1, 2, 3)), "end": b"\0",
    "half": bytes((253, 10, 0x52, 0x57, 0, 0)) + option_octets()[6:],
}  # fmt: skip
"""RWBP options, void ones, and others."""
VOID = ("version", "no version", "no interval", "no unit", "short", "long")
_GOOD = ("usual", "often", "seldom", "small", "reserved")


def _hex(*names: str) -> str:
    return b"".join(OPTIONS[name] for name in names).hex()


_options = st.one_of(
    some_of(_GOOD).map(_hex), some_of(VOID).map(_hex),
    st.tuples(some_of((*VOID, "other", "unknown", "end", "half")), some_of(_GOOD)).map(
        lambda two: _hex(*two)
    ),
    some_of(["other", "half"]).map(_hex),
    st.tuples(some_of(_GOOD), some_of((*_GOOD, *VOID))).map(lambda two: _hex(*two)),
)  # fmt: skip
_of_segments = st.one_of(
    some_of(["often", "seldom", "small", "large", "unknown", "other"]).map(_hex),
    some_of(["b402", "fe02", "22020101", "050a00000001000000ff", "080a0000000000000000",
             "080affffffff00000001"]),
)  # fmt: skip
NARROW = some_of([4 * SEGMENT, 8 * SEGMENT])
WINDOWS = some_of([4 * SEGMENT, 8 * SEGMENT, 16 * SEGMENT])
bulk = opened("chargen", window=WINDOWS, interval=some_of([1, 2, 8, 64]))

# -- what is agreed

offers = episode(
    step("open", service=any_service, option=_options,
         mss=some_of([None, 0, 1, 47, 48, 536, 1000, 1460]),
         sack=some_of([True, True, True, False]), window=some_of([4800, 16 * SEGMENT]),
         window_scale=some_of([None, None, 7]), timestamps=some_of([False, False, True]),
         odd=some_of([{}, {}, {}, {"flags": "SEC"}, {"data": 100}])),
    perhaps | text, segments([5, 10]), perhaps | text, settle,
)  # fmt: skip
calls = episode(
    step("ring", role=some_of(["send", "receive"]), option=_options,
         sack=some_of([True, True, False]), window_scale=some_of([None, 7]), timestamps=either),
    perhaps | wait(some_of([1.3, 4.0])),
    step("answer", flags=some_of(["SA", "SA", "S"]),
         raw=some_of(["", "", "01030307", "0101080a0000000100000000", "01030300"])),
    perhaps | wait(some_of([1.3, 4.0, 10.0])), perhaps | step("segment"), perhaps | text,
    receive(2.0), settle,
)  # fmt: skip
options_amid = episode(
    step("open", service=any_service, interval=some_of([1, 8]), mss=some_of([536, 1460])),
    perhaps | text,
    repeated(step("segment", flags=some_of(["A", "A", "PA", "FA"]),
                  octets=some_of([0, 0, 100, 1000]),
                  odd=st.fixed_dictionaries({"raw": _of_segments})), 3),
    perhaps | text, segments([5, 20]), perhaps | text, settle,
)  # fmt: skip
"""Options where nobody looks for them, and others that nobody knows."""

called_again = episode(
    step("knock", service=any_service, option=_options, window=WINDOWS), perhaps | wait(soon),
    step("reopen", ahead=one(-1), option=some_of(_GOOD).map(_hex), window=WINDOWS,
         mss=some_of([None, 536, 1460])),
    perhaps | text, segments([5, 10]), perhaps | text, settle,
)  # fmt: skip
"""The SYN is repeated before the handshake is complete, and offers something else.

It offers RWBP: else octets would be taken for units, and the window be larger than any buffer.
"""
amid_handshake = episode(
    step("knock", service=any_service, interval=some_of([1, 8])),
    repeated(episode(
        step("segment", flags=some_of(["S", "S", "SA", "R", "RA", "F", ""]),
             seq=place("next", 0, 0, 1, 1000, -1, -2), octets=some_of([0, 0, 100])),
        perhaps | wait(soon),
    ), 2),
    step("segment"), text, segments([5]), settle,
)  # fmt: skip
"""What does not belong there comes before the handshake is complete."""

# -- who acknowledges, and how often

in_order = episode(
    step("open", service=quiet_service, interval=some_of([1, 2, 4, 8, 64])),
    repeated(episode(step("write", octets=some_of([100, 1460, 2920, 11_680, 14_600]),
                          at_once=some_of([100, 1460])), wait(some_of([0.05, 0.2, 0.7]))), 4),
    settle,
)  # fmt: skip
"""Segments in order, whose acknowledgments are counted and timed."""


@st.composite
def _scattered(draw: st.DrawFn) -> list[Step]:
    """Segments above gaps, which are filled or not, and copies of them."""
    size = draw(some_of([100, 1000]))
    order = draw(st.lists(st.integers(0, 9), min_size=4, max_size=10))
    pause = draw(some_of([0.01, 0.15, 0.3]))
    steps: list[Step] = []
    for at in order:
        steps.append(Step("segment", {"seq": ("zero", at * size), "octets": size}))
        steps.append(Step("wait", {"seconds": pause}))
    if draw(st.booleans()):
        end = draw(st.integers(max(order), 10))
        steps.append(Step("segment", {"seq": ("zero", end * size), "octets": 0, "flags": "FA"}))
        steps.append(Step("wait", {"seconds": pause}))
    return steps


scattered = episode(
    step("open", service=quiet_service, interval=some_of([1, 2, 8])), _scattered(), settle,
)  # fmt: skip

# -- losses, true and false


def _report(at: int, above: int, held: int) -> Step:
    """The tester has everything up to a segment, and some above a hole behind it."""
    first, last = (at + above) * SEGMENT, (at + above + held) * SEGMENT
    block = [[("zero", first), ("zero", last)]] if held > 0 else []
    return Step("segment", {"ack": ("zero", at * SEGMENT), "sack": block})


@st.composite
def _overtaken(draw: st.DrawFn) -> list[Step]:
    """Segments that are reported missing and turn out to have been late, several times.

    What tells so may report another missing; the timer may expire before the last is reported, and
    then everything be acknowledged.
    """
    window = draw(some_of([4, 8, 16]))
    offer = {"window": window * SEGMENT, "interval": draw(some_of([1, 2, 8, 64]))}
    steps = [Step("open", {"service": "chargen", **offer}), Step("wait", {"seconds": 1.3})]
    at, sent, later = 0, window, draw(some_of([0.02, 0.05, 0.05, 0.15, 0.25, 0.4]))
    for _ in range(draw(some_of([2, 3, 3, 3, 4, 5]))):  # the third false loss raises the threshold
        at += draw(st.integers(0, 1))
        missing = draw(some_of([1, 1, 1, 2, 3]))  # several false losses may be told at once
        held = min(draw(some_of([1, 1, 2, 3])), sent - at - missing)
        steps += [_report(at, missing, held), Step("wait", {"seconds": later})]
        at = min(at + draw(some_of([2, 3, window // 2])), sent)
        if sent - at < 3 or draw(st.booleans()):
            steps += [_report(at, 1, 0), Step("wait", {"seconds": draw(some_of([0.7, 1.3]))})]
            sent = at + window
    if draw(st.booleans()):
        steps.append(Step("wait", {"seconds": draw(some_of([3.0, 5.0, 10.0]))}))
        at += draw(some_of([1, window, window]))
        steps += [_report(at, 1, 0), Step("wait", {"seconds": 0.7})]
    return [*steps, _report(at, 1, draw(some_of([1, 1, 2, 3]))), Step("wait", {"seconds": 1.3})]


overtaken = episode(_overtaken(), segments([5, 20]))
losses = episode(
    bulk, perhaps | segments([4]),
    step("receive", segments=some_of([10, 30]), seconds=one(10.0), every=some_of([1, 1, 4]),
         losing=some_of([[0], [1], [0, 1], [0, 2], [1, 3, 5], [2, 2], [0, 0, 0], [3, 4, 5], [7]])),
    perhaps | wait(timeout), segments([10, 20]),
)  # fmt: skip
ANOTHER = "0101050a0000000000000001"
"""A second SACK option, with a block of what was never sent; the first one counts."""
reports = episode(
    bulk, perhaps | segments([4]), wait(one(0.7)),
    repeated(step("segment", ack=place("delivered", 0, 0, SEGMENT, -SEGMENT, 1 << 20, 1 << 30),
                  octets=some_of([0, 0, 100]), odd=some_of([{}, {}, {"raw": ANOTHER}]),
                  also=some_of([(), (), [[("delivered", 3 * SEGMENT), ("delivered", 5 * SEGMENT)]],
                                [[("delivered", SEGMENT), ("delivered", 3 * SEGMENT)]]]),
                  sack=some_of([
                      [], [[("delivered", SEGMENT), ("delivered", 2 * SEGMENT)]],
                      [[("delivered", 2 * SEGMENT), ("delivered", 4 * SEGMENT)],
                       [("delivered", 6 * SEGMENT), ("delivered", 7 * SEGMENT)]],
                      [[("highest", 0), ("highest", SEGMENT)]],
                      [[("highest", -SEGMENT), ("highest", 1000)],
                       [("delivered", SEGMENT), ("delivered", 2 * SEGMENT)]],
                      [[("delivered", 3 * SEGMENT), ("delivered", SEGMENT)]],
                  ])), 3),
    wait(timeout), segments([5, 20]),
)  # fmt: skip
"""Reports that are true, or of what was never sent."""
lone = episode(
    opened("echo", interval=some_of([1, 8])), text, perhaps | settle,
    step("write", octets=some_of([1, 100, 1460])), wait(some_of([1.3, 3.0, 10.0, 30.0, 100.0])),
    perhaps | step("segment", ack=place("delivered", 0, 1)), receive(2.0), perhaps | close, settle,
)  # fmt: skip
"""A segment, or an end, that nobody acknowledges for a while."""

# -- windows

_opened = some_of([0, 0, 600, 1459, 1460, 2920, 5000, 40_000])
edges = episode(
    opened("chargen", unit=some_of([None, 48, 600, 1460, 4096]),
           window=some_of([1460, 2920, 8000])),
    segments([2, 4]),
    repeated(episode(
        weighted(step("offer", window=_opened), step("offer", window=_opened),
                 step("segment", flags=some_of(["AE", "AC", "AEC"]), window=_opened)),
        perhaps | wait(soon), perhaps | segments([1, 2]),
    ), 4),
    receive(10.0), step("offer", window=one(20_000)), receive(2.0),
)  # fmt: skip


@st.composite
def _full_end(draw: st.DrawFn) -> list[Step]:
    """The last octets wait for a window that takes them and the end in whole segments, or not.

    It may take nothing else for long: the end waits alone.
    """
    whole = SEGMENT * draw(some_of([1, 2, 3]))
    steps = [Step("write", {"octets": whole + draw(some_of([0, 0, 0, -1, 1]))}), Step("close", {}),
             Step("wait", {"seconds": draw(soon)}),
             Step("offer", {"window": whole + draw(some_of([0, SEGMENT, 10_000]))})]  # fmt: skip
    if draw(either):
        steps += [Step("offer", {"window": 0}), Step("receive", {"seconds": draw(timeout)}),
                  Step("wait", {"seconds": draw(some_of([0.1, 10.0, 60.0]))}),
                  Step("offer", {"window": 20_000})]  # fmt: skip
    return steps


full_end = episode(
    opened("echo", window=one(0)), _full_end(),
    receive(3.0, losing=some_of([[], [], [0], [1], [0, 2]])), perhaps | receive(3.0),
)  # fmt: skip
shut = episode(
    opened("chargen", window=one(2920)), segments([2]), step("offer", window=one(0)),
    perhaps | repeated(step("segment", seq=place("next", 1000, 3000), octets=one(100)), 2),
    repeated(st.one_of(step("receive", seconds=some_of([30.0, 600.0])),
                       wait(some_of([20.0, 100.0]))), 3),
    step("offer", window=some_of([1460, 20_000])), receive(3.0), settle,
)  # fmt: skip
vast = episode(
    opened("chargen", unit=some_of([32_768, 65_535]), mss=one(1460),
           window=some_of([1 << 30, 1 << 31, 65_535 * 65_535, 65_535 * 32_768, 1 << 20])),
    segments([5, 20]), perhaps | segments([20, 60], losing=some_of([[0], [0, 0], [3, 3, 3]])),
    step("offer", window=some_of([0, 65_535, 1 << 31])), segments([5]), receive(2.0),
)  # fmt: skip
"""Windows of more octets than any buffer has."""
own_edge = episode(
    opened("echo", window=one(0)),
    step("fill", octets=some_of([1000, 1460]), beyond=some_of([0, 1]),
         leaving=some_of([0, 0, 100, 700]), fin=some_of([False, False, True])),
    repeated(st.one_of(
        step("segment", seq=place("edge", 0, -1, 1), octets=some_of([0, 0, 1]),
             flags=some_of(["A", "A", "FA", "R"])),
        step("segment", seq=place("next", -500, -1), octets=one(1460)),
    ), 2),
    repeated(episode(step("offer", window=some_of([100, 1460, 3000, 20_000])), receive(1.0)), 3),
    step("offer", window=one(20_000)), receive(3.0), settle,
)  # fmt: skip

# -- ends

aborted = episode(
    step("call", role=some_of(["send", "receive"]), window=WINDOWS),
    perhaps | text, perhaps | segments([2, 5]), perhaps | wait(some_of([0.3, 1.3])), step("quit"),
    receive(2.0), perhaps | text, wait(one(4.0)),
)  # fmt: skip
intruding = episode(
    step("open", service=any_service), perhaps | text, perhaps | segments([3]),
    repeated(step("segment", flags=some_of(["R", "R", "RA", "S", "SF", "", "F", "PU"]),
                  seq=st.one_of(place("next", 0, -1, 1, 1000, -1000), place("edge", -1, 0, 1)),
                  octets=some_of([0, 0, 1, 100])), 2),
    perhaps | text, settle,
)  # fmt: skip

AGREEING: tuple[Situation, ...] = (offers, calls, called_again, amid_handshake, options_amid)
MOVING: tuple[Situation, ...] = (
    in_order, scattered, overtaken, losses, reports, lone, edges, full_end, shut, vast,
    own_edge,
)  # fmt: skip
ENDING: tuple[Situation, ...] = (aborted, intruding)
