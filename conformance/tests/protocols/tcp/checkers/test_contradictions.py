"""What no honest peer does, and campaigns do: which rules still hold then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.engine.story import ends
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, Tcp, build, dissect
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.replay.handshake import passed_over
from bentpipe_conformance.protocols.tcp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, Story

UNREADABLE = bytes((8, 40, 0, 0))
"""An option longer than the options."""


CALLS = {**CLAIMS, "active_open": True}
EXACT = {**CLAIMS, "exact_edge": True}


def _innocent(receipt: Receipt | Story, *requirements: str) -> None:
    for requirement in requirements:
        assert receipt.verdicts(requirement).isdisjoint(FAIL), requirement


def test_data_behind_a_fin_that_is_held_above_a_gap_need_not_be_answered() -> None:
    receipt = Receipt().data(50, 60, flags=ACK | FIN).reply(0, (50, 60)).data(61, 62, after=0.1)
    _innocent(receipt.later(), "SNR-RCV-001", "SNR-RCV-015")
    receipt.data(0, 50).reply(61, after=0.01)
    _innocent(receipt.later(), "SNR-RCV-002", "SNR-RCV-022", "SNR-RCV-019", "SNR-RCV-003")
    receipt = Receipt().data(50, 60).reply(0, (50, 60)).data(61, 62, after=0.1)
    assert receipt.later().verdicts("SNR-RCV-001") == PASS | FAIL


def test_fin_below_data_that_is_held_ends_the_stream() -> None:
    receipt = Receipt().data(1, 2).reply(0, (1, 2)).data(0, 0, flags=ACK | FIN).reply(1)
    receipt.data(1, 2, after=0.1).later()
    _innocent(receipt, "SNR-RCV-003", "SNR-RCV-019", "SNR-RCV-028")


def test_fin_above_a_gap_and_below_data_that_is_held_ends_the_stream() -> None:
    receipt = Receipt().data(50, 64).reply(0, (50, 64)).data(60, 60, flags=ACK | FIN, after=0.1)
    receipt.reply(0, (50, 60)).data(0, 50, after=0.5).reply(61, after=0.01)
    _innocent(receipt.later(), "SNR-RCV-019", "SNR-RCV-022")
    forgotten = Receipt().data(50, 64).reply(0, (50, 64)).data(0, 50, after=0.5).reply(60)
    assert forgotten.later().verdicts("SNR-RCV-019") == FAIL


def test_fin_below_one_whose_acknowledgment_lies_far_below_what_is_outstanding() -> None:
    """Such an acknowledgment may be refused, and the segment with it, or be passed over."""
    receipt = Receipt().data(0, 100).reply(100)
    receipt.data(5000, 5100, flags=ACK | FIN, ack=-(2**31), after=0.1).reply(100)
    _innocent(receipt.data(100, 100, flags=ACK | FIN, after=0.1).reply(100).later(), "SNR-CON-015")


def test_fin_held_alone_after_one_that_was_dropped_need_not_be_reported() -> None:
    receipt = Receipt(sack=True).data(5000, 5001, flags=FIN).data(300, 300, flags=ACK | FIN)
    receipt.reply(0).data(0, 100, after=0.1).reply(100).data(100, 200, after=1.0).reply(200)
    _innocent(receipt.data(200, 300, after=1.0).reply(301).later(), "SNR-RCV-027")


def test_copy_of_data_behind_the_lower_of_two_fins_need_not_be_reported() -> None:
    receipt = Receipt().data(100, 200, flags=ACK | FIN).reply(0, (100, 200))
    receipt.data(0, 100, flags=ACK | FIN, after=0.1).reply(201).data(100, 200, after=1.0)
    _innocent(receipt.reply(201, after=0.01).later(), "SNR-RCV-014")


@pytest.mark.parametrize(("ack", "accused"), [(0, False), (15000, True)])
def test_data_that_acknowledges_less_than_the_widest_window_below(ack: int, accused: bool) -> None:
    """In LISTEN no window is taken (RFC 9293 section 3.10.7.2): that of the SYN is none."""
    receipt = Receipt().open(window=60000).reply(0, payload=bytes(30000))
    receipt.data(0, 0, ack=30000, after=0.1).data(0, 100, ack=ack, after=0.1).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-RCV-003")) == accused


def test_block_behind_the_fin_that_was_held_before_it_came() -> None:
    receipt = Receipt().data(5, 9).reply(0, (5, 9)).data(0, 2, flags=ACK | FIN).reply(3, (5, 9))
    receipt.data(5, 6, after=0.1).reply(3, (5, 9)).later()
    _innocent(receipt, "SNR-RCV-028")
    taken = Receipt().data(0, 2, flags=ACK | FIN).reply(3).data(5, 9, after=0.1).reply(3, (5, 9))
    assert taken.later().verdicts("SNR-RCV-028") == FAIL


@pytest.mark.parametrize(
    "requirement", ["SNR-RCV-001", "SNR-RCV-003", "SNR-RCV-013", "SNR-RCV-015"]
)
def test_data_whose_options_cannot_be_read_may_be_dropped(requirement: str) -> None:
    at = {"SNR-RCV-001": 200, "SNR-RCV-003": 100, "SNR-RCV-013": 0, "SNR-RCV-015": 90_000}[
        requirement
    ]
    sound = Receipt().data(0, 100).reply(100).data(at, at + 10, after=0.1).later()
    assert sound.verdicts(requirement) >= FAIL
    odd = Receipt().data(0, 100).reply(100).data(at, at + 10, after=0.1, options=UNREADABLE).later()
    _innocent(odd, requirement)


def test_segment_below_the_window_whose_options_cannot_be_read_need_not_be_answered() -> None:
    for options, accused in ((UNREADABLE, False), (b"", True)):
        receipt = Receipt().data(0, 100).reply(100).data(50, 50, after=2.0, options=options)
        assert (Verdict.FAIL in receipt.later().verdicts("SNR-RCV-029")) == accused


def test_text_where_the_fin_is_need_not_be_answered() -> None:
    """The FIN is above a gap, behind octet 61 (seed 15260007)."""
    for at, accused in ((61, False), (60, True)):
        receipt = Receipt().data(0, 50).reply(50).data(60, 61, flags=ACK | FIN, after=0.1)
        receipt.reply(50, (60, 62)).data(at, at + 1, after=1.0).later()
        assert (Verdict.FAIL in receipt.verdicts("SNR-RCV-001")) == accused


def test_repeated_syn_whose_options_cannot_be_read_need_not_be_answered() -> None:
    for options, accused in ((UNREADABLE, False), (b"", True)):
        receipt = Receipt()
        receipt.packets.pop()
        receipt.data(-1, -1, flags=SYN, after=3.0, options=options).later()
        assert (Verdict.FAIL in receipt.verdicts("SNR-CON-033")) == accused


def test_old_reset_whose_options_cannot_be_read_may_be_dropped() -> None:
    for options, expected in ((UNREADABLE, False), (b"", True)):
        receipt = Receipt(timestamps=True).data(0, 100, tsval=1100).reply(100, tsval=7000)
        receipt.data(100, 100, flags=RST, after=1.0, tsval=500, options=options)
        receipt.data(100, 200, after=1.0, tsval=3000).reply(200, tsval=9000, tsecr=3000)
        assert (Verdict.FAIL in receipt.verdicts("SNR-TS-006")) == expected


def test_syn_whose_options_cannot_be_read_need_not_be_challenged() -> None:
    sound = Receipt().data(0, 100).reply(100).data(100, 100, flags=SYN, after=1.0).later()
    assert sound.verdicts("SNR-CON-013") >= FAIL
    odd = Receipt().data(0, 100).reply(100)
    _innocent(odd.data(100, 100, flags=SYN, after=1.0, options=UNREADABLE).later(), "SNR-CON-013")


def test_what_comes_after_a_reset_at_the_next_octet_is_of_no_connection() -> None:
    receipt = Receipt().data(0, 100).reply(100).reset(100, after=1.0).data(100, 100, ack=900)
    receipt._put(True, RST, seq=900, ack=0)
    _innocent(receipt.later(), "SNR-ACK-003", "SNR-RCV-003")


def test_duplicate_that_begins_below_the_stream_is_reported_whole() -> None:
    receipt = Receipt().data(0, 1).reply(1).data(-1, 1, after=0.1).reply(1, (-1, 1)).later()
    _innocent(receipt, "SNR-RCV-024", "SNR-RCV-009")
    receipt = Receipt().data(0, 1).reply(1).data(-1, 2, after=0.1).reply(2, (-1, 2)).later()
    assert receipt.verdicts("SNR-RCV-024") == FAIL


def test_syn_ack_with_a_new_number_after_the_tester_has_reset() -> None:
    def again(receipt: Receipt) -> set[Verdict]:
        receipt.syn(after=0.5)
        return receipt._put(True, SYN | ACK, seq=699, ack=0).later().verdicts("SNR-CON-006")

    assert again(Receipt().reset(0, after=0.1)) == PASS
    assert again(Receipt().reset(7, after=0.1)) == PASS | FAIL


def test_repeated_syn_ack_echoes_what_came_before_the_handshake_was_complete() -> None:
    receipt = Receipt(timestamps=True).open(answer=None)
    receipt.reply(0, flags=SYN | ACK, seq=-1, tsval=7000, tsecr=1000)
    receipt.data(0, 0, ack=900, tsval=1500, after=0.1)
    receipt.reply(0, flags=SYN | ACK, seq=-1, tsval=8000, tsecr=1500, after=0.9)
    assert receipt.verdicts("SNR-TS-001") == PASS
    receipt.reply(0, flags=SYN | ACK, seq=-1, tsval=9000, tsecr=1501, after=2.0)
    assert receipt.verdicts("SNR-TS-001") == PASS | FAIL


def test_reset_for_what_lacks_a_timestamp_once_both_sides_have_closed() -> None:
    def closed(receipt: Receipt) -> Receipt:
        return receipt.data(1, 5, after=1.0, tsval=None, tsecr=None)._put(True, RST, seq=1, ack=0)

    over = Receipt(timestamps=True).data(0, 0, flags=ACK | FIN).reply(1, flags=ACK | FIN)
    over.data(1, 1, ack=1)
    assert closed(over).verdicts("SNR-TS-008") == NOTHING
    assert closed(Receipt(timestamps=True).data(0, 1).reply(1)).verdicts("SNR-TS-008") >= FAIL


@pytest.mark.parametrize("silence", [1.0, 200.0])
def test_reset_for_what_lacks_a_timestamp_once_the_connection_may_be_over(silence: float) -> None:
    def reset(receipt: Receipt) -> Receipt:
        return receipt._put(True, RST, seq=1, ack=0, tsval=None, tsecr=None)

    def bare(receipt: Receipt, **fields: int) -> Receipt:
        return reset(receipt.data(1, 5, after=silence, tsval=None, tsecr=None, **fields))

    lingering = Receipt(timestamps=True).reply(0, flags=ACK | FIN)
    lingering.data(0, 0, flags=ACK | FIN, ack=1).reply(1, seq=1)
    gone = reset(Receipt(timestamps=True).data(0, 1).reply(1).data(9, 10, after=200.0))
    _innocent(bare(lingering, ack=1), "SNR-TS-008")
    _innocent(bare(gone), "SNR-TS-008")
    open_ = bare(Receipt(timestamps=True).data(0, 1).reply(1)).verdicts("SNR-TS-008")
    assert (Verdict.FAIL in open_) == (silence < 60.0)


@pytest.mark.parametrize(("ack", "accused"), [(900, False), (0, True)])
def test_reset_for_what_lacks_a_timestamp_in_syn_received(ack: int, accused: bool) -> None:
    """What does not acknowledge the SYN is answered by a RST (RFC 9293 section 3.10.7.4)."""
    receipt = Receipt(timestamps=True).open(answer=None).reply(0, flags=SYN | ACK, seq=-1)
    receipt.data(0, 5, ack=ack, after=0.1, tsval=None, tsecr=None)._put(True, RST, seq=ack, ack=0)
    assert (Verdict.FAIL in receipt.verdicts("SNR-TS-008")) == accused


@pytest.mark.parametrize(("fin", "filled", "accused"), [
    (50, 30, False), (50, 50, True), (55, 30, True), (70, 30, True),
])  # fmt: skip
def test_gap_below_a_fin_that_ends_the_stream_below_what_is_held(
    fin: int, filled: int, accused: bool
) -> None:
    """What is held is forgotten then, and a FIN alone need not be kept."""
    receipt = Receipt(sack=False).data(50, 60).reply(0).data(fin, fin, flags=ACK | FIN, after=0.1)
    receipt.reply(0).data(0, filled, after=1.0).reply(
        fin + 1 if filled == 50 else filled, after=0.2
    )
    if filled < 50:
        receipt.data(filled, 50, after=0.1).reply(fin + 1 if fin < 60 else 60)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-RCV-002")) == accused


def test_fin_that_is_repeated_without_ack_is_dropped() -> None:
    sound = Receipt().data(0, 0, flags=ACK | FIN).reply(1).data(0, 0, flags=ACK | FIN, after=1.0)
    assert sound.later().verdicts("SNR-CON-016") == FAIL
    bare = Receipt().data(0, 0, flags=ACK | FIN).reply(1).data(0, 0, flags=FIN, after=1.0)
    _innocent(bare.later(), "SNR-CON-016")


@pytest.mark.parametrize(("tsval", "accused"), [(1000, True), (None, False)])
def test_fin_that_is_repeated_without_its_timestamp_may_be_dropped(
    tsval: int | None, accused: bool
) -> None:
    receipt = Receipt(timestamps=True).data(0, 0, flags=ACK | FIN).reply(1)
    receipt.data(0, 0, flags=ACK | FIN, after=1.0, tsval=tsval, tsecr=tsval)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-CON-016")) == accused


def test_fin_at_the_number_of_the_syn_is_none_that_has_been_received() -> None:
    receipt = Receipt().open(answer=None)._put(True, SYN | ACK, seq=-1, ack=0)
    _innocent(receipt.data(-1, -1, flags=ACK | FIN, after=1.0).later(), "SNR-CON-016")


@pytest.mark.parametrize(("repeated", "accused"), [(100, False), (60, True)])
def test_fin_behind_one_that_lies_below_data_which_had_been_held(
    repeated: int, accused: bool
) -> None:
    """The lower one ends the stream, so that the other has not been received however often."""
    receipt = Receipt().data(60, 160).reply(0, (60, 160))
    receipt.data(0, 60, flags=ACK | FIN, after=0.1).reply(61, flags=ACK | FIN)
    for _ in range(2):
        receipt.data(repeated, repeated, flags=ACK | FIN, after=0.6)
        receipt.reply(61 if not accused else 0, after=0.001)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-CON-016")) == accused


def test_reset_that_answers_a_later_segment_is_no_effect_of_a_damaged_one() -> None:
    def reset(after: int) -> Receipt:
        receipt = Receipt(service=7).data(0, 0, flags=ACK | FIN).reply(1, flags=ACK | FIN)
        whole = Receipt(service=7)._put(False, RST, seq=1, ack=0).packets[-1]
        receipt.tell_damaged(False, whole.data, 0.1)
        for _ in range(after):
            receipt.data(1, 1, ack=1, after=0.1)
        return receipt._put(True, RST, seq=1, ack=0).later()

    assert reset(1).verdicts("SNR-CON-002") == FAIL
    _innocent(reset(2), "SNR-CON-002")


@pytest.mark.parametrize(("waited", "accused"), [(1.0, True), (100.0, False)])
def test_reset_after_a_damaged_one_when_time_wait_may_be_over(waited: float, accused: bool) -> None:
    receipt = Receipt().reply(0, flags=ACK | FIN).data(0, 0, flags=ACK | FIN, ack=1).reply(1, seq=1)
    whole = Receipt()._put(False, RST, seq=1, ack=0).packets[-1]
    receipt.tell_damaged(False, whole.data, waited)
    receipt.data(1, 1, ack=1, after=0.1)._put(True, RST, seq=1, ack=0).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-002")) == accused


@pytest.mark.parametrize("options", [UNREADABLE, bytes.fromhex("050400ff")])
def test_data_behind_a_segment_whose_options_cannot_be_read(options: bytes) -> None:
    """Who took that segment has no gap, and may wait; who dropped it has one."""
    receipt = Receipt().data(0, 100).reply(100).data(100, 200, after=0.1, options=options)
    receipt.data(200, 300, after=0.01).reply(300, after=0.2)
    _innocent(receipt.later(), "SNR-RCV-001")
    plain = Receipt().data(0, 100).reply(100).data(200, 300, after=0.1).reply(100, after=0.3)
    assert plain.later().verdicts("SNR-RCV-001") >= FAIL


@pytest.mark.parametrize(("tsval", "accused"), [(1000, True), (None, False), (5, False)])
def test_wrong_acknowledgment_of_the_syn_ack_without_its_timestamp(
    tsval: int | None, accused: bool
) -> None:
    """One that is older than that of the SYN is dropped, too."""
    receipt = Receipt(timestamps=True)
    receipt.packets.pop()
    receipt.data(0, 0, ack=5, after=0.1, tsval=tsval, tsecr=tsval).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-007")) == accused


@pytest.mark.parametrize(("options", "accused"), [(b"", True), (UNREADABLE, False)])
def test_wrong_acknowledgment_of_the_syn_ack_whose_options_cannot_be_read(
    options: bytes, accused: bool
) -> None:
    receipt = Receipt()
    receipt.packets.pop()
    receipt.data(0, 1, ack=5, after=0.1, options=options).data(0, 0, after=0.01).reply(
        0, payload=b"x"
    )
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-007")) == accused


def test_wrong_acknowledgment_behind_the_right_one_whose_options_cannot_be_read() -> None:
    """Who has taken that is connected."""
    receipt = Receipt()
    receipt.packets.pop()
    receipt.data(0, 0, after=0.1, options=UNREADABLE).reply(0, payload=b"x")
    _innocent(receipt.data(0, 0, ack=1, after=0.3).later(), "SNR-CON-007")


@pytest.mark.parametrize(("ack", "accused"), [(0, False), (7, True)])
def test_wrong_acknowledgment_of_the_syn_ack_behind_one_with_a_syn(ack: int, accused: bool) -> None:
    """As if both had called; who takes that for the end of the handshake is connected."""
    receipt = Receipt()
    receipt.packets.pop()
    receipt.data(-1, -1, flags=SYN | ACK, ack=ack, after=0.1)
    receipt.data(0, 0, ack=5, after=0.3).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-007")) == accused


def test_reset_below_data_behind_a_fin_that_a_closed_window_kept_out() -> None:
    """The data is taken, what left at once did not acknowledge it, and the RST is below it."""
    receipt = Receipt(window=100)
    receipt.data(0, 100).reply(100, window=0).data(99, 100, flags=ACK | FIN, after=1.0)
    receipt.reply(100, window=0).reply(100, window=2000, after=1.0)
    receipt.data(100, 103, after=1.0).reply(100, window=2000).data(100, 100, flags=RST)
    _innocent(receipt.reply(103, window=2000, after=0.2).later(), "SNR-CON-010")
    receipt = Receipt().data(0, 100).reply(100).data(100, 100, flags=RST, after=1.0)
    receipt.data(100, 103, after=0.1).reply(103, after=0.2)
    assert receipt.later().verdicts("SNR-CON-010") >= FAIL


def test_reset_with_a_syn_below_the_window_is_a_reset() -> None:
    """It is dropped without an answer (RFC 9293 section 3.10.7.4, second)."""
    opened = Receipt().data(0, 100).reply(100).data(100, 100)
    opened.data(-1, -1, flags=SYN | RST, after=1.0)
    _innocent(opened.later(), "SNR-CON-013")
    opened = Receipt().data(0, 100).reply(100).data(100, 100)
    assert opened.data(-1, -1, flags=SYN, after=1.0).later().verdicts("SNR-CON-013") == FAIL


@pytest.mark.parametrize(("given_up", "accused"), [(True, False), (False, True)])
def test_syn_on_a_connection_that_may_have_been_given_up(given_up: bool, accused: bool) -> None:
    opened = Receipt().data(0, 100).reply(100)
    if given_up:
        opened.reply(100, flags=RST | ACK, after=500.0)
    opened.data(-1, -1, flags=SYN | ACK, after=500.0).reply(0, flags=RST, after=0.001)
    assert (Verdict.FAIL in opened.later().verdicts("SNR-CON-013")) == accused


@pytest.mark.parametrize(("at", "accused"), [(0, False), (50, True)])
def test_syn_after_a_reset_at_what_was_acknowledged_last(at: int, accused: bool) -> None:
    """Text without its timestamp may have been taken, and the next number be another."""
    opened = Receipt(timestamps=True).data(0, 100, tsval=None, tsecr=None)
    opened.data(103, 104).reply(0, after=0.001).data(at, at, flags=RST, after=20.0)
    opened.data(-200, -200, flags=SYN | ACK, after=0.001).reply(0, flags=RST, after=0.001).later()
    assert (Verdict.FAIL in opened.verdicts("SNR-CON-013")) == accused


@pytest.mark.parametrize(("tsval", "accused"), [(2000, True), (None, False)])
def test_syn_on_an_open_connection_without_its_timestamp(tsval: int | None, accused: bool) -> None:
    opened = Receipt(timestamps=True).data(0, 100).reply(100)
    opened.data(101, 101, flags=SYN, after=1.0, tsval=tsval, tsecr=tsval).later()
    assert (Verdict.FAIL in opened.verdicts("SNR-CON-013")) == accused


@pytest.mark.parametrize(("heard", "accused"), [(5, False), (4, True)])
def test_reset_long_after_a_reset_in_the_window_when_time_wait_may_have_ended(
    heard: int, accused: bool
) -> None:
    """Both sides have closed, and the tester has acknowledged the FIN or not."""
    receipt = Receipt(service=13).reply(0, payload=b"time").reply(0, seq=4, flags=ACK | FIN)
    receipt.data(0, 0, flags=ACK | FIN).reply(1, seq=5)
    receipt.data(1000, 1000, flags=RST, after=0.1).reply(1, seq=5)
    receipt.data(1, 1, ack=heard, after=0.6).data(1, 1, ack=heard, after=100.0)
    receipt.reply(1, flags=RST, seq=5)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-CON-012")) == accused


def test_challenge_that_answers_another_reset_than_that_at_the_edge() -> None:
    receipt = Receipt().data(0, 100).reply(100).data(20_100, 20_100, flags=RST, after=0.1)
    assert receipt.reply(100).later().verdicts("SNR-CON-044", claims=EXACT) >= FAIL
    receipt = Receipt().data(0, 100).reply(100).data(20_100, 20_100, flags=RST, after=0.1)
    receipt.data(200, 200, flags=RST).reply(100).later()
    assert receipt.verdicts("SNR-CON-044", claims=EXACT).isdisjoint(FAIL)


def test_timestamp_of_a_segment_that_may_have_been_dropped() -> None:
    receipt = Receipt(timestamps=True).data(0, 12, tsval=2000, after=0.5, options=UNREADABLE)
    receipt.reply(0, tsval=7500, tsecr=1000)
    _innocent(receipt, "SNR-TS-001")


def test_timestamp_of_what_repeats_data_behind_a_fin() -> None:
    """There are two FINs; who heeds the other takes the data, and what repeats it is old."""
    receipt = Receipt(timestamps=True).data(1000, 1000, flags=ACK | FIN).reply(0)
    receipt.data(0, 0, flags=ACK | FIN).reply(0).data(0, 100)
    receipt.data(-900, 100, after=0.09, tsval=1090).reply(100)
    _innocent(receipt, "SNR-TS-001")
    known = Receipt(timestamps=True).data(0, 50).reply(50).data(0, 100, after=0.09, tsval=1090)
    assert known.reply(100).verdicts("SNR-TS-001") >= FAIL


def test_fin_into_an_opening_of_an_octet_is_all_that_there_is() -> None:
    receipt = Receipt(service=7).data(0, 0, window=1).data(0, 0, flags=ACK | FIN, window=1)
    receipt.reply(1, flags=ACK | FIN).later()
    _innocent(receipt, "SNR-WIN-010")


@pytest.mark.parametrize(("taken", "expected"), [(100, PASS), (75, PASS | FAIL)])
def test_challenge_acknowledges_data_whose_options_cannot_be_read_or_not(
    taken: int, expected: set[Verdict]
) -> None:
    """It may have been dropped, or taken and not acknowledged yet."""
    receipt = Receipt(service=19).data(0, 50).reply(50).data(50, 100, options=UNREADABLE, after=0.1)
    receipt.reply(50, payload=bytes(10)).data(101, 101, flags=RST).reply(taken, seq=10)
    receipt.data(50, 100, after=1.0).reply(100, seq=10)
    assert receipt.later().verdicts("SNR-CON-012") == expected


@pytest.mark.parametrize(
    ("at", "challenged", "expected"),
    [(1, True, PASS), (1, False, FAIL | PASS), (0, False, NOTHING), (70_000, False, NOTHING)],
)
def test_reset_in_syn_received(at: int, challenged: bool, expected: set[Verdict]) -> None:
    """One beyond the next octet and in the window is challenged, whoever has called."""
    receipt = Receipt()
    receipt.packets.clear()
    receipt.syn().reply(0, seq=-1, flags=ACK | SYN, sack_permitted=True)
    receipt.data(at, at, flags=RST, after=0.3)
    if challenged:
        receipt.reply(0)
    receipt.data(0, 0, ack=0, after=1.0).data(0, 100, after=0.1).reply(100 if challenged else 0)
    assert receipt.later().verdicts("SNR-CON-012") == expected


def test_window_of_text_that_begins_below_the_syn_and_completes_the_handshake() -> None:
    """In SYN-RECEIVED SND.WND is set, whatever SND.WL1 is (RFC 9293 section 3.10.7.4, fifth)."""
    receipt = Receipt()
    receipt.packets.clear()
    receipt.syn(window=16).reply(0, seq=-1, flags=ACK | SYN, sack_permitted=True)
    receipt.data(-2, 98, ack=0, window=20_000, after=0.6).reply(98, payload=bytes(500))
    _innocent(receipt, "SNR-WIN-001")


@pytest.mark.parametrize(("before", "accused"), [(0.35, False), (30.0, True)])
def test_reset_soon_after_an_acknowledgment_of_what_was_not_sent(
    before: float, accused: bool
) -> None:
    """Answers may be limited in rate (RFC 5961 section 7), whatever they answer."""
    opened = Receipt().data(0, 100).reply(100).data(100, 100, ack=700, after=1.0).reply(100)
    opened.data(500, 500, flags=RST, after=before).data(100, 101, after=40.0).reply(101).later()
    assert (Verdict.FAIL in opened.verdicts("SNR-CON-012")) == accused


def test_second_reset_meets_no_connection() -> None:
    first = Receipt().data(0, 100).reply(100).reset(100, after=1.0).reset(150, after=0.5)
    _innocent(first.later(), "SNR-CON-012", "SNR-CON-011", "SNR-CON-044")
    alone = Receipt().data(0, 100).reply(100).reset(150, after=1.0)
    assert alone.later().verdicts("SNR-CON-012") >= FAIL


@pytest.mark.parametrize(("probed", "expected"), [(True, PASS), (False, FAIL | PASS)])
def test_connection_that_asks_whether_its_peer_lives_before_it_is_given_up(
    probed: bool, expected: set[Verdict]
) -> None:
    """A RST in the window is challenged, whose sender falls silent; keep-alives go unanswered."""
    receipt = Receipt().reply(0, payload=b"hello").data(0, 100, ack=5).reply(100, seq=5)
    receipt.reset(150, after=1.0).reply(100, seq=5)
    for _ in range(3 if probed else 0):
        receipt.reply(100, seq=4, after=1.0)
    receipt.reply(100, seq=5, flags=RST | ACK, after=1.0)
    assert receipt.verdicts("SNR-CON-012") == expected


@pytest.mark.parametrize(("after", "expected"), [(5.0, PASS), (0.001, FAIL | PASS)])
def test_caller_whose_user_aborts_after_a_reset_in_the_window(
    after: float, expected: set[Verdict]
) -> None:
    """A RST that answers nothing is the user's; one that answers is the effect."""
    story = Story(calls=True).send_octets(0, 0).reset(1.0, outgoing=False, seq=150)
    story.send_octets(0, 0).reset(after)
    claims = {**CALLS, "challenge_acks": True}
    assert story.verdicts("SNR-CON-012", claims=claims) == expected


