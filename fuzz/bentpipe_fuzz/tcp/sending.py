"""Situations of TCP in which the implementation sends; see :mod:`.situations`."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.leads import (
    WIDE,
    Situation,
    bulk,
    bulk_with_sack,
    bulk_without,
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
from bentpipe_fuzz.tcp.recovering import RECOVERING


def probed(*seconds: float) -> st.SearchStrategy[Step]:
    """The tester receives for so long, and takes octets that probe a window or refuses them."""
    return step("receive", seconds=some_of(list(seconds)), takes=either)


lone = episode(
    opened("echo", timestamps=either, sack=either), repeated(text, 2), settle,
    step("write", octets=some_of([1, 100, 1000])), wait(some_of([1.3, 3.0, 10.0, 30.0])),
    perhaps | step("segment", ack=place("delivered", 0, 0, 1)), receive(2.0),
    step("write", octets=one(100)), perhaps | wait(timeout), receive(2.0),
)  # fmt: skip
"""One segment is outstanding, and not acknowledged for a while."""
backed_off = episode(
    bulk, segments([5, 10]), wait(some_of([3.0, 8.0])),
    repeated(episode(
        step("receive", segments=some_of([1, 2]), seconds=one(1.0)), wait(timeout)
    ), 3),
    segments([20, 40]),
)  # fmt: skip
"""Timeouts, and acknowledgments of nothing but what they repeated."""
gone_back = episode(
    bulk_with_sack, segments([5, 10]), wait(some_of([2.0, 3.5])),
    step("receive", segments=some_of([5, 10]), seconds=one(2.0),
         losing=some_of([[0], [1], [0, 2], [1, 2, 3], [0, 0]])),
    perhaps | step("segment", times=one(3), sack=some_of([None, []])), segments([10, 20]),
)  # fmt: skip
"""After a timeout something newer is reported held."""
no_reports = episode(
    bulk_without, segments([10, 20]),
    step("receive", losing=some_of([[0], [1, 3], [1, 3, 5], [0, 1, 2], [2, 2], [0, 4, 4]]),
         segments=some_of([20, 30]), seconds=one(10.0)),
    perhaps | step("segment", times=one(3)), segments([20]),
)  # fmt: skip
one_report = episode(
    bulk_with_sack, segments([10, 20]), wait(some_of([0.7, 0.9])),
    st.one_of(
        step("segment", sack=st.tuples(st.tuples(
            place("delivered", 1460, 2920, 4380), place("delivered", 7300, 8760, 10_220)
        )).map(list), times=some_of([1, 1, 3])),
        step("segment", sack=one([[("delivered", -1460), ("delivered", 0)]]),
             times=some_of([1, 3])),
        step("segment", sack=one([]), times=some_of([2, 3, 5])),
        step("segment", window=some_of([10_000, 50_000, WIDE]), times=some_of([1, 3])),
        repeated(step("segment", window=some_of([30_000, 40_000, 50_000])), 4),
    ),
    perhaps | wait(soon), segments([20], losing=some_of([[], [0], [1, 2]])),
)  # fmt: skip
"""What a single acknowledgment shows: a hole, a duplicate, nothing, another window."""
thrown_away = episode(
    bulk_with_sack, segments([10]),
    step("receive", losing=some_of([[0], [0, 1], [1]]), segments=one(12),
         seconds=some_of([0.7, 0.9])),
    step("renege", octets=some_of([0, 0, 1460])), perhaps | wait(timeout), segments([20]),
    receive(5.0),
)  # fmt: skip
lost_again = episode(
    bulk_without, segments([10, 20], losing=some_of([[0], [5], [0, 4]])),
    repeated(st.one_of(
        step("segment", times=some_of([1, 2])), segments([1, 2, 4]),
        segments([6, 10], losing=some_of([[0], [1], [2], [0, 3]])),
    ), 4),
    segments([20]),
)  # fmt: skip
"""Losses soon after each other, with a duplicate or two in between, which no report tells apart."""
stretched = episode(
    bulk, segments([20, 40], every=some_of([3, 4, 8])), perhaps | segments([20]),
)  # fmt: skip


@st.composite
def _divided(draw: st.DrawFn) -> list[Step]:
    """A few segments, acknowledged in many parts."""
    parts, size = draw(some_of([8, 12, 16])), draw(some_of([2920, 5840]))
    return [Step("segment", {"ack": ("delivered", -size + size * (number + 1) // parts)})
            for number in range(parts)]  # fmt: skip


divided = episode(bulk, perhaps | segments([3]), segments([4], every=one(100)), _divided(),
                  receive(2.0), segments([10]))  # fmt: skip


@st.composite
def _told_again(draw: st.DrawFn) -> list[Step]:
    """The same acknowledgment again and again, at equal distances."""
    pause, window = draw(soon), draw(some_of([0, 0, 1]))
    told = [Step("offer", {"window": window}), Step("wait", {"seconds": pause})]
    return told * draw(st.integers(2, 12))


shut = episode(
    opened("chargen", window=some_of([8000, 40_000]), window_scale=some_of([None, 7])),
    segments([5]), perhaps | close, step("offer", window=some_of([0, 0, 1, 100, 535])),
    repeated(st.one_of(probed(60.0, 1000.0), probed(10.0), wait(timeout), _told_again(),
                       wait(some_of([200.0, 1000.0]))), 3),
    st.one_of(
        step("offer", window=some_of([1, 536, 1460, 2920, 20_000])),
        step("segment", flags=some_of(["R", "RA", "FA"])),
        episode(step("offer", window=one(20_000)), segments([5]), step("offer", window=one(0)),
                receive(10.0), step("offer", window=one(20_000))),
    ),
    receive(3.0), perhaps | segments([10]),
)  # fmt: skip
"""A window that is closed for a while or for long, whose probes are answered or not."""
shut_again = episode(
    opened("chargen", window=some_of([8000, 40_000])), segments([5]), step("offer", window=one(0)),
    repeated(st.one_of(probed(60.0, 20.0), wait(some_of([8.0, 100.0]))), 2),
    step("offer", window=some_of([2920, 20_000])), segments([3, 10]),
    step("offer", window=some_of([0, 0, 100])),
    repeated(st.one_of(probed(30.0, 60.0), wait(some_of([20.0]))), 2),
    step("offer", window=one(20_000)), segments([5]),
)  # fmt: skip
"""Two closures in a row: the first leaves nothing behind."""
shrunk = episode(
    opened("chargen", window=some_of([20_000, 40_000]), window_scale=some_of([None, 7])),
    segments([10, 20]), wait(some_of([0.7, 0.0])),
    step("offer", window=some_of([536, 1460, 2920, 5000])), receive(2.0), perhaps | wait(timeout),
    step("offer", window=one(40_000)), segments([20]),
)  # fmt: skip
rested = episode(
    opened("echo", window=one(WIDE), timestamps=either),
    step("write", octets=some_of([10_000, 20_000])), settle,
    perhaps | text, wait(some_of([0.3, 2.0, 30.0])),
    perhaps | episode(step("write", octets=one(1)), settle),
    step("write", octets=one(20_000)), receive(3.0),
)  # fmt: skip
"""A burst after a pause of a sender that had grown."""
requested = episode(
    opened("echo", window=one(WIDE), mss=one(1460), sack=either),
    step("write", octets=some_of([15_000, 25_000]), at_once=one(1460)), settle,
    wait(some_of([1.5, 5.0, 30.0])), step("write", octets=some_of([25_000, 30_000])),
    receive(3.0),
)  # fmt: skip
"""The peer's data ends a pause, and what it asks for is a burst."""
dribble = episode(
    step("open", service=quiet_service, timestamps=either, mss=some_of([None, 536, 1460])),
    repeated(episode(
        step("segment", octets=some_of([1, 100, 100, 536, 1460]), flags=some_of(["A", "PA"])),
        wait(some_of([0.02, 0.06, 0.12, 0.17, 0.25, 0.45, 0.55])),
    ), 8),
    receive(1.0), perhaps | text, settle,
)  # fmt: skip
"""Small segments, pushed or not, some of which come while an acknowledgment is delayed."""


