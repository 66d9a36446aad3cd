"""The standards-track sender: RFC 6675 with SACK, RFC 6582 without, and RFC 3042."""

from __future__ import annotations

from typing import Any

import pytest


def lose_first(peer: Any, held: int = 3) -> list[float]:
    """Report segments 1, 2, ... as held, one ACK each; return what the last ACK sends."""
    sent: list[float] = []
    for number in range(2, held + 2):
        sent = peer.ack(0, [(1, number)])
    return sent


def test_third_new_sack_starts_recovery_at_half_the_flight(script: Any) -> None:
    peer = script(limited_transmit=False)
    assert lose_first(peer) == [0]
    assert peer.sender.recover == peer.sender.snd_max - 1
    assert peer.cwnd == peer.ssthresh == 5


def test_duplicates_without_new_sack_do_nothing(script: Any) -> None:
    """RFC 6675 section 2: such an ACK is not a duplicate ACK."""
    peer = script()
    assert [peer.ack(0) for _ in range(8)] == [[]] * 8
    peer.ack(0, [(1, 2)])
    assert [peer.ack(0, [(1, 2)]) for _ in range(8)] == [[]] * 8
    assert not peer.sender.in_recovery


@pytest.mark.parametrize(
    ("blocks", "lost"),
    [
        ([(1, 3)], False),
        ([(1, 3.001)], True),
        ([(1, 1.1), (2, 2.1)], False),
        ([(1, 1.1), (2, 2.1), (3, 3.1)], True),
    ],
)
def test_one_ack_when_sack_shows_a_loss_starts_recovery(
    script: Any, blocks: list[tuple[float, float]], lost: bool
) -> None:
    """IsLost: more than two segments of octets, or three separate runs."""
    peer = script(limited_transmit=False)
    assert peer.ack(0, blocks) == ([0] if lost else [])
    assert peer.sender.in_recovery is lost


def test_pipe_limits_what_recovery_sends(script: Any) -> None:
    """Ten out, 0 lost and repeated, three held: pipe 7 against a window of 5."""
    peer = script(limited_transmit=False)
    lose_first(peer)
    assert peer.sender.pipe() == 7000
    assert peer.ack(0, [(1, 5)]) == []
    assert peer.ack(0, [(1, 6)]) == []
    assert peer.ack(0, [(1, 7)]) == [10]
    assert peer.ack(0, [(1, 8)]) == [11]


def test_holes_are_repaired_lowest_first_before_new_data(script: Any) -> None:
    """NextSeg rules 1 and 2."""
    peer = script(limited_transmit=False, initial=14)
    peer.ack(0, [(1, 2)])
    peer.ack(0, [(3, 4), (1, 2)])
    assert peer.ack(0, [(5, 6), (3, 4), (1, 2)])[0] == 0
    sent = peer.ack(0, [(8, 13), (5, 6), (3, 4)])
    assert sent == [2, 4, 6, 7, 14]
    assert peer.ack(0, [(8, 14), (5, 6), (3, 4)]) == [15]


def test_hole_not_lost_is_repeated_only_without_new_data(script: Any) -> None:
    """NextSeg rule 3: segment 8 has one held segment above it."""
    peer = script(limited_transmit=False, octets=10_000)
    lose_first(peer, 5)
    sent = [number for held in (7, 8) for number in peer.ack(0, [(1, held)])]
    assert 8 not in sent
    assert peer.ack(0, [(9, 10), (1, 8)]) == [8]


def test_recovery_when_tail_is_lost_makes_one_rescue_retransmission(script: Any) -> None:
    """NextSeg rule 4: segment 9 is lost with nothing above it; the pipe allows it at 4 of 5."""
    peer = script(limited_transmit=False, octets=10_000)
    assert lose_first(peer, 5) == []
    assert peer.ack(0, [(1, 7)]) == [9]
    assert peer.ack(0, [(1, 8)]) == []
    assert peer.ack(0, [(1, 9)]) == []
    assert peer.ack(1, [(2, 9)]) == []
    assert peer.sender.rescued


def test_full_ack_ends_recovery_at_ssthresh(script: Any) -> None:
    peer = script(limited_transmit=False)
    lose_first(peer)
    peer.ack(10)
    assert not peer.sender.in_recovery
    assert peer.cwnd == 5
    assert not peer.sender.scoreboard


def test_partial_ack_keeps_recovery_and_one_reduction(script: Any) -> None:
    peer = script(limited_transmit=False, initial=20)
    lose_first(peer, 5)
    peer.ack(6, [(7, 12)])
    assert peer.sender.in_recovery
    assert peer.sender.counters.fast_recoveries == 1
    assert peer.ssthresh == 10


def test_first_two_duplicates_send_new_segments(script: Any) -> None:
    """RFC 3042."""
    peer = script()
    assert peer.ack(0, [(1, 2)]) == [10]
    assert peer.ack(0, [(1, 3)]) == [11]
    assert peer.ack(0, [(1, 4)])[0] == 0
    assert peer.ssthresh == 5


def test_limited_transmit_when_window_is_full_sends_nothing(script: Any) -> None:
    peer = script(window=10_048)
    assert peer.ack(0, [(1, 2)]) == []


def test_limited_transmit_without_sack_sends_two_segments(script: Any) -> None:
    peer = script(sack=False)
    peer.ack(1)
    start = round(peer.sender.snd_max - peer.iss - 1) // 1000
    assert peer.ack(1) == [start]
    assert peer.ack(1) == [start + 1]
    assert peer.ack(1)[0] == 1


