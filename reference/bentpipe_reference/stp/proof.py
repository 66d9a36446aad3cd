"""How a known caller proves its address to the listener that trusts it (STP/1, STP-CC-032).

The listener may send only three times what it has received (STP-SEC-001). Once that is used up and
its POLLs are lost, only the caller can resume the exchange.
"""

from __future__ import annotations

import math


class Proof:
    """The timer of BGAKs with C flag that a caller sends until one is answered.

    Args:
        initial: seconds without a packet of the peer before the first.
        begins: BEGINs sent; all but the one that opened the connection may be answered late.
        patience: seconds after the first unanswered proof until the peer is given up.
        now: when the connection opened, by such a BGAK.
    """

    def __init__(self, initial: float, begins: int, patience: float, now: float) -> None:
        self._initial = initial
        self._begins = begins
        self._patience = patience
        self._answers = 0
        self._asked = False
        self._unanswered_since = math.inf
        self.heard(now)

    @property
    def is_accepted(self) -> bool:
        """Whether one of the BGAKs received must be an answer: BEGINs account for the rest."""
        return self._answers >= self._begins

    def answered(self) -> None:
        """A BGAK without C flag arrives; it answers nothing before the first question."""
        self._answers += self._asked

    def heard(self, now: float) -> None:
        """A packet of the connection arrives."""
        self._unanswered_since = math.inf
        self._wait = self._initial
        self._at = now + self._wait

    def due(self, now: float) -> bool:
        """Whether a BGAK is due; the caller then sends it."""
        if now < self._at:
            return False
        self._asked = True
        self._unanswered_since = min(self._unanswered_since, now)
        self._wait *= 2
        self._at = now + self._wait
        return True

    def is_hopeless(self, now: float) -> bool:
        """STP-PL-008: whether the peer is to be given up."""
        return now >= self._unanswered_since + self._patience

    def deadline(self) -> float:
        """When :meth:`due` or :meth:`is_hopeless` is to be asked next."""
        return min(self._at, self._unanswered_since + self._patience)
