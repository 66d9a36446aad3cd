"""Mutants of the handshake: proofs of addresses, calls side by side (STP-CC)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.stp.conditions import Identity
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.mutants.hosts import with_host, with_parts
from bentpipe_reference.stp.packets import Begin, Bgak, End, Flags, Packet
from bentpipe_reference.stp.pending import PendingCalls
from bentpipe_reference.stp.proof import Proof
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.without import WithoutConnection


class ProvesNothing(Connection):
    """Leaves it to its listener to break a silence."""

    def must_prove(self, bgak: Bgak) -> bool:
        return False


class ProvesForEver(Connection):
    """Goes on proving its address when that has been accepted."""

    def is_settled(self, proof: Proof) -> bool:
        return False


class TakesAnyAnswer(Connection):
    """Takes the answer to a repeated BEGIN for that to its question."""

    def is_settled(self, proof: Proof) -> bool:
        return True


class TakesAnyConfirmation(Connection):
    """Does not look at the N(R) of a confirmation."""

    def is_impossible(self, packet: Packet) -> bool:
        return self.state is not State.INCOMING and super().is_impossible(packet)


class YieldsWhilePending(Connection):
    """Forgets a pending call for another from the same port."""

    def let_another_wait(self, begin: Begin, now: float) -> None:
        self.forget(begin, now)


class TrustsBesideOthers(WithoutConnection):
    """Opens a known caller's connection at once although another call is pending."""

    def may_accept(self, begin: Begin, peer: tuple[Any, ...], now: float) -> bool:
        endpoint: Any = self._listener
        return bool(endpoint._peers.knows_older(peer, begin.csn, now))


class _NobodyBeside(PendingCalls):
    def between(self, identity: Identity) -> Sequence[Connection]:
        return ()


class KeepsOthersWaiting(StpHost):
    """Lets the calls wait on beside which another has opened."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        endpoint = self.endpoint
        opened = endpoint._opened

        def alone(*details: Any) -> None:
            pending = endpoint._pending
            pending.__class__ = _NobodyBeside
            opened(*details)
            pending.__class__ = PendingCalls

        vars(endpoint)["_opened"] = alone


class LimitsEachCause(Connection):
    """Challenges once per second for a BEGIN, and once for an END."""

    _challenged_for_end_at = -math.inf

    def challenge(self, packet: Begin | End, now: float) -> None:
        if isinstance(packet, Begin):
            super().challenge(packet, now)
        elif now - self._challenged_for_end_at >= self.challenge_interval():
            self._challenged_for_end_at = now
            self.put(self.bgak(Flags.C))


MUTANTS = (
    Mutant("stp-proves-nothing", "STP-CC-032", "does not prove the address of a known caller",
           with_parts(connection_class=ProvesNothing), "stp1"),
    Mutant("stp-proves-for-ever", "STP-CC-032", "asks for BGAKs though one has answered",
           with_parts(connection_class=ProvesForEver), "stp1"),
    Mutant("stp-takes-any-answer", "STP-CC-032",
           "takes the BGAK for its second BEGIN for an answer",
           with_parts(connection_class=TakesAnyAnswer), "stp1"),
    Mutant("stp-takes-any-confirmation", "STP-CC-003",
           "opens for a BGAK that acknowledges what was not sent",
           with_parts(connection_class=TakesAnyConfirmation), "stp1"),
    Mutant("stp-yields-while-pending", "STP-CC-033", "forgets a pending call for another BEGIN",
           with_parts(connection_class=YieldsWhilePending), "stp1"),
    Mutant("stp-trusts-beside-others", "STP-CC-033", "opens at once beside a pending call",
           with_parts(without_class=TrustsBesideOthers), "stp1"),
    Mutant("stp-keeps-others-waiting", "STP-CC-033",
           "does not forget the calls beside which another has opened",
           with_host(KeepsOthersWaiting), "stp1"),
    Mutant("stp-limits-each-cause", "STP-CC-021", "challenges twice in a second",
           with_parts(connection_class=LimitsEachCause), "stp1"),
)  # fmt: skip
