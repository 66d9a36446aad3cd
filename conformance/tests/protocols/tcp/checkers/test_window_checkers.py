"""The checkers of the receiver's window on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.checking import Readings, load_checkers
from bentpipe_conformance.engine.context import Context
from bentpipe_conformance.engine.peer import pattern
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH
from bentpipe_conformance.protocols.tcp.interpreter import INTERPRETER
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import CLAIMS, FAIL, NOTHING, PASS, RTT, SIZE, Story
from bentpipe_conformance.selftest.strangers import judging


def test_data_up_to_and_beyond_the_window() -> None:
    assert Story(window=2500).send(0, 1).verdicts("SNR-WIN-001") == PASS
    assert Story(window=2500).send(0, 1, 2).verdicts("SNR-WIN-001") == FAIL
    assert Story().send(0, 1, 2).verdicts("SNR-WIN-001") == NOTHING


def _probed(*intervals: float) -> Story:
    """A closed window and answered probes; intervals count from answer to probe."""
    story = _closed()
    for interval in intervals:
        story.send_octets(4 * SIZE, 1, after=interval).ack(4, after=RTT, window=0)
    return story


def test_probe_beyond_the_window_is_permitted() -> None:
    assert _probed(1.8).verdicts("SNR-WIN-001") == PASS


def _closed(window: int = 4 * SIZE) -> Story:
    """A window filled, acknowledged and closed."""
    return Story(window=window).send(0, 1, 2, 3).ack(4, after=RTT, window=0)


@pytest.mark.parametrize(("seconds", "expected"), [(65, FAIL), (20, NOTHING)])
def test_closed_window_without_probes(seconds: float, expected: set[Verdict]) -> None:
    story = _closed().ack(4, after=seconds, window=4 * SIZE).send(4, 5)
    assert story.verdicts("SNR-WIN-003") == expected


def _told_again_and_again() -> Story:
    """A closed window about which acknowledgments tell once a second, for 70 seconds."""
    story = _closed()
    for _ in range(70):
        story.ack(4, after=1.0, window=0)
    return story


def test_arrivals_that_tell_of_the_closed_window_put_the_probe_off() -> None:
    # RFC 9293 section 3.8.6.1: MUST-36 asks for probes, SHLD-29 for the first one's time.
    story = _told_again_and_again()
    assert story.verdicts("SNR-WIN-003") == NOTHING
    story.send_octets(4 * SIZE, 1, after=2.0).ack(4, after=RTT, window=0)
    assert story.verdicts("SNR-WIN-003") == PASS
    assert story.verdicts("SNR-WIN-004") == FAIL


def test_arrivals_that_put_the_probe_off_are_known_of_linux() -> None:
    story = _told_again_and_again().send_octets(4 * SIZE, 1, after=2.0).ack(4, after=RTT, window=0)
    anew = (("begins_anew_with_arrivals", True),)
    found = judging(story.trace(), CLAIMS)("SNR-WIN-004", anew, frozenset())
    assert {finding.verdict for finding in found} == PASS


def test_silence_after_arrivals_that_told_of_the_closed_window() -> None:
    story = _told_again_and_again().ack(4, after=65, window=4 * SIZE).send(4, 5)
    assert story.verdicts("SNR-WIN-003") == FAIL


def test_probing_goes_on_in_silence_only() -> None:
    story = _probed(1.8)
    for _ in range(70):
        story.ack(4, after=1.0, window=0)
    assert story.ack(4, after=1.0, window=4 * SIZE).send(4, 5).verdicts("SNR-WIN-003") == PASS


@pytest.mark.parametrize(("seconds", "expected"), [(65, FAIL), (20, PASS)])
def test_closed_window_probed_once(seconds: float, expected: set[Verdict]) -> None:
    story = _probed(1.8).ack(4, after=seconds, window=4 * SIZE).send(4, 5)
    found = story.verdicts("SNR-WIN-003")
    assert found == expected | PASS


def test_small_segment_that_fills_a_window_whose_edge_has_moved_back() -> None:
    story = Story(service=7, window=3 * SIZE).ack(0, after=0.1, data=bytes(100))
    story.send_octets(0, 100, push=True).ack(0, after=0.01, window=SIZE, data=bytes(2000))
    story.send_octets(100, 900).ack(1, after=RTT, window=3 * SIZE).send(1)
    claims = {**CLAIMS, "nagle": True}
    assert story.ack(2, after=RTT).verdicts("SNR-WIN-011", claims=claims).isdisjoint(FAIL)


def test_small_window_of_a_connection_that_has_been_given_up() -> None:
    story = Story(window=4 * SIZE).send(0, 1, 2, 3).ack(4, after=RTT, window=0).reset(after=600)
    story.ack(4, window=200).ack(4, after=1, window=200).ack(4, after=200, window=4 * SIZE).reset()
    assert story.verdicts("SNR-WIN-013") == NOTHING


@pytest.mark.parametrize(("rtt", "accused"), [(20.0, False), (RTT, True)])
@pytest.mark.parametrize(("requirement", "left"), [("SNR-WIN-003", 0), ("SNR-WIN-013", 400)])
def test_window_closed_or_small_for_less_than_the_round_trips_make_a_timeout(
    requirement: str, left: int, rtt: float, accused: bool
) -> None:
    """Nothing leaves for 65 s; a timeout may take 100 s after a round trip of 20 s."""
    story = Story(sack=False, rtt=rtt).send(0, 1).ack(2, after=rtt, window=left)
    story.ack(2, after=65.0, window=4 * SIZE).send(2, 3)
    assert (Verdict.FAIL in story.verdicts(requirement)) == accused


def test_first_probe_after_a_minute_of_a_longer_round_trip() -> None:
    # A minute limits a timeout (RFC 6298 rule 2.5).
    story = Story(sack=False, rtt=65.0).send(0).ack(1, after=65.0, window=0)
    story.send_octets(SIZE, 1, after=60.0).ack(1, after=65.0, window=0)
    assert story.verdicts("SNR-WIN-004") == PASS


def test_window_closed_from_the_start_probed_without_data() -> None:
    story = Story(window=0)
    for interval in (1.8, 3.6):
        story.send_octets(-1, 0, after=interval).ack(0, after=RTT)
    assert story.verdicts("SNR-WIN-004") == PASS


def test_window_closed_from_the_start_probed_at_once() -> None:
    story = Story(window=0).send_octets(0, 1, after=0.001).ack(0, after=RTT)
    story.send_octets(0, 1, after=3.6).ack(0, after=RTT)
    assert story.verdicts("SNR-WIN-004") == FAIL


@pytest.mark.parametrize(("seq", "expected"), [(200, NOTHING), (150, FAIL)])
def test_window_of_an_older_segment(seq: int, expected: set[Verdict]) -> None:
    story = Story(window=4 * SIZE).send(0, 1).ack(2, after=RTT, data=bytes(100))
    story.send(2, 3, 4, 5).ack(2, after=0.1)
    story.ack(2, after=0.1, seq=seq, data=bytes(300), window=60000).send(6)
    assert (story.verdicts("SNR-WIN-001") >= FAIL) == (expected == FAIL)


def test_closed_window_with_nothing_to_send() -> None:
    story = _closed().ack(4, after=65, window=4 * SIZE).send(4, after=30)
    assert story.verdicts("SNR-WIN-003") == NOTHING


@pytest.mark.parametrize(("seq", "accused"), [(99, False), (100, True)])
def test_first_probe_after_a_window_that_an_older_segment_may_have_opened(
    seq: int, accused: bool
) -> None:
    """Who passes over what a copy offers may let the timer go on that had backed off."""
    story = _closed().ack(4, after=20.0, seq=seq, data=bytes(1), window=4 * SIZE)
    story.ack(4, seq=101 if accused else 100, after=0.01, window=0)
    story.send_octets(4 * SIZE, 1, after=12.0).ack(4, after=RTT, window=0)
    assert (Verdict.FAIL in story.verdicts("SNR-WIN-004")) == accused


@pytest.mark.parametrize(("waited", "expected"), [(11.0, PASS), (14.0, FAIL)])
def test_first_probe_after_a_window_too_small_to_use_between_closures(
    waited: float, expected: set[Verdict]
) -> None:
    """The timer may go on that backed off after the first probe already."""
    story = _closed().send_octets(4 * SIZE, 1, after=2.8).send_octets(4 * SIZE, 1, after=5.6)
    story.ack(4, after=8.0, window=4).ack(4, after=0.1, window=0)
    probed = 4 + 1.5 / SIZE
    story.ack(probed, after=0.6, window=0).send_octets(4 * SIZE + 1, 1, after=waited)
    story.ack(probed, after=RTT, window=0)
    assert story.verdicts("SNR-WIN-004") == expected | PASS


@pytest.mark.parametrize(("waited", "expected"), [(0.3, FAIL), (1.8, PASS), (12.0, FAIL)])
def test_first_probe(waited: float, expected: set[Verdict]) -> None:
    assert _probed(waited).verdicts("SNR-WIN-004") == expected


def test_first_probe_after_timeouts_that_met_an_arrival() -> None:
    story = Story(window=2 * SIZE).ack(0, data=b"data").send(0, 1)
    for waited in (1.0, 2.0):
        story.ack(0, seq=100, data=b"data", after=waited).send(0)
    story.ack(1, after=RTT, window=SIZE).send(1).ack(2, after=RTT, window=0)
    assert story.send_octets(2 * SIZE, 1, after=10.0).verdicts("SNR-WIN-004") == PASS


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ((1.0, 2.0, 4.0), PASS),
        ((1.0, 1.4, 3.4), PASS),
        ((2.0, 2.0, 2.0), FAIL),
        ((1.0, 60.0, 60.0), PASS),
        ((1.0, 2.0), NOTHING),
    ],
)
def test_intervals_between_probes(intervals: tuple[float, ...], expected: set[Verdict]) -> None:
    assert _probed(*intervals).verdicts("SNR-WIN-005") == expected


def test_probe_whose_octet_is_taken_begins_a_new_series() -> None:
    story = _closed()
    for taken in range(4):
        story.send_octets(4 * SIZE + taken, 1, after=2.0)
        story.ack((4 * SIZE + taken + 1) / SIZE, after=RTT, window=0)
    assert FAIL.isdisjoint(story.verdicts("SNR-WIN-005"))
    story = _closed().send_octets(4 * SIZE, 1, after=1.0).send_octets(4 * SIZE, 1, after=2.0)
    story.ack(4.001, after=RTT, window=0).send_octets(4 * SIZE + 1, 1, after=3.4)
    story.send_octets(4 * SIZE + 1, 1, after=2.0).ack(4.001, after=RTT, window=0)
    assert FAIL.isdisjoint(story.verdicts("SNR-WIN-005"))


def test_fin_behind_a_probe_whose_octet_is_taken_begins_a_new_series() -> None:
    story = Story(window=0, service=7).ack(0, data=b"x", fin=True, after=0.1).send_octets(0, 0)
    story.send_octets(0, 1, after=0.3).ack(1 / SIZE, after=RTT)
    for interval in (3.0, 3.0):
        story.send_octets(1, 0, after=interval, fin=True)
    story.ack(2 / SIZE, after=RTT)
    assert FAIL.isdisjoint(story.verdicts("SNR-WIN-005"))


def test_answer_to_a_segment_without_ack_is_no_probe() -> None:
    story = _closed().send_octets(4 * SIZE, 1, after=1.0)
    story.ack(4, after=1.6, seq=99, window=0, flags=0).send_octets(4 * SIZE + 1, 0)
    story.send_octets(4 * SIZE, 1, after=2.0).ack(4, after=RTT, window=0)
    assert story.verdicts("SNR-WIN-005").isdisjoint(FAIL)


def test_probe_timed_from_what_arrived_after_the_last() -> None:
    story = _closed().send_octets(4 * SIZE, 1, after=1.0).ack(4, after=2 * RTT, window=0)
    story.send_octets(4 * SIZE, 1, after=2.0)
    for interval in (2.1 + 2 * RTT, 4.2 + 4 * RTT):
        story.send_octets(4 * SIZE, 1, after=interval)
    assert story.verdicts("SNR-WIN-005") == PASS


def test_reset_while_probes_are_answered() -> None:
    assert _probed(2, 4, 8).reset(after=16).verdicts("SNR-WIN-006") == FAIL
    assert _probed(2, 4, 8).reset(after=16, outgoing=False).verdicts("SNR-WIN-006") == NOTHING
    assert _probed(2, 30, 60, 60).verdicts("SNR-WIN-006") == PASS


def _half_closed() -> Story:
    """The tester has closed behind a window of zero, and a probe of the echo is answered."""
    story = Story(window=0, service=7).ack(0, after=0.1, data=bytes(300), fin=True)
    return story.send_octets(0, 0).send_octets(-1, 0, after=1.5).ack(0, after=RTT)


def test_reset_that_answers_data_after_the_users_close() -> None:
    # RFC 9293 section 3.6.1 (SHLD-3): it shows that data was lost.
    story = _half_closed()
    assert story.ack(0, data=bytes(100)).reset().verdicts("SNR-WIN-006") == NOTHING


def test_reset_by_a_system_whose_user_has_gone() -> None:
    # RFC 6429 section 4: resources may be reclaimed.
    assert _half_closed().reset(after=60).verdicts("SNR-WIN-006") == NOTHING


def test_reset_that_answers_data_while_its_user_sends() -> None:
    story = _probed(2, 4, 8).ack(4, window=0, data=bytes(100)).reset()
    assert story.verdicts("SNR-WIN-006") == FAIL


def test_reset_after_data_that_an_offer_beyond_the_own_window_may_have_let_out() -> None:
    story = _closed(60_000).ack(4, after=0.1, data=bytes(60_000), window=0)
    story.window = 0
    for interval in (2, 4):
        story.send_octets(4 * SIZE, 1, after=interval).ack(4, after=RTT, window=0)
    story.ack(4, after=1.0, window=SIZE, data=bytes(100))
    for pause in (0.0, 60.0, 120.0, 240.0):
        story.send(4, after=pause)
    assert story.reset(after=300).verdicts("SNR-WIN-006") == NOTHING


def test_reset_while_probes_are_not_answered() -> None:
    story = _closed().send_octets(4 * SIZE, 1, after=2).send_octets(4 * SIZE, 1, after=4)
    assert story.reset(after=60).verdicts("SNR-WIN-006") == NOTHING


def test_opened_window_used_at_once_or_by_the_next_probe() -> None:
    story = _probed(2, 4).ack(4, after=0.1, window=4 * SIZE)
    assert story.send(4, 5).verdicts("SNR-WIN-007") == PASS
    story = _probed(2, 4).ack(4, after=0.1, window=4 * SIZE)
    assert story.send(4, after=8).verdicts("SNR-WIN-007") == FAIL


def test_opening_with_text_that_a_closed_window_does_not_admit_may_be_refused() -> None:
    story = _closed().ack(4, after=0.1, data=bytes(4 * SIZE), window=0)
    story.window = 0
    story.send_octets(4 * SIZE, 1, after=2.0).send_octets(4 * SIZE, 1, after=4.0)
    offer = {"ack": 500 + 4 * SIZE, "window": 4 * SIZE, "payload": bytes(700)}
    story._put(False, flags=ACK, seq=100 + 4 * SIZE - 1, after=0.1, **offer)
    assert story.send(4, after=8).verdicts("SNR-WIN-007") == NOTHING


def test_opening_without_a_timestamp_may_be_refused() -> None:
    story = Story(window=4 * SIZE, stamps=True).send(0, 1, 2, 3).ack(4, after=RTT, window=0)
    for interval in (2, 4):
        story.send_octets(4 * SIZE, 1, after=interval).ack(4, after=RTT, window=0)
    story.stamps = False
    story.ack(4, after=0.1, window=4 * SIZE)
    story.stamps = True
    assert story.send(4, after=8).verdicts("SNR-WIN-007") == NOTHING


@pytest.mark.parametrize(("asked", "expected"), [(True, NOTHING), (False, FAIL)])
def test_opened_window_of_a_sender_whose_probes_may_be_keep_alives(
    asked: bool, expected: set[Verdict]
) -> None:
    # Nothing else shows that data waited; what its user writes much later leaves at once.
    story = Story(window=4 * SIZE, service=4321).send(*range(4), push=True)
    story.ack(4, after=RTT, window=0).send_octets(4 * SIZE - 1, 0, after=2.0)
    story.ack(4, after=RTT, window=4 * SIZE).send_octets(4 * SIZE, 0, fin=True, after=8.0)
    claims = {**CLAIMS, "keep_alive": asked}
    assert story.verdicts("SNR-WIN-007", claims=claims) == expected


@pytest.mark.parametrize(("upto", "expected"), [(1.0015, NOTHING), (1, FAIL)])
def test_opened_window_of_a_sender_whose_probe_was_all_it_had(
    upto: float, expected: set[Verdict]
) -> None:
    """An echo's octet is acknowledged, or not, while the window is closed (seed 15260018)."""
    story = Story(window=4 * SIZE, service=7).ack(0, data=bytes(SIZE)).send(0, push=True)
    story.ack(1, after=RTT, window=0).ack(1, after=0.1, window=0, data=b"x")
    story.send_octets(SIZE, 0, after=0.01).send_octets(SIZE, 1, after=2.0, push=True)
    story.ack(upto, after=RTT, window=0).ack(upto, after=3.0, window=4 * SIZE)
    story.ack(upto, after=10.0, window=4 * SIZE)
    assert story.verdicts("SNR-WIN-007", claims={**CLAIMS, "keep_alive": False}) == expected


