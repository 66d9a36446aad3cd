"""Situations of STP: whole conversations, most of whose steps are what leads there.

Those of calls are in :mod:`.openings`. See :mod:`bentpipe_fuzz.tcp.situations`, and
:doc:`/decisions/155-situations`.
"""

from __future__ import annotations

from bentpipe_conformance.protocols.stp.codec import A, R
from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.stp.episodes import ignored, volley
from bentpipe_fuzz.stp.leads import (
    BEGINNING,
    FULL,
    MAX_SD,
    Situation,
    any_service,
    data,
    either,
    kinds,
    leads,
    one,
    opened,
    perhaps,
    quiet,
    receive,
    settle,
    some_of,
    soon,
    wait,
)

# -- ends

intruding = episode(
    leads, step("packet", kind=kinds, seq=st.tuples(some_of(["next", "acked", "delivered"]),
                                                     some_of([-1, 0, 0, 1]))),
    step("wait", seconds=soon), perhaps | step("packet", kind=kinds), receive(1.0),
    perhaps | data, perhaps | settle,
)  # fmt: skip
_afterwards = episode(
    perhaps | step("answer"), perhaps | wait(5.0, 9.0), perhaps | data, perhaps | settle,
    receive(1.0),
)  # fmt: skip
spoilt = episode(leads, volley, _afterwards)
unminded = episode(leads, ignored, _afterwards)
"""Packets of many types in each state: to be discarded, or with bits that nobody looks at."""
_NAMES = {"csn": one(0), "peer_csn": one(0)}
"""One CSN or both are not known to who speaks."""
_reasons = {"reason": some_of([0, 1, 2, 3, 4, 5, 6, 255])}
_ways = {**_NAMES, "flags": some_of([0, A, R, A | R])}
ends = episode(
    leads, step("packet", kind=some_of(["END", "END", "ENDAK", "BGREJ"]),
                 fields=st.fixed_dictionaries(_reasons, optional=_ways)),
    perhaps | step("wait", seconds=soon), perhaps | step("packet", kind=one("END")),
    step("restart", service=any_service), data, settle, receive(1.0),
)  # fmt: skip
disowned = episode(
    opened("echo"), perhaps | data, step("hang_up"), perhaps | step("wait", seconds=soon),
    step("packet", kind=some_of(["END", "END", "ENDAK"]),
         fields=st.fixed_dictionaries({"flags": some_of([R, A | R, A, 0])}, optional=_NAMES)),
    wait(3.0, 10.0, 100.0), perhaps | step("packet", kind=kinds), receive(1.0),
)  # fmt: skip
"""An END is answered by one who knows nothing of the connection, or hardly anything."""
given_up = episode(
    st.one_of(step("open", service=any_service, **BEGINNING), leads),
    step("packet", kind=one("END"),
         fields=some_of([{"flags": A, "peer_csn": 0, "reason": 1}, {"flags": A, "peer_csn": 0}])),
    receive(1.0), perhaps | data, perhaps | step("packet", kind=kinds), receive(1.0),
)  # fmt: skip
"""The tester aborts a call as if nothing had told it the CSN of its peer."""
replaced = episode(
    leads, perhaps | step("wait", seconds=soon),
    repeated(step("restart", service=any_service, octets=some_of([0, 0, 100]),
                  ahead=some_of([1, 1, 1000, 1 << 24, -1, -5, -1000, -(1 << 24)])), 2),
    perhaps | data,
    settle, receive(1.0),
)  # fmt: skip
"""The peer calls again between the same ports."""
half_closed = episode(
    opened("chargen", credit=some_of([16, 64])), receive(1.0), step("close", poll=either),
    perhaps | settle,
    receive(2.0, losing=some_of([[], [0], [2, 4]]), answer=some_of([[0.0], [], [1.5]])),
    perhaps | receive(2.0, losing=some_of([[0], [5, 9]])), wait(0.1, 10.0), receive(2.0),
)  # fmt: skip
unheard_end = episode(
    opened("echo"), data, receive(1.0), step("hang_up"), wait(3.0, 30.0, 100.0, 400.0),
    perhaps | step("packet", kind=kinds), receive(1.0),
)  # fmt: skip
silence = episode(
    step("open", service=any_service, **BEGINNING), perhaps | data, perhaps | receive(1.0),
    wait(30.0, 100.0, 300.0, 600.0, 700.0, 850.0, 4000.0), perhaps | step("ask"), perhaps | data,
    receive(2.0), perhaps | settle,
)  # fmt: skip

