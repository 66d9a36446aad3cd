"""What happened on a connection, packet by packet, with what the implementation (IUT) could know.

SDs of a direction are counted from 0, the one numbered ISS. One packet can be two events: an SDP is
an SD and a POLL.

The IUT as a sender: :class:`SdSent`, :class:`PollSent`, :class:`ReportHeard`.
The IUT as a receiver: :class:`SdHeard`, :class:`PollHeard`, :class:`ReportSent`.
Everything else: :class:`Other`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from bentpipe_reference.common.ranges import Range

from bentpipe_conformance.protocols.stp.codec import FIN, STAT, Stp
from bentpipe_conformance.protocols.stp.replay import Packet

DUE_S = 0.1
"""Seconds within which an answer is due where packets enter and leave the IUT (section 8).

What leaves this soon after an arrival may have been decided before the arrival was read.
"""

_WITH_AN = ("END", "ENDAK", "SD", "SDP")
"""Types that are read letter by letter, or begin with a vowel."""


@dataclass(slots=True, eq=False)
class At:
    """A packet of a connection, captured at the IUT ``time`` seconds after the trace began.

    Attributes:
        stp: the packet as dissected.
    """

    packet: Packet
    time: float = field(init=False)
    frame: int = field(init=False)
    stp: Stp = field(init=False)

    def __post_init__(self) -> None:
        packet = self.packet
        assert packet.content is not None
        self.time, self.frame, self.stp = packet.time, packet.number, packet.content

    @property
    def outgoing(self) -> bool:
        """Whether it left the IUT."""
        return self.packet.outgoing

    @property
    def is_stat(self) -> bool:
        """Whether it is a STAT."""
        return self.stp.type == STAT

    @property
    def name(self) -> str:
        """Its type with an article."""
        return f"{'an' if self.stp.name in _WITH_AN else 'a'} {self.stp.name}"


def runs(elements: tuple[int, ...], first: int) -> list[Range]:
    """The runs that a list reports missing (``first`` is 0) or held (``first`` is 1)."""
    return list(zip(elements[first::2], elements[first + 1 :: 2], strict=False))


@dataclass(slots=True, eq=False)
class Report(At):
    """A packet that tells what has arrived, its numbers as counts.

    Attributes:
        n_r, n_mr: N(R) and N(MR).
        elements: the list: first missing, first held, ... and last the bound.
    """

    n_r: int
    n_mr: int
    elements: tuple[int, ...]

    @property
    def bound(self) -> int:
        """Where its information ends: the last element, or N(R) of an empty list."""
        return self.elements[-1] if self.elements else self.n_r

    def misses(self, number: int) -> bool:
        """Whether the list, valid or not, reports an SD missing."""
        return any(a <= number < b for a, b in runs(self.elements, 0))

    def holds(self, number: int) -> bool:
        """Whether it says that an SD has arrived."""
        return number < self.n_r or any(a <= number < b for a, b in runs(self.elements, 1))

    def list_fault(self) -> str:
        """What makes the list malformed (STP-PF-011), to follow "the list"; empty when nothing."""
        listed = self.elements
        if len(listed) == 1:
            return "has a single element"
        if listed and listed[0] < self.n_r:
            return f"begins at {listed[0]}, below N(R) {self.n_r}"
        if any(second <= first for first, second in pairwise(listed)):
            return "does not rise strictly"
        if listed and listed[-1] > self.n_mr:
            return f"has the bound {listed[-1]}, above N(MR) {self.n_mr}"
        return ""


@dataclass(slots=True, eq=False)
class SdSent(At):
    """An SD, an SDP, or a BEGIN with data leaving the IUT, and the sender just before it.

    Attributes:
        number: its count.
        transmission: 1 for the first, 2 for the first retransmission, ...
        stamp: N(PS) of the last POLL that left before it (section 6.1).
        vt_s, vt_a, vt_ms: the sender's variables.
        flight: octets in flight without it (STP-CG-002).
        awaited: the report that made it await retransmission, None when none did.
        queue: counts of all SDs that awaited retransmission when it left, this one included.
        twice: octets of SDs that have arrived while they awaited retransmission: they were taken
            off what is in flight before.
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
    twice: int

    @property
    def new(self) -> bool:
        """Whether it was sent for the first time."""
        return self.transmission == 1

    @property
    def octets(self) -> int:
        """Octets of user data; an empty SD counts as one (STP-CG-002)."""
        return max(len(self.stp.data), 1)

    @property
    def flight_with(self) -> int:
        """Octets in flight once it has left."""
        return self.flight + self.octets


