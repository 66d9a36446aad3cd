"""Situations of TCP: whole conversations, most of whose steps are what leads there.

An episode varies much and meets each of its situations seldom; of a situation only that is varied
which the requirements there speak of. Each opens its own connection. Which are missing, is told by
the requirements that no conversation meets (:doc:`/decisions/155-situations`). Those of senders are
in :mod:`.sending`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.leads import (
    DAYTIME,
    WIDE,
    Situation,
    any_service,
    bulk,
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
from bentpipe_fuzz.tcp.options import IP_OPTIONS, KNOWN, STAMPS, UNKNOWN

# -- openings

given_up = episode(
    step("ring", role=some_of(["send", "receive"])), wait(some_of([100.0, 172.0, 178.0, 185.0])),
    step("answer"), perhaps | text, receive(2.0),
)  # fmt: skip
crossed_offers = episode(
    step("ring", role=some_of(["send", "receive"]), timestamps=either, sack=either,
         window_scale=some_of([None, None, 0, 7]), mss=some_of([None, 536, 1460])),
    perhaps | wait(some_of([0.1, 1.3])), step("answer", flags=one("S")), perhaps | wait(timeout),
    step("answer"), perhaps | step("segment"), text, receive(2.0), settle,
)  # fmt: skip
"""SYNs cross, and the tester's offers less than the implementation's."""
wrong_answer = episode(
    step("ring", role=some_of(["send", "receive"]), timestamps=either),
    step("segment", flags=some_of(["A", "SA", "FA", "PA"]), seq=place("zero", 0, 1),
         ack=place("zero", -1, 1, 1, 1000, 1 << 30), octets=some_of([0, 0, 100])),
    perhaps | wait(soon), perhaps | step("answer"), receive(2.0),
)  # fmt: skip
refusal = episode(
    step("ring", role=some_of(["send", "receive"])), perhaps | wait(timeout),
    step("segment", flags=some_of(["RA", "RA", "R"]), seq=place("zero", 0, 1000),
         ack=place("zero", 0, 0, 0, 1, -1)),
    wait(some_of([4.0, 30.0])), perhaps | step("answer"), receive(1.0),
)  # fmt: skip
late_third = episode(
    step("knock", service=any_service), wait(some_of([100.0, 172.0, 178.0, 185.0, 400.0])),
    step("segment"), perhaps | text, receive(2.0),
)  # fmt: skip
repeated_opening = episode(
    step("knock", service=one("chargen"), mss=some_of([100, 536, 1460])),
    wait(some_of([0.5, 2.0, 4.0, 9.0])), step("segment"),
    wait(some_of([0.1, 5.0, 10.0])), segments([10, 20]),
)  # fmt: skip
"""The SYN-ACK has been sent again before it is acknowledged, and the first data may be, too."""
behind_unknown = episode(
    opened("chargen", mss=one(None), odd=st.fixed_dictionaries(
        {"raw": some_of(["2802", "b402", "fe02", "280400ff"]).map(lambda text: text + "02040064")}
    )),
    segments([10]),
)  # fmt: skip
"""An MSS of 100 octets, behind an option that nobody knows."""
half_open = episode(
    step("knock", service=any_service, timestamps=either),
    step("segment", flags=some_of(["A", "A", "PA", "FA", "R", "RA", "S", "", "F"]),
         seq=place("next", 0, 0, -1, 1, 1 << 20), ack=place("delivered", 0, 0, 1, -1, 1000),
         octets=some_of([0, 0, 1, 100])),
    perhaps | wait(soon), step("segment"), text, settle,
)  # fmt: skip
small_peer = episode(
    opened("chargen", mss=some_of([None, 64, 100, 536]), sack=either, timestamps=either),
    segments([5, 20]), perhaps | wait(timeout), receive(1.5),
)  # fmt: skip

# -- ends

lingering = episode(
    opened(DAYTIME, timestamps=either), receive(1.0), close, receive(1.0),
    wait(some_of([0.5, 10.0, 50.0, 100.0, 220.0, 235.0, 300.0, 700.0])),
    step("segment", flags=some_of(["FA", "FA", "A", "RA", "PA"]),
         seq=place("next", -1, -1, 0), octets=some_of([0, 0, 100])),
    perhaps | repeated(episode(wait(some_of([10.0, 25.0, 50.0, 200.0])),
                               step("segment", flags=one("FA"), seq=place("next", -1))), 2),
    receive(1.0),
)  # fmt: skip
both_close = episode(
    opened(DAYTIME, timestamps=either), perhaps | text, close,
    st.one_of(receive(2.0), episode(wait(timeout), receive(2.0))),
    step("segment", flags=some_of(["FA", "A"]), seq=place("next", -1, 0)), receive(1.0),
)  # fmt: skip
unheard_end = episode(
    opened(DAYTIME), wait(some_of([1.3, 5.0, 30.0])),
    step("segment", ack=place("delivered", 0, 1, 10)), wait(timeout), receive(2.0),
    perhaps | close, receive(1.0),
)  # fmt: skip
"""The last data and FIN of the implementation are acknowledged late, or in part."""
half_closed = episode(
    opened("chargen", window=some_of([8000, 40_000]), sack=either), segments([3, 10]), close,
    st.one_of(
        segments([20]),
        episode(wait(timeout), segments([10])),
        segments([20], losing=some_of([[0], [1, 3], [0, 1, 2]])),
        episode(step("offer", window=some_of([0, 0, 100])), receive(8.0),
                perhaps | wait(some_of([10.0, 60.0])),
                step("offer", window=one(20_000)), segments([10])),
        step("segment", times=one(3)),
    ),
    receive(1.0),
)  # fmt: skip
"""The tester has closed, and the implementation goes on sending."""
quitting = episode(
    step("call", role=some_of(["send", "receive"]), timestamps=either, sack=either),
    perhaps | text, perhaps | segments([2, 5]), perhaps | wait(some_of([0.3, 1.3, 10.0])),
    perhaps | step("offer", window=some_of([0, 1000])), perhaps | close, step("quit"), receive(2.0),
    perhaps | text, wait(some_of([4.0, 60.0])),
    perhaps | step("segment", flags=some_of(["A", "FA", "PA", "S", "R"]), octets=some_of([0, 100])),
    receive(1.0),
)  # fmt: skip
"""The implementation's user aborts the connection that it has opened."""
sends_on = episode(
    opened(DAYTIME, sack=either), receive(1.0), repeated(text, 3),
    step("segment", seq=place("next", 0, 1000), octets=some_of([1, 1000])), settle, close,
    receive(1.0),
)  # fmt: skip
"""The implementation has closed, and the tester goes on sending."""
_leads = st.one_of(
    episode(opened("chargen"), segments([3])),
    episode(opened("discard"), text),
    episode(opened("discard"), close, receive(1.0)),
    episode(opened("chargen"), segments([3]), close),
    opened(DAYTIME).map(lambda first: [first]),
    episode(opened(DAYTIME), receive(1.0)),
    episode(opened(DAYTIME), close),
    episode(opened(DAYTIME), receive(1.0), close, receive(1.0)),
)  # fmt: skip
"""Into each state of an open connection."""
intruding = episode(
    _leads,
    step("segment", flags=some_of(["R", "RA", "S", "SA", "SF", "", "P", "F", "FA", "PA"]),
         seq=st.one_of(place("next", 0, 0, -1, 1, 1000), place("edge", -1, 0, 1)),
         octets=some_of([0, 0, 1, 100])),
    receive(1.0), perhaps | text, settle,
)  # fmt: skip
marked = episode(
    _leads,
    repeated(step("segment", flags=some_of(["AE", "AC", "AEC", "PAE", "PAC", "PAEC", "FAE", "FAC"]),
                  seq=place("next", 0, 0, 0, 1000, -1), octets=some_of([0, 0, 1, 100, 1000]),
                  times=some_of([1, 1, 3])), 3),
    receive(1.0), perhaps | text, settle,
)  # fmt: skip
"""Segments with the bits of ECN, which nobody has agreed on."""
_dropped = st.one_of(
    step("segment", flags=some_of(["", "P", "F", "U"]), octets=some_of([1, 100]),
         seq=place("next", 0, 0, 0, -1)),
    step("segment", flags=some_of(["S", "SA", "R", "RA"]), seq=place("next", 0, 1, 1000)),
    step("segment", flags=some_of(["R", "RA"]),
         seq=st.one_of(place("edge", 0, 0, 1, 1000), place("next", -1, -1000))),
    step("segment", ack=place("delivered", 1, 1000, 1 << 20, -(1 << 30)), octets=some_of([0, 100])),
    step("segment", seq=place("edge", 0, 1, 1000), octets=some_of([0, 1, 100])),
    step("segment", seq=place("next", -1, -100), octets=some_of([0, 1, 100])),
    step("segment", octets=one(100), odd=st.fixed_dictionaries({"checksum": one(True)})),
    step("segment", octets=one(100), odd=st.fixed_dictionaries({"chksum": some_of([0, 0xFFFF])})),
)  # fmt: skip
dropped = episode(
    _leads, repeated(_dropped, 4), perhaps | wait(soon), receive(1.0), perhaps | text, settle,
)  # fmt: skip
"""What is to be dropped or challenged, several in a row in one state, before what is not."""


