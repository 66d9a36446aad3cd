from __future__ import annotations

import pytest
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.protocols.stp.codec import (
    BEGIN,
    BGAK,
    BGREJ,
    END,
    ENDAK,
    FIN,
    POLL,
    SD,
    STAT,
    USTAT,
    A,
    R,
    V,
    option_field,
)
from bentpipe_conformance.protocols.stp.story import (
    COOKIES,
    FAIL,
    IUT_CSN,
    NOTHING,
    PASS,
    StpStory,
    later,
    opened,
)

POLL_OCTETS = bytes.fromhex(
    "9c41 0009 0a00 0000 0000 5678 0000 0001 0000 0007 1234 5678".replace(" ", "")
)


@pytest.mark.parametrize(
    "story",
    [
        opened().raw(True, bytes.fromhex("0009 9c41 05000000 0000 ffff".replace(" ", ""))),
        opened().iut(SD, 0, flags=A),
        opened().iut(STAT, 0, reserved=(1, 0)),
        opened().iut(END, 0, flags=FIN),
    ],
    ids=["unused type", "reserved flag", "reserved octet", "flag of another type"],
)
def test_unknown_type_flag_or_field_is_a_violation(story: StpStory) -> None:
    assert Verdict.FAIL in story.verdicts("STP-PF-001")


def test_ordinary_packets_have_known_types_and_exact_lengths() -> None:
    story = opened().iut(SD, 0, flags=FIN, data=b"x").iut(END, 0, flags=A)
    assert story.verdicts("STP-PF-001") == PASS
    assert story.verdicts("STP-PF-002") == PASS


def test_packet_of_another_length_is_a_violation() -> None:
    octets = bytes.fromhex("0009 9c41 0a000000 0000 ffff 00000001".replace(" ", ""))
    assert Verdict.FAIL in opened().raw(True, octets).verdicts("STP-PF-002")


@pytest.mark.parametrize("requirement", ["STP-PF-003"])
def test_malformed_packet_answered_is_a_violation(requirement: str) -> None:
    quiet = opened().tester(SD, 0, after=1.0).raw(False, POLL_OCTETS + bytes(4), after=1.0)
    ended = quiet.tester(SD, 1, after=1.0)
    assert ended.verdicts(requirement) == PASS
    story = opened().tester(SD, 0, after=1.0).raw(False, POLL_OCTETS + bytes(4), after=1.0)
    assert story.iut(STAT, 1, after=0.01).tester(SD, 1, after=1.0).verdicts(requirement) == FAIL


def test_answer_that_another_packet_explains_is_no_violation() -> None:
    story = opened().raw(False, POLL_OCTETS + bytes(4), after=1.0).tester(POLL, 0, after=0.001)
    story.iut(STAT, 0, after=0.01).tester(SD, 0, after=1.0)
    assert story.verdicts("STP-PF-003") == NOTHING


def test_nothing_is_said_of_a_malformed_packet_at_the_end_of_the_record() -> None:
    assert opened().raw(False, POLL_OCTETS + bytes(4), after=1.0).verdicts("STP-PF-003") == NOTHING


def test_wrong_checksum_taken_in_is_a_violation() -> None:
    story = opened().tester(SD, 0, broken_checksum=True, after=1.0).tester(POLL, 1, after=1.0)
    told = story.iut(STAT, 1, after=0.01)
    assert told.verdicts("STP-PF-007") == {Verdict.FAIL}
    story = opened().tester(SD, 0, broken_checksum=True, after=1.0).tester(POLL, 1, after=1.0)
    assert story.iut(STAT, 0, elements=(0, 1), after=0.01).verdicts("STP-PF-007") == PASS


def test_wrong_checksum_of_an_sd_that_came_again_tells_nothing_by_later_reports() -> None:
    story = opened().tester(SD, 0, broken_checksum=True, after=1.0).tester(SD, 0, after=1.0)
    story.tester(POLL, 1).iut(STAT, 1, after=0.01)
    assert story.verdicts("STP-PF-007") == PASS


