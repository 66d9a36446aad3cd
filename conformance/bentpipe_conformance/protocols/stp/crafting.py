"""STP packets as Scapy packets, for those that a case is about: odd, malformed or inopportune.

Scapy is imported by the first that is made. Its expression of a packet, ``packet.command()``, holds
every field, so that it makes the same octets at Scapy's prompt.
"""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from types import SimpleNamespace
from typing import Any

from bentpipe_conformance.engine.codec import UDP
from bentpipe_conformance.protocols.stp import codec
from bentpipe_conformance.protocols.stp.codec import Stp

COMMON_HEADER = 12
"""Octets of the common header (section 3.1)."""


@cache
def layers() -> Any:
    """IP, UDP and Raw of Scapy, and the module of the STP layers, in which UDP carries STP."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inet = importlib.import_module("scapy.layers.inet")
        stp = importlib.import_module("bentpipe_conformance.protocols.stp.scapy_layer")
        raw = importlib.import_module("scapy.packet").Raw
    return SimpleNamespace(IP=inet.IP, UDP=inet.UDP, Raw=raw, stp=stp)


def craft(packet: Stp) -> Any:
    """A packet as ``IP()/UDP()/STP()/POLL()`` and the like; its data is a ``Raw``."""
    scapy = layers()
    if packet.type == codec.USTAT and len(packet.elements) != 2:
        return craft_octets(packet, codec.octets_of(packet)[COMMON_HEADER:])
    crafted = _common(packet)
    if packet.type != codec.SD:
        crafted.add_payload(getattr(scapy.stp, packet.name)(**_body(packet)))
    return _with_data(crafted, packet.data)


def craft_octets(packet: Stp, octets: bytes, **fields: Any) -> Any:
    """A packet with any ``octets`` behind the common header, as ``IP()/UDP()/STP()/Raw()``.

    Args:
        packet: gives the common header and what carries it.
        octets: in the place of its body and data.
        fields: fields of Scapy's ``STP``, for example ``{"type": 5}``.
    """
    return _with_data(_common(packet, **fields), octets)


def carried(packet: Stp, octets: bytes) -> Any:
    """Any ``octets`` in the place of an STP packet, carried as ``packet`` is."""
    return _with_data(_carriage(packet), octets)


def wrong_checksum(crafted: Any, place: int = 0) -> Any:
    """The same packet with a checksum that one bit of its octet ``place`` makes wrong."""
    layer = crafted.getlayer(layers().stp.STP)
    # A layer is built with those above it, and its checksum covers the addresses below.
    octets = bytes(crafted)[-len(bytes(layer)) :]
    layer.chksum = int.from_bytes(octets[8:10], "big") ^ (0x40 << 8 * (1 - place))
    return crafted


def wrong_udp_checksum(crafted: Any) -> Any:
    """The same packet, in UDP, with a wrong checksum of UDP's."""
    layer = crafted.getlayer(layers().UDP)
    octets = bytes(crafted)[-len(bytes(layer)) :]
    right = int.from_bytes(octets[6:8], "big")
    # Zero would say that there is none.
    layer.chksum = right ^ 0x40 or right ^ 0x80
    return crafted


def zero_checksum(crafted: Any) -> Any:
    """The same packet with a checksum of zero."""
    crafted.getlayer(layers().stp.STP).chksum = 0
    return crafted


def _carriage(packet: Stp) -> Any:
    scapy = layers()
    below = scapy.IP(
        src=packet.src, dst=packet.dst, id=0, flags="DF" if packet.dont_fragment else 0,
        proto=packet.protocol,
    )  # fmt: skip
    if packet.protocol == UDP:
        below.add_payload(scapy.UDP(sport=packet.udp_sport, dport=packet.udp_dport))
    return below


def _with_data(crafted: Any, octets: bytes) -> Any:
    # What add_payload joins need not be copied, as an operand of / is.
    if octets:
        crafted.add_payload(layers().Raw(octets))
    return crafted


