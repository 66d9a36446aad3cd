"""The checkers of opening, closing, resets and security, on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.rwbp.codec import build, option_octets
from bentpipe_conformance.protocols.rwbp.story import (
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    SIZE,
    Story,
    ends,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, URG, Tcp
from bentpipe_conformance.selftest.innocence import hear

BAD = PASS | FAIL
RTO = 1.797
"""What a handshake of 0.599 s makes of it."""


def _repeating(*times: float, calls: bool = False) -> Story:
    """SYN or SYN-ACK comes again after so many seconds each, and is answered in the end."""
    story = Story(calls=calls, open=False)
    for after in times:
        story.own_syn(after=after)
    if calls:
        return story.syn(after=0.5)
    return story.ack(0, after=0.5)


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((1.0, 2.0, 4.0), PASS),
        ((1.0, 1.0), BAD),
        ((3.0,), FAIL),
        ((0.5,), FAIL),
        ((1.0, 0.0), BAD),
        ((1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0), PASS),
        ((1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), BAD),
        ((), NOTHING),
    ],
)
def test_handshake_unanswered(times: tuple[float, ...], expected: set[object], calls: bool) -> None:
    assert _repeating(*times, calls=calls).verdicts("RWBP-CX-002") == expected


@pytest.mark.parametrize(
    ("times", "expected"), [((2.0, 4.0), PASS), ((1.0,), FAIL), ((2.0, 2.0), BAD), ((), FAIL)]
)
def test_syns_cross_and_nobody_answers(times: tuple[float, ...], expected: set[object]) -> None:
    """The SYN-ACK counts as a repetition of the SYN (section 4.2)."""
    story = Story(calls=True, open=False, port=9).syn(after=0.4, crossing=True)
    for after in (0.0, *times):
        story.own_syn(after=after, flags=SYN | ACK, ack=100)
    story.syn(after=0.0 if times else 5.0)
    assert story.verdicts("RWBP-CX-002") == expected


@pytest.mark.parametrize(("crossing", "expected"), [(True, PASS), (False, FAIL)])
def test_wrong_syn_ack_is_acknowledged_once_syns_have_crossed(
    crossing: bool, expected: set[object]
) -> None:
    """A SYN in SYN-RECEIVED is, whatever it acknowledges (section 5.4)."""
    story = Story(calls=True, open=False, port=9)
    if crossing:
        story.syn(after=0.4, crossing=True).own_syn(flags=SYN | ACK, ack=100)
        story.put(False, flags=SYN | ACK, seq=600, after=0.5, ack=7).reply(0)
    else:
        story.put(False, flags=SYN | ACK, seq=600, after=0.5, ack=7).reply(0)
        story.syn(after=0.1)
        story.reply(0).reply(0, after=0.01)
    assert expected <= story.verdicts("RWBP-AK-004") <= (PASS | expected)


@pytest.mark.parametrize(
    ("times", "expected"),
    [((1.0, 2.0), PASS), ((2.0, 4.0), PASS), ((0.5,), FAIL), ((4.0,), FAIL), ((1.0, 1.0), BAD)],
)
def test_syn_ack_that_answers_the_syn_again_starts_its_timer_anew(
    times: tuple[float, ...], expected: set[object]
) -> None:
    """It is a repetition, which has the time double or not (section 5.4)."""
    story = Story(open=False).syn(after=0.5).own_syn(after=0.001)
    for after in times:
        story.own_syn(after=after)
    assert story.ack(0, after=0.5).verdicts("RWBP-CX-002") == expected


@pytest.mark.parametrize(("time", "expected"), [(1.0, PASS), (4.0, PASS), (8.0, FAIL)])
def test_syn_ack_that_answers_the_syn_twice(time: float, expected: set[object]) -> None:
    """Each answer may double the time."""
    story = Story(open=False).syn(after=0.5).own_syn(after=0.001)
    story.syn(after=0.5).own_syn(after=0.001).own_syn(after=time)
    assert story.ack(0, after=0.1).verdicts("RWBP-CX-002") == expected


def test_handshake_not_repeated() -> None:
    assert Story(open=False).ack(0, after=5.0).verdicts("RWBP-CX-002") == FAIL


def _fin(after: float, copies: int) -> Story:
    """A discard's FIN, lost, comes again after so long in so many copies."""
    story = Story(service=9).arrive(0, fin=True).reply(1, ack=1101).send_octets(0, 0, fin=True)
    story.at += after
    for _ in range(copies):
        story.send_octets(0, 0, fin=True)
    return story.ack(0.001, after=0.6, ack=501, seq=1101)


