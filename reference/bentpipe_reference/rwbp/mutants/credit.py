"""Mutants of the account with the gateway and of the queue before it (RWBP-LC; section 9.4)."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from bentpipe_reference.common.encapsulation import (
    Datagram,
    MalformedPacket,
    emit_datagram,
    parse_datagram,
)
from bentpipe_reference.rwbp.credit import (
    COUNTS,
    EPOCHS,
    LIFE,
    Credit,
    CreditFrame,
    MalformedFrame,
    parse_frame,
    read_packet,
)
from bentpipe_reference.rwbp.mutants import mutant
from bentpipe_reference.rwbp.uplink import IpQueue
from bentpipe_reference.tcp.wire.segment import Segment

_FRAME = struct.Struct("!BBHII")
_PAYLOAD_AT = 28


def _forged(packet: bytes, at: int, octets: bytes) -> bytes:
    """The packet with other octets in it, and the right checksum of UDP."""
    datagram = _datagram(packet)
    at -= _PAYLOAD_AT
    payload = datagram.payload[:at] + octets + datagram.payload[at + len(octets) :]
    return emit_datagram(replace(datagram, payload=payload))


def _datagram(packet: bytes) -> Datagram:
    """The datagram in a packet."""
    try:
        return parse_datagram(packet)
    except MalformedPacket as error:
        raise MalformedFrame(str(error)) from error


@mutant("rwbp-frames-from-anybody", breaks="RWBP-LC-001", part="read_credit")
def from_anybody(packet: bytes, gateway: int, own: int) -> CreditFrame:  # noqa: ARG001
    """A frame counts wherever it comes from."""
    return read_packet(packet, int.from_bytes(packet[12:16], "big"), own)


@mutant("rwbp-frames-without-checksum", breaks="RWBP-LC-001", part="read_credit")
def without_checksum(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """A frame counts that has no UDP checksum."""
    zero = packet[26:28] == b"\0\0"
    return read_packet(emit_datagram(_datagram(packet)) if zero else packet, gateway, own)


@mutant("rwbp-frames-of-any-length", breaks="RWBP-LC-001", part="read_credit")
def of_any_length(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """Octets behind a frame are ignored."""
    datagram = _datagram(packet)
    if len(datagram.payload) <= _FRAME.size:
        return read_packet(packet, gateway, own)
    return parse_frame(datagram.payload[: _FRAME.size])


@mutant("rwbp-frames-of-any-version", breaks="RWBP-LC-001", part="read_credit")
def of_any_version(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """Version and type of a frame do not matter."""
    return read_packet(_forged(packet, _PAYLOAD_AT, b"\x11"), gateway, own)


@mutant("rwbp-frames-of-any-class", breaks="RWBP-LC-001", part="read_credit")
def of_any_class(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """The credit of another queue counts, too."""
    return read_packet(_forged(packet, _PAYLOAD_AT + 1, b"\0"), gateway, own)


@mutant("rwbp-limit-below-arrived", breaks="RWBP-LC-001", part="read_credit")
def below_arrived(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """A frame counts whose limit is below what has arrived."""
    try:
        return read_packet(packet, gateway, own)
    except MalformedFrame:
        payload = _datagram(packet).payload
        if len(payload) != _FRAME.size or packet[12:16] != gateway.to_bytes(4, "big"):
            raise
        first, queue, epoch, arrived, limit = _FRAME.unpack(payload)
        if (first, queue) != (0x11, 0) or COUNTS.distance(arrived, limit) < COUNTS.half:
            raise
        return CreditFrame(epoch, arrived, limit)


@mutant("rwbp-frames-from-port-1021-only", breaks="RWBP-LC-001", part="read_credit")
def from_one_port(packet: bytes, gateway: int, own: int) -> CreditFrame:
    """A frame counts only if it comes from port 1021."""
    frame = read_packet(packet, gateway, own)
    if parse_datagram(packet).udp_sport != 1021:
        raise MalformedFrame("from another port")
    return frame


@mutant("rwbp-passes-before-the-first-frame", breaks="RWBP-LC-002")
class BeforeTheFirst(Credit):
    """Packets pass as long as the gateway has said nothing."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        return self.epoch is None or super().may_pass(now)


@mutant("rwbp-one-packet-beyond-the-limit", breaks="RWBP-LC-002")
class OneBeyond(Credit):
    """A packet passes when PASSED is LIMIT."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        self.passed, passed = self.passed - 1 & COUNTS.mask, self.passed
        may = super().may_pass(now)
        self.passed = passed
        return may


@mutant("rwbp-two-packets-for-one", breaks="RWBP-FC-006")
class TwoForOne(IpQueue):
    """Every second packet passes without credit."""

    _free = False

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        credit = self._credit
        if self._free:
            self._credit = None
        packet = super().next_to_leave(now)
        self._credit = credit
        if packet is not None:
            self._free = not self._free
        return packet


@mutant("rwbp-credit-does-not-wrap", breaks="RWBP-LC-008")
class NoWrap(Credit):
    """The counts are compared as plain numbers."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        return super().may_pass(now) and self.passed < self.limit


@mutant("rwbp-limit-follows-each-frame", breaks="RWBP-LC-003")
class FollowsEachFrame(Credit):
    """A frame that comes late takes credit back."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        super().on_frame(frame, now)
        if frame.epoch == self.epoch:
            self.limit = frame.limit


@mutant("rwbp-limit-of-the-first-frame", breaks="RWBP-LC-003")
class FirstLimit(Credit):
    """LIMIT stays what it was when the epoch began."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        limit, epoch = self.limit, self.epoch
        super().on_frame(frame, now)
        if epoch == self.epoch:
            self.limit = limit


