"""Situations of STP: whole conversations, most of whose steps are what leads there.

See :mod:`bentpipe_fuzz.tcp.situations`, and :doc:`/decisions/155-situations`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.stp.episodes import ignored, volley
from bentpipe_fuzz.stp.odd import KINDS

Situation = st.SearchStrategy[list[Step]]

one, some_of, either = st.just, st.sampled_from, st.booleans()
perhaps = st.none()
role = some_of(["send", "receive"])
kinds = some_of(sorted(KINDS))
soon = some_of([0.1, 0.7, 1.3])
_own = {"role": role, "octets": some_of([0, 100, 1400, 4000, 20_000, 20_000])}
"""What the implementation's user has who calls: nothing, all of it early SDs, or more."""
_ring, _call = step("ring", **_own), step("call", **_own)
_ring_at_first = step("ring", anew=some_of([True, True, False]), **_own)
_BEGINNING = {"iss": some_of([None, None, (1 << 24) - 1, (1 << 24) - 3, (1 << 24) - 9])}
"""Streams that wrap soon are as many as others."""
MAX_SD = some_of([None, 512, 512, 513, 1000, 1400, 9000, (1 << 16) - 1])
"""As little as there can be, and more than a packet has room for."""
FULL = 9000
"""More than any MaxSD: SDs are as long as the implementation takes them."""