lull = episode(
    opened("echo", credit=one(256)), step("write", sds=some_of([20, 40]), octets=one(1000)),
    receive(3.0, 6.0, credit=one(256)),
    repeated(episode(step("write", sds=some_of([1, 2, 6, 9, 12, 16, 20]), octets=one(1000)),
                     receive(1.0, 1.5, credit=one(256))), 5),
    step("write", sds=one(40), octets=one(1000)), receive(3.0, credit=one(256)),
)  # fmt: skip
"""A window that has grown is hardly used, and then again."""
idle = episode(
    step("open", service=quiet, **BEGINNING), perhaps | data, settle,
    repeated(receive(50.0, 500.0, 650.0, 1300.0, credit=some_of([None, 0, 64]),
                      answer=some_of([[0.0], [0.0], [2.0], []])), 3),
    perhaps | step("ask"), perhaps | data, receive(2.0), settle,
)  # fmt: skip
"""Nothing is to be sent for long, and the tester is still there."""

# -- data

losses = episode(
    opened("chargen", credit=some_of([16, 64, 256]), max_sd=some_of([512, 1400])),
    perhaps | receive(1.3), receive(3.0, 6.0, losing=some_of(
        [[0], [3], [1, 3, 5], [0, 1, 2, 3], [2, 2], [1, 1, 1], [0, 4, 4, 9], [10, 20, 30],
         [*range(20)]]
    ), report=some_of([True, True, False])),
    perhaps | receive(3.0, losing=some_of([[0], [1, 2]])), receive(2.0),
)  # fmt: skip
amid_losses = episode(
    opened("echo", credit=some_of([64, 256])), data,
    step("write", sds=some_of([3, 8]), octets=some_of([8, 1000]), poll=either),
    receive(0.7, 1.3, losing=some_of([[0], [1, 2], [3], [7], [5, 5]]), report=either,
             answer=some_of([[0.0], []])),
    st.one_of(step("close", poll=either), data, step("ask"), step("restart", service=any_service),
              wait(0.7, 3.0, 70.0), step("hang_up")),
    perhaps | wait(0.1, 0.7), receive(2.0, losing=some_of([[], [0], [1]])), receive(3.0),
)  # fmt: skip
"""Something else happens while SDs of an echo are lost."""
small_amid_losses = episode(
    opened("echo", credit=one(256)), step("write", sds=some_of([20, 40]), octets=one(1000)),
    receive(3.0, 6.0, credit=one(256)),
    step("write", sds=some_of([6, 9, 12, 15]), octets=some_of([1000, 1400])),
    receive(0.7, 1.3, losing=some_of([[0, 2], [0, 1, 2, 3], [0, 2, 4, 6, 8], [*range(10)]]),
            credit=one(256)),
    repeated(episode(step("write", sds=some_of([1, 2, 4]), octets=some_of([1, 8, 100, 400]),
                          poll=either), receive(0.05, 0.1, 0.3, credit=one(256))), 6),
    receive(3.0), perhaps | settle,
)  # fmt: skip
"""Small SDs could leave, while the window holds large retransmissions back."""
scarce = episode(
    opened("chargen", credit=one(16)), receive(2.0, 3.0, credit=one(16)),
    repeated(receive(0.7, 1.3, 2.0, credit=some_of([2, 4, 4, 8]), report=either,
                     losing=some_of([[], [0], [0, 1], [1], [0, 2], [0, 1, 2, 3]])), 5),
    receive(3.0, credit=one(16)),
)  # fmt: skip
"""Reports of losses give the credit for which the sender waits."""
slow_answers = episode(
    opened("chargen", credit=some_of([16, 64])),
    repeated(receive(5.0, 10.0, answer=some_of([[2.0], [5.0], [0.5], [], [0.0, 3.0]]),
                      report=either), 3),
    perhaps | receive(5.0, losing=one([0, 2])), receive(3.0),
)  # fmt: skip
closed = episode(
    opened("chargen", credit=some_of([1, 4, 16])),
    receive(0.7, 1.5, credit=one(0), losing=some_of([[], [], [1]]), report=one(False)),
    repeated(st.one_of(
        wait(1.3, 10.0, 100.0), receive(10.0, 30.0, credit=one(0)),
        step("packet", kind=some_of(["STAT", "STAT", "USTAT"]),
             n_mr=st.tuples(one("credit"), some_of([0, 1, 8, -1, -8])),
             n_ps=some_of([None, None, -1, -2, 1])),
    ), 3),
    receive(2.0, credit=some_of([1, 4, 64])), receive(2.0),
)  # fmt: skip
"""The tester gives no credit, and answers or does not."""
full = episode(
    opened("echo", credit=some_of([0, 1, 4])),
    step("fill", octets=some_of([8, 8, 1000, FULL]), leaving=some_of([0, 0, 1, 1, 2])),
    perhaps | st.one_of(step("ask"), step("close", poll=either)), wait(1.3, 10.0),
    repeated(receive(2.0, 5.0, credit=some_of([4, 64, 256])), 3), settle,
    receive(3.0),
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window, and opens it again."""
ends_without_credit = episode(
    opened("echo", credit=some_of([1, 4])), step("write", sds=some_of([1, 4, 5, 6]), octets=one(8)),
    receive(1.0, credit=one(None), losing=some_of([[], [0], [3], [0, 3]]), report=either,
             answer=some_of([[0.0], []])),
    step("close", poll=either), receive(1.3, 10.0, credit=one(None), answer=some_of([[0.0], []])),
    repeated(st.one_of(
        step("packet", kind=some_of(["STAT", "USTAT"]),
             n_mr=st.tuples(one("credit"), some_of([0, 1, 8]))),
        receive(2.0, credit=some_of([None, 0, 1])),
    ), 3),
    receive(3.0, credit=one(64)),
)  # fmt: skip
"""The implementation has all data of its user, and no credit for the end of it."""
late_data = episode(
    opened("echo", credit=some_of([1, 4])),
    step("write", sds=some_of([1, 3, 4]), octets=some_of([8, 1000])),
    receive(1.3, 3.0, credit=one(None)), perhaps | wait(1.3, 10.0),
    step("write", sds=some_of([1, 2, 6]), octets=some_of([8, 1000]), poll=either),
    repeated(receive(3.0, 10.0, credit=some_of([None, None, 0]), answer=some_of([[0.0], []])), 3),
    perhaps | wait(10.0, 100.0), receive(3.0, credit=some_of([1, 64])), receive(2.0),
)  # fmt: skip
"""All data has been sent and acknowledged, the credit is used, and more data comes."""
holes = episode(
    step("open", service=quiet, **BEGINNING),
    repeated(episode(
        step("packet", kind=some_of(["SD", "SD", "SDP"]),
             seq=st.tuples(one("next"), some_of([0, 1, 1, 2, 3, 6, -1, -2, -3, -5]))),
        weighted(perhaps, perhaps, wait(0.03, 0.1, 0.3)),
    ), 9),
    step("ask"), step("wait", seconds=soon), perhaps | data, step("ask"), settle, receive(1.0),
)  # fmt: skip
filled_late = episode(
    step("open", service=quiet, **BEGINNING), perhaps | data,
    step("write", sds=some_of([4, 6, 10]), octets=some_of([8, 100]),
         losing=some_of([[0, 1, 2], [1, 2, 3], [1, 2, 4, 5], [2, 3, 4, 6, 7]])),
    repeated(episode(step("packet", kind=one("SD"), seq=st.tuples(one("acked"), st.integers(0, 6))),
                     perhaps | wait(0.01, 0.03, 0.05)), 4),
    perhaps | wait(0.1, 0.3), step("ask"), settle, receive(1.0),
)  # fmt: skip
"""What was missing comes before it is reported, all of it or a part."""
oversized = episode(
    step("open", service=any_service, max_sd=MAX_SD, **BEGINNING), perhaps | data,
    repeated(episode(step("packet", kind=some_of(["SD", "SD", "SDP"]), octets=one(FULL),
                          seq=st.tuples(one("next"), some_of([0, 0, 1, 2]))), wait(0.1, 0.3),
                     perhaps | step("ask"), perhaps | wait(0.7)), 3),
    perhaps | data, step("ask"), settle, receive(1.0),
)  # fmt: skip
"""SDs have more octets than the implementation takes."""
brimful = episode(
    step("open", service=quiet, **BEGINNING), perhaps | data,
    step("write", sds=some_of([60, 70]), octets=some_of([8, 1000]),
         losing=some_of([[0], [2, 20], [2, 40], [5, 6, 7], [*range(0, 70, 2)], []])),
    step("ask"), perhaps | step("packet", kind=some_of(["SD", "SDP", "POLL"]),
                                seq=st.tuples(one("edge"), some_of([-1, 0, 1, 7]))),
    repeated(episode(step("packet", kind=one("SD"), seq=st.tuples(one("acked"), some_of([0, 18]))),
                     wait(0.3, 1.3), perhaps | step("ask")), 2),
    settle, data, settle,
)  # fmt: skip
"""The whole credit is used above a gap, which is then filled."""
long_lists = episode(
    opened("discard"), step("widen", sds=some_of([72, 160])),
    step("write", sds=some_of([68, 70, 72, 150]), octets=one(8),
         losing=some_of([[*range(first, last, 2)] for first in (0, 1)
                         for last in (66, 67, 68, 70, 150)])),
    step("ask"), wait(1.3), perhaps | step("ask"), settle,
)  # fmt: skip
"""More is missing than a STAT has room for."""
behind_the_end = episode(
    step("open", service=quiet, **BEGINNING),
    step("write", sds=some_of([1, 3, 6]), octets=some_of([8, 100]), losing=some_of([[], [1], [0]])),
    step("close", poll=either),
    repeated(episode(
        step("packet", kind=some_of(["SD", "SDP", "POLL", "POLL"]),
             seq=st.tuples(one("next"), some_of([-2, -1, 0, 1, 3, 40, 1 << 22])),
             csn=some_of([0, 0, 0, 1, 1 << 31]),
             fields=some_of([{}, {}, {"n_ps": 0}, {"flags": 1}])),
        step("wait", seconds=soon),
    ), 4),
    step("ask"), settle, receive(2.0),
)  # fmt: skip
"""SDs and POLLs that speak of what cannot be, as the stream has ended."""
deaf = episode(
    step("open", service=some_of(["echo", "chargen"]), **BEGINNING), perhaps | data,
    repeated(episode(data, receive(5.0, 20.0, answer=one([]), report=either)), 6), receive(3.0),
)  # fmt: skip
"""The tester sends, and answers nothing."""
reported_twice = episode(
    opened("chargen", credit=some_of([16, 64]), iss=some_of([None, (1 << 24) - 3])),
    perhaps | receive(1.0),
    receive(0.1, 0.3, 0.7, losing=some_of([[], [0], [1, 2]]), report=either),
    repeated(episode(
        step("packet", kind=one("USTAT"), seq=one(("delivered", 0)),
             elements=some_of([[("delivered", first), ("delivered", last)]
                               for first, last in ((0, 1), (0, 2), (0, 3), (1, 3), (2, 4))])),
        wait(0.03, 0.7, 1.3),
    ), 4),
    receive(3.0),
)  # fmt: skip
"""A run is reported again, or a part of it."""
late_report = episode(
    opened("chargen", credit=some_of([4, 16])), receive(0.7, 1.3), wait(1.3, 5.0, 20.0),
    step("packet", kind=some_of(["USTAT", "USTAT", "STAT"]), seq=one(("delivered", 0)),
         elements=some_of([[("delivered", 0), ("delivered", 1)],
                           [("delivered", 1), ("delivered", 3)]])),
    wait(1.3, 3.0, 10.0), perhaps | wait(10.0), receive(3.0),
)  # fmt: skip
"""The tester answers nothing for some time, and then one thing."""
said_lost = episode(
    opened("chargen", credit=some_of([16, 64])), receive(1.3, 2.0, credit=one(64)),
    receive(0.7, 3.0, 5.0, answer=one([]), report=one(False)),
    repeated(episode(
        step("packet", kind=some_of(["STAT", "STAT", "USTAT"]), seq=one(("delivered", 0)),
             n_mr=one(("credit", 64)),
             elements=some_of([[("delivered", 0), ("highest", 0)],
                               [("delivered", 0), ("delivered", 8)],
                               [("delivered", 2), ("highest", 0)]])),
        wait(0.1, 0.3, 0.35, 0.7),
        step("packet", kind=one("STAT"), n_mr=one(("credit", 64)), elements=one([]),
             seq=some_of([("delivered", 1), ("delivered", 3), ("delivered", 8), ("highest", 0)])),
        perhaps | wait(0.3, 0.7),
    ), 2),
    receive(2.0, credit=one(64)), receive(2.0, credit=one(64)),
)  # fmt: skip
"""Much is reported as lost, and some of it has arrived before it can be sent again."""
contradicted = episode(
    opened("chargen", credit=some_of([16, 64])), receive(1.0), wait(0.1, 0.7),
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
    receive(3.0),
)  # fmt: skip
paced = episode(
    step("open", service=quiet, **BEGINNING, max_sd=MAX_SD),
    repeated(step("write", sds=some_of([1, 1, 5]), poll=either, gap=some_of([0.0, 0.3, 2.0]),
                  octets=some_of([0, 8, 511, 512, 1000, 1400, FULL])), 3),
    settle, receive(2.0),
)  # fmt: skip

ENDING: tuple[Situation, ...] = (
    intruding, intruding, ends, given_up, half_closed, unheard_end, silence, replaced, idle,
    disowned,
)  # fmt: skip
SENDING: tuple[Situation, ...] = (
    losses, amid_losses, small_amid_losses, slow_answers, closed, closed, full, full, holes,
    contradicted, contradicted, paced, brimful, brimful, ends_without_credit, late_data,
    behind_the_end, deaf, lull, lull, lull, long_lists, reported_twice, scarce, late_report,
    filled_late, oversized, said_lost,
)  # fmt: skip
SPOILT: tuple[Situation, ...] = 10 * (spoilt, unminded)
"""As often as its ways, types and states ask for."""
