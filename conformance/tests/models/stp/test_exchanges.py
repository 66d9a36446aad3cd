"""Traces of the reference's STP transfers against StpData, and traces with one event changed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.binding import TraceProblem
from bentpipe_conformance.models.traces import Trace, read_trace
from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.receiver import Receiver
from bentpipe_reference.stp.recording import main, record
from bentpipe_reference.stp.sender import Sender, SentSd

from ..conftest import Rejections
from .conftest import Checked, Event, judged, lines, written

BEGIN = {"event": "begin", "protocol": "stp-data", "profile": "stp1e2", "window": 8}
CALL = {"event": "begin", "end": 7, "vt_s": 1}
SENDER = {"vt_s": 2, "vt_a": 0, "vt_ms": 4, "vt_ps": 0, "vt_pa": 0, "queue": []}
SEND = {"event": "send", "end": 7, "n": 1, **SENDER, "kept": [[0, 0], [1, 0]]}
NOTHING = {"vt_a": 0, "vt_ms": 4}
RECEIVER = {"end": 9, "peer_end": 7, "vr_r": 0, "vr_h": 2, "vr_mr": 8, "held": [1]}
ARRIVAL = {"event": "sd", "n": 1, "gap": [0, 1], **RECEIVER}


def read(folder: Path, *events: Event) -> Trace:
    return read_trace(written(folder / "x.ndjson", BEGIN, *events))


def test_events_of_one_stream_become_records(tmp_path: Path) -> None:
    stat = {"event": "stat", "end": 7, "n_r": 7, "n_mr": 15, "n_ps": 1, "valid": True, **SENDER}
    stat |= {"kept": [], "elements": [7, 9, 11, 12]}
    trace = read(tmp_path, CALL, SEND, ARRIVAL, stat)
    assert [step.kind for step in trace.steps] == ["call", "send", "sd", "stat"]
    assert "kept |-> (0 :> 0 @@ 1 :> 0)" in trace.steps[1].text()
    assert "held |-> {1}, gap |-> {0}" in trace.steps[2].text()
    assert "kept |-> <<>>, gaps |-> {7, 8, 11}, h |-> 12, lo |-> 7" in trace.steps[3].text()


def test_stat_that_answers_no_poll_is_an_announcement(tmp_path: Path) -> None:
    stat = {"event": "stat", "end": 7, "n_r": 7, "n_mr": 15, "n_ps": 0, "valid": True, **SENDER}
    trace = read(tmp_path, CALL, {**stat, "kept": [], "elements": []})
    assert [step.kind for step in trace.steps] == ["call", "credit"]


def test_call_that_was_given_a_cookie_begins_anew(tmp_path: Path) -> None:
    again = {"event": "begin", "end": 8, "vt_s": 1}
    refused = {"event": "receive", "packet": "BGREJ", "end": 8, "peer_csn": 7, **NOTHING}
    trace = read(tmp_path, {**CALL, "vt_s": 0}, again, refused, SEND, {**SEND, "end": 8})
    told = [(step.kind, step.fields["vt_s"], step.line) for step in trace.steps]
    assert told == [("call", 0, 2), ("anew", 1, 4), ("send", 2, 6)]


def test_events_of_the_other_stream_left_out(tmp_path: Path) -> None:
    other = {**SEND, "end": 9, "peer_end": 7}
    arrival = {**ARRIVAL, "end": 7, "peer_end": 9}
    begin = {**CALL, "end": 9}
    trace = read(tmp_path, CALL, begin, other, arrival, {"event": "outcome"}, SEND)
    assert [(step.kind, step.line) for step in trace.steps] == [("call", 2), ("send", 7)]


def test_list_without_elements_speaks_of_nothing_beyond_n_r(tmp_path: Path) -> None:
    answer = {"event": "poll_arrives", "n_s": 1, "n_ps": 1, "elements": [], **RECEIVER}
    step = read(tmp_path, CALL, {**answer, "vr_r": 3}).steps[1]
    assert step.fields["gaps"] == frozenset() and step.fields["h"] == 3


@pytest.mark.parametrize("elements", [[5, 5], [5, 4], [1, 3, 3, 4]])
def test_list_that_does_not_rise_is_none_of_the_model(tmp_path: Path, elements: list[int]) -> None:
    answer = {"event": "poll_arrives", "n_s": 1, "n_ps": 1, "elements": elements, **RECEIVER}
    step = read(tmp_path, CALL, answer).steps[1]
    assert step.fields["gaps"] == frozenset({-1}) and step.fields["h"] == -1


def test_gap_that_does_not_rise_is_none_of_the_model(tmp_path: Path) -> None:
    step = read(tmp_path, CALL, {**ARRIVAL, "gap": [1, 0]}).steps[1]
    assert step.fields["gap"] == frozenset({-1})


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({**ARRIVAL, "gap": [0]}, "line 3: 'gap' is not a pair"),
        ({**ARRIVAL, "gap": [0, 2**31 - 1]}, "line 3: 0 to 2147483647 is not a run of at most"),
        ({**ARRIVAL, "held": ["x"]}, "line 3: 'held' is not an array of numbers"),
        ({**SEND, "kept": [[1]]}, "line 3: 'kept' does not consist of pairs"),
        ({**SEND, "kept": [1]}, "line 3: a pair of 'kept' is not an array of numbers"),
        ({**SEND, "n": 2**31}, "line 3: 'n' exceeds"),
        ({**SEND, "vt_a": None}, "line 3: 'send' lacks 'vt_a'"),
        ({**SEND, "event": "odd"}, "line 3: the event 'odd' is none of"),
    ],
)
def test_event_that_is_none_refused(tmp_path: Path, event: Event, says: str) -> None:
    with pytest.raises(TraceProblem, match=says):
        read(tmp_path, CALL, event)


def test_data_before_any_begin_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceProblem, match="line 2: 'send' comes before any BEGIN"):
        read(tmp_path, SEND)


# Against the model


def link(rate: float) -> LinkProfile:
    """Loses, reorders and doubles, both ways."""
    direction = Direction(
        1_300_000, 0.1, 50, loss_probability=rate, reorder_probability=rate, reorder_delay_s=0.05,
        duplicate_probability=rate / 2,
    )  # fmt: skip
    return LinkProfile("traced", "", "", direction, direction)


def recorded(
    seed: int,
    octets: int = 30_000,
    rate: float = 0.08,
    parts: Parts = TRUE_PARTS,
    **settings: Any,
) -> list[Event]:
    """A transfer of about 100 events; every third one's numbers wrap."""
    iss = None if seed % 3 else 2**24 - 5
    config = StpConfig(credit=(32, 4)[seed % 2], iss=iss, **settings)
    return record(link(rate), config, octets, parts=parts, seed=seed).events