@st.composite
def _again_with_more(draw: st.DrawFn) -> list[Step]:
    """Text that has been sent, cut otherwise, with new text or the end of the stream behind it.

    It may fill a gap and overlap what is held.
    """
    old, more = draw(some_of([1, 100, 1000])), draw(some_of([0, 0, 1, 400]))
    flags = draw(some_of(["A", "PA", "FA", "FA"]))
    held = [Step("segment", {"seq": ("next", draw(some_of([100, 400, 500]))), "octets": 500})]
    again = Step("segment", {"seq": ("next", -old), "octets": old + more, "flags": flags})
    return [*(held if draw(either) else []), again]


again_with_more = episode(
    step("open", service=some_of(["echo", "discard"]), sack=either, timestamps=either),
    step("write", octets=some_of([1000, 2920])), perhaps | settle, _again_with_more(),
    perhaps | wait(soon), receive(1.0), perhaps | text, settle,
)  # fmt: skip
around_the_edge = episode(
    step("open", service=quiet_service, timestamps=either, window_scale=some_of([None, None, 7])),
    perhaps | episode(text, settle),
    repeated(episode(
        step("segment", seq=place("edge", -1, 0, 0, 1), flags=some_of(["A", "A", "R", "RA", "FA"]),
             octets=some_of([0, 0, 0, 1])),
        receive(0.7),
    ), 3),
    text, settle,
)  # fmt: skip
"""What has no text, or an octet, at the end of the implementation's window."""


