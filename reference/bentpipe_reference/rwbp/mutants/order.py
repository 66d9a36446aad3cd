"""Mutants of paths that do not keep the order (RWBP-FF, section 8.5)."""

from __future__ import annotations

from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.sender import RwbpSender


@mutant("rwbp-first-false-loss-counts", "on_false_loss", breaks="RWBP-FF-002")
def first_false_loss_counts(self: RwbpSender) -> None:
    """The first false loss raises the threshold."""
    self.false_losses = 2
    RwbpSender.on_false_loss(self)


@mutant("rwbp-second-false-loss-counts", "on_false_loss", breaks="RWBP-FF-002")
def second_false_loss_counts(self: RwbpSender) -> None:
    """The second false loss raises the threshold."""
    self.false_losses = max(1, self.false_losses)
    RwbpSender.on_false_loss(self)


@mutant("rwbp-false-losses-never-count", "on_false_loss", breaks="RWBP-FF-003")
def false_losses_never_count(self: RwbpSender) -> None:
    """The threshold stays at one."""


@mutant("rwbp-threshold-of-two", "loss_bound", breaks="RWBP-FF-003")
def threshold_of_two(self: RwbpSender) -> int:
    """After the third false loss two later segments suffice."""
    return self.highest_first[0 if self.threshold == 1 else 1]


@mutant("rwbp-threshold-of-four", "loss_bound", breaks="RWBP-FF-003")
def threshold_of_four(self: RwbpSender) -> int:
    """After the third false loss three later segments do not suffice."""
    return RwbpSender.loss_bound(self) - (self.threshold > 1)
