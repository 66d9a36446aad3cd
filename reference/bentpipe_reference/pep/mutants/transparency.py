"""Mutants of transparency (PEP-TR, section 4)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.pep.box import Box
from bentpipe_reference.pep.endpoint import Endpoint, RelayReceiver, tcp
from bentpipe_reference.pep.fragments import is_fragment
from bentpipe_reference.pep.mutants import mutant, mutant_setting
from bentpipe_reference.pep.passing import TCP, Passing
from bentpipe_reference.pep.relay import Relay
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.output import Addresses
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire import Flags, Segment

MULTIPATH, EXPERIMENTAL = 30, 200


def _moved(source: Endpoint, sink: Endpoint, change: bytes, now: float) -> None:
    """Move octets of which the first is changed to ``change``."""
    while (ready := source.readable) and (room := sink.write_room):
        octets = source.read(min(ready, room))
        sink.write(change + octets[1:] if change else octets, now)


@mutant("pep-changes-an-octet", "carry_octets", breaks="PEP-TR-001")
def changes_an_octet(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """The first of some octets becomes another one."""
    _moved(source, sink, b"\0", now)


@mutant("pep-drops-what-has-no-room", "carry_octets", breaks="PEP-TR-001")
def drops_what_has_no_room(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Octets for which there is no room are dropped."""
    while source.readable:
        sink.write(source.read(), now)


