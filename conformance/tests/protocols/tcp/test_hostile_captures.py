"""Captures that somebody made to cost much: the same oddity again and again.

What they cost is counted in lines that are executed, for each function, so that a function whose
work grows with the square of the packets shows before it takes long.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import pytest
from bentpipe_conformance.engine.checking import judge_flow
from bentpipe_conformance.engine.observing import Sighting
from bentpipe_conformance.engine.remembered import forget
from bentpipe_conformance.engine.trace import Packet, Trace
from bentpipe_conformance.protocols.tcp.codec import ACK, FIN, RST, SYN, Tcp, build
from bentpipe_conformance.protocols.tcp.observer import OBSERVER
from bentpipe_conformance.protocols.tcp.story import CLAIMS
from bentpipe_conformance.protocols.tcp.suite import SUITE

SIZE = 100
"""Payload of a segment, octets."""

TESTER, IUT = ("198.51.100.1", 4000), ("192.0.2.1", 7)
FIRST = 100
"""Number of the tester's SYN."""
OWN = 500
"""Number of the implementation's SYN."""


@dataclass
class Tape:
    """Packets at the implementation's side, told one after the other."""

    packets: list[Packet[Tcp]] = field(default_factory=list)
    now: float = 0.0
    window: int = 65535
    scale: int = 7

    def tell(self, outgoing: bool, tcp: Tcp, after: float) -> None:
        self.now += after
        number = len(self.packets) + 1
        self.packets.append(Packet(number, self.now, "iut", outgoing, tcp, build(tcp)))

    def arrives(
        self, offset: int, octets: int = 0, *, ack: int = 0, flags: int = ACK, after: float = 0.001,
        window: int | None = None, sack: tuple[tuple[int, int], ...] = (), stamp: int | None = None,
        seq: int | None = None,
    ) -> None:  # fmt: skip
        """A segment of the tester at an offset of its stream; ``ack`` is one of the other's."""
        blocks = tuple((OWN + 1 + left, OWN + 1 + right) for left, right in sack)
        tcp = Tcp(
            *TESTER[:1], *IUT[:1], TESTER[1], IUT[1], FIRST + 1 + offset if seq is None else seq,
            OWN + 1 + ack if flags & ACK else 0, flags, self.window if window is None else window,
            bytes(octets), sack=blocks, tsval=stamp, tsecr=None if stamp is None else 1,
        )  # fmt: skip
        self.tell(False, tcp, after)

    def leaves(
        self, offset: int, octets: int = 0, *, ack: int = 0, flags: int = ACK, after: float = 0.001,
        window: int | None = None, sack: tuple[tuple[int, int], ...] = (), stamp: int | None = None,
    ) -> None:  # fmt: skip
        """A segment of the implementation."""
        blocks = tuple((FIRST + 1 + left, FIRST + 1 + right) for left, right in sack)
        tcp = Tcp(
            *IUT[:1], *TESTER[:1], IUT[1], TESTER[1], OWN + 1 + offset,
            FIRST + 1 + ack if flags & ACK else 0, flags, self.window if window is None else window,
            bytes(octets), sack=blocks, tsval=stamp, tsecr=None if stamp is None else 1,
        )  # fmt: skip
        self.tell(True, tcp, after)

    def opened(self, *, stamps: bool = False) -> Tape:
        """After a handshake that negotiates everything."""
        tsval, tsecr = (1, 1) if stamps else (None, None)
        for outgoing in (False, True):
            src, dst = (IUT, TESTER) if outgoing else (TESTER, IUT)
            self.tell(outgoing, Tcp(
                src[0], dst[0], src[1], dst[1], OWN if outgoing else FIRST,
                FIRST + 1 if outgoing else 0, SYN | ACK if outgoing else SYN, self.window, b"",
                SIZE, self.scale, True, tsval=tsval, tsecr=tsecr if outgoing else 0,
            ), 0.001)  # fmt: skip
        self.arrives(0, stamp=tsval, after=0.1)
        return self

    def trace(self) -> Trace[Tcp]:
        return Trace(tuple(self.packets), 0.0)


def _flight(count: int) -> Tape:
    """So many segments outstanding."""
    tape = Tape().opened()
    for nth in range(count):
        tape.leaves(nth * SIZE, SIZE, after=0.00001)
    tape.now += 0.1
    return tape