def test_attempt_that_has_been_given_up_answers_by_a_reset() -> None:
    def late(after: float) -> Story:
        story = Story(calls=True, service=9)
        whole = story.packets.pop()
        answer = replace(dissect(whole.data), flags=ACK)
        story.tell(False, build(answer), after)
        return story.tell(True, build(replace(dissect(story.packets[0].data), flags=RST)))

    assert late(2.0).verdicts("SNR-CON-029", claims=CALLS) == FAIL
    assert late(300.0).verdicts("SNR-CON-029", claims=CALLS).isdisjoint(FAIL)


@pytest.mark.parametrize("is_reset", [True, False])
def test_reset_after_the_peers_own_reset_answers_no_data(is_reset: bool) -> None:
    """Data behind the own FIN, at once a RST, and something that meets no connection any more."""
    receipt = Receipt(service=13).reply(0, payload=b"time").reply(0, seq=4, flags=ACK | FIN)
    receipt.data(0, 10, ack=5, after=0.1)
    if is_reset:
        receipt.data(10, 10, flags=RST)
    receipt.data(10, 10, ack=5).reply(10, flags=RST, seq=5)
    claims = {**CLAIMS, "daytime": True}
    found = receipt.later().verdicts("SNR-CON-020", claims=claims)
    assert found == (NOTHING if is_reset else FAIL)


