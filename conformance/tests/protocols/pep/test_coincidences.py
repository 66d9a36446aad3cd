"""What coincides: calls, outages and other calls; acknowledgments and retransmissions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bentpipe_conformance.engine.lane import CLIENT, SERVER
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.story import (
    CLIENT_ADDRESS,
    FAIL,
    PASS,
    SERVER_ADDRESS,
    Story,
    asked,
)
from bentpipe_conformance.protocols.tcp.codec import ACK, RST, SYN, Tcp, build

EARLY = {**Story.claims, "opening": "early", "end": "local"}


@pytest.mark.parametrize(("opens_first", "expected"), [(False, PASS), (True, FAIL)])
def test_call_during_an_outage_that_the_box_gives_up_and_makes_again(
    opens_first: bool, expected: set[object]
) -> None:
    """A call that fails is no connection that ends; one that is open must not be ended."""
    story = asked(Story(), 0)
    for number in range(1, 6):
        asked(story, number, lost=True)
    if opens_first:
        story.opened()
    else:
        story.syn(CLIENT)
    story.say(CLIENT, True, RST | ACK, -1, 0, after=40.0)
    if not opens_first:
        story.opened()
    asked(story, 6).data(CLIENT, False, 0, 300).data(SERVER, True, 0, 300)
    assert story.over().verdicts("PEP-PC-001") == expected


def test_call_that_was_reset_is_not_answered_any_more() -> None:
    sent: list[Tcp] = []
    end = End(sent.append, lambda: 0.0, ("10.0.0.1", 1), ("10.0.0.2", 2), 1000, Offer())
    end.call()
    refusal = Tcp("10.0.0.2", "10.0.0.1", 2, 1, 0, 1001, RST | ACK, 0, b"")
    end.take(refusal)
    sent.clear()
    end.take(replace(refusal, seq=5000, flags=SYN | ACK, window=9000, mss=1460))
    assert (end.was_reset, end.established, sent) == (True, False, [])


@pytest.mark.parametrize(("later", "expected"), [(0.000003, PASS), (1.0, FAIL)])
def test_octets_sent_again_as_their_acknowledgment_arrives(
    later: float, expected: set[object]
) -> None:
    """A program has not looked at what arrived three microseconds before."""
    story = Story().opened().data(CLIENT, False, 0, 1000).ack(CLIENT, True, 1000)
    story.data(SERVER, True, 0, 600).data(SERVER, True, 600, 1000)
    story.data(SERVER, True, 0, 600, after=3.0).ack(SERVER, False, 1000)
    story.data(SERVER, True, 600, 1000, after=later).data(SERVER, False, 0, 500)
    assert story.over().verdicts("PEP-LR-002") == expected


@pytest.mark.parametrize(("source", "expected"), [(CLIENT_ADDRESS, PASS), ("10.78.9.9", FAIL)])
def test_call_for_the_second_of_two_clients_from_another_port(
    source: str, expected: set[object]
) -> None:
    """The first client calls from another address, and its handshake is never complete."""
    story = Story()
    first = "10.78.3.2", SERVER_ADDRESS, 40_000, 20_002
    story.tell(False, build(Tcp(*first, 5, 0, SYN, 1000, b"", mss=1460)), 0.01, CLIENT)
    story.syn(CLIENT).syn(CLIENT, answer=True).say(CLIENT, False, ACK)
    call = Tcp(source, SERVER_ADDRESS, 55_555, 20_002, 7, 0, SYN, 1000, b"", mss=1460)
    story.tell(True, build(call), 0.01, SERVER)
    assert story.over().verdicts("PEP-TR-002", claims=EARLY) == expected