def test_reserved_bits_that_stop_an_answer_are_a_violation() -> None:
    story = opened().tester(POLL, 0, reserved=(9,), after=1.0).tester(SD, 0, after=1.0)
    assert story.verdicts("STP-PF-004") == FAIL
    story = opened().tester(POLL, 0, reserved=(9,), after=1.0).iut(STAT, 0, after=0.01)
    assert story.verdicts("STP-PF-004") == PASS


def test_sd_with_reserved_flags_reported_missing_is_a_violation() -> None:
    story = opened().tester(SD, 0, flags=R, after=1.0).tester(POLL, 1, after=1.0)
    assert story.iut(STAT, 0, elements=(0, 1), after=0.01).verdicts("STP-PF-004") == FAIL
    story = opened().tester(SD, 0, flags=R, after=1.0).tester(POLL, 1, after=1.0)
    assert story.iut(STAT, 1, after=0.01).verdicts("STP-PF-004") == PASS


def test_sd_with_reserved_flags_above_the_fin_may_be_discarded() -> None:
    story = opened().tester(SD, 0, flags=FIN, after=1.0).tester(SD, 1, flags=R, after=0.1)
    story.tester(POLL, 2, after=1.0).iut(STAT, 1, after=0.01)
    assert story.verdicts("STP-PF-004") == NOTHING


@pytest.mark.parametrize(("heard", "verdict"), [(True, PASS), (False, FAIL)])
def test_list_that_is_cut_may_tell_in_its_second_part_of_an_sd_with_reserved_flags(
    heard: bool, verdict: set[Verdict]
) -> None:
    story = StpStory(credit=512).opened()
    for number in range(1, 70, 2):
        story.tester(SD, number, flags=R if number == 69 else 0)
    story.tester(POLL, 70, after=1.0).iut(STAT, 0, elements=tuple(range(67)), after=0.01)
    story.iut(STAT, 0, elements=(66, 67, 68, *((69, 70) if heard else (70,))))
    assert later(story).verdicts("STP-PF-004") == verdict


@pytest.mark.parametrize(("arrived", "verdict"), [(4, NOTHING), (2, FAIL)])
def test_what_a_report_with_reserved_flags_asks_for_may_arrive_meanwhile(
    arrived: int, verdict: set[Verdict]
) -> None:
    story = opened()
    for number in range(4):
        story.iut(SD, number, data=bytes(1000))
    story.iut(POLL, 4, n_ps=1).tester(USTAT, 0, elements=(2, 4), flags=R, after=0.6)
    elements = () if arrived == 4 else (2, 4)
    story.tester(STAT, arrived, n_ps=1, elements=elements, after=0.04)
    assert later(story).verdicts("STP-PF-004") == verdict


@pytest.mark.parametrize(("arrived", "verdict"), [(0, NOTHING), (3, FAIL)])
def test_what_a_report_with_reserved_flags_asks_for_may_wait_for_the_window(
    arrived: int, verdict: set[Verdict]
) -> None:
    story = opened()
    for number in range(4):
        story.iut(SD, number, data=bytes(1000))
    # The loss leaves a window of two SDs, and the second report two in flight.
    story.tester(USTAT, 0, elements=(1, 3), after=0.6).iut(SD, 1, data=bytes(1000))
    wanted = (0, 1) if arrived == 0 else (3, 4)
    story.tester(USTAT, arrived, elements=wanted, flags=R, after=1.3)
    assert later(story).verdicts("STP-PF-004") == verdict


@pytest.mark.parametrize(("after", "verdict"), [(2.4, PASS), (30.0, FAIL)])
def test_what_a_report_with_reserved_flags_asks_for_may_wait_for_pacing(
    after: float, verdict: set[Verdict]
) -> None:
    """Where a round trip is long a bucket that four SDs have emptied takes long to fill."""
    story = opened()
    for number in range(4):
        story.iut(SD, number, data=bytes(1400))
    story.iut(POLL, 4, n_ps=1).tester(STAT, 4, n_ps=1, after=5.6)
    for number in range(4, 8):
        story.iut(SD, number, data=bytes(1400))
    story.iut(POLL, 8, n_ps=2).tester(USTAT, 4, elements=(4, 5), flags=R, after=0.6)
    story.iut(SD, 4, data=bytes(1400), after=after)
    assert later(story).verdicts("STP-PF-004") == verdict