@pytest.mark.parametrize(("carried", "expected"), [(100, PASS), (0, FAIL)])
def test_d_sack_of_what_came_with_the_syn(carried: int, expected: set[Verdict]) -> None:
    receipt = Receipt()
    receipt.packets.clear()
    receipt.syn(payload=bytes(carried)).reply(0, seq=-1, flags=ACK | SYN, sack_permitted=True)
    receipt.data(0, 0, ack=0).data(0, 100, after=0.1).reply(100, (0, 100))
    assert receipt.verdicts("SNR-RCV-024") == expected


@pytest.mark.parametrize(("apart", "expected"), [(0.3, PASS), (1.0, PASS | FAIL)])
def test_copies_of_a_syn_ack_soon_after_one_another(apart: float, expected: set[Verdict]) -> None:
    """Answers to what comes again may be limited (RFC 5961 section 7)."""
    story = Story(calls=True).send_octets(0, 0)
    story._put(False, flags=SYN | ACK, seq=99, after=1.0, ack=500).send_octets(0, 0)
    story._put(False, flags=SYN | ACK, seq=99, after=apart, ack=500).ack(0, after=5.0)
    claims = {**CLAIMS, "active_open": True}
    assert story.verdicts("SNR-CON-030", claims=claims) == expected


def test_reset_behind_what_may_have_been_taken_may_have_ended_the_connection() -> None:
    receipt = Receipt(service=13).reply(0, flags=ACK | FIN).data(0, 0, ack=1, after=0.6)
    receipt.data(0, 100, ack=1, options=UNREADABLE, after=0.1).reset(100, after=0.1)
    receipt.data(0, 100, ack=1, after=0.3).reply(0, seq=1, flags=RST, after=0.001)
    claims = {**CLAIMS, "daytime": True}
    assert receipt.later().verdicts("SNR-CON-020", claims=claims) == NOTHING


