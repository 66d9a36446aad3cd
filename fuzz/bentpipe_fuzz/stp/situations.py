"""Situations of STP: whole conversations, most of whose steps are what leads there.

See :mod:`bentpipe_fuzz.tcp.situations`, and :doc:`/decisions/155-situations`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.stp.episodes import volley
from bentpipe_fuzz.stp.player import KINDS

Situation = st.SearchStrategy[list[Step]]

one, some_of, either = st.just, st.sampled_from, st.booleans()
perhaps = st.none()
role = some_of(["send", "receive"])
kinds = some_of(sorted(KINDS))
soon = some_of([0.1, 0.7, 1.3])


def _open(service: str, **offer: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return step("open", service=one(service), **offer)


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
    "00000000", "0204aaaa", "28000000",
])  # fmt: skip
"""Unknown options, known ones of odd lengths or twice, and padding in front of others."""

# -- openings

odd_options = episode(
    step("open", service=_any, options=OPTIONS, max_sd=some_of([None, 512, 1400])),
    perhaps | _data, _settle, _receive(1.0, 3.0),
)  # fmt: skip
odd_answers = episode(
    step("ring", role=role), step("answer", options=OPTIONS), _receive(2.0), perhaps | _data,
    _settle,
)  # fmt: skip
repeated_begin = episode(
    step("open", service=_any), perhaps | _data, perhaps | _receive(0.7),
    repeated(episode(step("packet", kind=one("BEGIN")), perhaps | step("wait", seconds=soon)), 3),
    _data, _settle, _receive(1.0),
)  # fmt: skip
called_while_calling = episode(
    step("ring", role=role),
    repeated(episode(step("packet", kind=some_of(["BEGIN", "BEGIN", "BGREJ", "STAT", "END"])),
                     step("wait", seconds=soon)), 2),
    perhaps | step("answer"), _receive(2.0), _settle,
)  # fmt: skip
late_answer = episode(
    step("ring", role=role), _wait(1.3, 10.0, 40.0, 62.0, 100.0, 200.0),
    st.one_of(step("answer"), step("refuse", reason=some_of([0, 1, 3, 6]), cookie=either)),
    _receive(2.0), perhaps | step("ring", role=role), perhaps | step("answer"), _receive(1.0),
)  # fmt: skip
used_cookies = episode(
    repeated(step("knock", service=_quiet), 2), _wait(10.0, 600.0, 850.0, 895.0, 899.5, 905.0),
    repeated(step("knock", service=_quiet, back=some_of([1, 1, 2])), 2), _receive(1.0),
    perhaps | episode(_open("discard"), _data, _settle),
)  # fmt: skip
refused = episode(
    repeated(step("begin", service=some_of(["echo", "discard", 47]),
                  octets=some_of([0, 0, 10, 1400]), cookie=some_of([-1, 8, 16, 32])), 4),
    perhaps | episode(_open("echo", octets=some_of([0, 512, 1400])), _data, _settle, _receive(2.0)),
)  # fmt: skip

# -- ends

_leads = st.one_of(
    episode(step("open", service=_any), perhaps | _data),
    episode(_open("discard"), _data, step("close", poll=either), _receive(0.7)),
    episode(_open("chargen"), _receive(1.0), step("close", poll=either)),
    episode(_open("echo"), _data, step("hang_up")),
    episode(step("ring", role=role)),
    episode(step("call", role=role), _receive(0.7)),
    episode(_open("discard"), _data, step("release")),
)  # fmt: skip
"""Into each state."""
intruding = episode(
    _leads, step("packet", kind=kinds, seq=st.tuples(some_of(["next", "acked", "delivered"]),
                                                     some_of([-1, 0, 0, 1]))),
    step("wait", seconds=soon), perhaps | step("packet", kind=kinds), _receive(1.0),
    perhaps | _data, perhaps | _settle,
)  # fmt: skip
spoilt = episode(
    _leads, volley, perhaps | step("answer"), perhaps | _data, perhaps | _settle, _receive(1.0)
)
"""Packets of many types, spoilt in the same way, in each state."""
ends = episode(
    _leads, step("packet", kind=some_of(["END", "END", "ENDAK", "BGREJ"]),
                 fields=st.fixed_dictionaries({"reason": some_of([0, 1, 2, 3, 4, 5, 6, 255])})),
    perhaps | step("wait", seconds=soon), perhaps | step("packet", kind=one("END")),
    step("restart", service=_any), _data, _settle, _receive(1.0),
)  # fmt: skip
half_closed = episode(
    _open("chargen", credit=some_of([16, 64])), _receive(1.0), step("close", poll=either),
    _receive(2.0, losing=some_of([[], [0], [2, 4]])), _wait(0.1, 10.0), _receive(2.0),
)  # fmt: skip
unheard_end = episode(
    _open("echo"), _data, _receive(1.0), step("hang_up"), _wait(3.0, 30.0, 100.0, 400.0),
    perhaps | step("packet", kind=kinds), _receive(1.0),
)  # fmt: skip
silence = episode(
    step("open", service=_any), perhaps | _data, perhaps | _receive(1.0),
    _wait(30.0, 100.0, 300.0, 600.0, 700.0, 850.0, 4000.0), perhaps | step("ask"), perhaps | _data,
    _receive(2.0), perhaps | _settle,
)  # fmt: skip

# -- data

losses = episode(
    _open("chargen", credit=some_of([16, 64, 256]), max_sd=some_of([512, 1400])),
    perhaps | _receive(1.3), _receive(3.0, 6.0, losing=some_of(
        [[0], [3], [1, 3, 5], [0, 1, 2, 3], [2, 2], [1, 1, 1], [0, 4, 4, 9], [10, 20, 30]]
    ), report=some_of([True, True, False])),
    perhaps | _receive(3.0, losing=some_of([[0], [1, 2]])), _receive(2.0),
)  # fmt: skip
slow_answers = episode(
    _open("chargen", credit=some_of([16, 64])),
    repeated(_receive(5.0, 10.0, answer=some_of([[2.0], [5.0], [0.5], [], [0.0, 3.0]]),
                      report=either), 3),
    perhaps | _receive(5.0, losing=one([0, 2])), _receive(3.0),
)  # fmt: skip
closed = episode(
    _open("chargen", credit=some_of([1, 4, 16])), _receive(0.7, 1.5, credit=one(0)),
    repeated(st.one_of(_wait(1.3, 10.0, 100.0), _receive(10.0, 30.0, credit=one(0)),
                       step("packet", kind=one("STAT"))), 3),
    _receive(2.0, credit=some_of([1, 4, 64])), _receive(2.0),
)  # fmt: skip
"""The tester gives no credit, and answers or does not."""
full = episode(
    _open("echo", credit=some_of([0, 1, 4])),
    step("write", sds=some_of([40, 66]), octets=some_of([8, 1000])), perhaps | step("ask"),
    _wait(1.3, 10.0), repeated(_receive(2.0, 5.0, credit=some_of([4, 64, 256])), 3), _settle,
    _receive(3.0),
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window, and opens it again."""
holes = episode(
    step("open", service=_quiet),
    repeated(step("packet", kind=some_of(["SD", "SD", "SDP"]), octets=one(8),
                  seq=st.tuples(one("next"), some_of([0, 1, 2, 3, 4, 6, 8]))), 8),
    step("ask"), step("wait", seconds=soon), perhaps | _data, step("ask"), _settle, _receive(1.0),
)  # fmt: skip
contradicted = episode(
    _open("chargen", credit=some_of([16, 64])), _receive(1.0), _wait(0.1, 0.7),
    repeated(step("packet", kind=some_of(["STAT", "USTAT"]),
                  seq=st.tuples(one("delivered"), some_of([-1, 0, 0, 1])),
                  n_mr=st.tuples(one("credit"), some_of([-4, 0, 0, 8])),
                  elements=some_of([
                      [], [("delivered", 0), ("delivered", 1)],
                      [("delivered", 1), ("delivered", 3)],
                      [("delivered", 0), ("delivered", 2), ("delivered", 4), ("delivered", 5)],
                      [("delivered", 3), ("delivered", 1)],
                  ])), 3),
    _receive(3.0),
)  # fmt: skip
paced = episode(
    step("open", service=_quiet, max_sd=some_of([None, 512, 1400])),
    repeated(step("write", sds=some_of([1, 1, 5]), octets=some_of([0, 8, 511, 512, 1000, 1400]),
                  gap=some_of([0.0, 0.3, 2.0]), poll=either), 3),
    _settle, _receive(2.0),
)  # fmt: skip

OPENING: tuple[Situation, ...] = (
    odd_options, odd_answers, repeated_begin, called_while_calling, late_answer, used_cookies,
    refused,
)  # fmt: skip
ENDING: tuple[Situation, ...] = (intruding, intruding, ends, half_closed, unheard_end, silence)
SENDING: tuple[Situation, ...] = (
    losses, slow_answers, closed, full, holes, contradicted, paced,
)  # fmt: skip
SPOILT: tuple[Situation, ...] = 6 * (spoilt,)
"""As often as its eight ways, types and states ask for."""