@st.composite
def _steady(draw: st.DrawFn) -> list[Step]:
    """Segments of one size at equal distances."""
    octets, pause = draw(some_of([1, 100, 536])), draw(some_of([0.03, 0.06, 0.12, 0.17]))
    one_more = [Step("segment", {"octets": octets}), Step("wait", {"seconds": pause})]
    return one_more * draw(st.integers(4, 12))


steady = episode(
    step("open", service=quiet_service, timestamps=either), perhaps | text, _steady(), receive(1.0),
)  # fmt: skip
"""Small segments in steady succession, each of which comes while an acknowledgment is delayed."""


@st.composite
def _filled(draw: st.DrawFn) -> list[Step]:
    """Data and the end of a stream wait for a window, which the data fill exactly, or nearly."""
    octets = draw(some_of([100, 1460, 2920]))
    room = octets + draw(some_of([0, 0, 0, -1, 1]))
    return [Step("offer", {"window": 0}), Step("write", {"octets": octets}), Step("close", {}),
            Step("wait", {"seconds": draw(soon)}), Step("offer", {"window": room})]  # fmt: skip


filled = episode(
    opened("echo", window=one(20_000), window_scale=one(None), sack=either), perhaps | text,
    _filled(), receive(3.0, losing=some_of([[], [], [0], [1], [0, 2]])), perhaps | receive(3.0),
)  # fmt: skip
"""A scaled window would hardly be exact."""
small_writes = episode(
    opened("echo", window=some_of([1000, 1400, 2000, 2920, 20_000]), timestamps=either,
          mss=some_of([536, 1460])),
    repeated(episode(
        step("segment", octets=some_of([1, 100, 600, 800, 1100, 1460]), flags=some_of(["A", "PA"]),
             ack=some_of([("delivered", 0), ("zero", 1), ("zero", 1)])),
        perhaps | wait(some_of([0.05, 0.3, 0.7])),
    ), 5),
    receive(2.0), text, settle,
)  # fmt: skip
"""Small data of the user, while something is outstanding and the peer's window is small."""

