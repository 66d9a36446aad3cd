"""Reno where it differs from NewReno: false fast retransmits after a timeout."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("variant", ["reno", "sack-reno"])
def test_false_fast_retransmit_after_timeout_goes_on_where_it_stood(
    script: Any, variant: str
) -> None:
    """4.4BSD restores snd_nxt: what is still to be repeated is not skipped (HK99 5.3.1)."""
    peer = script(variant)
    peer.wait(5.0)
    peer.ack(1)
    stood = peer.sender.snd_nxt
    assert peer.sender.snd_una < stood < peer.sender.snd_max
    before = peer.sender.counters.fast_recoveries
    for _ in range(3):
        peer.ack(1)
    assert peer.sender.counters.fast_recoveries == before + 1
    assert peer.sender.snd_nxt == stood


def test_false_fast_retransmits_after_timeout_cut_ssthresh_each_time(script: Any) -> None:
    """HK99 5.3.1: each of them halves the window again."""
    peer = script("reno", initial=40)
    peer.wait(5.0)
    after_timeout = peer.ssthresh
    peer.ack(1)
    for _ in range(3):
        peer.ack(1)
    assert peer.ssthresh < after_timeout
