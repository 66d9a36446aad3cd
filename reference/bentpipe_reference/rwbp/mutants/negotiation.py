"""Mutants of negotiation (RWBP-NG)."""

from __future__ import annotations

from dataclasses import replace

from bentpipe_reference.common.checksum import internet_checksum
from bentpipe_reference.rwbp.connection import RwbpConnection
from bentpipe_reference.rwbp.handshake import RwbpHandshake
from bentpipe_reference.rwbp.mutants import Altering, is_bare, mutant
from bentpipe_reference.rwbp.option import EXPERIMENT, KIND, RwbpOption, counting_option
from bentpipe_reference.rwbp.receiver import RwbpReceiver
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.reassembly import Reassembly
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.recovery import SackNewRenoRfcSender
from bentpipe_reference.tcp.wire import Flags, Segment, emit_packet

EXID = EXPERIMENT.to_bytes(4, "big")


def _options(segment: Segment) -> list[bytes]:
    """The RWBP options of a segment, behind their ExID."""
    found = (data for kind, data in segment.unknown if kind == KIND and data[:4] == EXID)
    return [data[4:] for data in found]


@mutant("rwbp-first-syn-offers-alone", "offer", breaks="RWBP-NG-001")
def offers_once(self: RwbpHandshake, syn: Segment, *, answering: bool) -> None:
    """A SYN that is repeated has no RWBP option."""
    RwbpHandshake.offer(self, syn, answering=answering)
    if not answering and self.attempts:
        syn.unknown = ()


@mutant("rwbp-offers-without-sack-permitted", "offer", breaks="RWBP-NG-001")
def offers_without_sack(self: RwbpHandshake, syn: Segment, *, answering: bool) -> None:
    """A SYN with RWBP has no SACK-Permitted option."""
    RwbpHandshake.offer(self, syn, answering=answering)
    if not answering:
        syn.sack_permitted = False


@mutant("rwbp-offers-twice", "offer", breaks="RWBP-NG-001")
def offers_twice(self: RwbpHandshake, syn: Segment, *, answering: bool) -> None:
    """A SYN has two RWBP options."""
    RwbpHandshake.offer(self, syn, answering=answering)
    if not answering and not self.offers_timestamps(answering=False):
        syn.unknown *= 2
    elif not answering:
        syn.window_scale = None
        syn.unknown = (*syn.unknown, (KIND, EXID))


@mutant("rwbp-reserved-bits-set", "offer", breaks="RWBP-NG-002")
def sets_reserved_bits(self: RwbpHandshake, syn: Segment, *, answering: bool) -> None:
    """The reserved bits of the option are set."""
    RwbpHandshake.offer(self, syn, answering=answering)
    syn.unknown = tuple(
        (kind, data[:4] + b"\x1f" + data[5:]) if kind == KIND else (kind, data)
        for kind, data in syn.unknown
    )


