"""Judging the same packets once.

Most cases never touch a mutant's defect, and the packets are then those of the true reference to
the octet. A verdict is a pure function of the packets, so it need not be found again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from functools import cache

from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.checking import Ics
from bentpipe_conformance.engine.execution import Judged, judge_case
from bentpipe_conformance.engine.lane import Captured


class RememberingJudge:
    """:func:`judge_case` with a memory, for one profile and conformance statement."""

    def __init__(self) -> None:
        self._known: dict[bytes, Judged] = {}

    def __call__(
        self,
        item: Case,
        captured: Sequence[Captured],
        profile: str,
        ics: Ics,
        timing_error: float,
        *,
        not_reached: str = "",
        broken: str = "",
        died: str = "",
    ) -> Judged:
        """The judgment of these packets, found now or before."""
        words = (item.id, profile, not_reached, broken, died, repr(sorted(ics.items())))
        key = _digest(words, timing_error, captured)
        judged = self._known.get(key)
        if judged is None:
            judged = self._known[key] = judge_case(
                item, captured, profile, ics, timing_error,
                not_reached=not_reached, broken=broken, died=died,
            )  # fmt: skip
        return judged


def _digest(words: tuple[str, ...], timing_error: float, captured: Sequence[Captured]) -> bytes:
    """A digest of everything a judgment depends on, unambiguous by explicit lengths."""
    state = hashlib.blake2b(repr((words, timing_error)).encode(), digest_size=20)
    for packet in captured:
        state.update(
            struct.pack(
                "!d?4sI", packet.time, packet.outgoing, packet.point.encode(), len(packet.data)
            )
        )
        state.update(packet.data)
    return state.digest()


@cache
def shared_judge() -> RememberingJudge:
    """The judge of this process, whose memory all its subjects share."""
    return RememberingJudge()