def test_fin_lost_and_repeated() -> None:
    assert _fin(RTO, 2).verdicts("RWBP-CX-003") == PASS


def test_fin_lost_and_not_repeated() -> None:
    assert _fin(10.0, 0).verdicts("RWBP-CX-003") >= FAIL


def test_fin_repeated_without_reason() -> None:
    assert _fin(0.3, 1).verdicts("RWBP-CX-003") >= FAIL


@pytest.mark.parametrize(("number", "expected"), [(2101, PASS), (2100, FAIL)])
def test_fin_behind_a_hole(number: int, expected: set[object]) -> None:
    story = Story(service=9).arrive(1, fin=True).reply(0, (1, 2), after=0.001)
    story.arrive(0, after=0.5).reply(2, ack=number, after=0.001)
    assert story.verdicts("RWBP-CX-003") == expected


def test_fin_is_not_acknowledged() -> None:
    story = Story(service=9).arrive(0, fin=True)
    assert story.ack(0, after=1.0, seq=1101).verdicts("RWBP-CX-003") >= FAIL


def _half_closed() -> Story:
    """The implementation has called, sent its data and FIN, which are acknowledged."""
    story = Story(calls=True, service=9).send_octets(0, SIZE, fin=True)
    return story.put(False, flags=ACK, seq=100, ack=1501, after=RTT)


@pytest.mark.parametrize(("number", "expected"), [(1100, PASS), (100, FAIL)])
def test_data_after_the_own_fin(number: int, expected: set[object]) -> None:
    story = _half_closed().put(False, flags=ACK, seq=100, ack=1501, payload=bytes(SIZE), after=1.0)
    story.put(True, flags=ACK, seq=1501, ack=number, after=0.1)
    assert story.verdicts("RWBP-CX-004") == expected


@pytest.mark.parametrize(("number", "expected"), [(102, PASS), (101, FAIL)])
def test_data_that_reaches_beyond_the_peers_fin_after_the_own(
    number: int, expected: set[object]
) -> None:
    story = Story(calls=True, service=9).send_octets(0, SIZE, fin=True)
    story.put(False, flags=ACK | FIN, seq=101, ack=500, after=0.1)
    story.put(True, flags=ACK, seq=1501, ack=100, after=0.001)
    story.put(False, flags=ACK, seq=100, ack=500, payload=bytes(SIZE), after=0.1)
    story.put(True, flags=ACK, seq=1501, ack=number, after=0.001)
    assert story.verdicts("RWBP-CX-004") == expected


def test_data_after_the_own_fin_is_not_acknowledged() -> None:
    story = _half_closed()
    for after in (1.0, 1.0):
        story.put(False, flags=ACK, seq=100, ack=1501, payload=bytes(SIZE), after=after)
    assert story.verdicts("RWBP-CX-004") >= FAIL


@pytest.mark.parametrize(("sends", "expected"), [(True, PASS), (False, FAIL)])
def test_echo_that_waits_at_the_peers_fin(sends: bool, expected: set[object]) -> None:
    story = Story(service=7, window=0).arrive(0, size=300, fin=True).reply(0, ack=401)
    story.ack(0, after=0.5, seq=401, window=4)
    if sends:
        story.send_octets(0, 300, fin=True)
    assert story.ack(0, after=1.0, seq=401).verdicts("RWBP-CX-004") == expected


def _reset(offset: int, *, data: bytes = b"") -> Story:
    """A RST at an offset behind a segment that has been acknowledged."""
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    return story.put(False, flags=RST, seq=1100 + offset, after=0.5, payload=data)


def test_reset_at_the_next_number_is_heeded() -> None:
    assert _reset(0).arrive(1, after=0.5).verdicts("RWBP-CX-005") == PASS


def test_reset_at_the_next_number_is_not_heeded() -> None:
    story = _reset(0).arrive(1, after=0.5)
    assert story.reply(2, after=0.1).verdicts("RWBP-CX-005") == FAIL


