"""Judging the same packets once.

Most cases do not touch a mutant's defect; the packets then equal those of the true reference to
the octet. A verdict depends on the recording alone, so it need not be computed again.
"""

from __future__ import annotations

import hashlib
import struct
from functools import cache

from bentpipe_conformance.engine.execution import Judgment, Recording, judge_case

_FACTS = struct.Struct("!d?4sI").pack


class RememberingJudge:
    """:func:`judge_case` with a memory."""

    def __init__(self) -> None:
        self._known: dict[bytes, Judgment] = {}

    def __call__(self, recording: Recording) -> Judgment:
        """The judgment of this recording, computed now or before."""
        key = digest_of(recording)
        if key not in self._known:
            self._known[key] = judge_case(recording)
        return self._known[key]


def digest_of(recording: Recording) -> bytes:
    """A digest of everything a judgment depends on, unambiguous by explicit lengths."""
    words = (
        recording.case.id, recording.profile, recording.not_reached, recording.broken,
        recording.died, repr(sorted(recording.ics.items())), recording.timing_error,
    )  # fmt: skip
    octets = [repr(words).encode()]
    for packet in recording.captured:
        data = packet.data
        octets.append(_FACTS(packet.time, packet.outgoing, packet.point.encode(), len(data)))
        octets.append(data)
    return hashlib.blake2b(b"".join(octets), digest_size=20).digest()


@cache
def shared_judge() -> RememberingJudge:
    """The judge of this process, whose memory all its subjects share."""
    return RememberingJudge()