@pytest.mark.parametrize(("at", "accused"), [(0, False), (100, True)])
def test_acknowledgment_behind_text_that_acknowledges_too_little(at: int, accused: bool) -> None:
    """RFC 5961 section 5.2 may have the text dropped; who has taken it finds what it covers old."""
    receipt = Receipt(service=19, window=2000).reply(0, payload=bytes(1000))
    receipt.data(0, 100, ack=-5000, after=0.1).data(at, at, ack=1000).reply(100, seq=1000)
    receipt.reply(100, payload=bytes(1000), after=1.5)
    assert (Verdict.FAIL in receipt.later().verdicts("SNR-ACK-009")) == accused


@pytest.mark.parametrize(("tsval", "accused"), [(None, False), (9000, True)])
def test_another_syn_ack_without_its_timestamp_need_not_be_acknowledged(
    tsval: int | None, accused: bool
) -> None:
    """RFC 7323 section 3.2 has it dropped silently."""
    story = Story(calls=True, stamps=True).send(0)
    tester = dissect(story.packets[1].data)
    again = replace(tester, tsval=tsval, tsecr=tester.tsecr if tsval else None)
    story.tell(False, build(again), after=RTT).ack(1, after=1.0)
    assert (Verdict.FAIL in story.verdicts("SNR-CON-030", claims=CALLS)) == accused