def test_opening_smaller_than_two_segments_may_wait() -> None:
    story = _probed(2, 4).ack(4, after=0.1, window=SIZE).send(4, after=8)
    assert story.verdicts("SNR-WIN-007") == NOTHING


def _shrunk(after: float = RTT) -> Story:
    """Eight segments in flight, the window then taken back to four."""
    return Story(window=20 * SIZE).send(*range(8)).ack(2, after=after, window=2 * SIZE)


@pytest.mark.parametrize(("ahead", "accused"), [(20 * SIZE, False), (0, True)])
def test_window_shrunken_by_what_lies_at_the_edge_of_the_receivers_own(
    ahead: int, accused: bool
) -> None:
    """RFC 9293 section 3.10.7.4 does not accept it; then the segments behind it are no older."""
    story = Story(window=20 * SIZE).send(*range(4)).ack(4, after=RTT)
    story.ack(4, after=0.01, seq=100 + ahead, window=0)
    story.ack(4, after=1.0, window=0 if accused else 20 * SIZE).send(4, 5)
    assert (Verdict.FAIL in story.verdicts("SNR-WIN-009")) == accused


def test_shrunken_window_survived_or_not() -> None:
    story = _shrunk().send(2, after=2).ack(8, after=RTT, window=20 * SIZE).send(8, 9)
    assert story.verdicts("SNR-WIN-008") == PASS
    assert _shrunk().reset(after=0.001).verdicts("SNR-WIN-008") == FAIL
    assert _shrunk().reset(after=0.001, outgoing=False).verdicts("SNR-WIN-008") == NOTHING
    # Who has said nothing for that long has been given up (section 3.8.3).
    assert _shrunk(after=120.0).reset(after=0.001).verdicts("SNR-WIN-008") == NOTHING


