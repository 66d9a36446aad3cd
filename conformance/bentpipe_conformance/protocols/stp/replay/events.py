"""What happened on a connection, packet by packet, with what the implementation (IUT) could know.

SDs of a direction are counted from 0, the one numbered ISS; ``None`` is a number that cannot be
known. One packet can be two events: an SDP is an SD and a POLL.

The IUT as a sender: :class:`SdSent`, :class:`PollSent`, :class:`ReportHeard`.
The IUT as a receiver: :class:`SdHeard`, :class:`PollHeard`, :class:`ReportSent`.
Everything else: :class:`Other`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.stp.codec import STAT, Stp
from bentpipe_conformance.protocols.stp.replay import Packet

UNREAD_S = 0.1
"""Seconds after a packet arrives in which what leaves may have been decided before it was read:
answers are due as late (section 8)."""


@dataclass(slots=True, eq=False)
class _Event:
    packet: Packet
    time: float

    @property
    def stp(self) -> Stp:
        """The packet as dissected."""
        found = self.packet.content
        assert found is not None
        return found


@dataclass(slots=True, eq=False)
class SdSent(_Event):
    """An SD, an SDP, or a BEGIN with data leaving the IUT, and the sender just before it.

    Attributes:
        number: its count.
        transmission: 1 for the first, 2 for the first retransmission, ...
        stamp: N(PS) of the last POLL that left before it (section 6.1).
        vt_s, vt_a, vt_ms: the sender's variables.
        flight: octets in flight without it (STP-CG-002); an empty SD counts as one.
        awaited: the report that made it await retransmission, None when none did.
        queue: counts of all SDs that awaited retransmission when it left, this one included.
    """

    number: int
    transmission: int
    stamp: int
    vt_s: int
    vt_a: int
    vt_ms: int
    flight: int
    awaited: ReportHeard | None
    queue: tuple[int, ...]

    @property
    def new(self) -> bool:
        """Whether it was sent for the first time."""
        return self.transmission == 1


@dataclass(slots=True, eq=False)
class PollSent(_Event):
    """A POLL or SDP leaving the IUT.

    Attributes:
        n_ps: its poll number, unwrapped.
        n_s: its N(S) as a count; for an SDP the SD's count plus one.
        vt_s: VT(S) when it left, the SD of an SDP included.
        vt_a: VT(A).
        answers: the valid STATs with its N(PS), in order.
    """

    n_ps: int
    n_s: int
    vt_s: int
    vt_a: int
    answers: list[ReportHeard] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ReportHeard(_Event):
    """A STAT or USTAT, or a BGAK's acknowledgment, reaching the IUT.

    Attributes:
        n_r: N(R) as a count.
        n_mr: N(MR) as a count.
        n_ps: N(PS), unwrapped; None in USTAT and BGAK.
        elements: the list as counts.
        fault: why the IUT has to discard it (STP-DT-007, STP-DT-023), empty when it is valid.
        vt_a, vt_s, vt_pa, vt_ps, vt_ms: the sender's variables before it.
        missing: runs that it reports missing.
        arrived: counts that it reports as arrived for the first time.
        wanted: counts that it makes await retransmission (sections 6.4 and 6.5).
        spared: counts it reports missing that must not be sent because of it: their last
            transmission is too new for a STAT, or was not the first for a USTAT.
        responses: retransmissions of what it wanted, in order.
    """

    n_r: int
    n_mr: int
    n_ps: int | None
    elements: tuple[int, ...]
    fault: str
    vt_a: int
    vt_s: int
    vt_pa: int
    vt_ps: int
    vt_ms: int
    missing: tuple[Range, ...] = ()
    arrived: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    spared: tuple[int, ...] = ()
    responses: list[SdSent] = field(default_factory=list)

    @property
    def is_stat(self) -> bool:
        """Whether it is a STAT."""
        return self.stp.type == STAT


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a receiver has at one moment.

    Attributes:
        vr_r, vr_h: its variables.
        elements: the whole list of a STAT sent then.
    """

    vr_r: int
    vr_h: int
    elements: tuple[int, ...]


@dataclass(slots=True, eq=False)
class SdHeard(_Event):
    """An SD, an SDP, or a BEGIN with data reaching the IUT, and the receiver just before it.

    Attributes:
        number: its count.
        before: what the receiver had.
        vr_mr: the highest credit the IUT has announced.
        duplicate: it was received before.
        beyond: it is at or above the announced credit; whether the IUT's own is higher, and it
            takes the SD, cannot be known.
        early: it came before the connection was open and is held back.
        certain: whether ``before`` is known for sure.
        gap: the run that a USTAT has to report, None when none has to be sent.
        discarded: it was beyond the IUT's own credit for sure, as a later report shows.
        answers: USTATs that left because of it, or could have.
    """

    number: int
    before: Knowledge
    vr_mr: int
    duplicate: bool
    beyond: bool
    early: bool
    certain: bool
    gap: Range | None
    discarded: bool = False
    answers: list[ReportSent] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class PollHeard(_Event):
    """A POLL or SDP reaching the IUT.

    Attributes:
        n_ps, timestamp: as on the wire.
        n_s: N(S) as a count; for an SDP the SD's count plus one.
        after: what the receiver has once the POLL has taken effect (section 6.3).
        open: whether the connection is in data transfer, so that a STAT is due.
        certain: whether ``after`` is known for sure.
        answers: STATs with its N(PS) and timestamp that left after it.
    """

    n_ps: int
    timestamp: int
    n_s: int
    after: Knowledge
    open: bool
    certain: bool
    answers: list[ReportSent] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ReportSent(_Event):
    """A STAT or USTAT leaving the IUT.

    Attributes:
        n_r, n_mr: as counts.
        elements: the list as counts.
        announced: the highest N(MR) the IUT had sent before, as a count.
        poll: the POLL that a STAT answers: the latest with its N(PS) and timestamp; None when there
            is none, or for a USTAT.
        cause: for a USTAT, the latest SD whose gap it reports; None when there is none.
        possible: what the receiver had at some moment between the POLL (or SD) it answers and its
            leaving, latest first: it may have been made at any of them.
        certain: whether these are known for sure.
    """

    n_r: int
    n_mr: int
    elements: tuple[int, ...]
    announced: int
    poll: PollHeard | None
    cause: SdHeard | None
    possible: tuple[Knowledge, ...]
    certain: bool

    @property
    def is_stat(self) -> bool:
        """Whether it is a STAT."""
        return self.stp.type == STAT


@dataclass(slots=True, eq=False)
class Other(_Event):
    """Any other packet of the connection.

    BEGIN without data, BGAK, BGREJ, END, ENDAK; or one that the IUT has to ignore.

    Attributes:
        state: the state the IUT was in when it came or before it left (1, 2, 3, 10, 4), None when
            the packets do not tell.
        ignored: why the IUT has to discard it, empty otherwise.
    """

    state: int | None
    ignored: str = ""


Event = SdSent | PollSent | ReportHeard | SdHeard | PollHeard | ReportSent | Other
