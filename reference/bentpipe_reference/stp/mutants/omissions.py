"""Mutants that omit one check for one type of packet in one state: types x checks x states.

Each spoils nothing but the check: a packet that it should have discarded is made right and taken,
or one that it should have taken is discarded. A pair of state and type is no row where section 9
does nothing with a right packet, for nobody could see the omission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bentpipe_reference.stp.mutants import mutant
from bentpipe_reference.stp.mutants.hosts import MeddlingHost, rechecked, type_of
from bentpipe_reference.stp.packets import Type
from bentpipe_reference.stp.states import State

_HEADER = 12
_LEAST = {
    Type.BEGIN: 20, Type.BGAK: 28, Type.END: 24, Type.ENDAK: 16, Type.BGREJ: 20,
    Type.SD: 12, Type.SDP: 24, Type.POLL: 24, Type.STAT: 24, Type.USTAT: 24,
}  # fmt: skip
"""The least octets of each type (section 3.1)."""

_EXACT = (Type.END, Type.ENDAK, Type.POLL, Type.USTAT)
_OPEN_ENDED = (Type.BEGIN, Type.SD, Type.SDP)
_FLAGS = {Type.BEGIN: 3, Type.END: 12, Type.SD: 1, Type.SDP: 1}
_RESERVED = {
    Type.BGAK: {12: 0xF0, 24: 0xFF}, Type.BGREJ: {13: 0xF0, 14: 0xFF, 15: 0xFF},
    Type.END: {13: 0xFF, 14: 0xFF, 15: 0xFF}, Type.SDP: {12: 0xFF}, Type.POLL: {12: 0xFF},
    Type.STAT: {12: 0xFF, 16: 0xFF}, Type.USTAT: {12: 0xFF, 16: 0xFF, 20: 0xFF},
}  # fmt: skip
"""The reserved bits of a body, by offset."""

_OPTLEN_AT = {Type.BEGIN: 12, Type.BGAK: 12, Type.BGREJ: 13}
"""Where the low half of an octet counts the words of options."""

TAGGED = (Type.SD, Type.SDP, Type.POLL, Type.STAT, Type.USTAT)
"""Types whose tag is examined (section 4)."""

EFFECTIVE: Mapping[State, tuple[Type, ...]] = {
    State.IDLE: (Type.BEGIN, Type.BGAK, Type.END, Type.SDP, Type.POLL),
    State.OUTGOING: (Type.BEGIN, Type.BGAK, Type.BGREJ, Type.END),
    State.READY: (Type.BEGIN, Type.END, *TAGGED),
    State.OUTGOING_RELEASE: (Type.BEGIN, Type.END, Type.ENDAK),
}
"""What changes something or is answered in each state (section 9)."""

_SHORT = {
    State.IDLE: "idle", State.OUTGOING: "calling", State.READY: "ready",
    State.OUTGOING_RELEASE: "releasing",
}  # fmt: skip


class Omitting(MeddlingHost):
    """Treats the packets of one type in one state in another way.

    Attributes:
        kind, state: which packets.
        treat: what is done with one; None discards it.
        buffer: the octets of the last packet, and behind them those of longer ones before it.
        stale: that buffer before the packet came.
    """

    kind: Type
    state: State
    buffer: bytes = b""
    stale: bytes = b""
    treat: Callable[[Omitting, bytes], bytes | None]

    def arriving(self, octets: bytes) -> bytes | None:
        before, self.buffer = self.buffer, octets + self.buffer[len(octets) :]
        if len(octets) < _HEADER or type_of(octets) != self.kind:
            return octets
        connection = self.connection_of(octets)
        state = State.IDLE if connection is None else connection.state
        if state is not self.state:
            return octets
        self.stale = before
        return type(self).treat(self, octets)

    def connection_of(self, octets: bytes) -> Any:
        """The connection between the packet's ports, None without one."""
        ports = int.from_bytes(octets[:2], "big"), int.from_bytes(octets[2:4], "big")
        return self.endpoint.connections.get((self.peer, *ports))


def _trust(_: Omitting, octets: bytes) -> bytes:
    return rechecked(octets) if len(octets) >= _HEADER else octets


def _fill(host: Omitting, octets: bytes) -> bytes:
    """What is missing is what the buffer held there before."""
    size, least = len(octets), _LEAST[host.kind]
    if size >= least:
        return octets
    filled = octets + host.stale[size:]
    if host.kind in _OPTLEN_AT and len(filled) > least:
        least += 4 * (filled[_OPTLEN_AT[host.kind]] & 15)
    return rechecked(filled[:least].ljust(least, b"\0"))


def _cut(host: Omitting, octets: bytes) -> bytes:
    kind, size = host.kind, len(octets)
    whole = _LEAST[kind] if kind in _EXACT else size - size % 4
    if kind in _OPTLEN_AT and size >= _LEAST[kind]:
        whole = _LEAST[kind] + 4 * (octets[_OPTLEN_AT[kind]] & 15)
    return rechecked(octets[:whole]) if size > whole else octets