def test_new_data_into_a_shrunken_window() -> None:
    story = _shrunk().ack(4, after=0.01, window=2 * SIZE)
    assert story.ack(8, after=RTT, window=20 * SIZE).verdicts("SNR-WIN-009") == PASS
    assert _shrunk().send(8, 9, after=0.01).verdicts("SNR-WIN-009") == FAIL
    clocked = _shrunk().ack(3, after=0.01, window=SIZE).send(8, 9)
    assert clocked.verdicts("SNR-WIN-009") == FAIL
    assert _shrunk().send(20).verdicts("SNR-WIN-009") == FAIL


def test_data_of_a_slow_device_that_meets_a_shrunken_window() -> None:
    """Packets leave at the rate of the device: one does as the acknowledgment arrives."""
    assert _shrunk().send(8).verdicts("SNR-WIN-009") == NOTHING


@pytest.mark.parametrize(("late", "expected"), [(0.0, NOTHING), (0.01, FAIL)])
def test_data_of_a_slow_device_that_meets_a_window_shrunken_once_more(
    late: float, expected: set[Verdict]
) -> None:
    """In between the window had opened again, not as far as before (encounter 3110122)."""
    story = _shrunk().ack(3, after=0.01, window=8 * SIZE).send(8).ack(3, after=0.01, window=SIZE)
    assert story.send(9, after=late).verdicts("SNR-WIN-009") == expected


