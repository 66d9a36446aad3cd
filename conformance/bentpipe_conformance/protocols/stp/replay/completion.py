"""When the two streams of a connection ended (section 5.4), as far as the packets show."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import FIN
from bentpipe_conformance.protocols.stp.numbers import LEAST_MAX_SD, near
from bentpipe_conformance.protocols.stp.replay.events import At
from bentpipe_conformance.protocols.stp.replay.flow import Flow


@dataclass(frozen=True, slots=True)
class Completion:
    """The ends of both streams for the IUT.

    Attributes:
        peers_fin: count of the tester's SD with the FIN flag, None when none arrived.
        finished: when everything up to it had arrived, seconds; None when it had not, or when that
            is not sure.
        taken: whether the IUT has acknowledged the tester's FIN, so that what it then does not do
            is no matter of its reception.
        acknowledged: the report that acknowledged the IUT's own FIN, None without one.
        certain: whether the packets show if and when the connection became complete.
    """

    peers_fin: int | None
    finished: float | None
    taken: bool
    acknowledged: At | None
    certain: bool

    @property
    def time(self) -> float | None:
        """When the connection became complete, seconds; None when it did not."""
        if self.acknowledged is None or self.finished is None:
            return None
        return max(self.acknowledged.time, self.finished)


def completion(flow: Flow) -> Completion:
    """The ends of a connection's streams."""
    fins = [sd for sd in flow.sds_heard if sd.ends and not sd.discarded]
    # One that may lie beyond the credit counts where there is no other (STP-DT-020).
    fin = next((sd.number for sd in sorted(fins, key=lambda sd: sd.beyond)), None)
    arrivals = _arrivals(flow)
    finished = None
    if fin is not None and arrivals is not None and all(n in arrivals for n in range(fin + 1)):
        finished = max(arrivals[number] for number in range(fin + 1))
    certain = arrivals is not None and flow.sender is not None and flow.receiver is not None
    own, valid = flow.own_fin, (item for item in flow.reports_heard if not item.fault)
    acknowledged = next((item for item in valid if own and item.n_r > own.number), None)
    taken = fin is not None and _acknowledges(flow, fin)
    return Completion(fin, finished, taken, acknowledged, certain and _is_plain(flow, fin))


def _acknowledges(flow: Flow, fin: int) -> bool:
    """Whether a BGAK or report of the IUT says that everything up to the FIN has arrived."""
    if flow.receiver is None:
        return False
    iss = flow.receiver.iss
    answers = (near(at.stp.n_r or 0, iss, fin) for at in flow.bgaks if at.outgoing)
    reports = (report.n_r for report in flow.reports_sent)
    return any(n_r > fin for n_r in (*answers, *reports))


def _arrivals(flow: Flow) -> dict[int, float] | None:
    """When each SD of the tester can first have been delivered; None when that is not sure."""
    found: dict[int, float] = {}
    for sd in flow.sds_heard:
        if sd.beyond and not sd.duplicate:
            return None
        found.setdefault(sd.number, sd.time)
    return found


def _is_plain(flow: Flow, fin: int | None) -> bool:
    """Whether every SD of the tester is one that a receiver takes once its turn has come."""
    most = flow.iut_max_sd or LEAST_MAX_SD
    for sd in flow.sds_heard:
        if len(sd.stp.data) > most:
            return False
        if fin is None:
            continue
        if sd.number > fin or bool(sd.stp.flags & FIN) != (sd.number == fin):
            return False
    return True