@pytest.mark.parametrize("offset", [1, 5000, 19_000])
def test_reset_in_the_window_is_challenged(offset: int) -> None:
    story = _reset(offset).reply(1, after=0.01).arrive(1, after=0.5).reply(2, after=0.1)
    assert story.verdicts("RWBP-CX-005") == PASS


def test_reset_in_the_window_is_not_challenged() -> None:
    story = _reset(5000).arrive(1, after=0.5).reply(2, after=0.1)
    assert story.verdicts("RWBP-CX-005") >= FAIL


def test_reset_in_the_window_is_heeded() -> None:
    story = _reset(5000).reply(1, after=0.01).arrive(1, after=0.5)
    assert story.reset(after=0.001).verdicts("RWBP-CX-005") >= FAIL


@pytest.mark.parametrize("offset", [-1, 25_000, -(1 << 30)])
@pytest.mark.parametrize(("answered", "expected"), [(False, PASS), (True, BAD)])
def test_reset_outside_the_window(offset: int, answered: bool, expected: set[object]) -> None:
    story = _reset(offset)
    if answered:
        story.reply(1, after=0.01)
    assert story.arrive(1, after=0.5).reply(2, after=0.1).verdicts("RWBP-CX-005") == expected


@pytest.mark.parametrize(("seq", "expected"), [(2500, PASS), (500, FAIL), (2499, FAIL)])
def test_number_of_the_reset_of_an_abort(seq: int, expected: set[object]) -> None:
    story = Story(calls=True, service=9).send(0, 1).reset(after=0.3, seq=seq)
    assert story.verdicts("RWBP-CX-006") == expected


def test_two_resets_of_an_abort() -> None:
    story = Story(calls=True, service=9).send(0, 1).reset(after=0.3, seq=2500).reset(seq=2500)
    assert story.verdicts("RWBP-CX-006") == BAD


def test_data_behind_the_reset_of_an_abort() -> None:
    story = Story(calls=True, service=9).send(0, 1).reset(after=0.3, seq=2500).send(2)
    assert story.verdicts("RWBP-CX-006") == BAD


def test_reset_that_answers_what_comes_after_an_abort() -> None:
    story = Story(calls=True, service=9).send(0, 1).reset(after=0.3, seq=2500)
    story.ack(2, after=0.3).reset(seq=2500)
    assert story.verdicts("RWBP-CX-006") == PASS


def _damaged(story: Story) -> Story:
    last = story.packets.pop()
    return story.tell_damaged(last.outgoing, last.data)


def test_damaged_segment_and_then_service() -> None:
    story = _damaged(Story(service=9).arrive(0).reply(1, after=0.1).arrive(1, after=0.1))
    assert story.arrive(1, after=0.1).reply(2, after=0.1).verdicts("RWBP-SEC-003") == PASS


def test_damaged_segment_and_then_silence() -> None:
    story = _damaged(Story(service=9).arrive(0).reply(1, after=0.1).arrive(1, after=0.1))
    story.arrive(1, after=0.1).arrive(1, after=1.0)
    assert story.verdicts("RWBP-SEC-003") == FAIL


@pytest.mark.parametrize("name", ["RWBP-SEC-003", "RWBP-WF-001"])
def test_damaged_segment_behind_a_link_rate(name: str) -> None:
    """What leaves then, and when, depends on what waited for the link."""
    story = Story(service=9).arrive(0, 1).reply(2, after=0.1)
    story = _damaged(story.arrive(2, after=0.1)).reply(2, after=0.01)
    story.arrive(2, after=0.1).arrive(2, after=1.0)
    claims = {**CLAIMS, "link_rate": True, "link_rate_bps": 100_000}
    assert story.verdicts(name) & FAIL
    assert not story.verdicts(name, claims=claims) & FAIL


@pytest.mark.parametrize("gateway", [False, True])
def test_syn_after_odd_segments_that_is_not_answered(gateway: bool) -> None:
    """Behind a gateway its answer may wait for credit."""
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    story.arrive(0, after=0.1).reply(1, after=0.1)
    story.port += 1
    story.syn(after=1.0).syn(after=6.0)
    claims = {**CLAIMS, "gateway": gateway}
    assert (story.verdicts("RWBP-SEC-003", claims=claims) >= FAIL) is not gateway