def test_delayed_acknowledgment_into_a_closed_window_is_no_probe() -> None:
    receipt = Receipt().reply(0, payload=bytes(100)).data(0, 0, ack=100, after=0.6, window=0)
    receipt.data(0, 100, ack=100, after=0.01, window=0).reply(100, seq=100, after=0.04)
    assert receipt.later().verdicts("SNR-WIN-003") == NOTHING


def test_older_segment_with_a_smaller_window_shrinks_nothing() -> None:
    story = Story(window=20 * SIZE).send(*range(4)).ack(2, after=RTT, data=b"x", seq=200)
    story.ack(2, after=0.01, data=b"x", seq=100, window=3 * SIZE).send(*range(4, 8))
    assert story.verdicts("SNR-WIN-009") == NOTHING


def test_probe_of_a_shrunken_window_is_permitted() -> None:
    story = _shrunk().send_octets(8 * SIZE, 1, after=2).ack(8, after=RTT, window=20 * SIZE)
    assert story.verdicts("SNR-WIN-009") == PASS


def test_small_opening_filled_or_left_alone() -> None:
    story = _closed().ack(4, after=0.1, window=100)
    assert story.send_octets(4 * SIZE, 100).verdicts("SNR-WIN-010") == FAIL
    story = _closed().ack(4, after=0.1, window=100).ack(4, after=0.1, window=4 * SIZE)
    assert story.send(4, 5).verdicts("SNR-WIN-010") == PASS