@st.composite
def _end_above_a_gap(draw: st.DrawFn) -> list[Step]:
    """FIN, alone or behind data, above a gap, and what fills that."""
    gap = draw(some_of([1, 100, 1000, 2920]))
    above = {"seq": ("next", gap), "octets": draw(some_of([0, 0, 100, 1000])), "flags": "FA"}
    return [Step("segment", above), Step("write", {"octets": gap})]


end_above_a_gap = episode(
    opened("echo", sack=either, timestamps=either), perhaps | text, perhaps | settle,
    _end_above_a_gap(), receive(2.0), perhaps | text, settle,
)  # fmt: skip
again = episode(
    _leads, perhaps | episode(step("segment", flags=one("R")), wait(soon)),
    step("reopen", ahead=some_of([1, 1, 1000, 1 << 20, 0, -1, -1000, 1 << 30])),
    perhaps | text, receive(1.0), settle,
)  # fmt: skip
"""A second connection between the same ports."""
kept_alive = episode(
    opened("discard", timestamps=either), perhaps | text, perhaps | settle,
    repeated(episode(wait(some_of([75.0, 700.0, 7300.0])),
                     step("segment", seq=place("next", -1), octets=some_of([0, 1]))), 3),
    receive(1.0), perhaps | text, settle,
)  # fmt: skip

# -- what segments carry

