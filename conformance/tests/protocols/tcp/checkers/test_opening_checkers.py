"""Checkers of checksums, of segments for no connection and of the handshake, both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, Tcp, build, dissect
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.replay.connections import connections_of
from bentpipe_conformance.protocols.tcp.story import CLAIMS, FAIL, NOTHING, PASS, SIZE, Story


def test_segment_after_a_reset_answered_by_a_reset_or_an_acknowledgment() -> None:
    def stray() -> Receipt:
        over = Receipt().data(0, 100).reply(100).reset(100, after=1.0)
        return over.data(100, 200, after=1.0, ack=7)

    reset = stray().reply(0, flags=RST, seq=7).later()
    assert reset.verdicts("SNR-CON-003") == PASS
    acknowledged = stray().reply(200, seq=7).later()
    assert acknowledged.verdicts("SNR-CON-003") == FAIL
    assert stray().later().verdicts("SNR-CON-003") == FAIL


@pytest.mark.parametrize(("seq", "expected"), [(7, PASS), (0, FAIL), (8, FAIL)])
def test_reset_of_a_stray_takes_its_number_from_the_acknowledgment(
    seq: int, expected: set[Verdict]
) -> None:
    receipt = Receipt().data(0, 100).reply(100).reset(100, after=1.0)
    receipt.data(100, 200, after=1.0, ack=7).reply(0, flags=RST, seq=seq)
    assert receipt.later().verdicts("SNR-CON-004") == expected


def test_exact_reset_heeded_or_answered() -> None:
    heeded = Receipt().data(0, 100).reply(100).reset(100, after=1.0).data(100, 200, after=1.0)
    assert heeded.reply(0, flags=RST).verdicts("SNR-CON-010") == PASS
    ignored = Receipt().data(0, 100).reply(100).reset(100, after=1.0).data(100, 200, after=1.0)
    assert ignored.reply(200, after=0.1).verdicts("SNR-CON-010") == FAIL


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize(
    ("requirement", "flags", "first", "second"),
    [
        ("SNR-CON-012", RST, 150, 250),
        ("SNR-CON-013", SYN, 100, 200),
        ("SNR-CON-011", RST, 20, 60),
    ],
)
def test_what_is_challenged_or_ignored_once_is_so_again(
    requirement: str, flags: int, first: int, second: int, answered: bool
) -> None:
    silent = requirement == "SNR-CON-011"
    receipt = Receipt().data(0, 100).reply(100).data(first, first, flags=flags, after=1.0)
    receipt = receipt if silent else receipt.reply(100, after=0.01)
    receipt.data(100, 200, after=1.0).reply(200, after=0.01)
    receipt.data(second, second, flags=flags, after=2.0)
    receipt = receipt.reply(200, after=0.01) if answered else receipt
    receipt.data(200, 300, after=1.0).reply(300, after=0.01).later()
    assert (Verdict.FAIL in receipt.verdicts(requirement)) == (answered == silent)


def test_reset_in_the_window_challenged_or_heeded() -> None:
    met = Receipt().data(0, 100).reply(100).reset(150, after=1.0).reply(100, after=0.01)
    met.data(100, 200, after=1.0).reply(200, after=0.01).later()
    assert met.verdicts("SNR-CON-012") == PASS
    silent = Receipt().data(0, 100).reply(100).reset(150, after=1.0)
    assert silent.data(100, 200, after=1.0).later().verdicts("SNR-CON-012") >= FAIL


def test_fin_acknowledged_or_not() -> None:
    met = Receipt().data(0, 100, flags=ACK | FIN).reply(101, after=0.1).later()
    assert met.verdicts("SNR-CON-015") == PASS
    late = Receipt().data(0, 100, flags=ACK | FIN).reply(100).later()
    assert late.verdicts("SNR-CON-015") == FAIL


def test_segment_without_ack_dropped_or_taken() -> None:
    dropped = Receipt().data(0, 100).reply(100).data(100, 200, flags=PSH, after=1.0)
    dropped.data(0, 100, after=1.0).reply(100)
    assert dropped.later().verdicts("SNR-CON-014") == PASS
    taken = Receipt().data(0, 100).reply(100).data(100, 200, flags=PSH, after=1.0)
    assert taken.reply(200).later().verdicts("SNR-CON-014") == FAIL


@pytest.mark.parametrize(
    ("after", "refused", "expected"),
    [(175.0, False, PASS), (175.0, True, FAIL), (181.0, True, NOTHING), (120.0, False, NOTHING)],
)
def test_handshake_that_is_completed_about_when_it_may_be_given_up(
    after: float, refused: bool, expected: set[Verdict]
) -> None:
    story = Story(rtt=after)
    if refused:
        story.reset(after=0.001)
    else:
        story.send(0, after=0.001)
    claims = {**CLAIMS, "patient_syn_ack": True}
    assert story.verdicts("SNR-CON-045", claims=claims) == expected


def test_syn_ack_with_another_number_once_a_handshake_was_given_up() -> None:
    def third(after: float) -> Receipt:
        receipt = Receipt(_port=4001).open(answer=None).reply(0, flags=SYN | ACK, seq=-1)
        copied = receipt.syn(after=after / 2).reply(0, flags=SYN | ACK, seq=-1)
        return copied.syn(after=after / 2).reply(0, flags=SYN | ACK, seq=499).later()

    assert third(6.0).verdicts("SNR-CON-006") == PASS | FAIL
    assert third(16.0).verdicts("SNR-CON-006") == PASS


def test_syn_ack_with_another_number() -> None:
    assert Receipt().later().verdicts("SNR-CON-006") == PASS
    wrong = Receipt().reply(1, flags=SYN | ACK, seq=-1)
    assert wrong.verdicts("SNR-CON-006") == PASS | FAIL


def test_connection_that_another_syn_ack_opened() -> None:
    """Nothing acceptable has completed the handshake when data leaves (smoltcp, two sockets)."""
    receipt = Receipt(_port=4001).open(answer=None).reply(0, flags=SYN | ACK, seq=-1)
    receipt.syn(after=2.0).reply(0, flags=SYN | ACK, seq=699)
    receipt.data(0, 0, ack=700, after=0.6).reply(0, seq=700, payload=b"x", after=0.001)
    assert receipt.later().verdicts("SNR-CON-006") == PASS | FAIL


@pytest.mark.parametrize("seq", [99, 10_000])
def test_later_syn_ack_of_another_connection_need_not_be_acknowledged(seq: int) -> None:
    story = Story(calls=True).send_octets(0, 0)
    again = replace(dissect(story.packets[1].data), seq=seq)
    story.tell(False, build(again), 1.0).send_octets(0, 0)
    assert story.verdicts("SNR-CON-030", claims={**CLAIMS, "active_open": True}) == PASS


def _call_with_a_damaged_answer() -> Story:
    """The implementation calls; the first SYN-ACK is damaged."""
    story = Story(calls=True, service=9)
    whole = story.packets.pop()
    return story.tell_damaged(False, whole.data)


def test_syn_that_is_repeated_is_no_effect_of_a_damaged_answer() -> None:
    story = _call_with_a_damaged_answer()
    story.tell(True, story.packets[0].data, after=0.4).reset(after=0.2, outgoing=False)
    assert story.verdicts("SNR-CON-002") == PASS
    story = _call_with_a_damaged_answer().send_octets(0, 0, after=0.01)
    assert story.reset(after=0.2, outgoing=False).verdicts("SNR-CON-002") == FAIL


def test_reset_that_answers_a_wrong_acknowledgment_while_calling_is_no_effect_of_damage() -> None:
    """RFC 9293 section 3.10.7.3, first: it ends nothing."""
    story = Story(calls=True, service=9)
    answer = story.packets.pop()
    whole = story.reset(outgoing=False).packets.pop()
    story.tell_damaged(False, whole.data)
    story.ack(3, after=0.1).reset(seq=500 + 3 * SIZE)
    story.tell(False, answer.data, after=0.1).send_octets(0, 0).send(0)
    assert story.verdicts("SNR-CON-002") == PASS


@pytest.mark.parametrize(("refused", "accused"), [(True, False), (False, True)])
def test_reset_after_a_refusal_is_no_effect_of_a_damaged_one(refused: bool, accused: bool) -> None:
    story = Story(calls=True, service=9)
    answer = story.packets.pop()
    damaged = story.reset(outgoing=False).packets.pop()
    if refused:
        story.reset(outgoing=False)
    story.tell_damaged(False, damaged.data)
    story.ack(0, after=0.1).reset().tell(False, answer.data, after=0.1).reset()
    assert (Verdict.FAIL in story.verdicts("SNR-CON-002")) == accused


@pytest.mark.parametrize(("stamped", "accused"), [(True, True), (False, False)])
def test_wrong_acknowledgment_after_one_that_may_not_have_opened_the_connection(
    stamped: bool, accused: bool
) -> None:
    """One without the timestamp that was agreed may be dropped (RFC 7323 section 3.2)."""
    story = Story(stamps=True)
    story.packets.pop()
    story.stamps = stamped
    story.ack(0)
    story.stamps = True
    story.ack(5, after=0.01).reset(seq=500 + 5 * SIZE).ack(0, after=3.0)
    assert (Verdict.FAIL in story.verdicts("SNR-ACK-003")) == accused


def test_acknowledgment_that_answers_what_is_not_acceptable_opens_no_connection() -> None:
    story = Story(calls=True, service=9)
    story.packets.pop()
    story._put(False, flags=SYN, seq=99, ack=0)
    for after in (0.0, 0.4):
        story._put(True, flags=SYN | ACK, seq=499, ack=100, after=after)
        story.ack(0, seq=100 - (1 << 20)).send_octets(0, 0)
    assert story.ack(0, after=5.0).verdicts("SNR-CON-042").isdisjoint(FAIL)


@pytest.mark.parametrize(("silent", "accused"), [(1.0, True), (300.0, False)])
def test_crossed_syns_after_a_silence_in_which_the_call_is_given_up(
    silent: float, accused: bool
) -> None:
    story = Story(calls=True, service=9)
    story.packets.pop()
    story._put(False, flags=SYN, seq=99, ack=0)
    story._put(True, flags=SYN | ACK, seq=499, ack=100)
    story.ack(0, after=silent).reset().ack(0, after=10.0)
    claims = {**CLAIMS, "active_open": True}
    assert (Verdict.FAIL in story.verdicts("SNR-CON-031", claims=claims)) == accused


@pytest.mark.parametrize(("ended", "accused"), [(True, False), (False, True)])
def test_crossed_syns_whose_connection_a_reset_ends_at_once(ended: bool, accused: bool) -> None:
    """Nothing has left on it by then; the RST of a later segment is of no connection."""
    story = Story(calls=True, service=9)
    story.packets.pop()
    story._put(False, flags=SYN, seq=99, ack=0)
    story._put(True, flags=SYN | ACK, seq=499, ack=100)
    story.ack(0, after=0.6)
    if ended:
        story.reset(after=0.5, outgoing=False)
    story.ack(0, after=1.0).reset()
    claims = {**CLAIMS, "active_open": True}
    assert (Verdict.FAIL in story.verdicts("SNR-CON-031", claims=claims)) == accused


def test_attempt_that_a_reset_ends_before_the_next_syn() -> None:
    story = _call_with_a_damaged_answer()
    for after in (0.4, 2.0, 4.0, 8.0):
        story.tell(True, story.packets[0].data, after=after)
    story.ack(0, after=0.5, data=b"x").reset(after=11.0, outgoing=False)
    story.ack(0, after=20.0)
    claims = {**CLAIMS, "active_open": True}
    assert FAIL.isdisjoint(story.verdicts("SNR-CON-029", claims=claims))
    story = _call_with_a_damaged_answer().ack(0, after=0.5, data=b"x").ack(0, after=11.0)
    assert story.verdicts("SNR-CON-029", claims=claims) == FAIL


@pytest.mark.parametrize(("silent", "accused"), [(1.0, True), (300.0, False)])
def test_reset_after_a_damaged_one_and_a_silence_in_which_a_call_is_given_up(
    silent: float, accused: bool
) -> None:
    story = Story(syn_acks=(0.001, 1.001, 3.001, 7.001), rtt=0.6)
    answer = story.packets.pop()
    damaged = story.reset(outgoing=False).packets.pop()
    story.tell_damaged(False, damaged.data, silent)
    story.tell(False, answer.data, after=0.1).reset()
    assert (Verdict.FAIL in story.verdicts("SNR-CON-002")) == accused


def test_connection_that_goes_on_after_a_damaged_reset_and_ends_later() -> None:
    def reset_at_the_end(*, goes_on: bool) -> Receipt:
        receipt = Receipt().data(0, 100).reply(100).reset(100, after=1.0)
        whole = receipt.packets.pop()
        receipt.tell_damaged(False, whole.data)
        if goes_on:
            receipt.data(100, 200, after=1.0).reply(200)
        return receipt.data(200, 300, after=1.0).reply(0, flags=RST, seq=0)

    assert reset_at_the_end(goes_on=True).verdicts("SNR-CON-002") == PASS
    assert reset_at_the_end(goes_on=False).verdicts("SNR-CON-002") == FAIL


UNREADABLE = bytes.fromhex("7ba51ed012f70c5b")
"""Options of which the first has a length beyond all that there are."""


@pytest.mark.parametrize("at", [100, 5000])
def test_reset_whose_options_cannot_be_read_may_be_dropped(at: int) -> None:
    receipt = Receipt().data(0, 100).reply(100)
    receipt.data(at, at, flags=RST | ACK, options=UNREADABLE, after=1.0)
    receipt.data(100, 200, after=1.0).reply(200, after=0.1).data(200, 300, after=1.0).reply(300)
    for requirement in ("SNR-CON-003", "SNR-CON-010", "SNR-CON-012"):
        assert FAIL.isdisjoint(receipt.verdicts(requirement)), requirement


def _reopened(*, acknowledged: bool = True, seq: int = 90_000) -> Receipt:
    """Both sides have closed; then a SYN with a higher number, and its answer, by ``seq``."""
    receipt = Receipt(service=7).data(0, 1, flags=ACK | FIN)
    receipt.reply(2, flags=ACK | FIN).data(2, 2, ack=int(acknowledged), after=0.6)
    receipt.data(70_000, 70_000, flags=SYN, after=1.0)
    return receipt.reply(70_001, flags=SYN | ACK, seq=seq).data(70_001, 70_001, ack=seq + 1)


def test_syn_after_the_end_begins_another_connection() -> None:
    receipt = _reopened().data(70_001, 70_101, ack=90_001, after=0.6)
    receipt.reply(70_101, seq=90_001, payload=pattern(70_001, 100), after=0.1)
    assert len(connections_of(receipt.trace())) == 2
    for requirement in ("SNR-RCV-006", "SNR-RCV-028", "SNR-SEG-004", "SNR-SEG-006"):
        assert FAIL.isdisjoint(receipt.verdicts(requirement)), requirement
    assert len(connections_of(_reopened(acknowledged=False).trace())) == 1


@pytest.mark.parametrize(
    ("seq", "acknowledged", "expected"),
    [(90_000, True, PASS), (-1, True, FAIL), (-1, False, NOTHING)],
)
def test_number_of_a_connection_that_comes_after_another_between_the_same_ports(
    seq: int, acknowledged: bool, expected: set[Verdict]
) -> None:
    receipt = _reopened(acknowledged=acknowledged, seq=seq)
    assert receipt.verdicts("SNR-CON-046") == expected


def test_number_after_a_copy_of_the_first_syn_shows_no_other_connection() -> None:
    receipt = Receipt(service=7).data(0, 1, flags=ACK | FIN)
    receipt.reply(2, flags=ACK | FIN).data(2, 2, ack=1, after=0.6)
    receipt.syn(after=1.0).reply(0, flags=SYN | ACK, seq=-1)
    assert len(connections_of(receipt.trace())) == 1


def test_syn_that_crosses_after_a_reset_of_the_caller_belongs_to_the_call() -> None:
    """What acknowledges too much in SYN-SENT is answered by a RST, and the call goes on."""
    call = Tcp("10.77.0.2", "10.78.0.1", 5000, 9, 700, 0, SYN, 20000, b"", mss=1460)
    wrong = Tcp("10.78.0.1", "10.77.0.2", 9, 5000, 300, 800, ACK, 20000, b"")
    receipt = Receipt().open(answer=None).tell(True, build(call)).tell(False, build(wrong), 0.6)
    receipt.tell(True, build(replace(call, seq=800, flags=RST)))
    receipt.tell(False, build(replace(wrong, flags=SYN, seq=200, ack=0)), 0.6)
    receipt.tell(True, build(replace(call, flags=SYN | ACK, ack=201)))
    ports = [tester[1] for (tester, _), _ in connections_of(receipt.trace())]
    assert ports.count(9) == 1


@pytest.mark.parametrize(("at", "count"), [(0, 2), (100, 2), (50, 1)])
def test_syn_after_a_reset_behind_data_that_nothing_acknowledges(at: int, count: int) -> None:
    """An acknowledgment may be delayed until the RST comes (seed 15260009)."""
    receipt = Receipt(service=7).data(0, 100).reset(at, after=0.001)
    receipt.data(-1000, -1000, flags=SYN, after=1.0)
    receipt.reply(-999, flags=SYN | ACK, seq=90_000).data(-999, -999, ack=90_001)
    assert len(connections_of(receipt.trace())) == count


def test_syn_after_a_reset_of_the_implementation_begins_another_connection() -> None:
    def story(flags: int) -> Receipt:
        receipt = Receipt().data(0, 1).reply(0, flags=flags, seq=1)
        receipt.data(70_000, 70_000, flags=SYN, after=1.0)
        return receipt.reply(70_001, flags=SYN | ACK, seq=90_000)

    assert len(connections_of(story(RST).trace())) == 2
    assert len(connections_of(story(ACK).trace())) == 1


@pytest.mark.parametrize(("options", "expected"), [(UNREADABLE, set()), (b"", FAIL)])
def test_syn_with_reserved_bits_and_options_that_cannot_be_read(
    options: bytes, expected: set[Verdict]
) -> None:
    receipt = Receipt().open(answer=None)
    del receipt.packets[-1]
    for after in (0.0, 3.0):
        receipt.data(0, 0, options=options, after=after, flags=SYN | 0xC0)
    assert receipt.verdicts("SNR-SEG-003") - PASS == expected


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [(0xC0, 0x40, PASS), (0xC0, 0, PASS), (0xC0, 0xC0, FAIL), (0xC0, 0x80, FAIL),
     (0x40, 0x40, FAIL), (0x80, 0, PASS), (0, 0x40, set())],
)  # fmt: skip
def test_syn_ack_to_a_syn_with_bits_of_ecn(
    asked: int, answered: int, expected: set[Verdict]
) -> None:
    receipt = Receipt()
    receipt.packets.clear()
    receipt.data(-1, -1, flags=SYN | asked).reply(0, seq=-1, flags=SYN | ACK | answered)
    assert receipt.data(0, 0, after=0.6).verdicts("SNR-SEG-008") == expected


@pytest.mark.parametrize(("flags", "expected"), [(SYN | RST, set()), (SYN, FAIL)])
def test_syn_with_reserved_bits_that_is_a_reset(flags: int, expected: set[Verdict]) -> None:
    receipt = Receipt().open(answer=None)
    del receipt.packets[-1]
    for after in (0.0, 3.0):
        receipt.data(0, 0, after=after, flags=flags | 0xC0)
    assert receipt.verdicts("SNR-SEG-003") - PASS == expected


@pytest.mark.parametrize(("acknowledged", "expected"), [(100, PASS), (300, FAIL)])
def test_keep_alive_whose_timer_meets_an_arrival(acknowledged: int, expected: set[Verdict]) -> None:
    # What acknowledges less than has arrived left before that was dealt with.
    receipt = Receipt().data(0, 100).reply(100, payload=b"x" * 50)
    receipt.data(200, 300, ack=50, after=1.0).reply(100, (200, 300), seq=50)
    receipt.data(100, 200, ack=50, after=1.0).reply(acknowledged, seq=49).reply(300, seq=50)
    assert receipt.verdicts("SNR-SEG-006") - PASS == expected - PASS


@pytest.mark.parametrize(("repeats", "expected"), [(2, PASS), (0, FAIL)])
def test_sender_that_gives_up_long_after_a_reset_below_its_window(
    repeats: int, expected: set[Verdict]
) -> None:
    receipt = Receipt().data(0, 100).reply(100, payload=b"x" * 50)
    receipt.data(100, 200, after=1.0).reset(100, after=0.001)
    for again in range(repeats):
        receipt.reply(200, payload=b"x" * 50, after=2.0**again)
    receipt.reply(200, flags=RST | ACK, after=8.0)
    assert receipt.verdicts("SNR-CON-011") == expected


def test_segment_without_ack_whose_data_had_been_held_before() -> None:
    held = Receipt().data(1, 2).reply(0, (1, 2)).data(0, 3, flags=PSH, after=1.0)
    held.data(-1, 0, after=1.0).reply(0, (1, 2))
    assert held.later().verdicts("SNR-CON-014") == PASS
    taken = Receipt().data(1, 2).reply(0, (1, 2)).data(0, 3, flags=PSH, after=1.0)
    assert taken.reply(3).later().verdicts("SNR-CON-014") == FAIL


@pytest.mark.parametrize(("ended", "expected"), [(True, set()), (False, FAIL)])
def test_reset_at_the_next_octet_before_a_delayed_acknowledgment(
    ended: bool, expected: set[Verdict]
) -> None:
    receipt = Receipt().data(0, 100).reply(100).reset(50, after=0.1).data(100, 200, after=0.1)
    if ended:
        receipt.reset(200, after=0.001)
    assert receipt.later().verdicts("SNR-CON-011") == expected


ABORTS = {**CLAIMS, "active_open": True, "user_aborts": True}


@pytest.mark.parametrize(("at", "expected"), [(4, PASS), (0, FAIL), (2, FAIL), (5, FAIL)])
def test_abort_with_data_outstanding(at: int, expected: set[Verdict]) -> None:
    def story() -> Story:
        return Story(calls=True, service=9).ack(0, data=b"x").send(0, 1, 2, 3)

    assert (
        story().reset(1.0, seq=500 + at * SIZE).verdicts("SNR-CON-047", claims=ABORTS) == expected
    )
    # An answer, such as that of a user that has closed to what it will not read, is no abort.
    answered = story().ack(2, after=1.0).reset(0.001, seq=500 + at * SIZE)
    assert answered.verdicts("SNR-CON-047", claims=ABORTS) == NOTHING


def test_abort_when_the_next_number_may_have_moved() -> None:
    def story() -> Story:
        return Story(calls=True, service=9).send(0, 1, 2, 3)

    repeated = story().send(0, after=2.0).reset(1.0)
    narrow = story().ack(1, after=0.1, window=2 * SIZE).reset(1.0, seq=500 + 3 * SIZE)
    over = story().reset(1.0, outgoing=False).reset(1.0)
    for item in (repeated, narrow, over):
        assert item.verdicts("SNR-CON-047", claims=ABORTS) == NOTHING


def test_abort_before_and_behind_a_fin() -> None:
    story = Story(calls=True, service=9)
    assert story.reset(1.0).verdicts("SNR-CON-047", claims=ABORTS) == PASS
    closed = Story(calls=True, service=9).send_octets(0, 10, fin=True)
    assert closed.reset(1.0, seq=511).verdicts("SNR-CON-047", claims=ABORTS) == PASS
    closed = Story(calls=True, service=9).send_octets(0, 10, fin=True)
    assert closed.reset(1.0, seq=510).verdicts("SNR-CON-047", claims=ABORTS) == FAIL
