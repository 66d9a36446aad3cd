"""HK99-STP figure 8: the worked exchange of STP/1 appendix A, by two endpoints over a link.

The endpoints are the reference's. Replaced is only what the figure sets by drawing it: when the
user writes, and that a POLL follows every fifth SD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest

from bentpipe_reference.common.encapsulation import PROTOCOL
from bentpipe_reference.common.link.profile import Direction
from bentpipe_reference.common.link.virtual import VirtualLink
from bentpipe_reference.common.stream import pattern
from bentpipe_reference.stp.codec import decode
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.connection import Connection
from bentpipe_reference.stp.events import Events
from bentpipe_reference.stp.outgoing import Outgoing
from bentpipe_reference.stp.packets import Packet, Poll, Sd, Stat, Ustat
from bentpipe_reference.stp.parts import Parts
from bentpipe_reference.stp.polling import Polling
from bentpipe_reference.stp.sender import SentSd
from bentpipe_reference.stp.transfer import Station, StpPath
from bentpipe_spec.document import specification

from bentpipe_experiments.ladder import Ladder, Rung
from bentpipe_experiments.links import link
from bentpipe_experiments.model import Cells, Experiment, Judgment, Measurement, Series

GAP_S = 0.05
DELAY_S = 0.03
"""More than half a gap, so that SD 9 and a POLL leave before the USTAT for SD 7 arrives."""

SDS = 11
OCTETS = 100
LOST = 7
POLL_EVERY = 5
_TIMER_S = 6 * GAP_S
START_S = 1.0
"""When the first SD leaves; the connection is open by then."""

_LIMIT_S = 30.0
_LOST_SD = f"SD {LOST}"
_NEXT_STAT = f"STAT N(R)={LOST} N(PS)=3"
_LINK = link("hk99-stp-fig8", "HK99-STP figure 8", 2000 * DELAY_S)

_SETTINGS = {
    "stream": "eleven SDs of 100 octets, one every 50 ms, the first numbered 0: the figure's",
    "link": (
        "30 ms each way, no rate: more than half of the time between two SDs, so that the second "
        "POLL leaves before the USTAT arrives, and the retransmission before the second STAT, as "
        "drawn"
    ),
    "polling": (
        "after every fifth SD (the threshold on new packets of section VII.A) and after the last "
        "one, and by a timer of 0.3 s, which never expires: a third of the round trip would poll "
        "between all SDs"
    ),
    "loss": "the first transmissions of SD 7, as many as the row says",
}


class _EveryFifth(Outgoing):
    """Polls by count, not because there is no data for the moment."""

    _polled = 0

    def take_poll(self, now: float) -> tuple[int, int, int]:
        self._polled = self.sender.vt_s
        return super().take_poll(now)

    def asks_with(self, entry: SentSd, now: float) -> bool:  # noqa: ARG002
        return self.sender.vt_s - self._polled >= POLL_EVERY or bool(entry.fin)

    def goes_on(self) -> bool:
        return True


class _SlowTimer(Polling):
    def poll_interval(self) -> float:
        return _TIMER_S


class _Link(VirtualLink[tuple[Station, bytes]]):
    """A link that writes down the packets of the data transfer, and loses SD 7 at first."""

    def __init__(self, path: StpPath, rungs: list[Rung], losses: int, *, forward: bool) -> None:
        super().__init__(path.simulation, Direction(delay_s=DELAY_S), _arrive)
        self._rungs = rungs
        self._forward = forward
        self._losses = losses

    def send(self, item: tuple[Station, bytes], size: int) -> None:
        """Offer one packet to the link now."""
        what = _name(decode(item[1]), forward=self._forward)
        lost = what == _LOST_SD and self._losses > 0
        if lost:
            self._losses -= 1
            self.drop_next(1)
        if what:
            now = self._simulation.now - START_S
            arrival = None if lost else now + DELAY_S
            self._rungs.append(Rung(now, arrival, self._forward, what))
        super().send(item, size)


def _arrive(item: tuple[Station, bytes]) -> None:
    station, octets = item
    station.receive(octets)


def _name(packet: Packet, *, forward: bool) -> str:
    """Kind and numbers, as appendix A writes them; empty for what it does not show."""
    if forward and isinstance(packet, Sd):
        return f"SD {packet.n_s}"
    if forward and isinstance(packet, Poll):
        return f"POLL N(S)={packet.n_s} N(PS)={packet.n_ps}"
    if not forward and isinstance(packet, Ustat):
        return f"USTAT N(R)={packet.n_r}, {packet.elements[0]}..{packet.elements[1]}"
    if not forward and isinstance(packet, Stat):
        listed = ", ".join(map(str, packet.elements))
        listed = f"list {listed}" if listed else "empty list"
        return f"STAT N(R)={packet.n_r} N(PS)={packet.n_ps}, {listed}"
    return ""


def exchange(losses: int, seed: int = 1) -> tuple[Rung, ...]:
    """Run the example with SD 7 lost so many times; the packets in the order in which they left.

    Left is the endpoint that was called: it sends the stream. Opening and release, and the empty
    stream the other way, are left out, as in the figure.

    Raises:
        RuntimeError: the stream did not arrive as it was written, or was not acknowledged.
    """
    sending: list[Connection] = []
    read = bytearray()
    ended: list[float] = []

    def receive(connection: Connection, _: Events, __: float) -> None:
        read.extend(connection.read())
        if connection.peer_has_closed:
            connection.close()

    def send(connection: Connection, events: Events, now: float) -> None:
        sending[:] = [connection]
        if events & Events.ENDED:
            ended.append(now)

    config = StpConfig(protocol=PROTOCOL, piggyback=False, iss=0, max_sd=512)
    parts = Parts(outgoing=_EveryFifth, polling=_SlowTimer)
    path = StpPath(_LINK, config, receive, send, parts=parts, seed=seed)
    rungs: list[Rung] = []
    path.far.link = _Link(path, rungs, losses, forward=True)
    path.near.link = _Link(path, rungs, 0, forward=False)

    def write(number: int) -> None:
        (connection,) = sending
        connection.write(pattern(number * OCTETS, OCTETS))
        if number == SDS - 1:
            connection.close()
        path.far.settle()

    for number in range(SDS):
        path.simulation.call_at(START_S + number * GAP_S, partial(write, number))
    path.connect()
    path.near.settle()
    path.simulation.run_until(_LIMIT_S)
    if bytes(read) != pattern(0, SDS * OCTETS) or not ended:
        raise RuntimeError(f"with SD {LOST} lost {losses} times the stream did not arrive whole.")
    return tuple(rungs)


def transmissions(rungs: Iterable[Rung]) -> int:
    """How often SD 7 was sent."""
    return sum(rung.what == _LOST_SD for rung in rungs)


def appendix_a() -> list[str]:
    """The packets of the specification's worked exchange, in its order."""
    text = specification("stp")
    lines = iter(text[text.index("The example of HK99-STP figure 8") :].splitlines())
    found: list[str] = []
    for line in lines:
        match = re.fullmatch(r" {3}(.*?) *(?:->|<-)(.*)", line)
        if match:
            found += _told(*match.groups())
        elif found and not line.startswith(" "):
            break
    return found


