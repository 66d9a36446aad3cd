"""Judging STP in foreign captures: whose side they were taken on.

All packets between two hosts are judged together, for cookies hold for an address (section 3.3).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

from bentpipe_conformance.engine.codec import UDP, MalformedPacket, locate
from bentpipe_conformance.engine.observing import Appraisal, Defect, End, Observer, Sighting
from bentpipe_conformance.engine.statement import Ics
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    END,
    ENDAK,
    POLL,
    PROTOCOLS,
    SDP,
    STAT,
    Stp,
    dissect,
)
from bentpipe_conformance.protocols.stp.replay.flow import Flow

_ANSWERS = {BGAK: (BEGIN,), STAT: (POLL, SDP), ENDAK: (END,)}
"""What each of these types answers."""


def _party(packet: bytes, wire: int) -> tuple[Hashable, int] | None:
    try:
        src, dst, protocol, start, end = locate(packet, wire)
    except MalformedPacket:
        return None
    if len(src) != 4 or (protocol != UDP and protocol not in PROTOCOLS) or len(packet) < start:
        return None
    return (src + dst if src < dst else dst + src), end


def _skim(packet: bytes, wire: int) -> Stp:
    whole = packet + bytes(wire - len(packet))
    return replace(dissect(whole), checksum_ok=True, udp_checksum_ok=True, ip_checksum_ok=True)


def _hosts(stp: Stp) -> tuple[End, End]:
    return (stp.src, 0), (stp.dst, 0)


def _ports(stp: Stp) -> tuple[End, End]:
    return (stp.src, stp.sport), (stp.dst, stp.dport)


def _appraise(sightings: Sequence[Sighting]) -> Appraisal:
    reactions: dict[End, float] = {}
    asked: dict[tuple[End, int], float] = {}
    first, second = _hosts(sightings[0].content)
    for item in sightings:
        stp: Stp = item.content
        source, destination = _hosts(stp)
        for question in _ANSWERS.get(stp.type, ()):
            since = asked.pop((destination, question), None)
            if since is not None:
                took = item.time - since
                reactions[source] = min(took, reactions.get(source, took))
        asked[source, stp.type] = item.time
    return Appraisal((second, first), True, reactions)


def _claims(flow: Flow, stated: Ics) -> Ics:
    """What is stated; without a statement, a connection shows who calls."""
    return {"active_open": flow.iut_calls, **stated}


def _unjudgeable(_requirement: str, defects: Collection[Defect]) -> str:
    if Defect.ELSEWHERE in defects:
        return "the capture was not taken at the implementation's side"
    if Defect.GAPS in defects:
        return "the capture lacks packets"
    return "the capture's times run backwards" if Defect.BACKWARDS in defects else ""


OBSERVER = Observer(
    party=_party,
    skim=_skim,
    ends=_hosts,
    ports=_ports,
    separate=lambda sightings: [list(sightings)],
    appraise=_appraise,
    claims=_claims,
    unjudgeable=_unjudgeable,
)
