"""Protocol events: one per action of the models, with the variables that the action leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bentpipe_reference.common.link.profile import Direction, LinkProfile
from bentpipe_reference.common.tracing import EventTrace
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.transfer import stp_transfer


class SenderModel:
    """The sender's actions of StpData.tla, with poll numbers instead of ages."""

    def __init__(self) -> None:
        self.vt_s = self.vt_a = self.vt_ps = self.vt_pa = 0
        self.stamps: dict[int, int] = {}
        self.queue: set[int] = set()
        self.sent: dict[int, int] = {}

    def step(self, event: dict[str, Any]) -> None:
        getattr(self, event["event"])(event)
        assert (event["vt_s"], event["vt_a"]) == (self.vt_s, self.vt_a), event
        assert (event["vt_ps"], event["vt_pa"]) == (self.vt_ps, self.vt_pa), event
        assert event["queue"] == sorted(self.queue), event
        assert dict(event["kept"]) == self.stamps, event

    def send(self, event: dict[str, Any]) -> None:
        assert not self.queue and event["n"] == self.vt_s < event["vt_ms"]
        self.stamps[self.vt_s] = self.vt_ps
        self.sent[self.vt_s] = 1
        self.vt_s += 1

    def retransmit(self, event: dict[str, Any]) -> None:
        assert event["n"] == min(self.queue)
        self.queue.remove(event["n"])
        self.stamps[event["n"]] = self.vt_ps
        self.sent[event["n"]] += 1

    def poll(self, event: dict[str, Any]) -> None:
        self.vt_ps += 1
        assert (event["n_s"], event["n_ps"]) == (self.vt_s, self.vt_ps)

    def _update(self, n_r: int, arrived: set[int], missing: set[int]) -> None:
        self.vt_a = max(self.vt_a, n_r)
        self.stamps = {
            n: stamp for n, stamp in self.stamps.items() if n >= n_r and n not in arrived
        }
        self.queue = (self.queue | missing) & set(self.stamps)

    def stat(self, event: dict[str, Any]) -> None:
        if not event["valid"]:
            return
        if not event["n_ps"]:
            self._update(event["n_r"], set(), set())
            return
        edges = event["elements"]
        gaps = {n for first, end in zip(edges[::2], edges[1::2], strict=False)
                for n in range(first, end)}  # fmt: skip
        high = edges[-1] if edges else event["n_r"]
        low = edges[0] if edges else event["n_r"]
        missing = {n for n in gaps if n in self.stamps and self.stamps[n] < event["n_ps"]}
        self._update(event["n_r"], set(range(low, high)) - gaps, missing)
        self.vt_pa = event["n_ps"]

    def ustat(self, event: dict[str, Any]) -> None:
        if event["valid"]:
            run = set(range(*event["elements"])) & set(self.stamps)
            self._update(event["n_r"], set(), {n for n in run if self.sent[n] == 1})


class ReceiverModel:
    """The receiver's actions of StpData.tla."""

    def __init__(self) -> None:
        self.vr_r = self.vr_h = 0
        self.held: set[int] = set()
        self.told = False

    def step(self, event: dict[str, Any]) -> None:
        if event["event"] == "sd":
            self.sd(event["n"], event["gap"], event["vr_mr"])
        else:
            self.vr_h = (
                max(self.vr_h, event["n_s"]) if event["n_s"] <= event["vr_mr"] else self.vr_h
            )
            inside = [n for n in range(self.vr_r, self.vr_h) if n not in self.held]
            listed = event["elements"]
            assert inside == [n for first, end in zip(listed[::2], listed[1::2], strict=False)
                              for n in range(first, end)]  # fmt: skip
        assert (event["vr_r"], event["vr_h"]) == (self.vr_r, self.vr_h), event
        assert event["held"] == sorted(self.held), event

    def sd(self, number: int, gap: list[int] | None, limit: int) -> None:
        if number < self.vr_r or number in self.held or number >= limit:
            assert gap is None
            return
        assert gap == ([self.vr_h, number] if number > self.vr_h else None)
        self.vr_h = max(self.vr_h, number + 1)
        self.held.add(number)
        while self.vr_r in self.held:
            self.held.remove(self.vr_r)
            self.vr_r += 1


