"""Packets that arrive together, before anything is transmitted between them."""

from bentpipe_reference.stp.codec import decode, encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.packets import Begin, Bgak, Bgrej, End, Endak, Flags, Packet

PEER = ("192.0.2.1", 7253)
PORTS = (7, 1000)
"""Of the peer and ours, as in packets from the peer."""


def called() -> tuple[StpEndpoint, Connection, Begin]:
    """An endpoint that has called the peer, and its BEGIN."""
    endpoint = StpEndpoint(StpConfig(), 1)
    connection = endpoint.connect(PEER, PORTS[0], PORTS[1])
    connection.write(b"hello")
    (_, octets), *_ = endpoint.transmit(0.0)
    begin = decode(octets)
    assert isinstance(begin, Begin)
    return endpoint, connection, begin


def arrive(endpoint: StpEndpoint, *packets: Packet) -> list[Packet]:
    """What an endpoint sends after packets that arrive together."""
    for packet in packets:
        endpoint.receive(encode(packet), PEER, 1.0)
    return [decode(octets) for _, octets in endpoint.transmit(1.0)]


def test_refusal_and_another_refusal_together_are_one() -> None:
    endpoint, connection, begin = called()
    refusal = Bgrej(*PORTS, 0, 0, 3, begin.csn)
    assert arrive(endpoint, refusal, refusal) == []
    assert connection.failure == "nobody listens on the peer's port"
    assert endpoint.connections == {}


def test_refusal_and_a_reflected_end_together_are_the_refusal() -> None:
    endpoint, connection, begin = called()
    end = End(*PORTS, 0, int(Flags.A | Flags.R), 0, 2, 0, begin.csn)
    assert arrive(endpoint, Bgrej(*PORTS, 0, 0, 3, begin.csn), end) == []
    assert connection.failure == "nobody listens on the peer's port"


def test_end_of_one_connection_and_begin_of_the_next_together_are_both_told() -> None:
    endpoint, connection, begin = called()
    endpoint.listen(PORTS[1])
    opened = Bgak(*PORTS, 77, 0, 500, 600, 77, begin.csn, begin.iss + 1, 1000)
    arrive(endpoint, opened)
    endpoint.take_events()
    abort = End(*PORTS, 77, int(Flags.A), 0, 1, 77, begin.csn)
    cookie = endpoint._cookies.make(PEER, 0.0)
    following = Begin(*PORTS, 78, 0, 900, 100, 78, cookie=cookie)
    answers = arrive(endpoint, abort, following)
    assert [type(answer) for answer in answers] == [Endak, Bgak]
    told = dict(endpoint.take_events())
    assert told[connection] & Events.FAILED
    (now_live,) = endpoint.connections.values()
    assert now_live is not connection
