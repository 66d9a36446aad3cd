"""Round 5: written from PEP/1 on 2026-11-24."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bentpipe_reference.common.blind import Fault
from bentpipe_reference.common.checksum import checksum_field, ones_complement_residue
from bentpipe_reference.common.sim import earliest
from bentpipe_reference.common.stream import WriteBuffer
from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.config import OUTER
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver, tcp
from bentpipe_reference.pep.parts import Setup
from bentpipe_reference.pep.passing import Passing
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.states import State
from bentpipe_reference.tcp.wire.sequence import MASK, before, unwrap

_FIN, _SYN, _RST, _ACK, _URG, _ECE, _CWR = 0x01, 0x02, 0x04, 0x10, 0x20, 0x40, 0x80


def _with(*parts: type[Any]) -> Callable[[Setup], Setup]:
    def configure(setup: Setup) -> Setup:
        for part in parts:
            setup = setup.with_part(part)
        return setup

    return configure


# -- transparency -----------------------------------------------------------------------------------


class RepeatsInDefaultClass(Box):
    """What is retransmitted has DSCP 0."""

    def collect(self, relay, port, endpoint, now):  # type: ignore[no-untyped-def]
        for segment in endpoint.transmit(now):
            dscp = relay.classes[1 - port]
            if segment.payload:
                end = segment.seq + len(segment.payload) & MASK
                highest = getattr(endpoint, "highest_sent", segment.seq)
                if before(segment.seq, highest):
                    dscp = 0
                endpoint.highest_sent = end if before(highest, end) else highest
            self.send(port, segment, dscp)


class AgreesToEcnOnly(Endpoint):
    """Answers an ECN-setup SYN with ECE, but no CE."""

    _asked = False

    def accept(self, syn, now):  # type: ignore[no-untyped-def]
        self._asked = syn.flags & (_ECE | _CWR) == _ECE | _CWR
        super().accept(syn, now)

    def _send_syn(self, now, *, repeated=False):  # type: ignore[no-untyped-def]
        super()._send_syn(now, repeated=repeated)
        if self._asked:
            self._outbox[-1].flags |= _ECE


class BlocksBesideFullSegments(Handshake):
    """Room for SACK blocks is that of the header, whatever data stands behind it."""

    def sack_room(self, payload):  # type: ignore[no-untyped-def]
        return super().sack_room(0)


class ScaleOfWhoeverHasOne(Endpoint):
    """Windows of a side without a scale are read with that of the other side."""

    other: Endpoint | None = None

    def _offered_window(self, segment):  # type: ignore[no-untyped-def]
        if not self.handshake._scaling and self.other is not None:
            return segment.window << self.other.handshake.send_shift
        return super()._offered_window(segment)


class KnowsBothScales(Relay):
    """Tells each end of the other."""

    def step(self, now):  # type: ignore[no-untyped-def]
        super().step(now)
        if self.near is not None:
            self.near.other, self.far.other = self.far, self.near  # type: ignore[attr-defined]


class SmallHolesAreHeld(RelayReceiver):
    """SACK blocks less than 100 octets apart are reported as one."""

    def sack_blocks_to_send(self, most):  # type: ignore[no-untyped-def]
        blocks = super().sack_blocks_to_send(64)
        merged: list[tuple[int, int]] = []
        for left, right in sorted(blocks):
            if merged and left - merged[-1][1] < 100:
                merged[-1] = merged[-1][0], max(right, merged[-1][1])
            else:
                merged.append((left, right))
        if blocks:
            merged.sort(key=lambda each: not each[0] <= blocks[0][0] < each[1])
        return tuple(merged[:most])


class EndedBeforeWhole(Box):
    """That the ports belonged to a split connection counts more than that the new one is whole."""

    def _answers_for(self, key, segment, now):  # type: ignore[no-untyped-def]
        if self._ended.get(key, -1.0) < now:
            return super()._answers_for(key, segment, now)
        if (refusal := self.parts.refuse(segment)) is not None:
            self.send(key[0], refusal)
        return True


class JoinsAreSplit(Passing):
    """MP_CAPABLE passes, MP_JOIN is split."""

    def must_stay_whole(self, syn):  # type: ignore[no-untyped-def]
        capable = any(kind == 30 and data and data[0] >> 4 == 0 for kind, data in syn.unknown)
        return capable or super().must_stay_whole(syn)


class UrgentOctetOutOfBand(Endpoint):
    """The octet before the urgent pointer is taken out of the stream, as sockets do."""

    _at: int | None = None

    def receive(self, segment, now):  # type: ignore[no-untyped-def]
        receiver = self.receiver
        if receiver is not None and segment.flags & _URG:
            if 0 < segment.urgent <= len(segment.payload):
                at = unwrap(segment.seq, receiver.rcv_nxt) + segment.urgent - 1
                self.__dict__.setdefault("urgent", set()).add(at)
        super().receive(segment, now)

    def read(self, octets=None):  # type: ignore[no-untyped-def]
        data = super().read(octets)
        if self.receiver is None:
            return data
        start = self.receiver.irs + 1 if self._at is None else self._at
        self._at = start + len(data)
        urgent = self.__dict__.get("urgent", ())
        gone = [at - start for at in urgent if start <= at < self._at]
        for at in sorted(gone, reverse=True):
            data = data[:at] + data[at + 1 :]
        return data


# -- opening ----------------------------------------------------------------------------------------


class RefusesAtOnceOnly(Relay):
    """A refusal that comes after the SYN was repeated is kept from the client."""

    def step(self, now):  # type: ignore[no-untyped-def]
        super().step(now)
        if self.refused and tcp(self.far).handshake.attempts > 1:
            self.refused = False


class ClosesWhileCalling(Relay):
    """A FIN before the server has answered closes the call in SYN-SENT."""

    def carry_end(self, source, sink, now):  # type: ignore[no-untyped-def]
        if source.stream_has_ended and not source.readable:
            sink.close(now)


class GivesUpWithFin(Relay):
    """A client that has given up becomes a connection that is opened and ended cleanly."""

    def cancel(self, now):  # type: ignore[no-untyped-def]
        self._cancelled = True

    def step(self, now):  # type: ignore[no-untyped-def]
        far = self.far
        if self.near is None and self._cancelled and far.failure is None:
            if not far.is_opening:
                far.close(now)
                if far.stream_has_ended:
                    far.confirm_end(now)
            return
        super().step(now)


class SynAckDataIsLost(Endpoint):
    """Octets in a SYN-ACK are acknowledged and forgotten."""

    def _take_syn(self, segment, now):  # type: ignore[no-untyped-def]
        receiver = super()._take_syn(segment, now)
        if segment.flags & _ACK:
            receiver.buffer.rcv_nxt += len(segment.payload)
        return receiver


# -- reliability ------------------------------------------------------------------------------------


class SecondEndAtOnce(Relay):
    """The FIN of the second stream is acknowledged when the first stream has ended."""

    def confirm(self, source, sink, now):  # type: ignore[no-untyped-def]
        super().confirm(source, sink, now)
        if source.stream_has_ended and source.end_is_acknowledged:
            source.confirm_end(now)


class HalfClosedHearsNoReset(Relay):
    """A reset is not carried over to an end that has sent its FIN."""

    def carry_failure(self, source, sink, now):  # type: ignore[no-untyped-def]
        if sink.stream_has_ended and not sink.is_closed:
            tcp(sink).fail("the other side was reset", now)
        else:
            super().carry_failure(source, sink, now)


class HalfClosedForAMinute(Endpoint):
    """FIN-WAIT-2 ends after a minute in which nothing comes."""

    _heard = 0.0

    def receive(self, segment, now):  # type: ignore[no-untyped-def]
        self._heard = now
        super().receive(segment, now)

    def _patience_ends(self):  # type: ignore[no-untyped-def]
        return self._heard + 60.0 if self.state is State.FIN_WAIT_2 else None

    def next_deadline(self):  # type: ignore[no-untyped-def]
        return earliest(super().next_deadline(), self._patience_ends())

    def advance(self, now):  # type: ignore[no-untyped-def]
        super().advance(now)
        ends = self._patience_ends()
        if ends is not None and now >= ends:
            self.abort("half-closed for too long", now)


class OneEndAfterTheOther(Relay):
    """An end is carried over when that of the other direction, if begun, is acknowledged."""

    def carry_end(self, source, sink, now):  # type: ignore[no-untyped-def]
        if tcp(source).sender.fin_queued and not source.end_is_acknowledged:
            return
        super().carry_end(source, sink, now)


class JoinedIsNotVerified(Box):
    """The checksum of a segment that came in fragments is not looked at."""

    def _receive_tcp(self, port, packet, carriers, now):  # type: ignore[no-untyped-def]
        start = (packet[0] & 15) * 4
        body = packet[start:]
        if len(carriers) > 1 and len(body) >= 20:
            body = body[:16] + bytes(2) + body[18:]
            pseudo = int.from_bytes(packet[12:16], "big") + int.from_bytes(packet[16:20], "big")
            field = checksum_field(ones_complement_residue(body) + pseudo + 6 + len(body))
            packet = packet[:start] + body[:16] + field.to_bytes(2, "big") + body[18:]
        super()._receive_tcp(port, packet, carriers, now)


class ResetBehindEndIsLate(Relay):
    """A reset by an end that has sent its FIN does not stop what is held of its stream."""

    def move(self, source, sink, now):  # type: ignore[no-untyped-def]
        if source.failure is not None and source.stream_has_ended and not sink.is_closed:
            self.carry_octets(source, sink, now)
            self.carry_end(source, sink, now)
            return
        super().move(source, sink, now)


# -- flow control -----------------------------------------------------------------------------------


class StallsAreCredited(Relay):
    """Each time a reader that has stopped goes on, its buffer has grown by 64 KiB."""

    def move(self, source, sink, now):  # type: ignore[no-untyped-def]
        sender = tcp(sink).sender
        if getattr(sender, "snd_wnd", None) == 0:
            sender.stalled = True
        elif getattr(sender, "stalled", False):
            sender.stalled = False
            if isinstance(sender.source, WriteBuffer):
                sender.source._capacity += 1 << 16
        super().move(source, sink, now)


class StaysClosed(RelayReceiver):
    """A window that closes behind our own FIN does not open again."""

    ended = False

    def update_edge(self):  # type: ignore[no-untyped-def]
        if self.ended and self.edge - self.rcv_nxt < 1 << self.window_shift:
            return
        super().update_edge()


class ClosesTheWindowToo(Endpoint):
    """Tells the receiver of our FIN."""

    def close(self, now):  # type: ignore[no-untyped-def]
        if isinstance(self.receiver, StaysClosed):
            self.receiver.ended = True
        super().close(now)


class OpensByPureAcksOnly(SackNewRenoRfcSender):
    """A closed window is not opened by a segment with data."""

    def update_window(self, ack):  # type: ignore[no-untyped-def]
        if not ack.bare and not self.snd_wnd:
            return False
        return super().update_window(ack)


# -- loss recovery ----------------------------------------------------------------------------------


class StartsAsWideAsBefore(SackNewRenoRfcSender):
    """A later connection with a host begins with the window of an earlier one."""

    known = 0

    def initial_window(self):  # type: ignore[no-untyped-def]
        return max(super().initial_window(), self.known)


class KnowsHosts(Box):
    """Remembers the congestion window by host."""

    def make(self, port, ends, number):  # type: ignore[no-untyped-def]
        endpoint = super().make(port, ends, number)
        known = self.__dict__.setdefault("windows", {}).get((port, ends.remote), 0)
        endpoint.sender.known = known
        return endpoint

    def collect(self, relay, port, endpoint, now):  # type: ignore[no-untyped-def]
        super().collect(relay, port, endpoint, now)
        window = getattr(endpoint.sender, "cwnd", 0)
        if window:
            self.windows[port, endpoint.addresses.remote] = window  # type: ignore[attr-defined]


class CountsWithoutTimestamps(RelayReceiver):
    """A segment is full when it has 1460 octets, which none with timestamps has."""

    def should_ack_now(self, *, in_order, gap):  # type: ignore[no-untyped-def]
        full = self._octets_unacked >= self.config.ack_every * self.config.mss
        return not in_order or gap or full


# -- changes of the path ----------------------------------------------------------------------------


class FewFins(Endpoint):
    """A FIN without data is given up after five times."""

    def advance(self, now):  # type: ignore[no-untyped-def]
        sender = self.sender
        due = sender.rto_deadline is not None and now >= sender.rto_deadline
        if due and sender.silent_timeouts >= 4 and sender.fin_queued:
            if sender.snd_una == sender.data_end and sender.snd_max > sender.snd_una:
                self._end("nobody acknowledges the end", now)
                return
        super().advance(now)


class SmallLinksAreLies(Endpoint):
    """A message that asks for packets below 576 octets, or names no size, is ignored."""

    def fit(self, mtu, now):  # type: ignore[no-untyped-def]
        if mtu >= 576:
            super().fit(mtu, now)


# -- fairness and resources -------------------------------------------------------------------------


class LateComersGetLittle(Box):
    """The first four connections have full buffers, those after them 8 KiB each."""

    def make(self, port, ends, number):  # type: ignore[no-untyped-def]
        place = len(self.relays)
        for at, keys in enumerate(self.relays.values()):
            if (port, ends) in keys:
                place = at
        if place < 4:
            return super().make(port, ends, number)
        parts = self.parts_at(port)
        config = self.config.outer if port == OUTER else self.config.inner
        return parts.connection(
            replace(config, receive_buffer=8192, send_buffer=8192), ends, number, parts,
            timestamp_offset=self._random.getrandbits(32),
        )  # fmt: skip


class ResetsKeepTheirPlace(Box):
    """The place of a connection that a peer has reset is not given back."""

    lost = 0

    def has_room(self, now):  # type: ignore[no-untyped-def]
        if self.lost and len(self.relays) + self.lost >= self.config.most_relays:
            return False
        return super().has_room(now)

    def _forget(self, relay, now):  # type: ignore[no-untyped-def]
        if any(each.failure == "the peer reset the connection" for each in relay.endpoints):
            self.lost += 1
        super()._forget(relay, now)


class BuffersAreFoundAgain(Box):
    """What a connection that was reset had not delivered, is sent in the next with its ports."""

    def make(self, port, ends, number):  # type: ignore[no-untyped-def]
        endpoint = super().make(port, ends, number)
        held = self.__dict__.setdefault("held", {}).pop((port, ends), b"")
        if held:
            endpoint.sender.source = WriteBuffer(endpoint.config.send_buffer)
            endpoint.sender.source.write(held)
        return endpoint

    def _forget(self, relay, now):  # type: ignore[no-untyped-def]
        keys = self.relays[relay]
        for port, ends in keys:
            endpoint = relay.endpoint(port)
            if endpoint is not None and endpoint.failure is not None:
                source = endpoint.sender.source
                if isinstance(source, WriteBuffer) and source._octets:
                    self.held[port, ends] = bytes(source._octets)  # type: ignore[attr-defined]
        super()._forget(relay, now)


# -- security ---------------------------------------------------------------------------------------


class AnyNumberOpens(Endpoint):
    """In SYN-RECEIVED every acknowledgment number completes the handshake."""

    def _take_ack(self, segment, seq, now):  # type: ignore[no-untyped-def]
        if self.state is State.SYN_RECEIVED:
            self._established(segment, now)
            return True
        return super()._take_ack(segment, seq, now)


class NextIsOutstanding(Endpoint):
    """The number that will be sent next counts as outstanding."""

    def is_outstanding(self, seq):  # type: ignore[no-untyped-def]
        sender = self.sender
        if self.is_opening:
            return super().is_outstanding(seq)
        return (seq - sender.snd_una) & MASK <= sender.snd_max - sender.snd_una


FAULTS = (
    Fault(
        "pep-b5-repeats-in-default-class",
        "The octets that the box retransmits leave with DSCP 0, the others with that of the "
        "segments that brought them.",
        "PEP-TR-005",
        _with(RepeatsInDefaultClass),
    ),
    Fault(
        "pep-b5-agrees-to-ecn-only",
        "An ECN-setup SYN is answered with ECE, but no CE of that side is ever answered.",
        "PEP-TR-006",
        _with(AgreesToEcnOnly),
    ),
    Fault(
        "pep-b5-blocks-beside-full-segments",
        "While the box reports gaps of one direction, its full segments of the other exceed the "
        "MSS by the SACK option.",
        "PEP-TR-007",
        _with(BlocksBesideFullSegments),
    ),
    Fault(
        "pep-b5-scale-of-whoever-has-one",
        "Windows of a side without Window Scale are read with the scale of the other side.",
        "PEP-TR-008",
        _with(ScaleOfWhoeverHasOne, KnowsBothScales),
    ),
    Fault(
        "pep-b5-small-holes-are-held",
        "A hole of less than 100 octets between two ranges is reported as held by SACK.",
        "PEP-TR-010",
        _with(SmallHolesAreHeld),
    ),
    Fault(
        "pep-b5-ended-before-whole",
        "A connection with an MD5 or TCP-AO option on the ports of a split one that ended within "
        "the last minute is reset.",
        "PEP-TR-013",
        _with(EndedBeforeWhole),
    ),
    Fault(
        "pep-b5-joins-are-split",
        "Connections with MP_CAPABLE pass unaltered, but a SYN with MP_JOIN is split and loses it.",
        "PEP-TR-014",
        _with(JoinsAreSplit),
    ),
    Fault(
        "pep-b5-urgent-octet-out-of-band",
        "The last urgent octet is taken out of the stream.",
        "PEP-TR-020",
        _with(UrgentOctetOutOfBand),
    ),
    Fault(
        "pep-b5-refuses-at-once-only",
        "A RST that answers the second SYN of the call, or a later one, is kept from the client.",
        "PEP-OP-005",
        _with(RefusesAtOnceOnly),
    ),
    Fault(
        "pep-b5-closes-while-calling",
        "With early opening a FIN that comes before the server's answer deletes the call, and "
        "with it the octets that were acknowledged.",
        "PEP-OP-009",
        _with(ClosesWhileCalling),
        setting="early",
    ),
    Fault(
        "pep-b5-gives-up-with-fin",
        "When the client has reset its call, the box completes the handshake with the server and "
        "sends it a FIN.",
        "PEP-OP-011",
        _with(GivesUpWithFin),
    ),
    Fault(
        "pep-b5-syn-ack-data-is-lost",
        "Octets in the server's SYN-ACK are acknowledged and not relayed.",
        "PEP-OP-012",
        _with(SynAckDataIsLost),
    ),
    Fault(
        "pep-b5-second-end-at-once",
        "Who ends second gets its FIN acknowledged at once, whatever the box still holds.",
        "PEP-RE-002",
        _with(SecondEndAtOnce),
    ),
    Fault(
        "pep-b5-half-closed-hears-no-reset",
        "A reset is not carried over to an end that has sent its FIN already.",
        "PEP-RE-006",
        _with(HalfClosedHearsNoReset),
    ),
    Fault(
        "pep-b5-half-closed-for-a-minute",
        "A half-closed connection is reset when the open direction has been quiet for 60 s.",
        "PEP-RE-009",
        _with(HalfClosedForAMinute),
    ),
    Fault(
        "pep-b5-one-end-after-the-other",
        "When FINs of both ends cross between the boxes, each box waits with one for the other's "
        "acknowledgment, and neither is delivered.",
        "PEP-RE-010",
        _with(OneEndAfterTheOther),
    ),
    Fault(
        "pep-b5-joined-is-not-verified",
        "The TCP checksum of a segment that arrived in fragments is not verified.",
        "PEP-RE-015",
        _with(JoinedIsNotVerified),
    ),
    Fault(
        "pep-b5-reset-behind-end-is-late",
        "When an end resets its connection after its FIN, what is held of its stream is delivered "
        "and ended by a FIN.",
        "PEP-RE-007",
        _with(ResetBehindEndIsLate),
    ),
    Fault(
        "pep-b5-stalls-are-credited",
        "Each time a receiver's closed window opens again, the buffer grows by 64 KiB, so that a "
        "later stop takes more than is declared.",
        "PEP-FB-001",
        _with(StallsAreCredited),
    ),
    Fault(
        "pep-b5-stays-closed",
        "A window that the box closes after it has sent its FIN on that side never opens again.",
        "PEP-FB-004",
        _with(StaysClosed, ClosesTheWindowToo),
    ),
    Fault(
        "pep-b5-opens-by-pure-acks-only",
        "That a closed window opens is not noticed in a segment with data, but by the next probe.",
        "PEP-FB-010",
        _with(OpensByPureAcksOnly),
    ),
    Fault(
        "pep-b5-starts-as-wide-as-before",
        "A later connection with a host begins with the congestion window that the last one had.",
        "PEP-LR-003",
        _with(StartsAsWideAsBefore, KnowsHosts),
    ),
    Fault(
        "pep-b5-counts-without-timestamps",
        "Of full segments with timestamps only every third is acknowledged.",
        "PEP-LR-006",
        _with(CountsWithoutTimestamps),
    ),
    Fault(
        "pep-b5-few-fins",
        "A connection that is closing is given up when its FIN meets an outage of 31 s or more.",
        "PEP-PC-001",
        _with(FewFins),
    ),
    Fault(
        "pep-b5-small-links-are-lies",
        "An ICMP message that a packet was too big is ignored when the size is below 576 or zero.",
        "PEP-PC-005",
        _with(SmallLinksAreLies),
    ),
    Fault(
        "pep-b5-late-comers-get-little",
        "Beside four connections every further one has an eighth of their buffer.",
        "PEP-FI-002",
        _with(LateComersGetLittle),
    ),
    Fault(
        "pep-b5-resets-keep-their-place",
        "Connections that a peer has reset count as open for ever, so that after 64 none opens.",
        "PEP-RX-005",
        _with(ResetsKeepTheirPlace),
    ),
    Fault(
        "pep-b5-buffers-are-found-again",
        "What was held of a connection that was reset is sent in the next one with its ports.",
        "PEP-RX-006",
        _with(BuffersAreFoundAgain),
    ),
    Fault(
        "pep-b5-any-number-opens",
        "In SYN-RECEIVED a segment with any acknowledgment number opens the connection, and its "
        "octets are relayed.",
        "PEP-SEC-003",
        _with(AnyNumberOpens),
    ),
    Fault(
        "pep-b5-next-is-outstanding",
        "An ICMP message that quotes the number that is sent next makes the box send smaller "
        "segments.",
        "PEP-SEC-004",
        _with(NextIsOutstanding),
    ),
)
