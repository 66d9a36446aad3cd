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
def from_anybody(packet: bytes, gateway: int, own: int) -> CreditFrame:
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


@mutant("rwbp-passes-before-the-first-frame", "may_pass", breaks="RWBP-LC-002")
def before_the_first(self: Credit, now: float) -> bool:
    """Packets pass as long as the gateway has said nothing."""
    return self.epoch is None or Credit.may_pass(self, now)


@mutant("rwbp-one-packet-beyond-the-limit", "may_pass", breaks="RWBP-LC-002")
def one_beyond(self: Credit, now: float) -> bool:
    """A packet passes when PASSED is LIMIT."""
    self.passed, passed = self.passed - 1 & COUNTS.mask, self.passed
    may = Credit.may_pass(self, now)
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


@mutant("rwbp-credit-does-not-wrap", "may_pass", breaks="RWBP-LC-008")
def no_wrap(self: Credit, now: float) -> bool:
    """The counts are compared as plain numbers."""
    return Credit.may_pass(self, now) and self.passed < self.limit


@mutant("rwbp-limit-follows-each-frame", "on_frame", breaks="RWBP-LC-003")
def follows_each_frame(self: Credit, frame: CreditFrame, now: float) -> None:
    """A frame that comes late takes credit back."""
    Credit.on_frame(self, frame, now)
    if frame.epoch == self.epoch:
        self.limit = frame.limit


@mutant("rwbp-limit-of-the-first-frame", "on_frame", breaks="RWBP-LC-003")
def first_limit(self: Credit, frame: CreditFrame, now: float) -> None:
    """LIMIT stays what it was when the epoch began."""
    limit, epoch = self.limit, self.epoch
    Credit.on_frame(self, frame, now)
    if epoch == self.epoch:
        self.limit = limit


@mutant("rwbp-every-epoch-is-newer", "on_frame", breaks="RWBP-LC-004")
def every_epoch(self: Credit, frame: CreditFrame, now: float) -> None:
    """A frame of an older epoch begins the counts anew."""
    if self.epoch != frame.epoch:
        self.epoch = None
    Credit.on_frame(self, frame, now)


@mutant("rwbp-one-epoch", "on_frame", breaks="RWBP-LC-004")
def one_epoch(self: Credit, frame: CreditFrame, now: float) -> None:
    """Frames of another epoch than the first one's are discarded."""
    if self.epoch in (None, frame.epoch):
        Credit.on_frame(self, frame, now)


@mutant("rwbp-epochs-are-plain-numbers", "on_frame", breaks="RWBP-LC-004")
def plain_epochs(self: Credit, frame: CreditFrame, now: float) -> None:
    """An epoch is newer only if its number is higher."""
    if self.epoch is None or frame.epoch >= self.epoch:
        if self.epoch is not None and not EPOCHS.before(self.epoch, frame.epoch):
            self.epoch = self.epoch if frame.epoch == self.epoch else None
        Credit.on_frame(self, frame, now)


@mutant("rwbp-epoch-keeps-the-limit", "on_frame", breaks="RWBP-LC-004")
def keeps_limit(self: Credit, frame: CreditFrame, now: float) -> None:
    """A newer epoch does not take back what an older one has granted."""
    left = COUNTS.distance(self.passed, self.limit)
    epoch = self.epoch
    Credit.on_frame(self, frame, now)
    if epoch not in (None, self.epoch) and left < COUNTS.half:
        self.limit = max(self.limit, self.passed + left & COUNTS.mask)


@mutant("rwbp-credit-never-stale", "may_pass", breaks="RWBP-LC-005")
def never_stale(self: Credit, now: float) -> bool:
    """A frame counts for ever."""
    if self.epoch is not None:
        self._heard = now
    return Credit.may_pass(self, now)


@mutant("rwbp-credit-stale-after-two-seconds", "may_pass", breaks="RWBP-LC-005")
def stale_late(self: Credit, now: float) -> bool:
    """A frame counts for two seconds."""
    return Credit.may_pass(self, now - LIFE)


@mutant("rwbp-credit-stale-after-half-a-second", "may_pass", breaks="RWBP-LC-008")
def stale_early(self: Credit, now: float) -> bool:
    """A frame counts for half a second only."""
    return Credit.may_pass(self, now + LIFE / 2)


@mutant("rwbp-lost-credit-is-lost", "on_pass", breaks="RWBP-LC-006")
def never_given_back(self: Credit, now: float) -> None:
    """What is lost before the gateway takes a place for ever."""
    Credit.on_pass(self, now)
    self._last_pass = math.inf


@mutant("rwbp-credit-given-back-at-once", "on_frame", breaks="RWBP-LC-006")
def given_back_at_once(self: Credit, frame: CreditFrame, now: float) -> None:
    """What has not arrived yet is taken for lost."""
    self._last_pass = -math.inf
    Credit.on_frame(self, frame, now)


@mutant("rwbp-acknowledgments-need-no-credit", "next_to_leave", breaks="RWBP-LC-007")
def free_acknowledgments(self: IpQueue, now: float) -> Segment | None:
    """A packet without data is not counted."""
    credit = self._credit or Credit()
    passed, last = credit.passed, credit._last_pass
    packet = IpQueue.next_to_leave(self, now)
    if packet is not None and not packet.sequence_length:
        credit.passed, credit._last_pass = passed, last
    return packet


@mutant("rwbp-last-packet-first", "next_to_leave", breaks="RWBP-LC-008")
def last_first(self: IpQueue, now: float) -> Segment | None:
    """The packet that entered the queue last leaves first."""
    self._packets.rotate(1)
    packet = IpQueue.next_to_leave(self, now)
    if packet is None:
        self._packets.rotate(-1)
    return packet


@mutant("rwbp-acknowledgments-overtake-data", "put", breaks="RWBP-LC-008")
def overtaking_acknowledgments(self: IpQueue, packet: Segment) -> None:
    """A packet without data is put before those with data."""
    IpQueue.put(self, packet)
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


@mutant("rwbp-acknowledgments-pile-up", "_supersede", breaks="RWBP-SC-005")
def piling_up(self: IpQueue, packet: Segment) -> None:
    """A full queue takes acknowledgments without end."""


@mutant("rwbp-no-frame-is-heard", "may_pass", breaks="RWBP-LC-008")
def deaf(self: Credit, now: float) -> bool:
    """Credit is counted, but is stale from the start."""
    return False