@pytest.mark.parametrize(("late", "expected"), [(0.004, NOTHING), (0.0, FAIL)])
def test_small_opening_that_meets_a_timer(late: float, expected: set[Verdict]) -> None:
    """What a second has held back fills one opening after the other (seed 15280011)."""
    story = _closed().ack(4, after=0.1, window=100).send_octets(4 * SIZE, 100, after=1.0)
    story.ack(4.1, after=0.6, window=1).send_octets(4 * SIZE + 100, 1, after=late)
    assert story.verdicts("SNR-WIN-010") == expected


@pytest.mark.parametrize(("push", "expected"), [(True, NOTHING), (False, FAIL)])
def test_small_opening_filled_by_all_that_was_queued(push: bool, expected: set[Verdict]) -> None:
    """The user always has more, but the buffer was full (encounter 3108427)."""
    story = _closed().ack(4, after=0.1, window=100).send_octets(4 * SIZE, 100, push=push)
    assert story.verdicts("SNR-WIN-010") == expected


def test_small_opening_filled_by_a_timer() -> None:
    story = _closed().ack(4, after=0.1, window=100).send_octets(4 * SIZE, 100, after=1.8)
    assert story.verdicts("SNR-WIN-010") == NOTHING


def test_small_opening_filled_by_a_timer_that_meets_an_arrival() -> None:
    story = _closed().ack(4, after=0.1, window=100).ack(4, after=1.0, data=b"x", window=100)
    assert story.send_octets(4 * SIZE, 100, after=0.005).verdicts("SNR-WIN-010") == NOTHING


