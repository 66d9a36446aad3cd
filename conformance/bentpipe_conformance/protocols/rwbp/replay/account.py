"""A proxy's account with its gateway, as section 9.4 keeps it and as it may be kept wrongly.

Each wrong account differs from the true one by one rule. What a proxy passes is held against the
true account; where that does not agree, the wrong accounts that do tell which rule is broken. And a
rule has been tried where its wrong account would have acted otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bentpipe_conformance.protocols.rwbp.credit import MODULUS, CreditFrame, below, newer
from bentpipe_conformance.protocols.rwbp.replay.flow import Flow
from bentpipe_conformance.protocols.rwbp.replay.link import Passed, Told

LIFE_S = 1.0
"""RWBP-LC-005, RWBP-LC-006."""

ROUNDING_S = 1e-6
"""What recorded times may be wrong by."""


class Account:
    """PASSED, LIMIT and EPOCH after some events.

    Args:
        slack: seconds by which the order of an arrival and a departure may be wrong.
        lenient: whether a doubt is decided in favour of passing.

    Attributes:
        heard: when the last frame that counts has arrived.
    """

    broken = ""
    """The requirement that this account does not follow; none if it is the true one."""

    def __init__(self, slack: float, *, lenient: bool) -> None:
        self.epoch: int | None = None
        self.passed = self.limit = 0
        self.heard = -math.inf
        self._slack = slack + ROUNDING_S if slack else ROUNDING_S
        self._lenient = lenient
        self._last = -math.inf
        self._recent: list[float] = []

    def hear(self, told: Told) -> None:
        """A frame arrives."""
        frame, now = told.frame, told.packet.time
        if not self.counts(frame):
            return
        if self.epoch is None or self.is_newer(frame.epoch):
            self.begin(frame, now)
        elif frame.epoch != self.epoch:
            return
        else:
            self.limit = self.raised(frame)
            self._give_back(frame, now)
        self.heard = now

    def counts(self, frame: CreditFrame) -> bool:
        """Whether a frame is valid (RWBP-LC-001)."""
        return not frame.flaw

    def is_newer(self, epoch: int) -> bool:
        """Whether a frame's epoch begins the counts anew (RWBP-LC-004)."""
        return self.epoch is not None and newer(epoch, self.epoch)

    def begin(self, frame: CreditFrame, now: float) -> None:
        """Counts begin anew; what left in the same moment may belong to either epoch."""
        late = 0 if self._lenient else sum(time >= now - self._slack for time in self._recent)
        self.epoch, self.limit = frame.epoch, frame.limit
        self.passed = (frame.arrived + late) % MODULUS

    def raised(self, frame: CreditFrame) -> int:
        """LIMIT after a frame of the present epoch (RWBP-LC-003)."""
        return frame.limit if below(self.limit, frame.limit) else self.limit

    def _give_back(self, frame: CreditFrame, now: float) -> None:
        """RWBP-LC-006; the true account is in doubt where its second has just passed or not."""
        since, slack = now - self._last, self._slack
        if since >= self.patience + slack or (
            since >= self.patience - slack and below(frame.arrived, self.passed) is self._lenient
        ):
            self.passed = frame.arrived

    patience = LIFE_S
    """Seconds without a packet after which what has arrived is what has been passed."""

    def permits(self, now: float) -> bool:
        """Whether a packet may be passed (RWBP-LC-002, RWBP-LC-005)."""
        return (
            self.epoch is not None and now <= self.fresh_until() and below(self.passed, self.limit)
        )

    def fresh_until(self) -> float:
        """When the last frame grows stale."""
        return self.heard + LIFE_S + (self._slack if self._lenient else -self._slack)

    def take(self, passed: Passed[Flow]) -> None:
        """A packet leaves (RWBP-LC-007)."""
        now = passed.packet.time
        if self._slack > ROUNDING_S:
            self._recent = [*self._recent[-32:], now]
        if self.covers(passed):
            self.passed = (self.passed + 1) % MODULUS
            self._last = now

    def covers(self, passed: Passed[Flow]) -> bool:  # noqa: ARG002
        """Whether a packet counts."""
        return True


def _wrong(broken: str, **rules: Any) -> type[Account]:
    """An account that has other rules, and so does not follow a requirement."""
    return type(Account.__name__, (Account,), {"broken": broken, **rules})


def _begin_with_old_credit(account: Account, frame: CreditFrame, now: float) -> None:
    first, passed, limit = account.epoch is None, account.passed, account.limit
    Account.begin(account, frame, now)
    if not first:
        account.passed, account.limit = passed, limit
        account.limit = account.raised(frame)


def _hear_any_epoch(account: Account, told: Told) -> None:
    Account.hear(account, told)
    if account.counts(told.frame):
        account.heard = told.packet.time


OVERDRAWS = _wrong(
    "RWBP-LC-002", permits=lambda it, now: it.epoch is not None and now <= it.fresh_until()
)
"""Packets pass whatever LIMIT is."""

KNOWS_ONE_EPOCH = _wrong("RWBP-LC-004", is_newer=lambda *_: False)
"""Frames of a newer epoch are discarded."""

GENEROUS: Sequence[type[Account]] = (
    # Invalid frames count.
    _wrong("RWBP-LC-001", counts=lambda *_: True),
    # Packets pass before the first frame.
    _wrong(
        "RWBP-LC-002", permits=lambda it, now: it.epoch is None or Account.permits(it, now),
        fresh_until=lambda it: math.inf if it.epoch is None else Account.fresh_until(it),
    ),
    OVERDRAWS,
    # A frame of an older epoch begins the counts anew, too.
    _wrong("RWBP-LC-004", is_newer=lambda it, epoch: epoch != it.epoch),
    KNOWS_ONE_EPOCH,
    # A newer epoch only ever raises LIMIT.
    _wrong("RWBP-LC-004", begin=_begin_with_old_credit),
    # A frame counts for ever.
    _wrong("RWBP-LC-005", fresh_until=lambda _: math.inf),
    # A frame of an older epoch shows that the gateway lives.
    _wrong("RWBP-LC-005", hear=_hear_any_epoch),
    # What has not arrived is taken for lost by each frame.
    _wrong("RWBP-LC-006", patience=-math.inf),
    # What has neither data nor FIN passes without being counted.
    _wrong("RWBP-LC-007", covers=lambda _, passed: passed.with_data),
    # What belongs to a connection without RWBP passes without being counted.
    _wrong(
        "RWBP-LC-007", covers=lambda _, passed: passed.flow is not None and passed.flow.agreed
    ),
)  # fmt: skip
"""Those by which more may pass than by the true one."""

MEAN: Sequence[type[Account]] = (
    # A frame counts only if its source port is 1021, too.
    _wrong(
        "RWBP-LC-001", counts=lambda it, frame: Account.counts(it, frame) and frame.sport == 1021
    ),
    # LIMIT follows each frame, up and down.
    _wrong("RWBP-LC-003", raised=lambda _, frame: frame.limit),
    # LIMIT stays what it was when the epoch began.
    _wrong("RWBP-LC-003", raised=lambda it, _: it.limit),
    KNOWS_ONE_EPOCH,
    # What has been passed counts for ever.
    _wrong("RWBP-LC-006", patience=math.inf),
)
"""Those by which less may pass."""
