"""Mutants of the packet format (STP-PF)."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.mutants.hosts import (
    MeddlingHost,
    changed,
    rechecked,
    type_of,
    with_host,
    with_parts,
)
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Type

_RESERVED_AT = 12
"""Offset of the first reserved octet of POLL, STAT and USTAT."""


class FillsReserved(MeddlingHost):
    """Puts something into the reserved octet of its STATs."""

    def leaving(self, octets: bytes) -> bytes:
        return changed(octets, _RESERVED_AT, 0x01) if type_of(octets) == Type.STAT else octets


class PadsPolls(MeddlingHost):
    """Pads POLLs to whole cache lines."""

    def leaving(self, octets: bytes) -> bytes:
        return rechecked(octets + bytes(4)) if type_of(octets) == Type.POLL else octets


class TakesLongPolls(MeddlingHost):
    """Reads a POLL's fields without looking at its length."""

    def arriving(self, octets: bytes) -> bytes | None:
        if type_of(octets) == Type.POLL and len(octets) > 20:
            return rechecked(octets[:20])
        return octets


class MindsReserved(MeddlingHost):
    """Discards packets with reserved fields set, as if they were malformed."""

    def arriving(self, octets: bytes) -> bytes | None:
        if type_of(octets) in (Type.POLL, Type.SDP) and octets[_RESERVED_AT]:
            return None
        return octets


class ForgetsTag(MeddlingHost):
    """Leaves the tag of its STATs zero."""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) == Type.STAT:
            return rechecked(octets[:10] + bytes(2) + octets[12:])
        return octets


class SumsWithoutTail(MeddlingHost):
    """Leaves the last octet of SDs of odd length out of the sum."""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) in (Type.STAT, Type.SD):
            wrong = rechecked(octets[:-1] + bytes((octets[-1] ^ 0x5A,)))
            return octets[:8] + wrong[8:10] + octets[10:]
        return octets


class TrustsChecksums(MeddlingHost):
    """Takes every checksum for right."""

    def arriving(self, octets: bytes) -> bytes | None:
        return rechecked(octets) if len(octets) >= 12 else octets


class RefusesUnknownOptions(MeddlingHost):
    """Discards a BEGIN whose first option it does not know."""

    def arriving(self, octets: bytes) -> bytes | None:
        if type_of(octets) == Type.BEGIN and len(octets) > 20 and octets[20] > 1:
            return None
        return octets


class IgnoresMaxSd(Outgoing):
    """Cuts the stream as its own MTU suggests."""

    def learn(self, max_sd: int | None) -> None:
        super().learn(self._config.own_max_sd)


class AnnouncesNoMaxSd(MeddlingHost):
    """Leaves the option field of its BGAKs empty."""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) != Type.BGAK:
            return octets
        return rechecked(octets[:12] + bytes((octets[12] & 0xF0,)) + octets[13:28])


class RepeatsTheBound(MeddlingHost):
    """Ends every list with the bound twice."""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) == Type.STAT and len(octets) > 24:
            return rechecked(octets + octets[-4:])
        return octets


class CutsWithoutOverlap(MeddlingHost):
    """Begins the next part of a long list with the element after the last one sent."""

    _last = b""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) != Type.STAT or len(octets) < 28:
            return octets
        goes_on = octets[24:28] == self._last
        self._last = octets[-4:]
        return rechecked(octets[:24] + octets[28:]) if goes_on else octets


class ReportsAnEmptyRun(MeddlingHost):
    """Sends the first element of a USTAT twice."""

    def leaving(self, octets: bytes) -> bytes:
        if type_of(octets) == Type.USTAT:
            return rechecked(octets[:20] + octets[16:20])
        return octets


def _of(identifier: str, breaks: str, title: str, host: type[MeddlingHost]) -> Mutant:
    return Mutant(identifier, breaks, title, with_host(host), "stp1")


MUTANTS = (
    _of("stp-fills-reserved", "STP-PF-001", "sends reserved octets that are not zero",
        FillsReserved),
    _of("stp-pads-polls", "STP-PF-002", "sends POLLs four octets too long", PadsPolls),
    _of("stp-takes-long-polls", "STP-PF-003", "answers POLLs that are too long", TakesLongPolls),
    _of("stp-minds-reserved", "STP-PF-004", "discards packets with reserved fields set",
        MindsReserved),
    _of("stp-forgets-tag", "STP-PF-005", "sends STATs with tag 0", ForgetsTag),
    _of("stp-sums-without-tail", "STP-PF-006", "leaves the last octet out of the checksum",
        SumsWithoutTail),
    _of("stp-trusts-checksums", "STP-PF-007", "takes packets with a wrong checksum",
        TrustsChecksums),
    _of("stp-refuses-unknown-options", "STP-PF-008", "discards BEGINs with an unknown option",
        RefusesUnknownOptions),
    Mutant("stp-ignores-max-sd", "STP-PF-009", "sends SDs larger than the peer's MaxSD",
           with_parts(outgoing_class=IgnoresMaxSd), "stp1"),
    _of("stp-announces-no-max-sd", "STP-PF-010", "sends BGAKs without MaxSD", AnnouncesNoMaxSd),
    _of("stp-repeats-the-bound", "STP-PF-011", "sends lists that do not rise", RepeatsTheBound),
    _of("stp-cuts-without-overlap", "STP-PF-012", "cuts lists without repeating the last element",
        CutsWithoutOverlap),
    _of("stp-reports-an-empty-run", "STP-PF-013", "sends USTATs whose run is empty",
        ReportsAnEmptyRun),
)  # fmt: skip