def traced(iss: int | None, seed: int, octets: int = 60_000) -> list[dict[str, Any]]:
    trace = EventTrace()
    direction = Direction(
        1_300_000, 0.3, 50, loss_probability=0.05, reorder_probability=0.05, reorder_delay_s=0.1,
        duplicate_probability=0.03,
    )  # fmt: skip
    profile = LinkProfile("traced", "", "", direction, direction)
    result = stp_transfer(profile, StpConfig(iss=iss), octets, seed=seed, trace=trace.add)
    assert result.intact
    return [json.loads(line) for line in trace.lines().splitlines()]


@pytest.mark.parametrize(("iss", "seed"), [(None, 1), (2**24 - 10, 2), (None, 3), (None, 4)])
def test_every_step_of_a_transfer_is_one_of_the_model(iss: int | None, seed: int) -> None:
    events = traced(iss, seed)
    near = {event["end"] for event in events if event["event"] == "begin"}
    assert len(near) == 2, "the second call carries the cookie that the first was given"
    sender, receiver = SenderModel(), ReceiverModel()
    # The data of the BEGIN is the first SD.
    sender.send({"n": 0, "vt_ms": 4})
    kinds = set()
    for event in events:
        kinds.add(event["event"])
        if event["end"] in near and "vt_ps" in event:
            sender.step(event)
        elif event["end"] not in near and "vr_mr" in event:
            receiver.step(event)
        elif event["event"] == "receive" and event["packet"] == "BGAK" and event["state"] == 10:
            sender.vt_a = event["vt_a"]
            sender.stamps = {n: 0 for n in sender.stamps if n >= sender.vt_a}
    assert kinds >= {
        "begin", "send", "retransmit", "poll", "stat", "ustat", "sd", "poll_arrives", "receive",
        "release", "outcome",
    }  # fmt: skip
    assert {event["result"] for event in events if event["event"] == "outcome"} == {"success"}
    assert sender.vt_a == sender.vt_s == receiver.vr_r


def test_connection_events_tell_rows_and_numbers(stp: Any) -> None:
    trace = EventTrace()
    script = stp(trace=trace.add)
    script.ready()
    script.arrive(script.begin())
    script.arrive(script.end(flags=4))
    rows = [(e["packet"], e["row"]) for e in trace.events if e["event"] == "receive"]
    assert rows == [("BEGIN", "peer's CSN, and the peer called"), ("END", "A flag")]
    assert [event["event"] for event in trace.events][-3:] == ["outcome", "receive", "gone"]
    assert trace.events[-2]["peer_csn"] == 0x7777_1234


def test_events_tell_what_was_sent_since_the_last(stp: Any) -> None:
    trace = EventTrace()
    script = stp(trace=trace.add)
    script.ready()
    script.arrive(script.begin())
    script.arrive(script.end(flags=4))
    sent = [[packet["packet"] for packet in e["sent"]] for e in trace.events if "sent" in e]
    assert sent == [["BGAK"], ["BGAK"], ["ENDAK"], []]


def test_packet_without_a_connection_told_with_its_answer(stp: Any) -> None:
    trace = EventTrace()
    script = stp(trace=trace.add)
    script.arrive(script.end(flags=4))
    (event,) = trace.events
    assert (event["event"], event["end"], event["packet"]) == ("stray", None, "END")
    assert [packet["packet"] for packet in event["sent"]] == ["ENDAK"]


def test_no_trace_costs_no_records(stp: Any) -> None:
    script = stp()
    assert script.ready().outgoing.on_step is None
