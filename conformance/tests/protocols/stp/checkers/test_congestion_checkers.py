"""The checkers of STP-CG."""

from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import POLL, SD, SDP, STAT, USTAT
from bentpipe_conformance.protocols.stp.story import CLAIMS, FAIL, NOTHING, PASS, StpStory

RTT = 0.6
BOTH = PASS | FAIL
OCTETS = 1000
DATA = b"d" * OCTETS


class Stream:
    """A stream of SDs of 1,000 octets, told burst by burst."""

    def __init__(self) -> None:
        self.story = StpStory(credit=2048, max_sd=OCTETS).opened()
        self.number = self.n_ps = 0

    def sends(self, count: int, gap: float = 0.001) -> Stream:
        """New SDs, the last one an SDP."""
        for left in reversed(range(count)):
            if left:
                self.story.iut(SD, self.number, data=DATA, after=gap)
            else:
                self.n_ps += 1
                self.story.iut(SDP, self.number, data=DATA, after=gap, n_ps=self.n_ps)
            self.number += 1
        return self

    def repeats(self, number: int, after: float = 0.001) -> Stream:
        """A retransmission."""
        self.story.iut(SD, number, data=DATA, after=after)
        return self

    def hears(self, *, missing: int | None = None, after: float = RTT) -> Stream:
        """A STAT for the last POLL: everything has arrived, but for one SD."""
        n_r = self.number
        elements: tuple[int, ...] = ()
        if missing is not None:
            n_r, elements = missing, (missing, missing + 1, self.number)
        self.story.tester(STAT, n_r, n_ps=self.n_ps, elements=elements, after=after)
        return self

    def hears_gap(self, missing: int, after: float = RTT) -> Stream:
        """A USTAT for one SD; everything below it has arrived."""
        self.story.tester(USTAT, missing, elements=(missing, missing + 1), after=after)
        return self

    def verdicts(self, requirement: str) -> set[Verdict]:
        """Of the checker, once the capture has gone on for a while."""
        self.story.tester(SD, 0, after=2.0)
        return self.story.verdicts(requirement)


@pytest.mark.parametrize(("count", "verdict"), [(4, PASS), (10, PASS), (12, FAIL)])
def test_first_burst(count: int, verdict: set[Verdict]) -> None:
    assert Stream().sends(count).hears().verdicts("STP-CG-001") == verdict


def test_credit_taken_for_the_window() -> None:
    assert Stream().sends(4).hears().verdicts("STP-CG-002") == PASS
    assert Stream().sends(4).hears().sends(17).verdicts("STP-CG-002") == FAIL


def test_first_burst_of_more_than_is_declared() -> None:
    assert Stream().sends(5).hears().verdicts("STP-CG-002") == FAIL


@pytest.mark.parametrize(("second", "verdict"), [(8, PASS), (9, FAIL)])
def test_second_burst_of_slow_start(second: int, verdict: set[Verdict]) -> None:
    assert Stream().sends(4).hears().sends(second).verdicts("STP-CG-003") == verdict


@pytest.mark.parametrize(("count", "verdict"), [(2, PASS), (3, FAIL)])
def test_sds_held_above_a_late_one_arrive_once(count: int, verdict: set[Verdict]) -> None:
    """A STAT for a POLL before them holds all but the first, and the next one that one as well."""
    stream = Stream().sends(4).hears().sends(8)
    above = {"n_ps": 1, "after": RTT}
    stream.story.tester(STAT, 4, elements=(4, 5, 12), **above)
    stream.sends(14).story.tester(STAT, 12, **above)
    assert stream.sends(count).verdicts("STP-CG-003") == verdict


def grown() -> Stream:
    """A window of 40 SDs, of which one is missing."""
    stream = Stream().sends(10).hears().sends(20).hears().sends(40)
    return stream.hears_gap(30, after=0.1).repeats(30)


def test_after_a_loss_half_the_window() -> None:
    halved = grown().hears(after=RTT).sends(19).hears().sends(19)
    assert halved.verdicts("STP-CG-005") == PASS
    assert grown().hears(after=RTT).sends(40).verdicts("STP-CG-005") == FAIL


@pytest.mark.parametrize(("count", "verdict"), [(26, PASS), (27, FAIL)])
def test_after_a_loss_what_arrives_widens_the_window_by_two(
    count: int, verdict: set[Verdict]
) -> None:
    """Twenty SDs, and two more for each window among the forty; one more step is granted."""
    assert grown().hears(after=RTT).sends(count).verdicts("STP-CG-005") == verdict