def sender_of(events: list[Event]) -> int:
    """The CSN of the stream's sender, which a call anew changes."""
    csn: int = next(event["peer_end"] for event in events if event["event"] == "sd")
    return csn


def changed(events: list[Event], name: str, seed: int) -> tuple[list[Event], int]:
    """A copy with one event changed, and its line."""
    kinds, fits, change = CHANGES[name]
    near = sender_of(events)
    ours = [
        at
        for at, event in enumerate(events[1:], start=1)
        if event["event"] in kinds
        and near == event["peer_end" if "vr_h" in event else "end"]
        and fits(event)
    ]
    at = random.Random(seed).choice(ours)
    event = json.loads(json.dumps(events[at]))
    change(event)
    return [*events[:at], event, *events[at + 1 :]], at + 1


def added(field: str, number: int) -> Callable[[Event], None]:
    def change(event: Event) -> None:
        event[field] += number

    return change


def put(field: str, value: Any) -> Callable[[Event], None]:
    def change(event: Event) -> None:
        event[field] = value

    return change


def restamp(event: Event) -> None:
    event["kept"][-1][1] += 1


def always(_: Event) -> bool:
    return True


CHANGES: dict[str, tuple[tuple[str, ...], Callable[[Event], bool], Callable[[Event], None]]] = {
    "another SD sent": (("send",), always, added("n", 1)),
    "another SD sent again": (("retransmit",), always, added("n", 1)),
    "a POLL's number left out": (("poll",), always, added("n_ps", 1)),
    "a POLL with another N(S)": (("poll",), always, added("n_s", 1)),
    "VT(A) too high": (("stat",), always, added("vt_a", 1)),
    "a report nobody sent": (("stat", "ustat"), always, added("n_mr", 1)),
    "a list with another bound": (
        ("stat",), lambda event: bool(event["elements"]),
        lambda event: event["elements"].append(99),
    ),
    "an SD queued for nothing": (("send",), always, put("queue", [0])),
    "another stamp": (("send", "poll"), lambda event: bool(event["kept"]), restamp),
    "a gap not reported": (("sd",), lambda event: event["gap"] is not None, put("gap", None)),
    "a gap reported for nothing": (("sd",), lambda event: event["gap"] is None, put("gap", [0, 1])),
    "an SD nobody sent": (("sd",), always, put("n", 900)),
    "VR(H) too high": (("sd", "poll_arrives"), always, added("vr_h", 1)),
    "credit beyond the buffer": (("poll_arrives",), always, added("vr_mr", 100)),
    "an SD held that never came": (("sd", "poll_arrives"), always, put("held", [800])),
    "a report discarded": (
        ("stat",), lambda event: event["valid"] and event["n_ps"] == event["vt_ps"],
        put("valid", False),
    ),
}  # fmt: skip


def test_transfer_of_the_reference_is_one_of_the_model(tmp_path: Path, checked: Checked) -> None:
    events = recorded(21)
    traces = {"true": events}
    expected: dict[str, int | None] = {"true": None}
    for name in CHANGES:
        traces[name], expected[name] = changed(events, name, seed=1)
    found = judged(tmp_path, checked, traces)
    assert lines(found) == expected
    kinds = {step.kind for step in found["true"].trace.steps}
    assert kinds >= {
        "send", "retransmit", "poll", "stat", "ustat", "sd", "poll_arrives", "announce", "bgak",
        "call", "anew",
    }  # fmt: skip
    guards = {name: item.guard for name, item in found.items()}
    assert "(STP-DT-016)" in guards["another SD sent"]
    assert "STP-DT-001" in guards["a gap not reported"]
    assert "no such STAT" in guards["a list with another bound"]
    assert "STP-DT-021" in guards["credit beyond the buffer"]


