"""Mutants of the packet format (STP-PF)."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.mutants import mutant
from bentpipe_reference.stp.mutants.hosts import MeddlingHost, altering, rechecked, type_of
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Begin, Type
from bentpipe_reference.stp.variables import Variables

_RESERVED_AT = 12
"""Offset of the first reserved octet of POLL, STAT and USTAT."""


mutant("stp-fills-reserved", "STP-PF-001", "sends reserved octets that are not zero")(
    altering(Type.STAT, lambda octets: octets[:_RESERVED_AT] + b"\x01" + octets[_RESERVED_AT + 1 :])
)
mutant("stp-pads-polls", "STP-PF-002", "sends POLLs four octets too long")(
    altering(Type.POLL, lambda octets: octets + bytes(4))
)


@mutant("stp-takes-long-polls", breaks="STP-PF-003")
class TakesLongPolls(MeddlingHost):
    """Answers POLLs that are too long."""

    def arriving(self, octets: bytes) -> bytes | None:
        is_long = type_of(octets) == Type.POLL and len(octets) > 24
        return rechecked(octets[:24]) if is_long else octets


@mutant("stp-reads-foreign-options", breaks="STP-PF-003")
class ReadsForeignOptions(MeddlingHost):
    """Discards a BEGIN of another version whose options do not fit."""

    def arriving(self, octets: bytes) -> bytes | None:
        foreign = type_of(octets) == Type.BEGIN and len(octets) >= 20 and octets[12] >> 4 != 2
        return None if foreign and len(octets) < 20 + 4 * (octets[12] & 15) else octets


@mutant("stp-minds-reserved", breaks="STP-PF-004")
class MindsReserved(MeddlingHost):
    """Discards packets with reserved fields set."""

    def arriving(self, octets: bytes) -> bytes | None:
        minds = type_of(octets) in (Type.POLL, Type.SDP)
        return None if minds and octets[_RESERVED_AT] else octets


mutant("stp-forgets-tag", "STP-PF-005", "sends STATs with tag 0")(
    altering(Type.STAT, lambda octets: octets[:10] + bytes(2) + octets[12:])
)


@mutant("stp-sums-without-tail", breaks="STP-PF-006")
class SumsWithoutTail(MeddlingHost):
    """Leaves the last octet out of the checksum."""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) in (Type.STAT, Type.SD):
            wrong = rechecked(octets[:-1] + bytes((octets[-1] ^ 0x5A,)))
            return octets[:8] + wrong[8:10] + octets[10:]
        return octets


@mutant("stp-sends-no-udp-checksum", breaks="STP-PF-006")
class SendsNoUdpChecksum(StpHost):
    """Leaves UDP's checksum out."""

    def _emit(self, peer: Any, octets: bytes) -> bytes:
        packet = super()._emit(peer, octets)
        return packet[:26] + bytes(2) + packet[28:]


@mutant("stp-trusts-udp-checksums", breaks="STP-PF-007")
class TrustsUdpChecksums(StpHost):
    """Takes datagrams with a wrong checksum of UDP's."""

    def receive(self, packet: bytes, now: float) -> None:
        """Take one IPv4 packet at ``now`` seconds."""
        super().receive(packet[:26] + bytes(2) + packet[28:], now)


@mutant("stp-trusts-checksums", breaks="STP-PF-007")
class TrustsChecksums(MeddlingHost):
    """Takes packets with a wrong checksum."""

    def arriving(self, octets: bytes) -> bytes | None:
        return rechecked(octets) if len(octets) >= 12 else octets


@mutant("stp-refuses-unknown-options", breaks="STP-PF-008")
class RefusesUnknownOptions(MeddlingHost):
    """Discards BEGINs with an unknown option."""

    def arriving(self, octets: bytes) -> bytes | None:
        unknown = type_of(octets) == Type.BEGIN and len(octets) > 20 and octets[20] > 2
        return None if unknown else octets


@mutant("stp-ignores-max-sd", breaks="STP-PF-009")
class IgnoresMaxSd(Outgoing):
    """Sends SDs larger than the peer's MaxSD."""

    def learn(self, max_sd: int | None) -> None:
        super().learn(self._config.own_max_sd)


mutant("stp-announces-no-max-sd", "STP-PF-010", "sends BGAKs without MaxSD")(
    altering(
        Type.BGAK,
        lambda octets: octets[:12] + bytes((octets[12] - 1,)) + octets[13:28] + octets[32:],
    )
)
mutant("stp-gives-cookies-without-max-sd", "STP-PF-010", "sends BGREJs without MaxSD")(
    altering(
        Type.BGREJ,
        lambda octets: (
            octets[:13] + bytes((octets[13] - 1,)) + octets[14:20] + octets[24:]
            if octets[13] else octets
        ),
    )
)  # fmt: skip
mutant("stp-repeats-the-bound", "STP-PF-011", "sends lists that do not rise")(
    altering(Type.STAT, lambda octets: octets + octets[-4:] if len(octets) > 24 else octets)
)


@mutant("stp-cuts-without-overlap", breaks="STP-PF-012")
class CutsWithoutOverlap(MeddlingHost):
    """Cuts lists without repeating the last element."""

    _last = b""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) != Type.STAT or len(octets) < 28:
            return octets
        goes_on = octets[24:28] == self._last
        self._last = octets[-4:]
        return rechecked(octets[:24] + octets[28:]) if goes_on else octets


mutant("stp-reports-an-empty-run", "STP-PF-013", "sends USTATs whose run is empty")(
    altering(Type.USTAT, lambda octets: octets[:20] + octets[16:20])
)


@mutant("stp-minds-odd-options", breaks="STP-PF-018")
class MindsOddOptions(MeddlingHost):
    """Discards a BEGIN whose MaxSD option has a wrong length."""

    def arriving(self, octets: bytes) -> bytes | None:
        odd = type_of(octets) == Type.BEGIN and octets[20:21] == b"\x01" and octets[21] != 4
        return None if odd else octets


@mutant("stp-takes-the-last-max-sd", breaks="STP-PF-018")
class TakesTheLastMaxSd(MeddlingHost):
    """Takes the second of two MaxSD options."""

    def arriving(self, octets: bytes) -> bytes | None:
        twice = type_of(octets) == Type.BEGIN and octets[20:22] == octets[24:26] == b"\x01\x04"
        return rechecked(octets[:20] + octets[24:28] + octets[24:]) if twice else octets


mutant("stp-numbers-its-endaks", "STP-PF-001", "sends ENDAKs with a sequence number")(
    altering(Type.ENDAK, lambda octets: octets[:7] + b"\x07" + octets[8:])
)


@mutant("stp-fills-more-than-the-mtu", breaks="STP-PF-016")
class FillsMoreThanTheMtu(Actions):
    """Puts as much data into a BEGIN as into an SD, whatever its options take."""

    def first_data(self, v: Variables, begin: Begin) -> tuple[bytes, int]:
        sender = v.outgoing.sender
        if not sender.has_new:
            return b"", 0
        entry = sender.take_new()
        return entry.data, entry.fin
