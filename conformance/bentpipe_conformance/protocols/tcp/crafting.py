"""Segments as Scapy packets, for those that a case is about: odd, malformed or inopportune.

Scapy is imported by the first that is made. Its expression of a packet, ``packet.command()``, holds
every field, so that it makes the same octets at Scapy's prompt.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from bentpipe_reference.common.checksum import internet_checksum

from bentpipe_conformance.protocols.tcp.codec import Tcp

Option = tuple[str | int, Any]
"""An option as Scapy has it, ``("MSS", 536)`` or ``(200, b"abc")``."""

FIXED_HEADER = 20
"""Octets of a TCP header without options (RFC 9293 section 3.1)."""


@cache
def layers() -> Any:
    """IP, IPOption, TCP and Raw of Scapy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inet = importlib.import_module("scapy.layers.inet")
        return SimpleNamespace(
            IP=inet.IP,
            IPOption=inet.IPOption,
            TCP=inet.TCP,
            Raw=importlib.import_module("scapy.packet").Raw,
        )


def craft(
    segment: Tcp, options: Sequence[Option] | None = None, raw: bytes = b"", **fields: Any
) -> Any:
    """A segment as ``IP()/TCP()``, and its data as ``Raw``.

    Args:
        segment: what to send.
        options: instead of the segment's own options.
        raw: octets behind the options, well formed or not, padded with End of Option List. Scapy
            writes right lengths, so that the whole option field is then in front of the data in
            its ``Raw``, and ``dataofs`` tells where the data begins.
        fields: other fields of ``TCP``, ``chksum`` or ``reserved`` for example.
    """
    scapy = layers()
    wanted = list(usual_options(segment) if options is None else options)
    payload = segment.payload
    if raw:
        field = scapy.TCP().get_field("options").i2m(None, wanted) + raw
        field += bytes(-len(field) % 4)
        fields = {"dataofs": (FIXED_HEADER + len(field)) // 4, **fields}
        wanted, payload = [], field + payload
    header = {
        "sport": segment.sport, "dport": segment.dport, "seq": segment.seq, "ack": segment.ack,
        "flags": segment.flags, "window": segment.window, "options": wanted,
    }  # fmt: skip
    packet = scapy.IP(src=segment.src, dst=segment.dst, id=0, flags="DF")
    # What add_payload joins need not be copied, as an operand of / is.
    packet.add_payload(scapy.TCP(**{**header, **fields}))
    if payload:
        packet.add_payload(scapy.Raw(payload))
    return packet


def usual_options(segment: Tcp) -> list[Option]:
    """A segment's options on boundaries of four octets, as :func:`codec.build` writes them."""
    options: list[Option] = []
    if segment.mss is not None:
        options.append(("MSS", segment.mss))
    if segment.sack_permitted:
        options += [("NOP", None), ("NOP", None), ("SAckOK", b"")]
    if segment.tsval is not None:
        options += [("NOP", None)] * 2 + [("Timestamp", (segment.tsval, segment.tsecr or 0))]
    if segment.window_scale is not None:
        options += [("NOP", None), ("WScale", segment.window_scale)]
    if segment.sack:
        edges = tuple(edge for block in segment.sack for edge in block)
        options += [("NOP", None)] * 2 + [("SAck", edges)]
    return options


def close_options(segment: Tcp, padding: int) -> list[Option]:
    """The same without any padding but ``padding`` octets in front."""
    close = [option for option in usual_options(segment) if option[0] != "NOP"]
    return [*[("NOP", None)] * (padding if close else 0), *close]


def _right(segment: bytes) -> int:
    return int.from_bytes(segment[16:18], "big")


def _alone(segment: bytes) -> int:
    return internet_checksum(segment[:16] + bytes(2) + segment[18:])


FALSE_CHECKSUMS: tuple[Callable[[bytes], int], ...] = (
    lambda _: 0,
    lambda _: 0xFFFF,
    _alone,
    lambda segment: (_alone(segment) - _right(segment)) % 0xFFFF,
    lambda segment: 0xFFFF - _right(segment),
    lambda segment: int.from_bytes(segment[16:18], "little"),
)
"""Checksums of a segment that a mistake may take for right.

None at all, as in UDP (RFC 768); all ones; without the pseudo-header; the sum of that alone,
which an interface would complete; the sum that is not complemented; the right one's octets swapped.
"""


def wrong_checksum(packet: Any, false: Callable[[bytes], int] | None = None) -> Any:
    """The same segment with a checksum that one bit makes wrong.

    Args:
        packet: a segment of Scapy.
        false: what makes another one of the segment's octets, unless that happens to be right.
    """
    layer = packet.getlayer(layers().TCP)
    octets = bytes(packet)[-len(bytes(layer)) :]
    right = _right(octets)
    value = right if false is None else false(octets)
    layer.chksum = right ^ 0x4000 if (value - right) % 0xFFFF == 0 else value
    return packet


def dissection(octets: bytes) -> str:
    """An IPv4 packet as Scapy shows it, layer by layer."""
    shown: str = layers().IP(octets).show(dump=True)
    return shown
