"""Mutants of option use (SNR-OPT)."""

from __future__ import annotations

from bentpipe_reference.tcp.connection import Connection
from bentpipe_reference.tcp.handshake import Handshake, smallest_shift
from bentpipe_reference.tcp.mutants import Altering, mutant
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire import Flags, Segment, WireError, parse_packet


@mutant("snr-sack-permitted-unasked", breaks="SNR-OPT-001")
class PermitsSackUnasked(Handshake):
    """The SYN-ACK carries SACK-permitted though the SYN does not."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        syn.sack_permitted = True


@mutant("snr-window-scale-unasked", breaks="SNR-OPT-002", profile="hk99")
class ScalesUnasked(Handshake):
    """The SYN-ACK carries Window Scale though the SYN does not."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        syn.window_scale = 2


@mutant("snr-timestamps-unasked", breaks="SNR-OPT-003")
class StampsUnasked(Handshake):
    """The SYN-ACK carries Timestamps though the SYN does not."""

    def offers_timestamps(self, *, answering: bool) -> bool:
        return True


@mutant("snr-pure-acks-unstamped", breaks="SNR-OPT-004")
class OmitsTimestampsInPureAcks(Altering):
    """Segments without data lack the Timestamps option that was negotiated."""

    def alter(self, segment: Segment, now: float) -> None:
        if not segment.payload and not segment.flags & Flags.SYN:
            segment.timestamps = None


@mutant("snr-sack-blocks-unasked", breaks="SNR-OPT-005", profile="hk99")
class SendsSackUnasked(Receiver):
    """SACK blocks go to peers that did not permit them."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        self.sack_ok = True
        return super().sack_blocks_to_send(most)


@mutant("snr-mss-in-every-ack", breaks="SNR-OPT-006")
class NamesMssAgain(Altering):
    """Acknowledgments repeat the MSS option."""

    def alter(self, segment: Segment, now: float) -> None:
        if not segment.payload and not segment.sack_blocks:
            segment.mss = self.config.mss


@mutant("snr-shift-of-15-sent", breaks="SNR-OPT-007")
class OffersShiftOf15(Handshake):
    """The Window Scale option names a shift of 15."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if syn.window_scale is not None:
            syn.window_scale = 15


@mutant("snr-shift-of-15-believed", breaks="SNR-OPT-008")
class BelievesAnyShift(Handshake):
    """The peer's windows are scaled by 15 bits because its SYN says so."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if syn.window_scale is not None:
            self.send_shift = syn.window_scale


@mutant("snr-options-not-deducted", breaks="SNR-OPT-009")
class ForgetsToDeductOptions(Handshake):
    """Data fills the peer's MSS although options come on top."""

    def smss(self) -> int:
        return min(self._peer_mss, self._config.mss)


@mutant("snr-default-mss-of-ethernet", breaks="SNR-OPT-010", profile="hk99")
class AssumesEthernet(Handshake):
    """A peer that names no MSS gets segments of 1460 octets."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if syn.mss is None:
            self._peer_mss = 1460


@mutant("snr-divides-by-mss", breaks="SNR-OPT-011")
class DividesByMss(Handshake):
    """An MSS of zero crashes the implementation."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if syn.mss is not None:
            self.initial_segments = 4380 // syn.mss


@mutant("snr-unknown-option-refused", breaks="SNR-OPT-012")
class RefusesUnknownOptions(Connection):
    """A SYN with an unknown option is answered with a RST."""

    def accept(self, syn: Segment, now: float) -> None:
        if syn.unknown:
            self._reset_for(syn)
            return
        super().accept(syn, now)


@mutant("snr-unknown-option-dropped", breaks="SNR-OPT-013")
class DropsUnknownOptions(Connection):
    """Data with an unknown option is dropped."""

    def receive(self, segment: Segment, now: float) -> None:
        if not segment.unknown:
            super().receive(segment, now)


@mutant("snr-illegal-length-crashes", breaks="SNR-OPT-014")
def crash_on_broken_options(packet: bytes) -> Segment:
    """An illegal option length crashes the implementation."""
    try:
        return parse_packet(packet)
    except WireError as error:
        if "option" in str(error):
            raise RuntimeError("the option parser ran off the end") from error
        raise


@mutant("snr-end-of-options-malformed", breaks="SNR-OPT-018")
def choke_on_the_end_of_options(packet: bytes) -> Segment:
    """The End of Option List is read as an option without a length."""
    segment = parse_packet(packet)
    options, at = packet[40 : 20 + (packet[32] >> 4) * 4], 0
    while at < len(options) and options[at]:
        at += 1 if options[at] == 1 else options[at + 1]
    if at < len(options) and not segment.flags & Flags.SYN:
        raise WireError("TCP option kind 0 has the impossible length 0")
    return segment


@mutant("snr-window-scale-any-time", breaks="SNR-OPT-015")
class RescalesAnyTime(Connection):
    """A Window Scale option outside the handshake changes the scale."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.window_scale is not None:
            self.handshake.send_shift = segment.window_scale
        super().receive(segment, now)


@mutant("snr-own-mss-forgotten", breaks="SNR-OPT-016")
class SendsWhatThePeerTakes(Handshake):
    """Segments are as large as the peer's MSS, whatever the own link carries."""

    def smss(self) -> int:
        return super().smss() + max(0, self._peer_mss - self._config.mss)


@mutant("snr-syn-ack-without-mss", breaks="SNR-OPT-017")
class NamesNoMss(Altering):
    """The SYN-ACK has no MSS option."""

    def alter(self, segment: Segment, now: float) -> None:
        segment.mss = None


@mutant("snr-syn-ack-offers-less", breaks="SNR-OPT-019")
class OffersLessAgain(Altering):
    """A repeated SYN-ACK permits no SACK."""

    _answers = 0

    def alter(self, segment: Segment, now: float) -> None:
        if segment.flags & Flags.SYN and segment.flags & Flags.ACK:
            self._answers += 1
            segment.sack_permitted = segment.sack_permitted and self._answers == 1


@mutant("snr-crossed-syn-scaled", breaks="SNR-OPT-021")
class ScalesWhenCrossed(Handshake):
    """The answer to a SYN that crosses the own one carries Window Scale, as the own did."""

    _called = False

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        self._called |= not answering
        if self._called:
            syn.window_scale = smallest_shift(self._config.receive_buffer)


@mutant("snr-crossed-syn-stamped", breaks="SNR-OPT-021", hk99=True)
class StampsWhenCrossed(Handshake):
    """The answer to a SYN that crosses the own one carries Timestamps, as the own did."""

    _called = False

    def offers_timestamps(self, *, answering: bool) -> bool:
        self._called |= not answering
        return self._called or super().offers_timestamps(answering=answering)