def test_small_opening_that_meets_a_probe() -> None:
    """The probe was due 2 ms after the acknowledgment that opened the window."""
    story = _closed().ack(4, after=60.0, window=100).send_octets(4 * SIZE, 100, after=0.002)
    assert story.verdicts("SNR-WIN-010") == NOTHING
    story = _closed().ack(4, after=60.0, window=100).send_octets(4 * SIZE, 100)
    assert story.verdicts("SNR-WIN-010") == FAIL


@pytest.mark.parametrize(("size", "expected"), [(600, NOTHING), (700, FAIL)])
def test_small_opening_filled_by_a_segment_as_long_as_those_before(
    size: int, expected: set[Verdict]
) -> None:
    """The path takes no more than 600 octets at once any more (encounters 1700300, 1700710)."""
    story = Story(window=9000).send(*range(8)).ack(8, after=RTT, window=9000)
    for start in range(8000, 8000 + 3 * size, size):
        story.send_octets(start, size)
    sent = 8000 + 3 * size
    story.ack(8.6, after=RTT, window=sent + 600 - 8600).send_octets(sent, 600)
    assert story.verdicts("SNR-WIN-010") == expected


@pytest.mark.parametrize(("room", "expected"), [(700, NOTHING), (400, FAIL)])
def test_opening_of_more_than_a_segment_as_long_as_those_before(
    room: int, expected: set[Verdict]
) -> None:
    story = Story(window=9000).send(*range(8)).ack(8, after=RTT, window=9000)
    for start in range(8000, 9500, 500):
        story.send_octets(start, 500)
    story.ack(8.5, after=RTT, window=1000 + room)
    for start in range(9500, 9500 + room, 500):
        story.send_octets(start, min(500, 9500 + room - start))
    assert story.verdicts("SNR-WIN-010") == expected