def test_octet_without_ack_at_the_number_of_a_fin_that_is_held() -> None:
    """It is the FIN that is acknowledged once the gap below is filled."""
    receipt = Receipt().data(100, 100, flags=ACK | FIN).reply(0, (100, 101))
    receipt.data(100, 101, flags=PSH, after=0.1).data(0, 100, after=0.1).reply(101)
    _innocent(receipt.later(), "SNR-CON-014")


def test_octets_half_the_space_away_are_old() -> None:
    """By the arithmetic of signed differences, from the next octet expected."""
    receipt = Receipt().data(0, 100).reply(100).data(8000, 9000).reply(100, (8000, 9000))
    half = 100 - (1 << 31)
    receipt.data(half, half + 100, flags=0, after=0.1).reply(100, (half, half + 100), (8000, 9000))
    receipt.data(3000, 4000, after=0.1).reply(100, (3000, 4000), (8000, 9000))
    _innocent(receipt.later(), "SNR-CON-014", "SNR-RCV-011", "SNR-RCV-012")


def test_reset_behind_a_segment_without_ack_ends_the_connection() -> None:
    """Nothing of a segment without ACK is taken (RFC 9293 section 3.10.7.4, fifth)."""
    receipt = Receipt(service=13).reply(0, flags=ACK | FIN).data(0, 0, ack=1, after=0.6)
    receipt.data(-1, 99, flags=FIN, ack=1, after=0.1).reset(0, after=0.1)
    receipt.data(0, 100, ack=1, after=0.1).reply(0, seq=1, flags=RST, after=0.001)
    claims = {**CLAIMS, "daytime": True}
    assert receipt.later().verdicts("SNR-CON-020", claims=claims) == NOTHING


