"""Walks of STP, see :mod:`bentpipe_fuzz.campaign.walks`: senders, receivers, and any state.

Those of calls are in :mod:`.called`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.campaign.walks import PAUSES, events, walk
from bentpipe_fuzz.stp.leads import (
    BEGINNING,
    FULL,
    Situation,
    any_service,
    call,
    data,
    either,
    leads,
    one,
    opened,
    perhaps,
    quiet,
    receive,
    settle,
    some_of,
    user,
    wait,
)
from bentpipe_fuzz.stp.odd import KINDS
from bentpipe_fuzz.stp.telling import WRONG

_few = some_of([1, 1, 2, 3])
_report = some_of(["STAT", "STAT", "USTAT"])
_POLLED = some_of([0, 0, 0, 1, 1, 2, 4])
"""Which POLL is answered: the newest, or one before it."""

# -- a sender, of which something is reported

_more = some_of([None, None, 1, 4, 16, 64])
_progress = step("tell", ack=some_of([1, 2, 4, 8]), back=_POLLED, credit=_more)
_gap = step("tell", ack=some_of([0, 0, 1, 2]), hole=_few, held=_few, whole=either, back=_POLLED,
            credit=_more)  # fmt: skip
_far = step("tell", hole=some_of([2, 4, 8, 20]), held=some_of([0, 1, 3]), back=_POLLED)
_run = step("tell", kind=one("USTAT"), ack=some_of([0, 0, 1, 2]), hole=some_of([1, 1, 2, 4, 99]),
            held=some_of([0, 0, 1, 3]), credit=_more)  # fmt: skip
_wrapping = step("tell", kind=some_of(["STAT", "USTAT"]), hole=one(1), held=some_of([0, 0, 1, 2]),
                 wrap=some_of([0, 1, 1, 2, 3]), whole=either)  # fmt: skip
_again = step("tell", hole=some_of([0, 0, 1]), held=some_of([0, 0, 1]), back=_POLLED,
              times=some_of([1, 2]), less=some_of([0, 0, 1, 4, 300]))  # fmt: skip
_wrong = step("tell", kind=_report, hole=_few, held=some_of([0, 1]), back=_POLLED,
              wrong=some_of(sorted(WRONG)))  # fmt: skip
_announced = step("tell", back=one(-1), ack=some_of([0, 0, 1]), credit=some_of([0, 1, 4, 16]))
_all = step("tell", ack=one(999), credit=one(64))
_hears = receive(0.1, 0.7, credit=some_of([None, 4, 64]), report=either,
                 losing=some_of([[], [0], [1], [0, 2]]),
                 answer=some_of([[0.0], [0.0], []]))  # fmt: skip
_REPORTS = events(
    _progress, _progress, _gap, _gap, _far, _run, _run, _again, _wrong, _wrong, _announced, _all,
    _hears,
)  # fmt: skip
_end = episode(perhaps | wait(1.3, 5.0), _all, receive(2.0, 3.0, credit=one(64)))
"""A report of everything, after which it may be seen what the others have done."""
_settled = st.one_of(perhaps, receive(1.0, 2.0, credit=one(64)))

endless = episode(
    opened("chargen", credit=some_of([8, 16, 64, 64]), max_sd=some_of([512, 1400])),
    wait(0.7, 1.3), _settled, walk(_REPORTS, PAUSES, 10), _end,
)  # fmt: skip
"""A sender who always has more, and reports of any kind."""
_older = some_of([1, 1, 2, 3])
_misled = episode(
    step("tell", hole=_few, wrong=some_of(sorted(WRONG))), perhaps | wait(0.02, 0.15, 0.7),
    step("tell", ack=some_of([0, 0, 1]), hole=some_of([1, 1, 2]), held=some_of([0, 1]), back=_older,
         credit=some_of([None, 16])),
)  # fmt: skip
_overtaken = episode(
    step("tell", hole=_few, held=some_of([0, 1]), back=_older), perhaps | wait(0.02, 0.15, 0.7),
    step("tell", hole=_few, held=_few, whole=either),
    perhaps | step("tell", ack=some_of([0, 1]), hole=_few, held=some_of([0, 1]), back=_older),
)  # fmt: skip
unheard = episode(
    opened("chargen", credit=some_of([8, 16, 64])), _settled, wait(1.3, 2.0, 5.0),
    walk(events(
        _progress, _gap, _run, _wrong, _misled, _misled, _overtaken, _overtaken, _again, _announced,
    ), PAUSES[2:], 7), _end,
)  # fmt: skip
"""Several POLLs are outstanding, and any of them is answered."""
across = episode(
    opened("chargen", credit=some_of([16, 64])), step("approach", sds=some_of([1, 2, 3, 5, 9])),
    perhaps | receive(0.3, losing=some_of([[0], [1], [0, 1, 2], [1, 3], [2, 4]]), report=either),
    wait(0.35, 0.7, 1.3), _wrapping, wait(0.02, 0.7, 1.3),
    walk((*_REPORTS, *events(_wrapping, _wrapping, _wrapping)), PAUSES[:5], 6), _end,
)  # fmt: skip
"""The numbers of the implementation's SDs wrap, and what is reported may lie on both sides."""
reopened = episode(
    opened("chargen", credit=some_of([1, 4, 8])), wait(1.3),
    repeated(episode(
        step("tell", ack=one(999), credit=one(0)), perhaps | wait(1.3, 5.0, 12.0, 30.0),
        weighted(perhaps, _wrong, _again, _announced, _run),
        step("tell", back=some_of([0, 0, -1, 1]), credit=some_of([1, 1, 2, 4])),
        wait(0.1, 0.7, 1.3),
    ), 4),
    _end,
)  # fmt: skip
"""All credit is used, and more is given, several times."""
_CLOSE = step("close", poll=either)
finite = episode(
    opened("echo", credit=some_of([1, 4, 8, 64])),
    step("write", sds=some_of([1, 3, 6, 12]), octets=some_of([8, 100, 1000]), poll=either),
    perhaps | _CLOSE, wait(0.35, 0.7, 1.3),
    walk((*_REPORTS, *events(_CLOSE, _CLOSE, data, step("ask"))), PAUSES, 8), perhaps | _CLOSE,
    _end, perhaps | settle,
)  # fmt: skip
"""A sender whose stream ends, with credit for its end or without."""
of_its_own = episode(
    step("ring", **user),
    step("answer", credit=some_of([None, 4, 5, 8, 16, 64])), wait(0.7, 1.3),
    walk((*_REPORTS, *events(_CLOSE, step("answer"), step("quit"))), PAUSES, 8), _end,
    perhaps | settle,
)  # fmt: skip
"""A user of the implementation's own who sends something and closes."""
_IDLE = ((14.0, 16.0), (59.0, 61.0), (100.0, 300.0), (550.0, 605.0), (0.7, 1.3))
idle = episode(
    step("open", service=any_service, credit=some_of([0, 4, 64]), **BEGINNING), perhaps | data,
    _settled,
    walk((*events(step("ask"), data, _all, _again, _announced, _wrong, receive(1.0), _run, _CLOSE),
          *events(step("packet", kind=some_of(["SD", "POLL", "STAT", "END"]),
                       tag=some_of([0, 1]), csn=some_of([0, 1])))), _IDLE, 5), _end, settle,
)  # fmt: skip
"""Little is said, and seldom."""

