"""What a running box tells of itself: numbers for Prometheus, lines of JSON, and a status."""

from __future__ import annotations

import http.client
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, TextIO

from bentpipe_reference.pep.io.router import Router
from bentpipe_reference.pep.io.sockets import SocketBox

Running = Router | SocketBox
"""What a program runs."""

LOG = logging.getLogger("bentpipe.pep")

SIDES = ("lan", "satellite")
"""By port of the box."""

_ANSWER_S = 5.0
_NO_BOX = "what answers is no box of bentpipe's"
_LONGEST_ANSWER = 1 << 20


class _Lines(logging.Formatter):
    """One JSON object in each line."""

    def format(self, record: logging.LogRecord) -> str:
        """See :class:`logging.Formatter`; ``extra={"fields": ...}`` becomes members."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = getattr(record, "fields", {})
        return json.dumps(
            {
                "time": f"{moment}.{int(record.msecs):03d}Z",
                "level": record.levelname.lower(),
                "event": record.getMessage(),
                **fields,
            }
        )


def log_to(stream: TextIO, level: str) -> None:
    """Write the log to a stream; no octet of a connection is ever part of it (PEP-SEC-009)."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines())
    LOG.handlers = [handler]
    LOG.propagate = False
    LOG.setLevel(level.upper())


def numbers(running: Running) -> dict[str, float]:
    """What a box counts; the first two may go down, the others never do."""
    if isinstance(running, SocketBox):
        connections, lost, relayed = running.connections, 0, running.counts.octets
        draining, counts = running.draining, running.counts
    else:
        box = running.box
        connections, lost, relayed = len(box.relays), box.dropped + running.lost, box.octets()
        draining, counts = box.draining, box.counts
    return {
        "connections": connections,
        "draining": int(draining),
        "opened_total": counts.opened,
        "failed_total": counts.failed,
        "passed_packets_total": counts.passed,
        "lost_packets_total": lost,
        **{
            f"relayed_octets_from_{side}_total": octets
            for side, octets in zip(SIDES, relayed, strict=True)
        },
    }


_HELP = {
    "connections": "Connections that are split now.",
    "draining": "Whether the box splits no new connections, as it is to end.",
    "opened_total": "Connections that it has begun to split.",
    "failed_total": "Connections that did not end cleanly on both sides.",
    "passed_packets_total": "Packets passed on as they were; with sockets the kernel does.",
    "lost_packets_total": "Packets that were neither processed nor passed on.",
    "relayed_octets_from_lan_total": "Octets of streams from the side of the LAN.",
    "relayed_octets_from_satellite_total": "Octets of streams from the side of the satellite.",
}


class Collector:
    """Asks what runs for its numbers whenever Prometheus asks."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def collect(self) -> Iterator[Any]:
        """The metrics of one moment."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, value in numbers(self._running).items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(f"bentpipe_pep_{name}", _HELP[name], value=value)


def ask(where: str) -> dict[str, float]:
    """What the box counts whose metrics are at ``ADDRESS:PORT``.

    Raises:
        OSError: nobody answers there, or somebody else.
    """
    from prometheus_client.parser import text_string_to_metric_families

    try:
        with urllib.request.urlopen(f"http://{where}/metrics", timeout=_ANSWER_S) as answer:
            text = answer.read(_LONGEST_ANSWER).decode(errors="replace")
    except (urllib.error.HTTPError, http.client.HTTPException):
        raise OSError(_NO_BOX) from None
    found = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith("bentpipe_pep_"):
                    found[sample.name.removeprefix("bentpipe_pep_")] = sample.value
    except ValueError:
        found = {}
    if not found:
        raise OSError(_NO_BOX)
    return found
