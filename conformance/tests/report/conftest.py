"""A small synthetic run: enough of a TCP sender and receiver to draw what a report draws."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.lane import Captured
from bentpipe_conformance.engine.trace import Trace, read_trace
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.captures import as_recorded
from bentpipe_conformance.evidence.records import Bed, CaseRecord, Implementation, RunRecord
from bentpipe_conformance.protocols.tcp.codec import Tcp, build
from bentpipe_conformance.protocols.tcp.suite import SUITE as SNR
from bentpipe_conformance.report.page import RequirementText

IUT, TESTER, MSS, DELAY, SERIAL = "10.77.0.2", "10.78.0.9", 1448, 0.3, 0.0093


@dataclass
class Transfer:
    """A transfer of ``total`` segments over a link that loses some, with SACK recovery.

    ``fault`` makes the sender retransmit the segment after each hole although it was SACKed.
    """

    total: int
    lost: set[int]
    iut_sends: bool = True
    fault: bool = False
    captured: list[Captured] = field(default_factory=list)
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _count: int = 0

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, action))

    def packet(
        self, time: float, from_sender: bool, segment: dict[str, Any], lost: bool = False
    ) -> float:
        """Capture at both ends; return the arrival time."""
        outgoing = from_sender is self.iut_sends
        src, dst = (IUT, TESTER) if outgoing else (TESTER, IUT)
        ports = (19, 40001) if outgoing else (40001, 19)
        defaults: dict[str, Any] = {"window": 65535, "payload": b"", "flags": 0x10}
        data = build(Tcp(src, dst, *ports, **(defaults | segment)))
        near, far = ("iut", "peer") if outgoing else ("peer", "iut")
        self.captured.append(Captured(time, near, outgoing, data))  # type: ignore[arg-type]
        if not lost:
            routed = data[:8] + b"\x3f" + data[9:10] + bytes(2) + data[12:]
            self.captured.append(Captured(time + DELAY, far, outgoing, routed))  # type: ignore[arg-type]
        return time + DELAY

    def run(self) -> list[Captured]:
        syn = {"seq": 999, "ack": 0, "flags": 2, "mss": 1460, "sack_permitted": True}
        answer = {"seq": 4999, "ack": 1000, "flags": 0x12, "mss": 1460, "sack_permitted": True}
        arrives = self.packet(0.01, not self.iut_sends, syn)
        arrives = self.packet(arrives, self.iut_sends, answer)
        self.out, self.back = (4999, 999) if self.iut_sends else (999, 4999)
        self.next, self.una, self.cwnd, self.busy = 0, 0, 4.0, 0.0
        self.sacked: set[int] = set()
        self.resent: set[int] = set()
        self.recover, self.dups = -1, 0
        self.have: set[int] = set()
        self.seen_lost: set[int] = set()
        if not self.iut_sends:
            arrives = self.packet(arrives, True, {"seq": 1000, "ack": 5000})
        self.at(arrives, lambda: self.send(arrives))
        while self._events:
            _, _, action = heapq.heappop(self._events)
            action()
        return as_recorded(self.captured)

    def emit(self, now: float, index: int) -> None:
        start = self.busy = max(self.busy, now) + SERIAL
        gone = index in self.lost and index not in self.seen_lost
        self.seen_lost |= {index} if gone else set()
        segment = {"seq": self.out + 1 + index * MSS, "ack": self.back + 1, "payload": b"b" * MSS}
        arrives = self.packet(start, True, segment, gone)
        if not gone:
            self.at(arrives, lambda: self.receive(arrives, index))

    def send(self, now: float) -> None:
        while self.next < self.total and self.next - self.una - len(self.sacked) < int(self.cwnd):
            self.emit(now, self.next)
            self.next += 1

    def receive(self, now: float, index: int) -> None:
        self.have.add(index)
        ack = next(n for n in range(self.total + 1) if n not in self.have)
        held = sorted(n for n in self.have if n > ack)
        blocks: list[tuple[int, int]] = []
        for n in held:
            if blocks and blocks[-1][1] == n:
                blocks[-1] = (blocks[-1][0], n + 1)
            else:
                blocks.append((n, n + 1))
        wire = tuple(
            (self.out + 1 + a * MSS, self.out + 1 + b * MSS) for a, b in reversed(blocks[-3:])
        )
        segment = {"seq": self.back + 1, "ack": self.out + 1 + ack * MSS, "sack": wire}
        arrives = self.packet(now, False, segment)
        self.at(arrives, lambda: self.acknowledged(arrives, ack, set(held)))

    def acknowledged(self, now: float, ack: int, held: set[int]) -> None:
        if ack > self.una:
            self.cwnd += 1 if self.recover < 0 and self.cwnd < 24 else 0.1
            self.una, self.dups = ack, 0
            if ack > self.recover:
                self.recover = -1
        else:
            self.dups += 1
        self.sacked = {n for n in held if n >= self.una}
        if self.dups == 3 and self.recover < 0:
            self.recover, self.cwnd = self.next - 1, self.cwnd / 2
        if self.recover >= 0:
            top = max(self.sacked, default=self.una)
            holes = [n for n in range(self.una, top) if n not in self.sacked | self.resent]
            for hole in holes[:1]:
                self.resent.add(hole)
                self.emit(now, hole)
                if self.fault and hole + 1 in self.sacked:
                    self.emit(now, hole + 1)
        self.send(now)


@dataclass
class Sample:
    """Everything `render_page` takes."""

    run: RunRecord
    result: dict[str, Any]
    texts: dict[str, RequirementText]
    cases: list[tuple[CaseRecord, list[Captured]]]

    def traces(self) -> list[tuple[CaseRecord, Trace]]:
        return [(record, read_trace(captured, suite=SNR)) for record, captured in self.cases]


def case(name: str, title: str, verdict: Verdict, reason: str, *findings: Finding) -> CaseRecord:
    return CaseRecord(
        id=name,
        title=title,
        purpose=f"{title}.\n\nThe tester opens chargen over the link and loses what the case "
        "needs lost; the checkers judge what the implementation then sends.",
        requirements=tuple(dict.fromkeys(item.requirement for item in findings)) or ("SNR-WS-001",),
        verdict=verdict,
        reason=reason,
        findings=findings,
        started=1_760_000_000.0,
        link_seconds=14.25,
        wall_seconds=0.61,
        tester_address=TESTER,
    )


def entry(
    name: str, level: str, title: str, verdict: str, reason: str, records: list[CaseRecord]
) -> dict[str, Any]:
    found = [
        {"case": r.id, "requirement": name, "verdict": f.verdict.value, "packets": list(f.packets),
         "sentence": f.sentence, "expected": f.expected, "actual": f.actual, "count": f.count}
        for r in records for f in r.findings if f.requirement == name
    ]  # fmt: skip
    return {
        "id": name, "level": level, "title": title, "verdict": verdict, "reason": reason,
        "exercised": sum(f["count"] for f in found),
        "cases": [r.id for r in records if name in r.requirements], "findings": found,
    }  # fmt: skip


TITLES = {
    "SNR-FR-001": ("MUST", "No fast retransmit before the third duplicate"),
    "SNR-FR-002": ("MUST", "Third duplicate starts fast retransmit"),
    "SNR-REC-003": ("MUST", "Nothing the receiver holds is sent again"),
    "SNR-REC-004": ("SHOULD", "Holes are repaired in order"),
    "SNR-RTO-001": ("MUST", "The timer backs off exponentially"),
    "SNR-RCV-002": ("MUST", "A segment above a hole is acknowledged at once"),
    "SNR-WS-001": ("MUST", "Window scale is applied to every window"),
    "SNR-LT-001": ("SHOULD", "Limited transmit sends new data on early duplicates"),
}


def _again(captured: list[Captured]) -> tuple[int, int]:
    """Frame numbers of a segment at the IUT's side that is sent twice in a row too often."""
    seen: dict[int, int] = {}
    trace = read_trace(captured, suite=SNR)
    for packet in trace.at("iut"):
        if packet.outgoing and packet.content and packet.content.payload:
            if packet.content.seq in seen and packet.content.seq - 5000 in {26 * MSS, 31 * MSS}:
                return packet.number, seen[packet.content.seq]
            seen[packet.content.seq] = packet.number
    raise AssertionError("the synthetic fault did not happen")


