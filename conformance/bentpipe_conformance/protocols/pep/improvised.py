"""A script that is drawn: connections, users and weather, for the transfers of the self-test.

All it does, ends do: it opens, writes, stops reading, closes and resets, while the path is asked
whether it works. Nothing here is odd, and nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bentpipe_conformance.protocols.pep.cases.steps import asking
from bentpipe_conformance.protocols.pep.end import End, Offer
from bentpipe_conformance.protocols.pep.peer import Answer, Listener, Peer

LONGEST_S = 90.0
"""Seconds in which something new is done; then the ends have as long to finish."""

_ANSWERS: tuple[Answer, ...] = ("accept",) * 8 + ("refuse", "nothing")
_SIZES = (1, 300, 5000, 20_000, 60_000, 150_000)


@dataclass
class _Line:
    """A connection that was called for."""

    client: End
    listener: Listener

    @property
    def ends(self) -> list[End]:
        """Those that are open and have not been told to end."""
        found = [self.client, *self.listener.ends[-1:]]
        return [end for end in found if end.established and not end.is_over and not end.closing]


def improvise(peer: Peer) -> None:
    """Do what the tester's own numbers say."""
    lines: list[_Line] = []
    until = peer.elapsed() + peer.random.uniform(10.0, LONGEST_S)
    actions: tuple[Callable[[Peer, list[_Line]], None], ...] = (
        _call, _call, _write, _write, _write, _write, _stop, _go_on, _close, _close, _reset,
        _weather,
    )  # fmt: skip
    while peer.elapsed() < until:
        peer.random.choice(actions)(peer, lines)
        asking(peer, peer.random.choice((0.0, 0.01, 0.1, 0.5, 2.0, 8.0)))
    for line in lines:
        for end in line.ends:
            end.go_on()
            end.close()
    asking(peer, LONGEST_S, 1.0)


def _call(peer: Peer, lines: list[_Line]) -> None:
    if len(lines) >= 8:
        return
    numbers = peer.random
    early = peer.octets(numbers.choice(_SIZES)) if numbers.random() < 0.2 else b""
    port, listener = peer.listen(
        numbers.choice(_ANSWERS), _offer(peer), welcome=lambda end: end.write(early)
    )
    lines.append(_Line(peer.call(port, _offer(peer)), listener))


def _offer(peer: Peer) -> Offer:
    numbers = peer.random
    return Offer(
        mss=numbers.choice((536, 1200, 1460, 1460)), scale=numbers.choice((None, 0, 3, 7)),
        sack=numbers.random() < 0.8, timestamps=numbers.random() < 0.8,
        buffer=numbers.choice((8000, 65_535, 200_000)),
    )  # fmt: skip


def _any(peer: Peer, lines: list[_Line]) -> End | None:
    """An end that is open."""
    found = [end for line in lines for end in line.ends]
    return peer.random.choice(found) if found else None


def _write(peer: Peer, lines: list[_Line]) -> None:
    if (end := _any(peer, lines)) is not None and len(end.written) < 400_000:
        end.write(peer.octets(peer.random.choice(_SIZES)))


def _stop(peer: Peer, lines: list[_Line]) -> None:
    if (end := _any(peer, lines)) is not None:
        end.stop()


def _go_on(_: Peer, lines: list[_Line]) -> None:
    for line in lines:
        for end in line.ends:
            if not end.reading:
                end.go_on()


def _close(peer: Peer, lines: list[_Line]) -> None:
    if (end := _any(peer, lines)) is not None:
        end.close()


def _reset(peer: Peer, lines: list[_Line]) -> None:
    if peer.random.random() < 0.3 and (end := _any(peer, lines)) is not None:
        end.reset()


def _weather(peer: Peer, _: list[_Line]) -> None:
    """The path loses, doubles, or is slower for a while."""
    numbers = peer.random
    changes, usual = numbers.choice((
        ({"loss_probability": numbers.choice((0.2, 1.0))}, {"loss_probability": 0.0}),
        ({"duplicate_probability": 0.2}, {"duplicate_probability": 0.0}),
        ({"delay_s": peer.rtt / 2 + 0.3}, {"delay_s": peer.rtt / 2}),
    ))  # fmt: skip
    peer.lane.alter_link(**changes)
    # So often that no loss goes unnoticed.
    asking(peer, numbers.choice((0.5, 3.0, 12.0)), 0.05)
    peer.lane.alter_link(**usual)
    asking(peer, 2.0)
