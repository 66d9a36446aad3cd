"""Situations of STP in which calls are made, answered and refused; see :mod:`.situations`."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.stp.leads import (
    BEGINNING,
    MAX_SD,
    OPTIONS,
    Situation,
    any_service,
    call,
    data,
    either,
    kinds,
    leads,
    one,
    opened,
    perhaps,
    quiet,
    receive,
    ring,
    ring_at_first,
    role,
    settle,
    some_of,
    soon,
    wait,
)

odd_options = episode(
    step("open", service=some_of(["chargen", "chargen", "discard", "echo"]), **BEGINNING,
         options=OPTIONS, max_sd=MAX_SD),
    perhaps | data, settle, receive(1.0, 3.0),
)  # fmt: skip
odd_answers = episode(
    ring, step("answer", options=OPTIONS), receive(2.0), perhaps | data,
    settle,
)  # fmt: skip
odd_numbers = episode(
    ring, repeated(episode(
        step("packet", kind=one("BGAK"),
             fields=some_of([{}, {"max_sd": 512}, {"max_sd": None}]),
             n_r=st.tuples(one("delivered"),
                           some_of([0, 0, -1, 1, 2, 4, 5, 6, 64, 1 << 22])),
             n_mr=st.tuples(one("credit"), some_of([0, 0, 8, -8, -300])),
             peer_csn=some_of([0, 0, 0, 1])),
        perhaps | step("wait", seconds=soon),
    ), 3),
    perhaps | step("answer"), receive(2.0), settle,
)  # fmt: skip
"""Answers that acknowledge too much or too little, or permit too little."""
small_answers = episode(
    step("ring", role=role, octets=some_of([100, 1400, 4000, 20_000, 20_000, 20_000])),
    perhaps | step("refuse", reason=one(6), max_sd=MAX_SD, size=some_of([8, 16, 32])),
    step("answer", max_sd=MAX_SD,
         credit=some_of([None, 0, 1, 4, 5, 16])),
    perhaps | data, receive(2.0, credit=some_of([None, 1, 64])), receive(3.0),
)  # fmt: skip
calls_beside = episode(
    perhaps | episode(call, perhaps | receive(1.0), perhaps | step("abort")),
    ring_at_first, perhaps | wait(0.1, 1.3), ring_at_first, perhaps | step("answer"),
    perhaps | ring_at_first, perhaps | step("answer"), receive(2.0),
)  # fmt: skip
"""The implementation's user calls while another call is pending."""
repeated_begin = episode(
    leads, perhaps | data, perhaps | receive(0.7),
    repeated(episode(step("packet", kind=one("BEGIN")), perhaps | step("wait", seconds=soon)), 3),
    data, settle, receive(1.0),
)  # fmt: skip
called_while_calling = episode(
    ring,
    repeated(episode(step("packet", kind=some_of(["BEGIN", "BEGIN", "BGREJ", "STAT", "END"])),
                     step("wait", seconds=soon)), 2),
    perhaps | step("answer"), receive(2.0), settle,
)  # fmt: skip
late_answer = episode(
    ring_at_first, perhaps | wait(1.3, 10.0, 40.0, 62.0, 100.0, 200.0),
    st.one_of(step("answer"), step("refuse", reason=some_of([0, 1, 3, 6, 6, 6]), cookie=either,
                                   max_sd=MAX_SD)),
    perhaps | step("refuse", reason=one(6), max_sd=MAX_SD), perhaps | step("answer"),
    receive(2.0), perhaps | ring_at_first, perhaps | step("answer"), receive(1.0),
)  # fmt: skip
refused_again = episode(
    ring_at_first, step("refuse", reason=one(6), size=some_of([8, 16, 32])),
    perhaps | wait(0.1, 1.3),
    repeated(episode(step("refuse", earlier=either, reason=some_of([6, 6, 3])),
                     perhaps | wait(0.7)), 3),
    step("answer"), receive(1.0), perhaps | data, settle,
)  # fmt: skip
"""A BGREJ comes again after it has been heeded."""
_told = step("packet", kind=some_of(["END", "ENDAK", "ENDAK", "BGAK", "BGREJ", "STAT"]))
quitting = episode(
    perhaps | episode(call, receive(0.7), step("abort")),
    ring_at_first, perhaps | wait(0.1, 1.3, 5.0, 12.0), perhaps | step("refuse", reason=one(6)),
    weighted(perhaps, perhaps, episode(step("answer"), perhaps | receive(0.7), perhaps | data)),
    step("quit", heard=either), weighted(perhaps, wait(0.7, 3.0, 10.0, 105.0), _told),
    perhaps | _told, weighted(ring, ring_at_first, perhaps), perhaps | step("answer"),
    receive(1.0), perhaps | data, settle,
)  # fmt: skip
"""The implementation's user aborts its call, and perhaps calls again."""
used_cookies = episode(
    perhaps | opened("discard"),
    repeated(step("knock", service=quiet, back=some_of([0, -1, -1]),
                  voiding=some_of([False, False, True]), fin=some_of([False, False, True])), 3),
    perhaps | wait(10.0, 600.0, 850.0, 895.0, 899.5, 905.0),
    repeated(step("knock", service=quiet, back=some_of([0, 1, 1, 2, 3])), 2), receive(1.0),
    perhaps | episode(opened("discard"), data, settle),
)  # fmt: skip
old_cookies = episode(
    step("collect", cookies=some_of([1, 2, 3, 5])), perhaps | wait(1.0, 300.0, 590.0, 605.0),
    perhaps | step("knock", back=one(-1), voiding=one(True), fin=either),
    repeated(st.one_of(
        step("knock", service=quiet, back=some_of([0, -1, -1]), fin=either),
        step("knock", service=quiet, back=some_of([0, 1, 2]), voiding=either),
        step("move", by=some_of([1, 1, -1])),
    ), 4),
    step("knock", back=some_of([0, 0, 1])), receive(1.0),
)  # fmt: skip
"""Cookies that are kept, while later ones are used or have voided them, or for another address."""
many_calls = episode(
    perhaps | episode(opened("chargen", credit=some_of([16, 256])), receive(2.0, credit=one(256))),
    step("collect", cookies=some_of([10, 20])),
    st.lists(step("knock", service=some_of(["discard", "echo", "chargen"])), min_size=8,
             max_size=20),
    receive(1.0),
    perhaps | episode(step("turn", back=some_of([0, 1, 5, -1])), step("restart", service=quiet)),
    perhaps | episode(data, settle),
)  # fmt: skip
"""Many connections, perhaps beside a busy one; one of them may be replaced."""
moved = episode(
    step("open", service=any_service, **BEGINNING), perhaps | data,
    step("move", by=some_of([1, -1, 7])),
    st.one_of(step("restart", service=any_service, ahead=some_of([0, 1, -1])),
              step("knock", back=some_of([0, 1, 1])), ring, step("packet", kind=kinds)),
    receive(1.0), perhaps | step("move", by=one(-1)), perhaps | step("answer"),
    perhaps | data, perhaps | settle,
    perhaps | step("knock", service=quiet, back=some_of([0, 1]), voiding=either),
)  # fmt: skip
"""The tester has another address later; ports and cookies are the same."""
refused = episode(
    repeated(step("begin", service=some_of(["echo", "discard", 47]),
                  octets=some_of([0, 0, 10, 1400]), cookie=some_of([-1, 8, 16, 32])), 4),
    perhaps | episode(opened("echo", octets=some_of([0, 512, 1400])), data, settle, receive(2.0)),
)  # fmt: skip

unanswered = episode(
    ring_at_first, perhaps | step("packet", kind=some_of(["POLL", "STAT", "ENDAK", "SD"])),
    wait(100.0, 200.0, 400.0), receive(1.0), perhaps | ring_at_first, perhaps | step("answer"),
    receive(2.0),
)  # fmt: skip
crowd = episode(
    st.lists(step("begin", service=quiet, cookie=some_of([-1, -1, 16])), min_size=8, max_size=40)
    .map(list),
    receive(1.0), perhaps | episode(opened("echo"), data, settle),
)  # fmt: skip
"""Many call at once."""

OPENING: tuple[Situation, ...] = (
    odd_options, odd_answers, repeated_begin, called_while_calling, late_answer, used_cookies,
    refused, crowd, odd_numbers, small_answers, calls_beside, old_cookies, moved, many_calls,
    unanswered, refused_again, quitting, quitting,
)  # fmt: skip
