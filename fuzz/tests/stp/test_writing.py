"""A script as a case: the case does what the script does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bentpipe_conformance.engine.case import Case
from bentpipe_conformance.engine.execution import run_case
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import read_trace
from bentpipe_conformance.selftest.stage import stage
from bentpipe_fuzz.campaign.as_case import as_case
from bentpipe_fuzz.campaign.binding import binding_of
from bentpipe_fuzz.campaign.replay import Replay
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.stp.player import VERBS
from bentpipe_reference.common.subject import subject_of

STP = suite_named("stp")
BINDING = binding_of(STP)

SCRIPTS = {
    "polls": [Step("open", {"service": "discard"}), Step("write", {"sds": 3, "poll": True}),
              Step("ask"), Step("receive"), Step("settle")],
    "widens": [Step("open", {"service": "discard"}), Step("widen", {"sds": 70}),
               Step("write", {"sds": 8, "losing": [0, 2]}), Step("ask"),
               Step("fill", {"leaving": 2})],
    "closes": [Step("open", {"service": "echo", "octets": 20}), Step("close"),
               Step("wait", {"seconds": 2.0}), Step("release")],
    "odd": [Step("open"),
            Step("packet", {"kind": "STAT", "elements": [["delivered", 0], ["highest", 3]],
                            "n_mr": ["credit", 5], "tag": 3}),
            Step("packet", {"kind": "SD", "seq": ["next", 1], "octets": 7, "csn": 1}),
            Step("packet", {"kind": "SDP", "reserved": True}), Step("packet", {"kind": "POLL"}),
            Step("malformed", {"kind": "USTAT", "cut": 7}),
            Step("malformed", {"kind": "BEGIN", "version": 1, "anew": True}),
            Step("packet", {"kind": "BEGIN", "fields": {"options": "01080500"}}),
            Step("forbidden", {"kind": "BEGIN", "defect": "options", "which": 4}),
            Step("packet", {"n_ps": 4, "peer_csn": -1, "fields": {"flags": 1}}),
            Step("octets", {"octets": "00ff"}), Step("begin", {"cookie": 9}),
            Step("malformed", {"kind": "SD", "cut": 3, "more": "00", "right": False}),
            Step("malformed", {"here": False}), Step("abort")],
    "habits": [Step("habit", {"tag": True, "kinds": ["BEGIN", "POLL"]}),
               Step("collect", {"cookies": 2}), Step("move"), Step("open"), Step("ask"),
               Step("habit"), Step("open"), Step("write"),
               Step("ask"), Step("close")],
    "calls": [Step("ring", {"octets": 100, "anew": False}), Step("refuse"),
              Step("refuse", {"size": 8, "max_sd": 9000}),
              Step("answer", {"credit": 4}), Step("receive", {"seconds": 3.0}), Step("ask")],
    "cookies": [Step("open", {"service": "discard"}), Step("knock", {"back": -1, "voiding": True}),
                Step("knock", {"fin": True}), Step("restart", {"ahead": -5})],
}  # fmt: skip


def _sent(drive: Callable[[Any], None]) -> list[str]:
    lane, settings = stage(subject_of("stp"), "stp1e2", "", 0)
    item = Case("stp/found", "", "", (), (), STP.profiles, drive)
    outcome = run_case(item, lane, settings)
    assert not outcome.broken
    trace = read_trace(outcome.captured, 0.0, suite=STP)
    return [str(packet.content) for packet in trace.at("peer") if not packet.outgoing]


@pytest.mark.parametrize("name", SCRIPTS)
def test_case_of_a_script_sends_what_the_script_sends(name: str) -> None:
    script = Script("stp", "on-path", tuple(SCRIPTS[name]))
    told = Replay(script, "stp-reference-simulated", "geo", "stp1e2", "STP-SEC-005", "it broke")

    def play(peer: Any) -> None:
        player = BINDING.player(peer)
        for step in script.steps:
            VERBS[step.verb](player, **step.given)

    text = as_case(told, BINDING)
    assert '@case("STP-SEC-005")' in text
    lines = text.splitlines()
    cut = next(at for at, line in enumerate(lines) if line.startswith("@case"))
    scope: dict[str, Any] = {}
    exec("\n".join(lines[:cut] + lines[cut + 1 :]), scope)
    wanted = _sent(play)
    assert len(wanted) > 3
    assert _sent(scope["test_found_stp_sec_005"]) == wanted


def test_every_verb_can_be_written() -> None:
    assert set(BINDING.lines) == set(VERBS)
