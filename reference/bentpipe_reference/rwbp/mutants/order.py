"""Mutants of paths that do not keep the order (RWBP-FF, section 8.5)."""

from __future__ import annotations

from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.sender import RwbpSender


@mutant("rwbp-first-false-loss-counts", breaks="RWBP-FF-002")
class FirstFalseLossCounts(RwbpSender):
    """The first false loss raises the threshold."""

    def on_false_loss(self) -> None:
        """See :class:`RwbpSender`."""
        self.false_losses = 2
        super().on_false_loss()


@mutant("rwbp-second-false-loss-counts", breaks="RWBP-FF-002")
class SecondFalseLossCounts(RwbpSender):
    """The second false loss raises the threshold."""

    def on_false_loss(self) -> None:
        """See :class:`RwbpSender`."""
        self.false_losses = max(1, self.false_losses)
        super().on_false_loss()


@mutant("rwbp-false-losses-never-count", breaks="RWBP-FF-003")
class FalseLossesNeverCount(RwbpSender):
    """The threshold stays at one."""

    def on_false_loss(self) -> None:
        """See :class:`RwbpSender`."""


@mutant("rwbp-threshold-of-two", breaks="RWBP-FF-003")
class ThresholdOfTwo(RwbpSender):
    """After the third false loss two later segments suffice."""

    def loss_bound(self) -> int:
        """See :class:`RwbpSender`."""
        return self.highest_first[0 if self.threshold == 1 else 1]