@mutant("rwbp-unit-below-the-mss", "own_option", breaks="RWBP-NG-002")
def names_another_unit(self: RwbpHandshake) -> RwbpOption:
    """The unit of the option is half of the MSS."""
    own = RwbpHandshake.own_option(self)
    return RwbpOption(own.interval, own.unit // 2)


@mutant("rwbp-interval-0-sent", "own_option", breaks="RWBP-NG-002")
def names_no_interval(self: RwbpHandshake) -> RwbpOption:
    """The interval of the option is 0."""
    return RwbpOption(0, RwbpHandshake.own_option(self).unit)


@mutant("rwbp-agrees-without-sack", "may_agree", breaks="RWBP-NG-003")
def agrees_without_sack(self: RwbpHandshake, syn: Segment) -> bool:
    """A SYN without SACK-Permitted is answered with RWBP."""
    return self._offers


@mutant("rwbp-never-agrees", "may_agree", breaks="RWBP-NG-003")
def never_agrees(self: RwbpHandshake, syn: Segment) -> bool:
    """A SYN that offers RWBP is answered without."""
    return bool(syn.flags & Flags.ACK) and RwbpHandshake.may_agree(self, syn)


@mutant("rwbp-repeated-answer-without", "offer", breaks="RWBP-NG-003")
def answers_once(self: RwbpHandshake, syn: Segment, *, answering: bool) -> None:
    """A SYN-ACK that is repeated has no RWBP option."""
    RwbpHandshake.offer(self, syn, answering=answering)
    if answering and self.attempts:
        syn.unknown = ()


@mutant("rwbp-answers-every-syn", "offer", breaks="RWBP-NG-003")
def answers_every_syn(self: RwbpHandshake, syn: Segment, *, answering: bool) -> None:
    """A SYN of a plain TCP is answered with an RWBP option."""
    RwbpHandshake.offer(self, syn, answering=answering)
    if answering and not self.agreed:
        syn.unknown = (self.own_option().emit(),)


@mutant("rwbp-answer-with-scale", breaks="RWBP-NG-004")
class AnswersWithScale(RwbpHandshake):
    """A SYN-ACK with RWBP has a Window Scale option if the SYN has one."""

    _scaled = False

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        self._scaled = syn.window_scale is not None

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if answering and self._scaled:
            syn.window_scale = 2


@mutant("rwbp-answer-with-timestamps", "alter", breaks="RWBP-NG-004")
def answers_with_timestamps(self: Altering, segment: Segment, now: float) -> None:
    """A SYN-ACK with RWBP has a Timestamps option."""
    if segment.flags & Flags.SYN and self.agreed:
        segment.timestamps = (1, 0)


@mutant("rwbp-answer-with-ece", breaks="RWBP-NG-004")
class AnswersWithEce(Altering):
    """A SYN that offers ECN is answered with ECE."""

    _asked = False

    def accept(self, syn: Segment, now: float) -> None:
        self._asked = bool(syn.flags & Flags.ECE)
        super().accept(syn, now)

    def alter(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.SYN and self._asked:
            segment.flags |= Flags.ECE


@mutant("rwbp-agreed-without-an-answer", "take_options", breaks="RWBP-NG-005")
def takes_silence_for_consent(self: RwbpHandshake, syn: Segment) -> None:
    """A caller whose SYN-ACK has no RWBP option goes on with RWBP."""
    RwbpHandshake.take_options(self, syn)
    if syn.flags & Flags.ACK and self.peer is None and syn.sack_permitted:
        self.peer = RwbpOption(8, 1460)
        self.timestamps_ok = False


@mutant("rwbp-plain-answer-refused", "_receive_in_syn_sent", breaks="RWBP-NG-005")
def refuses_plain_answers(self: RwbpConnection, segment: Segment, now: float) -> None:
    """A caller resets the connection if the SYN-ACK has no RWBP option."""
    if segment.flags & Flags.ACK and counting_option(segment) is None:
        self._reset_for(segment)
        self._end("RWBP is refused", now)
    else:
        RwbpConnection._receive_in_syn_sent(self, segment, now)


class _Believing(RwbpHandshake):
    """Chooses among the RWBP options of a SYN by itself."""

    def take_options(self, syn: Segment) -> None:
        """See :class:`RwbpHandshake`."""
        super().take_options(syn)
        chosen = self.chosen([data for data in _options(syn) if len(data) >= 4])
        if chosen is not None and self.may_agree(syn):
            self.peer = RwbpOption(max(1, chosen[1]), max(1, int.from_bytes(chosen[2:4], "big")))
            self.timestamps_ok = self._scaling = False
            self.send_shift = self.receive_shift = 0

    def chosen(self, options: list[bytes]) -> bytes | None:
        """The one that counts."""
        raise NotImplementedError


@mutant("rwbp-every-version-counts", "chosen", breaks="RWBP-NG-006")
def believes_every_version(self: _Believing, options: list[bytes]) -> bytes | None:
    """The first RWBP option counts whatever it says."""
    return options[0] if options else None


@mutant("rwbp-last-option-counts", "chosen", breaks="RWBP-NG-006")
def believes_the_last(self: _Believing, options: list[bytes]) -> bytes | None:
    """Of several RWBP options that are not void the last one counts."""
    good = [o for o in options if len(o) == 4 and o[0] >> 4 == 1 and o[1] and o[2:] > b"\0\x2f"]
    return good[-1] if good else None


@mutant("rwbp-first-void-is-final", "may_agree", breaks="RWBP-NG-006")
def stops_at_a_void_option(self: RwbpHandshake, syn: Segment) -> bool:
    """Nothing behind a void RWBP option is looked at."""
    first = next(iter(_options(syn)), b"")
    return RwbpHandshake.may_agree(self, syn) and len(first) == 4 and first[0] >> 4 == 1


@mutant("rwbp-void-option-refused", "accept", breaks="RWBP-NG-006")
def refuses_void_options(self: RwbpConnection, syn: Segment, now: float) -> None:
    """A SYN with a void RWBP option is refused."""
    RwbpConnection.accept(self, syn, now)
    if _options(syn) and not self.agreed:
        self._outbox.clear()
        self._put(self.sender.iss, int(Flags.RST | Flags.ACK), now)
        self._end("its RWBP option is void", now)


@mutant("rwbp-option-in-acknowledgments", "alter", breaks="RWBP-NG-007")
def repeats_the_option(self: Altering, segment: Segment, now: float) -> None:
    """Pure acknowledgments without blocks have the RWBP option."""
    if self.agreed and is_bare(segment):
        segment.unknown = (self.handshake.own_option().emit(),)


@mutant("rwbp-option-heeded-anywhere", "receive", breaks="RWBP-NG-007")
def heeds_every_option(self: RwbpConnection, segment: Segment, now: float) -> None:
    """An RWBP option changes unit and interval in whatever segment it arrives."""
    later = _options(segment) if not segment.flags & Flags.SYN else []
    if later and self.agreed and isinstance(self.receiver, RwbpReceiver):
        self.handshake.peer = RwbpOption(later[0][1], int.from_bytes(later[0][2:4], "big"))
        self.receiver.interval = later[0][1]
        self.sender.smss = min(self.sender.smss, self.handshake.peer.unit)
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-no-congestion-control-for-plain-tcp", "establish", breaks="RWBP-NG-008")
def floods_plain_peers(
    self: SackNewRenoRfcSender, smss: int, window: int, seq: int, *, sack_ok: bool
) -> None:
    """A connection of plain TCP has no congestion window."""
    SackNewRenoRfcSender.establish(self, smss, window, seq, sack_ok=sack_ok)
    self.cwnd = 1 << 30


@mutant("rwbp-plain-windows-in-units", "_offered_window", breaks="RWBP-NG-008")
def counts_units_for_plain_peers(self: RwbpConnection, segment: Segment) -> int:
    """The windows of a peer of plain TCP are read in units."""
    units = not self.agreed and segment.window < 1 << 15
    return RwbpConnection._offered_window(self, segment) * (1460 if units else 1)


@mutant("rwbp-few-acknowledgments-for-plain-tcp", breaks="RWBP-NG-008")
class AcknowledgesPlainPeersRarely(Receiver):
    """A peer of plain TCP is sent an acknowledgment for every eight segments."""

    def __init__(self, config: EndpointConfig, irs: int, reassembly: type[Reassembly]) -> None:
        super().__init__(replace(config, ack_every=8), irs, reassembly)

    def window_update_due(self) -> bool:
        return self.edge - self.rcv_nxt < 0x4000 and super().window_update_due()


@mutant("rwbp-windows-scaled", breaks="RWBP-NG-009")
class ScalesWindows(RwbpConnection):
    """The windows of a peer whose SYN has a Window Scale option are scaled besides."""

    _shift = 0

    def _take_syn(self, segment: Segment, now: float) -> Receiver:
        self._shift = segment.window_scale or 0
        return super()._take_syn(segment, now)

    def _offered_window(self, segment: Segment) -> int:
        scaled = self.agreed and not segment.flags & Flags.SYN
        return super()._offered_window(segment) << (self._shift if scaled else 0)


@mutant("rwbp-timestamps-sent", "alter", breaks="RWBP-NG-009")
def sends_timestamps(self: Altering, segment: Segment, now: float) -> None:
    """Pure acknowledgments without blocks have a Timestamps option."""
    if self.agreed and is_bare(segment):
        segment.timestamps = self._timestamps(now)


@mutant("rwbp-old-timestamps-refused", "receive", breaks="RWBP-NG-009")
def refuses_old_timestamps(self: RwbpConnection, segment: Segment, now: float) -> None:
    """A segment whose timestamp is zero is dropped."""
    stamps = segment.timestamps
    if self.agreed and stamps is not None and not stamps[0]:
        return
    RwbpConnection.receive(self, segment, now)


@mutant("rwbp-ece-heeded", "_offered_window", breaks="RWBP-NG-010")
def heeds_ece(self: RwbpConnection, segment: Segment) -> int:
    """The acknowledgment of a segment with ECE makes no room."""
    marked = self.agreed and segment.flags & Flags.ECE
    return 0 if marked else RwbpConnection._offered_window(self, segment)


@mutant("rwbp-cwr-sent", "alter", breaks="RWBP-NG-010")
def sends_cwr(self: Altering, segment: Segment, now: float) -> None:
    """Segments with data have CWR after a retransmission."""
    if self.agreed and segment.payload and self.sender.counters.retransmissions:
        segment.flags |= Flags.CWR


@mutant("rwbp-ect-sent", breaks="RWBP-NG-010", part="emit")
def send_ect(segment: Segment) -> bytes:
    """Packets with data are marked ECT(0)."""
    packet = bytearray(emit_packet(segment))
    if segment.payload:
        packet[1] |= 2
        packet[10:12] = bytes(2)
        packet[10:12] = internet_checksum(bytes(packet[:20])).to_bytes(2, "big")
    return bytes(packet)


@mutant("rwbp-data-in-syn", "alter", breaks="RWBP-NG-011")
def puts_data_into_syns(self: Altering, segment: Segment, now: float) -> None:
    """The SYN of a call has an octet of data."""
    if segment.flags & (Flags.SYN | Flags.ACK) == Flags.SYN:
        segment.payload = b"x"


@mutant("rwbp-data-of-syn-taken", "_take_syn", breaks="RWBP-NG-011")
def takes_data_of_syns(self: RwbpConnection, segment: Segment, now: float) -> Receiver:
    """The data of a SYN is taken if RWBP is agreed."""
    receiver = RwbpConnection._take_syn(self, segment, now)
    if self.agreed and segment.payload:
        receiver.on_text(segment.seq + 1, segment.payload, False, now)
    return receiver
