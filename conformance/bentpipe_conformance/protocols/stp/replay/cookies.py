"""Which cookies the implementation (IUT) gave to an address and which it got from there.

What a cookie holds only its maker knows. The packets show when it was given, and so, up to the time
of an answer, when it was made; which connections were opened by it; and which cookies differ so
little from one that was given that they cannot have been made by a code of 64 bits (STP-SEC-006).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.stp.codec import V
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD
from bentpipe_conformance.protocols.stp.replay.events import DUE_S, At

GOOD_S, USED_S = 600.0, 900.0
"""Seconds for which a cookie may open a connection, and for which it is remembered once it has
(section 8)."""

ALIKE = 2
"""Octets in which two cookies may differ to be one and the same, altered."""


class Worth(Enum):
    """What a cookie in a BEGIN is worth to the IUT."""

    GOOD = "good"
    USED = "used"
    SPENT = "used long ago"
    STALE = "not good"
    FORGED = "forged"
    UNKNOWN = "unknown"

    @property
    def opens_nothing(self) -> bool:
        """Whether it surely opens no connection."""
        return self in (Worth.USED, Worth.SPENT, Worth.STALE, Worth.FORGED)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a BEGIN's cookie is worth, and why, as a sentence's end: "a BEGIN ..."."""

    worth: Worth
    why: str


@dataclass(slots=True, eq=False)
class Ledger:
    """The cookies between the IUT and one address of the tester.

    Attributes:
        given: the packet that first brought each cookie to the tester.
        elsewhere: cookies given to other addresses.
        opened: the BEGINs that opened connections, in order.
        handed: for each cookie of the tester, the packet that first brought it to the IUT.
        handed_elsewhere: cookies of the tester's other addresses.
        timing_error: seconds by which recorded times may be wrong.
    """

    given: dict[bytes, At] = field(default_factory=dict)
    elsewhere: frozenset[bytes] = frozenset()
    opened: list[At] = field(default_factory=list)
    handed: dict[bytes, At] = field(default_factory=dict)
    handed_elsewhere: frozenset[bytes] = frozenset()
    timing_error: float = 0.0

    @property
    def max_sd(self) -> Range:
        """The least and the greatest MaxSD that the IUT has announced with its cookies."""
        found = [at.stp.max_sd or LEAST_MAX_SD for at in self.given.values()]
        return min(found, default=LEAST_MAX_SD), max(found, default=LEAST_MAX_SD)

    def standing(self, begin: At) -> Standing:
        """What the cookie of a BEGIN is worth when it reaches the IUT."""
        cookie = begin.stp.cookie
        if cookie is None:
            return Standing(Worth.STALE, "without a cookie")
        given = self.given.get(cookie)
        if given is None or given.frame > begin.frame:
            return self._strange(cookie)
        age = begin.time - given.time
        slack = DUE_S + self.timing_error
        before = [at for at in self.opened if at.frame < begin.frame]
        if any(at.stp.cookie == cookie for at in before):
            # It may be remembered longer than it must be.
            return Standing(
                Worth.USED if age < USED_S - slack else Worth.SPENT, "with a used cookie"
            )
        if any(self._made_later(at.stp.cookie, given) for at in before if at.stp.flags & V):
            return Standing(Worth.STALE, "with a cookie that a later one has made void")
        if age > GOOD_S + slack:
            return Standing(Worth.STALE, _aged(age))
        return Standing(Worth.GOOD if age < GOOD_S - slack else Worth.UNKNOWN, _aged(age))

    def _made_later(self, cookie: bytes | None, than: At) -> bool:
        given = self.given.get(cookie) if cookie is not None else None
        return given is not None and given.frame > than.frame

    def _strange(self, cookie: bytes) -> Standing:
        """A cookie that this address has not been given, as far as the packets show."""
        if cookie in self.elsewhere:
            return Standing(Worth.FORGED, "with a cookie of another address")
        if any(alike(cookie, known) for known in (*self.given, *self.elsewhere)):
            return Standing(Worth.FORGED, "with an altered cookie")
        return Standing(Worth.UNKNOWN, "with a cookie that was not given in this trace")


def _aged(age: float) -> str:
    return f"with a cookie {age:.0f} s old"


def alike(cookie: bytes, known: bytes) -> bool:
    """Whether a cookie is another one with few octets altered, cut off or added."""
    if cookie == known or abs(len(cookie) - len(known)) > ALIKE:
        return False
    differing = sum(a != b for a, b in zip(cookie, known, strict=False))
    return differing + abs(len(cookie) - len(known)) <= ALIKE
