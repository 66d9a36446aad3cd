"""Hypothesis strategies for TCP conversations: the steps of each kind of tester.

What matters in a state is varied around its boundary: the edge of the window, the next octet, what
is acknowledged and what has arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import conversation, episode, step, weighted
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.episodes import HONEST, LAZY, ODD
from bentpipe_fuzz.tcp.options import OPTIONS, OPTIONS_OF_SYN
from bentpipe_fuzz.tcp.sending import SENDING
from bentpipe_fuzz.tcp.situations import CARRYING, ENDING, OPENING
from bentpipe_fuzz.tcp.walks import SENDERS
from bentpipe_fuzz.tcp.wandering import LONG, RECEIVERS, STATES

distance = st.sampled_from(
    [0, 0, 0, 1, -1, 2, -2, 536, -536, 1460, -1460, 1 << 16, 1 << 30, (1 << 31) - 1, -(1 << 31)]
) | st.integers(-70_000, 70_000)
"""From a number that matters: at it, beside it, a segment or a window away, half the space away."""

own = st.tuples(st.sampled_from(["next", "next", "acked", "edge", "zero"]), distance)
theirs = st.tuples(st.sampled_from(["delivered", "delivered", "highest", "zero"]), distance)
near_own = st.tuples(st.sampled_from(["next", "acked", "edge"]), st.integers(-3, 3))
near_theirs = st.tuples(st.sampled_from(["delivered", "highest"]), st.integers(-3, 3))

seconds = st.sampled_from([0.0, 0.01, 0.1, 0.21, 0.5, 1.0, 1.0, 3.0, 10.0])
octets = st.sampled_from([1, 2, 100, 536, 1460, 1461, 2920, 5000, 20_000, 60_000])
service = st.sampled_from(["chargen", "chargen", "echo", "echo", "discard"])
window = st.sampled_from([0, 1, 535, 1460, 2919, 4380, 20_000, 65_535, 1 << 20])

offer: Mapping[str, st.SearchStrategy[Any]] = {
    "mss": st.sampled_from([None, 536, 1000, 1460, 1460, 9000]),
    "sack": st.booleans(),
    "timestamps": st.booleans(),
    "window_scale": st.sampled_from([None, 0, 2, 7, 14, 15]),
    "window": st.sampled_from([2920, 8000, 20_000, 40_000]),
}

opening = step("open", service=service, **offer)
calling = step("call", role=st.sampled_from(["send", "receive"]), **offer)
honest: st.SearchStrategy[Step] = st.one_of(
    step("write", octets=octets, at_once=st.sampled_from([1460, 1460, 536, 100, 1])),
    step("write", octets=octets, at_once=st.sampled_from([1460, 536]),
         gap=st.sampled_from([0.01, 0.3, 1.0])),
    step("receive", seconds=seconds, every=st.sampled_from([1, 1, 2])),
    step("receive", segments=st.sampled_from([1, 3, 10, 40]), seconds=st.just(20.0)),
    step("settle"),
    step("wait", seconds=seconds),
    step("close"),
)  # fmt: skip
lazy = st.one_of(
    step("offer", window=window),
    step("wait", seconds=st.sampled_from([1.0, 5.0, 30.0, 60.0, 400.0, 1000.0])),
    step("receive", seconds=seconds, every=st.sampled_from([2, 3, 8, 100])),
    step("segment", ack=st.tuples(st.just("delivered"), st.sampled_from([-1460, -536, -1, 1]))),
    step("abort"),
)

raw = st.one_of(st.binary(max_size=8).map(bytes.hex), OPTIONS)
odd = st.fixed_dictionaries(
    {},
    optional={
        "reserved": st.integers(1, 7), "urgptr": st.sampled_from([0, 1, 65_535]),
        "dataofs": st.integers(0, 15), "raw": raw, "checksum": st.just(True),
        "fuzz": st.integers(0, 1 << 16),
    },
)  # fmt: skip
odd_of_syn = st.fixed_dictionaries(
    {}, optional={"reserved": st.integers(1, 7), "urgptr": st.just(1), "raw": OPTIONS_OF_SYN}
)
odd_opening = step("open", service=service, odd=odd_of_syn, **offer)
flags = st.sampled_from(["A", "A", "PA", "FA", "S", "SA", "R", "RA", "", "FPU", "SF", "UA", "EC"])
size = st.sampled_from([0, 0, 1, 100, 1460])
blocks = st.lists(st.tuples(theirs, theirs), max_size=3)
almost_valid = st.one_of(
    step("segment", flags=flags, seq=near_own, ack=near_theirs, octets=size),
    step("segment", seq=own, ack=near_theirs, octets=st.sampled_from([1, 100, 1460])),
    step("segment", seq=st.just(("next", 0)), ack=theirs),
    step("segment", sack=blocks),
    step("segment", window=window),
    step("segment", flags=st.sampled_from(["R", "RA", "S", "SA"]), seq=own, ack=near_theirs),
    step("segment", tsval=distance, octets=size, bare=st.booleans()),
)
garbage = st.one_of(
    step("segment", flags=flags, seq=own, ack=theirs, octets=size, odd=odd),
    step("segment", flags=flags, seq=near_own, octets=size, odd=odd, sack=blocks),
)
wrong = st.tuples(st.just("edge"), st.sampled_from([1, 1460, 1 << 20, 1 << 30, -(1 << 31)]))
off_path = st.one_of(
    step("segment", flags=st.sampled_from(["A", "PA", "FA", "R", "RA", "S", "SA"]), seq=wrong,
         ack=theirs, octets=size),
    step("stray", flags=flags, seq=st.integers(0, (1 << 32) - 1),
         ack=st.integers(0, (1 << 32) - 1), octets=size, port=st.sampled_from([7, 9, 19, 47])),
    step("syn", odd=odd_of_syn, service=st.sampled_from(["chargen", "echo", 47]),
         mss=st.sampled_from([0, 1, 1460]), window_scale=st.sampled_from([None, 14, 15, 255])),
)  # fmt: skip

SHORT = episode(
    step("open", service=st.sampled_from(["echo", "discard"])),
    step("write", octets=st.integers(1, 4 * 1460)),
    step("settle"), step("close"), step("receive", seconds=st.just(1.0)),
)  # fmt: skip

MODES: Mapping[str, st.SearchStrategy[Sequence[Step]]] = {
    "honest": conversation(
        opening | calling, honest, episodes=HONEST,
        situations=(*OPENING, *ENDING, *SENDING, *SENDERS, *STATES),
    ),
    "lazy": conversation(
        weighted(opening, opening, calling), honest, lazy, episodes=LAZY,
        situations=(*SENDING, *SENDERS),
    ),
    "on-path": conversation(
        opening | calling | odd_opening, honest, almost_valid, garbage, episodes=ODD,
        situations=(*OPENING, *ENDING, *CARRYING, *RECEIVERS, *RECEIVERS, *STATES, *LONG),
    ),
    "off-path": conversation(
        opening, honest, off_path,
        situations=(*OPENING, *ENDING, *CARRYING, *SENDING, *SENDERS, *RECEIVERS, *STATES),
    ),
}  # fmt: skip
