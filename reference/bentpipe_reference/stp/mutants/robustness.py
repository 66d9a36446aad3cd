"""Mutants of robustness (STP-SEC)."""

from __future__ import annotations

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.mutants.hosts import MeddlingHost, with_host, with_parts
from bentpipe_reference.stp.packets import End, Flags, Reason, Stat

_HEADER_OCTETS = 12


class SendsToAnyone(Connection):
    """Takes the address of a known caller for proven."""

    def affords(self, octets: int) -> bool:
        return True


class KeepsPending(Connection):
    """Waits two minutes for a confirmation."""

    def confirmation_time(self) -> float:
        return 120.0


class ForgetsPending(Connection):
    """Waits three seconds for a confirmation."""

    def confirmation_time(self) -> float:
        return 3.0


class ChokesOnFragments(MeddlingHost):
    """Falls silent once a packet was shorter than a header."""

    _choked = False

    def arriving(self, octets: bytes) -> bytes | None:
        self._choked = self._choked or len(octets) < _HEADER_OCTETS
        return None if self._choked else octets


class BelievesEnds(Connection):
    """Looks at the CSN of the sender of an END only."""

    def is_valid_end(self, end: End) -> bool:
        return not end.flags & Flags.R and end.csn == self.peer_csn


class AbortsOnInvalidStat(Connection):
    """Takes a STAT ahead of everything sent for an error of the peer, as SSCOP does."""

    def take_stat(self, stat: Stat, now: float) -> None:
        sender = self.outgoing.sender
        if (stat.n_r - sender.vt_s) & 0xFFFFFF in range(1, 1 << 23):
            self.send_end(self.end(Flags.A, Reason.PROTOCOL_ERROR), now)
            return
        super().take_stat(stat, now)


MUTANTS = (
    Mutant("stp-sends-to-anyone", "STP-SEC-001",
           "sends a whole window to an address not yet proven",
           with_parts(connection_class=SendsToAnyone), "stp1"),
    Mutant("stp-keeps-pending", "STP-SEC-002", "keeps a pending connection for two minutes",
           with_parts(connection_class=KeepsPending), "stp1"),
    Mutant("stp-forgets-pending", "STP-SEC-002", "keeps a pending connection for three seconds",
           with_parts(connection_class=ForgetsPending), "stp1"),
    Mutant("stp-chokes-on-fragments", "STP-SEC-003", "falls silent after a packet without header",
           with_host(ChokesOnFragments), "stp1"),
    Mutant("stp-believes-ends", "STP-SEC-005", "ends a connection without its own CSN in the END",
           with_parts(connection_class=BelievesEnds), "stp1"),
    Mutant("stp-aborts-on-invalid-stat", "STP-SEC-005",
           "aborts when a STAT acknowledges what was not sent",
           with_parts(connection_class=AbortsOnInvalidStat), "stp1"),
)  # fmt: skip
