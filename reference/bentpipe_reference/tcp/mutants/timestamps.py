"""Mutants of the Timestamps option and PAWS (SNR-TS)."""

from __future__ import annotations

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.mutants import Altering, mutant
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.segment import Flags, Segment
from bentpipe_reference.tcp.wire.sequence import MASK, before, unwrap


@mutant("snr-echo-of-the-latest", breaks="SNR-TS-001")
class EchoesTheLatest(Receiver):
    """The latest timestamp is echoed even from out-of-order data."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        super().note_timestamp(tsval, self.irs, now)


@mutant("snr-echo-ignores-delay", breaks="SNR-TS-001", profile="hk99")
class EchoesTheLatestInOrder(Receiver):
    """A delayed acknowledgment echoes its last segment, not its first."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        super().note_timestamp(tsval, self.irs if seq <= self.rcv_nxt else seq, now)


@mutant("snr-retransmission-keeps-tsval", breaks="SNR-TS-002")
class RepeatsTimestamps(Altering):
    """A retransmission carries the timestamp of the first transmission."""

    def alter(self, segment: Segment, now: float) -> None:
        known = self.__dict__.setdefault("_stamps", {})
        if segment.payload:
            segment.timestamps = known.setdefault(segment.seq, segment.timestamps)


@mutant("snr-timestamp-clock-of-100-khz", breaks="SNR-TS-003")
class TicksTooFast(Altering):
    """The timestamp clock runs a hundred times too fast."""

    def alter(self, segment: Segment, now: float) -> None:
        if segment.timestamps is not None:
            segment.timestamps = int(now * 100_000) & MASK, segment.timestamps[1]


@mutant("snr-no-paws", breaks="SNR-TS-004")
class TakesOldSegments(Receiver):
    """Data with an old timestamp is accepted."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        return False


@mutant("snr-paws-for-minutes", breaks="SNR-TS-004")
class ForgetsItsTimestampSoon(Receiver):
    """TS.Recent is trusted for 24 minutes, and not for as many days."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        return super().is_stale_timestamp(tsval, now) and now - self._ts_recent_time < 1440.0


@mutant("snr-paws-silent", breaks="SNR-TS-005")
class DropsOldSegmentsSilently(Connection):
    """Data with an old timestamp is dropped without an answer."""

    def receive(self, segment: Segment, now: float) -> None:
        if not _stale(self, segment):
            super().receive(segment, now)


@mutant("snr-paws-drops-resets", breaks="SNR-TS-006")
class DropsOldResets(Connection):
    """A RST with an old timestamp, or without one, is ignored."""

    def receive(self, segment: Segment, now: float) -> None:
        bare = self.handshake.timestamps_ok and segment.timestamps is None
        if not (segment.flags & Flags.RST and (bare or _stale(self, segment))):
            super().receive(segment, now)


def _stale(connection: Connection, segment: Segment) -> bool:
    receiver = connection.receiver
    if receiver is None or receiver.ts_recent is None or segment.timestamps is None:
        return False
    return before(segment.timestamps[0], receiver.ts_recent)


@mutant("snr-timestamps-as-numbers", breaks="SNR-TS-007")
class ComparesAsNumbers(Receiver):
    """Timestamps that wrapped are taken for old ones."""

    def is_stale_timestamp(self, tsval: int, now: float) -> bool:
        return self.ts_recent is not None and tsval < self.ts_recent


@mutant("snr-missing-timestamp-aborts", breaks="SNR-TS-008")
class AbortsWithoutTimestamps(Connection):
    """A segment without its timestamp resets the connection."""

    def receive(self, segment: Segment, now: float) -> None:
        bare = self.handshake.timestamps_ok and segment.timestamps is None
        if bare and not segment.flags & Flags.RST:
            self.abort("a segment without timestamp arrived", now)
        else:
            super().receive(segment, now)


@mutant("snr-missing-timestamp-accepted", breaks="SNR-TS-009")
class TakesSegmentsWithoutTimestamps(Connection):
    """Data without its timestamp is accepted."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if receiver is not None and receiver.ts_recent is not None and not segment.timestamps:
            segment.timestamps = receiver.ts_recent, self._timestamp(now)
        super().receive(segment, now)


@mutant("snr-syn-ack-echoes-nothing", breaks="SNR-TS-001")
class EchoesNothingInTheSynAck(Altering):
    """The SYN-ACK's TSecr is zero."""

    def alter(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.SYN and segment.timestamps is not None:
            segment.timestamps = segment.timestamps[0], 0


@mutant("snr-timestamps-heeded-unasked", breaks="SNR-TS-010")
class HeedsUnnegotiatedTimestamps(Connection):
    """PAWS applies to connections without timestamps as soon as a segment carries one."""

    def receive(self, segment: Segment, now: float) -> None:
        receiver = self.receiver
        if receiver is not None and segment.timestamps and receiver.ts_recent is None:
            receiver.echo_timestamp(segment.timestamps[0], now)
        super().receive(segment, now)


@mutant("snr-syn-echoes-something", breaks="SNR-TS-011")
class EchoesInTheSyn(Altering):
    """The TSecr of a SYN without ACK is its TSval."""

    def alter(self, segment: Segment, now: float) -> None:
        if not segment.flags & Flags.ACK and segment.timestamps is not None:
            segment.timestamps = segment.timestamps[0], segment.timestamps[0]


@mutant("snr-old-timestamps-of-pure-acks", breaks="SNR-TS-012")
class HeedsOldAcknowledgments(Connection):
    """A segment without data is exempt from the test of timestamps."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        if segment.timestamps is not None and not segment.sequence_length:
            tsval, tsecr = segment.timestamps
            if receiver.is_stale_timestamp(tsval, now):
                segment.timestamps = (receiver.ts_recent or 0, tsecr)
        super()._receive_synchronized(segment, receiver, now)


@mutant("snr-overtaken-is-old", breaks="SNR-TS-013", hk99=True)
class ComparesWithTheLatest(Connection):
    """PAWS compares with the latest timestamp in the window, out of order or not."""

    _latest: int | None = None

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        stamped = segment.timestamps is not None and not segment.flags & Flags.RST
        if stamped and segment.timestamps is not None and receiver.ts_recent is not None:
            tsval = segment.timestamps[0]
            if self._latest is not None and before(tsval, self._latest):
                receiver.ack_now = True
                return
            seq = unwrap(segment.seq, receiver.rcv_nxt)
            if receiver.is_acceptable(seq, segment.sequence_length):
                self._latest = tsval
        super()._receive_synchronized(segment, receiver, now)


@mutant("snr-equal-is-old", breaks="SNR-TS-013")
class RefusesEqualTimestamps(Connection):
    """Data whose timestamp is TS.Recent is dropped."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        recent = receiver.ts_recent
        if segment.payload and segment.timestamps and segment.timestamps[0] == recent:
            receiver.ack_now = True
            return
        super()._receive_synchronized(segment, receiver, now)