@dataclass(slots=True, eq=False)
class PollSent(At):
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
class ReportHeard(Report):
    """A STAT or USTAT, or a BGAK's acknowledgment, reaching the IUT.

    Attributes:
        n_ps: N(PS), unwrapped; 0 in a STAT that announces credit, None in USTAT and BGAK.
        fault: why the IUT has to discard it (STP-DT-007, STP-DT-023), empty when it is valid.
        vt_a, vt_s, vt_pa, vt_ms: the sender's variables before it.
        flight: octets in flight before it.
        flight_after: octets in flight behind it, before anything is sent again.
        waiting: octets that reports before it made await retransmission, and that still do.
        arrived: counts that it reports as arrived for the first time.
        wanted: counts that it makes await retransmission (sections 6.4 and 6.5).
        spared: counts it reports missing that must not be sent because of it: their last
            transmission is too new for a STAT, or was not the first for a USTAT.
        responses: retransmissions of what it wanted, in order.
    """

    n_ps: int | None
    fault: str
    vt_a: int
    vt_s: int
    vt_pa: int
    vt_ms: int
    flight: int
    flight_after: int = 0
    waiting: int = 0
    arrived: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    spared: tuple[int, ...] = ()
    responses: list[SdSent] = field(default_factory=list)

    @property
    def acknowledges_all(self) -> bool:
        """Whether it says that everything that was sent has arrived."""
        return self.n_r >= self.vt_s

    @property
    def credit(self) -> int:
        """VT(MS) once it has been processed."""
        return max(self.vt_ms, self.n_mr)


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
class SdHeard(At):
    """An SD, an SDP, or a BEGIN with data reaching the IUT, and the receiver just before it.

    Attributes:
        number: its count.
        before: what the receiver had.
        vr_mr: the highest credit that had left the IUT.
        duplicate: it was received before.
        beyond: it is at or above that credit.
        misfit: why it must be discarded, to follow "an SD" (STP-DT-028); empty if it need not be.
        certain: whether ``before`` is known for sure.
        gap: the run that a USTAT has to report, None when none has to be sent.
        discarded: it was beyond the credit for sure: no report with more was on its way out.
        answers: USTATs that left because of it, or could have.
    """

    number: int
    before: Knowledge
    vr_mr: int
    duplicate: bool
    beyond: bool
    misfit: str
    certain: bool
    gap: Range | None
    discarded: bool = False
    answers: list[ReportSent] = field(default_factory=list)

    @property
    def ends(self) -> bool:
        """Whether it has the FIN flag and is not discarded for what it is.

        That is one whose SD has been received before (STP-DT-019), as all below the first, or lies
        below one that is held (STP-DT-028).
        """
        return bool(self.stp.flags & FIN) and not self.duplicate and not self.misfit


@dataclass(slots=True, eq=False)
class PollHeard(At):
    """A POLL or SDP reaching the IUT.

    Attributes:
        n_ps, timestamp: as on the wire.
        n_s: N(S) as a count; for an SDP the SD's count plus one.
        limit: the highest N(S) that may raise VR(H) (STP-DT-008).
        after: what the receiver has once the POLL has taken effect (section 6.3).
        certain: whether ``after`` is known for sure.
        answers: STATs with its N(PS) and timestamp that left after it.
    """

    n_ps: int
    timestamp: int
    n_s: int
    limit: int
    after: Knowledge
    certain: bool
    answers: list[ReportSent] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ReportSent(Report):
    """A STAT or USTAT leaving the IUT.

    Attributes:
        poll: the POLL that a STAT answers: the latest with its N(PS) and timestamp; None when there
            is none, or for a USTAT.
        cause: for a USTAT, the latest SD whose gap it reports; None when there is none.
        vr_mr: the highest credit that had left the IUT before it.
        possible: what the receiver had at each moment between the POLL (or SD) it answers and its
            departure, latest first; it may have been composed at any of them.
        certain: whether these are known for sure.
    """

    poll: PollHeard | None
    cause: SdHeard | None
    vr_mr: int
    possible: tuple[Knowledge, ...]
    certain: bool


@dataclass(slots=True, eq=False)
class Other(At):
    """Any other packet: BEGIN without data, BGAK, BGREJ, END, ENDAK, or one to be ignored.

    Attributes:
        state: the state the IUT was in when it came or before it left (1, 2, 10, 4), None when the
            packets do not tell.
        ignored: why the IUT has to discard it, empty otherwise.
    """

    state: int | None
    ignored: str = ""


Event = SdSent | PollSent | ReportHeard | SdHeard | PollHeard | ReportSent | Other