def test_odd_segment_and_then_a_reset() -> None:
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    story.put(False, flags=SYN | FIN, seq=1100, after=0.5).reset(after=0.001)
    assert story.verdicts("RWBP-SEC-003") == FAIL


@pytest.mark.parametrize(("ends", "expected"), [(False, PASS), (True, FAIL)])
def test_syn_within_the_window_before_the_handshake_is_over(
    ends: bool, expected: set[object]
) -> None:
    """It is answered, whoever has called, and does not end the attempt (section 5.4)."""
    story = Story(service=9, open=False)
    story.at = RTT
    story.put(False, option_octets(8, SIZE), flags=SYN, seq=200, ack=0, mss=SIZE,
              sack_permitted=True).reply(0)  # fmt: skip
    story.ack(0, after=0.1)
    story = story.reset(after=0.001) if ends else story.arrive(0, after=0.1).reply(1, after=0.1)
    assert story.verdicts("RWBP-SEC-003") == expected


def test_user_that_aborts_soon_after_an_odd_segment() -> None:
    """A user of its own may abort whenever it likes; something else came in between."""
    story = Story(service=19, calls=True).arrive(0, 0).reply(1, after=0.001)
    story.arrive(1, after=0.01).reset(after=0.005)
    assert not story.verdicts("RWBP-SEC-003") & FAIL


@pytest.mark.long
@pytest.mark.parametrize("seed", [1248016, 1248067, 1248128, 1257019, 1257043])
def test_references_that_were_once_accused_are_not(seed: int) -> None:
    """Aborts soon after a duplicate, a FIN behind too small a window, copies behind a link rate."""
    assert hear("rwbp", seed).accusations == ()


@pytest.mark.parametrize(("answered", "expected"), [(True, PASS), (False, FAIL)])
def test_connection_after_segments_of_none(answered: bool, expected: set[object]) -> None:
    stray = Tcp(*ends(False, 9, 5000), seq=1, ack=1, flags=ACK | FIN, window=0, payload=b"")
    story = Story(open=False)
    begun = list(story.packets)
    story.packets.clear()
    story.at = 0.0
    story.tell(False, build(stray))
    story.at = 1.0
    for packet in begun if answered else begun[:1]:
        story.tell(packet.outgoing, packet.data, 0.001)
    if not answered:
        story.tell(False, begun[0].data, 6.0)
    assert expected <= story.verdicts("RWBP-SEC-003")
    assert FAIL.isdisjoint(story.verdicts("RWBP-SEC-003")) is answered


@pytest.mark.parametrize(("repaired", "expected"), [(True, PASS), (False, FAIL)])
def test_block_beyond_what_was_sent(repaired: bool, expected: set[object]) -> None:
    story = Story(window=4).send(*range(4)).ack(0, (1, 5), after=RTT)
    if repaired:
        story.send(0, 0, after=RTO - RTT)
    story.ack(0, after=1.0 if repaired else 10.0)
    assert expected <= story.verdicts("RWBP-SEC-004")
    assert FAIL.isdisjoint(story.verdicts("RWBP-SEC-004")) is repaired


def test_number_beyond_what_was_sent_moves_the_stream() -> None:
    story = Story(window=4).send(0, 1).ack(3, after=RTT).reply(0)
    assert story.send(3).verdicts("RWBP-SEC-004") == FAIL


def test_number_beyond_what_was_sent_has_no_effect() -> None:
    story = Story(window=4).send(0, 1).ack(3, after=RTT).reply(0)
    assert story.send(2).verdicts("RWBP-SEC-004") == PASS


def test_true_numbers_are_no_occasion() -> None:
    assert Story().send(0, 1).ack(2, after=RTT).send(2).verdicts("RWBP-SEC-004") == NOTHING


def test_reset_below_the_window_that_reaches_into_it() -> None:
    """Its number is not within the window, wherever its data ends: discarded without an answer."""
    story = Story(service=9).arrive(0).reply(1, after=0.1)
    story.put(False, flags=RST | ACK, seq=600, payload=bytes(1000), after=0.1)
    story.arrive(1, after=0.5).reply(2, after=0.1)
    for name in ("RWBP-CX-005", "RWBP-CX-003"):
        assert not story.verdicts(name) & FAIL, name