# -- a receiver

_KINDS = some_of(["SD", "SD", "SD", "SDP"])
_FLAGS = some_of([{}, {}, {}, {}, {"flags": 1}])


def _sd(base: str, *distances: int) -> st.SearchStrategy[object]:
    return step("packet", kind=_KINDS, seq=st.tuples(one(base), some_of(list(distances))),
                octets=some_of([0, 8, 8, 100, FULL]), fields=_FLAGS)  # fmt: skip


def _poll(base: str, *distances: int) -> st.SearchStrategy[object]:
    return step("packet", kind=one("POLL"), seq=st.tuples(one(base), some_of(list(distances))),
                n_ps=some_of([None, None, None, 0, -1, 1]),
                csn=some_of([0, 0, 0, 1, 1 << 16]))  # fmt: skip


_stream = events(
    _sd("next", 0, 0, 1, 1, 2, 3, 6), _sd("next", 0, 1, -1, -2), _sd("acked", 0, 0, 1, 2, -1),
    _sd("edge", -1, 0, 1, 40, 1 << 22), _poll("next", 0, 1, 3, -1, -3), _poll("edge", -1, 0, 1),
    step("ask"), step("write", sds=some_of([1, 2, 5]), octets=one(8),
                      losing=some_of([[], [0], [1], [0, 2]]), poll=either),
    _CLOSE, receive(0.1, 0.7), step("packet", kind=one("BEGIN")),
)  # fmt: skip
_DELAYS = ((0.01, 0.03), (0.04, 0.09), (0.11, 0.3), (0.7, 1.3))
pieces = episode(
    step("open", service=quiet, octets=some_of([0, 0, 100]), **BEGINNING), perhaps | data,
    walk(_stream, _DELAYS, 12), step("ask"), settle, receive(1.0),
)  # fmt: skip
"""SDs and POLLs of any number, also beside the credit, and FINs among them."""
two_ways = episode(
    opened("echo", credit=some_of([4, 16, 64])), data, wait(0.7),
    walk((*_REPORTS, *_stream), (*_DELAYS, *PAUSES[2:5]), 12), _end, settle, receive(1.0),
)  # fmt: skip
"""Data goes both ways, and either is disturbed."""
choked = episode(
    opened("echo", credit=some_of([0, 1, 4])),
    step("fill", octets=one(FULL), leaving=some_of([0, 1, 1, 1, 2]), rounds=one(8)),
    perhaps | _CLOSE, perhaps | wait(0.7, 1.3),
    walk(events(
        _CLOSE, _CLOSE, step("ask"), _sd("edge", -2, -1, -1, 0, 1), _sd("next", 0, 0, 1, -1),
        _poll("edge", 0, 1, -1), _poll("next", 0), receive(0.7, credit=some_of([0, 1, 4, 16])),
        step("tell", ack=one(999), credit=some_of([1, 4, 16])),
    ), (*_DELAYS, (1.3, 5.0)), 8),
    repeated(receive(1.0, 2.0, credit=some_of([4, 16, 64])), 3), settle, receive(3.0),
)  # fmt: skip
"""The implementation's own credit is used up, and it is told to send again."""

