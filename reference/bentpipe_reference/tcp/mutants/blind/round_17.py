"""Blind round 17: thirty errors that an implementer of TCP might make and ship."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.ipv4 import parse_ipv4
from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import (
    SACK_BLOCK_OCTETS,
    SACK_OVERHEAD_OCTETS,
    TIMESTAMP_OCTETS,
    Handshake,
)
from bentpipe_reference.tcp.output import TIMESTAMP_HZ
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery.sack_newreno_rfc import SackNewRenoRfcSender
from bentpipe_reference.tcp.sending.variables import Ack
from bentpipe_reference.tcp.states import Happening, State
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, parse_packet
from bentpipe_reference.tcp.wire.options import MAXIMUM_OCTETS
from bentpipe_reference.tcp.wire.refusal import reset_for
from bentpipe_reference.tcp.wire.sequence import MASK, unwrap

_ACK, _SYN, _RST = int(Flags.ACK), int(Flags.SYN), int(Flags.RST)
_ECN = int(Flags.ECE | Flags.CWR)
_PROTOCOL = 6
_CHECKSUM_AT = 16

# -- handshake --------------------------------------------------------------------------------


class FirstWindowUnscaled(Connection):
    """Takes the window of the ACK that completes the handshake for that of a SYN."""

    def _established(self, segment: Segment, now: float) -> None:
        shift, self.handshake.send_shift = self.handshake.send_shift, 0
        super()._established(segment, now)
        self.handshake.send_shift = shift


class SecondSynAckScaled(Connection):
    """Scales the window of a SYN-ACK that it sends again."""

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        if self.receiver is not None and self.handshake.attempts > 1:
            self._outbox[-1].window >>= self.handshake.receive_shift


class RepeatedSynStartsAnew(Handshake):
    """Forgets the back-off of the SYN-ACK when the peer repeats its SYN."""

    def sent(self, now: float, *, repeated: bool) -> None:
        """See :class:`Handshake`."""
        if repeated:
            self._estimator.rto = self._config.initial_rto
        super().sent(now, repeated=repeated)


class EcnReflected(Connection):
    """Builds the SYN-ACK from the flags of the SYN, those of ECN included."""

    _reflected = 0

    def accept(self, syn: Segment, now: float) -> None:
        """See :class:`Connection`."""
        self._reflected = syn.flags & _ECN
        super().accept(syn, now)

    def _send_syn(self, now: float, *, repeated: bool = False) -> None:
        super()._send_syn(now, repeated=repeated)
        self._outbox[-1].flags |= self._reflected


# -- resets and blind attacks -----------------------------------------------------------------


class HalfOpenTakesAnyReset(Connection):
    """Takes any RST in the window while the handshake is not complete."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        inside = receiver.is_acceptable(seq, segment.sequence_length)
        if self.state is State.SYN_RECEIVED and segment.flags & _RST and inside:
            self._end("the peer reset the handshake", now)
            return
        super()._receive_synchronized(segment, receiver, now)


