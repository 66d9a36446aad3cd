"""Mutants of the Timestamps option and PAWS (SNR-TS)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, before

_RST = int(Flags.RST)

Configure = Callable[[EndpointConfig], EndpointConfig]


def _receiving(receiver: type[Receiver]) -> Configure:
    """The ``configure`` of a mutant whose receiver is ``receiver``."""
    return lambda config: replace(config, receiver_class=receiver)


def _connecting(endpoint: type[Endpoint]) -> Configure:
    return lambda config: replace(config, endpoint_class=endpoint)


class EchoesTheLatest(Receiver):
    """Echoes the latest timestamp, whatever segment it came in."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        super().note_timestamp(tsval, self.irs, now)


class EchoesTheLatestInOrder(Receiver):
    """Echoes the latest segment in sequence, as if acknowledgments were never delayed."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        super().note_timestamp(tsval, self.irs if seq <= self.rcv_nxt else seq, now)


class RepeatsTimestamps(Endpoint):
    """Retransmits segments with the timestamps they first had."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        known = self.__dict__.setdefault("_stamps", {})
        for segment in segments:
            if segment.payload:
                segment.timestamps = known.setdefault(segment.seq, segment.timestamps)
        return segments


class TicksTooFast(Endpoint):
    """Runs its timestamp clock at 100 kHz."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        for segment in segments:
            if segment.timestamps is not None:
                segment.timestamps = int(now * 100_000) & MASK, segment.timestamps[1]
        return segments


class TakesOldSegments(Receiver):
    """Has no PAWS."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        return False


class DropsOldSegmentsSilently(Endpoint):
    """Does not answer what PAWS drops."""

    def receive(self, segment: Segment, now: float) -> None:
        if not _stale(self, segment):
            super().receive(segment, now)


class DropsOldResets(Endpoint):
    """Lets PAWS drop a RST, or one without timestamp."""

    def receive(self, segment: Segment, now: float) -> None:
        bare = self.handshake.timestamps_ok and segment.timestamps is None
        if not (segment.flags & _RST and (bare or _stale(self, segment))):
            super().receive(segment, now)


def _stale(endpoint: Endpoint, segment: Segment) -> bool:
    receiver = endpoint.receiver
    if receiver is None or receiver.ts_recent is None or segment.timestamps is None:
        return False
    return before(segment.timestamps[0], receiver.ts_recent)


class ComparesAsNumbers(Receiver):
    """Takes a timestamp that wrapped for an old one."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        return self.ts_recent is not None and tsval < self.ts_recent


class AbortsWithoutTimestamps(Endpoint):
    """Resets the connection when a segment lacks its timestamp."""

    def receive(self, segment: Segment, now: float) -> None:
        bare = self.handshake.timestamps_ok and segment.timestamps is None
        if bare and not segment.flags & _RST:
            self.abort("a segment without timestamp arrived", now)
        else:
            super().receive(segment, now)


class TakesSegmentsWithoutTimestamps(Endpoint):
    """Takes a segment without timestamp as if it had the latest one."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if receiver is not None and receiver.ts_recent is not None and not segment.timestamps:
            segment.timestamps = receiver.ts_recent, self._timestamp(now)
        super().receive(segment, now)


MUTANTS = (
    Mutant(
        "snr-echo-of-the-latest", "SNR-TS-001",
        "The latest timestamp is echoed even from out-of-order data.",
        _receiving(EchoesTheLatest),
    ),
    Mutant(
        "snr-echo-ignores-delay", "SNR-TS-001",
        "A delayed acknowledgment echoes its last segment, not its first.",
        _receiving(EchoesTheLatestInOrder), "hk99",
    ),
    Mutant(
        "snr-retransmission-keeps-tsval", "SNR-TS-002",
        "A retransmission carries the timestamp of the first transmission.",
        _connecting(RepeatsTimestamps),
    ),
    Mutant(
        "snr-timestamp-clock-of-100-khz", "SNR-TS-003",
        "The timestamp clock runs a hundred times too fast.",
        _connecting(TicksTooFast),
    ),
    Mutant(
        "snr-no-paws", "SNR-TS-004",
        "Data with an old timestamp is accepted.",
        _receiving(TakesOldSegments),
    ),
    Mutant(
        "snr-paws-silent", "SNR-TS-005",
        "Data with an old timestamp is dropped without an answer.",
        _connecting(DropsOldSegmentsSilently),
    ),
    Mutant(
        "snr-paws-drops-resets", "SNR-TS-006",
        "A RST with an old timestamp, or without one, is ignored.",
        _connecting(DropsOldResets),
    ),
    Mutant(
        "snr-timestamps-as-numbers", "SNR-TS-007",
        "Timestamps that wrapped are taken for old ones.",
        _receiving(ComparesAsNumbers),
    ),
    Mutant(
        "snr-missing-timestamp-aborts", "SNR-TS-008",
        "A segment without its timestamp resets the connection.",
        _connecting(AbortsWithoutTimestamps),
    ),
    Mutant(
        "snr-missing-timestamp-accepted", "SNR-TS-009",
        "Data without its timestamp is accepted.",
        _connecting(TakesSegmentsWithoutTimestamps),
    ),
)  # fmt: skip
