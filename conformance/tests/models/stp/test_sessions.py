"""Traces of successive STP connections against StpConn, and traces with one event changed."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.models.binding import TraceProblem
from bentpipe_conformance.models.traces import read_trace
from bentpipe_reference.common.mutation import load_mutants
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.sessions import Session, main, record_session
from bentpipe_reference.stp.setup import Setup

from ..conftest import EXPECTED, Rejections
from .conftest import Checked, Event, judged, lines, written

A, R = 4, 8

OPENING = {"event": "begin", "protocol": "stp-conn", "profile": "stp1e2"}
START = {"at": "server", "event": "start"}
K1, K2 = "01" * 16, "02" * 16
PACKET = {
    "packet": "BEGIN", "csn": 70, "iss": 900, "flags": 0, "tag": 70, "octets": 9, "cookie": K1,
}  # fmt: skip
BEGIN = {
    "at": "client", "event": "begin", "time": 1.0, "end": 70, "peer_end": None, "state": 2,
    "first": True, "sent": [PACKET], "vt_s": 1, "vt_a": 0,
}  # fmt: skip
BGREJ = {"packet": "BGREJ", "peer_csn": 69, "flags": 0, "reason": 6, "tag": 0, "cookie": K1}
ASKED = {
    "at": "server", "event": "stray", "time": 0.5, "end": None, "peer_end": None, "state": None,
    **PACKET, "csn": 69, "tag": 69, "octets": 0, "sent": [BGREJ],
}  # fmt: skip
del ASKED["cookie"]
BGAK = {
    "packet": "BGAK", "n_r": 901, "csn": 66000, "peer_csn": 70, "iss": 5, "flags": 0, "tag": 464,
    "cookie": K2,
}  # fmt: skip
CALLED = {
    "at": "server", "event": "called", "time": 1.1, "end": 66000, "peer_end": 70, "state": 10,
    **PACKET, "row": "", "sent": [BGAK], "vt_s": 0, "vt_a": 0, "vr_r": 1,
}  # fmt: skip
SD = {
    "at": "server", "event": "sd", "time": 1.2, "end": 66000, "peer_end": 70, "state": 10, "n": 1,
    "fin": True, "vr_r": 2, "held": [], "packet": "SD", "tag": 70,
}  # fmt: skip


def texts(folder: Path, *events: Event) -> list[str]:
    trace = read_trace(written(folder / "x.ndjson", OPENING, *events))
    return [step.text() for step in trace.steps]


def test_packets_become_messages_of_the_model(tmp_path: Path) -> None:
    asked, begin, called, sd = texts(tmp_path, START, ASKED, BEGIN, CALLED, SD)
    assert "reason |-> 6, ck |-> 1]" in asked
    message = (
        '[type |-> "BEGIN", from |-> "client", port |-> 1, csn |-> 500000000, ck |-> 1, '
        "data |-> TRUE, fin |-> FALSE, at |-> 0]"
    )
    assert f"sent |-> {{{message}}}" in begin and "carries |-> TRUE" in begin
    assert "ck |-> 1, sent" in begin or ", ck |-> 1" in begin
    assert f"m |-> {message}" in called and "state |-> 10" in called
    assert (
        'sent |-> {[type |-> "BGAK", from |-> "server", port |-> 1, csn |-> 500000000, '
        "peer |-> 500000000, r |-> 1, ck |-> 2]}"
    ) in called
    message = (
        '[type |-> "SD", from |-> "client", port |-> 1, csn |-> 500000000, n |-> 1, fin |-> TRUE]'
    )
    assert f"m |-> {message}" in sd


def test_cookie_that_the_server_never_sent_is_foreign(tmp_path: Path) -> None:
    (begin,) = texts(tmp_path, BEGIN)
    assert "ck |-> -1" in begin


def test_client_that_restarts_is_followed(tmp_path: Path) -> None:
    (start,) = texts(tmp_path, START, {"at": "client", "event": "start"})
    assert start.startswith('[k |-> "start", at |-> "client"')


def test_csns_of_a_new_life_stand_apart(tmp_path: Path) -> None:
    again = {**CALLED, "end": 65990}
    below = texts(tmp_path, START, BEGIN, CALLED, START, again)[-1]
    assert "end |-> 499000000" in below
    above = texts(tmp_path, START, BEGIN, CALLED, START, {**again, "end": 2**31})[-1]
    assert "end |-> 501000000" in above


def test_csn_nobody_chose_is_none_of_the_model(tmp_path: Path) -> None:
    (begin,) = texts(tmp_path, {**BEGIN, "sent": [{**PACKET, "csn": 71}]})
    assert "csn |-> 1, ck" in begin


def test_outcome_joins_what_brought_it_about(tmp_path: Path) -> None:
    end = {"packet": "END", "csn": 70, "peer_csn": 66000, "flags": A, "n_r": 0, "tag": 70}
    common = {"at": "server", "time": 2.0, "end": 66000, "peer_end": 70}
    outcome = {**common, "event": "outcome", "state": 10, "result": "failure"}
    receive = {**common, **end, "event": "receive", "state": 1, "sent": [], "vt_s": 0, "vt_a": 0}
    assert 'told |-> "failure"' in texts(tmp_path, BEGIN, CALLED, outcome, receive)[-1]
    later = texts(tmp_path, BEGIN, CALLED, outcome, {**receive, "time": 3.0})
    assert later[-2].startswith('[k |-> "told"') and 'told |-> ""' in later[-1]
    release = {**common, "event": "release", "state": 4, "sent": [end], "vt_s": 0, "vt_a": 0}
    assert texts(tmp_path, BEGIN, CALLED, release, outcome)[-1].startswith('[k |-> "told"')


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({**BEGIN, "at": "moon"}, "line 2: 'moon' is neither client nor server"),
        ({**BEGIN, "sent": [{"packet": "BEGIN"}]}, "line 2: 'begin' lacks 'flags'"),
        ({**SD, "held": ["x"]}, "line 2: 'held' is not an array of numbers"),
        ({**SD, "tag": None}, "line 2: 'sd' lacks 'tag'"),
        ({**SD, "event": "odd"}, "line 2: the event 'odd' is none of"),
        ({**BEGIN, "vt_s": 2**31}, "line 2: 'vt_s' exceeds"),
        ({**BEGIN, "vt_a": -1}, "line 2: 'vt_a' is negative"),
    ],
)
def test_event_that_is_none_refused(tmp_path: Path, event: Event, says: str) -> None:
    with pytest.raises(TraceProblem, match=says):
        texts(tmp_path, event)


# Against the model


def recorded(seed: int, parts: Parts = TRUE_PARTS) -> list[Event]:
    """Two to five connections with faults; about 120 events."""
    session = Session(
        calls=2 + seed % 4, loss=(0.15, 0.0, 0.05, 0.3)[seed % 4], restarts=seed % 3,
        aborts=(0.3, 0.0, 0.6)[seed // 3 % 3], replays=1 + seed % 5, forgeries=seed % 3,
    )  # fmt: skip
    return record_session(session, parts=parts, seed=seed).events


# One event changed


def put(**fields: Any) -> Callable[[Event], None]:
    return lambda event: event.update(fields)


def answer(**fields: Any) -> Callable[[Event], None]:
    """Other fields of the packet that was sent."""
    return lambda event: event["sent"][0].update(fields)


def added(field: str, number: int) -> Callable[[Event], None]:
    def change(event: Event) -> None:
        event[field] += number

    return change


def chooses_older(event: Event) -> None:
    event["end"] -= 5000
    for packet in event["sent"]:
        packet["csn"] = event["end"]


def takes(packet: str, state: int, row: str | None = None) -> Callable[[Event], bool]:
    def fits(event: Event) -> bool:
        same = event["packet"] == packet and event["state"] == state
        return same and (row is None or event["row"] == row)

    return fits


def answered(event: Event) -> bool:
    return bool(event["sent"])


def asks(event: Event) -> bool:
    return any(item["packet"] == "BGREJ" and item["reason"] == 6 for item in event["sent"])


def disowns(event: Event) -> bool:
    return any(item["flags"] & R for item in event["sent"])


def bgrej(event: Event) -> None:
    event["sent"] = [{**BGREJ, "peer_csn": event["csn"], "cookie": "99" * 16}]


def normal(event: Event) -> bool:
    return any(item["flags"] == 0 for item in event["sent"])


def aborts(event: Event) -> bool:
    return any(item["flags"] & A and item["peer_csn"] for item in event["sent"])


Change = tuple[str, Callable[[Event], bool], Callable[[Event], None], str]
CHANGES: dict[str, Change] = {
    "a stranger accepted": (
        "stray", lambda event: event["packet"] == "BEGIN" and asks(event),
        lambda event: event.update(end=7, peer_end=event["csn"], state=10), "STP-CC-035",
    ),
    "a stranger not asked": (
        "stray", lambda event: event["packet"] == "BEGIN" and asks(event), put(sent=[]),
        "STP-CC-036",
    ),
    "an old cookie given again": (
        "stray", lambda event: event["packet"] == "BEGIN" and asks(event),
        lambda event: event["sent"][0].pop("cookie"), "STP-CC-036",
    ),
    "a used cookie asked about": (
        "stray", lambda event: event["packet"] == "BEGIN" and disowns(event), bgrej, "STP-CC-038",
    ),
    "a BGAK that acknowledges too little": (
        "called", lambda event: bool(event["octets"]),
        lambda event: event["sent"][0].update(n_r=event["iss"]), "STP-CC-012",
    ),
    "a cookie that nobody gave": (
        "begin", lambda event: event["first"] and "cookie" in event["sent"][0],
        answer(cookie="77" * 16), "STP-CC-039",
    ),
    "data without a cookie": (
        "begin", lambda event: event["first"] and "cookie" not in event["sent"][0],
        lambda event: answer(octets=5)(event) or event.update(vt_s=1), "STP-CC-034",
    ),
    "a BGAK of another opens": ("receive", takes("BGAK", 10, ""), put(peer_csn=7), "no such BGAK"),
    "a refusal of another heeded": (
        "receive", takes("BGREJ", 2, "CSN of the recipient not own"), put(state=1), "STP-CC-037"),
    "a BEGIN nobody sent": ("called", lambda _: True, put(csn=7), "has sent no such BEGIN"),
    "a client's CSN that does not rise": (
        "begin", lambda event: event["first"], chooses_older, "STP-CC-010"),
    "a server's CSN that does not rise": ("called", lambda _: True, chooses_older, "STP-CC-010"),
    "a BEGIN repeated otherwise": (
        "begin", lambda event: not event["first"] and bool(event["sent"][0]["octets"]),
        answer(octets=0, flags=0), "STP-CC-014",
    ),
    "another connection gives way": (
        "receive", lambda event: takes("BEGIN", 10)(event) and event["csn"] == event["peer_end"],
        put(state=1), "STP-CC-015"),
    "data of an old incarnation": ("sd", lambda event: event["packet"] == "SD", put(tag=7),
                                   "has sent no such SD"),
    "VR(R) too high": ("sd", lambda event: event["packet"] == "SD", added("vr_r", 1), "VR(R)"),
    "an SD held that never came": (
        "sd", lambda event: event["packet"] == "SD", put(held=[800]), "STP-DT-019"),
    "another SD sent": ("send", lambda _: True, added("n", 1), "STP-DT-016"),
    "VT(A) too high": ("stat", lambda event: event["valid"], added("vt_a", 1), "VT(A)"),
    "a report nobody gave": ("stat", lambda event: event["valid"], added("n_r", 9), "no such STAT"),
    "an incomplete end releases": (
        "release", aborts, answer(flags=0, reason=0), "STP-CC-025"),
    "N(R) below the FIN": (
        "release", normal, lambda event: answer(n_r=event["sent"][0]["n_r"] - 1)(event),
        "STP-CC-025",
    ),
    "an END not acknowledged": (
        "receive", lambda event: event["packet"] == "END" and answered(event), put(sent=[]),
        "STP-CC-022",
    ),
    "an END of another incarnation": ("receive", takes("END", 1), put(csn=7), "no such END"),
    "an END that does not count": (
        "receive", lambda event: takes("END", 10, "")(event), put(state=1), "STP-CC-021"),
    "an abort reported as success": (
        "outcome", lambda event: event["result"] == "failure" and event["state"] == 4,
        put(result="success"), "STP-CC-005",
    ),
    "a failure that there is not": (
        "outcome", lambda event: event["result"] == "success" and event["state"] == 4,
        put(result="failure"), "STP-CC-006",
    ),
    "something said without being asked": (
        "put", lambda event: event["state"] == 4, answer(flags=A | R), "STP-CC-028"),
}  # fmt: skip


def changed(events: list[Event], name: str, seed: int) -> tuple[list[Event], int]:
    """A copy with one event changed, and its line.

    Raises:
        IndexError: no event fits.
    """
    kind, fits, change, _ = CHANGES[name]
    at = random.Random(seed).choice(
        [
            at
            for at, event in enumerate(events)
            if event["event"] == kind and "at" in event and fits(event)
            and not (name.endswith("does not rise") and is_first(events, at))
        ]
    )  # fmt: skip
    event = json.loads(json.dumps(events[at]))
    change(event)
    return [*events[:at], event, *events[at + 1 :]], at + 1


def is_first(events: list[Event], at: int) -> bool:
    """Whether this is the first connection of its side's life."""
    side, kind = events[at]["at"], events[at]["event"]
    for event in reversed(events[:at]):
        if event.get("at") == side and event["event"] in (kind, "start"):
            return bool(event["event"] == "start")
    return True