def _told(before: str, after: str) -> list[str]:
    """The packets of one line: those from the left stand before the arrow."""
    if not before:
        return [after.strip()]
    numbers = [int(number) for number in re.findall(r"SD (\d+)", before)]
    if not numbers:
        return [before]
    several = range(numbers[0], numbers[-1] + 1) if "..." in before else numbers
    return [f"SD {number}" for number in several]


def measure(_: str, losses: float, seed: int) -> Measurement:
    """How often SD 7 is sent when it is lost ``losses`` times, and how many packets in all."""
    rungs = exchange(int(losses), seed)
    return Measurement(transmissions(rungs), {"packets": len(rungs)})


def judge(cells: Cells, seed: int) -> list[Judgment]:
    """The published exchange, its second report, and what follows when the repair is lost."""
    once, twice = exchange(1, seed), exchange(2, seed)
    return [
        compared([rung.what for rung in once], appendix_a()),
        suppressed(once),
        repaired_again(twice),
        _economical(cells),
    ]


def compared(found: list[str], told: list[str]) -> Judgment:
    """Whether the packets ``found`` are those ``told``, one by one."""
    claim = (
        "two endpoints exchange the packets of figure 8 in the order that STP/1 appendix A gives "
        "in words"
    )
    pairs = list(zip_longest(found, told, fillvalue="nothing"))
    other = [f"{number}: {a} instead of {b}" for number, (a, b) in enumerate(pairs, 1) if a != b]
    same = f"all {len(told)} packets are the same"
    holds = bool(told) and not other
    return Judgment("exchange", claim, holds, "; ".join(other[:3]) or same)