@pytest.mark.parametrize(("before", "verdict"), [(True, NOTHING), (False, FAIL)])
def test_what_a_report_with_reserved_flags_asks_for_may_wait_for_what_waits_already(
    before: bool, verdict: set[Verdict]
) -> None:
    """The lowest goes first and fills the window, behind which the others wait (STP-DT-009)."""
    story = opened()
    for number in range(4):
        story.iut(SD, number, data=bytes(1400))
    if before:
        story.tester(USTAT, 0, elements=(0, 3), after=0.6)
    story.tester(USTAT, 0, elements=(3, 4), flags=R, after=0.7)
    if before:
        story.iut(SD, 0, data=bytes(1400)).iut(SD, 1, data=bytes(1400), after=0.4)
    assert later(story).verdicts("STP-PF-004") == verdict


@pytest.mark.parametrize(("octets", "verdict"), [(1400, PASS), (1401, FAIL)])
def test_bgak_that_opens_nothing_says_no_max_sd(octets: int, verdict: set[Verdict]) -> None:
    story = StpStory().iut(BEGIN, cookie=None).tester(BGAK, 9, max_sd=None, after=0.6)
    story.tester(BGAK, 0, after=0.1).iut(SD, 0, data=bytes(octets))
    assert story.verdicts("STP-PF-009") == verdict


def test_fin_with_reserved_flags_below_data_may_be_discarded() -> None:
    story = opened().tester(SD, 1, after=1.0).tester(SD, 0, flags=R | FIN, after=0.1)
    story.tester(POLL, 2, after=1.0).iut(STAT, 0, elements=(0, 1), after=0.01)
    assert story.verdicts("STP-PF-004") == NOTHING


def test_begin_with_an_unknown_option_unanswered_is_a_violation() -> None:
    def asked() -> StpStory:
        options = bytes((0xAA, 4, 0, 0)) + option_field(1400, COOKIES[0])
        return StpStory().asked().tester(BEGIN, options=options, after=1.0)

    assert later(asked()).verdicts("STP-PF-008") == FAIL
    assert asked().iut(BGAK, after=0.01).verdicts("STP-PF-008") == PASS


@pytest.mark.parametrize(
    ("service", "octets", "verdict"), [(7, 512, PASS), (7, 1000, FAIL), (19, 512, FAIL)]
)
def test_small_sds_behind_an_unknown_option_may_be_all_that_an_echo_has(
    service: int, octets: int, verdict: set[Verdict]
) -> None:
    options = bytes((0xAA, 4, 0, 0)) + option_field(1400, COOKIES[0])
    story = StpStory().asked().tester(BEGIN, options=options, after=1.0).iut(BGAK, after=0.01)
    for number in range(2):
        story.tester(SD, number, data=bytes(octets), after=0.1)
        story.iut(SD, number, data=bytes(512), after=0.01)
    assert story.of_service(service).verdicts("STP-PF-008") == verdict


@pytest.mark.parametrize(
    ("max_sd", "octets", "verdict"),
    [(300, 512, PASS), (300, 513, FAIL), (600, 600, PASS), (600, 601, FAIL)],
)
def test_least_max_sd_behind_an_unknown_option(
    max_sd: int, octets: int, verdict: set[Verdict]
) -> None:
    options = bytes((0xAA, 4, 0, 0)) + option_field(max_sd, COOKIES[0])
    story = StpStory().asked().tester(BEGIN, options=options, after=1.0).iut(BGAK, after=0.01)
    story.iut(SD, 0, data=bytes(octets), after=0.01).iut(SD, 1, data=bytes(octets), after=0.01)
    assert story.verdicts("STP-PF-008") == verdict


