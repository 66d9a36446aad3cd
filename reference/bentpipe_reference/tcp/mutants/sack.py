"""Mutants of the sender's use of selective acknowledgments (SNR-SAK)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.recovery.sack_newreno_hk99 import SackNewRenoHk99Sender
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.scoreboard import Scoreboard
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack, Outlet
from bentpipe_reference.tcp.wire.options import SACK
from bentpipe_reference.tcp.wire.segment import Segment


class RepeatsHeldDataRfc(SackNewRenoRfcSender):
    """Repeats everything below the loss edge, held or not."""

    def lost_segment(self) -> tuple[int, int] | None:
        seq = max(self.high_rxt, self.snd_una)
        edge = self.loss_edge()
        return (seq, min(edge, seq + self.segment_limit(seq))) if seq < edge else None


class RepeatsHeldDataHk99(SackNewRenoHk99Sender):
    """Goes on from the last retransmission, held or not."""

    def next_missing(self) -> int | None:
        return max(self.high_rxt, self.snd_una)

    def repeat_end(self, seq: int) -> int | None:
        return None


class ForgetsReportsAfterTimeoutRfc(SackNewRenoRfcSender):
    """Goes back after a timeout as if nothing had been reported since."""

    def skip_held(self) -> None:
        return

    def repeat_end(self, seq: int) -> int | None:
        return None


class ForgetsReportsAfterTimeoutHk99(SackNewRenoHk99Sender):
    """Goes back after a timeout as if nothing had been reported since."""

    def skip_held(self) -> None:
        return

    def repeat_end(self, seq: int) -> int | None:
        return None


class SkipsTheLowestHole(SackNewRenoRfcSender):
    """Repairs the highest lost hole first."""

    def lost_segment(self) -> tuple[int, int] | None:
        edge, found = self.loss_edge(), None
        seq = max(self.high_rxt, self.snd_una)
        while (hole := self.scoreboard.next_hole(seq, edge)) is not None:
            found, seq = hole, hole[1]
        return None if found is None else (found[0], min(found[1], found[0] + self.smss))


class RepeatsWhatMayBeUnderWay(SackNewRenoRfcSender):
    """Once in recovery, repeats all that is outstanding and not held."""

    def lost_segment(self) -> tuple[int, int] | None:
        return self._missing_below(self.snd_max)


class OneSegmentBeyondSuffices(SackNewRenoHk99Sender):
    """Takes a segment for eligible when the next but one is held."""

    def eligibility_distance(self) -> int:
        return self.smss


class FirstReportSuffices(SackNewRenoRfcSender):
    """Begins recovery at the first report."""

    def duplicate_threshold(self) -> int:
        return 1


class OneHolePerRoundTripRfc(SackNewRenoRfcSender):
    """Waits for the acknowledgment of each retransmission."""

    def lost_segment(self) -> tuple[int, int] | None:
        return None if self.high_rxt > self.snd_una else super().lost_segment()

    def speculative_segment(self) -> tuple[int, int] | None:
        return None


class OneHolePerRoundTripHk99(SackNewRenoHk99Sender):
    """Waits for the acknowledgment of each retransmission."""

    def next_retransmission(self) -> int | None:
        return None if self.high_rxt > self.snd_una else super().next_retransmission()


class SendsNewDataBesides(SackNewRenoHk99Sender):
    """Inflates and sends new data also on an acknowledgment that repeated a segment."""

    def use_ack(self, now: float) -> bool:
        super().use_ack(now)
        return False


class RepeatsTwoPerAcknowledgment(SackNewRenoHk99Sender):
    """Sends two eligible segments per acknowledgment."""

    def use_ack(self, now: float) -> bool:
        used = super().use_ack(now)
        return super().use_ack(now) or used


class RepeatsAgainAtOnceRfc(SackNewRenoRfcSender):
    """Repeats the lowest hole over and over while the pipe allows."""

    def lost_segment(self) -> tuple[int, int] | None:
        again = (self.snd_una, min(self.snd_una + self.smss, self.snd_max))
        return super().lost_segment() or (again if self.in_recovery else None)


class RepeatsAgainAtOnceHk99(SackNewRenoHk99Sender):
    """Repeats the lowest hole on every acknowledgment that has nothing else to repeat."""

    def next_retransmission(self) -> int | None:
        seq = super().next_retransmission()
        return self.snd_una if seq is None else seq


class NoNewDataInRecoveryRfc(SackNewRenoRfcSender):
    """Sends only retransmissions during recovery."""

    def new_segment(self) -> tuple[int, int] | None:
        return None if self.in_recovery else super().new_segment()


class NoNewDataInRecoveryHk99(SackNewRenoHk99Sender):
    """Sends only retransmissions during recovery."""

    def on_duplicate_in_recovery(self, now: float) -> None:
        if not self.use_ack(now):
            self.inflate()


class FreesHeldData(SackNewRenoRfcSender):
    """Frees what is reported held, so that it has nothing to repeat when the receiver reneges."""

    def __init__(self, config: EndpointConfig, outlet: Outlet, iss: int) -> None:
        super().__init__(config, outlet, iss)
        self._freed = Scoreboard()

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        accepted = super().accept_sack_block(left, right, ack)
        if accepted:
            self._freed.add(left, right)
        return accepted

    def transmit(self, seq: int, end: int, now: float) -> None:
        hole = self._freed.next_hole(seq, end) if seq < self.snd_max else (seq, end)
        if hole is not None:
            super().transmit(seq, end, now)
        else:
            self.snd_nxt = max(self.snd_nxt, end)
            self.start_rto(now)


class BelievesEveryBlock(SackNewRenoRfcSender):
    """Takes blocks above what was sent for reports."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        return ack.number < left < right


