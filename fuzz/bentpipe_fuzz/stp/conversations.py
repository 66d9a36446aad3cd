"""Hypothesis strategies for STP conversations: the steps of each kind of tester."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import conversation, episode, step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.stp.called import CALLED, CALLING
from bentpipe_fuzz.stp.episodes import HONEST, LAZY, ODD, STRAY
from bentpipe_fuzz.stp.odd import KINDS
from bentpipe_fuzz.stp.openings import OPENING
from bentpipe_fuzz.stp.situations import ENDING, SENDING, SPOILT
from bentpipe_fuzz.stp.walks import LONG, RECEIVERS, SENDERS, STATES

distance = st.sampled_from(
    [0, 0, 0, 1, -1, 2, -2, 64, -64, (1 << 22), (1 << 23) - 1, -(1 << 23)]
) | st.integers(-300, 300)
beside = st.integers(-2, 2)
own = st.tuples(st.sampled_from(["next", "acked", "edge"]), distance)
theirs = st.tuples(st.sampled_from(["delivered", "highest", "credit", "zero"]), distance)
near_own = st.tuples(st.sampled_from(["next", "acked", "edge"]), beside)
near_theirs = st.tuples(st.sampled_from(["delivered", "highest", "credit"]), beside)

seconds = st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 1.0, 3.0, 10.0])
octets = st.sampled_from([0, 1, 100, 512, 1000, 1400])
service = st.sampled_from(["chargen", "echo", "echo", "discard"])
offer: Mapping[str, st.SearchStrategy[Any]] = {
    "credit": st.sampled_from([1, 4, 16, 64, 256]),
    "max_sd": st.sampled_from([None, 512, 1000, 1400, 9000]),
    "options": st.sampled_from(["", "", "", "28040000", "fe08000000000000"]),
    "iss": st.sampled_from([0, (1 << 24) - 3, (1 << 24) - 40, (1 << 23) - 2]),
}

opening = step("open", service=service, octets=st.sampled_from([0, 0, 10, 512]), **offer)
calling = step("call", role=st.sampled_from(["send", "receive"]))
credit = st.sampled_from([None, 1, 4, 16, 64])
honest: st.SearchStrategy[Step] = st.one_of(
    step("write", sds=st.sampled_from([1, 1, 3, 10, 30]), octets=octets, poll=st.booleans()),
    step("write", sds=st.sampled_from([2, 5]), octets=octets, gap=st.sampled_from([0.01, 0.3, 1])),
    step("receive", seconds=seconds, credit=credit),
    step("receive", seconds=seconds),
    step("settle"),
    step("ask"),
    step("wait", seconds=seconds),
    step("close", poll=st.booleans()),
    step("release"),
)  # fmt: skip
lazy = st.one_of(
    step("wait", seconds=st.sampled_from([1.0, 5.0, 30.0, 60.0, 400.0, 1000.0])),
    step("receive", seconds=seconds, report=st.booleans(),
         answer=st.sampled_from([[], [0.5], [2.0], [0.0, 0.0], [0.0, 1.0]])),
    step("packet", kind=st.just("STAT"), n_mr=near_theirs),
    step("abort"),
)  # fmt: skip

kinds = st.sampled_from(sorted(KINDS))
stray_bits = st.sampled_from([0, 0, 0, 1, 0xFFFF])
csn = st.sampled_from([0, 0, 0, 1, -1, 1 << 31])
fields = st.fixed_dictionaries(
    {},
    optional={
        "flags": st.integers(0, 15), "reason": st.sampled_from([0, 1, 2, 3, 4, 5, 6, 255]),
        "version": st.sampled_from([0, 1, 3, 15]),
        "timestamp": st.sampled_from([0, 1, (1 << 32) - 1]),
    },
)  # fmt: skip
lists = st.lists(near_theirs, max_size=6)
far_lists = st.lists(st.tuples(st.sampled_from(["acked", "next", "edge", "delivered"]), distance),
                     max_size=6)  # fmt: skip
reports = st.sampled_from(["STAT", "USTAT"])
almost_valid = st.one_of(
    step("packet", kind=kinds),
    step("packet", kind=st.sampled_from(["SD", "SDP"]), seq=near_own, octets=octets),
    step("packet", kind=st.just("POLL"), seq=near_own, n_ps=st.integers(-2, 2)),
    step("packet", kind=reports, seq=near_theirs, elements=lists),
    step("packet", kind=st.just("STAT"), seq=near_theirs, n_mr=near_theirs, n_ps=beside),
    step("packet", kind=st.just("END"), seq=near_theirs, fields=fields),
    step("packet", kind=kinds, csn=csn, peer_csn=csn),
)
garbage = st.one_of(
    step("packet", kind=kinds, seq=own, tag=stray_bits, csn=csn, peer_csn=csn, fields=fields),
    step("packet", kind=reports, seq=theirs, elements=far_lists, n_mr=theirs, n_ps=distance),
    step("packet", kind=st.sampled_from(["SD", "SDP", "POLL"]), seq=own, octets=octets),
    step("malformed", kind=kinds, cut=st.integers(0, 16)),
    step("malformed", kind=kinds, right=st.just(False)),
    step("malformed", kind=kinds, more=st.binary(min_size=1, max_size=8).map(bytes.hex)),
    step("octets", octets=st.binary(max_size=40).map(bytes.hex), right=st.booleans()),
)
wrong_bits = st.integers(1, 0xFFFF)
wrong_csn = st.sampled_from([1, -1, 1 << 31, 12345])
off_path = st.one_of(
    step("packet", kind=kinds, tag=wrong_bits, csn=wrong_csn, peer_csn=wrong_csn, seq=own),
    step("packet", kind=st.sampled_from(["END", "ENDAK", "BGREJ", "BGAK"]), csn=wrong_csn,
         peer_csn=wrong_csn, fields=fields),
    step("malformed", kind=kinds, cut=st.integers(0, 16), here=st.just(False)),
    step("malformed", kind=kinds, right=st.just(False), here=st.just(False)),
    step("malformed", kind=kinds, here=st.just(False)),
    step("begin", service=st.sampled_from(["chargen", "echo", 47]),
         octets=st.sampled_from([0, 10, 512]), cookie=st.sampled_from([-1, 8, 16, 32])),
)  # fmt: skip

SHORT = episode(
    step("open", service=st.sampled_from(["echo", "discard"])),
    step("write", sds=st.integers(1, 4), octets=octets, poll=st.just(True)),
    step("settle"), step("release"),
)  # fmt: skip

habits = step("habit", reserved=st.sampled_from([True, True, False]), tag=st.booleans())
"""What nobody looks at is set in all packets."""

MODES: Mapping[str, st.SearchStrategy[Sequence[Step]]] = {
    "honest": conversation(
        opening | calling, honest, episodes=HONEST,
        situations=(*ENDING, *SENDING, *SENDERS, *RECEIVERS, *CALLING, *LONG), habits=habits,
    ),
    "lazy": conversation(
        opening, honest, lazy, episodes=LAZY,
        situations=(*OPENING, *SENDING, *SENDERS, *CALLING, *CALLED, *LONG), habits=habits,
    ),
    "on-path": conversation(
        opening | calling, honest, almost_valid, garbage, episodes=ODD,
        situations=(*OPENING, *ENDING, *SPOILT, *STATES, *STATES, *CALLED, *RECEIVERS),
        habits=habits,
    ),
    "off-path": conversation(
        opening, honest, off_path, episodes=STRAY,
        situations=(*OPENING, *ENDING, *SENDING, *CALLED, *CALLED, *STATES),
    ),
}  # fmt: skip