@pytest.mark.parametrize(("found", "expected"), [(True, NOTHING), (False, FAIL)])
@pytest.mark.parametrize("size", [700, 990])
def test_small_opening_where_the_size_of_segments_is_being_found(
    size: int, found: bool, expected: set[Verdict]
) -> None:
    """RFC 4821: it may have become a whole segment (encounter 3100081: 518 octets of 524)."""
    story = Story(window=9000).send(*range(8)).ack(8, after=RTT).send_octets(8000, size)
    story.ack(8 + size / 1000, after=RTT, window=size).send_octets(8000 + size, size)
    claims = {**CLAIMS, "finds_segment_size": found}
    assert story.verdicts("SNR-WIN-010", claims=claims) == expected


def test_half_the_largest_window_is_not_small() -> None:
    story = Story(window=800).send_octets(0, 800).ack(0.8, after=RTT, window=400)
    assert story.send_octets(800, 400).verdicts("SNR-WIN-010") == NOTHING


def test_window_scale_not_offered() -> None:
    claims = {**CLAIMS, "window_scale": True}
    assert Story().send(0).verdicts("SNR-WIN-002", claims=claims) == NOTHING


def test_fin_that_ends_at_the_unscaled_edge_fills_no_window() -> None:
    receipt = Receipt(shift=14, window=1 << 14).data(0, 1)
    receipt.reply(1, flags=ACK | FIN)
    assert FAIL.isdisjoint(receipt.verdicts("SNR-WIN-002"))


def _by_habit(story: Story, requirement: str, *habits: str) -> set[Verdict]:
    """The verdicts about an implementation that is known to have habits."""
    trace = story.trace()
    flow = INTERPRETER.read_flows(trace)[0]
    readings = Readings(INTERPRETER.with_habits(flow, habits), INTERPRETER)
    suite = story.suite
    context = Context(
        suite.requirements()[requirement], "rfc", story.claims, trace.timing_error,
        readings.prepared,
    )  # fmt: skip
    return {item.verdict for item in readings.judged(load_checkers(suite)[requirement], context)}


def test_window_of_an_older_segment_counts_with_a_new_acknowledgment_by_habit() -> None:
    story = Story().send(*range(4)).ack(1, after=RTT, seq=300, window=9 * SIZE)
    story.ack(1, after=0.01, seq=310, window=4 * SIZE).send(4, after=0.001)
    story.ack(2, after=0.01, seq=200, window=6 * SIZE).send(5, 6, 7, after=0.001)
    assert story.verdicts("SNR-WIN-009") >= FAIL
    assert FAIL.isdisjoint(_by_habit(story, "SNR-WIN-009", "keeps-wider-windows"))


def test_acknowledgment_with_an_unacceptable_number_opens_the_window_by_habit() -> None:
    story = Story(window=4 * SIZE).send(*range(4))
    story.ack(2, after=RTT, seq=1 << 24, window=6 * SIZE).send(4, 5, 6, 7, after=0.001)
    assert story.verdicts("SNR-WIN-001") >= FAIL
    assert FAIL.isdisjoint(_by_habit(story, "SNR-WIN-001", "takes-any-acknowledgment"))


@pytest.mark.parametrize(("habits", "accused"), [((), False), (("predicts-text",), True)])
def test_narrower_window_after_older_text_that_may_have_been_predicted(
    habits: tuple[str, ...], accused: bool
) -> None:
    """Only predicted text makes the window that follows it a newer one, by habit (3116129)."""
    story = Story(window=20 * SIZE).send(*range(4)).ack(2, after=RTT, seq=200)
    story.ack(2, after=0.01, seq=100, data=bytes(100)).ack(2, after=0.01, window=4 * SIZE)
    story.ack(2, after=1.0, window=4 * SIZE).send(4, 5, 6)
    found = _by_habit(story, "SNR-WIN-009", "keeps-wider-windows", *habits)
    assert (Verdict.FAIL in found) == accused