# -- what comes in states that do not last

_DISTANCES = some_of([0, 0, 0, 0, 1, -1, 1 << 16, -(1 << 16), 1 << 31, 1 << 15])
"""Of a CSN: wrong ones may have the right tag."""
_final = some_of(["END", "END", "ENDAK", "ENDAK", "BGAK", "BGREJ"])
_known = step("packet", kind=_final, csn=_DISTANCES, peer_csn=_DISTANCES)
_ended = step("packet", kind=one("END"), seq=st.tuples(one("delivered"), some_of([0, 0, 1, -1])),
              fields=st.fixed_dictionaries({"flags": some_of([0, 0, 4, 8, 12, 1, 2])},
                                           optional={"reason": some_of([0, 1, 2, 7, 255]),
                                                     "csn": one(0),
                                                     "peer_csn": one(0)}))  # fmt: skip
_intruder = step("packet", kind=some_of(sorted(KINDS)), csn=_DISTANCES, peer_csn=_DISTANCES,
                 tag=some_of([0, 0, 0, 1, 0x8000]))  # fmt: skip
_of_states = events(
    _known, _known, _ended, _intruder, _intruder, step("ask"), data, _progress, _run, _gap,
    _CLOSE, step("hang_up"), step("answer"), _sd("next", 0, 1, -1), step("packet", kind=_final),
)  # fmt: skip
_OF_STATES = ((0.1, 0.2), (0.35, 0.7), (1.1, 2.0), (3.5, 8.0))
states = episode(
    leads, walk(_of_states, _OF_STATES, 6), perhaps | wait(3.0, 10.0, 20.0), perhaps | step("ask"),
    receive(2.0), perhaps | _CLOSE, settle,
)  # fmt: skip
"""What belongs there or not, in any state."""
releasing = episode(
    weighted(
        episode(opened("discard"), perhaps | data, step("hang_up")),
        episode(opened("echo"), data, receive(0.7), step("hang_up")),
        episode(call, receive(1.0), step("hang_up")),
        episode(call, step("quit", heard=one(False))),
    ),
    step("packet", kind=some_of(["ENDAK", "ENDAK", "END", "BGAK", "BGREJ"]),
         csn=_DISTANCES, peer_csn=_DISTANCES),
    wait(1.3, 3.0, 5.0, 10.0), walk(_of_states, _OF_STATES, 5), wait(3.0, 10.0), step("ask"),
    receive(1.0),
)  # fmt: skip
"""An END has been sent, and what answers it is right, or nearly so."""

SENDERS: tuple[Situation, ...] = (
    endless, endless, unheard, unheard, across, across, reopened, finite, finite, of_its_own, idle,
)  # fmt: skip
RECEIVERS: tuple[Situation, ...] = (pieces, pieces, two_ways, two_ways)
STATES: tuple[Situation, ...] = (states, states, releasing, releasing)
LONG: tuple[Situation, ...] = (choked,)
"""What takes many packets."""
