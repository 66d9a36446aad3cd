"""Captures of right implementations on which a verdict was wrong, headers only.

Made on Linux 6.18 in network namespaces (a, b, va, cookies, fastopen, ts_recent), by ns-3.37 (m) or
on the Internet (m57). Each accusation named here was made once, and was wrong.
"""

from __future__ import annotations

import pytest

from .conftest import Judge

ROWS = [
    ("a002", None, "RCV-007 RCV-010", "beyond a shrunken edge data is refused"),
    ("a031", None, "FR-001", "a recovery goes on unseen"),
    ("a045", None, "FR-003 SAK-006", "small segments count as segments"),
    ("a203", None, "ACK-007", "paced, and written by the user"),
    ("a218", None, "ACK-007", "paced, and written by the user"),
    ("a237", None, "ACK-007", "a paced go-back-N"),
    ("a277", None, "RCV-007 RCV-010", "beyond a shrunken edge data is refused"),
    ("a277", "10.9.0.2", "TS-001", "the far end, before its losses"),
    ("a419", None, "FR-003 SAK-006", "an advancing acknowledgment counts too"),
    ("a429", None, "FR-003 SAK-006", "an advancing acknowledgment counts too"),
    ("a437", None, "FR-003 SAK-006", "RACK waits no longer"),
    ("b029", None, "WIN-010", "SACK blocks leave less room"),
    ("b422", None, "FR-005 RCV-007", "RACK goes by time; too soon to have been looked at"),
    ("cookies", "10.9.0.2", "OPT-001 OPT-002 OPT-003", "SYN cookies keep no options"),
    ("fastopen_client_cookie-less-sendto", None, "ACK-002 RCV-006", "data on the SYN"),
    ("fastopen_client_simultaneous-fast-open", None, "ACK-002 RCV-009", "data on the SYN"),
    ("fastopen_client_synack-data", None, "ACK-002 RCV-006", "data on the SYN-ACK"),
    ("lossy_a412", None, "ACK-002 RCV-006 TS-001", "the capture lost packets"),
    ("m055-snd", None, "FR-003 SAK-006", "an advancing acknowledgment counts too"),
    ("m059-snd", None, "ACK-007", "an unpaced burst of the user's"),
    ("m061-snd", None, "FR-003 SAK-006 FR-001", "the SYN's window is not scaled"),
    ("m57-long-49600-80", "65.54.95.185", "RTO-003 RTO-004", "recorded twice"),
    ("ts_recent_invalid_ack", None, "TS-001 TS-004", "dropped before TS.Recent moved"),
    ("va1", "10.9.0.1", "WIN-010", "super-segments are no segments"),
    ("va4", None, "TS-001 SAK-015", "a queue of the host's own"),
    ("va8", "10.9.0.1", "WIN-010", "super-segments are no segments"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "iut", "requirements"),
    [pytest.param(*row[:3], id=f"{row[0]}: {row[3]}") for row in ROWS],
)
def test_right_implementation_is_not_accused(
    judge: Judge, name: str, iut: str | None, requirements: str
) -> None:
    analysis = judge(name, iut)
    rows = {row.requirement.id: row for row in analysis.rows}
    wrong = {
        short: rows[f"SNR-{short}"].sentence
        for short in requirements.split()
        if rows[f"SNR-{short}"].violations
    }
    assert not wrong
    assert not [row.sentence for row in analysis.rows if "the checker broke" in row.sentence]


def test_linux_violates_no_must_on_any_capture(judge: Judge) -> None:
    accused = {}
    for name, iut in dict.fromkeys((row[0], row[1]) for row in ROWS if row[0][0] != "m"):
        for row in judge(name, iut).rows:
            if row.violations and row.requirement.level == "MUST":
                accused[name, row.requirement.id] = row.sentence
    assert not accused
