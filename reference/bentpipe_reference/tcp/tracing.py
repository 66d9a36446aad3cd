"""Protocol events of a sender as NDJSON, for validation against the model.

One JSON object per line. Sequence numbers are stream offsets in octets, times are seconds.

``begin``    ``protocol`` (``sack-newreno``), ``profile`` (``hk99`` or ``rfc``): the rules followed
``ack``      ``ack``, ``window``, ``sack`` (pairs), ``bare``: what arrived at the sender
``send``     ``seq``, ``octets``, ``fin``: a segment was sent or retransmitted; a FIN is the last of
             its octets
``timeout``  the retransmission timer expired
``state``    ``snd_una``, ``in_recovery``: the sender's variables once an ``ack`` is processed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bentpipe_reference.common.link.profile import LinkProfile
from bentpipe_reference.common.tracing import EventTrace
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.sender import Sender
from bentpipe_reference.tcp.sending.variables import Ack, Event
from bentpipe_reference.tcp.transfer import transfer


class ProtocolTrace(EventTrace):
    """Collects the events of one sender, ``begin`` first; a sender without one pays nothing."""

    def __init__(self, profile: str) -> None:
        super().__init__({"event": "begin", "protocol": "sack-newreno", "profile": profile})

    def attach(self, sender: Sender) -> None:
        """Listen to ``sender`` from now on."""
        following, handle = sender.on_event, sender.on_ack
        first = sender.iss + 1

        def on_event(event: Event) -> None:
            if event.name in ("send", "retransmit"):
                seq, octets = event.values["seq"], event.values["octets"]
                assert isinstance(seq, int) and isinstance(octets, int)
                end = sender.data_end
                fin = sender.fin_queued and end is not None and sender.iss + seq + octets > end
                self._note("send", event.time, seq=seq - 1, octets=octets, fin=fin)
            elif event.name == "timeout":
                self._note("timeout", event.time)
            if following is not None:
                following(event)

        def on_ack(ack: Ack, now: float) -> None:
            blocks = [[left - first, right - first] for left, right in ack.blocks]
            self._note(
                "ack", now, ack=ack.number - first, window=ack.window, sack=blocks, bare=ack.bare
            )
            handle(ack, now)
            una = sender.snd_una - first
            self._note("state", now, snd_una=una, in_recovery=sender.in_recovery)

        sender.on_event = on_event
        sender.on_ack = on_ack  # type: ignore[method-assign]

    def _note(self, name: str, now: float, **values: Any) -> None:
        self.add({"event": name, "time": round(now, 9), **values})


def record(
    link: LinkProfile,
    config: EndpointConfig,
    octets: int,
    *,
    drops: Iterable[int] = (),
    return_drops: Iterable[int] = (),
    seed: int = 0,
    limit_s: float = 600.0,
) -> ProtocolTrace:
    """Transfer ``octets`` over ``link`` in virtual time and collect the sender's events.

    Both ends have the settings ``config``, whose variant determines the trace's profile; see
    :func:`~bentpipe_reference.tcp.transfer.transfer` for the rest.
    """
    trace = ProtocolTrace("hk99" if config.variant.endswith("hk99") else "rfc")
    transfer(
        link, config, octets, drops=drops, return_drops=return_drops, seed=seed, limit_s=limit_s,
        watch=trace.attach,
    )  # fmt: skip
    return trace
