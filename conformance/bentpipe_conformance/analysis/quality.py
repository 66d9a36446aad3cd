"""The quality of a capture: what is wrong with it, and what that means for judging it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bentpipe_conformance.analysis.judging import Place, Task
from bentpipe_conformance.analysis.sketch import CLOSE_S, LOSSES, NEAR_SHARE, Sketch
from bentpipe_conformance.analysis.spool import Spool
from bentpipe_conformance.engine.observing import Defect, End


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a reader should know of a capture.

    Attributes:
        kind: a :class:`Defect`, or ``side``, ``damage``, ``dropped``, ``checksums``, ``unread``.
        sentence: what it is, and what it means.
        connections: how many connections it concerns; 0 where it concerns the file.
    """

    kind: str
    sentence: str
    connections: int = 0


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of a capture.

    Attributes:
        side: how it is known that it was taken at the implementation's side; empty when it is not.
        packets, relevant: frames in the file, and those of the protocol.
        connections, judged: connections of the implementation, and those that could be judged.
        timing_error: the largest time, seconds, that passed between the implementation and the
            capture.
        remarks: everything a reader should know, the gravest first.
    """

    side: str
    packets: int
    relevant: int
    connections: int
    judged: int
    timing_error: float
    remarks: tuple[Remark, ...]


_SENTENCES = {
    Defect.ELSEWHERE: "it was not taken at the implementation's side, so that what the "
    "implementation knew when it sent cannot be told: little more than its handshake is judged",
    Defect.GAPS: "it lacks packets that passed: only what the implementation's own packets show in "
    "their order is judged",
    Defect.LATE: "it begins after the connection did: nothing is judged",
    Defect.BACKWARDS: "its times run backwards: little more than the handshake is judged",
    Defect.TWICE: "it recorded every packet twice: the copies are left out",
    Defect.CUT: "it kept only the beginning of packets: their data is not judged",
    Defect.MERGED_SENT: "it shows what the implementation sent before segmentation offload cut it: "
    "sizes of segments are not judged",
    Defect.MERGED_RECEIVED: "receive offload merged what reached the implementation: its segments "
    "are not counted",
}


def defects_of(sketch: Sketch, iut: End, *, lossy: bool) -> tuple[tuple[Defect, ...], float]:
    """What is wrong with the capture of a connection, and its timing error in seconds.

    Args:
        sketch: the connection.
        iut: the end to judge.
        lossy: whether the capture lost packets meanwhile.
    """
    appraisal = sketch.appraisal
    one, other = appraisal.ends
    peer = other if iut == one else one
    delay = appraisal.reactions.get(iut, 0.0)
    path = delay + appraisal.reactions.get(peer, 0.0)
    near, _ = ("", "") if sketch.looped else sketch.near()
    lost = appraisal.unreached.get(iut, 0) >= LOSSES
    elsewhere = near == peer[0] or lost or (delay > CLOSE_S and delay > NEAR_SHARE * path)
    found = {
        Defect.ELSEWHERE: elsewhere and not sketch.looped,
        Defect.GAPS: lossy or bool(sketch.gaps) or iut in appraisal.skipped,
        Defect.LATE: not appraisal.whole,
        Defect.BACKWARDS: sketch.backwards,
        Defect.TWICE: sketch.copies > 0,
        Defect.CUT: sketch.cut,
        Defect.MERGED_SENT: appraisal.merged.get(iut, 0) > 0,
        Defect.MERGED_RECEIVED: appraisal.merged.get(peer, 0) > 0,
    }
    late = max(delay, appraisal.lags.get(iut, 0.0))
    error = late if late > CLOSE_S and not found[Defect.ELSEWHERE] else 0.0
    return tuple(defect for defect, there in found.items() if there), error


def assess(
    spool: Spool, sketches: Sequence[Sketch], tasks: Mapping[Place, Task], iut: End, how: str
) -> Quality:
    """The quality of a capture as far as it concerns the implementation."""
    counts = Counter(defect for task in tasks.values() for defect in task.defects)
    error = max((task.timing_error for task in tasks.values()), default=0.0)
    remarks = [Remark("damage", f"{spool.damage} The packets before are judged.")] * bool(
        spool.damage
    )
    if not how and not counts[Defect.ELSEWHERE]:
        remarks.append(
            Remark("side", "nothing tells whose side it was taken on; it is taken for that of "
                   f"{iut[0]}")
        )  # fmt: skip
    remarks += [
        Remark(defect.value, sentence, counts[defect])
        for defect, sentence in _SENTENCES.items()
        if counts[defect]
    ]
    if spool.dropped:
        remarks.append(
            Remark("dropped", f"the capturing host says that it lost {spool.dropped} packets")
        )
    if error:
        remarks.append(
            Remark("delay", f"up to {error * 1000:.3g} ms pass between the implementation and the "
                   "capture, which is added to every tolerance")
        )  # fmt: skip
    unsummed = sum(
        sum(marks.unsummed for end, marks in item.marks.items() if end[0] == iut[0]) > 0
        for item in sketches
    )
    if unsummed:
        sentence = "hardware fills in checksums after the capture: they are not judged"
        remarks.append(Remark("checksums", sentence, unsummed))
    if spool.foreign:
        count = sum(spool.foreign.values())
        remarks.append(Remark("unread", f"{count} frames have a link type that cannot be read"))
    late = counts[Defect.LATE]
    return Quality(
        how, spool.packets, spool.relevant, len(sketches), len(sketches) - late, error,
        tuple(remarks),
    )  # fmt: skip
