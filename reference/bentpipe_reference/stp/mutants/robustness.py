"""Mutants of robustness (STP-SEC)."""

from __future__ import annotations

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.mutants import mutant, returning
from bentpipe_reference.stp.mutants.hosts import MeddlingHost
from bentpipe_reference.stp.packets import End, Flags, Reason, Stat
from bentpipe_reference.stp.variables import Variables

_HEADER_OCTETS = 12


mutant("stp-sends-to-anyone", "STP-SEC-001", "sends a whole window to an address not yet proven")(
    returning(Actions, Actions.affords, True)
)


@mutant("stp-keeps-pending", breaks="STP-SEC-002")
class KeepsPending(Actions):
    """Keeps a pending connection for two minutes."""

    confirmation_s = 120.0


@mutant("stp-forgets-pending", breaks="STP-SEC-002")
class ForgetsPending(Actions):
    """Keeps a pending connection for three seconds."""

    confirmation_s = 3.0


@mutant("stp-chokes-on-fragments", breaks="STP-SEC-003")
class ChokesOnFragments(MeddlingHost):
    """Falls silent after a packet without header."""

    _choked = False

    def arriving(self, octets: bytes) -> bytes | None:
        self._choked = self._choked or len(octets) < _HEADER_OCTETS
        return None if self._choked else octets


@mutant("stp-believes-ends", breaks="STP-SEC-005")
class BelievesEnds(Guards):
    """Ends a connection without its own CSN in the END."""

    def is_valid_end(self, v: Variables, end: End) -> bool:
        return not end.flags & Flags.R and end.csn == v.peer_csn


@mutant("stp-aborts-on-invalid-stat", breaks="STP-SEC-005")
class AbortsOnInvalidStat(Actions):
    """Aborts when a STAT acknowledges what was not sent."""

    def take_stat(self, v: Variables, stat: Stat, now: float) -> None:
        sender = v.outgoing.sender
        if (stat.n_r - sender.vt_s) & 0xFFFFFF in range(1, 1 << 23):
            self.send_end(v, self.end(v, Flags.A, Reason.PROTOCOL_ERROR), now)
        else:
            super().take_stat(v, stat, now)
