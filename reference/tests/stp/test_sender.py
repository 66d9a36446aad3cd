"""Sending SDs and working off STATs and USTATs: scripts against one endpoint."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import pytest
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.congestion import Congestion
from bentpipe_reference.stp.packets import Poll, Sd, Sdp, Stat, Ustat
from bentpipe_reference.stp.sender import Sender
from bentpipe_reference.stp.sequence import PACKET_MASK
from hypothesis import given
from hypothesis import strategies as st

ISS = 5000


def numbers(packets: list[Any]) -> list[int]:
    """Offsets of the SDs among some packets."""
    return [packet.n_s - ISS for packet in packets if isinstance(packet, Sd | Sdp)]


def flying(script: Any, count: int, **config: Any) -> Any:
    """An endpoint with ``count`` SDs of one octet under way and a large window."""
    run = script(**config)
    connection = run.ready()
    connection.outgoing.sender.max_sd = 1
    connection.outgoing.congestion.cwnd = 100_000
    connection.write(bytes(count))
    assert numbers(run.flush()) == list(range(count))
    return run


def test_ready_stat_retransmits_what_it_reports_missing_first(stp: Any) -> None:
    script = flying(stp, 10)
    script.connection.write(b"xx")
    answers = script.arrive(script.stat(2, 1, [2, 4, 6, 7, 10]))
    assert numbers(answers)[:3] == [2, 3, 6]


def test_ready_stat_retransmits_only_what_was_sent_before_its_poll(stp: Any) -> None:
    script = flying(stp, 4)
    sender = script.connection.outgoing.sender
    assert numbers(script.arrive(script.stat(0, 1, [0, 1, 4]))) == [0]
    assert dict(sender.kept()) == {ISS: 1}
    assert numbers(script.arrive(script.stat(0, 1, [0, 1, 4]))) == []
    script.run(until=5.0)
    assert sender.vt_ps > 1
    assert numbers(script.arrive(script.stat(0, sender.vt_ps, [0, 1, 4]))) == [0]


def test_ready_stat_releases_what_it_shows_as_held(stp: Any) -> None:
    script = flying(stp, 10)
    script.arrive(script.stat(1, 1, [2, 3, 5, 6, 8]))
    kept = [number - ISS for number, _ in script.connection.outgoing.sender.kept()]
    assert kept == [1, 2, 5, 8, 9]


def test_ready_stat_speaks_of_nothing_at_or_above_its_bound(stp: Any) -> None:
    script = flying(stp, 10)
    script.arrive(script.stat(1, 1, [1, 2, 5]))
    kept = [number - ISS for number, _ in script.connection.outgoing.sender.kept()]
    assert kept == [1, 5, 6, 7, 8, 9]


def test_ready_ustat_retransmits_what_was_sent_once(stp: Any) -> None:
    script = flying(stp, 6)
    assert numbers(script.arrive(script.ustat(1, 2, 4))) == [2, 3]
    assert numbers(script.arrive(script.ustat(1, 1, 5))) == [1, 4]
    assert numbers(script.arrive(script.ustat(1, 1, 5))) == []


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (lambda s: s.stat(11, 1), "N(R) above VT(S)"),
        (lambda s: s.stat(-1, 1), "N(R) below VT(A)"),
        (lambda s: s.stat(5, 2), "N(PS) above VT(PS)"),
        (lambda s: s.stat(5, PACKET_MASK), "N(PS) of no POLL"),
        (lambda s: s.stat(5, 1, [5]), "a single element"),
        (lambda s: s.stat(5, 1, [4, 6]), "begins below N(R)"),
        (lambda s: s.stat(5, 1, [5, 7, 7]), "does not rise"),
        (lambda s: s.stat(5, 1, [5, 11]), "bound above VT(S)"),
        (lambda s: s.stat(5, 1, [5, 8], n_mr=ISS + 7), "bound above N(MR)"),
        (lambda s: s.ustat(5, 6, 6), "an empty run"),
        (lambda s: s.ustat(5, 4, 6), "begins below N(R)"),
        (lambda s: s.ustat(5, 6, 11), "ends above VT(S)"),
        (lambda s: s.ustat(11, 11, 12), "N(R) above VT(S)"),
        (lambda s: s.ustat(5, 6, 8, n_mr=ISS + 7), "ends above N(MR)"),
    ],
)
def test_ready_invalid_report_changes_nothing(stp: Any, report: Any, why: str) -> None:
    script = flying(stp, 10)
    sender = script.connection.outgoing.sender

    def variables() -> Any:
        cwnd = script.connection.outgoing.congestion.cwnd
        return sender.vt_a, sender.vt_ms, sender.vt_pa, sender.kept(), sender.queued(), cwnd

    before = variables()
    assert script.arrive(report(script)) == []
    assert variables() == before, why


def test_ready_stat_older_than_the_newest_is_discarded(stp: Any) -> None:
    script = flying(stp, 10)
    script.run(until=2.5)
    sender = script.connection.outgoing.sender
    assert sender.vt_ps >= 2
    script.arrive(script.stat(4, 2))
    assert script.arrive(script.stat(6, 1)) == [] and sender.vt_a == ISS + 4
    script.arrive(script.stat(6, 2))
    assert sender.vt_a == ISS + 6, "the same number may come again (STP-PF-012)"


def test_ready_credit_holds_and_never_falls(stp: Any) -> None:
    script = stp()
    connection = script.ready(n_mr=ISS + 1000)
    connection.outgoing.sender.vt_ms = ISS + 3
    connection.outgoing.sender.max_sd = 1
    connection.outgoing.congestion.cwnd = 100_000
    connection.write(bytes(10))
    assert numbers(script.flush()) == [0, 1, 2]
    script.run(until=2.0)
    script.arrive(script.stat(1, 1, n_mr=ISS + 2))
    assert connection.outgoing.sender.vt_ms == ISS + 3
    assert numbers(script.arrive(script.stat(3, 1, n_mr=ISS + 5))) == [3, 4]


def test_ready_retransmission_is_the_same_sd(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(b"first")
    first = script.flush()
    connection.write(b"second")
    connection.close()
    last = script.flush()
    assert [packet.flags for packet in (*first, *last)] == [0, 1]
    again = script.arrive(script.stat(0, 2, [0, 2]))
    copies = [packet for packet in again if isinstance(packet, Sd)]
    assert [(copy.n_s, copy.data, copy.flags) for copy in copies] == [
        (ISS, b"first", 0), (ISS + 1, b"second", 1),
    ]  # fmt: skip


def test_ready_no_sd_exceeds_what_the_peer_accepts(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.outgoing.congestion.cwnd = 100_000
    connection.write(bytes(2500))
    assert [len(packet.data) for packet in script.flush()] == [1000, 1000, 500]
    silent = stp()
    silent.ready(max_sd=None)
    silent.connection.write(bytes(600))
    assert [len(packet.data) for packet in silent.flush()] == [512, 88]


def test_ready_fin_after_everything_was_sent_goes_with_an_empty_sd(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    connection.write(b"data")
    script.flush()
    connection.close()
    (sdp,) = script.flush()
    assert isinstance(sdp, Sdp) and (sdp.n_s, sdp.data, sdp.flags) == (ISS + 1, b"", 1)


def test_ready_numbers_wrap(stp: Any) -> None:
    script = stp(iss=PACKET_MASK - 1)
    connection = script.ready()
    connection.outgoing.sender.max_sd = 1
    connection.outgoing.congestion.cwnd = 100_000
    connection.write(bytes(5))
    sent = script.flush()
    assert [packet.n_s for packet in sent] == [PACKET_MASK - 1, PACKET_MASK, 0, 1, 2]
    again = script.arrive(
        Stat(*script.ports, script.tag, 0, PACKET_MASK, 500, 1, 0, (PACKET_MASK, 0, 1, 2))
    )
    assert [packet.n_s for packet in again if isinstance(packet, Sd)] == [PACKET_MASK, 1]


def test_ready_stat_bomb_costs_no_more_than_what_is_in_flight(stp: Any) -> None:
    def worked_off(span: int) -> float:
        sender = Sender(StpConfig(), 0, Congestion(StpConfig()))
        sender.write(bytes(4))
        sender.max_sd = 1
        for _ in range(4):
            sender.take_new()
        # As if 2^23 numbers had been sent, of which the receiver holds all but the first four.
        sender.vt_s = span
        sender.take_poll()
        started = time.process_time()
        for _ in range(300):
            assert sender.on_stat(Stat(1, 2, 0, 0, 0, span, 1, 0, (0, 1, span - 1, span)))
            assert sender.on_ustat(Ustat(1, 2, 0, 0, 0, span, (0, span)))
        return time.process_time() - started

    worked_off(8)
    assert worked_off((1 << 23) - 1) < 20 * worked_off(8) + 0.05


@given(
    iss=st.sampled_from([0, PACKET_MASK - 6]),
    reports=st.lists(
        st.tuples(
            st.booleans(),
            st.integers(-2, 14),
            st.integers(0, 4),
            st.lists(st.integers(-2, 14), max_size=5),
            st.integers(0, 20),
        ),
        max_size=15,
    ),
)
def test_sender_keeps_what_no_report_shows_as_arrived(
    iss: int, reports: list[tuple[bool, int, int, list[int], int]]
) -> None:
    """Against a plain model: sets of numbers, no unwrapping, no bisecting."""
    sender = Sender(StpConfig(), iss, Congestion(StpConfig()))
    sender.grant(iss + 100 & PACKET_MASK, iss)
    sender.max_sd = 1
    sender.write(bytes(100))
    kept: dict[int, tuple[int, int]] = {}  # offset: stamp and transmissions
    queued: set[int] = set()
    sent = base = polls = newest = 0
    for is_stat, n_r, n_ps, elements, n_mr in reports:
        for _ in range(2):
            entry = sender.awaiting()
            if queued:
                lowest = min(queued)
                assert entry is not None and entry.number == iss + lowest
                sender.retransmit(entry)
                queued.discard(lowest)
                kept[lowest] = (polls, kept[lowest][1] + 1)
            else:
                assert entry is None and sender.take_new().number == iss + sent
                kept[sent] = (polls, 1)
                sent += 1
        sender.take_poll()
        polls += 1
        fields = tuple(iss + item & PACKET_MASK for item in elements)
        given_n_r, given_n_mr = iss + n_r & PACKET_MASK, iss + n_mr & PACKET_MASK
        rising = all(a < b for a, b in itertools.pairwise(elements))
        sound = rising and (
            not elements or (elements[0] >= n_r and elements[-1] <= min(sent, n_mr))
        )
        valid = base <= n_r <= sent and sound
        if is_stat:
            valid = valid and len(elements) != 1
            valid = valid and (newest <= n_ps <= polls if n_ps else not elements)
            stat = Stat(1, 2, 3, 0, given_n_r, given_n_mr, n_ps, 0, fields)
            report = sender.on_stat(stat)
            runs = list(itertools.pairwise(elements))
            missing = {n for run in runs[::2] for n in range(*run) if n in kept}
            held = {n for run in runs[1::2] for n in range(*run)}
            wanted = {n for n in missing if kept[n][0] < n_ps}
        else:
            if len(fields) < 2:
                continue
            valid = base <= n_r <= sent and elements[0] < elements[1] and elements[0] >= n_r
            valid = valid and elements[1] <= min(sent, n_mr)
            report = sender.on_ustat(Ustat(1, 2, 3, 0, given_n_r, given_n_mr, fields[:2]))
            held = set()
            wanted = {n for n in range(*elements[:2]) if n in kept and kept[n][1] == 1}
        assert (report is not None) == valid
        if valid:
            base = n_r
            newest = max(newest, n_ps) if is_stat else newest
            kept = {n: kept[n] for n in kept if n >= n_r and n not in held}
            queued = (queued | wanted) & set(kept)
        assert [number - iss for number, _ in sender.kept()] == sorted(kept)
        assert [number - iss for number in sender.queued()] == sorted(queued)
        assert (sender.vt_a, sender.vt_s, sender.vt_pa) == (iss + base, iss + sent, newest)
        assert sender.flight == len(kept) - len(queued)


def test_ready_last_sd_is_not_polled_twice(stp: Any) -> None:
    script = stp()
    script.ready()
    script.connection.write(b"all there is")
    assert [type(packet) for packet in script.flush()] == [Sdp]
    assert not [packet for _, packet in script.run(until=0.9) if isinstance(packet, Poll)]


def test_ready_retransmission_that_is_the_last_thing_to_send_is_asked_about(stp: Any) -> None:
    script = flying(stp, 4)
    script.now += 1.0
    assert [type(packet) for packet in script.arrive(script.ustat(1, 1, 2))] == [Sd, Poll]


def test_ready_announcement_gives_credit_and_acknowledges(stp: Any) -> None:
    script = stp()
    connection = script.ready()
    sender = connection.outgoing.sender
    sender.vt_ms, sender.max_sd = ISS + 3, 1
    connection.write(bytes(5))
    assert numbers(script.flush()) == [0, 1, 2]
    assert numbers(script.arrive(script.stat(2, 0, n_mr=ISS + 5))) == [3, 4]
    assert (sender.vt_a, sender.vt_pa) == (ISS + 2, 0)
    script.arrive(script.stat(3, 1))
    assert sender.vt_pa == 1, "an announcement makes no later STAT old"


def test_ready_announcement_with_a_list_changes_nothing(stp: Any) -> None:
    script = flying(stp, 4)
    sender = script.connection.outgoing.sender
    assert script.arrive(script.stat(2, 0, [2, 3, 4])) == []
    assert sender.vt_a == ISS and sender.queued() == []


def test_sender_begins_anew_with_other_numbers() -> None:
    sender = Sender(StpConfig(), 100, Congestion(StpConfig()))
    sender.max_sd = 3
    sender.write(b"the whole stream")
    sender.close()
    assert [sender.take_new().data for _ in range(4)] == [b"the", b" wh", b"ole", b" st"]
    sender.restart(7)
    assert (sender.iss, sender.vt_s, sender.vt_a, sender.vt_ms) == (7, 7, 7, 11)
    assert (sender.flight, sender.kept()) == (0, [])
    sender.max_sd = 100
    entry = sender.take_new()
    assert (entry.number, entry.data, entry.fin) == (7, b"the whole stream", 1)


def test_sender_keeps_no_more_sds_than_its_memory_permits(stp: Any) -> None:
    script = stp(send_window=16, send_buffer=1 << 20)
    connection = script.ready(n_mr=1 << 20)
    connection.outgoing.congestion.cwnd = math.inf
    assert connection.write(bytes(100_000)) == 100_000
    script.flush()
    sender = connection.outgoing.sender
    assert sender.vt_s - sender.vt_a == 16 and len(sender.kept()) == 16
    script.arrive(script.stat(3, sender.vt_ps))
    assert sender.vt_s - sender.vt_a == 16 and sender.vt_a == ISS + 3
