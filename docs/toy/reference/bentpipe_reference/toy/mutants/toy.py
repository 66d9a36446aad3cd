"""Mutants of each of TOY's requirements."""

from __future__ import annotations

from typing import Any

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.toy.codec import Packet
from bentpipe_reference.toy.connection import Connection
from bentpipe_reference.toy.receiver import Receiver
from bentpipe_reference.toy.sender import Message, Sender


class AnswersOneOpen(Connection):
    """Leaves a repeated OPEN without answer."""

    _answered = False

    def answer_open(self) -> None:
        if not self._answered:
            super().answer_open()
        self._answered = True


class DoesNotWait(Sender):
    """Sends the next packet before the last one is acknowledged."""

    _ahead = False

    def message(self, now: float) -> Message | None:
        message = super().message(now)
        if message is not None and not self._ahead:
            self._ahead = True
            self.acknowledge(message[1])
        return message


class DropsDuplicates(Receiver):
    """Does not acknowledge a duplicate."""

    def take(self, packet: Packet) -> bool:
        return not self.is_duplicate(packet) and super().take(packet)


class Impatient(Sender):
    """Sends again after half the declared timeout."""

    def timeout(self) -> float:
        return super().timeout() / 2


def _mutant(identifier: str, breaks: str, part: type[Any]) -> Mutant:
    title = part.__doc__ or ""
    return Mutant(identifier, breaks, title, lambda setup: setup.with_part(part), profile="toy1")


MUTANTS = [
    _mutant("toy-answers-one-open", "TOY-CON-001", AnswersOneOpen),
    _mutant("toy-does-not-wait", "TOY-DAT-001", DoesNotWait),
    _mutant("toy-drops-duplicates", "TOY-DAT-002", DropsDuplicates),
    _mutant("toy-impatient", "TOY-TIM-001", Impatient),
]