def _mind_flags(host: Omitting, octets: bytes) -> bytes | None:
    return None if octets[4] >> 4 & ~_FLAGS.get(host.kind, 0) & 15 else octets


def _mind_fields(host: Omitting, octets: bytes) -> bytes | None:
    reserved = _RESERVED[host.kind]
    set_bits = (octets[at] & bits for at, bits in reserved.items() if at < len(octets))
    return None if any(set_bits) else octets


def _take_tag(host: Omitting, octets: bytes) -> bytes:
    csn = host.connection_of(octets).peer_csn
    if csn is None:
        return octets
    return rechecked(octets[:10] + (csn & 0xFFFF).to_bytes(2, "big") + octets[12:])


def _take_version(_: Omitting, octets: bytes) -> bytes:
    if len(octets) < _LEAST[Type.BEGIN] or octets[12] >> 4 == 2:
        return octets
    return rechecked(octets[:12] + bytes((0x20 | octets[12] & 15,)) + octets[13:])


def _take_options(host: Omitting, octets: bytes) -> bytes:
    """Options that do not fit count as padding."""
    least = _LEAST[host.kind]
    if len(octets) < least:
        return octets
    if host.kind is Type.BEGIN and octets[12] >> 4 != 2:
        return octets
    end = min(len(octets), least + 4 * (octets[_OPTLEN_AT[host.kind]] & 15))
    place = least
    while place < end:
        size = 1 if octets[place] == 0 else octets[place + 1] if place + 1 < end else 0
        if not size or place + size > end or (octets[place] and size < 2):
            return rechecked(octets[:place] + bytes(end - place) + octets[end:])
        place += size
    return octets


_CHECKS: Mapping[str, tuple[str, str, Callable[[Omitting, bytes], bytes | None]]] = {
    "checksum": ("STP-PF-007", "does not check the checksum of a {}", _trust),
    "short": ("STP-PF-003", "takes a {} that is too short", _fill),
    "long": ("STP-PF-003", "takes a {} that is too long", _cut),
    "options": ("STP-PF-003", "takes a {} whose options do not fit", _take_options),
    "flags": ("STP-PF-004", "discards a {} with reserved flags", _mind_flags),
    "fields": ("STP-PF-004", "discards a {} with reserved fields", _mind_fields),
    "tag": ("STP-CC-001", "does not check the tag of a {}", _take_tag),
    "version": ("STP-CC-019", "takes a {} of another version", _take_version),
}
"""By check, what an omission breaks, its title, and what it does to a packet."""


def _has(check: str, state: State, kind: Type) -> bool:
    """Whether a check is made of a type in a state, and its omission can be seen."""
    match check:
        case "long":
            return kind not in _OPEN_ENDED
        case "short":
            return kind is not Type.SD  # one that is too short lacks the common header
        case "options":
            return kind in (Type.BEGIN, Type.BGAK, Type.BGREJ)
        case "fields":
            return kind in _RESERVED
        case "tag":
            return kind in TAGGED and state is State.READY
        case "version":
            return kind is Type.BEGIN
    return True


def rows() -> Iterator[tuple[str, State, Type]]:
    """Check, state and type of every mutant of the table."""
    for check in _CHECKS:
        for state, kinds in EFFECTIVE.items():
            yield from ((check, state, kind) for kind in kinds if _has(check, state, kind))


for _check, _state, _kind in rows():
    _breaks, _title, _treat = _CHECKS[_check]
    mutant(
        f"stp-omits-{_check}-{_kind.name.lower()}-{_SHORT[_state]}", _breaks,
        f"{_title.format(_kind.name)} in the state {_state.title}",
    )(type("Omission", (Omitting,), {"kind": _kind, "state": _state, "treat": _treat}))  # fmt: skip


class _MixesPorts(MeddlingHost):
    """Gives a packet between ports that have no connection to one that shares the other port."""

    shared = 0

    def arriving(self, octets: bytes) -> bytes | None:
        if len(octets) < _HEADER or type_of(octets) in (Type.BEGIN, Type.BGREJ):
            return octets
        ports = int.from_bytes(octets[:2], "big"), int.from_bytes(octets[2:4], "big")
        if (self.peer, *ports) in self.endpoint.connections:
            return octets
        for peer, *known in self.endpoint.connections:
            if peer == self.peer and known[self.shared] == ports[self.shared]:
                pair = b"".join(port.to_bytes(2, "big") for port in known)
                return rechecked(pair + octets[4:])
        return octets


@mutant("stp-omits-source-port", breaks="STP-CC-020")
class MixesSourcePorts(_MixesPorts):
    """Finds a connection without the peer's port."""

    shared = 1


@mutant("stp-omits-destination-port", breaks="STP-CC-020")
class MixesDestinationPorts(_MixesPorts):
    """Finds a connection without its own port."""