def test_lost_retransmission_halves_the_window_again() -> None:
    stream = grown()
    stream.n_ps += 1
    stream.story.iut(POLL, stream.number, n_ps=stream.n_ps)
    stream.hears(missing=30).repeats(30).hears(after=RTT)
    assert stream.sends(20).verdicts("STP-CG-005") == FAIL


def loses(first: int, times: int) -> Stream:
    """Of ten SDs those from ``first`` on are lost so many times, and sent again each time."""
    stream = Stream().sends(10)
    for time in range(times):
        if time:
            stream.n_ps += 1
            stream.story.iut(POLL, 10, n_ps=stream.n_ps, after=0.1)
        stream.story.tester(STAT, first, n_ps=stream.n_ps, elements=(first, 10), after=RTT)
        for number in range(first, 10):
            stream.repeats(number, after=0.1)
    return stream


def test_retransmissions_that_exceed_the_window_after_a_loss_of_new_sds() -> None:
    assert loses(4, 1).verdicts("STP-CG-002") == FAIL
    assert Verdict.FAIL not in loses(4, 1).verdicts("STP-CG-005")


def test_retransmissions_that_exceed_the_window_after_a_loss_of_retransmissions() -> None:
    """They did not wait, or the window was not halved for these: nothing tells which."""
    assert Verdict.FAIL not in loses(6, 1).verdicts("STP-CG-005")
    assert loses(6, 2).verdicts("STP-CG-002") == FAIL
    assert Verdict.FAIL in loses(6, 2).verdicts("STP-CG-005")


def test_losses_of_one_round_trip_make_one_reduction() -> None:
    stream = Stream().sends(10).hears().sends(20).hears().sends(40)
    stream.hears_gap(30, after=0.1).repeats(30).hears_gap(35, after=0.03)
    assert stream.hears(after=RTT).sends(19).verdicts("STP-CG-005") == PASS


def test_growth_once_a_window_has_arrived_after_a_loss() -> None:
    slow = grown().hears(after=RTT).sends(19).hears().sends(20).hears().sends(21)
    assert slow.verdicts("STP-CG-004") == PASS
    quick = grown().hears(after=RTT).sends(19).hears().sends(20).hears().sends(40)
    assert quick.verdicts("STP-CG-004") == FAIL


def long() -> Stream:
    """A window of 100 SDs, of which an early one is missing."""
    return Stream().sends(10).hears().sends(20).hears().sends(100)


@pytest.mark.parametrize(("wait", "verdict"), [(0.01, PASS), (0.3, FAIL)])
def test_first_retransmission(wait: float, verdict: set[Verdict]) -> None:
    stream = long().hears_gap(32, after=0.1).repeats(32, after=wait)
    assert stream.verdicts("STP-CG-006") == verdict


@pytest.mark.parametrize(("wait", "verdict"), [(0.01, PASS), (0.3, BOTH)])
def test_first_retransmission_is_one_that_waited_before(wait: float, verdict: set[Verdict]) -> None:
    stream, gaps = long(), (30, 31, 35, 36)
    stream.story.tester(USTAT, 30, elements=gaps[2:], after=0.1)
    stream.repeats(35)
    stream.story.tester(STAT, 30, n_ps=stream.n_ps, elements=(*gaps[2:], stream.number), after=0.4)
    stream.sends(40).story.tester(USTAT, 30, elements=gaps[:2], after=0.01)
    stream.story.iut(POLL, stream.number, n_ps=stream.n_ps + 1, after=0.01)
    stream.story.tester(STAT, 30, n_ps=stream.n_ps + 1, elements=(*gaps, 40), after=RTT)
    assert stream.repeats(30, after=wait).repeats(35, after=0.3).verdicts("STP-CG-006") == verdict


def test_retransmission_of_a_small_window_may_wait_for_its_turn() -> None:
    stream = Stream().sends(4).hears_gap(1, after=0.3).repeats(1, after=0.3)
    assert stream.verdicts("STP-CG-006") == NOTHING


def two_silences(arrived: int) -> Stream:
    """A window of 20 SDs before two silences, and a STAT for some of them."""
    stream = Stream().sends(10).hears().sends(20)
    stream.story.tester(STAT, arrived, n_ps=2, after=20.0)
    return stream


