"""Mutants of option use (SNR-OPT)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bentpipe_reference.common.mutation import Mutant
from bentpipe_reference.tcp.config import EndpointConfig
from bentpipe_reference.tcp.endpoint import Endpoint
from bentpipe_reference.tcp.handshake import Handshake
from bentpipe_reference.tcp.receiver import Receiver
from bentpipe_reference.tcp.wire.codec import WireError, parse_packet
from bentpipe_reference.tcp.wire.segment import Flags, Segment

_SYN = int(Flags.SYN)

Configure = Callable[[EndpointConfig], EndpointConfig]


def _negotiating(handshake: type[Handshake]) -> Configure:
    """The ``configure`` of a mutant whose handshake is ``handshake``."""
    endpoint = type("MutantEndpoint", (Endpoint,), {"handshake_class": handshake})
    return lambda config: replace(config, endpoint_class=endpoint)


def _connecting(endpoint: type[Endpoint]) -> Configure:
    return lambda config: replace(config, endpoint_class=endpoint)


class PermitsSackUnasked(Handshake):
    """Puts SACK-permitted into every SYN-ACK."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        syn.sack_permitted = True


class ScalesUnasked(Handshake):
    """Puts Window Scale into every SYN-ACK."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        syn.window_scale = 2


class StampsUnasked(Handshake):
    """Puts Timestamps into every SYN-ACK."""

    def offers_timestamps(self, *, answering: bool) -> bool:
        return True


class OffersShiftOf15(Handshake):
    """Offers a window shift nobody may use."""

    def offer(self, syn: Segment, *, answering: bool) -> None:
        super().offer(syn, answering=answering)
        if syn.window_scale is not None:
            syn.window_scale = 15


class BelievesAnyShift(Handshake):
    """Scales the peer's windows by whatever its SYN says."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if syn.window_scale is not None:
            self.send_shift = syn.window_scale


class ForgetsToDeductOptions(Handshake):
    """Fills segments up to the MSS without counting the timestamps."""

    def smss(self) -> int:
        return min(self._peer_mss, self._config.mss)


class AssumesEthernet(Handshake):
    """Takes 1460 for the MSS of a peer that names none."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if syn.mss is None:
            self._peer_mss = 1460


class DividesByMss(Handshake):
    """Computes with the peer's MSS before looking at it."""

    def take_options(self, syn: Segment) -> None:
        super().take_options(syn)
        if syn.mss is not None:
            self.initial_segments = 4380 // syn.mss


class OmitsTimestampsInPureAcks(Endpoint):
    """Stamps nothing but data."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        for segment in segments:
            if not segment.payload and not segment.flags & _SYN:
                segment.timestamps = None
        return segments


class NamesMssAgain(Endpoint):
    """Repeats the MSS option in every acknowledgment without data."""

    def transmit(self, now: float) -> list[Segment]:
        segments = super().transmit(now)
        for segment in segments:
            if not segment.payload and not segment.sack_blocks:
                segment.mss = self.config.mss
        return segments


class SendsSackUnasked(Receiver):
    """Reports blocks to peers that know no SACK."""

    def sack_blocks_to_send(self, most: int) -> tuple[tuple[int, int], ...]:
        self.sack_ok = True
        return super().sack_blocks_to_send(most)


class RefusesUnknownOptions(Endpoint):
    """Resets a connection whose SYN has options it does not know."""

    def accept(self, syn: Segment, now: float) -> None:
        if syn.unknown:
            self._reset_for(syn)
            return
        super().accept(syn, now)


class DropsUnknownOptions(Endpoint):
    """Drops segments with options it does not know."""

    def receive(self, segment: Segment, now: float) -> None:
        if not segment.unknown:
            super().receive(segment, now)


class RescalesAnyTime(Endpoint):
    """Takes over the Window Scale option of any segment."""

    def receive(self, segment: Segment, now: float) -> None:
        if segment.window_scale is not None:
            self.handshake.send_shift = segment.window_scale
        super().receive(segment, now)


def _crash_on_broken_options(packet: bytes) -> Segment:
    try:
        return parse_packet(packet)
    except WireError as error:
        if "option" in str(error):
            raise RuntimeError("the option parser ran off the end") from error
        raise


MUTANTS = (
    Mutant(
        "snr-sack-permitted-unasked", "SNR-OPT-001",
        "The SYN-ACK carries SACK-permitted though the SYN does not.",
        _negotiating(PermitsSackUnasked),
    ),
    Mutant(
        "snr-window-scale-unasked", "SNR-OPT-002",
        "The SYN-ACK carries Window Scale though the SYN does not.",
        _negotiating(ScalesUnasked), "hk99",
    ),
    Mutant(
        "snr-timestamps-unasked", "SNR-OPT-003",
        "The SYN-ACK carries Timestamps though the SYN does not.",
        _negotiating(StampsUnasked),
    ),
    Mutant(
        "snr-pure-acks-unstamped", "SNR-OPT-004",
        "Segments without data lack the Timestamps option that was negotiated.",
        _connecting(OmitsTimestampsInPureAcks),
    ),
    Mutant(
        "snr-sack-blocks-unasked", "SNR-OPT-005",
        "SACK blocks go to peers that did not permit them.",
        lambda config: replace(config, receiver_class=SendsSackUnasked), "hk99",
    ),
    Mutant(
        "snr-mss-in-every-ack", "SNR-OPT-006",
        "Acknowledgments repeat the MSS option.",
        _connecting(NamesMssAgain),
    ),
    Mutant(
        "snr-shift-of-15-sent", "SNR-OPT-007",
        "The Window Scale option names a shift of 15.",
        _negotiating(OffersShiftOf15),
    ),
    Mutant(
        "snr-shift-of-15-believed", "SNR-OPT-008",
        "The peer's windows are scaled by 15 bits because its SYN says so.",
        _negotiating(BelievesAnyShift),
    ),
    Mutant(
        "snr-options-not-deducted", "SNR-OPT-009",
        "Data fills the peer's MSS although options come on top.",
        _negotiating(ForgetsToDeductOptions),
    ),
    Mutant(
        "snr-default-mss-of-ethernet", "SNR-OPT-010",
        "A peer that names no MSS gets segments of 1460 octets.",
        _negotiating(AssumesEthernet), "hk99",
    ),
    Mutant(
        "snr-divides-by-mss", "SNR-OPT-011",
        "An MSS of zero crashes the implementation.",
        _negotiating(DividesByMss),
    ),
    Mutant(
        "snr-unknown-option-refused", "SNR-OPT-012",
        "A SYN with an unknown option is answered with a RST.",
        _connecting(RefusesUnknownOptions),
    ),
    Mutant(
        "snr-unknown-option-dropped", "SNR-OPT-013",
        "Data with an unknown option is dropped.",
        _connecting(DropsUnknownOptions),
    ),
    Mutant(
        "snr-illegal-length-crashes", "SNR-OPT-014",
        "An illegal option length crashes the implementation.",
        lambda config: replace(config, packet_parser=_crash_on_broken_options),
    ),
    Mutant(
        "snr-window-scale-any-time", "SNR-OPT-015",
        "A Window Scale option outside the handshake changes the scale.",
        _connecting(RescalesAnyTime),
    ),
)  # fmt: skip