def test_dsack_is_no_evidence_of_loss(script: Any) -> None:
    """RFC 2883: below the ACK, or inside the second block."""
    peer = script()
    peer.ack(2)
    for _ in range(4):
        assert peer.ack(2, [(0, 1)]) == []
    peer.ack(2, [(4, 5)])
    for _ in range(4):
        assert peer.ack(2, [(4, 4.5), (4, 5)]) == []
    assert not peer.sender.in_recovery


def test_block_inside_one_that_cannot_be_true_is_no_dsack(script: Any) -> None:
    """The second block of a D-SACK is of data that the receiver holds (RFC 2883 section 4)."""
    peer = script()
    peer.ack(2, [(4, 5), (2, 1000)])
    assert peer.sender.scoreboard


@pytest.mark.parametrize(
    "block", [(3, 3), (5, 3), (-4, -2), (40, 50), (0, 4), (-2, 4), (1000000, 1000003)]
)
def test_impossible_sack_block_is_ignored(script: Any, block: tuple[float, float]) -> None:
    peer = script()
    for _ in range(4):
        peer.ack(0, [block])
    assert not peer.sender.scoreboard
    assert not peer.sender.in_recovery


def test_reneging_receiver_costs_a_timeout_and_no_data(script: Any) -> None:
    """RFC 2018 section 8: the scoreboard is void after a timeout."""
    peer = script(octets=10_000, limited_transmit=False)
    lose_first(peer, 5)
    peer.ack(1)
    first = peer.wait(3.0)[0]
    assert first[1] == 1
    sent = [1.0]
    for number in range(2, 11):
        sent += peer.ack(number)
    assert set(sent) >= {1, 2, 3, 4, 5}


def test_recovery_after_timeout_waits_for_recover(script: Any) -> None:
    """RFC 6582 step 4: duplicates below what was sent before the timeout prove nothing."""
    peer = script(limited_transmit=False)
    peer.wait(2.0)
    assert peer.sender.recover == peer.sender.snd_max - 1
    for number in (2, 3, 4, 5, 6):
        peer.ack(0, [(1, number)])
    assert peer.sender.counters.fast_recoveries == 0


def test_sack_after_timeout_spares_held_segments(script: Any) -> None:
    peer = script(limited_transmit=False)
    peer.wait(2.0)
    sent = peer.ack(1, [(2, 5), (6, 9)])
    assert sent == [1, 5]
    assert peer.ack(5, [(6, 9)]) == [9, 10]


def test_careful_variant_when_ack_equals_recover_does_not_enter(script: Any) -> None:
    """RFC 6582: the ACK has to cover more than recover."""
    peer = script(sack=False)
    peer.ack(1)
    for _ in range(3):
        peer.ack(1)
    recover = peer.sender.recover
    peer.ack((recover - peer.iss) / 1000)
    assert not peer.sender.in_recovery
    for _ in range(5):
        peer.ack((recover - peer.iss) / 1000)
    assert not peer.sender.in_recovery


def test_first_partial_ack_alone_restarts_the_timer(script: Any) -> None:
    """RFC 6582, Impatient."""
    peer = script(sack=False, initial=20)
    peer.ack(1)
    for _ in range(3):
        peer.ack(1)
    peer.ack(5, after=0.3)
    deadline = peer.sender.rto_deadline
    assert deadline == pytest.approx(peer.now + peer.sender.estimator.rto)
    peer.ack(7, after=0.3)
    assert peer.sender.rto_deadline == deadline


def test_partial_ack_below_one_segment_adds_nothing_back(script: Any) -> None:
    """RFC 6582 step 3: add SMSS back only if SMSS octets were acknowledged."""
    peer = script(sack=False, limited_transmit=False)
    peer.ack(1)
    for _ in range(3):
        peer.ack(1)
    cwnd = peer.cwnd
    peer.ack(1.5)
    assert peer.cwnd == cwnd - 0.5


def test_duplicates_when_numbers_wrap_start_recovery(script: Any) -> None:
    peer = script(iss=(1 << 32) - 4500, limited_transmit=False)
    peer.ack(2)
    peer.ack(2, [(3, 6)])
    assert peer.last[0].payload
    assert peer.sender.in_recovery
    peer.ack(13)
    assert not peer.sender.in_recovery


def test_window_closing_after_timeout_sends_nothing_beyond_it(script: Any) -> None:
    """What the receiver holds leaves the network but not its window (RFC 9293 3.8.6)."""
    peer = script(initial=4, window=4096, limited_transmit=False)
    peer.ack(0, [(2, 3)])
    peer.ack(0, [(2, 4)])
    peer.wait(2.0)
    sent = peer.ack(1, [(2, 4)], window=3 * 1024)
    assert sent == [1]
    assert peer.sender.snd_max <= peer.sender.right_edge


def test_only_missing_segment_already_repaired_is_not_rescued(script: Any) -> None:
    """RFC 6675 rule 4 repeats the end of the outstanding data, not a repair on its way."""
    peer = script(initial=6, window=6016, limited_transmit=False)
    for number in (2, 3):
        assert peer.ack(0, [(1, number)]) == []
    assert peer.ack(0, [(1, 4)]) == [0]
    assert peer.ack(0, [(1, 6)]) == []