@pytest.mark.parametrize(("answered", "verdict"), [(True, PASS), (False, FAIL)])
def test_begin_of_another_version_whose_options_do_not_fit(answered: bool, verdict: object) -> None:
    begin = bytes.fromhex("9c41 0009 0100 0000 0000 5678 1f00 0004 1234 5678 0101".replace(" ", ""))
    story = StpStory().raw(False, begin)
    if answered:
        story.iut(BGREJ, reason=4, after=0.01)
    assert later(story).verdicts("STP-PF-003") == verdict


def test_begin_with_reserved_flags_unanswered_is_a_violation() -> None:
    def asked() -> StpStory:
        return StpStory().asked().tester(BEGIN, flags=A | R | V, after=1.0)

    assert later(asked()).verdicts("STP-PF-004") == FAIL
    assert asked().iut(BGAK, after=0.01).verdicts("STP-PF-004") == PASS


def test_caller_given_a_cookie_with_reserved_bits() -> None:
    story = StpStory().iut(BEGIN, csn=5, cookie=None)
    story.tester(BGREJ, reason=6, peer_csn=5, reserved=(1, 0), after=0.6)
    assert later(story).verdicts("STP-PF-004") == FAIL
    story = StpStory().iut(BEGIN, csn=5, cookie=None)
    story.tester(BGREJ, reason=6, peer_csn=5, reserved=(1, 0), after=0.6).iut(BEGIN, after=0.01)
    assert story.verdicts("STP-PF-004") == PASS


def test_cookie_of_bgak_and_bgrej() -> None:
    assert opened().verdicts("STP-PF-017") == PASS
    for options in (b"", option_field(1400), option_field(None, bytes(8)) * 2):
        story = StpStory().asked().tester(BEGIN, after=1.0)
        story.iut(BGAK, max_sd=None, cookie=None, options=options, after=0.01)
        assert story.verdicts("STP-PF-017") == PASS | FAIL
    short = StpStory().tester(BEGIN, cookie=None)
    short.iut(BGREJ, reason=6, options=bytes((2, 9, *range(7), 0, 0, 0)), after=0.01)
    assert short.verdicts("STP-PF-017") == FAIL


@pytest.mark.parametrize("size", [8, 32])
def test_cookie_that_is_not_returned(size: int) -> None:
    cookie = bytes(range(size))

    def given() -> StpStory:
        story = StpStory().iut(BEGIN, csn=5, cookie=None)
        return story.tester(BGREJ, reason=6, peer_csn=5, cookie=cookie, after=0.6)

    assert given().iut(BEGIN, cookie=cookie, after=0.01).verdicts("STP-PF-017") == PASS
    assert given().iut(BEGIN, cookie=bytes(8), after=0.01).verdicts("STP-PF-017") == FAIL
    assert later(given()).verdicts("STP-PF-017") == FAIL


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (opened().iut(SD, 0, tag=7), FAIL),
        (opened().iut(SD, 0), PASS),
        (opened().iut(END, 0, flags=A | R, reason=2, tag=99, csn=0, peer_csn=4), PASS),
        (opened().iut(ENDAK, tag=99), PASS),
    ],
    ids=["wrong", "right", "reflected by END", "reflected by ENDAK"],
)
def test_tag(story: StpStory, expected: set[Verdict]) -> None:
    assert story.verdicts("STP-PF-005") - PASS == expected - PASS


def test_checksum_of_the_implementation() -> None:
    assert opened().iut(SD, 0).verdicts("STP-PF-006") == PASS
    assert opened().iut(SD, 0, data=b"abc", broken_checksum=True).verdicts("STP-PF-006") > FAIL


def test_user_data_against_max_sd() -> None:
    assert StpStory(max_sd=600).opened().iut(SD, 0, data=bytes(601)).verdicts("STP-PF-009") == FAIL
    assert StpStory(max_sd=600).opened().iut(SD, 0, data=bytes(600)).verdicts("STP-PF-009") == PASS
    early = StpStory().iut(BEGIN, data=bytes(513), cookie=None).tester(BGAK, 1)
    assert early.verdicts("STP-PF-009") == FAIL
    unseen = StpStory().iut(BEGIN, data=bytes(513)).tester(BGAK, 1, after=0.6)
    assert unseen.verdicts("STP-PF-009") == NOTHING
    for brought, verdict in ((600, PASS), (599, FAIL), (None, FAIL)):
        story = StpStory().iut(BEGIN, csn=5, cookie=None)
        story.tester(BGREJ, reason=6, peer_csn=5, max_sd=brought, after=0.6)
        assert story.iut(BEGIN, data=bytes(600)).verdicts("STP-PF-009") == verdict