_odd = st.one_of(
    st.fixed_dictionaries({"raw": UNKNOWN}), st.fixed_dictionaries({"raw": KNOWN}),
    st.fixed_dictionaries({"ip": IP_OPTIONS}),
)  # fmt: skip
strange_options = episode(
    step("open", service=quiet_service, sack=either, timestamps=either,
         window_scale=some_of([None, 0, 7])),
    repeated(step("segment", octets=some_of([1, 100]), odd=_odd), 3), text, settle,
)  # fmt: skip
strange_acknowledgments = episode(
    bulk, segments([5]), segments([5], every=one(100)),
    repeated(step("segment", odd=_odd, octets=some_of([0, 0, 100])), 3), segments([20]),
)  # fmt: skip
without_flags = episode(
    step("open", service=any_service), perhaps | text,
    step("segment", flags=some_of(["", "P", "U", "F", "E"]), octets=some_of([1, 100]),
         odd=st.one_of(one(None), st.fixed_dictionaries({"dataofs": some_of([0, 4, 15])}))),
    perhaps | wait(soon), settle, text, settle,
)  # fmt: skip
_old = some_of([-1, -1, -100, -100_000, -(1 << 30), -(1 << 31) + 1])
old_stamps = episode(
    step("open", service=quiet_service, timestamps=one(True)), text, perhaps | settle,
    perhaps | wait(some_of([100.0, 2500.0, 9000.0])),
    repeated(step("segment", octets=some_of([1, 100, 1000]), tsval=_old), 2),
    perhaps | wait(soon), text, settle,
)  # fmt: skip
no_stamps = episode(
    step("open", service=quiet_service, timestamps=one(True)), perhaps | text,
    repeated(step("segment", octets=some_of([1, 100]), bare=one(True)), 2), text, settle,
)  # fmt: skip
stray_stamps = episode(
    step("open", service=quiet_service, timestamps=one(False)), perhaps | text,
    repeated(step("segment", octets=some_of([1, 100]),
                  odd=st.fixed_dictionaries({"raw": STAMPS})), 2),
    text, settle,
)  # fmt: skip
old_acknowledgment = episode(
    opened("chargen", timestamps=one(True), window=some_of([8000, 20_000])), segments([10]),
    perhaps | segments([5], every=one(100)),
    step("segment", tsval=_old, octets=some_of([0, 100]), window=some_of([None, WIDE, 0])),
    segments([20]),
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
    step("open", service=quiet_service, timestamps=either), perhaps | episode(text, settle),
    _around_the_last(), receive(1.0), perhaps | text, settle,
)  # fmt: skip
stamped_reset = episode(
    step("open", service=any_service, timestamps=one(True)), text, wait(soon),
    step("segment", flags=one("R"), tsval=some_of([0, -1, -100_000]), bare=either),
    wait(soon), text, receive(1.0),
)  # fmt: skip
out_of_order = episode(
    opened("echo", sack=either, timestamps=either, window_scale=some_of([None, 7])),
    repeated(step("segment", seq=place("next", 0, 1000, 2000, 2000, 3000), octets=one(1000),
                  times=some_of([1, 1, 2])), 4),
    perhaps | step("segment", sack=one([]), times=one(3)),
    text, settle, receive(2.0),
)  # fmt: skip


@st.composite
def _blocks(draw: st.DrawFn) -> list[Step]:
    """Blocks above a gap in some order, and some of that again, whole or in part."""
    order = draw(st.permutations([1, 3, 5, 7, 9]))[: draw(st.integers(2, 5))]
    taken = [(1000 * nth, 1000) for nth in order]
    for _ in range(draw(st.integers(1, 3))):
        start, size = draw(st.sampled_from(taken))
        again = [(start, size), (start, 500), (start + 500, 500), (start - 500, 1000),
                 (start + 500, 1000), (-500, 500)]  # fmt: skip
        taken.append(draw(some_of(again)))
    return [Step("segment", {"seq": ("next", start), "octets": size}) for start, size in taken]


repeated_blocks = episode(opened("discard", sack=one(True), timestamps=either), text, _blocks(),
                          receive(1.0), text, settle)  # fmt: skip
closed_by_itself = episode(
    opened("echo", window_scale=one(None), sack=either),
    step("fill", beyond=some_of([0, 0, 1, 500]), fin=some_of([False, False, True]),
         leaving=some_of([0, 0, 0, 100, 700])),
    repeated(st.one_of(
        step("segment", seq=place("next", -500, -1), octets=one(1400)),
        step("segment", octets=some_of([1, 100, 1000]), window=some_of([None, 20_000, WIDE])),
        step("segment", seq=place("edge", -1, 0, 1), flags=some_of(["A", "R", "FA"]),
             octets=some_of([0, 1])),
    ), 3),
    perhaps | step("segment", flags=one("R")),
    repeated(episode(step("offer", window=some_of([1460, 20_000, 60_000])), receive(3.0)), 3),
    settle,
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window."""

refused_data = episode(
    opened("echo", window_scale=one(None)), step("fill"),
    step("segment", octets=some_of([1, 100, 1000]), window=some_of([20_000, 60_000])),
    receive(1.0), step("offer", window=one(40_000)), receive(3.0), settle,
)  # fmt: skip
"""Likewise; what the closed window refuses opens the tester's."""

OPENING: tuple[Situation, ...] = (
    given_up, crossed_offers, wrong_answer, refusal, late_third, repeated_opening, behind_unknown,
    half_open, small_peer,
)  # fmt: skip
ENDING: tuple[Situation, ...] = (
    lingering, both_close, unheard_end, half_closed, sends_on, intruding, marked, dropped, again,
    end_above_a_gap, kept_alive, quitting,
)  # fmt: skip
CARRYING: tuple[Situation, ...] = (
    strange_options, strange_acknowledgments, without_flags, old_stamps, no_stamps, stray_stamps,
    old_acknowledgment, stamped_reset, reset_at_data, out_of_order, repeated_blocks,
    closed_by_itself, refused_data, again_with_more, around_the_edge,
)  # fmt: skip
