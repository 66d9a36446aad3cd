"""Calls that wait side by side between the same addresses and ports (STP-CC-033, STP-SEC-002)."""

from __future__ import annotations

from typing import Any

import pytest
from bentpipe_reference.stp.packets import Bgak, Bgrej, End, Endak, Flags, Reason, Sd
from bentpipe_reference.stp.states import State

PEER_CSN, ISS, PEER_ISS = 0x0009_8765, 5000, 900_000
C, A, R = int(Flags.C), int(Flags.A), int(Flags.R)
OTHER_TAG, SAME_TAG = PEER_CSN + 7, PEER_CSN + 0x10000


def asked(script: Any, csn: int = PEER_CSN, data: bytes = b"true", **fields: Any) -> Bgak:
    """The question that a BEGIN draws."""
    (bgak,) = script.arrive(script.begin(csn=csn, data=data, **fields))
    assert isinstance(bgak, Bgak) and (bgak.flags, bgak.peer_csn) == (C, csn)
    return bgak


def confirm(script: Any, bgak: Bgak, **fields: Any) -> list[Any]:
    own = {"csn": bgak.peer_csn, "peer_csn": bgak.csn, "n_r": bgak.iss}
    return script.arrive(script.bgak(**{**own, **fields}))  # type: ignore[no-any-return]


@pytest.mark.parametrize("forged", [OTHER_TAG, SAME_TAG, PEER_CSN - 1])
def test_pending_call_survives_forged_begins(stp: Any, forged: int) -> None:
    script = stp()
    true = asked(script)
    others = [asked(script, forged + 0x20000 * step, b"forged") for step in range(3)]
    assert len({bgak.csn for bgak in (true, *others)}) == 4
    assert confirm(script, true) == [] and script.state is State.READY
    assert script.connection.csn == true.csn and script.connection.read() == b"true"
    assert len(script.endpoint._pending) == 0 and len(script.endpoint.connections) == 1
    for bgak in others:
        assert confirm(script, bgak) == [], "it has been forgotten"
    script.arrive(script.sd(1, b" data"))
    assert script.connection.read() == b" data"


def test_pending_call_that_comes_second_may_be_the_true_one(stp: Any) -> None:
    script = stp()
    forged = asked(script, OTHER_TAG, b"forged")
    true = asked(script)
    assert confirm(script, true) == [] and script.connection.read() == b"true"
    assert confirm(script, forged) == [] and script.connection.csn == true.csn
    script.run(until=100.0)
    assert script.state is State.READY


def test_each_pending_call_answers_its_own_begin_and_data(stp: Any) -> None:
    script = stp()
    first, second = asked(script, data=b""), asked(script, OTHER_TAG, b"")
    tag = OTHER_TAG & 0xFFFF
    assert [bgak.csn for bgak in script.arrive(script.begin())] == [first.csn]
    assert [bgak.csn for bgak in script.arrive(script.begin(csn=OTHER_TAG))] == [second.csn]
    assert script.arrive(script.sd(0, b"a"), script.sd(0, b"b", tag=tag)) == []
    assert [bgak.csn for bgak in script.arrive(script.poll(1, 1))] == [first.csn]
    assert [bgak.csn for bgak in script.arrive(script.poll(1, 1, tag=tag))] == [second.csn]
    assert script.arrive(script.poll(1, 1, tag=1)) == []
    confirm(script, first)
    assert script.connection.read() == b"a"


def test_packet_with_the_tag_of_two_pending_calls_goes_to_the_newer(stp: Any) -> None:
    script = stp()
    first, second = asked(script, data=b""), asked(script, SAME_TAG, b"")
    assert [bgak.csn for bgak in script.arrive(script.sdp(0, 1, b"x"))] == [second.csn]
    confirm(script, first)
    assert script.connection.read() == b""


def test_pending_begin_of_a_known_peer_is_asked_beside_another_call(stp: Any) -> None:
    script = stp()
    script.ready()
    script.arrive(script.end(flags=A))
    older = asked(script, PEER_CSN - 5, b"older")
    newer = asked(script, PEER_CSN + 5, b"newer")
    confirm(script, older)
    assert script.connection.read() == b"older"
    assert script.connection.csn != newer.csn