def test_max_sd_of_the_bgak_counts_from_then_on() -> None:
    story = StpStory(max_sd=600).called().iut(SD, 0, data=bytes(600), after=0.1)
    assert story.verdicts("STP-PF-009") == PASS
    story = StpStory(max_sd=600).iut(BEGIN).tester(BGAK, max_sd=1400, after=0.6)
    assert story.iut(SD, 0, data=bytes(1400), after=0.1).verdicts("STP-PF-009") == PASS


def test_max_sd_of_a_bgak_does_not_cut_again_what_has_been_sent() -> None:
    def cut(octets: int, most: int) -> StpStory:
        story = StpStory().iut(BEGIN, csn=5, cookie=None)
        story.tester(BGREJ, reason=6, peer_csn=5, max_sd=1400, after=0.6)
        story.iut(BEGIN, data=bytes(1400)).iut(SD, 1, data=bytes(octets))
        # A peer must not lower it while a cookie of its own is good (STP-PF-010).
        return story.tester(BGAK, 1, max_sd=most, after=0.6)

    assert cut(1400, 1000).iut(SD, 1, data=bytes(1400)).verdicts("STP-PF-009") == PASS
    assert cut(1400, 1000).iut(SD, 2, data=bytes(1001)).verdicts("STP-PF-009") == PASS | FAIL
    assert cut(1401, 1000).iut(SD, 1, data=bytes(1401)).verdicts("STP-PF-009") == PASS | FAIL


def test_max_sd_that_falls_is_a_violation() -> None:
    def lowered(most: int, after: float) -> StpStory:
        story = StpStory().asked().tester(BEGIN, cookie=None, after=after)
        return story.iut(BGREJ, reason=6, max_sd=most, cookie=COOKIES[4], after=0.01)

    assert lowered(1399, 10.0).verdicts("STP-PF-010") == PASS | FAIL
    assert lowered(1400, 10.0).verdicts("STP-PF-010") == PASS
    assert lowered(1399, 601.0).verdicts("STP-PF-010") == PASS


def test_max_sd_missing_or_small_is_a_violation() -> None:
    assert StpStory(max_sd=511).opened().verdicts("STP-PF-010") == FAIL
    assert StpStory().opened().verdicts("STP-PF-010") == PASS
    assert StpStory().iut(BEGIN, max_sd=None).verdicts("STP-PF-010") == FAIL


@pytest.mark.parametrize(
    ("n_r", "n_mr", "elements", "expected"),
    [
        (2, 64, (2, 4, 5), PASS),
        (2, 64, (), set()),
        (2, 64, (2,), FAIL),
        (2, 64, (1, 4), FAIL),
        (2, 64, (2, 4, 4), FAIL),
        (2, 64, (4, 2), FAIL),
        (2, 5, (2, 6), FAIL),
        (2, 6, (2, 6), PASS),
    ],
)
def test_list_of_a_stat(
    n_r: int, n_mr: int, elements: tuple[int, ...], expected: set[Verdict]
) -> None:
    story = opened().iut(STAT, n_r, n_mr=n_mr, elements=elements)
    assert story.verdicts("STP-PF-011") == expected


def parts(*lists: tuple[int, ...]) -> StpStory:
    story = StpStory(credit=200).opened().tester(POLL, 160, n_ps=1, timestamp=3)
    for elements in lists:
        story.iut(STAT, 0, n_ps=1, timestamp=3, elements=elements)
    return story


def test_long_list_cut_as_it_has_to_be() -> None:
    assert parts(tuple(range(67)), tuple(range(66, 100))).verdicts("STP-PF-012") == PASS