@pytest.fixture(scope="session")
def sample() -> Sample:
    clean = Transfer(140, {25, 30, 31, 70}).run()
    faulty = Transfer(140, {25, 30}, fault=True).run()
    receiving = Transfer(60, {12, 13}, iut_sends=False).run()
    again, first = _again(faulty)
    met = [
        Finding("SNR-FR-001", Verdict.PASS, (40,), "no retransmission on duplicate 1", count=6),
        Finding("SNR-FR-002", Verdict.PASS, (77, 76), "offset 36200 was retransmitted"),
    ]
    records = [
        (case("snr/fast-retransmit/third-duplicate",
              "Fast retransmit starts at the third duplicate", Verdict.PASS,
              "SNR-FR-002: offset 36200 was retransmitted on duplicate 3", *met), clean),
        (case("snr/recovery/two-holes", "Two holes in one window are repaired without waste",
              Verdict.FAIL, "SNR-REC-003: offset 37648 was sent again although it was SACKed",
              Finding("SNR-REC-003", Verdict.FAIL, (again, first),
                      "offset 37648 was sent again although it had been reported held",
                      "no retransmission of octets inside a reported SACK block",
                      f"packet {again} repeats offsets 37648 to 39096"),
              Finding("SNR-REC-004", Verdict.FAIL, (again,), "a later hole was repaired first"),
              *met), faulty),
        (case("snr/receiver/hole", "A receiver with a hole answers at once", Verdict.PASS,
              "SNR-RCV-002: 11 segments were answered at once",
              Finding("SNR-RCV-002", Verdict.PASS, (30,), "answered within 0.1 ms", count=11)),
         receiving),
        (case("snr/timeout/back-off", "The timer backs off", Verdict.INCONCLUSIVE,
              "SNR-RTO-001: the bed's timing error of 40 ms exceeds the margin of 20 ms",
              Finding("SNR-RTO-001", Verdict.INCONCLUSIVE, (),
                      "the bed's timing error of 40 ms exceeds the margin of 20 ms")), clean[:8]),
        (case("snr/window/scale", "Window scale", Verdict.UNSUPPORTED,
              "the conformance statement does not claim window_scale"), []),
    ]  # fmt: skip
    everything = [record for record, _ in records]
    told = {
        "SNR-REC-003": ("fail", "offset 37648 was sent again although it had been reported held"),
        "SNR-REC-004": ("fail", "a later hole was repaired first"),
        "SNR-RTO-001": (
            "inconclusive", "the bed's timing error of 40 ms exceeds the margin of 20 ms",
        ),
        "SNR-WS-001": ("unsupported", "the conformance statement does not claim window_scale"),
        "SNR-LT-001": ("error", "the script broke: KeyError: 'limited'"),
    }  # fmt: skip
    entries = [
        entry(name, level, title, *told.get(name, ("pass", "it held each time")), everything)
        for name, (level, title) in TITLES.items()
    ]
    verdicts = [item["verdict"] for item in entries]
    return Sample(
        run=RunRecord(
            bentpipe="0.1.0",
            command=("bentpipe", "certify", "linux", "--link", "geo"),
            iut=Implementation(
                "linux", "Linux 6.1 TCP (reno)", "the TCP of the bed's own kernel",
                {"sack": True, "timestamps": True, "congestion_control": "reno", "iw": 10},
            ),
            link={"id": "geo", "title": "geostationary, 600 ms", "forward": {"rate": 1.3e6,
                  "delay": 0.3}, "return": {"rate": 1.3e6, "delay": 0.3}},
            profile="rfc",
            bed=Bed("uml-virtual", "its kernel is cached and needs no root", "6.1.158 (UML)",
                    2e-5, {"delay_forward": 0.300012, "rate_forward": 1.2999e6, "loss": 0}),
            seed=20240611,
            python="3.11.7",
            scapy="2.6.1",
            started=1_760_000_000.0,
            finished=1_760_000_061.4,
        ),
        result={
            "format": "bentpipe-result/1",
            "verdict": "fail",
            "summary": {verdict.value: verdicts.count(verdict.value) for verdict in Verdict},
            "deviations": ["SNR-REC-004"],
            "requirements": entries,
            "cases": [],
        },
        texts={
            name: {
                "level": level,
                "title": title,
                "text": f"A sender {level} see to it: {title[0].lower()}{title[1:]}, also when "
                "several segments of one window were lost.",
                "source": "HK99 appendix rule 3; RFC 6675 section 4",
            }
            for name, (level, title) in TITLES.items()
        },
        cases=records,
    )  # fmt: skip
