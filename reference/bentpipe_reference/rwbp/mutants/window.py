"""Mutants of windows (RWBP-WN, section 6)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import mutant, mutant_setting
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment


@mutant("rwbp-reads-octets", breaks="RWBP-WN-001")
class ReadsOctets(RwbpConnection):
    """The peer's window fields are taken for octets."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if self.agreed:
            ack.window = segment.window
        return ack


@mutant("rwbp-writes-octets", breaks="RWBP-WN-001")
class WritesOctets(RwbpReceiver):
    """The own window fields count octets."""

    def window_field(self) -> int:
        """See :class:`RwbpReceiver`."""
        return min(0xFFFF, super().window_field() * self.unit)


@mutant("rwbp-own-unit", breaks="RWBP-WN-001")
class OwnUnit(RwbpConnection):
    """The peer's window fields are taken for units of the own size."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if self.agreed:
            ack.window = segment.window * self.config.mss
        return ack


@mutant("rwbp-edge-retreats", breaks="RWBP-WN-002")
class EdgeRetreats(RwbpSender):
    """The edge is what was named last."""

    def update_window(self, ack: Ack) -> bool:
        """See :class:`RwbpSender`."""
        self.edge = ack.number + ack.window
        return True


@mutant("rwbp-window-is-signed", breaks="RWBP-WN-002")
class SignedWindow(RwbpConnection):
    """The window in octets is kept in 32 bits, one of which is a sign."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        peer = self.handshake.peer
        if peer is not None and segment.window * peer.unit >> 31 & 1:
            ack.window = 0
        return ack


@mutant("rwbp-advertises-more", breaks="RWBP-WN-003")
class AdvertisesMore(RwbpReceiver):
    """The window is rounded up to whole units."""

    def units(self) -> int:
        """See :class:`RwbpReceiver`."""
        return super().units() + 1


@mutant("rwbp-advertises-half", breaks="RWBP-WN-003")
class AdvertisesHalf(RwbpReceiver):
    """Half of the buffer is advertised."""

    def units(self) -> int:
        """See :class:`RwbpReceiver`."""
        return super().units() // 2


@mutant("rwbp-takes-what-was-named-last", breaks="RWBP-WN-004")
class TakesWhatWasNamedLast(RwbpReceiver):
    """What lies above the edge that was named last is refused."""

    def window_field(self) -> int:
        """See :class:`RwbpReceiver`."""
        field = super().window_field()
        self.edge = self.rcv_nxt + field * self.unit
        return field


@mutant("rwbp-takes-beyond-the-edge", breaks="RWBP-WN-004")
class TakesBeyondTheEdge(RwbpReceiver):
    """A segment that begins below the edge is taken as a whole."""

    def _hold(self, seq: int, payload: bytes) -> None:
        edge = self.edge
        if seq < edge:
            self.edge = max(edge, seq + len(payload))
        super()._hold(seq, payload)
        self.edge = edge


@mutant("rwbp-one-beyond-the-edge", breaks="RWBP-WN-005")
class OneBeyondTheEdge(RwbpSender):
    """A segment may be sent if it begins below the edge."""

    def next_may_be_sent(self) -> bool:
        """See :class:`RwbpSender`."""
        return self.next_end() is not None and self.snd_nxt < self.edge


@mutant("rwbp-cuts-to-fit", breaks="RWBP-WN-006")
class CutsToFit(RwbpSender):
    """A segment is cut where the window ends."""

    def segment_octets(self) -> int:
        """See :class:`RwbpSender`."""
        room = self.edge - self.snd_nxt
        return min(self.smss, room) if room > 0 else self.smss


@mutant("rwbp-no-updates", breaks="RWBP-WN-007")
class NoUpdates(RwbpReceiver):
    """No acknowledgment is sent for the window alone."""

    def window_update_due(self) -> bool:
        """See :class:`RwbpReceiver`."""
        return False


@mutant("rwbp-no-probes", breaks="RWBP-WN-008")
class NoProbes(RwbpSender):
    """A closed window is waited for."""

    def window_is_closed(self) -> bool:
        """See :class:`RwbpSender`."""
        return False


@mutant("rwbp-steady-probes", breaks="RWBP-WN-008")
class SteadyProbes(RwbpSender):
    """The probe interval does not grow."""

    def on_probe_due(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        self.probes = -1
        super().on_probe_due(now)


@mutant("rwbp-probes-at-the-next-number", breaks="RWBP-WN-009")
class ProbesAtTheNextNumber(RwbpSender):
    """A probe stands at SND.NXT, which no peer answers."""

    def on_probe_due(self, now: float) -> None:
        """See :class:`RwbpSender`."""
        put = self.put
        self.put = lambda seq, *rest: put(seq + 1, *rest)
        super().on_probe_due(now)
        self.put = put


mutant_setting(
    "rwbp-small-first-window",
    "The buffer holds two units less than is said, and so does the first window",
    breaks="RWBP-WN-011",
    receive_buffer=45760,
)


@mutant("rwbp-gives-up-a-closed-window", breaks="RWBP-WN-010")
class GivesUpAClosedWindow(RwbpSender):
    """Probes count as timeouts though they are answered."""

    def on_ack(self, ack: Ack, now: float) -> None:
        """See :class:`RwbpSender`."""
        silent = self.silent_timeouts
        super().on_ack(ack, now)
        if self.window_is_closed():
            self.silent_timeouts = silent


@mutant("rwbp-units-in-the-first-window", breaks="RWBP-WN-011")
class UnitsInTheFirstWindow(RwbpReceiver):
    """The window field of a SYN-ACK counts units."""

    def syn_window(self) -> int:
        """See :class:`RwbpReceiver`."""
        return super().syn_window() // self.unit


@mutant("rwbp-strict-edge", breaks="RWBP-WN-013")
class StrictEdge(RwbpReceiver):
    """A segment without data at the edge is unacceptable, as in TCP."""

    def is_acceptable(self, seq: int, length: int) -> bool:
        """See :class:`RwbpReceiver`."""
        return super().is_acceptable(seq, length) and (seq < self.edge or seq == self.rcv_nxt)
