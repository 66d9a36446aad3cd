"""The seven rules of HK99's appendix, one by one."""

from __future__ import annotations

from typing import Any

import pytest

HK99 = "sack-newreno-hk99"


def third_duplicate(peer: Any, at: int, blocks: list[tuple[float, float]]) -> list[float]:
    """Three duplicates of ``at``; the SACK blocks grow as if one segment arrived at a time."""
    sent = peer.ack(at, blocks)
    assert sent == []
    sent = peer.ack(at, blocks)
    assert sent == []
    return peer.ack(at, blocks)


def test_start_when_first_segment_is_lost_enters_recovery(script: Any) -> None:
    """Rule 1: snd_recover starts at snd_una, so even the first octet may be asked for."""
    peer = script(HK99, sack=False)
    assert peer.ack(0) == []
    assert peer.ack(0) == []
    assert peer.ack(0) == [0]
    assert peer.sender.in_recovery


def test_third_duplicate_sets_recover_to_snd_max_and_halves(script: Any) -> None:
    """Rule 2."""
    peer = script(HK99, sack=False)
    peer.ack(2)
    flight = peer.flight
    assert third_duplicate(peer, 2, []) == [2]
    assert peer.sender.recover == peer.sender.snd_max
    assert peer.ssthresh == flight / 2
    assert peer.cwnd == flight / 2 + 3


def test_duplicates_below_recover_after_timeout_do_not_retransmit(script: Any) -> None:
    """Rule 2's gate: snd_una below snd_recover."""
    peer = script(HK99, sack=False)
    third_duplicate(peer, 0, [])
    recover = peer.sender.recover
    assert peer.wait(5.0)
    assert not peer.sender.in_recovery
    peer.ack(1)
    assert peer.sender.snd_una < recover
    before = peer.sender.counters.fast_recoveries
    for _ in range(5):
        peer.ack(1)
    assert peer.sender.counters.fast_recoveries == before
    assert not peer.sender.in_recovery


def test_duplicates_exactly_at_recover_enter_again(script: Any) -> None:
    """Rule 2: "greater than or equal", the Less Careful variant."""
    peer = script(HK99, sack=False)
    third_duplicate(peer, 0, [])
    peer.ack(10)
    assert not peer.sender.in_recovery
    assert peer.sender.snd_una == peer.sender.recover
    assert third_duplicate(peer, 10, [])[0] == 10
    assert peer.sender.in_recovery


@pytest.mark.parametrize("new_data", [0, 2])
def test_full_ack_when_little_is_outstanding_limits_cwnd(script: Any, new_data: int) -> None:
    """Rule 3: min(ssthresh, outstanding + one segment)."""
    peer = script(HK99, sack=False, octets=(10 + new_data) * 1000)
    third_duplicate(peer, 0, [])
    for _ in range(8):
        peer.ack(0)
    assert peer.flight == 10 + new_data
    peer.ack(10)
    assert peer.cwnd == min(peer.ssthresh, new_data + 1)
    assert not peer.sender.in_recovery


def test_full_ack_when_much_is_outstanding_leaves_ssthresh(script: Any) -> None:
    """Rule 3, the other side of the minimum."""
    peer = script(HK99, sack=False)
    third_duplicate(peer, 0, [])
    for _ in range(12):
        peer.ack(0)
    assert peer.flight > 12
    peer.ack(10)
    assert peer.cwnd == 5


def test_partial_ack_without_sack_retransmits_and_deflates(script: Any) -> None:
    """Rule 4."""
    peer = script(HK99, sack=False)
    third_duplicate(peer, 0, [])
    for _ in range(3):
        peer.ack(0)
    cwnd = peer.cwnd
    sent = peer.ack(4)
    assert sent[0] == 4
    assert peer.cwnd == cwnd - 4 + 1
    assert peer.sender.in_recovery


def test_partial_ack_with_sack_retransmits_only_what_is_eligible(script: Any) -> None:
    """Rules 4 to 6: segment 7 has nothing held three beyond it."""
    peer = script(HK99)
    third_duplicate(peer, 0, [(1, 4)])
    peer.ack(0, [(1, 7)])
    cwnd = peer.cwnd
    assert 7 not in peer.ack(7, [(8, 10)])
    assert peer.cwnd == cwnd - 7 + 1 + 1


@pytest.mark.parametrize(("held", "eligible"), [((5, 6), False), ((6, 7), True)])
def test_hole_when_held_data_is_three_beyond_is_eligible(
    script: Any, held: tuple[int, int], eligible: bool
) -> None:
    """Rule 5: segment 3 and data two or three segments beyond it."""
    peer = script(HK99)
    third_duplicate(peer, 0, [(1, 3)])
    assert (3 in peer.ack(0, [held, (1, 3)])) is eligible


