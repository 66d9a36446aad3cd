"""Episodes of STP: a few steps that lead into a state and vary what matters in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import episode, repeated, step, weighted
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.stp.odd import KINDS

Episode = st.SearchStrategy[list[Step]]

one = st.just
perhaps = st.none()
role = st.sampled_from(["send", "receive"])
kinds = st.sampled_from(sorted(KINDS))
soon = st.sampled_from([0.05, 0.3, 0.7, 1.0, 3.0])
later = st.sampled_from([10.0, 40.0, 100.0])
hours = st.sampled_from([400.0, 700.0, 850.0, 1000.0, 4000.0])
credit = st.sampled_from([0, 1, 2, 4, 16, 64])


def _wait(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[Step]:
    return step("wait", seconds=seconds)


_receive = step("receive", seconds=st.sampled_from([0.7, 2.0, 5.0]))
_data = step("write", sds=st.sampled_from([1, 3, 10, 40]), octets=st.sampled_from([8, 100, 1000]),
             poll=st.booleans())  # fmt: skip
_Way = st.SearchStrategy[dict[str, Any]]
_SPOILT: tuple[_Way, ...] = tuple(
    st.fixed_dictionaries(given) for given in (
        # Bodies have 4, 8, 12 or 16 octets, of which the last or all are missing.
        {"verb": one("malformed"), "cut": st.sampled_from([0, 3, 7, 11, 15])},
        {"verb": one("malformed"), "cut": st.integers(0, 30)},
        {"verb": one("malformed"), "more": st.sampled_from(["00", "0000", 8 * "00", 12 * "00"])},
        {"verb": one("malformed"), "more": st.binary(min_size=4, max_size=12).map(bytes.hex)},
        {"verb": one("forbidden"), "defect": st.sampled_from(["checksum", "length", "type"]),
         "which": st.integers(0, 5)},
    )
)  # fmt: skip
"""What has packets of any type discarded: lengths and checksums."""
_OPTIONS: _Way = st.fixed_dictionaries(
    {"verb": one("forbidden"), "defect": one("options"), "which": st.integers(0, 4)}
)
_TAG: _Way = st.fixed_dictionaries(
    {"verb": one("packet"), "tag": st.sampled_from([1, 0x8000, 0xFFFF])}
)
_VERSION: _Way = st.fixed_dictionaries(
    {"verb": one("malformed"), "cut": st.sampled_from([-1, 8, 12]),
     "version": st.sampled_from([0, 1, 3, 15])}
)  # fmt: skip
_DISCARDED: Mapping[str, _Way] = {
    **{kind: st.one_of(*_SPOILT) for kind in sorted(KINDS)},
    **{kind: weighted(*_SPOILT, _OPTIONS, _OPTIONS) for kind in ("BGAK", "BGREJ")},
    **{kind: st.one_of(*_SPOILT, _TAG) for kind in ("SD", "SDP", "POLL", "STAT", "USTAT")},
    "BEGIN": weighted(*_SPOILT, _OPTIONS, _OPTIONS, _VERSION, _VERSION),
}
"""What has packets of a type discarded."""

_FINAL = ("BGAK", "BGREJ", "END", "ENDAK")
"""Types of which a right packet ends some state."""


@st.composite
def _volley(draw: st.DrawFn) -> list[Step]:
    """Packets of all types, all of which have to be discarded.

    Those of a type follow each other, the first of them whole: who fills what is missing with what
    came before then has it right.
    """
    packets: list[Step] = []
    for kind in draw(st.permutations(sorted(KINDS))):
        # The connection's own BEGIN changes nothing in some states, another one in others.
        own = {"anew": True} if kind == "BEGIN" and draw(st.booleans()) else {}
        packets.append(Step("malformed", {"kind": kind, "right": False, **own}))
        for _ in range(draw(st.integers(2, 4))):
            given = {"kind": kind, **draw(_DISCARDED[kind])}
            verb = str(given.pop("verb"))
            credit = {"n_mr": ("credit", 8)} if (verb, kind) == ("packet", "STAT") else {}
            packets.append(Step(verb, {**given, **credit, **(own if verb != "packet" else {})}))
    return _apart(draw, packets)


@st.composite
def _ignored(draw: st.DrawFn) -> list[Step]:
    """Packets of many types with bits set that nobody looks at; what may end a state comes last."""
    given: dict[str, Any] = draw(st.sampled_from([
        {"reserved": True}, {"reserved": True}, {"reserved": True}, {"tag": 0x8001}, {},
    ]))  # fmt: skip
    others = draw(st.permutations(sorted({*KINDS} - {*_FINAL})))[: draw(st.integers(3, 6))]
    final = draw(st.permutations(_FINAL))[: draw(st.integers(2, 4))]
    more: dict[str, dict[str, Any]] = {
        "STAT": {"n_mr": ("credit", 8)}, "BEGIN": {"csn": draw(st.sampled_from([0, 1]))},
    }  # fmt: skip
    first, last = ([Step("packet", {"kind": kind, **given, **more.get(kind, {})}) for kind in part]
                   for part in (others, final))  # fmt: skip
    return _apart(draw, [*first, Step("ask"), *last])


def _apart(draw: st.DrawFn, packets: list[Step]) -> list[Step]:
    """Answers to packets that come close together can be told apart by nobody."""
    pause = Step("wait", {"seconds": draw(st.sampled_from([0.2, 0.7]))})
    return [step for packet in packets for step in (packet, pause)]


_elsewhere = st.one_of(
    step("malformed", kind=kinds, cut=st.integers(0, 30), here=one(False)),
    step("malformed", kind=kinds, right=one(False), here=one(False)),
    step("malformed", kind=kinds, more=st.binary(min_size=4, max_size=12).map(bytes.hex),
         here=one(False)),
    step("malformed", kind=kinds, here=one(False)),
)  # fmt: skip
volley, ignored = _volley(), _ignored()

_odd_packets = st.one_of(volley, ignored)
ready = episode(perhaps | _data, _odd_packets, _data, step("settle"), _receive)
calling = episode(step("ring", role=role), _odd_packets, perhaps | step("answer"), _receive)
releasing = episode(perhaps | _data, step("hang_up"), _odd_packets, _wait(soon), _receive)
answering = episode(
    step("ring", role=role),
    step("answer", max_sd=st.sampled_from([512, 513, 1000, 1400]), credit=credit),
    _receive, perhaps | step("settle"),
)  # fmt: skip
calls = episode(
    repeated(
        episode(
            step("ring", role=role),
            st.one_of(
                perhaps,
                step("answer", max_sd=st.sampled_from([512, 513, 1000, 1400]), credit=credit),
                step("packet", kind=st.sampled_from(["BGREJ", "END"])),
            ),
            st.one_of(_receive, _wait(soon | later)), perhaps | step("abort"),
        ),
        3,
    ),
    _receive,
)  # fmt: skip
"""The implementation's user calls several times, whatever becomes of it."""
rejected = episode(
    repeated(episode(
        step("ring", role=role),
        step("refuse", reason=st.sampled_from([0, 1, 2, 3, 4, 5, 6, 6, 7, 255]),
             cookie=st.booleans()),
        st.one_of(_receive, _wait(soon | later)),
        perhaps | step("answer", credit=credit), perhaps | _receive,
    ), 2),
    _receive,
)  # fmt: skip
"""A caller is refused, for any reason, with a cookie or without."""
again = episode(
    st.one_of(perhaps, step("call", role=role)), perhaps | _data, perhaps | _receive,
    repeated(st.one_of(
        step("answer", max_sd=st.sampled_from([512, 600, 1000, 1400]), credit=credit),
        step("packet", kind=st.sampled_from(["BEGIN", "BEGIN", "BGAK"])),
        step("packet", kind=one("BGAK"), n_mr=st.tuples(one("credit"), st.integers(-8, 64)),
             seq=st.tuples(one("delivered"), st.integers(-2, 4))),
        _wait(soon), _receive,
    ), 5),
    _data, _receive, step("settle"),
)  # fmt: skip
"""What opened a connection comes again, later or with other values."""
leaving = episode(
    perhaps | _data, st.one_of(step("hang_up"), step("close", poll=st.booleans())),
    repeated(st.one_of(
        step("packet", kind=kinds, reserved=st.booleans()), step("ask"), _receive, _wait(soon),
        step("packet", kind=st.sampled_from(["SD", "SDP"]),
             seq=st.tuples(st.sampled_from(["next", "acked"]), st.integers(-2, 2)), octets=one(8)),
        step("restart", service=st.sampled_from(["chargen", "echo", "discard"])),
        step("begin", service=st.sampled_from(["chargen", "echo"])),
    ), 6),
    _receive,
)  # fmt: skip
"""One or both streams have ended, and something comes."""
ends = episode(
    perhaps | _data,
    repeated(step("packet", kind=st.sampled_from(["SD", "SDP"]), octets=st.sampled_from([0, 8]),
                  seq=st.tuples(st.sampled_from(["next", "next", "edge"]), st.integers(-1, 5)),
                  fields=st.sampled_from([{}, {}, {"flags": 1}])), 5),
    perhaps | step("ask"), _receive, perhaps | _data, step("close"), step("settle"), _receive,
)  # fmt: skip
"""Ends of streams above gaps and beside the credit."""
gone = episode(step("release"), _odd_packets, _receive)
strange = episode(repeated(_elsewhere, 12), perhaps | _data, _receive)

