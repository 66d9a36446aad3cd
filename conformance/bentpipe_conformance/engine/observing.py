"""What judging a capture that the suite did not make needs to know of a protocol.

Such a capture may lack packets, show them twice or merged, or have been taken far from the
implementation. An :class:`Observer` says what the packets themselves tell of that, and which
requirements can then no longer be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bentpipe_reference.common.record import record

from bentpipe_conformance.engine.statement import Ics

End = tuple[str, int]
"""An address and a port."""


class Defect(StrEnum):
    """What can be wrong with a capture of a connection."""

    ELSEWHERE = "elsewhere"
    """It was not taken at the implementation's side of the path."""
    GAPS = "gaps"
    """It lacks packets that passed."""
    LATE = "late"
    """It begins after the connection did."""
    CUT = "cut"
    """It kept only the beginning of packets."""
    MERGED_SENT = "merged-sent"
    """It shows what the implementation sent before segmentation offload cut it."""
    MERGED_RECEIVED = "merged-received"
    """It shows what reached the implementation after receive offload merged it."""
    TWICE = "twice"
    """It recorded every packet twice; the copies are left out."""
    BACKWARDS = "backwards"
    """Its times run backwards."""


@record
class Sighting:
    """One packet of a foreign capture, before it is known whose side the capture is on.

    Attributes:
        number: frame number in the capture, from 1.
        time: seconds since the capture began.
        content: what the protocol's codec makes of it.
        octets: its octets as far as they were kept.
        here: whether the capturing host marked it as sent by itself; None when it did not say.
        checksum_ok: False when its checksum is certainly wrong.
    """

    number: int
    time: float
    content: Any
    octets: bytes
    here: bool | None = None
    checksum_ok: bool = True


@dataclass(frozen=True, slots=True)
class Appraisal:
    """What the packets of one connection tell of the capture.

    Attributes:
        ends: the end that was called, or sent the second packet, and the other one.
        whole: whether the capture shows the opening.
        reactions: for each end the shortest time in which it answered the other, seconds; absent
            where nothing shows it.
        lags: for each end the longest time by which its packets lag behind the clock that they
            carry, seconds; absent where they carry none.
        unreached: how many packets passed the capture towards each end and certainly did not reach
            it.
        skipped: how often each end left out what the capture had not shown it send before.
        missing: packets that prove that the capture lacks earlier ones.
        merged: packets of each end that are longer than any it may send.
    """

    ends: tuple[End, End]
    whole: bool = True
    reactions: Mapping[End, float] = field(default_factory=dict)
    lags: Mapping[End, float] = field(default_factory=dict)
    unreached: Mapping[End, int] = field(default_factory=dict)
    skipped: Mapping[End, int] = field(default_factory=dict)
    missing: Sequence[int] = ()
    merged: Mapping[End, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observer:
    """What judging foreign captures needs to know of a protocol.

    Attributes:
        party: given a packet and its octets on the wire, what it shares with all packets that
            have to be judged together, and how many of its octets are worth keeping; None when it
            is not of this protocol.
        skim: the packet in octets that were cut to what is worth keeping, given its octets on the
            wire; checksums are trusted.
        ends: sender and receiver of such a packet, as ends of what is judged together.
        ports: the same with the ports of the connection.
        separate: the connections among packets that are judged together, each in order.
        appraise: what the packets of a connection tell of the capture.
        claims: the statement that holds for a connection, given its flow and what the user states.
        unjudgeable: why a requirement cannot be judged given the defects; empty when it can.
    """

    party: Callable[[bytes, int], tuple[Hashable, int] | None]
    skim: Callable[[bytes, int], Any]
    ends: Callable[[Any], tuple[End, End]]
    ports: Callable[[Any], tuple[End, End]]
    separate: Callable[[Sequence[Sighting]], list[list[Sighting]]]
    appraise: Callable[[Sequence[Sighting]], Appraisal]
    claims: Callable[[Any, Ics], Ics]
    unjudgeable: Callable[[str, Collection[Defect]], str]


@record
class Passed:
    """One packet of a connection in a capture on one side of a box.

    Attributes:
        sighting: the packet.
        up: whether it goes from client to server.
    """

    sighting: Sighting
    up: bool


@dataclass(frozen=True, slots=True)
class Sides:
    """What judging two captures, one on each side of a box, needs to know of a protocol.

    Attributes:
        passed: the packets of one file that belong to connections whose opening it holds.
        bounds: how many seconds the server's side is captured later than the client's, at least and
            at most, as what has passed the box shows; minus infinity, or infinity, where nothing
            does. Raises ValueError, with what both files do, where no connection is in both, or
            none that was split.
        flows: the connections of a trace of both sides.
        ends: client and server of such a connection.
        going_on: the sides on which it has not ended.
        lacking: why a connection cannot be judged in these captures; empty when it can.
        unjudgeable: why a requirement cannot be judged of a connection; empty when it can.
    """

    passed: Callable[[Sequence[Sighting]], list[Passed]]
    bounds: Callable[[Sequence[Passed], Sequence[Passed]], tuple[float, float]]
    flows: Callable[[Any], Sequence[Any]]
    ends: Callable[[Any], tuple[End, End]]
    going_on: Callable[[Any], Collection[str]]
    lacking: Callable[[Any], str]
    unjudgeable: Callable[[str, Any], str]