@pytest.mark.parametrize(
    "lists",
    [
        (tuple(range(69)),),
        (tuple(range(66)), tuple(range(65, 90))),
        (tuple(range(67)), tuple(range(67, 90))),
        (tuple(range(5)), tuple(range(4, 20))),
    ],
    ids=["too long", "even", "no overlap", "later part longer"],
)
def test_long_list_cut_otherwise_is_a_violation(lists: tuple[tuple[int, ...], ...]) -> None:
    assert parts(*lists).verdicts("STP-PF-012") == FAIL


def test_list_that_was_all_there_was_until_something_arrived_meanwhile() -> None:
    def answered(n_s: int) -> StpStory:
        story = StpStory().opened().tester(SD, 0).tester(SD, 2)
        story.tester(POLL, n_s, n_ps=1, after=0.01)
        story.tester(POLL, 4, n_ps=2).iut(STAT, 1, n_ps=1, elements=(1, 2, 3))
        story.iut(STAT, 1, n_ps=2, elements=(1, 2, 3)).iut(STAT, 1, n_ps=2, elements=(3, 4))
        return story.iut(POLL, 0, after=5.0)

    assert Verdict.FAIL not in answered(3).verdicts("STP-PF-012")
    assert Verdict.FAIL in answered(4).verdicts("STP-PF-012")


def test_same_stat_again_or_a_later_one_is_no_part() -> None:
    assert parts((0, 3, 4), (0, 3, 4)).verdicts("STP-PF-012") == NOTHING
    story = parts((0, 3)).iut(STAT, 8, n_ps=1, timestamp=3, elements=(8, 12), after=1.0)
    assert story.verdicts("STP-PF-012") == NOTHING


@pytest.mark.parametrize(
    ("n_r", "n_mr", "run", "expected"),
    [(1, 64, (1, 3), PASS), (2, 64, (1, 3), FAIL), (1, 64, (3, 3), FAIL), (1, 2, (1, 3), FAIL)],
)
def test_run_of_a_ustat(n_r: int, n_mr: int, run: tuple[int, int], expected: set[Verdict]) -> None:
    story = opened().iut(USTAT, n_r, n_mr=n_mr, elements=run)
    assert story.verdicts("STP-PF-013") == expected


def test_end_below_the_first_sd_ends_nothing() -> None:
    """A tester belies its own ISS; whoever asked when the connection was complete broke."""
    story = opened().tester(SD, -4, flags=FIN, after=1.0).iut(END, 0, after=0.1)
    assert Verdict.ERROR not in story.verdicts("STP-DT-017") | story.verdicts("STP-CC-025")


@pytest.mark.parametrize(("outgoing", "expected"), [(True, FAIL), (False, PASS)])
def test_begin_after_a_bgak_with_reserved_flags(outgoing: bool, expected: set[Verdict]) -> None:
    """Whether it was taken, the caller's own repetition says, and no BEGIN of the tester."""
    story = StpStory().iut(BEGIN, csn=IUT_CSN - 1, seq=7, cookie=None)
    story.tester(BGREJ, reason=6, peer_csn=IUT_CSN - 1, after=0.6).iut(BEGIN)
    story.tester(BGAK, after=0.6, flags=R)
    say = story.iut if outgoing else story.tester
    assert say(BEGIN, after=1.0).iut(SD, 0, after=9.0).verdicts("STP-PF-004") == expected


def test_long_sds_that_are_discarded_leave_an_echo_nothing_more_to_send() -> None:
    options = bytes((0xAA, 4, 0, 0)) + option_field(1400, COOKIES[0])
    story = StpStory().asked().tester(BEGIN, options=options, after=1.0).iut(BGAK, after=0.01)
    story.tester(SD, 0, data=bytes(512), after=0.1).iut(SD, 0, data=bytes(512), after=0.01)
    story.tester(SD, -300, data=bytes(1000), after=0.1).tester(SD, 0, data=bytes(1000), after=0.1)
    story.tester(SD, 1, flags=FIN, after=0.1).iut(SD, 1, flags=FIN, after=0.01)
    assert story.of_service(7).verdicts("STP-PF-008") == PASS
