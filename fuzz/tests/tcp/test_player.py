"""What the tester's verbs put on the wire, seen at the tester's side."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from bentpipe_conformance.engine.lane import LaneError
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.trace import Packet, Trace, read_trace
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, MODULUS, SYN, URG, Tcp
from bentpipe_fuzz.campaign.oracle import streams_hold
from bentpipe_fuzz.campaign.run import play
from bentpipe_fuzz.campaign.script import Script, Step
from bentpipe_fuzz.campaign.speed import reference_of
from bentpipe_fuzz.tcp.binding import pieces
from bentpipe_fuzz.tcp.player import Player

PRECISION_S = 1e-6
THEN_SERVES_S = 1000.0
"""Later than anything of a conversation, and earlier than the test whether it still serves."""


def step(verb: str, **given: Any) -> Step:
    return Step(verb, given)


def sent(*steps: Step, suite: str = "snr") -> list[Tcp]:
    """The tester's segments, without those of the end of a conversation."""
    _, lane, settings = reference_of(suite)
    played = play(Script(suite, "on-path", steps, (), 1), lane, settings)
    captured = played.outcome.captured
    assert captured is not None
    trace = read_trace(captured, PRECISION_S, suite=suite_named(suite))
    left = [
        item for item in trace.packets
        if item.point == "peer" and not item.outgoing and item.time < THEN_SERVES_S
    ]  # fmt: skip
    return [item.content for item in left if isinstance(item.content, Tcp)]


def test_text_that_overlaps_what_was_sent_moves_the_end_of_the_stream() -> None:
    again = step("segment", seq=("next", -50), octets=80)
    came = sent(step("open", service="echo"), step("write", octets=100), again,
                   step("write", octets=10))  # fmt: skip
    first, overlapping, last = [item for item in came if item.payload]
    assert (overlapping.seq - first.seq) % MODULUS == 50
    assert (last.seq - first.seq) % MODULUS == 130


def test_fin_behind_such_text_ends_the_stream() -> None:
    ended = step("segment", seq=("next", -50), octets=80, flags="FA")
    came = sent(step("open", service="echo"), step("write", octets=100), ended,
                   step("write", octets=10), step("close"), step("settle"))  # fmt: skip
    assert len([item for item in came if item.payload]) == 2
    assert len([item for item in came if item.flags & FIN]) == 1


def test_end_of_one_connection_leaves_another_open() -> None:
    came = sent(step("open", service="echo"), step("open", service="echo"), step("close"),
                   step("turn"), step("write", octets=100))  # fmt: skip
    older, newer = sorted({item.sport for item in came})
    assert {item.sport for item in came if item.flags & FIN} == {newer}
    assert {item.sport for item in came if item.payload} == {older}


def test_other_service_is_called_from_the_same_port() -> None:
    came = sent(step("open", service="echo"), step("reopen", service="discard"))
    calls = [item for item in came if item.flags & (SYN | ACK) == SYN]
    assert len({item.sport for item in calls}) == 1
    assert len({item.dport for item in calls}) == 2


def test_second_sack_option_stands_beside_the_first() -> None:
    blocks = [[("delivered", 2000), ("delivered", 3000)]]
    came = sent(step("open", service="chargen", mss=1000), step("segment", also=blocks))
    (reporting,) = [item for item in came if item.sack]
    ((left, right),) = reporting.sack
    assert (right - left) % MODULUS == 1000
    assert (left - reporting.ack) % MODULUS == 2000


def test_answer_without_room_for_more_options_has_none() -> None:
    offer = {"option": "fd04f989fd0a525742501f0805b4", "timestamps": True, "window_scale": 7}
    came = sent(step("ring", **offer), step("answer", raw="0101080a" + 8 * "00"), suite="rwbp")
    (answer,) = [item for item in came if item.flags & SYN]
    assert answer.mss is not None


def test_answer_has_an_option_that_the_call_had_not() -> None:
    came = sent(step("ring"), step("answer", raw="01030305"), suite="rwbp")
    (answer,) = [item for item in came if item.flags & SYN]
    assert answer.window_scale == 5


@pytest.mark.parametrize("takes", [True, False])
def test_octet_that_probes_a_closed_window_is_taken_or_not(takes: bool) -> None:
    came = sent(step("open", service="chargen", mss=1000), step("receive", segments=5),
                step("offer", window=0), step("receive", seconds=60.0, takes=takes))  # fmt: skip
    closed = [item.ack for item in came if item.flags == ACK and not item.window]
    octets = sum(after == before + 1 for before, after in pairwise(closed))
    assert octets > 3 if takes else octets <= 1  # the tester repairs at the end, and takes one


class _Users:
    """A peer whose implementation's user aborts, or cannot be asked to."""

    def __init__(self, *, deaf: bool) -> None:
        self.deaf, self.asked = deaf, 0

    def have_aborted(self) -> None:
        self.asked += 1
        if self.deaf:
            raise LaneError("The implementation's user cannot be made to abort")


@pytest.mark.parametrize("deaf", [True, False])
@pytest.mark.parametrize("spoken", [True, False])
def test_user_aborts_what_has_been_heard_of(deaf: bool, spoken: bool) -> None:
    """An attempt that is given up ends without a word, so that no capture shows it."""
    peer: Any = _Users(deaf=deaf)
    connection: Any = SimpleNamespace(spoken=spoken)
    player = Player(peer)
    player.connection = connection
    player.quit()
    assert peer.asked == spoken


def segment(outgoing: bool, seq: int, octets: bytes, flags: int = ACK) -> Packet[Tcp]:
    ports = (7, 4000) if outgoing else (4000, 7)
    content = Tcp("10.0.0.1", "10.0.0.2", *ports, seq, 0, flags, 100, octets)
    return Packet(1, 0.0, "iut", outgoing, content, b"")


OPENED = (segment(False, 99, b"", SYN), segment(True, 499, b"", SYN | ACK))


def faults(*packets: Packet[Tcp]) -> list[str]:
    trace = Trace((*OPENED, *packets), 0.0)
    return [found.sentence for found in streams_hold(pieces(trace))]


def test_octet_right_below_what_is_sent_next_may_be_garbage() -> None:
    came, echoed = segment(False, 100, b"abc"), segment(True, 500, b"abc")
    assert faults(came, echoed, segment(True, 502, b"?")) == []
    assert faults(came, echoed, segment(True, 501, b"?"))
    assert faults(came, echoed, segment(True, 501, b"b?"))


def test_urgent_data_may_be_taken_out_of_an_echo() -> None:
    assert faults(segment(False, 100, b"abc", ACK | URG), segment(True, 500, b"bc")) == []
    assert faults(segment(False, 100, b"abc"), segment(True, 500, b"bc"))