class SynResetsOnceClosed(Connection):
    """Challenges a SYN in the window, but resets the connection once its own side has closed."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        seq = unwrap(segment.seq, receiver.rcv_nxt)
        inside = receiver.is_acceptable(seq, segment.sequence_length)
        closed = self.state in (State.FIN_WAIT_1, State.FIN_WAIT_2)
        if closed and inside and segment.flags & (_SYN | _RST) == _SYN:
            self.abort("a SYN in the window", now)
            return
        super()._receive_synchronized(segment, receiver, now)


def refuse_one_number(segment: Segment) -> Segment | None:
    """Takes whatever comes without ACK for a bare SYN, which occupies one number."""
    reset = reset_for(segment)
    if reset is not None and not segment.flags & _ACK:
        reset.ack = segment.seq + 1 & MASK
    return reset


def parse_zero_unchecked(packet: bytes) -> Segment:
    """Takes a checksum of zero for none, as UDP does."""
    _, source, destination, body = parse_ipv4(packet, WireError)
    if len(body) > _CHECKSUM_AT + 1 and not any(body[_CHECKSUM_AT : _CHECKSUM_AT + 2]):
        pseudo = source + destination + _PROTOCOL + len(body)
        field = checksum_field(ones_complement_residue(body) + pseudo).to_bytes(2, "big")
        at = (packet[0] & 15) * 4 + _CHECKSUM_AT
        packet = packet[:at] + field + packet[at + 2 :]
    return parse_packet(packet)


class TimeoutForgetsSent(Connection):
    """Holds an ACK above SND.NXT for one of data never sent, though a timeout has set that back."""

    def _refuses_ack(self, number: int, now: float) -> bool:
        sender = self.sender
        pulled_back = sender.snd_nxt < sender.snd_max and not sender.probes
        if pulled_back and number > sender.snd_nxt and self.receiver is not None:
            self.receiver.ack_now = True
            return True
        return super()._refuses_ack(number, now)


class ClosingEndsAtOnce(Connection):
    """Treats the ACK of its FIN in CLOSING as in LAST-ACK."""

    def _happen(self, happening: Happening, now: float) -> None:
        if self.state is State.CLOSING and happening is Happening.FIN_ACKNOWLEDGED:
            self.state = State.LAST_ACK
        super()._happen(happening, now)


# -- options and timestamps -------------------------------------------------------------------


class BlocksBeyondMss(Handshake):
    """Gives SACK blocks the room in the header, whatever data the segment carries."""

    def sack_room(self, payload: int) -> int:  # noqa: ARG002
        """See :class:`Handshake`."""
        options = MAXIMUM_OCTETS - TIMESTAMP_OCTETS * self.timestamps_ok
        return (options - SACK_OVERHEAD_OCTETS) // SACK_BLOCK_OCTETS


class PiggybackedAckForgotten(Connection):
    """Records Last.ACK.sent for pure acknowledgments only."""

    def _put(self, seq: int, flags: int, now: float, payload: bytes = b"") -> None:
        receiver = self.receiver
        before = None if receiver is None else receiver._last_ack_sent
        super()._put(seq, flags, now, payload)
        if receiver is not None and before is not None and payload:
            receiver._last_ack_sent = before


class PlainTimestampOrder(Receiver):
    """Compares timestamps as plain numbers when it chooses the one to echo."""

    def note_timestamp(self, tsval: int, seq: int, now: float) -> None:
        """See :class:`Receiver`."""
        if self.ts_recent is not None and tsval >= self.ts_recent:
            super().note_timestamp(tsval, seq, now)


class PawsForDataOnly(Connection):
    """Does not apply PAWS to a segment that occupies no sequence numbers."""

    def _receive_synchronized(self, segment: Segment, receiver: Receiver, now: float) -> None:
        recent, stamps = receiver.ts_recent, segment.timestamps
        bare = not segment.sequence_length and not segment.flags & _RST
        if bare and stamps and recent is not None and receiver.is_stale_timestamp(stamps[0], now):
            segment = replace(segment, timestamps=(recent, stamps[1]))
        super()._receive_synchronized(segment, receiver, now)


class WideEchoAge(Connection):
    """Subtracts the echoed timestamp from its clock in 64 bits."""

    def _ack_part(self, segment: Segment, number: int, seq: int, now: float) -> Ack:
        ack = super()._ack_part(segment, number, seq, now)
        if ack.ts_ecr_age is not None and segment.timestamps is not None:
            ticks = self._timestamp(now) - segment.timestamps[1]
            ack.ts_ecr_age = (ticks & (1 << 64) - 1) / TIMESTAMP_HZ
        return ack


# -- receiver ---------------------------------------------------------------------------------


class DelayStartsAnew(Receiver):
    """Starts the delayed acknowledgment's timer anew with each segment."""

    def _take(self, seq: int, payload: bytes, now: float) -> None:
        super()._take(seq, payload, now)
        if self.ack_deadline is not None:
            self.ack_deadline = now + self.delayed_ack_interval()


class BareFinForgotten(Receiver):
    """Holds nothing of a segment above a gap that has no data, not even its FIN."""

    def on_text(self, seq: int, payload: bytes, fin: bool, now: float) -> None:
        """See :class:`Receiver`."""
        if fin and not payload and seq > self.buffer.rcv_nxt:
            fin, self.ack_now = False, True
        super().on_text(seq, payload, fin, now)