@pytest.mark.parametrize(
    ("step", "least"), [(6, 4), pytest.param(1, 20, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_session_of_the_reference_is_one_of_the_model(
    tmp_path: Path, checked: Checked, step: int, least: int
) -> None:
    events = recorded(SMALL)
    traces = {"true": events}
    expected: dict[str, int | None] = {"true": None}
    for name in list(CHANGES)[::step]:
        try:
            traces[name], expected[name] = changed(events, name, seed=1)
        except IndexError:
            continue
    assert len(traces) >= least
    found = judged(tmp_path, checked, traces)
    assert lines(found) == expected
    for name, item in found.items():
        assert name == "true" or CHANGES[name][3] in item.guard, (name, item.guard)
        assert item.consistent or EXPECTED.search(item.guard), (name, item.guard)


SMALL = 43


def test_user_told_twice_or_never_is_rejected(tmp_path: Path, checked: Checked) -> None:
    events = recorded(SMALL)
    traces, expected = {}, {}
    for side in ("client", "server"):
        at = position(events, "outcome", side, state=4)  # after its own END, not at an arrival
        traces[f"{side}: told before"] = [*events[: at + 1], *events[at:]]
        expected[f"{side}: told before"] = at + 2
        silent = [*events[:at], *events[at + 1 :]]
        traces[f"{side}: never told"] = silent
        expected[f"{side}: never told"] = 1 + position(silent, "gone", side, end=events[at]["end"])
    found = judged(tmp_path, checked, traces)
    assert lines(found) == expected
    assert all(name.partition(": ")[2] in item.guard.replace("has been ", "")
               for name, item in found.items())  # fmt: skip


def position(events: list[Event], kind: str, side: str, **fields: int) -> int:
    """Where the first such event of a side stands."""
    return next(
        at
        for at, event in enumerate(events)
        if event["event"] == kind and event["at"] == side and fields.items() <= event.items()
    )


@pytest.mark.slow
def test_many_sessions_followed_and_each_change_found(
    tmp_path: Path, checked: Checked, rejections: Rejections
) -> None:
    traces: dict[str, list[Event]] = {}
    expected: dict[str, int | None] = {}
    times = Counter[str]()
    for seed in range(40):
        events = recorded(seed)
        traces[f"{seed}"], expected[f"{seed}"] = events, None
        left = 3
        for name in sorted(CHANGES, key=lambda name: times[name]):  # the rarest first
            try:
                copy, line = changed(events, name, seed)
            except IndexError:  # no event of this session fits
                continue
            traces[f"{seed}: {name}"], expected[f"{seed}: {name}"] = copy, line
            times[name] += 1
            left -= 1
            if not left:
                break
    assert len(traces) >= 100 and len(times) >= len(CHANGES) - 2
    found = judged(tmp_path, checked, traces)
    assert lines(found) == expected
    for name, item in found.items():
        sort = name.partition(": ")[2]
        assert not sort or CHANGES[sort][3] in item.guard, (name, item.guard)
    rejections("stp-conn", {name: item.guard for name, item in found.items() if item.guard})


BROKEN = {
    "stp-acknowledges-no-begin": "STP-CC-012",
    "stp-acknowledges-no-end": "STP-CC-022",
    "stp-alters-cookies": "STP-CC-039",
    "stp-answers-begin-once": "STP-CC-015",
    "stp-calls-with-data": "STP-CC-034",
    "stp-counts-down": "STP-CC-010",
    "stp-ends-below-the-fin": "STP-CC-025",
    "stp-exchanges-used-cookies": "STP-CC-038",
    "stp-gives-no-cookies": "STP-CC-036",
    "stp-names-no-csns": "STP-CC-020",
    "stp-releases-with-the-peer": "STP-CC-005",
    "stp-repeats-its-cookies": "STP-CC-036",
    "stp-spends-cookies-twice": "STP-CC-039",
}
"""Mutants of the reference, and the requirement that rejects what they do."""


@pytest.mark.slow
def test_endpoints_that_break_a_rule_rejected(tmp_path: Path, checked: Checked) -> None:
    session = Session(loss=0.15, restarts=1, aborts=0.3, replays=3, forgeries=2)
    traces = {}
    for name in BROKEN:
        setup = load_mutants()[name].configure(Setup(StpConfig(credit=32)))
        for seed in range(1, 9):
            found = record_session(
                session, setup.config, parts=setup.parts, seed=seed, limit_s=60.0
            )
            traces[f"{name} {seed}"] = found.events
    guards = {name: item.guard for name, item in judged(tmp_path, checked, traces).items()}
    for name, requirement in BROKEN.items():
        said = [guards[f"{name} {seed}"] for seed in range(1, 9)]
        assert any(requirement in guard for guard in said), (name, said)


# The recorder


def test_recorder_writes_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--calls", "2", "--loss", "0.1", "--restarts", "1", "--seed", "3"]) == 0
    path = tmp_path / "x.ndjson"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    kinds = [step.kind for step in read_trace(path).steps]
    assert kinds.count("begin") >= 2 and {"arrive", "start", "send", "gone"} <= set(kinds)


@pytest.mark.parametrize("arguments", [["--calls", "x"], ["--calls", "21"], ["--loss", "1"]])
def test_recorder_given_nonsense_says_so(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "error:" in capsys.readouterr().err