def has_cut_list(events: list[Event]) -> bool:
    ours = [event for event in events if event["end"] == sender_of(events)]
    return any(
        first["event"] == second["event"] == "stat" and first["n_ps"] == second["n_ps"] > 0
        for first, second in pairwise(ours)
    )


def has_late_ustat(events: list[Event]) -> bool:
    return any(
        event["event"] == "late" and event["peer_end"] == sender_of(events) for event in events
    )


def test_lists_that_are_cut_and_ustats_that_wait_followed(tmp_path: Path, checked: Checked) -> None:
    cut = (recorded(seed, 60_000, 0.2, max_stat=3) for seed in range(20))
    waits = (recorded(seed, 60_000, 0.15, fifo=False) for seed in range(20))
    traces = {
        "cut": next(events for events in cut if has_cut_list(events[1:])),
        "waits": next(events for events in waits if has_late_ustat(events[1:])),
    }
    assert lines(judged(tmp_path, checked, traces)) == {"cut": None, "waits": None}


@pytest.mark.slow
def test_many_transfers_followed_and_each_change_found(tmp_path: Path, checked: Checked) -> None:
    traces: dict[str, list[Event]] = {}
    expected: dict[str, int | None] = {}
    for seed in range(20):
        events = recorded(seed)
        traces[f"{seed}"], expected[f"{seed}"] = events, None
        for name in random.Random(seed).sample(list(CHANGES), 2):
            try:
                copy, line = changed(events, name, seed)
            except IndexError:  # no event of this transfer fits
                continue
            traces[f"{seed}: {name}"], expected[f"{seed}: {name}"] = copy, line
    assert len(traces) >= 30
    assert sum(len(events) for events in traces.values()) >= 100 * len(traces) * 0.8
    found = judged(tmp_path, checked, traces)
    assert lines(found) == expected


@pytest.mark.slow
def test_hundred_changed_traces_are_each_rejected_with_line_rule_and_expected_value(
    tmp_path: Path, checked: Checked, rejections: Rejections
) -> None:
    traces: dict[str, list[Event]] = {}
    expected: dict[str, int | None] = {}
    for seed in range(20):
        events = recorded(seed)
        for name in random.Random(seed).sample(list(CHANGES), 7):
            try:
                copy, line = changed(events, name, seed)
            except IndexError:  # no event of this transfer fits
                continue
            if len(traces) < 100:
                traces[f"{seed}: {name}"], expected[f"{seed}: {name}"] = copy, line
    assert len(traces) == 100
    found = judged(tmp_path, checked, traces)
    assert lines(found) == expected
    rejections("stp-data", {name: item.guard for name, item in found.items()})


# References that break one rule


class RepeatsUnreported(Sender):
    """Sends again whatever a STAT reports missing, whenever that was sent."""

    def predates(self, _entry: SentSd, _n_ps: int) -> bool:
        return True


class RepeatsTwice(Sender):
    """Sends again whatever a USTAT reports missing, however often that was sent."""

    def sent_once(self, _entry: SentSd) -> bool:
        return True


class ReportsFromVrR(Receiver):
    """Reports every gap from VR(R) on, again and again."""

    def is_gap(self, number: int) -> bool:
        return number > self.vr_r

    def gap_start(self) -> int:
        return self.vr_r


class IgnoresPolls(Receiver):
    """A POLL does not raise VR(H)."""

    def raise_highest(self, _number: int) -> None:
        pass


BROKEN: dict[str, tuple[Parts, str]] = {
    "predates": (Parts(sender=RepeatsUnreported), "STP-DT-003"),
    "sent once": (Parts(sender=RepeatsTwice), "STP-DT-014"),
    "gap": (Parts(receiver=ReportsFromVrR), "STP-DT-001"),
    "highest": (Parts(receiver=IgnoresPolls), "STP-DT-002"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_endpoint_that_breaks_a_rule_rejected(tmp_path: Path, checked: Checked, name: str) -> None:
    parts, requirement = BROKEN[name]
    traces = {f"{seed}": recorded(seed, 60_000, 0.15, parts) for seed in range(0, 12, 2)}
    guards = [item.guard for item in judged(tmp_path, checked, traces).values()]
    assert any(requirement in guard for guard in guards), guards


# The recorder


def test_recorder_writes_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--drops", "7,9", "--return-drops", "3", "--octets", "9000", "--link", "lan"]) == 0
    path = tmp_path / "x.ndjson"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    trace = read_trace(path)
    assert dict(trace.constants) == {"Window": "32"}
    kinds = [step.kind for step in trace.steps]
    assert kinds[0] == "call" and kinds.count("retransmit") >= 1


@pytest.mark.parametrize(
    "arguments", [["--drops", "x"], ["--credit", "3"], ["--octets", "-1"], ["--link", "odd"]]
)
def test_recorder_given_nonsense_says_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "error:" in capsys.readouterr().err