def test_acknowledgment_of_unsent_data_after_a_reset_that_answered_another() -> None:
    story = Story(window=40_000).send(0, 1).ack(1, after=1000.0).reset()
    _innocent(story.ack(3, after=0.1).reset().ack(2, after=5.0), "SNR-ACK-003")
    assert Story().send(0, 1).ack(3, after=1.0).ack(2, after=5.0).verdicts("SNR-ACK-003") >= FAIL


@pytest.mark.parametrize(("seq", "options", "expected"), [
    (99, UNREADABLE, False), (98, UNREADABLE, True), (98, b"", False),
])  # fmt: skip
def test_syn_ack_whose_options_cannot_be_read_may_be_passed_over(
    seq: int, options: bytes, expected: bool
) -> None:
    """What the caller acknowledges next shows which SYN-ACK it took."""
    answer = Tcp("10.0.0.1", "10.0.0.2", 4000, 19, seq, 500, SYN | ACK, 1000, b"")
    taken = Tcp("10.0.0.2", "10.0.0.1", 19, 4000, 500, 100, ACK, 1000, b"")
    assert passed_over(dissect(build(answer, options)), taken) == expected


@pytest.mark.parametrize(("ack", "accused"), [(2**31 + 20, False), (2**31 - 20, True)])
def test_acknowledgment_half_the_space_beyond_some_of_what_is_outstanding(
    ack: int, accused: bool
) -> None:
    """Modulo 2**32 it lies below SND.UNA as well as beyond SND.NXT."""
    receipt = Receipt(service=7).reply(0, payload=bytes(100)).data(0, 10, ack=ack, after=0.1)
    found = receipt.reply(10, after=0.01).later().verdicts("SNR-SEG-004")
    assert (Verdict.FAIL in found) == accused
    silent = Receipt(service=7).reply(0, payload=bytes(100)).data(0, 10, ack=ack, after=0.1)
    _innocent(silent.later(), "SNR-SEG-004", "SNR-SEG-005", "SNR-RCV-003")