def test_ack_in_recovery_sends_one_retransmission_and_nothing_else(script: Any) -> None:
    """Rule 6, with a window that would let new data out as well."""
    peer = script(HK99, initial=20)
    third_duplicate(peer, 0, [(10, 13)])
    cwnd = peer.cwnd
    sent = [peer.ack(0, [(10, 14 + i)]) for i in range(6)]
    assert sent == [[1], [2], [3], [4], [5], [6]]
    assert peer.cwnd == cwnd


def test_ack_in_recovery_when_nothing_is_eligible_inflates_and_sends_new_data(script: Any) -> None:
    """Rule 6, second half: ten segments out, half the window plus three, then inflation."""
    peer = script(HK99)
    third_duplicate(peer, 0, [(1, 4)])
    assert peer.cwnd == 8
    assert peer.ack(0, [(1, 5)]) == []
    assert peer.ack(0, [(1, 6)]) == []
    assert peer.ack(0, [(1, 7)]) == [10]
    assert peer.cwnd == 11


def test_segment_already_retransmitted_is_not_repeated(script: Any) -> None:
    """Rule 5: once per episode."""
    peer = script(HK99)
    third_duplicate(peer, 0, [(4, 7)])
    sent = [number for i in range(8) for number in peer.ack(0, [(4, 8 + i)])]
    assert sent[:3] == [1, 2, 3]
    assert 0 not in sent
    assert len(sent) == len(set(sent))


def test_sack_after_timeout_spares_held_segments(script: Any) -> None:
    """Rule 7, and what SACK said before the timeout is forgotten (RFC 2018 section 8)."""
    peer = script(HK99)
    peer.ack(0, [(2, 4)])
    assert [number for _, number in peer.wait(2.0)] == [0]
    assert peer.ack(1, [(5, 9)]) == [1, 2]
    assert peer.ack(3, [(5, 9)]) == [3, 4]
    sent = peer.ack(5 + 4, [])
    assert sent[0] == 9


def test_timeout_leaves_recover_alone(script: Any) -> None:
    """The paper names no effect of a timeout, so a later loss may be retransmitted fast."""
    peer = script(HK99, sack=False)
    recover = peer.sender.recover
    peer.wait(2.5)
    assert peer.sender.counters.timeouts == 1
    assert peer.sender.recover == recover


def test_first_two_duplicates_send_nothing(script: Any) -> None:
    """No limited transmit in the paper's sender."""
    peer = script(HK99)
    assert peer.ack(0, [(1, 2)]) == []
    assert peer.ack(0, [(1, 3)]) == []


def test_reno_when_partial_ack_arrives_leaves_recovery(script: Any) -> None:
    peer = script("reno", sack=False)
    third_duplicate(peer, 0, [])
    peer.ack(3)
    assert not peer.sender.in_recovery
    assert peer.cwnd == peer.ssthresh == 5


def test_sack_reno_when_burst_is_lost_halves_again(script: Any) -> None:
    """HK99 section 5.3.1: several reductions for one burst."""
    peer = script("sack-reno")
    third_duplicate(peer, 0, [(1, 4)])
    assert peer.ssthresh == 5
    peer.ack(4, [(5, 7)])
    assert not peer.sender.in_recovery
    third_duplicate(peer, 4, [(5, 10)])
    assert peer.sender.counters.fast_recoveries == 2
    assert peer.ssthresh < 5


def test_newreno_when_burst_is_lost_halves_once(script: Any) -> None:
    peer = script("newreno", sack=False)
    third_duplicate(peer, 0, [])
    for number in (2, 4, 6):
        assert number in peer.ack(number)
        for _ in range(3):
            peer.ack(number)
    assert peer.sender.counters.fast_recoveries == 1
    assert peer.ssthresh == 5


def test_recovery_after_premature_timeout_repeats_each_eligible_segment_once(script: Any) -> None:
    """Rule 6: segment 4 is missing, and only eligible segments are repeated (rule 5).

    The timeout has set snd_nxt back; going on there would send 4 before it is eligible, and again
    once it is.
    """
    peer = script(HK99)
    assert [number for _, number in peer.wait(5.0)] == [0]
    assert third_duplicate(peer, 0, [(1, 4)]) == [0]
    assert peer.sender.in_recovery
    assert peer.ack(0, [(5, 6), (1, 4)]) == []
    assert peer.ack(0, [(5, 7), (1, 4)]) == []
    assert peer.ack(0, [(5, 8), (1, 4)]) == [4]
    assert peer.ack(0, [(5, 9), (1, 4)]) == []
    assert peer.ack(0, [(5, 10), (1, 4)]) == []
    assert peer.sender.snd_nxt == peer.sender.snd_max