def suppressed(rungs: Sequence[Rung]) -> Judgment:
    """SD 7 is reported twice and retransmitted once (section VII.A)."""
    claim = (
        "SD 7 is retransmitted once; the STAT that reports it again, from a POLL older than the "
        "retransmission, is passed over (section VII.A)"
    )
    reports = [rung.what for rung in rungs if _reports(rung)]
    count = transmissions(rungs)
    sentence = f"SD 7 is sent {count} times; reported missing by {' and '.join(reports) or 'none'}"
    return Judgment("suppressed", claim, count == 2 and len(reports) == 2, sentence)


def repaired_again(rungs: Sequence[Rung]) -> Judgment:
    """The next STAT brings a second retransmission (section VII.A)."""
    claim = "when the retransmission is lost, the next STAT stimulates a second one (section VII.A)"
    last = [rung for rung in rungs if rung.what == _LOST_SD][-1]
    stats = [rung for rung in rungs if _reports(rung) and rung.arrived is not None]
    cause = [rung for rung in stats if rung.arrived == last.sent]
    count = transmissions(rungs)
    told = cause[0].what if cause else "no report"
    sentence = f"SD 7 is sent {count} times, the last time on {told}"
    again = cause[0].what.startswith(_NEXT_STAT) if cause else False
    return Judgment("lost-again", claim, count == 3 and again, sentence)


def _economical(cells: Cells) -> Judgment:
    claim = "every loss of SD 7 costs one transmission, however often it is reported missing"
    sent = {int(losses): cell.values for (_, losses), cell in sorted(cells.items())}
    holds = all(set(values) == {losses + 1} for losses, values in sent.items()) if sent else None
    sentence = ", ".join(
        f"lost {losses} times it is sent {max(values):g} times" for losses, values in sent.items()
    )
    return Judgment("economical", claim, holds, sentence or "nothing was measured")


def _reports(rung: Rung) -> bool:
    """Whether a report says that SD 7 is missing."""
    return not rung.forward and re.search(rf"N\(R\)={LOST}\b", rung.what) is not None


def ladders() -> list[Ladder]:
    """The exchange, and the one in which the retransmission is lost as well."""
    told = ("SD 7 lost, as in the figure", "its retransmission lost as well")
    return [
        Ladder(title, "transmitter", "receiver", exchange(losses))
        for losses, title in enumerate(told, start=1)
    ]


EXPERIMENTS = (
    Experiment(
        id="hk99-stp-fig8",
        title="An example of STP's operation",
        source="HK99-STP (IEEE JSAC 17(2), 1999) figure 8, section VII.A; STP/1 appendix A",
        series=(Series("stp", "STP"),),
        x_label="times SD 7 is lost",
        y_label="transmissions of SD 7",
        points=(1.0, 2.0, 3.0),
        runs=3,
        settings=_SETTINGS,
        measure=measure,
        judge=judge,
        ladder=ladders,
    ),
)