@pytest.mark.parametrize("flags", [SYN, SYN | ACK])
@pytest.mark.parametrize(("options", "accused"), [(UNREADABLE, False), (b"", True)])
def test_syn_whose_options_cannot_be_read_where_the_caller_goes_on_calling(
    flags: int, options: bytes, accused: bool
) -> None:
    """It was passed over, though what is acknowledged in the end might be its text."""
    story = Story(calls=True, syn_acks=(0.001, 1.001))
    _, again, answer = story.packets
    odd = Tcp(*ends(False, 19, 4000), 98, 500, flags, 1000, bytes(10))
    story.packets[1:] = [replace(answer, time=0.5, data=build(odd, options)), again, answer]
    sent = story.send(0).verdicts("SNR-OPT-010", claims=CALLS)
    assert (Verdict.FAIL in sent) == accused
    called = story.verdicts("SNR-CON-030", claims=CALLS)
    assert (Verdict.FAIL in called) == (accused and flags != SYN)


def _answered(options: bytes) -> Receipt:
    """A call that is answered by a SYN-ACK with such options."""
    syn = Tcp("10.77.0.2", "10.78.0.1", 5000, 9, 700, 0, SYN, 20000, b"", mss=1460)
    odd = Tcp("10.78.0.1", "10.77.0.2", 9, 5000, 300, 701, SYN | ACK, 20000, bytes(100))
    receipt = Receipt().open(answer=None).tell(True, build(syn))
    return receipt.tell(False, build(odd, options), 0.6)


@pytest.mark.parametrize(("options", "accused"), [(UNREADABLE, False), (b"", True)])
def test_syn_ack_whose_options_cannot_be_read_need_not_be_acknowledged(
    options: bytes, accused: bool
) -> None:
    receipt = _answered(options)
    refusal = Tcp("10.78.0.1", "10.77.0.2", 9, 5000, 301, 701, RST | ACK, 20000, b"")
    receipt.tell(False, build(refusal), 5.0).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-030", claims=CALLS)) == accused


@pytest.mark.parametrize(("options", "accused"), [(UNREADABLE, False), (b"", True)])
def test_syn_ack_whose_options_cannot_be_read_before_syns_cross(
    options: bytes, accused: bool
) -> None:
    """The SYN that comes instead may be answered by a SYN-ACK."""
    receipt = _answered(options)
    syn = Tcp("10.78.0.1", "10.77.0.2", 9, 5000, 200, 0, SYN, 20000, b"")
    answer = Tcp("10.77.0.2", "10.78.0.1", 5000, 9, 700, 201, SYN | ACK, 20000, b"")
    receipt.tell(False, build(syn), 0.1).tell(True, build(answer), 0.001).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-030", claims=CALLS)) == accused


@pytest.mark.parametrize(
    ("apart", "again", "accused"),
    [(0.6, True, False), (0.3, True, False), (0.6, False, False), (0.3, False, True)],
)
def test_syn_ack_whose_options_cannot_be_read_and_that_was_passed_over(
    apart: float, again: bool, accused: bool
) -> None:
    """The SYN leaves again, or nothing does; the text would reach as far as the next SYN-ACK."""
    receipt = _answered(UNREADABLE)
    if again:
        syn = Tcp("10.77.0.2", "10.78.0.1", 5000, 9, 700, 0, SYN, 20000, b"", mss=1460)
        receipt.tell(True, build(syn), 0.1)
    answer = Tcp("10.78.0.1", "10.77.0.2", 9, 5000, 301, 701, SYN | ACK, 20000, b"", mss=1460)
    taken = Tcp("10.77.0.2", "10.78.0.1", 5000, 9, 701, 302, ACK, 20000, bytes(1460))
    receipt.tell(False, build(answer), apart).tell(True, build(taken), 0.001).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-OPT-010", claims=CALLS)) == accused
    assert accused or receipt.verdicts("SNR-CON-030", claims=CALLS) == PASS


@pytest.mark.parametrize(("octets", "accused"), [(0, True), (4000, False)])
def test_window_that_refused_data_opens_behind_what_is_outstanding(
    octets: int, accused: bool
) -> None:
    """The congestion window may be full (15330010)."""
    receipt = Receipt(service=7).data(0, 8000, window=octets)
    receipt.reply(8000, window=0, payload=bytes(octets)).data(8000, 8700, window=60000, after=1.0)
    receipt.reply(8000, seq=octets, window=0).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-ACK-010")) == accused