cookies = episode(
    repeated(step("knock", service=st.sampled_from(["discard", "echo"]),
                  back=st.sampled_from([0, 0, 1, 2, 3]),
                  flip=st.sampled_from([-1, -1, 0, 3, 64, 100, 255])), 6),
    _wait(soon | later | hours),
    perhaps | step("knock", back=st.sampled_from([0, 1, 2])), _receive,
)  # fmt: skip
begins = episode(
    repeated(step("begin", service=st.sampled_from(["chargen", "echo", 47, 0]),
                  octets=st.sampled_from([0, 10, 512, 1000, 1400, 1440])), 12),
    perhaps | step("begin"),
    perhaps | step("open", octets=st.sampled_from([0, 512, 1000, 1380, 1400, 1420, 1440])),
    _receive,
)  # fmt: skip

gaps = episode(
    perhaps | _data,
    repeated(step("packet", kind=st.sampled_from(["SD", "SDP"]),
                  seq=st.tuples(one("next"), st.integers(0, 12)), octets=one(8)), 10),
    perhaps | step("ask"), perhaps | _data, step("settle"), _receive,
)  # fmt: skip
"""SDs with holes between them, and their reports."""

brink = episode(
    step("write", sds=st.sampled_from([40, 100]), octets=one(8)),
    repeated(step("packet", kind=st.sampled_from(["SD", "SDP"]),
                  seq=st.tuples(st.sampled_from(["edge", "next"]), st.integers(-2, 2)),
                  octets=one(8)), 4),
    _data, step("settle"),
)  # fmt: skip
"""SDs on both sides of the credit."""