class TakesOddOptionForLoss(Endpoint):
    """Repeats a segment when a SACK option has an odd length."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        if any(kind == SACK for kind, _ in segment.unknown):
            self.sender.retransmit(self.sender.snd_una, now)
        return super()._take_ack(segment, seq, now)


class DiesOfOddOption(Endpoint):
    """Reads the blocks of a SACK option without looking at its length."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        for kind, data in segment.unknown:
            if kind == SACK and len(data) % 8:
                raise IndexError("read beyond the end of the SACK option")
        return super()._take_ack(segment, seq, now)


class TakesDuplicateReportForLoss(SackNewRenoRfcSender):
    """Repeats a segment on a D-SACK block."""

    def take_sack(self, ack: Ack) -> int:
        newly = super().take_sack(ack)
        if self.sack_ok and ack.blocks and self.is_duplicate_report(ack) and self.flight_size:
            self.retransmit(self.snd_una, self.last_send or 0.0)
        return newly


class CountsAcknowledgmentsOnly(SackNewRenoRfcSender):
    """Begins recovery only at the third duplicate, whatever one of them reports."""

    def loss_detected(self) -> bool:
        return self.dupacks >= self.duplicate_threshold()


class UsesSackUnasked(SackNewRenoRfcSender):
    """Uses SACK blocks on every connection."""

    def establish(self, smss: int, window: int, seq: int, *, sack_ok: bool) -> None:
        super().establish(smss, window, seq, sack_ok=True)


def _sending(sender: type[Sender]) -> Callable[[EndpointConfig], EndpointConfig]:
    return lambda config: replace(config, sender_class=sender)


def _ending(endpoint: type[Endpoint]) -> Callable[[EndpointConfig], EndpointConfig]:
    return lambda config: replace(config, endpoint_class=endpoint)


def _mutant(name: str, breaks: int, sender: type[Sender]) -> Mutant:
    profile = "hk99" if issubclass(sender, SackNewRenoHk99Sender) else "rfc"
    title = (sender.__doc__ or "").splitlines()[0]
    return Mutant(f"snr-{name}", f"SNR-SAK-{breaks:03}", title, _sending(sender), profile)


MUTANTS = (
    _mutant("held-data-repeated", 1, RepeatsHeldDataRfc),
    _mutant("held-data-repeated-hk99", 1, RepeatsHeldDataHk99),
    _mutant("reports-after-timeout-forgotten", 2, ForgetsReportsAfterTimeoutRfc),
    _mutant("reports-after-timeout-forgotten-hk99", 2, ForgetsReportsAfterTimeoutHk99),
    _mutant("highest-hole-first", 3, SkipsTheLowestHole),
    _mutant("data-under-way-repeated", 4, RepeatsWhatMayBeUnderWay),
    _mutant("eligible-one-beyond", 5, OneSegmentBeyondSuffices),
    _mutant("first-report-suffices", 6, FirstReportSuffices),
    _mutant("one-hole-per-round-trip", 7, OneHolePerRoundTripRfc),
    _mutant("one-hole-per-round-trip-hk99", 7, OneHolePerRoundTripHk99),
    _mutant("new-data-besides-retransmission", 8, SendsNewDataBesides),
    _mutant("two-retransmissions-per-acknowledgment", 8, RepeatsTwoPerAcknowledgment),
    _mutant("hole-repeated-at-once", 9, RepeatsAgainAtOnceRfc),
    _mutant("hole-repeated-at-once-hk99", 9, RepeatsAgainAtOnceHk99),
    _mutant("no-new-data-in-recovery", 10, NoNewDataInRecoveryRfc),
    _mutant("no-new-data-in-recovery-hk99", 10, NoNewDataInRecoveryHk99),
    _mutant("held-data-freed", 11, FreesHeldData),
    _mutant("every-block-believed", 12, BelievesEveryBlock),
    Mutant(
        "snr-odd-option-taken-for-loss",
        "SNR-SAK-013",
        "Repeats a segment when a SACK option has an odd length.",
        _ending(TakesOddOptionForLoss),
    ),
    Mutant(
        "snr-odd-option-is-fatal",
        "SNR-SAK-013",
        "Reads the blocks of a SACK option without looking at its length.",
        _ending(DiesOfOddOption),
    ),
    _mutant("duplicate-report-taken-for-loss", 14, TakesDuplicateReportForLoss),
    _mutant("acknowledgments-counted-only", 15, CountsAcknowledgmentsOnly),
    _mutant("sack-used-unasked", 16, UsesSackUnasked),
)
