"""Walks of STP in which calls are made, answered and refused; see :mod:`.walks`."""

from __future__ import annotations

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.campaign.walks import events, walk
from bentpipe_fuzz.stp.leads import (
    BEGINNING,
    FULL,
    MAX_SD,
    OPTIONS,
    Situation,
    any_service,
    data,
    either,
    leads,
    one,
    opened,
    perhaps,
    quiet,
    receive,
    ring,
    ring_at_first,
    settle,
    some_of,
    wait,
)

_WHICH = some_of([0, 0, -1, -1, 1, 1, 2, 3])
_OFFER = {
    "octets": some_of([0, 0, 8, 100, FULL]), "fin": some_of([False, False, False, True]),
    "voiding": some_of([False, False, True]), "flip": some_of([-1, -1, -1, -1, -1, 0, 77]),
}  # fmt: skip
_knock = step("knock", service=quiet, back=_WHICH, **_OFFER)
_odd_knock = step("knock", service=quiet, back=_WHICH, credit=some_of([0, 1, 3, 4, 300]),
                  options=OPTIONS, max_sd=MAX_SD, octets=some_of([0, 100, FULL]))  # fmt: skip
_too_large = step("knock", service=quiet, back=some_of([0, -1, -1, 1]), octets=one(FULL),
                  over=one(1), here=either, stay=either,
                  voiding=some_of([False, False, True]))  # fmt: skip
_same = step("knock", service=quiet, back=one(1), octets=some_of([0, 8]), here=either)
"""The cookie that was carried last."""
_here = step("knock", service=any_service, back=_WHICH, here=one(True), stay=either, **_OFFER)
_dropped = episode(
    step("knock", service=quiet, back=some_of([0, -1]), octets=one(FULL), over=one(1), here=either),
    wait(0.35, 0.7, 1.3), weighted(_same, _same, _here, step("ask")),
)  # fmt: skip
"""One that has to be discarded, and then its cookie again."""
_unheeded = episode(
    step("knock", service=quiet, back=some_of([0, -1]), octets=one(FULL),
         over=some_of([1, 1, 0]), here=one(True), stay=one(True)),
    wait(0.35, 0.7, 1.3), step("ask"), data,
)  # fmt: skip
"""A call that opens nothing, and the connection goes on."""
_elsewhere = episode(step("move", by=one(1)), _knock, perhaps | step("move", by=one(-1)))
_CALLS = events(
    _knock, _knock, _knock, _odd_knock, _too_large, _dropped, _dropped, _same, _same, _here, _here,
    _elsewhere, step("collect", cookies=some_of([1, 3])), step("turn"), step("ask"),
    step("packet", kind=one("BEGIN")), step("packet", kind=one("END")), step("abort"),
    step("begin", service=some_of(["discard", 47]), octets=some_of([0, 10, 1400])),
)  # fmt: skip
_BETWEEN = ((0.35, 0.7), (0.7, 0.9), (1.3, 2.0), (10.0,))
_LIVES = (*_BETWEEN, (290.0, 305.0), (595.0, 605.0), (895.0, 905.0))
"""Seconds for which cookies are good and are remembered, and less."""
cookies = episode(
    perhaps | opened("discard"), walk(_CALLS, _LIVES, 8), perhaps | step("knock", back=_WHICH),
    wait(0.7), perhaps | data, step("ask"), settle, receive(1.0),
)  # fmt: skip
"""Calls with cookies that are new, old, used, void or altered, with little data or too much."""
_again = step("restart", service=any_service, ahead=some_of([0, 1, -1]))
replacing = episode(
    st.one_of(leads, step("open", service=any_service, **BEGINNING)), wait(0.7),
    walk(events(
        _here, _here, _too_large, _unheeded, _unheeded, _dropped, _again, data, step("ask"), _same,
        receive(0.7), step("close", poll=either),
        step("packet", kind=some_of(["BEGIN", "END", "STAT", "SDP"])),
    ), _BETWEEN[:3], 6),
    wait(0.7), step("ask"), perhaps | data, settle, receive(1.0),
)  # fmt: skip
"""Calls between the ports of a connection, which they may replace or not."""
several = episode(
    repeated(step("open", service=any_service, credit=some_of([4, 16]), **BEGINNING), 3),
    perhaps | step("collect", cookies=some_of([3, 10])),
    walk(events(
        step("turn", back=some_of([1, 1, 2])), step("turn"), _knock, _here, data, step("ask"),
        receive(0.3, 0.7, losing=some_of([[], [0]])), step("tell", ack=some_of([1, 3])),
        step("close", poll=either), step("abort"), step("hang_up"), ring,
        step("restart", service=quiet), step("packet", kind=some_of(["END", "BEGIN"])),
    ), _BETWEEN[:3], 10),
    data, settle, receive(1.0),
)  # fmt: skip
"""Connections beside each other, some of which end or are replaced."""

_SIZES = some_of([None, 0, 300, 511, 512, 513, 700, 1000, 1400, 9000])
_refusal = step("refuse", reason=some_of([6, 6, 6, 6, 0, 1, 3, 255]), max_sd=_SIZES,
                size=some_of([8, 16, 32]), cookie=some_of([True, True, True, False]),
                earlier=some_of([False, False, False, True]))  # fmt: skip
_accepts = step("answer", max_sd=_SIZES, credit=some_of([None, None, 4, 8, 16]))
_nearly = step("packet", kind=some_of(["BGAK", "BGAK", "BGREJ", "END", "ENDAK"]),
               peer_csn=some_of([0, 1, -1, 1 << 16, 1 << 31]), csn=some_of([0, 0, 1]),
               fields=some_of([{}, {}, {"max_sd": 300}, {"max_sd": None},
                               {"reason": 6}]))  # fmt: skip
_BEFORE = events(
    _refusal, _refusal, _refusal, _nearly, _nearly, _accepts, ring_at_first,
    step("packet", kind=some_of(["BEGIN", "POLL", "STAT", "SD", "END"])),
)  # fmt: skip
_WAITS = ((0.05, 0.1), (0.35, 0.7), (0.9, 1.1), (2.0, 3.5), (8.0, 16.0))
pending = episode(
    weighted(ring_at_first, ring_at_first, ring), walk(_BEFORE, _WAITS, 5), perhaps | _accepts,
    receive(1.0, 2.0), perhaps | data, perhaps | settle,
)  # fmt: skip
"""What answers a call that is pending, or does not, and when."""
calling_again = episode(
    repeated(episode(
        weighted(ring, ring_at_first, ring_at_first), perhaps | wait(0.1, 1.3),
        repeated(_refusal, 2), perhaps | wait(0.7),
        weighted(_accepts, _accepts, _accepts, _nearly, perhaps),
        receive(0.7, 1.3, credit=some_of([None, 4, 64])),
        weighted(step("abort"), step("quit", heard=either), perhaps, wait(5.0, 62.0, 610.0)),
    ), 3),
    receive(1.0), perhaps | settle,
)  # fmt: skip
"""Calls one after the other, with what the answers of those before have brought."""

CALLED: tuple[Situation, ...] = (cookies, cookies, cookies, replacing, replacing, several, several)
CALLING: tuple[Situation, ...] = (pending, pending, calling_again, calling_again)
