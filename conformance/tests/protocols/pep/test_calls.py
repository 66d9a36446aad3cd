"""The tables of calls, and what is judged of any call (PEP-RE-017)."""

from __future__ import annotations

from functools import partial

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.calls import BACKLOGS, CALLS, WAYS
from bentpipe_conformance.protocols.pep.mishap import Mishap
from bentpipe_conformance.protocols.pep.story import FAIL, NOTHING, PASS, Story, octets
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, Tcp


def sent(end: int = 1000) -> Story:
    """Octets pass from client to server; the box has acknowledged them, the server has not."""
    story = Story().opened().data(CLIENT, False, 0, end).ack(CLIENT, True, end)
    return story.data(SERVER, True, 0, end, after=0.3)


def delivered() -> Story:
    return sent().ack(SERVER, False, 1000)


# -- the tables ----------------------------------------------------------------------------------


def test_each_packet_meets_each_fate_on_each_side_whoever_ends_first() -> None:
    rows = {(call.packet, call.fate, call.end) for call in CALLS}
    assert {(packet, fate) for packet, fate, _ in rows} >= {
        (packet, fate) for packet in WAYS for fate in ("lost", "late", "twice")
    }
    assert len({call.end for call in CALLS}) == len({call.end for call in BACKLOGS}) == 5
    sides = {(call.packet, call.side) for call in CALLS}
    for packet, (kind, _) in WAYS.items():
        assert (packet, CLIENT) in sides or kind in ("window update", "probe")
        assert (packet, SERVER) in sides or kind in ("window update", "probe")


def test_streams_longer_than_a_buffer_follow_what_is_declared() -> None:
    longest = max(call.sizes(100_000)["up"] for call in BACKLOGS)
    assert 90_000 < longest < 100_000


def _segment(flags: int, seq: int, payload: bytes = b"", *, ack: int = 0, window: int = 100) -> Tcp:
    return Tcp("10.0.0.1", "10.0.0.2", 1, 2, seq, ack, flags, window, payload)


SEGMENTS = {
    "SYN": _segment(SYN, 9),
    "handshake": _segment(ACK, 10, ack=50),
    "first octets": _segment(ACK, 10, b"abc", ack=50),
    "second octets": _segment(ACK, 13, b"def", ack=50),
    "probe": _segment(ACK, 16, b"g", ack=50),
    "last octets": _segment(ACK, 17, b"hij", ack=50),
    "acknowledgment": _segment(ACK, 20, ack=54),
    "window update": _segment(ACK, 20, ack=54, window=200),
    "FIN": _segment(FIN | ACK, 20, ack=54, window=200),
    "acknowledgment of the FIN": _segment(ACK, 21, ack=55, window=200),
}


def _passing(kind: str, fate: str) -> list[str]:
    """Names of the segments in the order in which they pass."""
    mishap = Mishap(2, CLIENT, "up", kind, fate, {"up": 10, "down": 4})  # type: ignore[arg-type]
    passed: list[str] = []
    for name, tcp in SEGMENTS.items():
        assert mishap.concerns(CLIENT, False, tcp)
        mishap.meet(tcp, partial(passed.append, name))
    return passed


@pytest.mark.parametrize("kind", SEGMENTS)
def test_packet_of_a_kind_is_lost_late_or_comes_twice(kind: str) -> None:
    names = list(SEGMENTS)
    at = names.index(kind)
    assert _passing(kind, "lost") == names[:at] + names[at + 1 :]
    assert _passing(kind, "twice") == [*names[: at + 1], *names[at:]]
    late = names[:at] + names[at + 1 : at + 2] + [kind] + names[at + 2 :]
    assert _passing(kind, "late") == (late if at + 1 < len(names) else names[:at])


# -- what both ends keep -------------------------------------------------------------------------


def test_octets_that_are_taken_and_kept() -> None:
    story = Story().opened().data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000)
    story.ack(SERVER, False, 0)
    assert story.over(60.0).verdicts("PEP-RE-017") == FAIL
    assert delivered().over(60.0).verdicts("PEP-RE-017") == PASS