def test_fin_that_ends_where_the_unscaled_window_does() -> None:
    """It is all that there was."""
    receipt = Receipt(service=19, shift=7).data(0, 0, window=1).reply(0, flags=ACK | FIN)
    assert receipt.later().verdicts("SNR-WIN-002") == NOTHING


@pytest.mark.parametrize(("octets", "expected"), [(1, NOTHING), (2, FAIL)])
def test_probe_that_ends_where_the_unscaled_window_does(
    octets: int, expected: set[Verdict]
) -> None:
    """A window of an octet or two, times 128, is left alone for its being small."""
    receipt = Receipt(service=19, shift=7, window=8).reply(0, payload=bytes(1000))
    receipt.data(0, 0, ack=1000, window=0, after=0.1).data(0, 0, ack=1000, window=octets)
    receipt.reply(0, seq=1000, payload=bytes(octets), after=1.0)
    assert receipt.later().verdicts("SNR-WIN-002") == expected


def _over_but_for_the_fin(*, service: int = 7, closed: float = 0.6) -> Receipt:
    """All is echoed, the window closes, and the tester ends its stream so much later."""
    receipt = Receipt(service=service).data(0, 100)
    receipt.reply(100, flags=ACK | PSH, payload=pattern(0, 100))
    receipt.data(100, 100, ack=100, after=0.6, window=0)
    receipt.data(100, 100, ack=100, after=closed, window=0, flags=ACK | FIN)
    return receipt.reply(101, seq=100, after=0.01)


def _opened(receipt: Receipt, after: float, flags: int = ACK | FIN) -> Receipt:
    return receipt.data(101, 101, ack=100, after=after).reply(101, seq=100, flags=flags).later()


@pytest.mark.parametrize(("seconds", "expected"), [(70, FAIL), (60, NOTHING)])
def test_closed_window_with_but_a_fin_waiting(seconds: float, expected: set[Verdict]) -> None:
    assert _opened(_over_but_for_the_fin(), seconds).verdicts("SNR-WIN-003") == expected


@pytest.mark.parametrize(("first", "then", "accused"), [(30, 50, False), (2, 70, True)])
def test_closed_window_probed_with_but_a_fin_waiting(
    first: float, then: float, accused: bool
) -> None:
    """A probe without data, or the FIN itself, which has left then."""
    receipt = _over_but_for_the_fin().reply(101, seq=99, after=first)
    assert (Verdict.FAIL in _opened(receipt, then).verdicts("SNR-WIN-003")) == accused
    receipt = _over_but_for_the_fin().reply(101, seq=100, flags=ACK | FIN, after=first)
    assert FAIL.isdisjoint(_opened(receipt, then).verdicts("SNR-WIN-003"))


def test_closed_window_without_a_fin_that_certainly_waits() -> None:
    # No FIN leaves when it opens, or not at once; or its user does as it likes; or both were late.
    assert _opened(_over_but_for_the_fin(), 80, ACK).verdicts("SNR-WIN-003") == NOTHING
    late = _over_but_for_the_fin().data(101, 101, ack=100, after=80)
    late.reply(101, seq=100, flags=ACK | FIN, after=3.0)
    assert late.later().verdicts("SNR-WIN-003") == NOTHING
    assert _opened(_over_but_for_the_fin(service=80), 80).verdicts("SNR-WIN-003") == NOTHING
    assert _opened(_over_but_for_the_fin(closed=50), 30).verdicts("SNR-WIN-003") == NOTHING


@pytest.mark.parametrize(("octets", "expected"), [(0, NOTHING), (1, FAIL)])
def test_fin_that_left_into_a_closed_window_does_not_wait_for_it_to_open(
    octets: int, expected: set[Verdict]
) -> None:
    """As lwIP, gVisor and smoltcp have it: the FIN is sent, and its own timer repeats it."""
    receipt = _over_but_for_the_fin()
    fin = {"seq": 100, "flags": ACK | FIN, "payload": bytes(octets)}
    receipt.reply(101, **fin).reply(101, after=2.0, **fin).data(101, 101, ack=100, after=30)
    assert receipt.reply(101, after=10.0, **fin).later().verdicts("SNR-WIN-007") == expected