@pytest.mark.parametrize(("count", "verdict"), [(1, FAIL), (2, NOTHING)])
def test_retransmission_that_does_not_wait_after_two_silences(
    count: int, verdict: set[Verdict]
) -> None:
    """No rule lets the first one go; that more go says that the window was not reduced."""
    stream = Stream().sends(4).hears().sends(8)
    stream.story.tester(STAT, 4, n_ps=2, elements=(4, 4 + count, 5 + count), after=20.0)
    for number in range(4, 4 + count):
        stream.repeats(number, after=0.2)
    assert stream.verdicts("STP-CG-007") == FAIL
    assert stream.verdicts("STP-CG-002") & FAIL == verdict


def test_retransmission_that_is_still_the_first_after_two_silences() -> None:
    """What a loss let go has arrived before it was sent again, and then there was silence."""
    stream = Stream().sends(4).hears().sends(8).hears(missing=4).hears(after=0.001).sends(4)
    stream.story.tester(STAT, 12, n_ps=3, elements=(12, 13), after=20.0)
    assert Verdict.FAIL not in stream.repeats(12).verdicts("STP-CG-007")
    assert Verdict.FAIL not in stream.verdicts("STP-CG-002") | stream.verdicts("STP-CG-005")


def test_stat_after_two_silences() -> None:
    assert two_silences(12).sends(1).verdicts("STP-CG-007") == FAIL


@pytest.mark.parametrize(("count", "again"), [(2, True), (3, False)])
def test_loss_from_before_two_silences(count: int, again: bool) -> None:
    """Two SMSS are what a further reduction would leave; more is no matter of one."""
    stream = Stream().sends(10).hears().sends(20)
    stream.story.tester(STAT, 10, n_ps=2, elements=(10, 30), after=20.0)
    for number in range(10, 10 + count):
        stream.repeats(number, after=0.2)
    assert (Verdict.FAIL in stream.verdicts("STP-CG-005")) == again
    assert stream.verdicts("STP-CG-007") == FAIL  # that the silences did not reduce explains both


@pytest.mark.parametrize(("more", "verdict"), [(12, PASS), (19, FAIL)])
def test_stat_that_passes_the_threshold_after_two_silences(
    more: int, verdict: set[Verdict]
) -> None:
    """All 20 have arrived: 9 lead to the threshold of 10, the others count as one window."""
    assert two_silences(30).sends(more).verdicts("STP-CG-004") == verdict


def test_silence_with_nothing_in_flight_leaves_the_window_alone() -> None:
    """A listener that has to wait for its peer's proof polls, and then begins as ever."""
    stream = Stream()
    stream.story.iut(POLL, 0, n_ps=1, after=0.1).iut(POLL, 0, n_ps=2, after=2.0)
    stream.n_ps = 2
    stream.hears(after=9.0)
    assert Verdict.FAIL not in stream.sends(6).hears().verdicts("STP-CG-007")


def test_rest_with_a_lost_stat_before_it_is_no_silence() -> None:
    """The STAT for a last POLL is lost, but the one before it acknowledged everything."""
    stream = Stream().sends(4)
    stream.story.iut(POLL, 4, n_ps=2, after=0.2).tester(STAT, 4, n_ps=1, after=0.4)
    stream.n_ps = 2
    stream.story.tester(SD, 0, after=10.0)
    stream.sends(4).hears().sends(8)
    assert Verdict.FAIL not in stream.verdicts("STP-CG-007")


@pytest.mark.parametrize(("after", "accused"), [(0.04, False), (0.2, True)])
def test_new_sd_that_crosses_the_report_of_a_loss(after: float, accused: bool) -> None:
    stream = Stream().sends(10).hears().sends(20).hears().sends(40).hears_gap(30, after=0.1)
    stream.story.iut(SD, 70, data=DATA, after=after)
    stream.number = 71
    assert (Verdict.FAIL in stream.verdicts("STP-CG-005")) == accused


@pytest.mark.parametrize(("gap", "verdict"), [(0.012, PASS), (0.0001, FAIL)])
def test_spacing_of_a_window(gap: float, verdict: set[Verdict]) -> None:
    """Two windows of 20 SDs in a round trip, and in addition four SDs and what 10 ms permit."""
    stream = Stream().sends(10).hears().sends(16, gap=gap)
    assert stream.verdicts("STP-CG-008") == verdict


def test_many_small_sds_in_a_tick_are_few_octets() -> None:
    stream = Stream().sends(10).hears()
    for number in range(10, 24):
        stream.story.iut(SD, number, data=b"d" * 8, after=0.0001)
    stream.number = 24
    assert Verdict.FAIL not in stream.verdicts("STP-CG-008")