@mutant("rwbp-every-epoch-is-newer", breaks="RWBP-LC-004")
class EveryEpoch(Credit):
    """A frame of an older epoch begins the counts anew."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        if self.epoch != frame.epoch:
            self.epoch = None
        super().on_frame(frame, now)


@mutant("rwbp-one-epoch", breaks="RWBP-LC-004")
class OneEpoch(Credit):
    """Frames of another epoch than the first one's are discarded."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        if self.epoch in (None, frame.epoch):
            super().on_frame(frame, now)


@mutant("rwbp-epochs-are-plain-numbers", breaks="RWBP-LC-004")
class PlainEpochs(Credit):
    """An epoch is newer only if its number is higher."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        if self.epoch is None or frame.epoch >= self.epoch:
            if self.epoch is not None and not EPOCHS.before(self.epoch, frame.epoch):
                self.epoch = self.epoch if frame.epoch == self.epoch else None
            super().on_frame(frame, now)


@mutant("rwbp-epoch-keeps-the-limit", breaks="RWBP-LC-004")
class KeepsLimit(Credit):
    """A newer epoch does not take back what an older one has granted."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        left = COUNTS.distance(self.passed, self.limit)
        epoch = self.epoch
        super().on_frame(frame, now)
        if epoch not in (None, self.epoch) and left < COUNTS.half:
            self.limit = max(self.limit, self.passed + left & COUNTS.mask)


@mutant("rwbp-credit-never-stale", breaks="RWBP-LC-005")
class NeverStale(Credit):
    """A frame counts for ever."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        if self.epoch is not None:
            self._heard = now
        return super().may_pass(now)


@mutant("rwbp-credit-stale-after-two-seconds", breaks="RWBP-LC-005")
class StaleLate(Credit):
    """A frame counts for two seconds."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        return super().may_pass(now - LIFE)


@mutant("rwbp-credit-stale-after-half-a-second", breaks="RWBP-LC-008")
class StaleEarly(Credit):
    """A frame counts for half a second only."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        return super().may_pass(now + LIFE / 2)


@mutant("rwbp-lost-credit-is-lost", breaks="RWBP-LC-006")
class NeverGivenBack(Credit):
    """What is lost before the gateway takes a place for ever."""

    def on_pass(self, now: float) -> None:
        """See :class:`Credit`."""
        super().on_pass(now)
        self._last_pass = math.inf


@mutant("rwbp-credit-given-back-at-once", breaks="RWBP-LC-006")
class GivenBackAtOnce(Credit):
    """What has not arrived yet is taken for lost."""

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        self._last_pass = -math.inf
        super().on_frame(frame, now)


class _Selecting(IpQueue):
    """An IP queue some of whose packets pass without being counted."""

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        credit = self._credit
        if credit is None:
            return super().next_to_leave(now)
        passed, last = credit.passed, credit._last_pass
        first = self._packets[0] if self._packets else None
        packet = super().next_to_leave(now)
        if packet is not None and first is not None and not self.counts(first):
            credit.passed, credit._last_pass = passed, last
        return packet

    def counts(self, packet: Segment) -> bool:
        """Whether a packet counts."""
        raise NotImplementedError


@mutant("rwbp-acknowledgments-need-no-credit", breaks="RWBP-LC-007")
class FreeAcknowledgments(_Selecting):
    """A packet without data is not counted."""

    def counts(self, packet: Segment) -> bool:
        """See :class:`_Selecting`."""
        return bool(packet.sequence_length)


@mutant("rwbp-last-packet-first", breaks="RWBP-LC-008")
class LastFirst(IpQueue):
    """The packet that entered the queue last leaves first."""

    def next_to_leave(self, now: float) -> Segment | None:
        """See :class:`IpQueue`."""
        self._packets.rotate(1)
        packet = super().next_to_leave(now)
        if packet is None:
            self._packets.rotate(-1)
        return packet


@mutant("rwbp-acknowledgments-overtake-data", breaks="RWBP-LC-008")
class OvertakingAcknowledgments(IpQueue):
    """A packet without data is put before those with data."""

    def put(self, packet: Segment) -> None:
        """See :class:`IpQueue`."""
        super().put(packet)
        if not packet.sequence_length:
            self._packets.rotate(1)


@mutant("rwbp-credit-used-a-frame-late", breaks="RWBP-LC-008")
class Sluggish(Credit):
    """New credit is used from the next frame on only."""

    _next: CreditFrame | None = None

    def on_frame(self, frame: CreditFrame, now: float) -> None:
        """See :class:`Credit`."""
        if self._next is not None:
            super().on_frame(self._next, now)
        self._next = frame


@mutant("rwbp-acknowledgments-pile-up", breaks="RWBP-SC-005")
class PilingUp(IpQueue):
    """A full queue takes acknowledgments without end."""

    def _supersede(self, packet: Segment) -> None:
        """See :class:`IpQueue`."""


@mutant("rwbp-no-frame-is-heard", breaks="RWBP-LC-008")
class Deaf(Credit):
    """Credit is counted, but is stale from the start."""

    def may_pass(self, now: float) -> bool:
        """See :class:`Credit`."""
        return False
