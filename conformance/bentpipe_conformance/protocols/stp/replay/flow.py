"""One connection as the implementation (IUT) under test saw it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import chain, islice
from operator import attrgetter

from bentpipe_conformance.protocols.stp.codec import BEGIN, POLL, SD, SDP, STAT, USTAT, Stp
from bentpipe_conformance.protocols.stp.numbers import CHARGEN, DISCARD, ECHO, near
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.cookies import Ledger
from bentpipe_conformance.protocols.stp.replay.events import (
    DUE_S,
    At,
    Event,
    Other,
    PollHeard,
    PollSent,
    ReportHeard,
    ReportSent,
    SdHeard,
    SdSent,
)
from bentpipe_conformance.protocols.stp.replay.receiver import Receiver
from bentpipe_conformance.protocols.stp.replay.sender import Sender


class State(IntEnum):
    """The states of section 4, with SSCOP's numbers."""

    IDLE, CALLING, OPEN, RELEASING = 1, 2, 10, 4


Ends = tuple[str, int, int, int, int]
"""Tester's address, UDP port and port, and the IUT's UDP port and port."""

TAGGED = (SD, SDP, POLL, STAT, USTAT)
"""Types whose tag is checked (section 4)."""


@dataclass(eq=False)
class Flow:
    """One connection, or packets on ports that never had one.

    Attributes:
        ends: its addresses and ports.
        tester_csn, iut_csn: None when no packet shows them.
        iut_calls: whether the IUT sent the first BEGIN.
        start: frame number of the first packet that is sure to be its own; where the tester
            called, the BEGIN that opened it.
        passed: its packets at the IUT's side, as evidence.
        timing_error: seconds by which recorded times may be wrong.
        events: everything in order; an SDP gives two events.
        sds_sent, polls_sent: every SD, and every POLL and SDP, that the IUT sent.
        reports_heard: every STAT and USTAT that reached the open IUT, and the BGAK that opened it.
        sds_heard, polls_heard: every SD, and every POLL and SDP, that reached the IUT.
        reports_sent: every STAT and USTAT the IUT sent.
        begins: BEGINs with the connection's CSNs that left or reached the IUT, in order.
        bgaks: BGAKs that left or reached the IUT, in order.
        sender: the IUT as a sender; None when its ISS was never seen.
        receiver: the IUT as a receiver; None when the tester's ISS was never seen.
        established: when the IUT saw the connection open, None if never.
        ended: when the connection ended for the IUT, None if it did not.
        iut_max_sd, tester_max_sd: announced MaxSD, None when there was none.
        state: the IUT's state after the last packet, None when unknown.
        until: the time of the trace's last packet.
        state_before: the IUT's state before each packet, by frame number; None when unknown.
        displaced_by: the BEGIN of the connection that took its ports, None when none did.
        changes: when the state changed, and to what.
        neighbours: all connections of the trace with the same tester's address, this one among
            them, in the order of their first packets.
        ledger: the cookies that went to and came from that address.
        whole: whether the trace is that of a case, on a link of the suite.
        unmet: whether the IUT surely had not heard of that address before the trace.
    """

    ends: Ends
    tester_csn: int | None
    iut_csn: int | None
    iut_calls: bool = False
    start: int = 0
    passed: list[At] = field(default_factory=list)
    timing_error: float = 0.0
    events: list[Event] = field(default_factory=list)
    sds_sent: list[SdSent] = field(default_factory=list)
    polls_sent: list[PollSent] = field(default_factory=list)
    reports_heard: list[ReportHeard] = field(default_factory=list)
    sds_heard: list[SdHeard] = field(default_factory=list)
    polls_heard: list[PollHeard] = field(default_factory=list)
    reports_sent: list[ReportSent] = field(default_factory=list)
    begins: list[At] = field(default_factory=list)
    bgaks: list[At] = field(default_factory=list)
    sender: Sender | None = None
    receiver: Receiver | None = None
    established: float | None = None
    ended: float | None = None
    iut_max_sd: int | None = None
    tester_max_sd: int | None = None
    state: State | None = State.IDLE
    until: float = 0.0
    state_before: dict[int, State | None] = field(default_factory=dict)
    displaced_by: At | None = None
    changes: list[tuple[float, State | None]] = field(default_factory=list)
    neighbours: Sequence[Flow] = ()
    ledger: Ledger = field(default_factory=Ledger)
    whole: bool = False
    unmet: bool = False

    @cached_property
    def packets(self) -> list[Packet]:
        """Its packets at the IUT's side, all of them dissected."""
        return [at.packet for at in self.passed]

    @cached_property
    def sent(self) -> list[At]:
        """Everything the IUT sent, malformed or not."""
        return [at for at in self.passed if at.outgoing]

    @cached_property
    def heard(self) -> list[At]:
        """Everything that reached the IUT, malformed or not."""
        return [at for at in self.passed if not at.outgoing]

    @cached_property
    def _heard_by_type(self) -> Mapping[int, Sequence[At]]:
        found: dict[int, list[At]] = {}
        for at in self.heard:
            if at.stp.wellformed:
                found.setdefault(at.stp.type, []).append(at)
        return found

    def heard_of(self, *kinds: int) -> Sequence[At]:
        """Well-formed packets of these types that reached the IUT."""
        of_each = [found for kind in kinds if (found := self._heard_by_type.get(kind))]
        if len(of_each) > 1:
            return sorted(chain(*of_each), key=attrgetter("frame"))
        return of_each[0] if of_each else ()

    def heard_beside(self, at: At, *kinds: int) -> bool:
        """Whether another packet, of these types, reached the IUT about the same time."""
        first = bisect_left(self.heard, at.time - self.due_s, key=lambda item: item.time)
        for other in islice(self.heard, first, None):
            if other.time - at.time > self.due_s:
                break
            if other.frame != at.frame and other.stp.type in kinds:
                return True
        return False

    @cached_property
    def same_ports(self) -> list[Flow]:
        """The connections that had its ports one after the other, itself included."""
        return [other for other in self.neighbours if other.ends == self.ends]

    @cached_property
    def opener(self) -> At | None:
        """The tester's BEGIN that opened the connection."""
        if self.iut_calls or self.iut_csn is None:
            return None
        found = (at for at in self.passed if at.frame == self.start and at.stp.type == BEGIN)
        return next(found, None)

    @property
    def service(self) -> int:
        """The IUT's port."""
        return self.ends[4]

    @property
    def others(self) -> list[Other]:
        """The events of no other kind."""
        return [event for event in self.events if isinstance(event, Other)]

    @property
    def over(self) -> float:
        """Until when the connection was watched: to its end, or to that of the trace."""
        return self.until if self.ended is None else self.ended

    @property
    def due_s(self) -> float:
        """Seconds after which an answer is late for sure."""
        return DUE_S + self.timing_error

    @property
    def served(self) -> bool:
        """Whether the IUT's user is a service of section 11: these never abort."""
        return not self.iut_calls and self.service in (ECHO, DISCARD, CHARGEN)

    @cached_property
    def own_fin(self) -> SdSent | None:
        """The IUT's SD with the FIN flag, as first sent."""
        fin = self.sender.fin if self.sender is not None else None
        return next((sd for sd in self.sds_sent if sd.number == fin), None)

    def state_when(self, at: At) -> State | None:
        """The IUT's state before one of its packets; None when unknown."""
        return self.state_before.get(at.frame)

    def state_at(self, time: float) -> State | None:
        """The IUT's state just before a moment; None when unknown."""
        place = bisect_left(self.changes, time, key=lambda change: change[0])
        return self.changes[place - 1][1] if place else State.IDLE

    def names(self, at: At) -> bool:
        """Whether a BGAK or END carries both CSNs of the connection, each in its place."""
        ours, theirs = self.iut_csn, self.tester_csn
        pair = (ours, theirs) if at.outgoing else (theirs, ours)
        return (at.stp.csn, at.stp.peer_csn) == pair

    def is_recipient(self, stp: Stp) -> bool:
        """Whether a packet of the tester names the IUT's CSN as that of its recipient."""
        return self.iut_csn is not None and stp.peer_csn == self.iut_csn

    def is_of_peer(self, begin: Stp) -> bool:
        """Whether a BEGIN carries the peer's CSN, which the IUT knows once the connection opens.

        A BGAK that reaches state 4 is discarded and tells nothing (section 9).
        """
        return self.established is not None and begin.csn == self.tester_csn

    def is_possible(self, bgak: Stp) -> bool:
        """Whether N(R) of a BGAK to the IUT lies between ISS and VT(S) (section 5.1)."""
        sender = self.sender
        return sender is None or 0 <= near(bgak.n_r or 0, sender.iss, sender.vt_a) <= sender.vt_s