def calls_without_end(count: int) -> Tape:
    """SYNs with ever other numbers, each answered by a SYN-ACK of its own."""
    tape = Tape()
    for nth in range(count):
        for outgoing in (False, True):
            src, dst = (IUT, TESTER) if outgoing else (TESTER, IUT)
            tape.tell(outgoing, Tcp(
                src[0], dst[0], src[1], dst[1], OWN + nth if outgoing else FIRST + 7 * nth,
                FIRST + 7 * nth + 1 if outgoing else 0, SYN | ACK if outgoing else SYN, 8000, b"",
            ), 0.001)  # fmt: skip
    return tape


def connections_on_the_same_ports(count: int) -> Tape:
    """Connections that open and close, one after the other."""
    tape = Tape()
    for nth in range(count // 5):
        seq, own = FIRST + 1000 * nth, OWN + 1000 * nth
        for outgoing, flags, number, ack in (
            (False, SYN, seq, 0), (True, SYN | ACK, own, seq + 1), (False, ACK, seq + 1, own + 1),
            (False, FIN | ACK, seq + 1, own + 1), (True, FIN | ACK, own + 1, seq + 2),
            (False, ACK, seq + 2, own + 2),
        ):  # fmt: skip
            src, dst = (IUT, TESTER) if outgoing else (TESTER, IUT)
            tape.tell(
                outgoing, Tcp(src[0], dst[0], src[1], dst[1], number, ack, flags, 8000, b""), 0.001
            )
    return tape


def resets_beside_the_window(count: int) -> Tape:
    """RSTs with a wrong number, to an implementation that says nothing."""
    tape = Tape().opened()
    for _ in range(count):
        tape.arrives(9, flags=RST)
    return tape


def acknowledgments_of_the_unsent(count: int) -> Tape:
    """Acknowledgments beyond what was sent, data being outstanding."""
    tape = _flight(1)
    for _ in range(count):
        tape.arrives(0, ack=99 * SIZE)
    tape.now += 300
    tape.arrives(0, ack=SIZE)
    return tape


def old_acknowledgments(count: int) -> Tape:
    """Acknowledgments below what is acknowledged, one half with impossible blocks."""
    tape = _flight(4)
    tape.arrives(0, ack=2 * SIZE)
    for nth in range(count):
        tape.arrives(0, ack=SIZE, sack=((90 * SIZE, 91 * SIZE),) if nth % 2 else ())
    tape.now += 300
    tape.arrives(0, ack=2 * SIZE)
    return tape


def timeouts_of_one_segment(count: int) -> Tape:
    """A segment that a timer repeats, for ever."""
    tape = _flight(2)
    for _ in range(count):
        tape.leaves(0, SIZE, after=1.0)
    return tape


def recoveries(count: int) -> Tape:
    """A loss and its repair, again and again."""
    tape, una = Tape().opened(), 0
    for _ in range(count // 3):
        for nth in range(5):
            tape.leaves(una + nth * SIZE, SIZE, after=0.0001)
        tape.now += 0.1
        for nth in (2, 3, 4):
            tape.arrives(0, ack=una, sack=((una + SIZE, una + nth * SIZE),))
        tape.leaves(una, SIZE, after=0.0001)
        una += 5 * SIZE
        tape.arrives(0, ack=una, after=0.1)
        tape.arrives(0, ack=una - SIZE)
    return tape


def probes_of_a_closed_window(count: int) -> Tape:
    """Probes, each answered twice, of a window that stays closed."""
    tape = _flight(1)
    tape.arrives(0, ack=SIZE, window=0)
    for _ in range(count):
        tape.leaves(SIZE, 1, after=1.0)
        tape.arrives(0, ack=SIZE, window=0, after=0.1)
        tape.arrives(0, ack=SIZE, window=0, after=0.1)
    return tape


def data_beyond_the_window(count: int) -> Tape:
    """Ever other data beyond the window, which is answered once in a while."""
    tape = Tape(scale=0).opened()
    for nth in range(count):
        tape.arrives(200_000 + 2 * nth * SIZE, SIZE)
        if nth % 2:
            tape.leaves(0)
    return tape


def copies_then_answers(count: int) -> Tape:
    """Copies of what was acknowledged, and then as many acknowledgments, each of more."""
    tape = Tape().opened()
    tape.arrives(0, SIZE)
    tape.leaves(0, ack=SIZE)
    for _ in range(count):
        tape.arrives(0, SIZE, after=0.00001)
    for nth in range(count):
        tape.arrives(SIZE + nth, 1, after=0.00001)
        tape.leaves(0, ack=SIZE + nth + 1, after=0.00001)
    return tape


def bare_arrivals_at_the_edge(count: int) -> Tape:
    """Segments without data at the right edge of the window, at once and never answered."""
    tape = Tape(window=1000, scale=0).opened()
    for _ in range(count):
        tape.arrives(1000, after=1e-7)
    return tape


def silence_of_a_receiver(count: int) -> Tape:
    """Data in sequence that is never acknowledged."""
    tape = Tape().opened()
    for nth in range(count):
        tape.arrives(nth * SIZE, SIZE)
    return tape


def data_that_is_never_acknowledged(count: int) -> Tape:
    """Data in sequence, each segment answered with what was acknowledged before the first."""
    tape = Tape().opened()
    for nth in range(count):
        tape.arrives(nth * SIZE, SIZE)
        tape.leaves(0)
    tape.arrives(0, after=1.0)
    return tape


def resets_at_the_edge(count: int) -> Tape:
    """Data that is answered, each time with a RST beyond the window; then data of the other end."""
    tape = Tape(scale=0).opened()
    for nth in range(count):
        tape.arrives(nth * SIZE, SIZE)
        tape.leaves(0, ack=(nth + 1) * SIZE)
        tape.arrives((nth + 1) * SIZE + 70_000, flags=RST)
    for nth in range(count):
        tape.leaves(nth * SIZE, SIZE, ack=count * SIZE, after=0.00001)
    return tape


def idle_hours(count: int) -> Tape:
    """Hours of silence, each ended by an update of the window."""
    tape = Tape().opened()
    tape.leaves(0, window=39_999)
    for nth in range(count):
        tape.leaves(0, window=40_000 + nth, after=7200.0)
        tape.arrives(0, after=7200.0)
    return tape


def fast_retransmissions(count: int) -> Tape:
    """A flight of which every segment is repeated before anything is acknowledged."""
    tape = _flight(count)
    for nth in range(count):
        tape.leaves(nth * SIZE, SIZE)
    for nth in range(count):
        tape.arrives(0, ack=(nth + 1) * SIZE)
    return tape


CONVERSATIONS: tuple[Callable[[int], Tape], ...] = (
    calls_without_end, connections_on_the_same_ports, resets_beside_the_window,
    acknowledgments_of_the_unsent, old_acknowledgments, timeouts_of_one_segment, recoveries,
    probes_of_a_closed_window, data_beyond_the_window, copies_then_answers,
    bare_arrivals_at_the_edge, silence_of_a_receiver, fast_retransmissions,
    data_that_is_never_acknowledged, resets_at_the_edge, idle_hours,
)  # fmt: skip
FEW, MANY = 15, 60
"""How often the oddity comes."""

GROWTH = 6.0
"""Four times the packets may cost a function so many times as much, at most."""

EACH = 10
"""Lines for each oddity up to which growth does not show anything."""


@contextmanager
def _counting() -> Iterator[Counter[CodeType]]:
    """How many lines of each function of ours are executed meanwhile."""
    counts: Counter[CodeType] = Counter()

    def in_function(frame: FrameType, event: str, _arg: Any) -> Any:
        counts[frame.f_code] += event == "line"
        return in_function

    def called(frame: FrameType, _event: str, _arg: Any) -> Any:
        if "bentpipe_" not in frame.f_code.co_filename:
            return None
        counts[frame.f_code] += 1
        return in_function

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield counts
    finally:
        sys.settrace(before)


def _cost(tape: Tape) -> Counter[CodeType]:
    """What appraising and judging a capture costs each function."""
    sightings = [Sighting(p.number, p.time, p.content, p.data) for p in tape.packets]
    claims = {**CLAIMS, "timestamps": True, "window_scale": True, "keep_alive": False}
    with _counting() as counts:
        for part in OBSERVER.separate(sightings):
            OBSERVER.appraise(part)
        for flow in SUITE.interpreter.read_flows(tape.trace()):
            judge_flow(flow, 0.0, "rfc", claims, suite=SUITE)
            forget()
    return counts


@pytest.fixture(scope="module", autouse=True)
def everything_loaded() -> None:
    """What is loaded or compiled once does not count."""
    _cost(_flight(1))


@pytest.mark.long
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_four_times_the_packets_cost_no_function_much_more_than_four_times_the_work(
    conversation: Callable[[int], Tape],
) -> None:
    few, many = _cost(conversation(FEW)), _cost(conversation(MANY))
    grown = {
        f"{code.co_filename}:{code.co_firstlineno} {code.co_name}": (few[code], count)
        for code, count in many.items()
        if count > EACH * MANY and count > GROWTH * few[code]
    }
    assert not grown
