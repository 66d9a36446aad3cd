"""Packet ladders: who sent what when, around the packets that prove a finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bentpipe_conformance.analysis.flow import Ack, Arrival, Reply, Sent, read_flows
from bentpipe_conformance.report.transit import Transit
from bentpipe_conformance.trace import Packet, Trace

AROUND = 6
"""Packets shown before and after each packet of interest."""

OPENING = 30
"""Rows shown of a case without packets of interest."""

LIMIT = 90
"""Rows of one ladder; a longer one would not be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """One packet, or a gap of ``skipped`` packets that are not shown.

    Attributes:
        number: frame number in ``iut.pcapng``; 0 for a packet that never got there.
        at_iut, at_peer: seconds at either side; None where it was not seen.
        outgoing: True from the implementation to the tester.
        what: flags and offsets.
        notes: what is remarkable about it.
        marked: whether a finding names it.
    """

    number: int = 0
    at_iut: float | None = None
    at_peer: float | None = None
    outgoing: bool = False
    what: str = ""
    notes: tuple[str, ...] = ()
    marked: bool = False
    lost: bool = False
    skipped: int = 0


def thousands(number: float) -> str:
    """Digits in groups of three, set apart by narrow no-break spaces."""
    return f"{number:,}".replace(",", "\u202f")


def _span(start: int, end: int) -> str:
    return f"{thousands(start)}–{thousands(end)}"


def ladder(trace: Trace, transit: Transit, numbers: Sequence[int]) -> list[Row]:
    """Rows around the frame ``numbers``; the beginning of the trace when there are none."""
    packets = list(trace.at("iut"))
    if not packets:
        return []
    events = _describe(trace)
    marked = set(numbers)
    rows = [
        Row(
            packet.number,
            packet.time,
            transit.at_peer.get(packet.number),
            packet.outgoing,
            *events.get(packet.number, _plain(packet)),
            marked=packet.number in marked,
            lost=packet.number in transit.lost_forward,
        )
        for packet in packets
    ]
    rows += [
        Row(0, None, packet.time, False, *_plain(packet), lost=True)
        for packet in transit.lost_return
    ]
    rows.sort(key=_when)
    return _only(rows, marked)


def _when(row: Row) -> float:
    time = row.at_iut if row.at_iut is not None else row.at_peer
    return time if time is not None else 0.0


def _only(rows: list[Row], marked: Collection[int]) -> list[Row]:
    places = [index for index, row in enumerate(rows) if row.number in marked]
    keep: list[int] = [] if places else list(range(min(OPENING, len(rows))))
    for place in places:
        around = range(max(0, place - AROUND), min(len(rows), place + AROUND + 1))
        keep += [index for index in around if index not in keep]
        if len(keep) >= LIMIT:
            break
    keep.sort()
    shown: list[Row] = []
    expected = 0
    for index in keep:
        if index > expected:
            shown.append(Row(skipped=index - expected))
        shown.append(rows[index])
        expected = index + 1
    if expected < len(rows):
        shown.append(Row(skipped=len(rows) - expected))
    return shown


def _plain(packet: Packet) -> tuple[str, tuple[str, ...]]:
    """What can be said of a packet outside any connection, or not seen at the IUT's side."""
    if packet.tcp is None:
        return f"not TCP over IPv4, {len(packet.data)} octets", ()
    tcp = packet.tcp
    names = {"S": "SYN", "F": "FIN", "R": "RST", "A": "ack"}
    flags = "+".join(names[letter] for letter in tcp.flag_names if letter in names)
    size = f" · {len(tcp.payload)} octets of data" if tcp.payload else ""
    return f"{flags or 'no flags'}{size}", () if tcp.checksum_ok else ("wrong checksum",)


def _describe(trace: Trace) -> dict[int, tuple[str, tuple[str, ...]]]:
    what: dict[int, list[str]] = {}
    notes: dict[int, list[str]] = {}
    for flow in read_flows(trace):
        for packet in flow.packets:
            what[packet.number] = _opening(packet)
            notes[packet.number] = []
        for event in flow.events:
            number = event.packet.number
            texts, remarks = _event(event)
            what[number] += texts
            notes[number] += remarks
    return {
        number: (" · ".join(texts) or "no flags", tuple(notes[number]))
        for number, texts in what.items()
    }


def _opening(packet: Packet) -> list[str]:
    tcp = packet.tcp
    assert tcp is not None
    special = [name for name in ("SYN", "FIN", "RST") if name[0] in tcp.flag_names]
    texts = ["+".join(special)] if special else []
    if "S" in tcp.flag_names:
        options = {
            f"MSS {tcp.mss}": tcp.mss is not None,
            "SACK permitted": tcp.sack_permitted,
            f"window scale {tcp.window_scale}": tcp.window_scale is not None,
            "timestamps": tcp.tsval is not None,
            f"window {thousands(tcp.window)}": True,
        }
        texts += [text for text, there in options.items() if there]
    return texts


def _event(event: Sent | Ack | Arrival | Reply) -> tuple[list[str], list[str]]:
    match event:
        case Sent():
            again = event.retransmission
            notes = [f"transmission {event.transmission}"] if again else []
            return _data(event), notes
        case Arrival():
            notes = ["out of order"] if event.out_of_order else []
            notes += ["duplicate data"] if event.duplicate else []
            notes += [] if event.acceptable else ["not acceptable"]
            return _data(event), notes
        case Ack():
            notes = [f"duplicate {event.duplicates}"] if event.duplicate else []
            notes += ["ancient"] if event.ancient else []
            notes += ["acknowledges what was not sent"] if event.beyond else []
            notes += ["D-SACK"] if event.dsack else []
            notes += ["invalid SACK block"] if event.invalid_blocks else []
            blocks = (*((event.dsack,) if event.dsack else ()), *event.blocks)
            return _ack(event.ack, event.window, (*blocks, *event.invalid_blocks)), notes
        case Reply():
            return ([] if event.payload else _ack(event.ack, event.window, event.blocks)), []


def _data(event: Sent | Arrival) -> list[str]:
    tcp = event.packet.tcp
    return [f"data {_span(event.start, event.end)}"] if tcp and tcp.payload else []


def _ack(ack: int, window: int, blocks: Sequence[tuple[int, int]]) -> list[str]:
    texts = [f"ack {thousands(ack)}"]
    if blocks:
        texts.append("SACK " + ", ".join(_span(*block) for block in blocks))
    return [*texts, f"window {thousands(window)}"]
