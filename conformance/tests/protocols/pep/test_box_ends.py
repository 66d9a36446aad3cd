"""The box's ends as ends of TCP, wrong segments and what passes, on traces written by hand."""

from __future__ import annotations

import socket

import pytest
from bentpipe_conformance.engine.codec import UDP, build_ipv4, build_udp
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.cases.damage import ODD, WRONG
from bentpipe_conformance.protocols.pep.cases.steps import of_class, summed, unreachable
from bentpipe_conformance.protocols.pep.checkers.box_ends import (
    ADVICE,
    KNOWN,
    OTHERS,
    TIMER,
    UNASKED,
    WINDOW,
)
from bentpipe_conformance.protocols.pep.distant import Distant
from bentpipe_conformance.protocols.pep.end import Offer
from bentpipe_conformance.protocols.pep.routed import altered
from bentpipe_conformance.protocols.pep.story import (
    CLIENT_ADDRESS,
    FAIL,
    NOTHING,
    PASS,
    SERVER_ADDRESS,
    Story,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, PSH, RST, SYN, Tcp, build, dissect
from bentpipe_conformance.selftest.deviations import known_deviations

RFC = {**Story.claims, "ends": "rfc"}


@pytest.mark.parametrize(("answered", "expected"), [(True, PASS), (False, FAIL)])
def test_quiet_keep_alive(answered: bool, expected: set[object]) -> None:
    story = Story().opened().data(CLIENT, False, 0, 100).ack(CLIENT, True, 100)
    story.data(SERVER, True, 0, 100, after=0.3).ack(SERVER, False, 100)
    story.say(CLIENT, False, ACK, 99, after=60.0)
    if answered:
        story.ack(CLIENT, True, 100)
    story.data(CLIENT, False, 100, 200, after=3.0).ack(CLIENT, True, 200)
    assert expected <= story.over().verdicts("PEP-LR-008", claims=RFC) <= expected | PASS


@pytest.mark.parametrize(("waits", "expected"), [((1, 2, 4), PASS), ((1, 1, 1), FAIL)])
def test_silent_server_timeouts(waits: tuple[float, ...], expected: set[object]) -> None:
    story = Story().opened().data(CLIENT, False, 0, 100).ack(CLIENT, True, 100)
    story.data(SERVER, True, 0, 100, after=0.3)
    for wait in waits:
        story.data(SERVER, True, 0, 100, after=wait)
    story.ack(SERVER, False, 100, after=0.2)
    assert expected <= story.over().verdicts("PEP-LR-004", claims=RFC) <= expected | PASS


def test_fin_that_waits_is_no_fault_of_the_end() -> None:
    story = Story().opened().data(CLIENT, False, 0, 100).ack(CLIENT, True, 100)
    story.data(SERVER, True, 0, 100, after=0.3).fin(CLIENT, False, 100).ack(CLIENT, True, 100)
    story.fin(SERVER, True, 100, after=0.3)
    for after in (1.0, 2.0):
        story.fin(CLIENT, False, 100, after=after).ack(CLIENT, True, 100)
    story.ack(SERVER, False, 101).ack(CLIENT, True, 101, after=0.3).over()
    for name in ("PEP-LR-001", "PEP-LR-008"):
        assert story.verdicts(name, claims=RFC) in (PASS, NOTHING), name


LINUX = {**Story.claims, "ends": "linux"}


@pytest.mark.parametrize(("times", "expected"), [(1, PASS), (2, FAIL)])
def test_fin_behind_a_hole_stays_reported(times: int, expected: set[object]) -> None:
    # Linux confirms the FIN before it forgets the block that held it, and then has forgotten it.
    story = Story().say(CLIENT, False, SYN, -1, mss=1460, sack_permitted=True)
    story.say(SERVER, True, SYN, -1, mss=1460).syn(SERVER, answer=True, after=0.3)
    story.say(SERVER, True, ACK).say(CLIENT, True, SYN | ACK, -1, mss=1460, sack_permitted=True)
    story.say(CLIENT, False, ACK).fin(CLIENT, False, 1)
    base = 1_001
    story.ack(CLIENT, True, 0, sack=((base + 1, base + 2),)).data(CLIENT, False, 0, 1)
    for _ in range(times):
        story.ack(CLIENT, True, 2, sack=((base + 1, base + 2),))
    story.data(SERVER, True, 0, 1).fin(SERVER, True, 1).ack(SERVER, False, 2)
    verdicts = story.over().verdicts("PEP-LR-001", claims=LINUX)
    assert expected <= verdicts <= expected | PASS


@pytest.mark.parametrize(("claims", "expected"), [(RFC, FAIL), (LINUX, NOTHING)])
def test_acknowledgment_of_what_was_never_sent(
    claims: dict[str, object], expected: set[object]
) -> None:
    story = Story().opened().data(CLIENT, False, 0, 100).ack(CLIENT, True, 100)
    story.data(SERVER, True, 0, 100, after=0.3).ack(SERVER, False, 100)
    story.say(SERVER, False, ACK, 0, 5_000, after=1.0).say(SERVER, False, ACK, 0, 100, after=2.0)
    verdicts = story.over().verdicts("PEP-LR-008", claims=claims)
    assert verdicts - PASS == expected


@pytest.mark.parametrize("forwarded", [True, False])
def test_odd_syn_beside_a_call_from_another_port(forwarded: bool) -> None:
    # A NAT before a box forwards what is none of a connection that it knows, and the answers.
    called = 20_001, 40_001
    story = Story()
    for side, answer in ((CLIENT, False), (SERVER, False), (SERVER, True), (CLIENT, True)):
        story.ports = (called[side == SERVER], 20_002)
        story.syn(side, answer=answer, after=0.3)
    ends = CLIENT_ADDRESS, SERVER_ADDRESS, 20_001, 20_002
    odd = build(Tcp(*ends, 1 << 29, 0, SYN | FIN, 100, b"", tsval=5, tsecr=77))
    back = *ends[1::-1], *ends[:1:-1]
    answer = build(Tcp(*back, 7, (1 << 29) + 1, SYN | ACK, 100, b"", tsval=9, tsecr=5))
    story.tell(False, odd, 0.1, CLIENT).tell(True, odd, 0.3, SERVER)
    for wait in (0.0, 1.0, 2.0, 4.0):
        story.tell(False, answer, wait, SERVER)
        if forwarded:
            story.tell(True, answer, 0.3, CLIENT)
    story.over()
    for rule in ("PEP-LR-001", "PEP-LR-008", "PEP-OP-003"):
        assert story.verdicts(rule, claims=RFC) <= PASS, rule


def test_what_linux_is_known_for_is_reviewed() -> None:
    found: dict[str, dict[str, object]] = {}
    never: set[str] = set()
    asked = {*WINDOW, *TIMER, *OTHERS, *ADVICE}
    for deviation in known_deviations("linux"):
        for name in asked.intersection(deviation.requirements):
            if deviation.settings in ({}, {"tcp_sack": "1"}) and deviation.instead:
                found.setdefault(name, {}).update(deviation.instead)
            elif not deviation.settings and not deviation.habits:
                never.add(name)
    assert found == KNOWN["linux"]
    assert never == UNASKED["linux"]


@pytest.mark.parametrize("error", WRONG)
@pytest.mark.parametrize("flags", [RST, FIN | ACK, PSH | ACK])
def test_wrong_segment_is_heeded(error: str, flags: int) -> None:
    ends = CLIENT_ADDRESS, SERVER_ADDRESS, 20_001, 20_002
    tcp = Tcp(*ends, 1001, 4_000_000_001, flags, 10_000, b"octets" if flags & PSH else b"")
    wrong = WRONG[error](build(tcp))
    assert not dissect(wrong).checksum_ok
    dropped = Story().opened().tell(False, wrong, 0.1, CLIENT).over()
    assert dropped.verdicts("PEP-RE-015") == PASS
    heeded = Story().opened().tell(False, wrong, 0.1, CLIENT)
    if flags & RST:
        heeded.reset(SERVER, True, after=0.3)
    elif flags & FIN:
        heeded.fin(SERVER, True, 0, after=0.3)
    else:
        heeded.ack(CLIENT, True, 6)
    assert heeded.over().verdicts("PEP-RE-015") == FAIL


@pytest.mark.parametrize(("asked", "expected"), [(True, PASS), (False, FAIL)])
def test_wrong_syn_is_sent_on_as_it_is(asked: bool, expected: set[object]) -> None:
    # As by a NAT that takes it for nothing it knows; its server does not look at checksums.
    ends = CLIENT_ADDRESS, SERVER_ADDRESS, 20_001, 20_002
    wrong = WRONG["checksum zero"](build(Tcp(*ends, 1000, 0, SYN, 10_000, b"", mss=1460)))
    answer = build(Tcp(*ends[1::-1], *ends[:1:-1], 7, 1001, SYN | ACK, 10_000, b"", mss=1460))
    story = Story().tell(False, wrong, 0.1, CLIENT).tell(True, wrong, 0.0, SERVER)
    if asked:
        story.tell(False, answer, 0.6, SERVER)
    assert story.tell(True, answer, 0.6, CLIENT).over().verdicts("PEP-RE-015") == expected


@pytest.mark.parametrize("oddity", ODD)
def test_odd_segments_are_right(oddity: str) -> None:
    tcp = Tcp("10.0.0.1", "10.0.0.2", 1, 2, 3, 4, ACK, 5, b"octets", tsval=6, tsecr=7)
    odd = dissect(ODD[oddity](build(tcp)))
    assert odd.checksum_ok and odd.payload == b"octets"


def _datagram(tos: int = 0) -> bytes:
    src, dst = map(socket.inet_aton, (CLIENT_ADDRESS, SERVER_ADDRESS))
    return of_class(build_ipv4(src, dst, UDP, build_udp(src, dst, 7, 8, b"octets")), tos)


def _routed(packet: bytes, at: int, octet: int) -> bytes:
    octets = bytearray(packet)
    octets[at] = octet
    return summed(octets)


@pytest.mark.parametrize(("before", "after", "expected"), [
    (_datagram(), _routed(_datagram(), 8, 63), ""),
    (_datagram(), _routed(_datagram(), 8, 65), "the time to live, which has grown"),
    (_datagram(2), _datagram(3), ""),
    (_datagram(), _datagram(3), "the type of service"),
    (_datagram(2), _datagram(0), "the type of service"),
    (_datagram(), _routed(_datagram(), 5, 9), "the identification"),
    (_datagram(), _datagram()[:-1] + b"?", "the payload"),
    (_datagram(), _datagram()[:10] + b"??" + _datagram()[12:],
     "the checksum of the header, which is wrong"),
])  # fmt: skip
def test_what_a_router_alters(before: bytes, after: bytes, expected: str) -> None:
    assert altered(before, after) == expected
    story = Story().opened()
    for _ in range(3):
        story.tell(False, before, 0.5, CLIENT).tell(True, after, 0.3, SERVER)
    assert story.over().verdicts("PEP-TR-015") == (PASS | FAIL if expected else PASS) - (
        PASS if expected == "the payload" else set()
    )


@pytest.mark.parametrize(("right", "expected"), [(True, NOTHING), (False, FAIL)])
def test_stale_message_beside_one_that_counts(right: bool, expected: set[object]) -> None:
    # A copy of octets that have arrived was under way when the path became narrow.
    story = Story().opened().data(CLIENT, False, 0, 4000).ack(CLIENT, True, 4000)
    for start in range(0, 4000, 400):
        story.data(SERVER, True, start, start + 400)
    story.ack(SERVER, False, 2000)

    def message(start: int) -> bytes:
        ends = CLIENT_ADDRESS, SERVER_ADDRESS, 20_001, 20_002
        quoted = build(Tcp(*ends, 77_000_001 + start, 0, ACK, 0, b"x" * 400))
        return unreachable(quoted, "10.77.255.1", CLIENT_ADDRESS, 4, 300)

    story.tell(False, message(0), 0.1, SERVER)
    if right:
        story.tell(False, message(2000), 0.1, SERVER)
    for start in range(2000, 4600, 200):
        story.data(SERVER, True, start, start + 200)
    assert story.over().verdicts("PEP-SEC-004") - PASS == expected


def test_segment_reaches_a_distant_end_later() -> None:
    said: list[Tcp] = []
    now = 0.0
    end = Distant(
        said.append, lambda: now, ("10.0.0.1", 1), ("10.0.0.2", 2), 0, Offer(away_s=0.2)
    )  # fmt: skip
    end.call()
    end.take(Tcp("10.0.0.2", "10.0.0.1", 2, 1, 9, 1, 0x12, 5000, b"", mss=1000))
    assert end.due == 0.2 and len(said) == 1
    now = 0.2
    end.expire()
    assert end.established and said[-1].ack == 10
