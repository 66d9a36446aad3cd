"""A flood of BEGINs from forged addresses at one endpoint that serves an honest peer."""

from __future__ import annotations

import random
from dataclasses import dataclass

from bentpipe_reference.stp.codec import encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.packets import Begin
from bentpipe_reference.stp.transfer import PORT

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.metering import excess, weight
from bentpipe_fuzz.stp.users import stream

_AT_ONCE = 100
_PER_SECOND = 10_000
_ROUND_TRIP_S = 0.6


@dataclass(frozen=True, slots=True)
class FloodResult:
    """The result of a flood.

    Attributes:
        begins: forged BEGINs sent.
        heaviest: entries kept at most.
        delivered: octets that the honest peer carried meanwhile.
    """

    begins: int
    heaviest: int
    delivered: int


def flood(begins: int, seed: int) -> FloodResult:
    """Send forged BEGINs from different addresses while an honest peer transfers data.

    Raises:
        Violation: memory is not bounded, an answer is too long, or the honest peer suffers.
    """
    numbers = random.Random(f"flood {seed}")
    server, client = StpEndpoint(StpConfig(), seed), StpEndpoint(StpConfig(), seed + 1)
    server.listen(PORT)
    honest = client.connect(("server", 1), PORT)
    line: list[tuple[float, StpEndpoint, bytes, tuple[str, int]]] = []
    served: Connection | None = None
    now, written, read, heaviest, rounds = 0.0, 0, 0, 0, 0
    sent = 0
    while sent < begins:
        now += _AT_ONCE / _PER_SECOND
        rounds += 1
        arrived = 0
        # STP-SEC-002 lets a flood push out calls that are pending, so the honest one comes first.
        for _ in range(_AT_ONCE if served is not None else 0):
            octets = _begin(numbers, sent)
            arrived += len(octets)
            server.receive(octets, ("forged", numbers.getrandbits(40)), now)
            sent += 1
        written += honest.write(stream(1, written, 1000)) if rounds % 10 == 0 else 0
        answered = 0
        for _, octets in client.transmit(now):
            line.append((now + _ROUND_TRIP_S / 2, server, octets, ("client", 1)))
        for peer, octets in server.transmit(now):
            if peer[0] == "client":
                line.append((now + _ROUND_TRIP_S / 2, client, octets, ("server", 1)))
            else:
                answered += len(octets)
        if answered > 3 * arrived:
            raise Violation("STP-SEC-001", f"{answered} octets answered {arrived}", now)
        while line and line[0][0] <= now:
            _, endpoint, octets, source = line.pop(0)
            endpoint.receive(octets, source, now)
        for connection, _ in server.take_events():
            if connection.identity.peer[0] == "client":
                served = connection
        client.take_events()
        if served is not None:
            data = served.read()
            if data != stream(1, read, len(data)):
                raise Violation("STP-SEC-003", "the honest peer's data was altered", now)
            read += len(data)
        if (told := excess(server)) is not None:
            raise Violation("STP-SEC-003", told, now)
        heaviest = max(heaviest, weight(server))
    if honest.failure is not None or written - read > 20_000:
        raise Violation("STP-SEC-003", f"only {read} of the honest peer's {written} octets arrived")
    return FloodResult(sent, heaviest, read)


def _begin(numbers: random.Random, number: int) -> bytes:
    port = 1 + number % 65535
    csn = numbers.getrandbits(32)
    data = bytes(numbers.choice([0, 0, 40, 512]))
    return encode(
        Begin(port, PORT, csn & 0xFFFF, number % 2, numbers.getrandbits(24), 100, csn, data=data)
    )