written_amid_recovery = episode(
    opened("echo", window=one(40_000), sack=either, timestamps=either, mss=some_of([536, 1460])),
    step("write", octets=some_of([8000, 14_000])),
    step("receive", losing=some_of([[0], [1], [0, 2]]), segments=one(6), seconds=one(0.7)),
    repeated(step("segment", octets=some_of([1, 100, 300]), flags=some_of(["A", "PA"])), 5),
    receive(3.0), text, settle,
)  # fmt: skip
"""Small data of the user, while something that was lost is outstanding."""


@st.composite
def _growing(draw: st.DrawFn) -> list[Step]:
    """Reports of ever more above a hole, each of which may offer another window.

    All of them may stand beside data.
    """
    first, size, octets = draw(some_of([1, 1, 2])), 1460, draw(some_of([0, 0, 100]))
    steps = []
    for last in range(first + 1, first + draw(st.integers(3, 6))):
        window = draw(some_of([None, 30_000, 36_000, 45_000]))
        blocks = [[("delivered", first * size), ("delivered", last * size)]]
        steps.append(Step("segment", {"sack": blocks, "window": window, "octets": octets}))
    return steps


reports_with_windows = episode(
    bulk_with_sack, segments([10, 20]), wait(some_of([0.7, 0.9])), _growing(),
    perhaps | wait(soon), segments([10, 20]),
)  # fmt: skip
last_lost = episode(
    opened("echo", window=one(40_000), sack=either, timestamps=either),
    step("write", octets=some_of([8000, 10_000, 14_000])), close,
    step("receive", seconds=some_of([1.5, 8.0]),
         losing=some_of([[6], [9], [5, 6], [3, 6], [2, 4, 6], [5, 7, 9], [0, 9], [6, 9], [6, 6],
                         [0, 3], [5, 8], [5]])),
    perhaps | step("segment", times=one(3)), receive(5.0),
)  # fmt: skip
"""The end of a stream, and something before it, is lost and recovered."""
owed = episode(
    opened("echo", window=some_of([2920, 20_000])), perhaps | text,
    step("offer", window=some_of([0, 0, 100, 1460])),
    step("write", octets=some_of([100, 1460, 4000, 8000])), perhaps | close,
    repeated(st.one_of(probed(20.0, 1000.0), wait(some_of([5.0, 30.0, 100.0]))), 2),
    perhaps | close, step("offer", window=some_of([1460, 20_000])), receive(3.0),
)  # fmt: skip
"""What the implementation owes waits for a window, and the tester may have closed."""


