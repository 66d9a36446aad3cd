"""The oracles that hold for every protocol: each sees what it is for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import Packet
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.binding import Piece, binding_of
from bentpipe_fuzz.campaign.oracle import (
    FARTHEST,
    MOST_AT_ONCE,
    is_bounded,
    signature,
    streams_hold,
)
from bentpipe_fuzz.campaign.run import Conversation, play
from bentpipe_fuzz.campaign.script import Impairment, Script, Step
from bentpipe_fuzz.campaign.speed import reference_of
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.common.subject import subject_of


def piece(
    start: int, octets: bytes, *, outgoing: bool = True, echoes: bool = False, packet: int = 1
) -> Piece:
    return Piece("a", outgoing, start, octets, packet, echoes)


IN = {"outgoing": False, "echoes": True}


@pytest.mark.parametrize(
    ("pieces", "sentence"),
    [
        ([piece(0, b"abc"), piece(1, b"bc")], ""),
        ([piece(0, b"abc"), piece(1, b"bd")], "sent again, the data was another"),
        ([piece(0, b"a"), piece(5, b"f"), piece(0, b"abcdef")], ""),
        ([piece(0, b"a"), piece(5, b"f"), piece(0, b"abcdex")], "sent again"),
        ([piece(0, b"abc", **IN), piece(0, b"abc", echoes=True)], ""),
        ([piece(0, b"abc", **IN), piece(0, b"abx", echoes=True)], "had not been sent"),
        ([piece(0, b"abc", **IN), piece(0, b"abcd", echoes=True)], "had not been sent"),
        ([piece(0, b"abc", outgoing=False), piece(0, b"xyz")], ""),
        # A tester whose data offset covers some of its data says two things of one place.
        ([piece(0, b"abcd", **IN), piece(0, b"cd", **IN), piece(0, b"abcd", echoes=True)], ""),
        ([piece(0, b"abcd", **IN), piece(0, b"cd", **IN), piece(0, b"cd", echoes=True)], ""),
        (
            [piece(0, b"abcd", **IN), piece(0, b"cd", **IN), piece(0, b"bb", echoes=True)],
            "had not been sent",
        ),
        (
            [piece(0, b"abcd", **IN), piece(0, b"cd", **IN), piece(0, b"abcdd", echoes=True)],
            "had not been sent",
        ),
        ([piece(FARTHEST, b"a"), piece(FARTHEST, b"b")], ""),
    ],
)
def test_stream_never_changes_and_echoes_what_came(pieces: list[Piece], sentence: str) -> None:
    found = list(streams_hold(pieces))
    assert len(found) == bool(sentence)
    assert not sentence or sentence in found[0].sentence


@pytest.mark.parametrize(("packets", "found"), [(MOST_AT_ONCE, 0), (MOST_AT_ONCE + 1, 1)])
def test_packets_without_an_arrival_are_bounded(packets: int, found: int) -> None:
    sent = [Packet(n, 0.0, "iut", True, None, b"") for n in range(packets)]
    came = [Packet(0, 0.0, "iut", False, None, b"")]
    assert len(list(is_bounded([*sent[:100], *came, *sent]))) == found


def test_signature_is_requirement_state_and_what_was_answered() -> None:
    arrivals = [(1, "", "S"), (4, "established", "A+data"), (9, "close-wait", "A")]

    def of(*packets: int) -> Any:
        return signature(Finding("SNR-X", Verdict.FAIL, packets), arrivals)

    assert of(5, 1) == ("SNR-X", "established", "A+data")
    assert of() == ("SNR-X", "close-wait", "A")
    assert of(0) == ("SNR-X", "", "")


class Host:
    """A host with a defect, around the true reference."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


class Chatterbox(Host):
    """Says the last thing again twenty-five minutes later."""

    _last: bytes = b""
    _again = 0.0

    def transmit(self, now: float) -> list[bytes]:
        packets = list(self._host.transmit(now))
        if packets:
            self._last, self._again = packets[-1], now + 1500.0
        elif self._last and now >= self._again:
            self._again = now + 1500.0
            return [self._last]
        return packets

    def next_deadline(self) -> float | None:
        deadline: float | None = self._host.next_deadline()
        return self._again if deadline is None and self._last else deadline


class Sulker(Host):
    """Takes nothing more from anybody once somebody has closed."""

    _sulks = False

    def receive(self, packet: bytes, now: float) -> None:
        self._sulks = self._sulks or bool(packet[33] & 1)
        if not self._sulks:
            self._host.receive(packet, now)


class Hoarder(Host):
    """Remembers whatever it gets."""

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self._kept: list[bytes] = []

    def receive(self, packet: bytes, now: float) -> None:
        self._kept.append(bytes(64) + packet)
        self._host.receive(packet, now)


class Echoing(Host):
    """Says everything that a port refuses, or that does not belong here, a hundred times."""

    def transmit(self, now: float) -> list[bytes]:
        packets = list(self._host.transmit(now))
        return [copy for item in packets for copy in [item] * (100 if item[33] & 4 else 1)]


def played(
    script: Script, defect: Callable[[Any], Any] = lambda host: host, mutant: str = ""
) -> Conversation:
    record = suite_named(script.suite)
    subject = subject_of(record.folder)
    make: Any = lambda *how: defect(subject.make(*how))  # noqa: E731
    configure = load_mutants()[mutant].configure if mutant else lambda setup: setup
    lane, settings = stage(replace(subject, make=make), record.profiles[0], "", 0, configure)
    return play(script, lane, settings)


