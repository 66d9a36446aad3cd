"""Reporting STP: what a ladder says of a packet, and the plot of SD numbers over time."""

from __future__ import annotations

from collections.abc import Collection
from itertools import compress

from bentpipe_conformance.engine.scene import Mark, Scene, choose_scene
from bentpipe_conformance.engine.suite import Reporter
from bentpipe_conformance.protocols.stp.codec import BEGIN, BGAK, BGREJ, END, POLL, SDP, Stp
from bentpipe_conformance.protocols.stp.crafting import dissection
from bentpipe_conformance.protocols.stp.replay import Packet, Trace, events
from bentpipe_conformance.protocols.stp.replay.events import Event
from bentpipe_conformance.protocols.stp.replay.flow import Flow
from bentpipe_conformance.protocols.stp.replay.reader import read_flows
from bentpipe_conformance.report.ladder import thousands

LEGEND = (
    ("new", "new SD"),
    ("again", "retransmission"),
    ("dup", "POLL"),
    ("ack", "N(R): all below has arrived"),
    ("sack", "reported missing by STAT or USTAT"),
    ("window", "credit N(MR)"),
    ("lost", "lost on the link"),
    ("mark", "evidence"),
)
REASONS = {
    0: "normal", 1: "aborted by the user", 2: "no such connection", 3: "nobody listens",
    4: "version not supported", 5: "no resources", 6: "call anew", 7: "no answer",
}  # fmt: skip


def _plain(packet: Packet) -> tuple[str, tuple[str, ...]]:
    """Describe a packet by itself."""
    stp = packet.content
    if stp is None:
        return f"not STP, {len(packet.data)} octets", ()
    return _title(stp), tuple(_remarks(stp))


def _title(stp: Stp) -> str:
    texts = [f"{stp.name}+{stp.flag_names}" if stp.flags else stp.name]
    if stp.fault:
        return " · ".join((*texts, f"{len(stp.octets)} octets"))
    if stp.type in (BEGIN, BGAK, END):
        texts.append(f"CSN {stp.csn:08x}")
    if stp.type in (BGAK, END, BGREJ) and stp.peer_csn is not None:
        texts.append(f"to CSN {stp.peer_csn:08x}")
    if stp.type in (BEGIN, BGAK):
        texts.append(f"ISS {thousands(stp.seq)}")
        texts += [f"MaxSD {stp.max_sd}"] if stp.max_sd is not None else []
    if stp.cookie is not None:
        texts.append(f"cookie {stp.cookie.hex()[:16]}")
    if stp.type in (END, BGREJ) and stp.reason is not None:
        texts.append(f"reason {stp.reason} ({REASONS.get(stp.reason, 'unknown')})")
    if stp.data:
        texts.append(f"{thousands(len(stp.data))} octets")
    return " · ".join(texts)


def _remarks(stp: Stp) -> list[str]:
    found = [stp.fault] if stp.fault else []
    found += [] if stp.checksum_ok else ["wrong checksum"]
    found += [] if stp.udp_checksum_ok else ["wrong UDP checksum"]
    found += [] if stp.ip_checksum_ok else ["wrong IPv4 header checksum"]
    found += ["reserved flags set"] if stp.reserved_flags else []
    return found + (["reserved fields set"] if stp.reserved else [])


def _describe(trace: Trace) -> dict[int, tuple[str, tuple[str, ...]]]:
    what: dict[int, list[str]] = {}
    notes: dict[int, list[str]] = {}
    for flow in read_flows(trace):
        for event in flow.events:
            number = event.packet.number
            if number not in what:
                what[number], notes[number] = [_title(event.stp)], _remarks(event.stp)
            texts, remarks = _event(event)
            what[number] += texts
            notes[number] += [remark for remark in remarks if remark not in notes[number]]
    return {number: (" · ".join(texts), tuple(notes[number])) for number, texts in what.items()}


def _event(event: Event) -> tuple[list[str], list[str]]:
    match event:
        case events.SdSent():
            notes = [] if event.new else [f"transmission {event.transmission}"]
            return [f"number {thousands(event.number)}"], notes
        case events.SdHeard():
            there = event.duplicate, event.beyond
            notes = [*compress(("duplicate", "beyond the credit"), there)]
            return [f"number {thousands(event.number)}"], notes
        case events.PollSent() | events.PollHeard():
            n_s = [] if event.stp.type == SDP else [f"N(S) {thousands(event.n_s)}"]
            return [*n_s, f"N(PS) {event.stp.n_ps}"], []
        case events.ReportHeard():
            return _report(event), [event.fault] if event.fault else []
        case events.ReportSent():
            return _report(event), []
        case events.Other():
            return [], [event.ignored] if event.ignored else []


def _report(event: events.ReportHeard | events.ReportSent) -> list[str]:
    n_ps = event.stp.n_ps
    texts = [f"N(R) {thousands(event.n_r)}", f"N(MR) {thousands(event.n_mr)}"]
    texts += [f"N(PS) {n_ps}"] if n_ps is not None else []
    listed = ", ".join(thousands(number) for number in event.elements)
    return [*texts, f"list {listed}"] if listed else texts


def _scene(trace: Trace, wanted: Collection[int]) -> Scene | None:
    return choose_scene(read_flows(trace), wanted, make_scene)


def make_scene(flow: Flow) -> Scene:
    """Draw the direction of ``flow`` that carries more SDs."""
    others = tuple((event.packet.number, event.time, event.stp.name) for event in flow.others)
    outgoing = len(flow.sds_sent) >= len(flow.sds_heard)
    seen: set[int] = set()
    data = []
    for event in flow.sds_sent if outgoing else flow.sds_heard:
        number = event.number
        again = not event.new if isinstance(event, events.SdSent) else number in seen
        data.append(Mark(event.packet.number, event.time, number, number + 1, again))
        seen.add(number)
    polls = tuple(
        Mark(event.packet.number, event.time, event.n_s, event.n_s, duplicate=True)
        for event in (flow.polls_sent if outgoing else flow.polls_heard)
        if event.stp.type == POLL
    )
    reports = [
        Mark(
            event.packet.number, event.time, event.n_r, event.n_r,
            blocks=tuple(events.runs(event.elements, 0)), edge=event.n_mr,
        )
        for event in (flow.reports_heard if outgoing else flow.reports_sent)
    ]  # fmt: skip
    in_order = sorted(reports, key=lambda mark: mark.time)
    return Scene(outgoing, tuple(data), tuple(in_order), others, polls)


REPORTER = Reporter(
    describe=_describe,
    plain=_plain,
    scene=_scene,
    legend=LEGEND,
    unit="SD number",
    counting="SDs, N(S), N(R) and list elements are counted from 0, the SD numbered ISS",
    layers=dissection,
)