def test_spacing_judged_by_a_coarse_clock() -> None:
    stream = Stream().sends(10).hears().sends(20, gap=0.0001)
    stream.story.timing_error = 0.3
    assert stream.verdicts("STP-CG-008") == PASS


def test_echo_of_small_sds_shows_no_smss() -> None:
    story = StpStory().opened()
    for number in range(12):
        story.iut(SD, number, data=b"d" * 100, after=0.001)
    story.iut(SDP, 12).tester(STAT, 13, after=RTT).of_service(7)
    assert story.verdicts("STP-CG-001") == PASS


def test_burst_after_a_long_rest_is_no_burst_after_silence() -> None:
    """Every POLL was answered before the rest; a later one is not yet."""
    stream = Stream().sends(4).hears()
    stream.story.tester(SD, 0, after=10.0)
    assert Verdict.FAIL not in stream.sends(4).hears().sends(6).hears().verdicts("STP-CG-007")


def dialogue(turns: int, bulk: int) -> StpStory:
    """One SD each way in every turn, then much to echo at once."""
    story = StpStory(credit=2048, max_sd=OCTETS).opened()
    for turn in range(turns):
        story.tester(SD, turn, data=DATA, after=0.01)
        story.iut(SDP, turn, data=DATA, n_ps=turn + 1, after=0.001)
        story.tester(STAT, turn + 1, n_ps=turn + 1, after=RTT)
    for number in range(turns, turns + 60):
        story.tester(SD, number, data=DATA, after=0.001)
    for number in range(turns, turns + bulk):
        story.iut(SD, number, data=DATA, after=0.01)
    return story.tester(SD, 0, after=2.0).of_service(7)


@pytest.mark.parametrize(("bulk", "verdict"), [(2, NOTHING), (6, PASS), (7, FAIL)])
def test_burst_after_a_dialogue(bulk: int, verdict: set[Verdict]) -> None:
    assert dialogue(30, bulk).verdicts("STP-CG-010") == verdict


def test_dialogue_that_leaves_no_larger_window_says_nothing() -> None:
    assert dialogue(1, 10).verdicts("STP-CG-010") == NOTHING


RATE_BPS = 1_000_000


def at_a_rate(gap: float, data: bytes = DATA, count: int = 60) -> set[Verdict]:
    """A stream of packets of 1,040 octets, of which one takes 8.32 ms."""
    story = StpStory(credit=2048, max_sd=OCTETS).opened()
    for number in range(count):
        story.iut(SD, number, data=data, after=gap)
    claims = {**CLAIMS, "rate_limit": True, "rate_limit_bps": RATE_BPS}
    return story.tester(SD, 0, after=2.0).verdicts("STP-CG-009", claims=claims)


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.05, set()), (0.00832, PASS), (0.0064, PASS), (0.0058, FAIL)]
)
def test_packets_at_a_maximum_rate(gap: float, verdict: set[Verdict]) -> None:
    """Four more than the rate permits may leave within 0.1 s."""
    assert at_a_rate(gap) == verdict


def test_small_packets_may_exceed_a_maximum_rate_by_four_large_ones() -> None:
    """One of 41 octets takes 0.33 ms; 0.25 ms apart they exceed the rate by 4,100 octets."""
    assert at_a_rate(0.00025, b"d", 1000) == PASS
    assert at_a_rate(0.0001, b"d", 1000) == FAIL


@pytest.mark.parametrize(("turns", "accused"), [(1, True), (3, False)])
def test_window_counted_in_smaller_segments_than_the_peer_permits(
    turns: int, accused: bool
) -> None:
    """After two silences three SDs of half of MaxSD let a window of one such SMSS grow to four."""
    story = StpStory(credit=2048, max_sd=OCTETS).opened()
    for turn, wait in enumerate((20.0, RTT, RTT)[:turns]):
        story.iut(SDP, turn, data=DATA[::2], n_ps=turn + 1, after=0.3)
        story.tester(STAT, turn + 1, n_ps=turn + 1, after=wait)
    for number in range(turns, turns + 4):
        story.iut(SD, number, data=DATA[::2], after=0.001 if number > turns else 0.3)
    story.tester(SD, 0, after=2.0).of_service(7)
    requirements = [f"STP-CG-{number:03}" for number in range(2, 11) if number != 8]
    assert accused == any(Verdict.FAIL in story.verdicts(item) for item in requirements)
