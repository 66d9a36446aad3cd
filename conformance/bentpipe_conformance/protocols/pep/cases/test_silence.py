"""Ends that fall silent for ever, or for a while, in each state (PEP-RE, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from bentpipe_conformance.engine.case import case
from bentpipe_conformance.engine.lane import CLIENT, OTHER_SIDE, SERVER
from bentpipe_conformance.engine.scripts import Row, each
from bentpipe_conformance.protocols.pep.cases.states import BOTH, STATES, bring
from bentpipe_conformance.protocols.pep.cases.steps import DEAF, quiet, transfer
from bentpipe_conformance.protocols.pep.end import End
from bentpipe_conformance.protocols.pep.peer import Peer, Through

HOUR_S = 3700.0
"""Seconds for which some connections are quiet."""
GIVES_UP_S = 1300.0
"""Seconds in which a box gives up an end that does not answer."""
FEW, HELD = 700, 9000
"""Octets: of one segment, and more than a window that is not read."""


def _vanish(peer: Peer, side: str) -> None:
    """In each state an end vanishes, each on a connection of its own, and the others go on."""
    others = []
    for state in (*STATES, *BOTH):
        it, other, _ = bring(peer, side, state)
        it.vanish()
        other.go_on()
        if not other.closing:
            other.write(peer.octets(FEW))
        others.append(other)
    peer.run(lambda: all(it.was_reset or it.is_over for it in others), GIVES_UP_S)
    quiet(peer)


@case("PEP-RE-008", lasts=GIVES_UP_S)
def test_client_vanishes_in_each_state(peer: Peer) -> None:
    """Clients vanish, each in another state of its connection, and their servers go on."""
    _vanish(peer, CLIENT)


@case("PEP-RE-008", lasts=GIVES_UP_S)
def test_server_vanishes_in_each_state(peer: Peer) -> None:
    """Servers vanish, each in another state of its connection, and their clients go on."""
    _vanish(peer, SERVER)


# -- for a while ---------------------------------------------------------------------------------


def _write(peer: Peer, end: End) -> None:
    end.write(peer.octets(FEW))


def _end(_: Peer, end: End) -> None:
    end.close()


def _reset(_: Peer, end: End) -> None:
    end.reset()


def _read(_: Peer, end: End) -> None:
    end.go_on()


EVENTS: Mapping[str, Callable[[Peer, End], None]] = {
    "writes": _write, "ends": _end, "resets": _reset, "reads again": _read,
}  # fmt: skip
"""What an end does when its connection has been quiet for long."""


SAID: Mapping[str, tuple[str, ...]] = {
    "nobody-has-spoken": (), "only-the-client-has-spoken": (CLIENT,),
    "only-the-server-has-spoken": (SERVER,),
}  # fmt: skip
"""Which ends have sent octets before their connection is quiet."""


@dataclass(frozen=True, slots=True)
class Pause(Row):
    """Connections that are quiet for so long, in each state.

    Attributes:
        seconds: that is, but for what a window that is closed is asked.
        said: which ends have sent octets before that.
        events: what an end does then.
    """

    seconds: float = 0.0
    said: tuple[str, ...] = (CLIENT, SERVER)
    events: tuple[str, ...] = tuple(EVENTS)


def _paused(peer: Peer, row: Pause) -> None:
    found: list[tuple[End, str, Through]] = []
    for ended, (side, event) in product(
        (None, CLIENT, SERVER), product((CLIENT, SERVER), row.events)
    ):
        if ended == side and event in ("writes", "ends"):
            continue
        if event == "reads again" and ended is not None and ended != side:
            continue
        through = peer.connect(DEAF, DEAF)
        ends = {CLIENT: through.client, SERVER: through.server}
        for one in row.said:
            transfer(peer, ends[one], ends[OTHER_SIDE[one]], 1000)
        other = through.server if side == CLIENT else through.client
        if event == "reads again":
            ends[side].stop()
            other.write(peer.octets(HELD))
        if ended is not None:
            ends[ended].close()
        found.append((ends[side], event, through))
    peer.wait(row.seconds)
    for end, event, through in found:
        if not (through.client.was_reset or through.server.was_reset):
            EVENTS[event](peer, end)
        peer.wait(0.05)
    peer.wait(2 * peer.rtt + 2.0)
    left = [
        end for end, event, through in found if event != "resets"
        for end in (through.client, through.server)
    ]  # fmt: skip
    for end in left:
        end.close()
    peer.run(lambda: all(end.is_over for end in left), 60.0)
    quiet(peer)


def _rows() -> Iterator[Pause]:
    for seconds in (50, 310, int(HOUR_S)):
        yield Pause(
            f"quiet-for-{seconds}-seconds-in-each-state",
            f"Connections of which nobody, the client or the server has ended its stream are quiet "
            f"for {seconds} s; then an end writes, ends, resets, or reads what has waited for it.",
            ("PEP-RE-006", "PEP-RE-009", "PEP-RE-017"), seconds=float(seconds),
        )  # fmt: skip
    for name, said in SAID.items():
        yield Pause(
            f"quiet-for-an-hour-when-{name}",
            f"Connections on which {name.replace('-', ' ')} are quiet for {HOUR_S:.0f} s, while "
            f"nobody, the client or the server has ended its stream; then an end writes, ends, or "
            f"resets.",
            ("PEP-RE-006", "PEP-RE-009", "PEP-RE-017"), seconds=HOUR_S, said=said,
            events=("writes", "ends", "resets"),
        )  # fmt: skip


each(globals(), _rows(), _paused)
