"""What is found out about a capture, and how far the verdicts give way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from bentpipe_conformance.analysis.capture import Analysis, SideUnknown, parse_end
from bentpipe_conformance.benchmarks.captures import record, write_capture
from bentpipe_conformance.cli.analyze import analyze
from bentpipe_conformance.evidence.frames import CaptureError, Frame
from click.testing import CliRunner

from .conftest import Judge

SENDER, RECEIVER = "10.77.0.2", "10.78.0.2"


@cache
def transfer(*, receiver: bool = False) -> tuple[Frame, ...]:
    return tuple(record(400, loss=0.02, receiver=receiver))


def unmarked(frames: tuple[Frame, ...]) -> list[Frame]:
    return [replace(frame, outgoing=None) for frame in frames]


def kinds(analysis: Analysis) -> set[str]:
    return {remark.kind for remark in analysis.quality.remarks}


def statuses(analysis: Analysis) -> dict[str, str]:
    return {row.requirement.id: row.status for row in analysis.rows}


def test_capture_at_the_sender_judges_the_sender_unasked(judge: Judge) -> None:
    analysis = judge(unmarked(transfer()))
    assert analysis.iut == SENDER
    assert "answers within" in analysis.quality.side
    assert statuses(analysis)["SNR-SAK-004"] == "holds"
    assert not any(row.violations for row in analysis.rows)


def test_capture_at_the_receiver_judges_the_receiver_unasked(judge: Judge) -> None:
    analysis = judge(unmarked(transfer(receiver=True)))
    assert analysis.iut == RECEIVER
    assert statuses(analysis)["SNR-RCV-001"] == "holds"


def test_far_end_is_judged_by_its_handshake_alone_when_asked(judge: Judge) -> None:
    analysis = judge(unmarked(transfer(receiver=True)), SENDER)
    found = statuses(analysis)
    assert "elsewhere" in kinds(analysis)
    assert found["SNR-OPT-007"] == "holds"
    assert found["SNR-SAK-004"] == found["SNR-RTO-011"] == "not judgeable"
    row = next(row for row in analysis.rows if row.requirement.id == "SNR-SAK-004")
    assert row.sentence.startswith("not judgeable: the capture was not taken at the")


def test_marks_of_the_capturing_host_tell_its_side(judge: Judge) -> None:
    assert "marks" in judge(transfer()).quality.side


def test_lost_packets_of_the_capture_leave_only_what_segments_show_alone(judge: Judge) -> None:
    frames = [frame for number, frame in enumerate(transfer()) if number % 20 != 10]
    analysis = judge(frames)
    assert "gaps" in kinds(analysis)
    found = statuses(analysis)
    assert found["SNR-TS-002"] == "holds"
    assert found["SNR-SAK-004"] == "not judgeable"
    assert not any(row.violations for row in analysis.rows)


def test_packets_recorded_twice_count_once(judge: Judge) -> None:
    once = judge(transfer())
    copies = [
        replace(frame, time_ns=(frame.time_ns or 0) + later, data=frame.data)
        for frame in transfer()
        for later in (0, 3000)
    ]
    twice = judge(sorted(copies, key=lambda frame: frame.time_ns or 0))
    assert "twice" in kinds(twice)
    assert [(row.status, row.holds) for row in twice.rows] == [
        (row.status, row.holds) for row in once.rows
    ]


def test_cut_packets_are_judged_by_their_headers(judge: Judge) -> None:
    whole, frames = judge(transfer()), transfer()
    cut = judge([replace(f, data=f.data[:72], original_length=len(f.data)) for f in frames])
    assert "cut" in kinds(cut)
    assert [row.holds for row in cut.rows] == [row.holds for row in whole.rows]


def test_capture_that_begins_late_judges_nothing(judge: Judge) -> None:
    analysis = judge(transfer()[5:])
    assert kinds(analysis) >= {"late"}
    assert [analysis.verdict_of(item) for item in analysis.connections] == ["not judged"]
    assert not any(row.holds or row.violations for row in analysis.rows)


def test_length_of_zero_is_that_of_the_frame(judge: Judge) -> None:
    frames = [replace(f, data=f.data[:2] + b"\0\0" + f.data[4:]) for f in transfer()]
    assert [row.holds for row in judge(frames).rows] == [
        row.holds for row in judge(transfer()).rows
    ]


def ipv6(packet: bytes) -> bytes:
    source, destination = (b"\x20\x01\x0d\xb8" + b"\0" * 8 + packet[at : at + 4] for at in (12, 16))
    length = (len(packet) - 20 + 8).to_bytes(2, "big")
    options = b"\x06\0\x01\x04\0\0\0\0"  # destination options: padding
    return b"\x60\0\0\0" + length + b"\x3c\x40" + source + destination + options + packet[20:]


@pytest.mark.parametrize(
    ("link", "dressed"),
    [
        (1, lambda packet: b"\0" * 12 + b"\x81\x00\x00\x05\x08\x00" + packet),
        (1, lambda packet: b"\0" * 12 + b"\x88\xa8\0\5\x81\x00\x00\x06\x86\xdd" + ipv6(packet)),
        (9, lambda packet: b"\xff\x03\x00\x21" + packet),
        (101, ipv6),
    ],
    ids=["802.1Q", "QinQ and IPv6", "PPP", "raw IPv6"],
)
def test_link_types_and_ipv6_change_no_verdict(
    judge: Judge, link: int, dressed: Callable[[bytes], bytes]
) -> None:
    plain = judge(transfer())
    analysis = judge([replace(f, data=dressed(f.data)) for f in transfer()], link=link)
    assert [row.holds for row in analysis.rows] == [row.holds for row in plain.rows]


def test_both_ends_at_one_address_judge_the_called_one(judge: Judge) -> None:
    frames = [replace(f, data=f.data[:12] + b"\x7f\0\0\1" * 2 + f.data[20:]) for f in transfer()]
    analysis = judge(unmarked(tuple(frames)))
    assert [item.iut for item in analysis.connections] == [("127.0.0.1", 9)]


def test_nothing_that_tells_the_side_asks_for_it(judge: Judge) -> None:
    with pytest.raises(SideUnknown, match=r"--iut \(it has these hosts: "):
        judge("va8")


def test_unknown_host_is_told_the_ones_there_are(judge: Judge) -> None:
    with pytest.raises(CaptureError, match=r"10\.9\.9\.9; it has these hosts: "):
        judge(transfer(), "10.9.9.9")


def test_nothing_is_claimed_without_a_statement(judge: Judge) -> None:
    without = statuses(judge(transfer()))
    assert without["SNR-FR-002"] == without["SNR-CA-002"] == "not claimed"
    # What the handshake negotiated is claimed for that connection.
    assert without["SNR-TS-001"] == "holds"
    assert statuses(judge(transfer(), ics="linux"))["SNR-FR-002"] != "not claimed"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("192.0.2.1", ("192.0.2.1", 0)),
        ("192.0.2.1:80", ("192.0.2.1", 80)),
        ("2001:DB8::1", ("2001:db8::1", 0)),
        ("[2001:db8::1]:80", ("2001:db8::1", 80)),
    ],
)
def test_ends_are_read_as_people_write_them(text: str, end: tuple[str, int]) -> None:
    assert parse_end(text) == end


@pytest.mark.parametrize("text", ["host", "192.0.2.1:x", "192.0.2.1:99999", ""])
def test_other_words_are_no_end(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        parse_end(text)


def test_connections_are_judged_one_by_one_and_shown(tmp_path: Path) -> None:
    capture, page = tmp_path / "c.pcapng", tmp_path / "report.html"
    write_capture(capture, 900, 300)
    said = CliRunner().invoke(analyze, [str(capture), "--json", "--congestion-control", "reno"])
    assert said.exit_code == 0, said.output
    document = json.loads(said.stdout)
    names = {item["name"] for item in document["connections"]}
    assert len(names) == 3
    assert all(name.startswith(f"{SENDER}:") for name in names)
    assert document["stated"] == {"congestion_control": "reno"}
    holds = {row["id"]: row["holds"] for row in document["requirements"]}
    assert holds["SNR-OPT-007"] == 3
    shown = CliRunner().invoke(analyze, [str(capture), "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "at whose side it was taken" in shown.output
    text = page.read_text(encoding="utf-8")
    assert "Quality of the capture" in text
    assert all(name in text for name in names)


@pytest.mark.parametrize("options", [["--congestion-control", "tahoe"], ["--ics", "/no/file.toml"]])
def test_wrong_statement_is_wrong_usage(tmp_path: Path, options: list[str]) -> None:
    capture = tmp_path / "c.pcapng"
    write_capture(capture, 100, 100)
    assert CliRunner().invoke(analyze, [str(capture), *options]).exit_code == 2