def test_octets_that_are_taken_and_a_receiver_that_does_not_answer() -> None:
    assert sent().over(60.0).verdicts("PEP-RE-017") == NOTHING


def test_end_that_is_delivered_and_not_acknowledged() -> None:
    story = delivered().fin(CLIENT, False, 1000).fin(SERVER, True, 1000, after=0.3)
    story.ack(SERVER, False, 1001)
    assert story.over(60.0).verdicts("PEP-RE-017") == FAIL


def test_connection_that_the_box_resets() -> None:
    story = delivered().reset(CLIENT, True, after=1.0)
    assert story.over().verdicts("PEP-RE-017") == FAIL
    assert delivered().reset(CLIENT, False, 1000).reset(SERVER, True, 1000).over().verdicts(
        "PEP-RE-017"
    ) == NOTHING  # fmt: skip


def test_late_acknowledgment_of_a_connection_that_has_ended_is_refused() -> None:
    """The client's side has ended, the server's waits yet: the RST is no failure."""
    story = delivered().fin(CLIENT, False, 1000).fin(SERVER, True, 1000, after=0.3)
    story.ack(SERVER, False, 1001).fin(SERVER, False, 0)
    story.ack(CLIENT, True, 1001, after=0.3).fin(CLIENT, True, 0)
    story.say(CLIENT, False, ACK, 1001, 1).say(CLIENT, False, ACK, 1001, 1)
    story.reset(CLIENT, True, 1).ack(SERVER, True, 1, after=0.3)
    for name in ("PEP-RE-017", "PEP-RE-008", "PEP-RE-009"):
        assert FAIL - story.over().verdicts(name) == FAIL, name


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "expected"), [(1000, PASS), (0, FAIL)])
def test_reset_with_a_number_that_its_end_has_acknowledged(
    number: int, expected: set[object]
) -> None:
    story = delivered().reset(CLIENT, False, 1000).reset(SERVER, True, number, after=0.3)
    assert story.over().verdicts("PEP-RE-006") == expected


def test_reset_behind_what_is_held_is_a_guess() -> None:
    story = delivered().data(CLIENT, False, 1100, 1200).ack(CLIENT, True, 1000)
    story.reset(CLIENT, False, 1200).reset(SERVER, True, 1000, after=0.3)
    assert story.over().verdicts("PEP-SEC-001") == FAIL


def test_reset_that_the_box_has_asked_for_counts() -> None:
    """A FIN waits to be acknowledged; the box says which number it expects."""
    story = delivered().fin(CLIENT, False, 1000).reset(CLIENT, False, 1001)
    story.ack(CLIENT, True, 1000).reset(CLIENT, False, 1000)
    assert story.over().verdicts("PEP-RE-006") == FAIL


def test_refusal_that_does_not_name_the_syn() -> None:
    story = Story().syn(CLIENT).syn(SERVER, after=0.3).reset(SERVER, False)
    story.say(CLIENT, True, RST | ACK, 0, 0, after=0.3)
    assert story.over().verdicts("PEP-SEC-001") == FAIL
    assert story.verdicts("PEP-OP-005") == NOTHING


def test_fin_of_an_old_number_is_no_end() -> None:
    story = delivered().fin(CLIENT, False, 200).fin(SERVER, True, 1000, after=0.3)
    assert story.over().verdicts("PEP-RE-003") == FAIL


def test_octets_behind_the_end_are_none() -> None:
    story = delivered().fin(CLIENT, False, 1000)
    story.say(CLIENT, False, ACK, 1000, payload=octets(1000, 1100))
    story.data(SERVER, True, 1000, 1100, after=0.3)
    assert story.over().verdicts("PEP-TR-001") == FAIL


def test_half_closed_connection_that_expires_is_named_as_one() -> None:
    story = delivered().fin(CLIENT, False, 1000).fin(SERVER, True, 1000, after=0.3)
    story.ack(SERVER, False, 1001).ack(CLIENT, True, 1001, after=0.3)
    story.reset(SERVER, True, 1001, after=90.0).reset(CLIENT, True, 0)
    assert story.over().verdicts("PEP-RE-009") == FAIL
    assert story.verdicts("PEP-PC-008") == NOTHING