def _common(packet: Stp, **fields: Any) -> Any:
    header = {
        "sport": packet.sport, "dport": packet.dport, "flags": packet.flags, "type": packet.type,
        "seq": packet.seq, "tag": packet.tag,
    }  # fmt: skip
    crafted = _carriage(packet)
    crafted.add_payload(layers().stp.STP(**{**header, **fields}))
    return crafted


def _body(packet: Stp) -> dict[str, Any]:
    """The fields of the layer of a type, which are not all called as in :class:`Stp`."""
    kind, reserved = packet.type, packet.reserved or (0, 0, 0)
    match kind:
        case codec.BEGIN:
            version = codec.VERSION if packet.version is None else packet.version
            own = {"version": version, "n_mr": packet.n_mr or 0, "csn": packet.csn or 0}
            return {**own, "options": _options(packet)}
        case codec.BGAK:
            own = {"reserved": reserved[0], "n_mr": packet.n_mr or 0, "csn": packet.csn or 0}
            own |= {"peer_csn": packet.peer_csn or 0, "reserved_n_r": reserved[1]}
            return {**own, "n_r": packet.n_r or 0, "options": _options(packet)}
        case codec.BGREJ:
            own = {"reason": packet.reason or 0, "reserved": reserved[0]}
            own |= {"reserved_2": reserved[1], "peer_csn": packet.peer_csn or 0}
            return {**own, "options": _options(packet)}
        case codec.END:
            own = {"reason": packet.reason or 0, "reserved": reserved[0]}
            return {**own, "csn": packet.csn or 0, "peer_csn": packet.peer_csn or 0}
        case codec.ENDAK:
            return {"peer_csn": packet.peer_csn or 0}
        case codec.SDP | codec.POLL:
            own = {"reserved": reserved[0], "n_ps": packet.n_ps or 0}
            return {**own, "timestamp": packet.timestamp or 0, "csn": packet.csn or 0}
        case codec.USTAT:
            first, second = packet.elements
            own = {"reserved": reserved[0], "n_mr": packet.n_mr or 0, "reserved_1": reserved[1]}
            own |= {"element_1": first, "reserved_2": reserved[2], "element_2": second}
            return own
        case codec.STAT:
            high = (*packet.reserved, *[0] * (2 + len(packet.elements)))
            words = [high[2 + at] << 24 | item for at, item in enumerate(packet.elements)]
            own = {"reserved": high[0], "n_mr": packet.n_mr or 0, "reserved_n_ps": high[1]}
            return {**own, "n_ps": packet.n_ps or 0, "timestamp": packet.timestamp or 0,
                    "elements": words}  # fmt: skip
    raise KeyError(kind)


def _options(packet: Stp) -> list[Any]:
    """The options as layers; the first that does not fit takes all the octets that are left."""
    stp = layers().stp
    octets = packet.options or codec.option_field(packet.max_sd, packet.cookie)
    listed: list[Any] = []
    while octets:
        kind, size = octets[0], int.from_bytes(octets[1:2], "big")
        if not kind:
            listed.append(stp.STPPadding())
            octets = octets[1:]
            continue
        if len(octets) == 1:
            return [*listed, layers().Raw(octets)]
        if not 2 <= size <= len(octets):
            return [*listed, stp.STPOption(kind=kind, length=size, value=octets[2:])]
        value, octets = octets[2:size], octets[size:]
        if (kind, size) == (1, 4):
            listed.append(stp.STPMaxSD(max_sd=int.from_bytes(value, "big")))
        elif kind == 2:
            listed.append(stp.STPCookie(cookie=value))
        else:
            listed.append(stp.STPOption(kind=kind, value=value))
    return listed


def dissection(octets: bytes) -> str:
    """An IPv4 packet as Scapy shows it, layer by layer; what UDP carries is taken for STP."""
    scapy = layers()
    packet = scapy.IP(octets)
    below = packet.getlayer(scapy.UDP)
    if below is not None:
        carried_octets = bytes(below.payload)
        below.remove_payload()
        below.add_payload(scapy.stp.STP(carried_octets))
    shown: str = packet.show(dump=True)
    return shown