reported = episode(
    step("receive", seconds=st.sampled_from([0.7, 2.0]), credit=credit),
    repeated(step("packet", kind=st.sampled_from(["STAT", "USTAT"]),
                  seq=st.tuples(st.sampled_from(["delivered", "highest"]), st.integers(-2, 2)),
                  elements=st.lists(st.tuples(one("delivered"), st.integers(0, 8)), max_size=5),
                  n_mr=st.tuples(st.sampled_from(["credit", "delivered"]), st.integers(-4, 4))), 4),
    _receive, step("receive", seconds=one(5.0)),
)  # fmt: skip

closed = episode(
    step("receive", seconds=st.sampled_from([0.7, 2.0]), credit=st.sampled_from([0, 1, 4])),
    _wait(soon | later | hours), step("receive", seconds=soon, credit=credit), _wait(soon | later),
    _receive,
)  # fmt: skip
stalled = episode(
    step("open", service=one("echo"), credit=st.sampled_from([1, 4])),
    repeated(step("write", sds=one(100), octets=st.sampled_from([100, 1000])), 3),
    _wait(soon | later), repeated(step("ask"), 3), _receive, step("settle"), _receive,
)  # fmt: skip
"""An echo whose sending is stopped closes the implementation's own window."""

restarted = episode(
    perhaps | _data, perhaps | _wait(soon | later),
    step("restart", service=st.sampled_from(["chargen", "echo", "discard"])),
    _data, _receive, step("settle"),
)  # fmt: skip
silent = episode(perhaps | _data, _wait(hours), perhaps | _data, _receive)
unheard = episode(step("ring", role=role), _wait(soon | later | hours), perhaps | step("answer"),
                  _receive)  # fmt: skip

HONEST: tuple[Episode, ...] = (answering, calls, silent, closed, gaps, restarted, again, leaving)
LAZY: tuple[Episode, ...] = (silent, closed, stalled, unheard, calls, cookies, rejected, leaving)
ODD: tuple[Episode, ...] = (
    ready, ready, calling, calling, releasing, releasing, gone, gone, gaps, brink, reported,
    cookies, rejected, again, leaving, ends,
)  # fmt: skip
STRAY: tuple[Episode, ...] = (strange, cookies, begins)
