"""For how long a pacing timer may put off what a sender may send.

A window is spread over a smoothed round trip, which may be as long as the longest one; a rate that
the user bounds, or that was measured while the receiver had no room, spreads it for longer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from bentpipe_conformance.engine.remembered import remembered
from bentpipe_conformance.protocols.tcp.replay.flow import Flow

PACED_S = 1.0
"""Seconds after progress before which a repair may have waited for a pacing timer: no timeout comes
sooner (RFC 6298 rule 2.4), and a pacing timer may run longer than any round trip."""

BURST_GROWTH = 2
"""How much more than before a sender may pass on at once, for which its pacing timer then runs: 8
segments in one, after 5 (Linux, encounters 3106312 and 3106855)."""


@remembered
def _pauses(flow: Flow) -> tuple[array[int], array[float]]:
    """Numbers of the segments before which a sender paused the longest yet, and for how long."""
    numbers, longest = array("q"), array("d")
    for sent in flow.sent:
        if sent.new and sent.timed and sent.since_sent > (longest[-1] if longest else 0.0):
            numbers.append(sent.packet.number)
            longest.append(sent.since_sent)
    return numbers, longest


def longest_pause(flow: Flow, number: int) -> float:
    """Seconds for which a pacing timer may have run before a packet, :data:`PACED_S` at most.

    New data that no arrival lets out ends a pause; whether its user made it is not known. What
    leaves at once may double, and the next pause with it.
    """
    numbers, longest = _pauses(flow)
    at = bisect_left(numbers, number)
    return min(PACED_S, BURST_GROWTH * longest[at - 1]) if at else 0.0
