"""The least that the congestion window of the IUT can be (section 7.3)."""

from __future__ import annotations

from collections.abc import Mapping

from bentpipe_conformance.protocols.stp.codec import BGAK
from bentpipe_conformance.protocols.stp.replay.events import ReportHeard, SdSent
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.round_trip import RoundTrips
from bentpipe_conformance.protocols.stp.replay.window import least_smss

_LATE_S = 0.1
"""Seconds by which a report may be counted later than it was captured."""


def least_windows(flow: Flow, trips: RoundTrips) -> Mapping[ReportHeard, float]:
    """Octets behind each valid STAT and USTAT.

    The window is as large as what has been in flight, halved at each loss, two SMSS at least, and
    one SMSS once two silences may have passed.
    """
    size = least_smss(flow)
    least, heard = 2.0 * size, flow.established or 0.0
    found: dict[ReportHeard, float] = {}
    for event in flow.events:
        if isinstance(event, SdSent):
            # What is longer than SMSS was cut before the peer's MaxSD fell, and the window with it.
            if event.awaited is None and event.octets <= size:
                least = max(least, event.flight_with)
        elif isinstance(event, ReportHeard) and not event.fault and event.stp.type != BGAK:
            two_silences = 3 * trips.silence(heard, event.time)[0] - _LATE_S - flow.timing_error
            if event.time - heard >= two_silences:
                least = size
            heard = event.time
            if event.wanted:
                least = max(least / 2, min(2 * size, least))
            found[event] = least
    return found