@mutant("pep-repeats-an-octet", "carry_octets", breaks="PEP-TR-001")
def repeats_an_octet(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """The first of some octets is sent twice."""
    while (ready := source.readable) and (room := sink.write_room) > 1:
        octets = source.read(min(ready, room - 1))
        sink.write(octets[:1] + octets, now)


@mutant("pep-calls-from-elsewhere", "calls_as", breaks="PEP-TR-002", setting="single")
def calls_from_elsewhere(self: Box, ends: Addresses) -> Addresses:
    """The server is called from another address."""
    return Addresses(ends.remote ^ 0x100, ends.remote_port, ends.local, ends.local_port)


@mutant("pep-calls-from-another-port", "calls_as", breaks="PEP-TR-003", setting="single")
def calls_from_another_port(self: Box, ends: Addresses) -> Addresses:
    """The server is called from another port."""
    return Addresses(ends.remote, ends.remote_port ^ 0x4000, ends.local, ends.local_port)


@mutant("pep-one-class-for-all", "class_of", breaks="PEP-TR-005")
def one_class(self: Box, packet: bytes) -> int:
    """The class of packets is not kept."""
    return 0


@mutant("pep-keeps-ecn", "class_of", breaks="PEP-TR-006")
def keeps_ecn(self: Box, packet: bytes) -> int:
    """The whole octet of the class is kept, ECN included."""
    return packet[1]


@mutant("pep-own-size", "smss", breaks="PEP-TR-007")
def own_size(self: Handshake) -> int:
    """Segments are as large as the box itself takes them."""
    return self._config.mss - 12 * self.timestamps_ok


@mutant("pep-own-scale", "_offered_window", breaks="PEP-TR-008")
def own_scale(self: Endpoint, segment: Segment) -> int:
    """The windows of an end are scaled as those of the box."""
    return segment.window << 7


@mutant("pep-echoes-itself", "_timestamps", breaks="PEP-TR-009")
def echoes_itself(self: Endpoint, now: float) -> tuple[int, int]:
    """The box echoes its own timestamps."""
    own, echo = Endpoint._timestamps(self, now)
    return own, echo and own


@mutant("pep-reports-other-blocks", "sack_blocks_to_send", breaks="PEP-TR-010")
def reports_other_blocks(self: RelayReceiver, most: int) -> tuple[tuple[int, int], ...]:
    """SACK blocks name what lies behind that which has arrived."""
    blocks = Receiver.sack_blocks_to_send(self, most)
    return tuple((left + 50_000, right + 50_000) for left, right in blocks)


@mutant("pep-answers-unasked", "offer", breaks="PEP-TR-011")
def answers_unasked(self: Handshake, syn: Segment, *, answering: bool) -> None:
    """SACK is permitted in an answer, whether it was offered or not."""
    Handshake.offer(self, syn, answering=answering)
    syn.sack_permitted = True


@mutant("pep-passes-options-on", "receive_in", breaks="PEP-TR-012")
def passes_options_on(self: Box, relay: Relay, port: int, segment: Segment, now: float) -> None:
    """An option that nobody knows is sent on with the octets behind it."""
    odd = [option for option in segment.unknown if option[0] >= EXPERIMENTAL]
    Box.receive_in(self, relay, port, segment, now)
    for option in odd:
        far = tcp(relay.far)
        ends = far.addresses
        self.send(
            1 - relay.caller,
            Segment(
                ends.local, ends.remote, ends.local_port, ends.remote_port,
                far.sender.snd_max & 0xFFFFFFFF,
                (far.receiver.rcv_nxt if far.receiver else 0) & 0xFFFFFFFF,
                int(Flags.ACK), 100, unknown=(option,),
            ),
        )  # fmt: skip


@mutant("pep-splits-everything", "must_stay_whole", breaks="PEP-TR-013")
def splits_everything(self: Passing, syn: Segment) -> bool:
    """Connections whose segments are signed are split."""
    return False


class _Multipath(Endpoint):
    """A SYN with MP_CAPABLE is answered with it."""

    asked: tuple[tuple[int, bytes], ...] = ()

    def accept(self, syn: Segment, now: float) -> None:
        """See :class:`Endpoint`."""
        self.asked = tuple(option for option in syn.unknown if option[0] == MULTIPATH)
        super().accept(syn, now)

    def transmit(self, now: float) -> list[Segment]:
        """See :class:`Endpoint`."""
        segments = super().transmit(now)
        for segment in segments:
            if segment.flags & Flags.SYN:
                segment.unknown = self.asked
        return segments


mutant("pep-multipath-with-itself", breaks="PEP-TR-014")(_Multipath)


@mutant("pep-only-tcp-passes", "forward", breaks="PEP-TR-015")
def only_tcp_passes(self: Box, port: int, packet: bytes) -> None:
    """What is not TCP is dropped."""
    if packet[9] == TCP:
        Box.forward(self, port, packet)


@mutant("pep-cuts-what-passes", "forward", breaks="PEP-TR-015")
def cuts_what_passes(self: Box, port: int, packet: bytes) -> None:
    """What is not TCP loses its last octet."""
    Box.forward(self, port, packet if packet[9] == TCP else packet[:-1] + b"\0")


@mutant("pep-drops-fragments", "receive", breaks="PEP-TR-016")
def drops_fragments(self: Box, port: int, packet: bytes, now: float) -> None:
    """Fragments are dropped."""
    if len(packet) < 20 or not is_fragment(packet):
        Box.receive(self, port, packet, now)


@mutant("pep-drops-ip-options", "receive", breaks="PEP-TR-017")
def drops_ip_options(self: Box, port: int, packet: bytes, now: float) -> None:
    """Packets with IP options are dropped."""
    if not packet or packet[0] & 15 <= 5:
        Box.receive(self, port, packet, now)


@mutant("pep-acknowledges-strangers", "_answers_for", breaks="PEP-TR-018")
def acknowledges_strangers(
    self: Box, key: tuple[int, Addresses], segment: Segment, now: float
) -> bool:
    """Segments of connections that the box does not know are acknowledged."""
    if not segment.payload:
        return Box._answers_for(self, key, segment, now)
    ends = key[1]
    seq, ack = segment.ack, segment.seq + len(segment.payload) & 0xFFFFFFFF
    ports = ends.local_port, ends.remote_port
    self.send(key[0], Segment(ends.local, ends.remote, *ports, seq, ack, int(Flags.ACK), 100))
    return True


@mutant("pep-drops-strangers", "_answers_for", breaks="PEP-TR-018")
def drops_strangers(self: Box, key: tuple[int, Addresses], segment: Segment, now: float) -> bool:
    """Segments of connections that the box does not know are dropped."""
    return True


@mutant("pep-waits-for-more", "carry_octets", breaks="PEP-TR-019")
def waits_for_more(self: Relay, source: Endpoint, sink: Endpoint, now: float) -> None:
    """Less than a segment waits for more octets."""
    if source.readable >= 200 or source.stream_has_ended:
        Relay.carry_octets(self, source, sink, now)


@mutant("pep-blanks-urgent-octets", "receive_in", breaks="PEP-TR-020")
def blanks_urgent(self: Box, relay: Relay, port: int, segment: Segment, now: float) -> None:
    """The urgent octet is taken out of the stream."""
    if segment.flags & Flags.URG and segment.payload:
        at = min(max(segment.urgent, 1), len(segment.payload))
        segment.payload = segment.payload[: at - 1] + b"\0" + segment.payload[at:]
    Box.receive_in(self, relay, port, segment, now)


mutant_setting(
    "pep-without-blocks-over-the-satellite", "No selective acknowledgments over the satellite.",
    lambda setup: setup.configured(inner=replace(setup.config.inner, sack=False)),
    breaks="PEP-LR-005",
)  # fmt: skip
