"""Mutants of the handshake: proofs of addresses, calls side by side (STP-CC)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bentpipe_reference.stp.actions import Actions
from bentpipe_reference.stp.config import CHALLENGE_S
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.guards import Guards
from bentpipe_reference.stp.host import StpHost
from bentpipe_reference.stp.idle import Arrival, Idle
from bentpipe_reference.stp.mutants import mutant, returning
from bentpipe_reference.stp.packets import Begin, End, Flags, Packet
from bentpipe_reference.stp.pending import PendingCalls
from bentpipe_reference.stp.states import State
from bentpipe_reference.stp.variables import Identity, Variables

mutant("stp-proves-nothing", "STP-CC-032", "does not prove the address of a known caller")(
    returning(Guards, Guards.must_prove, False)
)
mutant("stp-proves-for-ever", "STP-CC-032", "asks for BGAKs though one has answered")(
    returning(Guards, Guards.is_settled, False)
)
mutant("stp-takes-any-answer", "STP-CC-032", "takes the BGAK for its second BEGIN for an answer")(
    returning(Guards, Guards.is_settled, True)
)


@mutant("stp-takes-any-confirmation", breaks="STP-CC-003")
class TakesAnyConfirmation(Guards):
    """Opens for a BGAK that acknowledges what was not sent."""

    def is_impossible(self, v: Variables, packet: Packet) -> bool:
        return v.state is not State.INCOMING and super().is_impossible(v, packet)


@mutant("stp-yields-while-pending", breaks="STP-CC-033")
class YieldsWhilePending(Actions):
    """Forgets a pending call for another BEGIN."""

    def let_another_wait(self, v: Variables, begin: Begin, now: float) -> None:
        self.forget(v, begin, now)


@mutant("stp-trusts-beside-others", breaks="STP-CC-033")
class TrustsBesideOthers(Idle):
    """Opens at once beside a pending call."""

    def may_accept(self, arrival: Arrival, begin: Begin) -> bool:
        endpoint: Any = self._listener
        return bool(endpoint._peers.knows_older(arrival.peer, begin.csn, arrival.now))


class _NobodyBeside(PendingCalls):
    def between(self, identity: Identity) -> Sequence[Connection]:
        return ()


@mutant("stp-keeps-others-waiting", breaks="STP-CC-033")
class KeepsOthersWaiting(StpHost):
    """Does not forget the calls beside which another has opened."""

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


@mutant("stp-limits-each-cause", breaks="STP-CC-021")
class LimitsEachCause(Actions):
    """Challenges twice in a second."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._challenged_for_end_at: dict[Variables, float] = {}

    def challenge(self, v: Variables, packet: Begin | End, now: float) -> None:
        if isinstance(packet, Begin):
            super().challenge(v, packet, now)
        elif now - self._challenged_for_end_at.get(v, -math.inf) >= CHALLENGE_S:
            self._challenged_for_end_at[v] = now
            self.put(v, self.bgak(v, Flags.C))