@pytest.mark.parametrize("reflected", [False, True])
def test_end_of_one_pending_call_leaves_the_others(stp: Any, reflected: bool) -> None:
    script = stp()
    first, second = asked(script), asked(script, OTHER_TAG)
    end = {"csn": OTHER_TAG, "peer_csn": second.csn, "flags": A | R if reflected else A}
    answers = script.arrive(script.end(**end))
    assert [type(answer) for answer in answers] == ([] if reflected else [Endak])
    assert script.state is State.INCOMING and len(script.endpoint._pending) == 1
    assert script.arrive(script.end(csn=OTHER_TAG, peer_csn=first.csn, flags=A)) == []
    assert confirm(script, first) == [] and script.state is State.READY


def test_begin_of_another_version_is_refused_once(stp: Any) -> None:
    script = stp()
    asked(script)
    asked(script, OTHER_TAG)
    (answer,) = script.arrive(script.begin(csn=5, version=2))
    assert isinstance(answer, Bgrej) and answer.reason == Reason.VERSION
    assert len(script.endpoint._pending) == 2


def test_pending_calls_between_the_same_ports_are_bounded(stp: Any) -> None:
    script = stp()
    calls = [asked(script)]
    stranger = asked(script, sport=4001)
    calls += [asked(script, PEER_CSN + step) for step in range(1, 10)]
    assert len(script.endpoint._pending) == 9 and script.endpoint.dropped_pending == 2
    assert confirm(script, calls[1]) == [] and script.state is State.INCOMING
    assert confirm(script, calls[2]) == [] and script.state is State.READY
    confirm(script, stranger, sport=4001)
    assert (("peer", 1), 4001, 9) in script.endpoint.connections
    assert not len(script.endpoint._pending)


def test_each_pending_call_is_dropped_after_its_own_half_minute(stp: Any) -> None:
    script = stp()
    asked(script)
    script.run(until=10.0)
    second = asked(script, OTHER_TAG, b"later")
    script.run(until=33.0)
    assert len(script.endpoint._pending) == 1
    confirm(script, second)
    assert script.connection.read() == b"later"
    script = stp()
    for step in range(3):
        asked(script, PEER_CSN + step)
    script.run(until=33.0)
    assert not script.endpoint.connections and not script.endpoint._alarms


def test_packet_for_a_call_whose_time_is_over_finds_nobody(stp: Any) -> None:
    script = stp()
    asked(script)
    script.run(until=10.0)
    asked(script, OTHER_TAG)
    script.now = 32.5
    script.endpoint.advance(script.now)
    assert script.arrive(script.poll(0, 1)) == []
    assert len(script.endpoint._pending) == 1


def test_refused_calls_beside_a_pending_one_count_against_the_bound_once(stp: Any) -> None:
    script = stp(max_connections=1)
    for step in range(5):
        asked(script, PEER_CSN + step)
    assert len(script.endpoint._pending) == 5, "pending ones make room for themselves"


def test_octets_of_a_packet_count_for_one_pending_call(stp: Any) -> None:
    script = stp()
    asked(script, data=b"")
    asked(script, SAME_TAG, b"")
    newer = script.connection
    (older,) = (c for c in script.endpoint._pending.between(newer.identity) if c is not newer)
    before = older.budget, newer.budget
    script.arrive(script.poll(0, 1), script.begin(csn=5, version=2))
    spent = 32
    assert (older.budget, newer.budget) == (before[0], before[1] + 3 * 20 - spent)
    script.arrive(script.end(csn=5, flags=A))
    assert older.budget == before[0]


def test_ready_connection_challenges_the_calls_that_come_later(stp: Any) -> None:
    script = stp()
    true = asked(script)
    asked(script, OTHER_TAG)
    confirm(script, true)
    script.now = 5.0
    (challenge,) = script.arrive(script.begin(csn=OTHER_TAG))
    assert isinstance(challenge, Bgak) and challenge.peer_csn == PEER_CSN
    assert not [packet for _, packet in script.sent if isinstance(packet, Sd | End)]


@pytest.mark.parametrize("step", [1, -1])
def test_confirmation_of_what_was_not_sent_is_discarded(stp: Any, step: int) -> None:
    script = stp()
    bgak = asked(script)
    assert confirm(script, bgak, n_r=bgak.iss + step) == []
    assert script.state is State.INCOMING and script.connection.read() == b""
    assert confirm(script, bgak) == [] and script.state is State.READY