def _open(service: str, **offer: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return step("open", service=one(service), **{**_BEGINNING, **offer})


def _wait(*seconds: float) -> st.SearchStrategy[Step]:
    return step("wait", seconds=some_of(seconds))


def _receive(*seconds: float, **given: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return step("receive", seconds=some_of(seconds), **given)


_data = step("write", sds=some_of([1, 3, 10]), octets=some_of([8, 100, 1000]), poll=either)
_settle = step("settle")
_quiet = some_of(["discard", "echo"])
_any = some_of(["discard", "echo", "chargen"])
OPTIONS = some_of([
    "28040000", "fe08000000000000", "28020000", "0103aa00", "01040578010405dc", "0106057800000000",
    "00000000", "0204aaaa", "28000000", "0104020001040578", "0104057801040200",
])  # fmt: skip
"""Unknown options, known ones of odd lengths or twice, and padding in front of others."""

# -- what leads there

_leads = st.one_of(
    episode(step("open", service=_any, **_BEGINNING), perhaps | _data),
    episode(_open("discard"), _data, step("close", poll=one(True)), _receive(0.7)),
    episode(_open("chargen"), _receive(1.0), step("close", poll=either)),
    episode(_open("echo"), _data, step("hang_up")),
    episode(_open("discard"), step("hang_up")),
    episode(_ring),
    episode(step("ring", anew=either, **_own)),
    episode(_call, _receive(0.7)),
    episode(_open("chargen", credit=some_of([8, 16])), _receive(1.3, credit=one(16)),
            _receive(1.0, credit=one(None), losing=some_of([[0], [1, 3]]), report=one(False),
                     answer=one([]))),
    episode(_open("discard"), _data, step("release")),
    episode(_open("echo"), step("hang_up")),
    episode(_open("discard"), step("write", sds=one(1)), step("close", poll=one(True)), _settle),
    episode(_call, step("release")),
)  # fmt: skip
"""Into each state: a stream or both ended, released or not, or something outstanding."""

# -- openings

odd_options = episode(
    step("open", service=some_of(["chargen", "chargen", "discard", "echo"]), **_BEGINNING,
         options=OPTIONS, max_sd=MAX_SD),
    perhaps | _data, _settle, _receive(1.0, 3.0),
)  # fmt: skip
odd_answers = episode(
    _ring, step("answer", options=OPTIONS), _receive(2.0), perhaps | _data,
    _settle,
)  # fmt: skip
odd_numbers = episode(
    _ring, repeated(episode(
        step("packet", kind=one("BGAK"),
             fields=some_of([{}, {"max_sd": 512}, {"max_sd": None}]),
             n_r=st.tuples(one("delivered"),
                           some_of([0, 0, -1, 1, 2, 4, 5, 6, 64, 1 << 22])),
             n_mr=st.tuples(one("credit"), some_of([0, 0, 8, -8, -300])),
             peer_csn=some_of([0, 0, 0, 1])),
        perhaps | step("wait", seconds=soon),
    ), 3),
    perhaps | step("answer"), _receive(2.0), _settle,
)  # fmt: skip
"""Answers that acknowledge too much or too little, or permit too little."""
small_answers = episode(
    step("ring", role=role, octets=some_of([100, 1400, 4000, 20_000, 20_000, 20_000])),
    perhaps | step("refuse", reason=one(6), max_sd=MAX_SD, size=some_of([8, 16, 32])),
    step("answer", max_sd=MAX_SD,
         credit=some_of([None, 0, 1, 4, 5, 16])),
    perhaps | _data, _receive(2.0, credit=some_of([None, 1, 64])), _receive(3.0),
)  # fmt: skip
calls_beside = episode(
    perhaps | episode(_call, perhaps | _receive(1.0), perhaps | step("abort")),
    _ring_at_first, perhaps | _wait(0.1, 1.3), _ring_at_first, perhaps | step("answer"),
    perhaps | _ring_at_first, perhaps | step("answer"), _receive(2.0),
)  # fmt: skip
"""The implementation's user calls while another call is pending."""
repeated_begin = episode(
    _leads, perhaps | _data, perhaps | _receive(0.7),
    repeated(episode(step("packet", kind=one("BEGIN")), perhaps | step("wait", seconds=soon)), 3),
    _data, _settle, _receive(1.0),
)  # fmt: skip
called_while_calling = episode(
    _ring,
    repeated(episode(step("packet", kind=some_of(["BEGIN", "BEGIN", "BGREJ", "STAT", "END"])),
                     step("wait", seconds=soon)), 2),
    perhaps | step("answer"), _receive(2.0), _settle,
)  # fmt: skip
late_answer = episode(
    _ring_at_first, perhaps | _wait(1.3, 10.0, 40.0, 62.0, 100.0, 200.0),
    st.one_of(step("answer"), step("refuse", reason=some_of([0, 1, 3, 6, 6, 6]), cookie=either,
                                   max_sd=MAX_SD)),
    perhaps | step("refuse", reason=one(6), max_sd=MAX_SD), perhaps | step("answer"),
    _receive(2.0), perhaps | _ring_at_first, perhaps | step("answer"), _receive(1.0),
)  # fmt: skip
used_cookies = episode(
    perhaps | _open("discard"),
    repeated(step("knock", service=_quiet, back=some_of([0, -1, -1]),
                  voiding=some_of([False, False, True]), fin=some_of([False, False, True])), 3),
    perhaps | _wait(10.0, 600.0, 850.0, 895.0, 899.5, 905.0),
    repeated(step("knock", service=_quiet, back=some_of([0, 1, 1, 2, 3])), 2), _receive(1.0),
    perhaps | episode(_open("discard"), _data, _settle),
)  # fmt: skip
old_cookies = episode(
    step("collect", cookies=some_of([1, 2, 3, 5])), perhaps | _wait(1.0, 300.0, 590.0, 605.0),
    repeated(st.one_of(
        step("knock", service=_quiet, back=some_of([0, 0, -1]), voiding=either, fin=either),
        step("knock", service=_quiet, back=some_of([0, 1, 2])),
        step("move", by=some_of([1, 1, -1])),
    ), 5),
    _receive(1.0), perhaps | step("knock", back=some_of([0, 1])), _receive(1.0),
)  # fmt: skip
"""Cookies that are kept, while later ones are used or have voided them, or for another address."""
moved = episode(
    step("open", service=_any, **_BEGINNING), perhaps | _data, step("move", by=some_of([1, -1, 7])),
    st.one_of(step("restart", service=_any, ahead=some_of([0, 1, -1])),
              step("knock", back=some_of([0, 1, 1])), _ring, step("packet", kind=kinds)),
    _receive(1.0), perhaps | step("move", by=one(-1)), perhaps | step("answer"),
    perhaps | _data, perhaps | _settle,
    perhaps | step("knock", service=_quiet, back=some_of([0, 1]), voiding=either),
)  # fmt: skip
"""The tester has another address later; ports and cookies are the same."""
refused = episode(
    repeated(step("begin", service=some_of(["echo", "discard", 47]),
                  octets=some_of([0, 0, 10, 1400]), cookie=some_of([-1, 8, 16, 32])), 4),
    perhaps | episode(_open("echo", octets=some_of([0, 512, 1400])), _data, _settle, _receive(2.0)),
)  # fmt: skip

crowd = episode(
    st.lists(step("begin", service=_quiet, cookie=some_of([-1, -1, 16])), min_size=8, max_size=40)
    .map(list),
    _receive(1.0), perhaps | episode(_open("echo"), _data, _settle),
)  # fmt: skip
"""Many call at once."""

# -- ends

intruding = episode(
    _leads, step("packet", kind=kinds, seq=st.tuples(some_of(["next", "acked", "delivered"]),
                                                     some_of([-1, 0, 0, 1]))),
    step("wait", seconds=soon), perhaps | step("packet", kind=kinds), _receive(1.0),
    perhaps | _data, perhaps | _settle,
)  # fmt: skip
_afterwards = episode(
    perhaps | step("answer"), perhaps | _wait(5.0, 9.0), perhaps | _data, perhaps | _settle,
    _receive(1.0),
)  # fmt: skip
spoilt = episode(_leads, volley, _afterwards)
unminded = episode(_leads, ignored, _afterwards)
"""Packets of many types in each state: to be discarded, or with bits that nobody looks at."""
ends = episode(
    _leads, step("packet", kind=some_of(["END", "END", "ENDAK", "BGREJ"]),
                 fields=st.fixed_dictionaries({"reason": some_of([0, 1, 2, 3, 4, 5, 6, 255])})),
    perhaps | step("wait", seconds=soon), perhaps | step("packet", kind=one("END")),
    step("restart", service=_any), _data, _settle, _receive(1.0),
)  # fmt: skip
replaced = episode(
    _leads, perhaps | step("wait", seconds=soon),
    repeated(step("restart", service=_any, octets=some_of([0, 0, 100]),
                  ahead=some_of([1, 1, 1000, 1 << 24, -1, -5, -1000, -(1 << 24)])), 2),
    perhaps | _data,
    _settle, _receive(1.0),
)  # fmt: skip
"""The peer calls again between the same ports."""
half_closed = episode(
    _open("chargen", credit=some_of([16, 64])), _receive(1.0), step("close", poll=either),
    perhaps | _settle,
    _receive(2.0, losing=some_of([[], [0], [2, 4]]), answer=some_of([[0.0], [], [1.5]])),
    perhaps | _receive(2.0, losing=some_of([[0], [5, 9]])), _wait(0.1, 10.0), _receive(2.0),
)  # fmt: skip
unheard_end = episode(
    _open("echo"), _data, _receive(1.0), step("hang_up"), _wait(3.0, 30.0, 100.0, 400.0),
    perhaps | step("packet", kind=kinds), _receive(1.0),
)  # fmt: skip
silence = episode(
    step("open", service=_any, **_BEGINNING), perhaps | _data, perhaps | _receive(1.0),
    _wait(30.0, 100.0, 300.0, 600.0, 700.0, 850.0, 4000.0), perhaps | step("ask"), perhaps | _data,
    _receive(2.0), perhaps | _settle,
)  # fmt: skip

lull = episode(
    _open("echo", credit=one(256)), step("write", sds=some_of([20, 40]), octets=one(1000)),
    _receive(3.0, 6.0, credit=one(256)),
    repeated(episode(step("write", sds=some_of([1, 2, 6, 9, 12, 16, 20]), octets=one(1000)),
                     _receive(1.0, 1.5, credit=one(256))), 5),
    step("write", sds=one(40), octets=one(1000)), _receive(3.0, credit=one(256)),
)  # fmt: skip
"""A window that has grown is hardly used, and then again."""
idle = episode(
    step("open", service=_quiet, **_BEGINNING), perhaps | _data, _settle,
    repeated(_receive(50.0, 500.0, 650.0, 1300.0, credit=some_of([None, 0, 64]),
                      answer=some_of([[0.0], [0.0], [2.0], []])), 3),
    perhaps | step("ask"), perhaps | _data, _receive(2.0), _settle,
)  # fmt: skip
"""Nothing is to be sent for long, and the tester is still there."""

# -- data

losses = episode(
    _open("chargen", credit=some_of([16, 64, 256]), max_sd=some_of([512, 1400])),
    perhaps | _receive(1.3), _receive(3.0, 6.0, losing=some_of(
        [[0], [3], [1, 3, 5], [0, 1, 2, 3], [2, 2], [1, 1, 1], [0, 4, 4, 9], [10, 20, 30],
         [*range(20)]]
    ), report=some_of([True, True, False])),
    perhaps | _receive(3.0, losing=some_of([[0], [1, 2]])), _receive(2.0),
)  # fmt: skip
amid_losses = episode(
    _open("echo", credit=some_of([64, 256])), _data,
    step("write", sds=some_of([3, 8]), octets=some_of([8, 1000]), poll=either),
    _receive(0.7, 1.3, losing=some_of([[0], [1, 2], [3], [7], [5, 5]]), report=either,
             answer=some_of([[0.0], []])),
    st.one_of(step("close", poll=either), _data, step("ask"), step("restart", service=_any),
              _wait(0.7, 3.0, 70.0), step("hang_up")),
    perhaps | _wait(0.1, 0.7), _receive(2.0, losing=some_of([[], [0], [1]])), _receive(3.0),
)  # fmt: skip
"""Something else happens while SDs of an echo are lost."""
slow_answers = episode(
    _open("chargen", credit=some_of([16, 64])),
    repeated(_receive(5.0, 10.0, answer=some_of([[2.0], [5.0], [0.5], [], [0.0, 3.0]]),
                      report=either), 3),
    perhaps | _receive(5.0, losing=one([0, 2])), _receive(3.0),
)  # fmt: skip
closed = episode(
    _open("chargen", credit=some_of([1, 4, 16])),
    _receive(0.7, 1.5, credit=one(0), losing=some_of([[], [], [1]]), report=one(False)),
    repeated(st.one_of(
        _wait(1.3, 10.0, 100.0), _receive(10.0, 30.0, credit=one(0)),
        step("packet", kind=some_of(["STAT", "USTAT"]),
             n_mr=st.tuples(one("credit"), some_of([0, 0, 1, 8]))),
    ), 3),
    _receive(2.0, credit=some_of([1, 4, 64])), _receive(2.0),
)  # fmt: skip
"""The tester gives no credit, and answers or does not."""
full = episode(
    _open("echo", credit=some_of([0, 1, 4])),
    step("write", sds=some_of([40, 66]), octets=some_of([8, 1000])),
    perhaps | st.one_of(step("ask"), step("close", poll=either)), _wait(1.3, 10.0),
    repeated(_receive(2.0, 5.0, credit=some_of([4, 64, 256])), 3), _settle,
    _receive(3.0),
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window, and opens it again."""
ends_without_credit = episode(
    _open("echo", credit=some_of([1, 4])), step("write", sds=some_of([1, 4, 5, 6]), octets=one(8)),
    _receive(1.0, credit=one(None), losing=some_of([[], [0], [3], [0, 3]]), report=either,
             answer=some_of([[0.0], []])),
    step("close", poll=either), _receive(1.3, 10.0, credit=one(None), answer=some_of([[0.0], []])),
    repeated(st.one_of(
        step("packet", kind=some_of(["STAT", "USTAT"]),
             n_mr=st.tuples(one("credit"), some_of([0, 1, 8]))),
        _receive(2.0, credit=some_of([None, 0, 1])),
    ), 3),
    _receive(3.0, credit=one(64)),
)  # fmt: skip
"""The implementation has all data of its user, and no credit for the end of it."""
late_data = episode(
    _open("echo", credit=some_of([1, 4])),
    step("write", sds=some_of([1, 3, 4]), octets=some_of([8, 1000])),
    _receive(1.3, 3.0, credit=one(None)), perhaps | _wait(1.3, 10.0),
    step("write", sds=some_of([1, 2, 6]), octets=some_of([8, 1000]), poll=either),
    repeated(_receive(3.0, 10.0, credit=some_of([None, None, 0]), answer=some_of([[0.0], []])), 3),
    perhaps | _wait(10.0, 100.0), _receive(3.0, credit=some_of([1, 64])), _receive(2.0),
)  # fmt: skip
"""All data has been sent and acknowledged, the credit is used, and more data comes."""
holes = episode(
    step("open", service=_quiet, **_BEGINNING),
    repeated(episode(
        step("packet", kind=some_of(["SD", "SD", "SDP"]),
             seq=st.tuples(one("next"), some_of([0, 1, 1, 2, 3, 6, -1, -2, -3, -5]))),
        st.one_of(perhaps, perhaps, _wait(0.03, 0.1, 0.3)),
    ), 9),
    step("ask"), step("wait", seconds=soon), perhaps | _data, step("ask"), _settle, _receive(1.0),
)  # fmt: skip
brimful = episode(
    step("open", service=_quiet, **_BEGINNING), perhaps | _data,
    step("write", sds=some_of([60, 70]), octets=some_of([8, 1000]),
         losing=some_of([[0], [2, 20], [2, 40], [5, 6, 7], [*range(0, 70, 2)], []])),
    step("ask"), perhaps | step("packet", kind=some_of(["SD", "SDP", "POLL"]),
                                seq=st.tuples(one("edge"), some_of([-1, 0, 1, 7]))),
    repeated(episode(step("packet", kind=one("SD"), seq=st.tuples(one("acked"), some_of([0, 18]))),
                     _wait(0.3, 1.3), perhaps | step("ask")), 2),
    _settle, _data, _settle,
)  # fmt: skip
"""The whole credit is used above a gap, which is then filled."""
behind_the_end = episode(
    step("open", service=_quiet, **_BEGINNING),
    step("write", sds=some_of([1, 3, 6]), octets=some_of([8, 100]), losing=some_of([[], [1], [0]])),
    step("close", poll=either),
    repeated(episode(
        step("packet", kind=some_of(["SD", "SDP", "POLL", "POLL"]),
             seq=st.tuples(one("next"), some_of([-2, -1, 0, 1, 3, 40, 1 << 22])),
             csn=some_of([0, 0, 0, 1, 1 << 31]),
             fields=some_of([{}, {}, {"n_ps": 0}, {"flags": 1}])),
        step("wait", seconds=soon),
    ), 4),
    step("ask"), _settle, _receive(2.0),
)  # fmt: skip
"""SDs and POLLs that speak of what cannot be, as the stream has ended."""
deaf = episode(
    step("open", service=some_of(["echo", "chargen"]), **_BEGINNING), perhaps | _data,
    repeated(episode(_data, _receive(5.0, 20.0, answer=one([]), report=either)), 6), _receive(3.0),
)  # fmt: skip
"""The tester sends, and answers nothing."""
contradicted = episode(
    _open("chargen", credit=some_of([16, 64])), _receive(1.0), _wait(0.1, 0.7),
    repeated(step("packet", kind=some_of(["STAT", "USTAT"]),
                  seq=st.tuples(one("delivered"), some_of([-1, 0, 0, 1])),
                  n_mr=st.tuples(one("credit"), some_of([-4, 0, 0, 8])),
                  elements=some_of([
                      [], [("delivered", 0), ("delivered", 1)],
                      [("delivered", 1), ("delivered", 3)],
                      [("delivered", 0), ("delivered", 3)],
                      [("delivered", 0), ("delivered", 2), ("delivered", 4), ("delivered", 5)],
                      [("delivered", 3), ("delivered", 1)],
                  ])), 3),
    _receive(3.0),
)  # fmt: skip
paced = episode(
    step("open", service=_quiet, **_BEGINNING, max_sd=MAX_SD),
    repeated(step("write", sds=some_of([1, 1, 5]), poll=either, gap=some_of([0.0, 0.3, 2.0]),
                  octets=some_of([0, 8, 511, 512, 1000, 1400, FULL])), 3),
    _settle, _receive(2.0),
)  # fmt: skip

OPENING: tuple[Situation, ...] = (
    odd_options, odd_answers, repeated_begin, called_while_calling, late_answer, used_cookies,
    refused, crowd, odd_numbers, small_answers, calls_beside, old_cookies, moved,
)  # fmt: skip
ENDING: tuple[Situation, ...] = (
    intruding, intruding, ends, half_closed, unheard_end, silence, replaced, idle,
)  # fmt: skip
SENDING: tuple[Situation, ...] = (
    losses, amid_losses, slow_answers, closed, full, holes, contradicted, paced, brimful,
    ends_without_credit, late_data,
    behind_the_end, deaf, lull,
)  # fmt: skip
SPOILT: tuple[Situation, ...] = 20 * (spoilt, unminded)
"""As often as its ways, types and states ask for."""
