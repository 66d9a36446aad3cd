"""A flood of BEGINs from forged addresses at one endpoint that serves an honest peer."""

from __future__ import annotations

import json
import random
import sys
import tracemalloc
from dataclasses import asdict, dataclass

import click
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.codec import encode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.packets import LEAST_COOKIE, MOST_COOKIE, Begin
from bentpipe_reference.stp.parts import TRUE_PARTS, Parts
from bentpipe_reference.stp.transfer import PORT

from bentpipe_fuzz.campaign.violation import Violation
from bentpipe_fuzz.stp.metering import weight

_AT_ONCE = 100
_PER_SECOND = 10_000
_ROUND_TRIP_S = 0.6

_WARM_BEGINS = 500
"""BEGINs after which memory is measured for the first time."""

MOST_GROWTH = 64 << 10
"""Octets by which memory may grow afterwards, whatever the number of BEGINs (STP-CC-036)."""


@dataclass(frozen=True, slots=True)
class FloodResult:
    """The result of a flood.

    Attributes:
        begins: forged BEGINs sent.
        largest: the largest answer, in octets for each octet of its BEGIN.
        grown: octets of memory that are in use beyond those before the flood.
        delivered: octets that the honest peer carried meanwhile.
    """

    begins: int
    largest: float
    grown: int
    delivered: int


class _Honest:
    """A client, its transfer to the server, and the line between them."""

    def __init__(self, server: StpEndpoint, seed: int) -> None:
        self._server, self._client = server, StpEndpoint(StpConfig(), seed)
        self.connection = self._client.connect(("server", 1), PORT)
        self.written = self.read = 0
        self._served: Connection | None = None
        self._line: list[tuple[float, StpEndpoint, bytes, tuple[str, int]]] = []

    def answered(self, octets: bytes, now: float) -> None:
        self._line.append((now + _ROUND_TRIP_S / 2, self._client, octets, ("server", 1)))

    def step(self, now: float, *, writes: bool) -> None:
        if writes:
            self.written += self.connection.write(pattern(self.written, 1000))
        for _, octets in self._client.transmit(now):
            self._line.append((now + _ROUND_TRIP_S / 2, self._server, octets, ("client", 1)))
        while self._line and self._line[0][0] <= now:
            _, endpoint, octets, source = self._line.pop(0)
            endpoint.receive(octets, source, now)
        for connection, _ in self._server.take_events():
            self._served = connection
        self._client.take_events()
        if self._served is not None:
            data = self._served.read()
            if data != pattern(self.read, len(data)):
                raise Violation("STP-SEC-003", "the honest peer's data was altered", now)
            self.read += len(data)


def flood(begins: int, seed: int, parts: Parts = TRUE_PARTS) -> FloodResult:
    """Send forged BEGINs from different addresses while an honest peer transfers data.

    Raises:
        Violation: something of a BEGIN is kept, an answer is too long, or the honest peer suffers.
    """
    numbers = random.Random(f"flood {seed}")
    server = StpEndpoint(StpConfig(), seed, parts=parts)
    server.listen(PORT)
    honest = _Honest(server, seed + 1)
    now, sent, largest, before = 0.0, 0, 0.0, 0
    traced_already = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        while sent < begins:
            now += _AT_ONCE / _PER_SECOND
            honest.step(now, writes=sent % 1000 == 0)
            for _ in range(_AT_ONCE):
                octets = _begin(numbers, sent)
                server.receive(octets, ("forged", numbers.getrandbits(40)), now)
                largest = max(largest, _answer(server, honest, now) / len(octets))
                sent += 1
            if sent == _WARM_BEGINS:
                before = tracemalloc.get_traced_memory()[0]
        grown = tracemalloc.get_traced_memory()[0] - before if sent > _WARM_BEGINS else 0
    finally:
        if not traced_already:
            tracemalloc.stop()
    if largest > 3:
        raise Violation("STP-SEC-001", f"{largest:.1f} octets answer each of a BEGIN", now)
    kept = weight(server) + len(server._cookies)
    if grown > MOST_GROWTH or kept > _WARM_BEGINS:
        kept_too = f"{kept} entries and {grown} octets more are kept after {sent} forged BEGINs"
        raise Violation("STP-CC-036", kept_too, now)
    if honest.connection.failure is not None or honest.written - honest.read > 20_000:
        told = f"only {honest.read} of the honest peer's {honest.written} octets arrived"
        raise Violation("STP-SEC-003", told)
    return FloodResult(sent, largest, grown, honest.read)


def _answer(server: StpEndpoint, honest: _Honest, now: float) -> int:
    """Octets of the one packet that answers a forged BEGIN; the honest peer gets its own."""
    sizes = []
    for peer, octets in server.transmit(now):
        if peer[0] == "client":
            honest.answered(octets, now)
        else:
            sizes.append(len(octets))
    if len(sizes) != 1:
        raise Violation("STP-CC-036", f"{len(sizes)} packets answer a BEGIN", now)
    return sizes[0]


def _begin(numbers: random.Random, number: int) -> bytes:
    port = 1 + number % 65535
    csn = numbers.getrandbits(32)
    data = bytes(numbers.choice([0, 0, 40, 512]))
    size = numbers.choice([0, LEAST_COOKIE, 16, 16, MOST_COOKIE])
    cookie = numbers.randbytes(size) if size else None
    return encode(
        Begin(port, PORT, csn & 0xFFFF, number % 4, numbers.getrandbits(24), 100, csn,
          cookie=cookie, data=data)
    )  # fmt: skip


@click.command(epilog="Exit status: 0 pass, 1 fail, 2 wrong usage.")
@click.option("--begins", type=click.IntRange(1), default=100_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
def main(begins: int, seed: int) -> None:
    """Send BEGINs from forged addresses at the reference, with an honest peer in between.

    Each has to be answered by one packet of at most three times its octets (STP-SEC-001), and
    nothing of them may be kept: memory is measured (STP-CC-036).
    """
    try:
        click.echo(json.dumps(asdict(flood(begins, seed))))
    except Violation as violation:
        click.echo(str(violation))
        sys.exit(1)


if __name__ == "__main__":
    main()
