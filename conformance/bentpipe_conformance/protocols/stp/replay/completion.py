"""When the IUT's connection became complete (section 5.5), as far as the packets tell."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe_conformance.protocols.stp.codec import BEGIN, FIN
from bentpipe_conformance.protocols.stp.numbers import EARLY_CREDIT
from bentpipe_conformance.protocols.stp.replay import Packet
from bentpipe_conformance.protocols.stp.replay.flow import Flow

LEAST_MAX_SD = 512
"""What everybody accepts in one SD (STP-PF-009)."""


def fin_acknowledged(flow: Flow) -> float | None:
    """When the IUT's FIN was acknowledged, None when it was not."""
    packet = _acknowledgment(flow)
    return None if packet is None else packet.time


def _acknowledgment(flow: Flow) -> Packet | None:
    fin = flow.sender.fin if flow.sender is not None else None
    if fin is None:
        return None
    reports = (report for report in flow.reports_heard if not report.fault and report.n_r > fin)
    return next((report.packet for report in reports), None)


def peers_fin(flow: Flow) -> int | None:
    """Count of the tester's SD with the FIN flag, None when none arrived."""
    return next((sd.number for sd in flow.sds_heard if sd.stp.flags & FIN), None)


def _arrivals(flow: Flow) -> dict[int, float] | None:
    """When each SD of the tester can first have been delivered; None when that is not sure."""
    found: dict[int, float] = {}
    for sd in flow.sds_heard:
        if sd.early and (sd.number >= EARLY_CREDIT or flow.established is None):
            continue
        if sd.beyond and not sd.early and not sd.duplicate:
            return None
        at = max(sd.time, flow.established or 0.0) if sd.early else sd.time
        found.setdefault(sd.number, at)
    return found


def peer_finished(flow: Flow) -> float | None:
    """When everything up to the tester's FIN had arrived; None when it had not, or is not sure."""
    fin, arrivals = peers_fin(flow), _arrivals(flow)
    if fin is None or arrivals is None or any(n not in arrivals for n in range(fin + 1)):
        return None
    return max(arrivals[number] for number in range(fin + 1))


@dataclass(frozen=True, slots=True)
class Completion:
    """When a connection became complete for the IUT.

    Attributes:
        time: seconds; None when it never did.
        last: the packet that acknowledged the IUT's FIN.
    """

    time: float | None
    last: Packet | None


def completion(flow: Flow) -> Completion | None:
    """See :class:`Completion`; None when the packets do not tell for sure."""
    if flow.sender is None or flow.receiver is None or not _is_plain(flow):
        return None
    last, finished = _acknowledgment(flow), peer_finished(flow)
    if last is None or finished is None:
        return Completion(None, last)
    return Completion(max(last.time, finished), last)


def _is_plain(flow: Flow) -> bool:
    """Whether every SD of the tester is one that a receiver takes once its turn has come."""
    if _arrivals(flow) is None:
        return False
    fin, most = peers_fin(flow), flow.iut_max_sd or LEAST_MAX_SD
    for sd in flow.sds_heard:
        # The data of a BEGIN that crosses the IUT's own is not taken (section 5.2).
        if len(sd.stp.data) > most or (flow.iut_calls and sd.stp.type == BEGIN):
            return False
        if fin is None:
            continue
        if sd.number > fin or bool(sd.stp.flags & FIN) != (sd.number == fin):
            return False
    return True
