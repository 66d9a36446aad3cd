"""Mutants of windows (RWBP-WN, section 6)."""

from __future__ import annotations

from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.mutants import mutant, mutant_setting
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.rwbp.sender import RwbpSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.wire.segment import Segment


@mutant("rwbp-reads-octets", "_offered_window", breaks="RWBP-WN-001")
def reads_octets(self: RwbpConnection, segment: Segment) -> int:
    """The peer's window fields are taken for octets."""
    return segment.window if self.agreed else RwbpConnection._offered_window(self, segment)


@mutant("rwbp-writes-octets", "window_field", breaks="RWBP-WN-001")
def writes_octets(self: RwbpReceiver) -> int:
    """The own window fields count octets."""
    return min(0xFFFF, RwbpReceiver.window_field(self) * self.unit)


@mutant("rwbp-own-unit", "_offered_window", breaks="RWBP-WN-001")
def own_unit(self: RwbpConnection, segment: Segment) -> int:
    """The peer's window fields are taken for units of the own size."""
    own = segment.window * self.config.mss
    return own if self.agreed else RwbpConnection._offered_window(self, segment)


@mutant("rwbp-edge-retreats", "update_window", breaks="RWBP-WN-002")
def edge_retreats(self: RwbpSender, ack: Ack) -> bool:
    """The edge is what was named last."""
    self.edge = ack.number + ack.window
    return True


@mutant("rwbp-window-is-signed", "_offered_window", breaks="RWBP-WN-002")
def signed_window(self: RwbpConnection, segment: Segment) -> int:
    """The window in octets is kept in 32 bits, one of which is a sign."""
    peer = self.handshake.peer
    negative = peer is not None and segment.window * peer.unit >> 31 & 1
    return 0 if negative else RwbpConnection._offered_window(self, segment)


@mutant("rwbp-advertises-more", "units", breaks="RWBP-WN-003")
def advertises_more(self: RwbpReceiver) -> int:
    """The window is rounded up to whole units."""
    return RwbpReceiver.units(self) + 1


@mutant("rwbp-advertises-half", "units", breaks="RWBP-WN-003")
def advertises_half(self: RwbpReceiver) -> int:
    """Half of the buffer is advertised."""
    return RwbpReceiver.units(self) // 2


@mutant("rwbp-takes-what-was-named-last", "window_field", breaks="RWBP-WN-004")
def takes_what_was_named_last(self: RwbpReceiver) -> int:
    """What lies above the edge that was named last is refused."""
    field = RwbpReceiver.window_field(self)
    self.edge = self.rcv_nxt + field * self.unit
    return field


@mutant("rwbp-takes-beyond-the-edge", "_hold", breaks="RWBP-WN-004")
def takes_beyond_the_edge(self: RwbpReceiver, seq: int, payload: bytes) -> None:
    """A segment that begins below the edge is taken as a whole."""
    edge = self.edge
    if seq < edge:
        self.edge = max(edge, seq + len(payload))
    RwbpReceiver._hold(self, seq, payload)
    self.edge = edge


@mutant("rwbp-one-beyond-the-edge", "next_may_be_sent", breaks="RWBP-WN-005")
def one_beyond_the_edge(self: RwbpSender) -> bool:
    """A segment may be sent if it begins below the edge."""
    return self.next_end() is not None and self.snd_nxt < self.edge


@mutant("rwbp-cuts-to-fit", "segment_octets", breaks="RWBP-WN-006")
def cuts_to_fit(self: RwbpSender) -> int:
    """A segment is cut where the window ends."""
    room = self.edge - self.snd_nxt
    return min(self.smss, room) if room > 0 else self.smss


@mutant("rwbp-no-updates", "window_update_due", breaks="RWBP-WN-007")
def no_updates(self: RwbpReceiver) -> bool:
    """No acknowledgment is sent for the window alone."""
    return False


@mutant("rwbp-no-probes", "window_is_closed", breaks="RWBP-WN-008")
def no_probes(self: RwbpSender) -> bool:
    """A closed window is waited for."""
    return False


@mutant("rwbp-steady-probes", "on_probe_due", breaks="RWBP-WN-008")
def steady_probes(self: RwbpSender, now: float) -> None:
    """The probe interval does not grow."""
    self.probes = -1
    RwbpSender.on_probe_due(self, now)


@mutant("rwbp-probes-at-the-next-number", "on_probe_due", breaks="RWBP-WN-009")
def probes_at_the_next_number(self: RwbpSender, now: float) -> None:
    """A probe stands at SND.NXT, which no peer answers."""
    put = self.put
    self.put = lambda seq, *rest: put(seq + 1, *rest)
    RwbpSender.on_probe_due(self, now)
    self.put = put


mutant_setting(
    "rwbp-small-first-window",
    "The buffer holds two units less than is said, and so does the first window",
    breaks="RWBP-WN-011",
    receive_buffer=45760,
)


@mutant("rwbp-gives-up-a-closed-window", "on_ack", breaks="RWBP-WN-010")
def gives_up_a_closed_window(self: RwbpSender, ack: Ack, now: float) -> None:
    """Probes count as timeouts though they are answered."""
    silent = self.silent_timeouts
    RwbpSender.on_ack(self, ack, now)
    if self.window_is_closed():
        self.silent_timeouts = silent


@mutant("rwbp-units-in-the-first-window", "syn_window", breaks="RWBP-WN-011")
def units_in_the_first_window(self: RwbpReceiver) -> int:
    """The window field of a SYN-ACK counts units."""
    return RwbpReceiver.syn_window(self) // self.unit


@mutant("rwbp-strict-edge", "is_acceptable", breaks="RWBP-WN-013")
def strict_edge(self: RwbpReceiver, seq: int, length: int) -> bool:
    """A segment without data at the edge is unacceptable, as in TCP."""
    return RwbpReceiver.is_acceptable(self, seq, length) and (
        seq < self.edge or seq == self.rcv_nxt
    )
