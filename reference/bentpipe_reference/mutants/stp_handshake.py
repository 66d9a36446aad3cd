"""Mutants of what follows the opening: proofs of addresses (STP-CC)."""

from __future__ import annotations

from bentpipe_reference.mutants import Mutant
from bentpipe_reference.mutants.stp_hosts import with_parts
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.packets import Bgak
from bentpipe_reference.stp.proof import Proof


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


MUTANTS = (
    Mutant("stp-proves-nothing", "STP-CC-031", "does not prove the address of a known caller",
           with_parts(connection_class=ProvesNothing), "stp1"),
    Mutant("stp-proves-for-ever", "STP-CC-031", "asks for BGAKs though one has answered",
           with_parts(connection_class=ProvesForEver), "stp1"),
    Mutant("stp-takes-any-answer", "STP-CC-031",
           "takes the BGAK for its second BEGIN for an answer",
           with_parts(connection_class=TakesAnyAnswer), "stp1"),
)  # fmt: skip
