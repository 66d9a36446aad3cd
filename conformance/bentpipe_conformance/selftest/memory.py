"""Judging the same packets once.

Most cases do not touch a mutant's defect; the packets then equal those of the true reference to
the octet. A verdict depends on the recording alone, so it need not be computed again.
"""

from __future__ import annotations

import hashlib
import struct
from functools import cache

from bentpipe_conformance.engine.execution import Judgment, Recording, judge_case


class RememberingJudge:
    """:func:`judge_case` with a memory."""

    def __init__(self) -> None:
        self._known: dict[bytes, Judgment] = {}

    def __call__(self, recording: Recording) -> Judgment:
        """The judgment of this recording, computed now or before."""
        key = _digest(recording)
        if key not in self._known:
            self._known[key] = judge_case(recording)
        return self._known[key]


def _digest(recording: Recording) -> bytes:
    """A digest of everything a judgment depends on, unambiguous by explicit lengths."""
    words = (
        recording.case.id, recording.profile, recording.not_reached, recording.broken,
        recording.died, repr(sorted(recording.ics.items())), recording.timing_error,
    )  # fmt: skip
    state = hashlib.blake2b(repr(words).encode(), digest_size=20)
    for packet in recording.captured:
        facts = packet.time, packet.outgoing, packet.point.encode(), len(packet.data)
        state.update(struct.pack("!d?4sI", *facts) + packet.data)
    return state.digest()


@cache
def shared_judge() -> RememberingJudge:
    """The judge of this process, whose memory all its subjects share."""
    return RememberingJudge()