@st.composite
def _end_with_text(draw: st.DrawFn) -> list[Step]:
    """An echo's last text and its end leave together, and are reported without what is before."""
    size, before = draw(some_of([100, 500, 1460])), draw(some_of([1, 2, 3]))
    report: dict[str, object] = draw(some_of([
        {"sack": [[("delivered", before * size), ("delivered", (before + 1) * size)]]},
        {"sack": [[("delivered", before * size), ("delivered", (before + 1) * size + 1)]]},
        {"ack": ("delivered", size)}, {"ack": ("delivered", (before + 1) * size)},
    ]))  # fmt: skip
    return [Step("write", {"octets": before * size, "at_once": size}),
            Step("close", {"octets": size}), Step("wait", {"seconds": draw(soon)}),
            Step("segment", {**report, "times": draw(some_of([1, 1, 3]))})]  # fmt: skip


end_with_text = episode(
    opened("echo", window=one(20_000), sack=some_of([True, True, False]), timestamps=either),
    _end_with_text(), perhaps | wait(timeout), receive(3.0),
)  # fmt: skip
end_alone = episode(
    opened("echo", window=some_of([2920, 20_000])), perhaps | text, settle,
    step("offer", window=some_of([0, 0, 0, 1])), close,
    repeated(st.one_of(probed(20.0, 60.0), wait(some_of([5.0, 30.0, 100.0]))), 2),
    perhaps | step("segment"), step("offer", window=some_of([1, 1460, 20_000])), receive(3.0),
)  # fmt: skip
"""Likewise, and it is nothing but the end of its stream."""
long_after = episode(
    opened("chargen", window=some_of([15_000, 20_000]), sack=either),
    segments([10, 20], losing=one([5])), segments([60]), segments([60]),
)  # fmt: skip
"""Some round trips without loss after a recovery."""


@st.composite
def _often(draw: st.DrawFn) -> list[Step]:
    """Each of many writes is echoed, and lost the first time."""
    times, within = draw(some_of([14, 18])), draw(some_of([5.0, 10.0]))
    write = Step("write", {"octets": draw(some_of([100, 1460]))})
    return [write, Step("receive", {"seconds": within, "segments": 1, "losing": [0]})] * times


often = episode(opened("echo", timestamps=either), text, settle, _often())
"""Timeout after timeout, each of which repeats what is then acknowledged."""
idle_duplicates = episode(
    opened("echo", sack=either), repeated(text, 2), settle,
    step("segment", times=some_of([1, 2, 3])), step("write", octets=some_of([1000, 2920, 5840])),
    wait(some_of([0.65, 0.9])), step("segment", times=some_of([1, 2])), receive(2.0),
)  # fmt: skip
"""Acknowledgments come again while nothing is outstanding, and then while something is."""
third_opens = episode(
    step("knock", service=some_of(["chargen", "echo"]), syn_window=some_of([0, 1, 1000, 3000]),
         window=some_of([8000, 40_000])),
    step("segment", octets=some_of([0, 0, 100])), wait(some_of([0.7, 1.3, 3.0])), receive(3.0),
    settle,
)  # fmt: skip
"""The SYN offers little, and the third segment of the handshake far more."""

SENDING: tuple[Situation, ...] = (
    *RECOVERING,
    lone, backed_off, gone_back, no_reports, lost_again, one_report, thrown_away, stretched,
    divided, shut, shut_again, shrunk, rested, long_after, requested, dribble, steady, filled,
    small_writes, written_amid_recovery, reports_with_windows, last_lost, owed, end_with_text,
    end_alone, often, idle_duplicates, third_opens,
)  # fmt: skip
