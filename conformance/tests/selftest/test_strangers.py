"""Encounters of real Linux hosts: drawn, judged, and what is subtracted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bentpipe_conformance.bed.kernel import find_virtual
from bentpipe_conformance.engine.finding import Finding
from bentpipe_conformance.engine.suite import suite_named
from bentpipe_conformance.engine.verdict import Verdict
from bentpipe_conformance.evidence.pcapng import read_octets
from bentpipe_conformance.protocols.tcp.receipt import Receipt
from bentpipe_conformance.protocols.tcp.story import CLAIMS, RTT, SIZE, Story, duplicates
from bentpipe_conformance.selftest import strangers
from bentpipe_conformance.selftest.deviations import Deviation, known_deviations
from bentpipe_conformance.selftest.linux import (
    FURTHER_FROM,
    WIDER_FROM,
    draw_encounter,
    settings,
    statement,
)


def test_encounter_of_one_seed_is_the_same_again_and_another_differs() -> None:
    assert draw_encounter(3) == draw_encounter(3)
    assert draw_encounter(3) != draw_encounter(4)


def test_ports_of_an_encounter_belong_to_one_connection_each() -> None:
    for seed in range(200):
        ports = [(item.caller, item.port) for item in draw_encounter(seed).meetings]
        assert max(Counter(ports).values()) == 1


def test_encounters_from_a_number_on_draw_more_than_those_before() -> None:
    drawn = {
        number: [draw_encounter(number + seed) for seed in range(50)]
        for number in (WIDER_FROM - 50, WIDER_FROM)
    }
    before, behind = drawn.values()
    assert not any("net.ipv4.tcp_min_tso_segs" in each for item in before for each in item.sysctls)
    assert all("net.ipv4.tcp_min_tso_segs" in each for item in behind for each in item.sysctls)
    assert {item.link.mtu for item in behind} > {item.link.mtu for item in before} - {1006}
    assert any("clamp" in each for item in behind for m in item.meetings for each in m.options)


def test_statement_of_a_host_without_sack_claims_no_d_sack() -> None:
    sysctls = {**draw_encounter(1).sysctls[0], "net.ipv4.tcp_sack": "0", "net.ipv4.tcp_dsack": "1"}
    claimed = statement(sysctls, {"congestion": "bbr", "nodelay": 1})
    assert not claimed["sack"]
    assert not claimed["dsack"]
    assert claimed["pacing"]


def test_settings_name_what_the_peer_has_set_too() -> None:
    encounter = draw_encounter(1)
    meeting = encounter.meetings[0]
    own = settings(encounter, meeting, meeting.caller)
    assert own["congestion"] == meeting.options[0]["congestion"]
    assert own["peer.congestion"] == meeting.options[1]["congestion"]


@pytest.mark.parametrize(("options", "paced"), [
    ({"congestion": "bbr"}, True), ({"congestion": "reno"}, False),
    ({"congestion": "reno", "pacing_rate": 20_000}, True),
])  # fmt: skip
def test_host_is_paced_by_its_congestion_control_or_by_its_user(
    options: dict[str, Any], paced: bool
) -> None:
    drawn = draw_encounter(FURTHER_FROM)
    meeting = replace(drawn.meetings[0], caller=0, options=({**options, "nodelay": 1}, {}))
    assert settings(drawn, meeting, 0)["paced"] == paced
    assert statement(drawn.sysctls[0], meeting.options[0])["pacing"] == paced


def test_encounters_from_a_further_number_on_draw_more_again() -> None:
    drawn = [draw_encounter(FURTHER_FROM + seed) for seed in range(50)]
    assert all("net.ipv4.tcp_pingpong_thresh" in each for item in drawn for each in item.sysctls)
    options = {name for item in drawn for m in item.meetings for each in m.options for name in each}
    assert options >= {"quickack", "cork", "low", "pacing_rate"}
    before = draw_encounter(FURTHER_FROM - 1)
    assert not any("net.ipv4.tcp_pingpong_thresh" in each for each in before.sysctls)


@pytest.mark.parametrize("stack", ["linux", "ns-3", "gvisor", "smoltcp", "lwip"])
def test_known_deviations_name_requirements_of_the_suite(stack: str) -> None:
    requirements = suite_named("snr").requirements()
    found = known_deviations(stack)
    assert found
    assert all(requirements.keys() >= set(item.requirements) or item.habits for item in found)
    assert all(item.clause and item.reason and item.seen for item in found)


def test_deviation_under_other_settings_explains_nothing() -> None:
    item = Deviation(
        stack="linux", requirement="SNR-FR-002", clause="c", reason="r", seen="s",
        settings={"tcp_reordering": "10"},
    )  # fmt: skip
    assert item.explains("SNR-FR-002", {"tcp_reordering": "10", "mss": 256})
    assert not item.explains("SNR-FR-002", {"tcp_reordering": "3"})
    assert not item.explains("SNR-FR-001", {"tcp_reordering": "10"})


def test_deviation_by_habit_explains_any_requirement_under_its_settings() -> None:
    item = Deviation(
        stack="linux", requirement="*", clause="c", reason="r", seen="s",
        settings={"link": "reorders"}, habits=["counts-old-timestamps"],
    )  # fmt: skip
    assert item.explains("SNR-FR-001", {"link": "reorders"})
    assert not item.explains("SNR-FR-001", {"link": "in order"})


@pytest.mark.parametrize(("known", "explained"), [("ab", True), ("a", False), ("b", False)])
def test_deviations_that_only_together_explain_a_finding(known: str, explained: bool) -> None:
    """A stack deviates in several ways on one connection."""
    found = Finding("SNR-RTO-009", Verdict.FAIL, (3,), "too much")
    items = [
        Deviation(
            stack="linux", requirement=found.requirement, clause="c", reason="r", seen="s",
            instead={name: True},
        ) for name in known
    ]  # fmt: skip

    def judge_with(
        _name: str, instead: tuple[tuple[str, Any], ...], _habits: frozenset[str]
    ) -> list[Finding]:
        return [] if dict(instead).keys() >= {"a", "b"} else [found]

    assert strangers.is_explained(items, found, judge_with) == explained


@pytest.mark.parametrize(
    ("apart", "pacing", "verdict"), [(0.004, True, []), (0.004, False, [Verdict.FAIL]),
                                     (0.0, True, [Verdict.FAIL])],
)  # fmt: skip
def test_half_of_a_window_that_pacing_did_not_let_a_sender_use(
    apart: float, pacing: bool, verdict: list[Verdict]
) -> None:
    """Linux halves its window; what is outstanding shows that where it ended the flight."""
    story = Story(sack=False)
    for index in range(20):
        story.send(index, after=apart)
    duplicates(story.ack(0, after=RTT), 0, 2).send(0)
    duplicates(story, 0, 5).send(*range(20, 31))
    judge_with = strangers.judging(story.trace(), {**CLAIMS, "pacing": pacing})
    found = judge_with("SNR-REC-006", (("halves_window", True),), frozenset())
    assert [item.verdict for item in found] == verdict


@pytest.mark.parametrize(("longest", "verdict"), [(SIZE + 6, set()), (SIZE, {Verdict.FAIL})])
def test_segments_that_leave_again_with_a_lost_probe(longest: int, verdict: set[Verdict]) -> None:
    """Linux takes for lost what is too long beside the SACK blocks that it has to send."""
    story = Story().send(0, 1, 2).ack(3, after=RTT).send_octets(3 * SIZE, longest)
    ends = [longest + index * SIZE for index in range(3, 9)]
    for end in ends:
        story.send_octets(end, SIZE)
    for count in (1, 2, 3):
        story.ack(3, (ends[0] / SIZE, ends[count] / SIZE), after=RTT if count == 1 else 0.01)
    for start in (3 * SIZE, ends[3], ends[4]):
        story.send_octets(start, SIZE - 12)
    judge_with = strangers.judging(story.trace(), CLAIMS)
    found = judge_with("SNR-SAK-004", (("probes_fail_together", True),), frozenset())
    assert {item.verdict for item in found} - {Verdict.PASS} == verdict


def test_host_that_is_accused_leaves_its_packets(tmp_path: Path) -> None:
    """A segment beyond the window, at port 19 of the host that is called."""
    drawn = draw_encounter(3)
    meeting = replace(drawn.meetings[0], caller=1, port=19)
    encounter = replace(drawn, meetings=[meeting])
    story = Story(window=1000).send(0, 1)
    own = [(int(item.time * 1e9), not item.outgoing, item.data) for item in story.packets]
    heard = strangers.hear(encounter, (own, []), tmp_path)
    assert "SNR-WIN-001" in {item.requirement for item in heard.accusations}
    (stored,) = tmp_path.iterdir()
    assert stored.name == "3-1-19.pcapng"
    frames = list(read_octets(stored.read_bytes(), stored.name))
    assert [frame.data for frame in frames] == [item.data for item in story.packets]


def _accused(
    story: Story | Receipt, requirement: str, *, port: int = 19, reorders: bool = False,
    **sysctls: str,
) -> set[str]:  # fmt: skip
    """What a Linux host that is called at a port is accused of, about a requirement."""
    drawn = draw_encounter(3)
    usual = {"tcp_sack": "1", "tcp_recovery": "1", "tcp_reordering": "3", **sysctls}
    set_here = {**drawn.sysctls[0], **{f"net.ipv4.{name}": usual[name] for name in usual}}
    meeting = replace(drawn.meetings[0], caller=1, port=port)
    forward = replace(drawn.link.forward, reorder_probability=0.2 if reorders else 0.0)
    back = replace(drawn.link.return_, reorder_probability=0.0)
    encounter = replace(
        drawn, meetings=[meeting], sysctls=(set_here, set_here),
        link=replace(drawn.link, forward=forward, return_=back),
    )  # fmt: skip
    own = [(int(item.time * 1e9), not item.outgoing, item.data) for item in story.packets]
    heard = strangers.hear(encounter, (own, []))
    return {item.sentence for item in heard.accusations if item.requirement == requirement}


@pytest.mark.parametrize(("together", "accused"), [(True, False), (False, True)])
def test_rest_of_a_block_that_began_inside_a_packet_is_known_to_be_lost(
    together: bool, accused: bool
) -> None:
    """Segments 4 to 13 are held; all leave again, as if nobody had reported them."""
    story = Story()
    for index in range(14):
        story.send(index, after=0.0 if index == 4 and together else 0.002)
    story.ack(3, after=RTT)
    for end in range(5, 15):
        story.ack(3, (4, end), after=0.002)
    for index in range(3, 14):
        story.send(index, after=0.003)
    found = _accused(story, "SNR-SAK-001")
    assert ("[8000, 9000) was retransmitted although it was reported held" in found) == accused
    assert bool(found) == accused


@pytest.mark.parametrize(("together", "accused"), [(True, False), (False, True)])
def test_half_of_a_packet_whose_block_has_grown_into_another_is_known_to_be_lost(
    together: bool, accused: bool
) -> None:
    """Segments 5 and 6 left as one; 6 is reported held, then everything from 2 on."""
    story = Story()
    for index in range(14):
        story.send(index, after=0.0 if index == 6 and together else 0.002)
    story.ack(1, after=RTT).ack(1, (2, 5), after=0.002).ack(1, (6, 7), (2, 5), after=0.002)
    story.ack(1, (2, 14), after=0.002)
    for index in (1, 6):
        story.send(index, after=0.003)
    assert bool(_accused(story, "SNR-SAK-001")) == accused


@pytest.mark.parametrize(("width", "accused"), [(1, False), (2, False), (4, True)])
def test_report_of_parts_of_packets_is_known_to_be_lost(width: int, accused: bool) -> None:
    """Three segments or more are held; nothing leaves again. Two may be of two packets."""
    story = Story().send(*range(16)).ack(2, after=RTT)
    held = [(at, at + width) for at in (3, 8, 13)]
    story.ack(2, *held, after=0.002).ack(2, *held, after=2 * RTT)
    assert bool(_accused(story, "SNR-SAK-015")) == accused


@pytest.mark.parametrize(("together", "accused"), [(True, False), (False, True)])
def test_block_that_began_inside_a_packet_is_known_to_be_lost_after_a_timeout_too(
    together: bool, accused: bool
) -> None:
    """Segments 4 to 13 are held and reported again after the timeout; all leave again."""
    story = Story()
    for index in range(14):
        story.send(index, after=0.0 if index == 4 and together else 0.002)
    story.ack(2, after=RTT).ack(2, (4, 5), after=0.002).ack(2, (4, 14), after=0.002)
    story.send(2, after=2.0).ack(3, (4, 14), after=RTT).send(3).send(*range(4, 14), after=0.003)
    found = _accused(story, "SNR-SAK-002")
    assert any("[8000, 9000)" in sentence for sentence in found) == accused
    assert bool(found) == accused


@pytest.mark.parametrize(("waiting", "accused"), [(True, False), (False, True)])
def test_duplicate_before_which_a_compressed_acknowledgment_leaves_is_known(
    waiting: bool, accused: bool
) -> None:
    """[100, 200) of [100, 300) comes again, whose block is not among the latest."""
    receipt = Receipt().data(100, 300).reply(0, (100, 300))
    receipt.data(400, 500, after=1.0).reply(0, (400, 500), (100, 300))
    receipt.data(600, 700, after=1.0)
    if not waiting:
        receipt.reply(0, (600, 700), (400, 500), (100, 300)).later(1.0)
    receipt.data(100, 200, after=0.001).reply(0, (100, 200), (600, 700), (400, 500))
    found = _accused(receipt, "SNR-RCV-031", port=9, tcp_dsack="1", tcp_comp_sack_nr="44")
    assert bool(found) == accused


@pytest.mark.parametrize(("took", "accused"), [(0.7, False), (0.05, True)])
def test_what_a_timeout_spares_is_young_by_the_delivery_of_a_repair(
    took: float, accused: bool
) -> None:
    """Ten segments left 0.3 s before a timeout; a repair before was under way longer, or not."""
    story = Story(rtt=0.05).send(0).ack(1, after=0.05).send(1).send(1, after=1.0)
    story.ack(2, after=took).send(2).send(*range(3, 13), after=0.7).send(2, after=0.3)
    story.ack(3, after=0.3).send(13, 14, 15, 16)
    assert bool(_accused(story, "SNR-RTO-009")) == accused


@pytest.mark.parametrize(("young", "accused"), [(4, False), (0, True)])
def test_what_a_timeout_spares_counts_in_segments(young: int, accused: bool) -> None:
    """Of 100 octets each; behind them seven may be in the network, or three."""
    story = Story().send(*range(4)).ack(2, after=RTT).send(4, 5)
    for index in range(young):
        story.send_octets(6000 + 100 * index, 100, after=0.7 if not index else 0.0)
    story.send(2, after=0.5 if young else 1.2).ack(3, after=RTT)
    for index in range(6):
        story.send_octets(6000 + 100 * young + 1000 * index, 1000)
    assert bool(_accused(story, "SNR-RTO-009")) == accused


@pytest.mark.parametrize(("reorders", "much", "accused"), [
    (True, 4, False), (True, 6, True), (False, 4, True),
])  # fmt: skip
def test_duplicates_let_out_twice_what_they_report_where_the_link_reorders(
    reorders: bool, much: int, accused: bool
) -> None:
    """Each reports two segments; slow start goes on."""
    story = Story().send(*range(12)).ack(1, after=RTT).send(12, 13).ack(2, after=0.01).send(14, 15)
    story.ack(2, (3, 5), after=0.01).send(*range(16, 16 + much))
    story.ack(2, (3, 7), after=0.01).send(*range(16 + much, 16 + 2 * much))
    assert bool(_accused(story, "SNR-LT-002", reorders=reorders)) == accused


@pytest.mark.parametrize(("text", "accused"), [(True, False), (False, True)])
def test_duplicates_whose_number_is_newer_than_that_of_the_last_text(
    text: bool, accused: bool
) -> None:
    """They have overtaken it twice; Linux counts those behind as the first ones."""
    story = duplicates(Story(sack=False).send(*range(16)).ack(2, after=RTT), 2, 6).send(2)
    story.ack(3, after=RTT, seq=100).ack(3, after=0.01, seq=102)
    if text:
        story.ack(3, after=0.01, data=bytes(2))
    for _ in range(2):
        story.ack(3, after=0.01, seq=102)
    story.ack(3, after=0.01, seq=102).send(3)
    assert bool(_accused(story, "SNR-REC-001", tcp_sack="0")) == accused


@pytest.mark.bed
def test_linux_hosts_that_meet_are_not_accused() -> None:
    if find_virtual() is None:
        pytest.skip("no kernel with a virtual clock is built; run `bentpipe bed build`")
    hearings = strangers.hear_all(range(1, 7), 1, lambda _: None)
    passed = set[str]().union(*(item.passed for item in hearings))
    assert not [item for hearing in hearings for item in hearing.accusations]
    assert {"SNR-RCV-006", "SNR-WIN-001"} <= passed