@pytest.mark.parametrize(("ahead", "accused"), [(2**31, False), (2**30, True)])
def test_data_half_the_space_away_may_be_old(ahead: int, accused: bool) -> None:
    """Its block is a D-SACK block then."""
    receipt = Receipt().data(0, 100).reply(100).data(15_000, 15_100, after=0.1)
    held = 15_000, 15_100
    receipt.reply(100, held).data(100 + ahead, 101 + ahead, after=0.1)
    receipt.reply(100, (100 + ahead, 101 + ahead), held)
    receipt.later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-RCV-016")) == accused


def test_data_behind_what_acknowledges_so_little_that_it_may_be_dropped() -> None:
    """It may be in sequence, and its acknowledgment be delayed (RFC 5961 section 5.2)."""
    receipt = Receipt().reply(0, payload=bytes(30000)).data(0, 0, ack=30000, after=0.1)
    receipt.data(0, 1, ack=1, after=0.1).data(1, 801, ack=30000, after=0.01)
    receipt.data(801, 901, ack=30000, after=0.05).reply(901, seq=30000, after=0.001)
    _innocent(receipt.later(), "SNR-RCV-001")


@pytest.mark.parametrize(("ack", "accused"), [(1, False), (0, True)])
def test_syn_on_a_connection_whose_last_acknowledgment_comes_then(ack: int, accused: bool) -> None:
    """What comes behind that finds no connection; the peer's FIN had come above a gap."""
    receipt = Receipt().data(50, 100, flags=ACK | FIN).reply(0, (50, 100)).data(0, 50)
    receipt.reply(101, flags=ACK | FIN)
    receipt.data(300, 300, flags=SYN | ACK, after=0.6).reply(101, seq=1, after=0.001)
    receipt.data(101, 101, ack=ack, after=0.1).data(101, 101, ack=ack, after=0.1)
    receipt.reply(101, seq=1, flags=RST, after=0.001).later()
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-013")) == accused


@pytest.mark.parametrize(("options", "accused"), [(UNREADABLE, False), (b"", True)])
def test_wrong_acknowledgment_in_syn_sent_whose_options_cannot_be_read(
    options: bytes, accused: bool
) -> None:
    receipt = Receipt().open(answer=None)
    syn = Tcp("10.77.0.2", "10.78.0.1", 5000, 9, 700, 0, SYN, 20000, b"")
    odd = Tcp("10.78.0.1", "10.77.0.2", 9, 5000, 300, 9, ACK | FIN, 20000, b"")
    receipt.tell(True, build(syn)).tell(False, build(odd, options), 0.6)
    receipt.tell(True, build(syn), 0.4).tell(False, build(odd, UNREADABLE), 5.0)
    assert (Verdict.FAIL in receipt.verdicts("SNR-CON-027", claims=CALLS)) == accused


@pytest.mark.parametrize(("ack", "accused"), [(7, False), (0, True)])
@pytest.mark.parametrize(("requirement", "number"), [("SNR-CON-011", 70_000), ("SNR-CON-012", 300)])
def test_reset_of_the_iut_for_a_wrong_acknowledgment_of_the_syn_ack(
    requirement: str, number: int, ack: int, accused: bool
) -> None:
    """It ends nothing, whatever RST of the tester had come before (section 3.10.7.4, fifth)."""
    receipt = Receipt().open(answer=None)._put(True, SYN | ACK, seq=-1, ack=0)
    receipt.data(30_000, 30_001, after=0.1).reply(0)
    receipt.reset(number, after=0.1)
    if requirement == "SNR-CON-012":
        receipt.reply(0)
    receipt.data(0, 1, ack=ack, after=0.1)._put(True, RST, seq=ack, ack=0)
    receipt.data(0, 2, after=0.1)
    receipt = receipt.reply(2) if not accused else receipt._put(True, RST, seq=0, ack=0)
    assert receipt.later().verdicts(requirement) >= (FAIL if accused else PASS)
    assert (Verdict.FAIL in receipt.verdicts(requirement)) == accused


def test_reset_that_was_heeded_shows_behind_a_wrong_acknowledgment_of_the_syn_ack() -> None:
    receipt = Receipt().open(answer=None)._put(True, SYN | ACK, seq=-1, ack=0)
    receipt.data(30_000, 30_001, after=0.1).reply(0).reset(70_000, after=0.1)
    receipt.data(0, 1, ack=7, after=0.1)._put(True, RST, seq=7, ack=0)
    receipt.data(0, 2, after=0.1)._put(True, RST, seq=0, ack=0)
    assert receipt.later().verdicts("SNR-CON-011") >= FAIL


def test_reset_behind_what_the_acknowledgment_of_dubious_text_has_let_out() -> None:
    """That may have left before the text was processed, which makes 100 the next number."""

    def let_out(octets: int) -> Receipt:
        receipt = Receipt(service=19).reply(0, payload=bytes(1000))
        receipt.data(0, octets, ack=1000, after=0.6, options=UNREADABLE)
        return receipt.reply(0, seq=1000, payload=bytes(1000))

    def ignored(octets: int) -> Receipt:
        receipt = let_out(octets).reset(0, after=0.001).reset(0, after=0.001)
        return receipt.reply(octets, seq=2000, after=0.2).later()

    def heeded(octets: int) -> Receipt:
        receipt = let_out(octets).reset(100, after=0.001).data(100, 101, ack=1000, after=0.6)
        return receipt._put(True, RST, seq=1000, ack=0).later()

    _innocent(ignored(100), "SNR-CON-005", "SNR-CON-010")
    assert ignored(0).verdicts("SNR-CON-005") >= FAIL
    _innocent(heeded(100), "SNR-CON-012")
    for octets in (0, 50):
        assert heeded(octets).verdicts("SNR-CON-012") >= FAIL


def test_reset_long_after_text_that_was_dropped_is_at_the_next_number() -> None:
    receipt = Receipt(service=19).reply(0, payload=bytes(1000))
    receipt.data(0, 100, ack=1000, after=0.6, options=UNREADABLE)
    receipt.reply(0, seq=1000, payload=bytes(1000), after=0.3)
    receipt.reset(0, after=0.001).reset(0, after=0.001).reply(0, seq=2000, after=0.2)
    assert receipt.later().verdicts("SNR-CON-005") >= FAIL
