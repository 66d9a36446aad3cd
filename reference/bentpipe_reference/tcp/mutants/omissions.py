"""Mutants that omit one check of a segment, by field and by state, as the fault table has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.mutants import mutant
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, emit_packet, parse_packet
from bentpipe_reference.tcp.wire.sequence import MASK

_RESERVED = 0x0E


def _with_header(packet: bytes, change: Callable[[bytearray], object]) -> bytes:
    """A packet whose TCP segment, with its right checksum, was changed."""
    at = (packet[0] & 0xF) * 4
    body = bytearray(packet[at:])
    change(body)
    body[16:18] = bytes(2)
    pseudo = sum(int.from_bytes(packet[i : i + 2], "big") for i in range(12, 20, 2)) + 6 + len(body)
    body[16:18] = checksum_field(ones_complement_residue(bytes(body)) + pseudo).to_bytes(2, "big")
    return packet[:at] + bytes(body)


@mutant("snr-takes-low-data-offsets", breaks="SNR-SEG-001")
def take_low_offsets(packet: bytes) -> Segment:
    """A data offset below 5 counts as 5."""
    at = (packet[0] & 0xF) * 4 + 12
    if len(packet) > at and packet[at] >> 4 < 5:
        packet = _with_header(packet, lambda body: body.__setitem__(12, 0x50 | body[12] & 0xF))
    return parse_packet(packet)


@mutant("snr-takes-high-data-offsets", breaks="SNR-SEG-001")
def take_high_offsets(packet: bytes) -> Segment:
    """A data offset behind the end of the segment counts as 5."""
    try:
        return parse_packet(packet)
    except WireError as error:
        if "data offset" not in str(error):
            raise
    at = (packet[0] & 0xF) * 4 + 12
    if packet[at] >> 4 < 5:
        raise WireError("data offset")
    return parse_packet(_with_header(packet, lambda body: body.__setitem__(12, 0x50)))


@mutant("snr-sends-reserved-bits", breaks="SNR-SEG-002", part="emit")
def set_reserved_bits(segment: Segment) -> bytes:
    """A reserved bit is set in every segment with data."""
    packet = emit_packet(segment)
    if not segment.payload:
        return packet
    return _with_header(packet, lambda body: body.__setitem__(12, body[12] | 8))


@mutant("snr-answers-with-bits-of-ecn", breaks="SNR-SEG-008", part="emit")
def set_ecn_bits(segment: Segment) -> bytes:
    """A SYN-ACK has the bits that ask for ECN, and not those that answer."""
    if segment.flags & Flags.SYN and segment.flags & Flags.ACK:
        segment = replace(segment, flags=segment.flags | Flags.ECE | Flags.CWR)
    return emit_packet(segment)


def _minding(kind: Callable[[int], bool]) -> Callable[[bytes], Segment]:
    def parse(packet: bytes) -> Segment:
        segment = parse_packet(packet)
        at = (packet[0] & 0xF) * 4 + 12
        if packet[at] & _RESERVED and kind(segment.flags):
            raise WireError("reserved bits")
        return segment

    return parse


for _name, _kind in {"syns": True, "data": False}.items():
    _parse = _minding(lambda flags, syn=_kind: bool(flags & Flags.SYN) is syn)  # type: ignore[misc]
    _parse.__doc__ = f"Reserved bits in {_name} are minded."
    mutant(f"snr-minds-reserved-bits-of-{_name}", breaks="SNR-SEG-003")(_parse)


@mutant("snr-takes-text-beyond-an-acknowledgment", breaks="SNR-SEG-004")
class TakesTextOfTheFuture(Connection):
    """The data of a segment that acknowledges what was never sent is taken."""

    def _take_ack(self, segment: Segment, seq: int, now: float) -> bool:
        taken = super()._take_ack(segment, seq, now)
        return taken or self.state is State.ESTABLISHED


_Fault = Callable[[Connection, Segment, int, int], Segment | None]
"""What becomes of a segment: its offset above RCV.NXT and the window are given."""


def _reset_outside(_: Connection, segment: Segment, offset: int, window: int) -> Segment | None:
    outside = not 0 <= offset < max(window, 1)
    return _exact(segment, offset) if segment.flags & Flags.RST and outside else segment


def _reset_inside(_: Connection, segment: Segment, offset: int, window: int) -> Segment | None:
    inside = 0 < offset < window
    return _exact(segment, offset) if segment.flags & Flags.RST and inside else segment


def _reset_ignored(_: Connection, segment: Segment, offset: int, __: int) -> Segment | None:
    return None if segment.flags & Flags.RST and offset == 0 else segment


def _syn_resets(_: Connection, segment: Segment, offset: int, __: int) -> Segment | None:
    if not segment.flags & Flags.SYN:
        return segment
    return replace(_exact(segment, offset), flags=int(Flags.RST), payload=b"")


def _syn_ignored(_: Connection, segment: Segment, __: int, ___: int) -> Segment | None:
    return None if segment.flags & Flags.SYN else segment


def _bare(connection: Connection, segment: Segment, _: int, __: int) -> Segment | None:
    if segment.flags & (Flags.ACK | Flags.RST | Flags.SYN):
        return segment
    known = connection.sender.snd_una & MASK
    return replace(segment, flags=segment.flags | Flags.ACK, ack=known)


def _exact(segment: Segment, offset: int) -> Segment:
    return replace(segment, seq=segment.seq - offset & MASK)


FAULTS: Mapping[str, tuple[str, str, _Fault]] = {
    "reset-outside": ("SNR-CON-011", "A RST outside the window is heeded", _reset_outside),
    "reset-inside": ("SNR-CON-012", "A RST anywhere in the window is heeded", _reset_inside),
    "reset-ignored": ("SNR-CON-010", "A RST at the next expected octet is ignored", _reset_ignored),
    "syn-resets": ("SNR-CON-013", "A SYN resets the connection", _syn_resets),
    "syn-ignored": ("SNR-CON-013", "A SYN is ignored", _syn_ignored),
    "without-ack": ("SNR-CON-014", "A segment without ACK is taken", _bare),
}
"""By fault, what it breaks, its title, and what it does to a segment."""

STATES: Mapping[str, tuple[State, ...]] = {
    "established": (State.ESTABLISHED,),
    # When a close-wait ends is not to be seen: a FIN may wait for the window in either state.
    "closing": (State.CLOSE_WAIT, State.LAST_ACK),
    "fin-wait-1": (State.FIN_WAIT_1,),
}


def _omission(states: tuple[State, ...], fault: _Fault) -> type[Connection]:
    class Omission(Connection):
        def receive(self, segment: Segment, now: float) -> None:
            receiver = self.receiver
            if self.state in states and receiver is not None:
                offset = (segment.seq - receiver.rcv_nxt + (1 << 31) & MASK) - (1 << 31)
                found = fault(self, segment, offset, receiver.edge - receiver.rcv_nxt)
                if found is None:
                    return
                segment = found
            super().receive(segment, now)

    return Omission


for _name, (_breaks, _title, _fault) in FAULTS.items():
    for _where, _states in STATES.items():
        if _name == "without-ack" and _where == "closing":
            continue  # data does not count there any more
        _class = _omission(_states, _fault)
        _class.__doc__ = f"{_title} in {' or '.join(state.value for state in _states)}."
        mutant(f"snr-omits-{_name}-{_where}", breaks=_breaks)(_class)