class DuplicateReportedOn(Receiver):
    """Reports a duplicate in every acknowledgment as long as data is missing."""

    def note_ack_sent(self, *, complete: bool = True) -> None:
        """See :class:`Receiver`."""
        kept = self._duplicate
        super().note_ack_sent(complete=complete)
        if self.buffer.blocks:
            self._duplicate = kept


class CrumbsReopen(Receiver):
    """Opens a closed window as soon as there is room for anything."""

    def update_edge(self) -> None:
        """See :class:`Receiver`."""
        super().update_edge()
        if self.edge <= self.rcv_nxt:
            self.edge += max(0, self._gain())

    def window_update_due(self) -> bool:
        """See :class:`Receiver`."""
        return super().window_update_due() or (self.edge <= self.rcv_nxt and self._gain() > 0)


# -- windows and probes -----------------------------------------------------------------------


class ClosedKeepsWindowsOut(Connection):
    """Does not look at the peer's window while its own is closed."""

    def _offered_window(self, segment: Segment) -> int:
        receiver, sender = self.receiver, self.sender
        if receiver is not None and receiver.edge <= receiver.rcv_nxt:
            return max(0, sender.right_edge - unwrap(segment.ack, sender.snd_una))
        return super()._offered_window(segment)


class ProbesStayRare(SackNewRenoRfcSender):
    """Goes on with the back-off of the probes when the window closes again."""

    _probes_ever = 0

    def on_probe_due(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        self._probes_ever += not self.snd_wnd
        super().on_probe_due(now)

    def zero_window_probe_interval(self, probes: int) -> float:
        """See :class:`SackNewRenoRfcSender`."""
        return super().zero_window_probe_interval(max(probes, self._probes_ever))


class LatestWindowForLargest(SackNewRenoRfcSender):
    """Compares a small segment with half the latest window, not with half the largest."""

    def update_window(self, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        moved = super().update_window(ack)
        self.max_snd_wnd = self.snd_wnd
        return moved


# -- congestion control -----------------------------------------------------------------------


class IdleSinceHeard(Connection):
    """Takes its sender for idle only when it has not heard of the peer either."""

    def receive(self, segment: Segment, now: float) -> None:
        """See :class:`Connection`."""
        if self.sender.last_send is not None:
            self.sender.last_send = now
        super().receive(segment, now)


class InitialOctets(SackNewRenoRfcSender):
    """Starts with as many octets as ten usual segments have, whatever the size of its own."""

    def initial_window(self) -> int:
        """See :class:`SackNewRenoRfcSender`."""
        return max(2 * self.smss, self.config.initial_segments * 1460)


class LimitedTransmitInflates(SackNewRenoRfcSender):
    """Adds to cwnd what limited transmit sends."""

    def limited_transmit(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        before = self.limited_transmit_octets
        super().limited_transmit(now)
        self.cwnd += self.limited_transmit_octets - before


# -- recovery ---------------------------------------------------------------------------------


class OldRecoverKept(SackNewRenoRfcSender):
    """Leaves recover where the episode has set it when that ends in a timeout."""

    def on_timeout_in_recovery(self) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        if not self.in_recovery:
            super().on_timeout_in_recovery()


class RescuesTheWrongEnd(SackNewRenoRfcSender):
    """Retransmits the beginning of the last missing range as the rescue, not its end."""

    def rescue_segment(self) -> tuple[int, int] | None:
        """See :class:`SackNewRenoRfcSender`."""
        if super().rescue_segment() is None:
            return None
        left, right = self.scoreboard.gaps(self.snd_una, self.snd_max)[-1]
        return left, min(right, left + self.smss)


class BlockAcrossWrapRefused(SackNewRenoRfcSender):
    """Compares the edges of a SACK block as plain 32-bit numbers."""

    def accept_sack_block(self, left: int, right: int, ack: Ack) -> bool:
        """See :class:`SackNewRenoRfcSender`."""
        return left & MASK < right & MASK and super().accept_sack_block(left, right, ack)


# -- retransmission timer ---------------------------------------------------------------------


class DuplicatesRestartTimer(SackNewRenoRfcSender):
    """Restarts the retransmission timer with each duplicate acknowledgment."""

    def on_duplicate_ack(self, now: float) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        super().on_duplicate_ack(now)
        self.restart_rto(now)


class MeasuresFastRetransmits(SackNewRenoRfcSender):
    """Applies Karn's rule after timeouts only, not to fast retransmissions."""

    def forget_measurement(self) -> None:
        """See :class:`SackNewRenoRfcSender`."""
        if not self.in_recovery:
            super().forget_measurement()


FAULTS = [
    Fault(
        "tcp-b17-first-window-unscaled",
        "the window of the ACK that completes the handshake is not scaled",
        "RFC 7323 section 2.3", lambda setup: setup.with_part(FirstWindowUnscaled), "rfc",
    ),
    Fault(
        "tcp-b17-second-syn-ack-scaled", "the window of a repeated SYN-ACK is scaled",
        "RFC 7323 section 2.2", lambda setup: setup.with_part(SecondSynAckScaled), "rfc",
    ),
    Fault(
        "tcp-b17-repeated-syn-anew", "a repeated SYN undoes the back-off of the SYN-ACK",
        "RFC 6298 section 5.5", lambda setup: setup.with_part(RepeatedSynStartsAnew), "rfc",
    ),
    Fault(
        "tcp-b17-ecn-reflected", "the SYN-ACK reflects the flags ECE and CWR of the SYN",
        "RFC 3168 section 6.1.1; RFC 9293 section 3.1",
        lambda setup: setup.with_part(EcnReflected), "rfc",
    ),
    Fault(
        "tcp-b17-half-open-reset", "in SYN-RECEIVED any RST in the window ends the handshake",
        "RFC 5961 section 3.2; RFC 9293 section 3.10.7.4",
        lambda setup: setup.with_part(HalfOpenTakesAnyReset), "rfc",
    ),
    Fault(
        "tcp-b17-syn-resets-once-closed", "in FIN-WAIT a SYN in the window resets the connection",
        "RFC 5961 section 4.2; RFC 9293 section 3.10.7.4",
        lambda setup: setup.with_part(SynResetsOnceClosed), "rfc",
    ),
    Fault(
        "tcp-b17-refuse-one-number",
        "the RST for no connection acknowledges one number of a segment without ACK",
        "RFC 9293 section 3.10.7.1",
        lambda setup: replace(setup, parts=replace(setup.parts, refuse=refuse_one_number)), "rfc",
    ),
    Fault(
        "tcp-b17-zero-checksum", "a segment whose checksum field is zero is not checked",
        "RFC 9293 section 3.1 (MUST-3)",
        lambda setup: replace(setup, parts=replace(setup.parts, parse=parse_zero_unchecked)), "rfc",
    ),
    Fault(
        "tcp-b17-timeout-forgets-sent",
        "after a timeout an ACK of more than has been sent again is refused",
        "RFC 9293 section 3.10.7.4", lambda setup: setup.with_part(TimeoutForgetsSent), "rfc",
    ),
    Fault(
        "tcp-b17-closing-ends", "CLOSING ends without TIME-WAIT",
        "RFC 9293 section 3.6.1 (MUST-13)",
        lambda setup: setup.with_part(ClosingEndsAtOnce), "rfc",
    ),
    Fault(
        "tcp-b17-blocks-beyond-mss", "SACK blocks beside data are not deducted from the MSS",
        "RFC 9293 section 3.7.1 (MUST-16)",
        lambda setup: setup.with_part(BlocksBeyondMss), "rfc",
    ),
    Fault(
        "tcp-b17-piggybacked-ack-forgotten",
        "an ACK sent with data does not count as the last one when the echo is chosen",
        "RFC 7323 section 4.3", lambda setup: setup.with_part(PiggybackedAckForgotten), "rfc",
    ),
    Fault(
        "tcp-b17-plain-timestamp-order", "the echo stops when the peer's timestamps wrap",
        "RFC 7323 section 4.3; RFC 7323 section 5.2",
        lambda setup: setup.with_part(PlainTimestampOrder), "rfc",
    ),
    Fault(
        "tcp-b17-paws-data-only", "a pure ACK with an old timestamp is processed",
        "RFC 7323 section 5.3", lambda setup: setup.with_part(PawsForDataOnly), "rfc",
    ),
    Fault(
        "tcp-b17-wide-echo-age",
        "a round trip during which the own timestamp clock wraps is measured as ages",
        "RFC 7323 section 4.1; RFC 6298 section 2.3",
        lambda setup: setup.with_part(WideEchoAge), "rfc",
    ),
    Fault(
        "tcp-b17-delay-anew", "each small segment postpones the delayed acknowledgment",
        "RFC 9293 section 3.8.6.3 (MUST-40)",
        lambda setup: setup.with_part(DelayStartsAnew), "rfc",
    ),
    Fault(
        "tcp-b17-bare-fin-forgotten", "a FIN without data above a gap is not held",
        "RFC 9293 section 3.10.7.4 (SHLD-31)",
        lambda setup: setup.with_part(BareFinForgotten), "rfc",
    ),
    Fault(
        "tcp-b17-duplicate-reported-on", "a D-SACK is repeated while there is a gap",
        "RFC 2883 section 4", lambda setup: setup.with_part(DuplicateReportedOn), "rfc",
    ),
    Fault(
        "tcp-b17-crumbs-reopen", "a closed window is opened by any number of octets",
        "RFC 9293 section 3.8.6.2.2 (MUST-39)",
        lambda setup: setup.with_part(CrumbsReopen), "rfc",
    ),
    Fault(
        "tcp-b17-closed-keeps-windows-out",
        "while the own window is closed, the peer's window updates are not taken",
        "RFC 9293 section 3.10.7.4", lambda setup: setup.with_part(ClosedKeepsWindowsOut), "rfc",
    ),
    Fault(
        "tcp-b17-probes-stay-rare", "the first probe of a window that closes again comes late",
        "RFC 9293 section 3.8.6.1 (SHLD-29)",
        lambda setup: setup.with_part(ProbesStayRare), "rfc",
    ),
    Fault(
        "tcp-b17-latest-window",
        "a window that has become small is filled at once with a small segment",
        "RFC 9293 section 3.8.6.2.1 (MUST-38)",
        lambda setup: setup.with_part(LatestWindowForLargest), "rfc",
    ),
    Fault(
        "tcp-b17-idle-since-heard", "what the peer sends after an idle time hides that time",
        "RFC 5681 section 4.1", lambda setup: setup.with_part(IdleSinceHeard), "rfc",
    ),
    Fault(
        "tcp-b17-initial-octets", "the initial window is 14600 octets with small segments too",
        "RFC 6928 section 2", lambda setup: setup.with_part(InitialOctets), "rfc",
    ),
    Fault(
        "tcp-b17-limited-transmit-inflates", "limited transmit enlarges the congestion window",
        "RFC 3042 section 2", lambda setup: setup.with_part(LimitedTransmitInflates), "rfc",
    ),
    Fault(
        "tcp-b17-old-recover", "a timeout in recovery does not set recover",
        "RFC 6582 section 3.2; RFC 6675 section 5.1",
        lambda setup: setup.with_part(OldRecoverKept), "rfc",
    ),
    Fault(
        "tcp-b17-rescue-wrong-end", "the rescue retransmission lacks the highest octet missing",
        "RFC 6675 section 4", lambda setup: setup.with_part(RescuesTheWrongEnd), "rfc",
    ),
    Fault(
        "tcp-b17-block-across-wrap", "a SACK block across the wrap of the numbers is ignored",
        "RFC 2018 section 8; RFC 9293 section 3.4",
        lambda setup: setup.with_part(BlockAcrossWrapRefused), "rfc",
    ),
    Fault(
        "tcp-b17-duplicates-restart", "duplicate ACKs restart the retransmission timer",
        "RFC 6298 section 5.3", lambda setup: setup.with_part(DuplicatesRestartTimer), "rfc",
    ),
    Fault(
        "tcp-b17-measures-fast-retransmits",
        "a fast retransmitted segment's round trip is measured without timestamps",
        "RFC 6298 section 3", lambda setup: setup.with_part(MeasuresFastRetransmits), "rfc",
    ),
]  # fmt: skip
