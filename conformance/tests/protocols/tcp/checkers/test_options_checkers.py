"""The checkers of option use on traces written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, Tcp, build, dissect
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    UNCLEAR,
    Story,
    ends,
)

UNKNOWN = bytes((200, 4, 1, 2))
BROKEN = bytes((200, 0))
END = bytes(4)


def test_option_in_answer_to_nothing() -> None:
    receipt = Receipt(sack=False)
    assert receipt.verdicts("SNR-OPT-001") == PASS
    receipt.reply(0, flags=SYN | ACK, seq=-1, sack_permitted=True)
    assert receipt.verdicts("SNR-OPT-001") == FAIL
    assert receipt.reply(0).verdicts("SNR-OPT-006") == PASS


def test_window_scale_of_zero_is_an_offer() -> None:
    assert Receipt(shift=0).verdicts("SNR-OPT-002") == NOTHING
    assert Receipt(shift=0).verdicts("SNR-OPT-007") == PASS


def test_handshake_option_later() -> None:
    assert Receipt().reply(0, mss=1460).verdicts("SNR-OPT-006") >= FAIL


def test_segment_without_its_timestamp() -> None:
    receipt = Receipt(timestamps=True).reply(0)
    assert receipt.verdicts("SNR-OPT-004") == PASS
    assert receipt.reply(0, flags=RST, tsval=None).verdicts("SNR-OPT-004") == PASS
    assert receipt.reply(0, tsval=None).verdicts("SNR-OPT-004") == FAIL


def test_blocks_without_negotiation() -> None:
    receipt = Receipt(sack=False).data(100, 200).reply(0).data(300, 400, after=0.1)
    assert receipt.reply(0, (300, 400)).verdicts("SNR-OPT-005") == FAIL


@pytest.mark.parametrize(
    ("mss", "octets", "stamped", "expected"),
    [
        (500, 500, False, PASS), (500, 501, False, FAIL), (500, 500, True, FAIL),
        (500, 488, True, PASS), (20, 216, False, PASS), (20, 217, False, FAIL),
    ],
)  # fmt: skip
def test_segment_against_the_mss(
    mss: int, octets: int, stamped: bool, expected: set[Verdict]
) -> None:
    receipt = Receipt(mss=mss, timestamps=stamped).reply(0, payload=b"x" * octets)
    assert receipt.verdicts("SNR-OPT-009") == expected


def test_segment_before_segmentation_offload_proves_nothing() -> None:
    receipt = Receipt(mss=1460, service=19).reply(0, payload=b"x" * 2920)
    assert receipt.verdicts("SNR-OPT-009") == UNCLEAR


def test_segment_to_a_peer_without_mss() -> None:
    assert Receipt(mss=None).reply(0, payload=b"x" * 536).verdicts("SNR-OPT-010") == PASS
    assert Receipt(mss=None).reply(0, payload=b"x" * 600).verdicts("SNR-OPT-010") == FAIL


def test_odd_syn_refused_where_others_are_accepted() -> None:
    receipt = Receipt().open(options=UNKNOWN, answer=RST | ACK).open()
    assert receipt.verdicts("SNR-OPT-012") == FAIL
    assert Receipt().open(options=UNKNOWN).verdicts("SNR-OPT-012") == PASS


def test_odd_syn_refused_by_a_closed_port_is_right() -> None:
    receipt = Receipt()
    receipt.service = 47
    receipt.open(options=UNKNOWN, answer=RST | ACK)
    assert receipt.verdicts("SNR-OPT-012") == NOTHING


def test_odd_syn_unanswered_though_repeated() -> None:
    receipt = Receipt().open(options=UNKNOWN, answer=None)
    assert receipt.verdicts("SNR-OPT-012") == NOTHING
    assert receipt.syn(options=UNKNOWN, after=3).verdicts("SNR-OPT-012") == FAIL


def test_data_with_unknown_options_dropped() -> None:
    receipt = Receipt().data(0, 100, options=UNKNOWN)
    assert receipt.later().verdicts("SNR-OPT-013") == FAIL
    assert Receipt().data(0, 100, options=UNKNOWN).reply(100).verdicts("SNR-OPT-013") == PASS


@pytest.mark.parametrize(("service", "expected"), [(9, FAIL), (20_000, NOTHING)])
def test_data_with_padded_options_is_answered_by_a_reset_which_a_user_may_have_asked_for(
    service: int, expected: set[Verdict]
) -> None:
    receipt = Receipt(service=service).data(0, 100, options=END).reply(0, flags=RST | ACK)
    assert receipt.verdicts("SNR-OPT-018") == expected


def test_data_with_padded_options_reaches_a_connection_that_is_over() -> None:
    """ns-3's user closes with data unread; its peer pads every option list."""
    receipt = Receipt().reply(0, flags=RST | ACK).data(0, 100, options=END, after=0.05)
    assert receipt.reply(0, flags=RST).verdicts("SNR-OPT-018") == NOTHING