@pytest.mark.parametrize(("after", "crossed"), [(0.0, True), (0.02, False)])
def test_window_that_leaves_while_the_fin_arrives(after: float, crossed: bool) -> None:
    """What left before the FIN was processed does not contain it, nor answer it."""
    story = Story(timing_error=0.0005).arrive(0, size=0, fin=True)
    story.send(*range(8), after=after).reply(0, ack=101, seq=8500, after=0.0002)
    assert story.verdicts("RWBP-CX-003") == (PASS if crossed else FAIL)
    assert (story.verdicts("RWBP-AK-004") == PASS) is crossed


def test_plain_syn_after_the_end_of_a_connection() -> None:
    """It opens another connection, whose answer has nothing to do with the first offer."""
    story = Story(service=9).arrive(0, size=0, fin=True)
    story.put(True, flags=ACK | FIN, seq=500, ack=101, after=0.001).ack(
        0, ack=501, seq=101, after=RTT
    )
    story.put(False, flags=SYN, seq=5000, ack=0, after=1.0)
    story.put(True, flags=SYN | ACK, seq=9000, ack=5001, after=0.001)
    assert story.verdicts("RWBP-NG-003") == PASS


def test_number_never_sent_before_the_opening() -> None:
    """It is answered by a RST without ACK, and the connection opens all the same (RFC 9293)."""
    story = _damaged(Story(service=9, open=False).ack(0, after=0.3)).ack(0, ack=499, after=0.1)
    story.put(True, flags=RST, seq=499, ack=0, after=0.001)
    story.ack(0, after=0.3).arrive(0, after=0.1).reply(1, after=0.1).ack(0, after=1.0)
    assert story.verdicts("RWBP-SEC-003") == PASS


def test_number_never_sent_while_calling() -> None:
    story = Story(calls=True, open=False).put(False, flags=ACK, seq=99, ack=499, after=0.3)
    story.put(True, flags=RST, seq=499, ack=0, after=0.001).syn(after=0.3).reply(0, after=0.001)
    story.send(0, after=0.1).ack(1, after=0.3)
    assert not story.verdicts("RWBP-CX-006") & FAIL
    assert story.verdicts("RWBP-WN-001") == PASS


def test_syn_ack_of_a_number_never_sent() -> None:
    story = Story(calls=True, open=False)
    story.put(False, flags=SYN | ACK, seq=99, ack=502, after=0.3)
    story.put(True, flags=RST, seq=502, ack=0, after=0.001)
    assert not story.verdicts("RWBP-NG-005") & FAIL


@pytest.mark.parametrize("name", ["RWBP-WF-009", "RWBP-WF-005"])
def test_data_with_something_odd_behind_a_fin(name: str) -> None:
    """It is acknowledged, and not taken (section 5.4)."""
    story = Story(service=9).arrive(0, size=0, fin=True).reply(0, ack=101, after=0.001)
    odd = {"flags": ACK | URG} if name == "RWBP-WF-009" else {"sack": ((400, 401),)}
    story.arrive(0.001, size=1, after=0.1, **odd).reply(0, ack=101, after=0.001).ack(0, after=0.5)
    assert not story.verdicts(name) & FAIL


@pytest.mark.parametrize(("octet", "expected"), [(b"b", PASS), (b"c", FAIL)])
def test_echo_of_a_segment_that_begins_below_the_stream(
    octet: bytes, expected: set[object]
) -> None:
    story = Story(service=7).put(False, flags=ACK, seq=99, payload=b"ab", after=0.1)
    story.put(True, flags=ACK, seq=500, ack=101, payload=octet, after=0.001)
    assert story.verdicts("RWBP-WF-010") == expected


@pytest.mark.parametrize(("waits", "accused"), [(False, True), (True, False)])
def test_call_reset_at_once_behind_a_link_rate(waits: bool, accused: bool) -> None:
    """The SYN-ACK comes again, and a RST leaves: its user may have aborted a moment before."""
    story = Story(calls=True, open=False)
    story.at = RTT
    story.syn().syn(after=0.8).reset(after=0.004)
    claims = {**CLAIMS, "link_rate": waits, "link_rate_bps": 100_000 * waits}
    assert (story.verdicts("RWBP-SEC-003", claims=claims) >= FAIL) is accused
