"""The verdict on a captured transfer: could a SACK sender that follows the RFCs have sent it?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bentpipe_conformance.modelling.rejection import Module, Reach, follow
from bentpipe_conformance.modelling.transfers import Transfer
from bentpipe_conformance.modelling.windows import Window, cut_windows

ENVELOPE = Module("sack-newreno", "CaptureSackSender", "capture.cfg", "Windows")
"""What every SACK sender obeys; the module says what it leaves open."""

BATCH_OCTETS = 1_500_000
"""Text of a module (some 15,000 events) that TLC reads within a few hundred MiB of heap."""

Outcome = Literal["consistent", "violates", "capture insufficient"]


@dataclass(frozen=True, slots=True)
class Violation:
    """The first packet that no sender within the envelope would have sent.

    Attributes:
        packet: its number in the capture.
        offsets: [start, end) of its data, octets from the first.
        guard: what blocks it.
    """

    packet: int
    offsets: tuple[int, int]
    guard: str


@dataclass(frozen=True, slots=True)
class ForeignJudgement:
    """What the model says of one captured transfer.

    Attributes:
        transfer: the transfer.
        violation: the first violation, None without one.
        checked: events of the sender that the model followed.
        retransmissions: how many of them repeat data.
    """

    transfer: Transfer
    violation: Violation | None
    checked: int
    retransmissions: int

    @property
    def outcome(self) -> Outcome:
        """The verdict. A violation stands even if the capture lacks what follows it."""
        if self.violation is not None:
            return "violates"
        return "consistent" if self.transfer.lack is None else "capture insufficient"


def judge_transfers(
    transfers: Sequence[Transfer],
    tool: tuple[str, Path],
    root: Path,
    directory: Path,
    timeout: float,
    memory_mb: int = 2048,
) -> list[ForeignJudgement]:
    """Check captured transfers against the envelope, all in one run of TLC.

    Args:
        transfers: the transfers.
        tool: the Java launcher and the model checker.
        root: the folder of the models.
        directory: an existing folder for the generated module and the log.
        timeout: seconds.
        memory_mb: Java heap.

    Raises:
        ToolProblem: TLC could not do it.
    """
    windows = [
        cut_windows(transfer.flow, transfer.events)
        if transfer.flow is not None and transfer.events else []
        for transfer in transfers
    ]  # fmt: skip
    texts = [window.text() for several in windows for window in several]
    reached: list[Reach] = []
    ends = time.monotonic() + timeout
    for number, batch in enumerate(_batches(texts)):
        place = directory / f"batch-{number}"
        place.mkdir()
        left = max(1.0, ends - time.monotonic())
        reached += follow(ENVELOPE, batch, {}, tool, root, place, left, memory_mb)
    found = []
    for transfer, several in zip(transfers, windows, strict=True):
        own, reached = reached[: len(several)], reached[len(several) :]
        found.append(_judgement(transfer, several, own))
    return found


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in their order, as many at a time as one run of TLC takes."""
    batch: list[str] = []
    octets = 0
    for text in texts:
        if batch and octets + len(text) > BATCH_OCTETS:
            yield batch
            batch, octets = [], 0
        batch.append(text)
        octets += len(text)
    if batch:
        yield batch


def _judgement(transfer: Transfer, windows: list[Window], reached: list[Reach]) -> ForeignJudgement:
    checked = retransmissions = 0
    for window, reach in zip(windows, reached, strict=True):
        followed = window.items[window.repeated : reach.events]
        checked += len(followed)
        retransmissions += sum(item.again for item in followed)
        if reach.events < len(window.items):
            item = window.items[reach.events]
            assert item.offsets is not None  # the model can always note an acknowledgment
            violation = Violation(item.packet, item.offsets, reach.guard)
            return ForeignJudgement(transfer, violation, checked, retransmissions)
    return ForeignJudgement(transfer, None, checked, retransmissions)