ECHO = Script(
    "snr", "honest",
    (Step("open", {"service": "echo"}), Step("write", {"octets": 3000}), Step("settle"),
     Step("close"), Step("settle")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("defect", "oracle", "sentence"),
    [
        (Chatterbox, "FUZZ-QUIET", "after the end of a conversation"),
        (Sulker, "FUZZ-SERVES", "afterwards the echo service does not serve"),
    ],
)
def test_defect_of_a_host_is_seen(defect: type[Host], oracle: str, sentence: str) -> None:
    assert not played(ECHO).findings
    found = [item for item in played(ECHO, defect).findings.values() if item.requirement == oracle]
    assert len(found) == 1 and sentence in found[0].sentence


STRAYS = Script(
    "snr", "off-path",
    (Step("open", {"service": "echo"}), Step("write", {"octets": 300}), Step("settle"),
     *(Step("stray", {"flags": "A", "seq": n, "port": 47}) for n in range(8))),
)  # fmt: skip
UNPROVEN = Script("snr", "off-path", (Step("syn", {"service": 47}), Step("wait")))
MUCH = Script(
    "snr", "honest",
    (Step("open", {"service": "discard"}),
     *(step for _ in range(6) for step in (Step("write", {"octets": 40_000}), Step("settle")))),
)  # fmt: skip


@pytest.mark.parametrize(
    ("script", "defect", "oracle"),
    [
        (STRAYS, Echoing, "FUZZ-WORK"),
        (UNPROVEN, Echoing, "FUZZ-AMPLIFY"),
        (MUCH, Hoarder, "FUZZ-MEMORY"),
    ],
)
def test_cost_is_seen_by_its_oracle_alone(script: Script, defect: type[Host], oracle: str) -> None:
    assert not played(script).findings
    assert {item.requirement for item in played(script, defect).findings.values()} == {oracle}


def test_retransmission_of_other_octets_is_seen() -> None:
    script = replace(ECHO, link=(Impairment("to-tester", "lose", first=3),))
    assert not played(script).findings
    assert played(script, mutant="snr-retransmission-of-other-octets").breaks("FUZZ-STREAM")


@pytest.mark.parametrize("suite", ["snr", "stp", "rwbp"])
@pytest.mark.parametrize("first", [1, 2])
def test_call_that_the_link_damages_breaks_no_script(suite: str, first: int) -> None:
    _, lane, settings = reference_of(suite)
    damage = Impairment("to-tester", "flip", first=first, value=3)
    conversation = play(Script(suite, "honest", (Step("call"),), (damage,)), lane, settings)
    assert not conversation.outcome.broken and not conversation.findings


@pytest.mark.parametrize("suite", ["snr", "stp", "rwbp"])
def test_refusal_is_a_packet_that_ends_the_conversation(suite: str) -> None:
    """A tester that opens and forgets: what the refusals do not end would be heard later."""
    record, lane, settings = reference_of(suite)
    script = Script(
        suite, "honest", (Step("open"), Step("wait", {"seconds": 3.0})),
        (Impairment("to-iut", "lose", "second", 2.0, 1e6),),
    )  # fmt: skip
    assert not play(script, lane, settings).findings
    assert binding_of(record).refuse is not None


@pytest.mark.parametrize(("suite", "mutant"), [("snr", "snr-never-calls"), ("stp", "")])
def test_user_whose_call_brings_no_packet_is_a_violation(suite: str, mutant: str) -> None:
    ring = Script(suite, "honest", (Step("ring"),))
    delayed = replace(ring, link=(Impairment("to-tester", "lose", "second", 0.0, 1, 1000.0),))
    assert not played(ring).findings
    assert not played(delayed).findings
    if mutant:
        assert played(ring, mutant=mutant).breaks("SNR-CON-043")


def test_tester_that_receives_answers_probes_for_minutes() -> None:
    """RWBP's have no data; who takes answered ones for unanswered gives up in the end."""
    shut = Script(
        "rwbp", "honest",
        (Step("open", {"service": "chargen", "window": 2920}), Step("receive", {"segments": 2}),
         Step("offer", {"window": 0}), Step("receive", {"seconds": 600.0})),
    )  # fmt: skip
    assert not played(shut).findings
    assert played(shut, mutant="rwbp-gives-up-a-closed-window").breaks("RWBP-WN-010")


def test_report_that_a_whole_flight_is_missing_is_answered_by_all_of_it() -> None:
    far = 300 * 536
    script = Script(
        "rwbp", "honest",
        (Step("open", {"service": "chargen", "window": 1 << 20, "mss": 536}), Step("wait"),
         Step("segment", {"ack": ("zero", 0), "sack": [[("zero", far), ("zero", far + 536)]]}),
         Step("wait")),
        seed=64,
    )  # fmt: skip
    found = played(script)
    assert "RWBP-EC-002" in found.met and not found.findings


@pytest.mark.parametrize("others", [
    {}, {"timestamps": True, "window_scale": 7}, {"sack": False, "timestamps": True},
    {"sack": False, "window_scale": 7, "mss": 536},
])  # fmt: skip
def test_octets_in_place_of_an_option_are_cut_to_what_others_leave(others: dict[str, Any]) -> None:
    opened = Step("open", {"option": 4 * "fd0a5257425010010800c805", **others})
    found = played(Script("rwbp", "honest", (opened, Step("wait"))))
    assert not found.outcome.broken and not found.findings
