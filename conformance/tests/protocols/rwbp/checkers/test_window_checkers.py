"""The checkers of windows, order and flow control on traces written by hand."""

from __future__ import annotations

import pytest
from bentpipe_conformance.protocols.rwbp.codec import option_octets
from bentpipe_conformance.protocols.rwbp.story import (
    BUFFER,
    CLAIMS,
    FAIL,
    NOTHING,
    PASS,
    RTT,
    SIZE,
    Story,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST


def test_window_in_units() -> None:
    story = Story().send(*range(8)).ack(8, after=RTT).send(*range(8, 16))
    for name in ("RWBP-WN-001", "RWBP-WN-005", "RWBP-FC-003"):
        assert story.verdicts(name) == PASS, name


def test_window_read_as_octets() -> None:
    story = Story().send(*range(8)).ack(8, after=RTT).ack(8, after=RTT)
    assert story.verdicts("RWBP-WN-001") >= FAIL
    assert story.verdicts("RWBP-FC-003") >= FAIL


def test_window_read_in_units_of_its_own() -> None:
    own = {"mss": 2 * SIZE}
    story = Story(own=own, answer=option_octets(8, 2 * SIZE), window=2).send(0, 1, window=10)
    assert story.verdicts("RWBP-WN-001") == PASS
    assert story.send(2, 3, window=10).verdicts("RWBP-WN-001") == {*PASS, *FAIL}


@pytest.mark.parametrize(("waits", "accused"), [(True, False), (False, True)])
def test_acknowledgment_of_what_may_wait_for_the_link_makes_room(
    waits: bool, accused: bool
) -> None:
    story = Story(window=2).send(0).ack(2, after=0.01).send(1, 2, 3, after=0.01)
    claims = {**CLAIMS, "link_rate": waits, "link_rate_bps": 2_000_000 * waits}
    assert (not story.verdicts("RWBP-WN-005", claims=claims).isdisjoint(FAIL)) == accused


def test_fin_above_the_edge_shows_no_other_unit() -> None:
    own = {"mss": 2 * SIZE}
    story = Story(own=own, answer=option_octets(8, 2 * SIZE), window=2).send(0, window=10)
    story.send(1, window=10, flags=ACK | FIN)
    assert story.verdicts("RWBP-WN-005") >= FAIL
    assert story.verdicts("RWBP-WN-001") == PASS


def test_window_advertised_in_octets() -> None:
    story = Story(service=9).arrive(*range(8)).reply(8, window=BUFFER * SIZE)
    assert story.verdicts("RWBP-WN-001") == FAIL


def test_lower_edge_named() -> None:
    story = Story(service=7, window=8).ack(0, window=2, after=0.1).arrive(0, 1, 2, window=2)
    assert story.send(0, 1, 2, ack=3100).verdicts("RWBP-WN-002") == PASS
    story = Story(service=7, window=8).ack(0, window=2, after=0.1).arrive(0, 1, 2, window=2)
    story.send(0, 1, ack=3100).ack(0, window=2, after=0.3)
    assert story.verdicts("RWBP-WN-002") >= FAIL


@pytest.mark.parametrize(("units", "expected"), [(BUFFER, PASS), (BUFFER + 1, FAIL), (10, FAIL)])
def test_advertised_window(units: int, expected: set[object]) -> None:
    story = Story(service=9).arrive(*range(8)).reply(8, window=units)
    assert story.verdicts("RWBP-WN-003") == expected


def _promised(field: int) -> Story:
    """An edge of 20,000 is named, and then, 100 octets behind a hole, a lower one."""
    story = Story(service=9).arrive(1, size=100).reply(0, (1, 1.1), window=field)
    return story.arrive(18.5, after=0.1)


def test_promised_octets() -> None:
    assert _promised(18).reply(0, (18.5, 19.5), (1, 1.1)).verdicts("RWBP-WN-004") == PASS
    assert _promised(18).reply(0, (1, 1.1)).verdicts("RWBP-WN-004") == FAIL


@pytest.mark.parametrize(("flags", "ack"), [(RST, 500), (0, 500), (ACK, 900)])
def test_promised_octets_of_what_is_not_processed_are_not_taken(flags: int, ack: int) -> None:
    """A RST, a segment without ACK flag, and an acknowledgment of what was never sent."""
    story = Story(service=9).arrive(1, size=100).reply(0, (1, 1.1), window=18)
    story.put(False, flags=flags, seq=100 + 18_500, payload=b"x", after=0.1, ack=ack)
    assert story.reply(0, (1, 1.1)).verdicts("RWBP-WN-004") == NOTHING


def test_octets_beyond_the_edge() -> None:
    story = Story(service=9).arrive(19.5, after=0.1)
    assert story.reply(0, (19.5, 20)).verdicts("RWBP-WN-004") == PASS
    story = Story(service=9).arrive(19.5, after=0.1)
    assert story.reply(0, (19.5, 20.5)).verdicts("RWBP-WN-004") == FAIL


def test_fin_at_the_edge() -> None:
    """It counts as an octet: there is room for the data before it, and none for it."""

    def closing() -> Story:
        return Story(service=9).arrive(*range(20), fin=True)

    assert closing().reply(20, window=0, after=0.1).verdicts("RWBP-WN-004") == PASS
    taken = closing().reply(20, ack=100 + 20_001, window=0, after=0.1)
    assert taken.verdicts("RWBP-WN-004") == FAIL


def test_segment_that_covers_the_whole_window() -> None:
    def covered() -> Story:
        story = Story(service=9).arrive(*range(19)).reply(19, window=1)
        return story.arrive(18.9, size=2000, after=0.1)

    taken = covered().reply(20, window=0)
    assert taken.verdicts("RWBP-WN-004") == PASS
    assert not taken.verdicts("RWBP-WF-002") & FAIL
    assert not taken.verdicts("RWBP-AK-004") & FAIL
    assert covered().reply(19, window=1).verdicts("RWBP-WF-002") >= FAIL
    assert covered().reply(19, window=1).verdicts("RWBP-WN-004") == FAIL
    assert covered().reply(20.9, window=0).verdicts("RWBP-WN-004") == FAIL


@pytest.mark.parametrize(("flags", "ack"), [(0, 500), (ACK, 900)])
def test_segment_around_the_window_that_is_not_processed(flags: int, ack: int) -> None:
    """What has no ACK flag or acknowledges what was never sent is not taken at all."""
    story = Story(service=9).arrive(*range(19)).reply(19, window=1)
    story.put(False, flags=flags, seq=100 + 18_900, payload=bytes(1400), after=0.1, ack=ack)
    assert story.reply(19, window=1).verdicts("RWBP-WN-004") == PASS


def test_segment_beyond_the_edge_behind_a_hole() -> None:
    """What lies below the edge is taken there, too."""

    def behind() -> Story:
        return Story(service=9).arrive(*range(18)).reply(18, window=2).arrive(19.5, after=0.1)

    assert behind().reply(18, (19.5, 20), window=2).verdicts("RWBP-WN-004") == PASS
    assert behind().reply(18, window=2).verdicts("RWBP-WN-004") == FAIL


def test_beyond_the_edge_of_the_peer() -> None:
    assert Story().send(*range(9)).verdicts("RWBP-WN-005") >= FAIL


def test_cut_to_fit() -> None:
    story = Story(service=19, window=2).ack(0, ack=500, window=2)
    story.send(0, 1).ack(1, ack=1800, window=2, after=RTT).send(2)
    assert story.verdicts("RWBP-WN-006") == PASS
    assert story.send_octets(3000, 300).verdicts("RWBP-WN-006") >= FAIL


def _between() -> Story:
    """Eleven units arrive with an interval of 255, so that the edge could rise by half of BUF."""
    return Story(service=9, interval=255).arrive(*range(11), after=0.1)


def test_update() -> None:
    story = _between().reply(11)
    assert story.verdicts("RWBP-WN-007") == PASS
    assert story.verdicts("RWBP-AK-004") == PASS
    story = _between().ack(0, after=0.08)
    assert story.verdicts("RWBP-WN-007") == FAIL


def _probes(*times: float, count: int = 8, seq: int = 0) -> Story:
    """The window closes when eight segments have been acknowledged; RTO is about 1.5 s."""
    story = Story().send(*range(8)).ack(8, after=RTT, window=0)
    for after in times:
        story.put(True, flags=ACK, seq=499 + count * SIZE + seq, after=after)
        story.ack(8, after=RTT, window=0)
    return story


FIRST = 0.599875 + 4 * 0.224875


def test_probes() -> None:
    story = _probes(FIRST, 2 * FIRST - RTT, 4 * FIRST - RTT)
    for name in ("RWBP-WN-008", "RWBP-WN-009"):
        assert story.verdicts(name) == PASS, name


@pytest.mark.parametrize("times", [(1.0,), (2.5,), (FIRST, FIRST - RTT)])
def test_probes_at_the_wrong_time(times: tuple[float, ...]) -> None:
    assert _probes(*times).verdicts("RWBP-WN-008") >= FAIL


def test_no_probe() -> None:
    story = Story().send(*range(8)).ack(8, after=RTT, window=0).ack(8, after=4.0)
    assert story.verdicts("RWBP-WN-008") == FAIL


HANDSHAKE = 0.599 + 4 * 0.2995
"""RTO when nothing but the handshake has been measured."""


@pytest.mark.parametrize("service", [7, 9])
@pytest.mark.parametrize(
    ("after", "expected"), [(HANDSHAKE, PASS), (HANDSHAKE + 0.08, PASS), (1.5, FAIL), (4.0, FAIL)]
)
def test_probe_for_a_fin_alone(service: int, after: float, expected: set[object]) -> None:
    """The user has closed behind the peer's FIN within 0.05 s, and the window is closed."""
    story = Story(service=service, window=0).arrive(0, size=0, fin=True, after=0.1)
    story.reply(0, ack=101).put(True, flags=ACK, seq=499, ack=101, after=after)
    assert story.ack(0, seq=101, after=0.1).verdicts("RWBP-WN-008") == expected


@pytest.mark.parametrize(("service", "expected"), [(7, FAIL), (9, FAIL), (19, NOTHING)])
def test_no_probe_for_a_fin_alone(service: int, expected: set[object]) -> None:
    """When chargen drops what waits, and when it closes, is not known."""
    story = Story(service=service, window=0).arrive(0, size=0, fin=True, after=0.1)
    story.reply(0, ack=101).ack(0, seq=101, after=0.1).ack(0, seq=101, after=4.0)
    assert story.verdicts("RWBP-WN-008") == expected


def test_fin_that_has_room_is_not_probed_for() -> None:
    story = Story(service=9, window=1).arrive(0, size=0, fin=True, after=0.1)
    story.put(True, flags=ACK | FIN, seq=500, ack=101).ack(0, seq=101, after=4.0)
    assert story.verdicts("RWBP-WN-008") == NOTHING


@pytest.mark.parametrize(("blocks", "expected"), [([(1.0, 1.1)], PASS), ([], {*PASS, *FAIL})])
def test_probe_while_a_run_is_held(
    blocks: list[tuple[float, float]], expected: set[object]
) -> None:
    """It is a pure acknowledgment, and has the blocks of one."""
    story = Story().send(*range(8)).ack(8, window=0, after=RTT)
    story.arrive(1, size=100, window=0, ack=500 + 8 * SIZE, after=0.1)
    story.reply(0, (1, 1.1), seq=500 + 8 * SIZE)
    story.reply(0, *blocks, seq=500 + 8 * SIZE - 1, after=FIRST - 0.1)
    assert story.verdicts("RWBP-AK-005") == expected


def test_probe_with_another_number() -> None:
    assert _probes(FIRST, seq=1).verdicts("RWBP-WN-009") == FAIL
    story = Story().send(*range(8)).ack(8, after=RTT, window=0)
    assert story.send_octets(8000, 1, after=FIRST).verdicts("RWBP-WN-009") == FAIL


def test_closed_for_long() -> None:
    times = [FIRST * 2**n - (RTT if n else 0) for n in range(6)]
    assert _probes(*times).verdicts("RWBP-WN-010") == PASS
    assert _probes(*times).reset(after=1.0).verdicts("RWBP-WN-010") == FAIL


def test_reset_after_the_end_of_a_connection_that_was_probed() -> None:
    """What answers a segment after CLOSED gives up nothing."""
    story = _probes(FIRST).ack(8, window=0, after=0.1).arrive(0, after=0.1, fin=True)
    story.put(True, flags=FIN | ACK, seq=8500, ack=1101).put(
        False, flags=ACK, seq=1101, ack=8501, after=0.1
    )
    story.put(False, flags=ACK, seq=1101, ack=8501, after=0.3).reset()
    assert story.verdicts("RWBP-WN-010") == NOTHING


@pytest.mark.parametrize(
    ("window", "expected"), [(BUFFER * SIZE, PASS), (65535, FAIL), (3 * SIZE, FAIL)]
)
def test_first_window(window: int, expected: set[object]) -> None:
    assert Story(own={"window": window}).verdicts("RWBP-WN-011") == expected


def test_acknowledgment_at_the_edge() -> None:
    """The tester has sent up to the edge, behind a hole, and acknowledges from there."""
    edge = 100 + BUFFER * SIZE

    def story() -> Story:
        told = Story(service=19).send(*range(8)).arrive(19).reply(0, (19, 20), window=20, seq=8500)
        return told.ack(1, after=RTT, seq=edge)

    assert story().send(8).verdicts("RWBP-WN-013") == PASS
    assert story().reply(0, (19, 20), seq=8500).verdicts("RWBP-WN-013") == FAIL


def _false(times: int) -> Story:
    """Segments of a window of eight are told missing and arrive a moment later, so many times."""
    story = Story().send(*range(8))
    for index in range(times):
        lost, new = 2 * index, 8 + 2 * index
        story.ack(lost, (lost + 1, lost + 2), after=RTT if not index else 0.1).send(lost)
        story.ack(lost + 2, after=0.05).send(new, new + 1)
    return story


def test_two_false_losses() -> None:
    story = _false(2).ack(4, (5, 6), after=0.1)
    assert story.send(4).verdicts("RWBP-FF-002") == PASS
    story = _false(2).ack(4, (5, 6), after=0.1).ack(4, (5, 6), after=0.3)
    assert story.verdicts("RWBP-FF-002") >= FAIL


@pytest.mark.parametrize(("after", "told"), [(0.1, PASS), (0.4, NOTHING)])
def test_arrival_just_after_a_timeout(after: float, told: set[object]) -> None:
    """No loss was false, for none was told; half of the shortest round trip is 0.3 s."""

    def lost() -> Story:
        story = Story(window=1).send(0).send(0, 0, after=1.797).ack(1, after=after, window=8)
        return story.send(*range(1, 9)).ack(1, (2, 3), after=RTT)

    assert lost().send(1).verdicts("RWBP-FF-002") == told
    assert (lost().ack(1, (2, 3), after=0.3).verdicts("RWBP-FF-002") == FAIL) == (told == PASS)


def test_three_false_losses() -> None:
    story = _false(3).ack(6, (7, 8), after=0.1)
    assert story.verdicts("RWBP-FF-003") == PASS
    assert story.send(6).verdicts("RWBP-FF-003") == FAIL
    assert not story.verdicts("RWBP-EC-002") & FAIL, "only the threshold forbids it"
    story = _false(3).ack(6, (7, 8), after=0.1).ack(6, (7, 10), after=0.1)
    assert story.send(6).verdicts("RWBP-EC-002") == PASS


def test_one_connection() -> None:
    assert Story().send(*range(8)).verdicts("RWBP-FC-007") == NOTHING


@pytest.mark.parametrize(("after", "probe", "expected"), [(0.001, 0, PASS), (2.0, 1, FAIL)])
def test_closed_window_of_which_two_units_are_read(
    after: float, probe: int, expected: set[object]
) -> None:
    """What the acknowledgment of 4,000 octets makes room for is told at once, not by a probe."""
    story = Story(service=7, window=4, own={"window": 4 * SIZE}).arrive(*range(4), window=4)
    story.send(0, 1, 2, 3, ack=4100, window=0).ack(4, window=0, after=RTT, seq=4100)
    story.put(True, flags=ACK, seq=4500 - probe, ack=4100, window=4, after=after)
    claims = {**CLAIMS, "receive_buffer": 0}
    assert story.verdicts("RWBP-WN-007", claims=claims) == expected


@pytest.mark.parametrize(("room", "expected"), [(1, NOTHING), (0, FAIL)])
def test_closed_window_behind_a_fin(room: int, expected: set[object]) -> None:
    """Nothing follows a FIN that was taken; one that the edge keeps out has not been."""
    story = Story(service=7, window=4, own={"window": 4 * SIZE + room})
    story.arrive(*range(4), window=4).arrive(4, size=0, fin=True, window=4)
    story.send(0, 1, 2, 3, ack=4100 + room, window=0)
    story.ack(4, window=0, after=RTT, seq=4100 + room)
    story.put(True, flags=ACK, seq=4499, ack=4100 + room, window=4, after=2.0)
    claims = {**CLAIMS, "receive_buffer": 0}
    assert story.verdicts("RWBP-WN-007", claims=claims) == expected
