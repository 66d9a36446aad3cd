"""What walks of TCP and of RWBP are made of: reports, their pauses, and pieces of a stream."""

from __future__ import annotations

from bentpipe_conformance.protocols.tcp.connection import SEGMENT
from hypothesis import strategies as st

from bentpipe_fuzz.campaign.plan import step
from bentpipe_fuzz.campaign.script import Step
from bentpipe_fuzz.tcp.leads import either, one, place, some_of, wait

few = some_of([1, 1, 2, 3])

# -- what is said of what has arrived

progress = step("tell", ack=few)
gap = step("tell", ack=some_of([0, 0, 1, 2]), hole=few, held=few, known=either)
far = step("tell", hole=some_of([2, 4, 5, 7]), held=few, known=either)
old = step("tell", ack=some_of([0, 1]), hole=few, held=some_of([0, 1, 2]),
            old=some_of([1, SEGMENT, 3 * SEGMENT, 1 << 16, 1 << 30]))  # fmt: skip
everything = step("tell", ack=one(99))
arrives = step("tell", ack=some_of([1, 1, 1, 2]))
lost_again = step("tell", hole=one(1), held=some_of([8, 12, 18]), known=either)
beyond = step("segment", ack=place("highest", 1, SEGMENT, 1 << 20), octets=some_of([0, 0, 100]))
"""An acknowledgment of what has not been sent."""
receives = step("receive", segments=some_of([1, 3]), seconds=some_of([0.1, 0.7]),
                 losing=some_of([[], [0], [1]]))  # fmt: skip
writes = step("write", octets=some_of([1, 100, 1460, 4000]), at_once=some_of([100, 1460]))

# -- when

swiftly = wait(some_of([0.02, 0.1, 0.25, 0.25]))
repaired = wait(some_of([0.35, 0.7, 0.7, 0.9]))
silence = wait(some_of([1.3, 2.0, 3.5, 8.0]))


@st.composite
def piece(draw: st.DrawFn, base: str, first: int, last: int, least: int) -> list[Step]:
    """A piece of the stream, which may overlap what has arrived, and may have its end.

    Places are multiples of ``least`` from a base, here and there an octet off.
    """
    at = least * draw(st.integers(first, last)) + draw(some_of([0, 0, 0, 0, 1, -1]))
    octets = min(least * draw(some_of([1, 1, 1, 2, 2, 3])) + draw(some_of([0, 0, 0, 1, -1])), 1460)
    flags = draw(some_of(["A", "A", "A", "A", "A", "PA", "FA", "", "PUA", "AE"]))
    ack = draw(some_of([("delivered", 0), ("delivered", 0), ("zero", 0), ("highest", 0)]))
    return [Step("segment", {"seq": (base, at), "octets": octets, "flags": flags, "ack": ack})]
