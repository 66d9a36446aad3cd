"""The verdict on a captured transfer: could a SACK sender that follows the RFCs have sent it?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bentpipe_conformance.models.rejection import Module, Reach, Setup, follow
from bentpipe_conformance.models.tcp.transfers import Transfer
from bentpipe_conformance.models.tcp.windows import Window, cut_windows
from bentpipe_conformance.models.tool import ToolProblem

ENVELOPE = Module("sack-newreno", "CaptureSackSender", "capture.cfg", "Windows")
"""What every SACK sender obeys; the module says what it leaves open."""

BATCH_OCTETS = 500_000
"""Text of a module (some 5,000 events) that TLC reads within a few hundred MiB of heap."""

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
        repeats: how many events before what the capture lacks repeat data.
        acknowledgments: how many of the events followed are acknowledgments taken in.
    """

    transfer: Transfer
    violation: Violation | None
    checked: int
    retransmissions: int
    repeats: int
    acknowledgments: int = 0

    @property
    def followed(self) -> dict[str, int]:
        """How often the model has followed each kind of event."""
        new = self.checked - self.retransmissions - self.acknowledgments
        return {"new data": new, "retransmission": self.retransmissions,
                "acknowledgment": self.acknowledgments}  # fmt: skip

    @property
    def outcome(self) -> Outcome:
        """The verdict. A violation stands even if the capture lacks what follows it."""
        if self.violation is not None:
            return "violates"
        return "consistent" if self.transfer.lack is None else "capture insufficient"


def judge_transfers(transfers: Sequence[Transfer], setup: Setup) -> list[ForeignJudgement]:
    """Check captured transfers against the envelope, several windows in one run of TLC.

    Windows with retransmissions come first. When the time has expired, what has not been checked is
    left out, and the judgements say so.

    Args:
        transfers: the transfers.
        setup: what TLC runs with.

    Raises:
        ToolProblem: TLC could not do it, or not even the first windows in that time.
    """
    windows = [
        cut_windows(transfer.flow, transfer.events)
        if transfer.flow is not None and transfer.events
        else []
        for transfer in transfers
    ]
    places = [(i, j) for i, several in enumerate(windows) for j in range(len(several))]
    places.sort(key=lambda place: windows[place[0]][place[1]].retransmissions == 0)
    reached: dict[tuple[int, int], Reach] = {}
    ends = time.monotonic() + setup.timeout
    texts = ((place, windows[place[0]][place[1]].text()) for place in places)
    for number, batch in enumerate(_batches(texts)):
        folder = setup.directory / f"batch-{number}"
        folder.mkdir()
        left = max(1.0, ends - time.monotonic())
        part = replace(setup, directory=folder, timeout=left)
        try:
            found = follow(ENVELOPE, list(batch.values()), {}, part)
        except ToolProblem:
            if reached and time.monotonic() >= ends:
                break
            raise
        reached.update(zip(batch, found, strict=True))
        if time.monotonic() >= ends:
            break
    return [
        _judgement(transfer, several, {j: reached[i, j] for j in range(len(several))
                                       if (i, j) in reached})
        for i, (transfer, several) in enumerate(zip(transfers, windows, strict=True))
    ]  # fmt: skip


def _batches(
    texts: Iterable[tuple[tuple[int, int], str]],
) -> Iterator[dict[tuple[int, int], str]]:
    """The texts in their order, as many at a time as one run of TLC takes."""
    batch: dict[tuple[int, int], str] = {}
    octets = 0
    for place, text in texts:
        if batch and octets + len(text) > BATCH_OCTETS:
            yield batch
            batch, octets = {}, 0
        batch[place] = text
        octets += len(text)
    if batch:
        yield batch


def _judgement(
    transfer: Transfer, windows: list[Window], reached: dict[int, Reach]
) -> ForeignJudgement:
    checked = retransmissions = acknowledgments = 0
    violation: Violation | None = None
    for index, window in enumerate(windows):
        if index not in reached:
            continue
        events = reached[index].events
        followed = window.items[window.repeated : events]
        checked += len(followed)
        retransmissions += sum(item.again for item in followed)
        acknowledgments += sum(item.offsets is None for item in followed)
        if events < len(window.items):
            item = window.items[events]
            assert item.offsets is not None  # the model can always note an acknowledgment
            violation = Violation(item.packet, item.offsets, reached[index].guard)
            break
    total = sum(window.retransmissions for window in windows)
    return ForeignJudgement(transfer, violation, checked, retransmissions, total, acknowledgments)