def test_silence_after_a_broken_option_list() -> None:
    receipt = Receipt().data(0, 100, options=BROKEN).data(0, 100, after=1)
    assert receipt.verdicts("SNR-OPT-014") == NOTHING
    assert receipt.data(0, 100, after=2).verdicts("SNR-OPT-014") == FAIL
    assert receipt.verdicts("SNR-RCV-003") == FAIL
    assert receipt.reply(100).verdicts("SNR-OPT-014") == PASS


def test_segments_without_syn_after_a_broken_option_list_in_syn_sent() -> None:
    """Nothing answers them (RFC 9293 section 3.10.7.3)."""
    story = Story(calls=True)
    del story.packets[1:]
    for _ in range(3):
        segment = Tcp(*ends(False, 19, 4000), 100, 500, ACK, 60_000, b"x")
        story.tell(False, build(segment, BROKEN), after=2.0)
    assert story.verdicts("SNR-OPT-014") == NOTHING


def test_text_beyond_the_peers_fin_after_a_broken_option_list_may_be_ignored() -> None:
    receipt = Receipt().data(0, 1, flags=FIN | ACK).reply(2).data(2, 100, options=BROKEN)
    receipt.data(2, 100, after=1).data(2, 100, after=2)
    assert receipt.verdicts("SNR-OPT-014") == NOTHING


WITHIN = {**CLAIMS, "active_open": True, "repeats_offer": False}


def _crossed(syn: dict[str, Any], *answers: dict[str, Any]) -> Story:
    """The implementation calls and hears a SYN, which it answers once or more."""
    story = Story(calls=True, service=9)
    story.packets.pop()
    story._put(False, flags=SYN, seq=99, ack=0, **syn)
    for fields in answers:
        story._put(True, flags=SYN | ACK, seq=499, ack=100, after=0.1, **fields)
    return story


@pytest.mark.parametrize(
    "option", [{"window_scale": 0}, {"window_scale": 7}, {"tsval": 7, "tsecr": 3}]
)
def test_crossed_syn_answered_with_what_it_does_not_offer(option: dict[str, int]) -> None:
    assert _crossed({}, {}).verdicts("SNR-OPT-021", claims=WITHIN) == PASS
    assert _crossed({}, option).verdicts("SNR-OPT-021", claims=WITHIN) == PASS | FAIL
    # What another SYN has offered meanwhile may be in a later answer.
    assert _crossed(option, option).verdicts("SNR-OPT-021", claims=WITHIN) == PASS
    again = _crossed({}, {})._put(False, flags=SYN, seq=99, ack=0, **option)
    again._put(True, flags=SYN | ACK, seq=499, ack=100, **option)
    assert again.verdicts("SNR-OPT-021", claims=WITHIN) == PASS


def test_crossed_syn_whose_options_cannot_be_read() -> None:
    story = Story(calls=True, service=9)
    syn = dissect(story.packets.pop().data)
    story.tell(False, build(replace(syn, flags=SYN, ack=0), BROKEN))
    story._put(True, flags=SYN | ACK, seq=499, ack=100, window_scale=7)
    assert story.verdicts("SNR-OPT-021", claims=WITHIN) == NOTHING
