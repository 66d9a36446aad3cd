"""Mutants of the box as an end of TCP (PEP-LR, section 8), most of them those of TCP itself."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.common.rtt import RttEstimator
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver
from bentpipe_reference.pep.mutants import mutant, mutant_setting
from bentpipe_reference.tcp import mutants as of_tcp
from bentpipe_reference.tcp.mutants import (
    acknowledgment,
    fast_retransmit,
    newreno,
    sack,
    slow_start,
    timeout,
    window,
)
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_MODULES = (acknowledgment, fast_retransmit, newreno, sack, slow_start, timeout, window)
"""Imported for what they declare."""

_IN_A_BOX = {
    "snr-held-data-repeated": "PEP-LR-001",
    "snr-no-timer-in-recovery": "PEP-LR-001",
    "snr-acknowledged-data-goes-again": "PEP-LR-001",
    "snr-initial-window-of-twenty": "PEP-LR-003",
    "snr-slow-start-grows-twice": "PEP-LR-003",
    "snr-two-duplicates-suffice": "PEP-LR-003",
    "snr-keeps-the-window": "PEP-LR-003",
    "snr-four-segments-at-timeout": "PEP-LR-003",
    "snr-timeout-within-a-round-trip": "PEP-LR-004",
    "snr-no-back-off": "PEP-LR-004",
    "snr-syn-ack-without-back-off": "PEP-LR-004",
}
"""What breaks a rule of TCP breaks one of the box."""

for _each in [it for it in of_tcp.MUTANTS if it.id in _IN_A_BOX]:
    mutant_setting(
        _each.id.replace("snr-", "pep-end-"), _each.title, _each.configure,
        breaks=_IN_A_BOX[_each.id],
    )  # fmt: skip


class _KeepsTheWindow(SackNewRenoRfcSender):
    """A timeout leaves the congestion window as it is."""

    def cwnd_after_timeout(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return self.cwnd


mutant("pep-timeout-keeps-window", breaks="PEP-LR-003")(_KeepsTheWindow)


@mutant("pep-window-comes-back", breaks="PEP-LR-003")
class _ComesBack(SackNewRenoRfcSender):
    """The first acknowledgment after a timeout brings the window of before back."""

    before = 0

    def on_timeout(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        self.before = max(self.before, self.cwnd)
        super().on_timeout(now)

    def on_new_ack(self, ack: Any, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().on_new_ack(ack, now)
        self.cwnd, self.before = max(self.cwnd, self.before), 0


@mutant("pep-window-restored-behind-one-loss", breaks="PEP-LR-003")
class _OneLossIsNone(SackNewRenoRfcSender):
    """The repair of a single segment restores the window of before."""

    before = 0
    losses = 0

    def enter_recovery(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        missing = self.scoreboard.gaps(self.snd_una, self.scoreboard.highest)
        self.losses = len(missing)
        self.before = self.cwnd
        super().enter_recovery(now)

    def leave_recovery(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().leave_recovery(now)
        if self.losses <= 1:
            self.cwnd = self.before


@mutant("pep-back-off-outlives-measurements", breaks="PEP-LR-004")
class _BackOffStays(RttEstimator):
    """A timeout that was backed off never becomes shorter."""

    def sample(self, rtt: float) -> None:
        """See :class:`RttEstimator`."""
        before = self.rto if self.srtt is not None else 0.0
        super().sample(rtt)
        self.rto = max(self.rto, before)


@mutant("pep-half-a-timeout", breaks="PEP-LR-004")
class _HalfATimeout(RttEstimator):
    """The timeout is half of what the round trips give."""

    def bounded(self, rto: float) -> float:
        """See :class:`RttEstimator`."""
        return super().bounded(rto) if self.srtt is None else super().bounded(rto) / 2


@mutant("pep-ignores-keep-alives", "_receive_unacceptable", breaks="PEP-LR-008")
def ignores_keep_alives(
    self: Endpoint, segment: Segment, seq: int, receiver: RelayReceiver, now: float
) -> None:
    """What has the number before the next one is not answered."""
    due = receiver.ack_now
    Endpoint._receive_unacceptable(self, segment, seq, receiver, now)
    if seq == receiver.rcv_nxt - 1 and not segment.flags & (Flags.SYN | Flags.RST | Flags.FIN):
        receiver.ack_now = due


@mutant("pep-late-about-disorder", "on_text", breaks="PEP-LR-008")
def late_about_disorder(
    self: RelayReceiver, seq: int, payload: bytes, fin: bool, now: float
) -> None:
    """What lies behind a gap is held, and nothing is said of it."""
    ahead, due = seq > self.rcv_nxt, self.ack_now
    RelayReceiver.on_text(self, seq, payload, fin, now)
    if ahead:
        self.ack_now = due
